// aten_bridge: a kernel written with PyTorch's ATen, called by another deep-learning framework.
//
//   #include <ATen/ops/leaky_relu.h>
//   #include <aten_bridge.h>
//
//   void leaky_relu(const at::Tensor& x, at::Tensor& y) { at::leaky_relu_out(y, x); }
//   ATEN_BRIDGE_EXPORT(LeakyRelu, leaky_relu);
//
// makes the C function `LeakyRelu` that MindSpore's ops.Custom("./leaky_relu.so:LeakyRelu", ...,
// func_type="aot") calls. The tensors are views of the host's memory: nothing is copied.
//
// Top to bottom: the host's calling convention, errors, dtypes and operands (none of which needs
// PyTorch: define ATEN_BRIDGE_CORE_ONLY to get just these), then views, the caller's state, the
// binding of a function's signature, and the export macro.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_H_
#define ATEN_BRIDGE_H_

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>

#ifndef ATEN_BRIDGE_CORE_ONLY
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <c10/core/AutogradState.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/ScalarTypeToTypeMeta.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <cxxabi.h>
#include <torch/csrc/api/include/torch/version.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <exception>
#include <map>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>
#endif

/// Marks what a kernel library shows to its host: a C function written by hand needs it.
#define ATEN_BRIDGE_PUBLIC __attribute__((visibility("default"), used))

#ifndef ATEN_BRIDGE_CORE_ONLY
// In libtorch_cpu of every version; the wheels of PyTorch 2.1 and 2.6 lack the header for it.
namespace caffe2 {
TORCH_API const std::map<std::string, std::string>& GetBuildOptions();  // NOLINT(*-naming)
}
#endif

// Everything else is hidden, with or without -fvisibility=hidden: two libraries in one process,
// each with a bridge of its own version, must not share a symbol.
#pragma GCC visibility push(hidden)

//===----------------------------------------------------------------------===//
// The calling convention
//===----------------------------------------------------------------------===//

namespace aten_bridge {

// A host calls
//
//   extern "C" int Name(int nparam, void** params, int* ndims, int64_t** shapes,
//                       const char** dtypes, void* stream, void* extra);
//
// and takes 0 for success. `CallFrame` says what the parameters are.

/// Classes of failure: the codes that a kernel returns under ATEN_BRIDGE_ERRORS_RETURN.
enum class Status : int {
  kOk = 0,
  kCount = 1,        ///< more or fewer operands than the kernel has
  kDtype = 2,        ///< an operand's dtype
  kShape = 3,        ///< an operand's rank or sizes
  kDevice = 4,       ///< memory of another device than the kernel was built for
  kNullPointer = 5,  ///< no memory where there should be some
  kAttribute = 6,    ///< an attribute is missing or of another type
  kOutput = 7,       ///< the kernel did not leave its result in the host's buffer
  kAten = 8,         ///< ATen refused: a c10::Error
  kCuda = 9,         ///< a CUDA call or launch failed
  kException = 10,   ///< another std::exception
  kUnknown = 11,     ///< something thrown that is not a std::exception
};

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

/// What the bridge throws. The text names the operator and every operand that is wrong.
class Error : public std::runtime_error {
 public:
  Error(Status status, const std::string& text) : std::runtime_error(text), status_(status) {}
  Status status() const noexcept { return status_; }

 private:
  Status status_;
};

/// Collects the faults of one call, so that all of them are reported at once, a line each.
class Report {
 public:
  /// `operator_name` opens every line; it must outlive the report.
  explicit Report(const char* operator_name) noexcept : operator_name_(operator_name) {}

  /// Adds "<operator name>: <fault>". The first fault gives the report its status.
  [[gnu::cold, gnu::noinline]] void add(Status status, const std::string& fault) {
    if (ok()) {
      status_ = status;
    } else {
      text_ += '\n';
    }
    text_.append(operator_name_).append(": ").append(fault);
  }

  bool ok() const noexcept { return status_ == Status::kOk; }

  /// Throws `Error` if anything was added.
  void raise_if_failed() const {
    if (!ok()) {
      throw Error(status_, text_);
    }
  }

 private:
  const char* operator_name_;
  Status status_ = Status::kOk;
  std::string text_;
};

/// Whether an operand is read or written. `kSlot` is for kernels that take the operands as they
/// come and do not say which are inputs.
enum class Role : std::uint8_t { kInput, kOutput, kSlot };

/// How error texts name an operand: "input 0", "output 1", "slot 2".
struct OperandName {
  Role role = Role::kSlot;
  int index = 0;

  std::string text() const {
    const char* role_text =
        role == Role::kInput ? "input " : (role == Role::kOutput ? "output " : "slot ");
    return role_text + std::to_string(index);
  }
};

namespace detail {

/// Text of the last failure in this thread and this library; empty before the first.
inline std::string& last_error_text() {
  thread_local std::string text;
  return text;
}

/// "[2, 3]"; "[]" for a scalar.
[[gnu::cold]] inline std::string shape_text(const int64_t* sizes, int ndim) {
  std::string text = "[";
  for (int i = 0; i < ndim; ++i) {
    text.append(i == 0 ? "" : ", ").append(std::to_string(sizes[i]));
  }
  return text + "]";
}

/// "1 input", "2 outputs".
[[gnu::cold]] inline std::string count_text(int64_t count, const char* noun) {
  return std::to_string(count) + ' ' + noun + (count == 1 ? "" : "s");
}

}  // namespace detail
}  // namespace aten_bridge

/// The full text of the last failure in the calling thread, whatever the host made of it; "" if
/// there was none. Each kernel library exports its own. Valid until the next failure.
extern "C" ATEN_BRIDGE_PUBLIC inline const char* aten_bridge_last_error() {
  return aten_bridge::detail::last_error_text().c_str();
}

//===----------------------------------------------------------------------===//
// Dtypes
//===----------------------------------------------------------------------===//

namespace aten_bridge {

/// The element types that hosts name and PyTorch has.
enum class DType : std::uint8_t {
  kNone,  ///< no tensor: Python's None
  kBool,
  kUInt8,
  kInt8,
  kUInt16,
  kInt16,
  kUInt32,
  kInt32,
  kUInt64,
  kInt64,
  kFloat16,
  kBFloat16,
  kFloat32,
  kFloat64,
  kComplex64,
  kComplex128,
  kFloat8E4M3FN,
  kFloat8E5M2,
};

namespace detail {

struct DTypeInfo {
  std::string_view name;
  DType dtype;
  std::uint8_t itemsize;  // bytes
};

// The names that MindSpore 2.10 uses, in the order of the enumeration. It also has "hifloat8" and
// "int4", which PyTorch has not, and "string" and "typetype" for arguments that are no tensors.
inline constexpr DTypeInfo kDTypes[] = {
    {"none", DType::kNone, 0},
    {"bool", DType::kBool, 1},
    {"uint8", DType::kUInt8, 1},
    {"int8", DType::kInt8, 1},
    {"uint16", DType::kUInt16, 2},
    {"int16", DType::kInt16, 2},
    {"uint32", DType::kUInt32, 4},
    {"int32", DType::kInt32, 4},
    {"uint64", DType::kUInt64, 8},
    {"int64", DType::kInt64, 8},
    {"float16", DType::kFloat16, 2},
    {"bfloat16", DType::kBFloat16, 2},
    {"float32", DType::kFloat32, 4},
    {"float64", DType::kFloat64, 8},
    {"complex64", DType::kComplex64, 8},
    {"complex128", DType::kComplex128, 16},
    {"float8e4m3fn", DType::kFloat8E4M3FN, 1},
    {"float8e5m2", DType::kFloat8E5M2, 1},
};

// Older hosts leave the width out where it is 32.
inline constexpr DTypeInfo kOlderDTypes[] = {
    {"int", DType::kInt32, 4},
    {"uint", DType::kUInt32, 4},
    {"float", DType::kFloat32, 4},
};

inline const DTypeInfo& dtype_info(DType dtype) noexcept {
  return kDTypes[static_cast<std::size_t>(dtype)];
}

/// Null for a name that is not in the tables. Never guesses.
inline const DTypeInfo* find_dtype(std::string_view name) noexcept {
  for (const DTypeInfo& info : kDTypes) {
    if (info.name == name) {
      return &info;
    }
  }
  for (const DTypeInfo& info : kOlderDTypes) {
    if (info.name == name) {
      return &info;
    }
  }
  return nullptr;
}

/// "bool|uint8|...": all that a tensor can be.
[[gnu::cold]] inline std::string dtype_names() {
  std::string text;
  for (const DTypeInfo& info : kDTypes) {
    if (info.dtype != DType::kNone) {
      text.append(text.empty() ? "" : "|").append(info.name);
    }
  }
  return text;
}

}  // namespace detail

/// The host's name of a dtype, such as "float32"; "none" for kNone.
inline std::string_view dtype_name(DType dtype) noexcept { return detail::dtype_info(dtype).name; }

/// Bytes of one element; 0 for kNone.
inline std::size_t dtype_itemsize(DType dtype) noexcept {
  return detail::dtype_info(dtype).itemsize;
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

/// One checked operand of a call, whatever the host: all that a view needs. Row-major, dense.
struct Slot {
  void* data = nullptr;            ///< may be null for None and where `numel` is 0
  const int64_t* sizes = nullptr;  ///< `ndim` sizes of 0 or more; may be null where `ndim` is 0
  int ndim = 0;
  int64_t numel = 0;  ///< number of elements; 0 for None
  DType dtype = DType::kNone;

  bool is_none() const noexcept { return dtype == DType::kNone; }

  /// "float32 [2, 3]" or "None".
  std::string text() const {
    return is_none() ? "None"
                     : std::string(dtype_name(dtype)) + ' ' + detail::shape_text(sizes, ndim);
  }
};

/// The seven arguments of one call of MindSpore's AOT interface. Owns nothing; valid during the
/// call.
///
/// `params` holds the data pointers of the inputs, then of the outputs, then of the workspaces;
/// `nparam` counts all three. `ndims`, `shapes` and `dtypes` describe inputs and outputs only:
/// what lies behind is not readable (MindSpore 2.10). The number of workspaces is read from
/// `extra`.
class CallFrame {
 public:
  /// Ranks over this are taken for garbage; many ATen operators refuse them too.
  static constexpr int kMaxNdim = 64;

  /// Throws `Error`, with `operator_name` in its text, if the arguments contradict each other.
  /// The name must outlive the frame. No operand is looked at yet.
  CallFrame(const char* operator_name, int nparam, void** params, int* ndims, int64_t** shapes,
            const char** dtypes, void* stream, void* extra)
      : operator_name_(operator_name),
        params_(params),
        ndims_(ndims),
        shapes_(shapes),
        dtypes_(dtypes),
        stream_(stream) {
    // Behind the pointer to its virtual table, `extra` has a std::vector of the workspaces' sizes
    // (MindSpore 2.10). Hosts before about 1.9 pass null and have no workspaces.
    if (extra != nullptr) {
      std::memcpy(static_cast<void*>(&workspaces_), static_cast<const char*>(extra) + sizeof(void*),
                  sizeof(workspaces_));
    }
    // On addresses: a foreign `extra` may hold anything here.
    const auto begin = reinterpret_cast<std::uintptr_t>(workspaces_.begin);
    const auto end = reinterpret_cast<std::uintptr_t>(workspaces_.end);
    const std::uintptr_t bytes = end - begin;
    Report report(operator_name);
    if (nparam < 0) {
      report.add(Status::kCount, "expected 0 or more slots, got " + std::to_string(nparam));
    } else if (end < begin || bytes % sizeof(std::size_t) != 0 ||
               bytes / sizeof(std::size_t) > static_cast<std::size_t>(nparam)) {
      report.add(Status::kCount, "expected `extra` to list the workspaces of a call with " +
                                     detail::count_text(nparam, "slot") +
                                     ", got something else than MindSpore 2.10 passes");
    } else {
      size_ = nparam - static_cast<int>(bytes / sizeof(std::size_t));
      if (nparam > 0 && params == nullptr) {
        report.add(Status::kNullPointer, "expected pointers to the operands, got a null `params`");
      }
      if (size_ > 0 && (ndims == nullptr || shapes == nullptr || dtypes == nullptr)) {
        report.add(Status::kNullPointer,
                   "expected `ndims`, `shapes` and `dtypes`, got a null pointer");
      }
    }
    report.raise_if_failed();
  }

  const char* operator_name() const noexcept { return operator_name_; }

  /// Number of inputs and outputs together.
  int size() const noexcept { return size_; }

  /// The host's stream; null on the CPU, and a valid stream on CUDA.
  void* stream() const noexcept { return stream_; }

  int workspace_count() const noexcept {
    return static_cast<int>(workspaces_.end - workspaces_.begin);
  }

  /// Memory of workspace `index`, of `workspace_bytes(index)` bytes, with no initial value.
  void* workspace(int index) const noexcept { return params_[size_ + index]; }
  std::size_t workspace_bytes(int index) const noexcept { return workspaces_.begin[index]; }

  /// Reads the operand at `index`, below `size()`, into `slot`, and touches no data. Returns false
  /// after adding what is wrong with the operand, under `name`, to `report`.
  [[nodiscard]] bool read(int index, OperandName name, Slot& slot, Report& report) const {
    const char* dtype = dtypes_[index];
    const detail::DTypeInfo* info = dtype == nullptr ? nullptr : detail::find_dtype(dtype);
    slot.data = params_[index];
    slot.sizes = shapes_[index];
    slot.ndim = ndims_[index];
    slot.numel = 0;
    slot.dtype = info == nullptr ? DType::kNone : info->dtype;

    if (slot.ndim < 0 || slot.ndim > kMaxNdim) {
      report.add(Status::kShape, name.text() + ": expected a rank from 0 to " +
                                     std::to_string(kMaxNdim) + ", got " +
                                     std::to_string(slot.ndim));
      return false;
    }
    if (slot.ndim > 0 && slot.sizes == nullptr) {
      report.add(Status::kShape, name.text() + ": expected " +
                                     detail::count_text(slot.ndim, "size") + ", got a null shape");
      return false;
    }
    if (info == nullptr) {
      report.add(Status::kDtype, name.text() + dtype_fault(dtype, slot));
      return false;
    }
    if (slot.is_none()) {
      return true;
    }
    bool empty = false;
    int64_t bytes = info->itemsize;  // of the tensor with every size of 0 taken as 1, as strides do
    for (int i = 0; i < slot.ndim; ++i) {
      const int64_t size = slot.sizes[i];
      if (size < 0) {
        report.add(Status::kShape,
                   name.text() + ": expected sizes of 0 or more, got " + slot.text());
        return false;
      }
      if (__builtin_mul_overflow(bytes, size == 0 ? 1 : size, &bytes)) {
        report.add(Status::kShape,
                   name.text() + ": expected fewer than 2^63 bytes, got " + slot.text());
        return false;
      }
      empty = empty || size == 0;
    }
    slot.numel = empty ? 0 : bytes / info->itemsize;
    if (slot.data == nullptr && !empty) {
      report.add(Status::kNullPointer, name.text() + ": expected a pointer to " +
                                           detail::count_text(slot.numel, "element") +
                                           ", got null with " + slot.text());
      return false;
    }
    return true;
  }

 private:
  /// ": expected ..., got ..." for a dtype that is not in the tables.
  [[gnu::cold]] static std::string dtype_fault(const char* dtype, const Slot& slot) {
    const std::string shape = " with shape " + detail::shape_text(slot.sizes, slot.ndim);
    if (dtype == nullptr) {
      return ": expected a dtype, got null" + shape;
    }
    if (std::strcmp(dtype, "string") == 0) {
      return ": expected a tensor, got \"string\", a str";
    }
    if (std::strcmp(dtype, "typetype") == 0) {
      return ": expected a tensor, got \"typetype\", a dtype";
    }
    return ": expected " + detail::dtype_names() + ", got \"" + dtype + '"' + shape;
  }

  /// A std::vector<std::size_t> of the host's, whichever C++ ABI it was built with.
  struct Workspaces {
    const std::size_t* begin = nullptr;
    const std::size_t* end = nullptr;
  };

  const char* operator_name_;
  void** params_;
  int* ndims_;
  int64_t** shapes_;
  const char** dtypes_;
  void* stream_;
  Workspaces workspaces_;
  int size_ = 0;
};

}  // namespace aten_bridge

#ifndef ATEN_BRIDGE_CORE_ONLY

//===----------------------------------------------------------------------===//
// Views
//===----------------------------------------------------------------------===//

namespace aten_bridge {
namespace detail {

// Not every libtorch has every enumerator: UInt16, UInt32 and UInt64 came with 2.3.
#define ATEN_BRIDGE_SCALAR_TYPE(name)                                              \
  template <class ScalarType>                                                      \
  constexpr auto scalar_type_##name(int)->decltype(ScalarType::name) {             \
    return ScalarType::name;                                                       \
  }                                                                                \
  template <class ScalarType>                                                      \
  constexpr ScalarType scalar_type_##name(long) { /* NOLINT(google-runtime-int) */ \
    return ScalarType::Undefined;                                                  \
  }
ATEN_BRIDGE_SCALAR_TYPE(UInt16)
ATEN_BRIDGE_SCALAR_TYPE(UInt32)
ATEN_BRIDGE_SCALAR_TYPE(UInt64)
#undef ATEN_BRIDGE_SCALAR_TYPE

// In the order of `DType`.
inline constexpr at::ScalarType kScalarTypes[] = {
    at::ScalarType::Undefined,
    at::ScalarType::Bool,
    at::ScalarType::Byte,
    at::ScalarType::Char,
    scalar_type_UInt16<at::ScalarType>(0),
    at::ScalarType::Short,
    scalar_type_UInt32<at::ScalarType>(0),
    at::ScalarType::Int,
    scalar_type_UInt64<at::ScalarType>(0),
    at::ScalarType::Long,
    at::ScalarType::Half,
    at::ScalarType::BFloat16,
    at::ScalarType::Float,
    at::ScalarType::Double,
    at::ScalarType::ComplexFloat,
    at::ScalarType::ComplexDouble,
    at::ScalarType::Float8_e4m3fn,
    at::ScalarType::Float8_e5m2,
};

}  // namespace detail

/// PyTorch's name of a dtype; Undefined for kNone and for what this libtorch does not have.
inline at::ScalarType scalar_type(DType dtype) noexcept {
  return detail::kScalarTypes[static_cast<std::size_t>(dtype)];
}

namespace detail {

/// The host's name of a dtype where it has one: "float32", not "Float".
[[gnu::cold]] inline std::string scalar_type_text(at::ScalarType type) {
  for (const DTypeInfo& info : kDTypes) {
    if (info.dtype != DType::kNone && scalar_type(info.dtype) == type) {
      return std::string(info.name);
    }
  }
  return c10::toString(type);
}

/// "float32 [2, 3]" or "an undefined tensor".
[[gnu::cold]] inline std::string tensor_text(const at::Tensor& tensor) {
  return !tensor.defined() ? "an undefined tensor"
                           : scalar_type_text(tensor.scalar_type()) + ' ' +
                                 shape_text(tensor.sizes().data(), static_cast<int>(tensor.dim()));
}

/// What becomes of a view that a kernel resizes beyond the host's buffer. An output of
/// ATEN_BRIDGE_EXPORT moves to memory of its own and is found out after the body, by a check that
/// can name the sizes; where nothing is checked afterwards, ATen refuses.
enum class Resizing : bool { kRefused, kFoundOut };

/// A tensor over the operand's memory, undefined for None. Adds to `report` a dtype that this
/// libtorch does not have. Not at::from_blob, whose storage cannot be resized.
inline at::Tensor make_view(const Slot& slot, OperandName name, Resizing resizing, Report& report) {
  if (slot.is_none()) {
    return {};
  }
  const at::ScalarType type = scalar_type(slot.dtype);
  if (type == at::ScalarType::Undefined) {
    report.add(Status::kDtype,
               name.text() + ": expected a dtype of this version of PyTorch, got " + slot.text());
    return {};
  }
  const bool resizable = resizing == Resizing::kFoundOut;
  c10::Storage storage(c10::Storage::use_byte_size_t(),
                       static_cast<std::size_t>(slot.numel) * dtype_itemsize(slot.dtype),
                       c10::DataPtr(slot.data, at::kCPU),
                       resizable ? c10::GetCPUAllocator() : nullptr, resizable);
  at::Tensor view = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(c10::DispatchKey::CPU),
      c10::scalarTypeToTypeMeta(type));
  view.unsafeGetTensorImpl()->set_sizes_contiguous(
      at::IntArrayRef(slot.sizes, static_cast<std::size_t>(slot.ndim)));
  return view;
}

}  // namespace detail

/// Views of the operands at `indices`, in that order. They are ordinary contiguous tensors over
/// the host's memory, undefined where the host passed None; what is written to them the host
/// sees. Throws one `Error` for all operands that are wrong, named "slot <index>".
inline std::vector<at::Tensor> tensors(const CallFrame& frame, c10::ArrayRef<int> indices) {
  std::vector<at::Tensor> views;
  views.reserve(indices.size());
  Report report(frame.operator_name());
  for (const int index : indices) {
    const OperandName name{Role::kSlot, index};
    if (index < 0 || index >= frame.size()) {
      report.add(Status::kCount, name.text() + ": expected one of the call's " +
                                     detail::count_text(frame.size(), "slot"));
      continue;
    }
    Slot slot;
    if (frame.read(index, name, slot, report)) {
      views.push_back(detail::make_view(slot, name, detail::Resizing::kRefused, report));
    }
  }
  report.raise_if_failed();
  return views;
}

/// Views of all inputs, then all outputs.
inline std::vector<at::Tensor> tensors(const CallFrame& frame) {
  std::vector<int> indices(static_cast<std::size_t>(frame.size()));
  for (std::size_t i = 0; i < indices.size(); ++i) {
    indices[i] = static_cast<int>(i);
  }
  return tensors(frame, indices);
}

//===----------------------------------------------------------------------===//
// The caller's state
//===----------------------------------------------------------------------===//

namespace detail {

/// Around the body of a kernel. Inside, operators run below autograd (no graph, 2 dispatches fewer
/// for each operator), without autocast and not in inference mode, whatever the calling thread had
/// set. Afterwards grad mode, inference mode, dispatch keys, thread count and, on x86-64, the
/// treatment of denormals are the thread's own again, also where the kernel changed them or threw.
/// Settings of the whole process are left as they are: other threads may be at them.
class KernelScope {
 public:
  KernelScope()
      : dispatch_keys_(c10::impl::tls_local_dispatch_key_set()),
        autograd_state_(c10::AutogradState::get_tls_state()),
        thread_count_(at::get_num_threads()) {
    if (c10::InferenceMode::is_enabled()) {
      normal_mode_.emplace(/*enabled=*/false);
    }
    below_.emplace(c10::autograd_dispatch_keyset_with_ADInplaceOrView |
                   c10::autocast_dispatch_keyset);
  }

  ~KernelScope() {
    below_.reset();
    normal_mode_.reset();
    c10::AutogradState::set_tls_state(autograd_state_);
    if (at::get_num_threads() != thread_count_) {
      at::set_num_threads(thread_count_);
    }
#ifdef __SSE__
    constexpr unsigned int kFlags = 0x3f;  // what happened, not how to compute
    const unsigned int mxcsr = __builtin_ia32_stmxcsr();
    if (((mxcsr ^ mxcsr_) & ~kFlags) != 0) {
      __builtin_ia32_ldmxcsr((mxcsr & kFlags) | (mxcsr_ & ~kFlags));
    }
#endif
  }

  KernelScope(const KernelScope&) = delete;
  KernelScope& operator=(const KernelScope&) = delete;

 private:
#ifdef __SSE__
  unsigned int mxcsr_ = __builtin_ia32_stmxcsr();  // flush-to-zero, denormals-are-zero, rounding
#endif
  c10::impl::ForceDispatchKeyGuard dispatch_keys_;  // restores the dispatch keys after the others
  c10::AutogradState autograd_state_;
  int thread_count_;
  std::optional<c10::InferenceMode> normal_mode_;
  std::optional<c10::impl::ExcludeDispatchKeyGuard> below_;
};

/// What is wrong with the PyTorch in this process; empty if nothing is. A library is loaded with
/// the libtorch that is there already, whatever its own runpath says, and tensors differ from one
/// minor version to the next. (at::show_config() would start CUDA.)
inline std::string pytorch_fault() {
  const auto& options = caffe2::GetBuildOptions();
  const auto loaded = options.find("TORCH_VERSION");  // such as "2.11.0"
  const std::string built_with =
      std::to_string(TORCH_VERSION_MAJOR) + '.' + std::to_string(TORCH_VERSION_MINOR) + '.';
  return loaded == options.end() || loaded->second.compare(0, built_with.size(), built_with) == 0
             ? std::string()
             : "expected PyTorch " + built_with + "x, with which this library was built, got " +
                   loaded->second + ", which the process had loaded before; build the library " +
                   "with the PyTorch that the program imports";
}

/// Throws `Error` if the PyTorch in this process is not the one that the library was built with.
inline void check_pytorch(const char* operator_name) {
  static const std::string fault = pytorch_fault();
  if (!fault.empty()) {
    throw Error(Status::kAten, std::string(operator_name) + ": " + fault);
  }
}

//===----------------------------------------------------------------------===//
// Binding: from a function's signature to the operands of a call
//===----------------------------------------------------------------------===//
//
// Templates only list what a signature asks for (`Parameter`, `Signature`) and spread the
// operands over the arguments (`Invoker`). Decoding, checking and reporting is one ordinary
// function for all kernels, `run`, so that a library with many kernels stays small.

/// What one parameter, or one result, takes from the call.
struct Binding {
  Role role;
  bool optional;  // may be None
};

/// One operand during a call: the host's memory and the tensor that the kernel works on.
struct Operand {
  OperandName name;
  Slot slot;
  at::Tensor view;
  const c10::TensorImpl* impl = nullptr;  // of `view` before the body
};

template <class>
inline constexpr bool kNever = false;

/// How a parameter of type `P` binds. For instance `const at::Tensor&` takes the next input.
template <class P>
struct Parameter {
  static_assert(kNever<P>,
                "aten_bridge: a kernel's parameters are const at::Tensor& or at::Tensor for an "
                "input, const std::optional<at::Tensor>& for an input that may be None, and "
                "at::Tensor& for an output; or const aten_bridge::CallFrame& alone.");
  static constexpr Binding kBinding{Role::kInput, false};
  static P get(Operand& operand);
};

template <>
struct Parameter<const at::Tensor&> {
  static constexpr Binding kBinding{Role::kInput, false};
  static const at::Tensor& get(Operand& operand) { return operand.view; }
};

template <>
struct Parameter<at::Tensor> : Parameter<const at::Tensor&> {};

template <>
struct Parameter<const std::optional<at::Tensor>&> {
  static constexpr Binding kBinding{Role::kInput, true};
  static std::optional<at::Tensor> get(Operand& operand) {
    return operand.view.defined() ? std::optional<at::Tensor>(operand.view) : std::nullopt;
  }
};

template <>
struct Parameter<std::optional<at::Tensor>> : Parameter<const std::optional<at::Tensor>&> {};

template <>
struct Parameter<at::Tensor&> {
  static constexpr Binding kBinding{Role::kOutput, false};
  static at::Tensor& get(Operand& operand) { return operand.view; }
};

/// The call itself, for a kernel that does the rest; only ever the one parameter (see `Invoker`).
template <>
struct Parameter<const CallFrame&> {
  static constexpr Binding kBinding{Role::kSlot, false};
  static const CallFrame& get(Operand& operand);
};

/// What a result of type `R` means: tensors to be copied to the outputs, or nothing.
template <class R>
struct Result {
  static_assert(kNever<R>,
                "aten_bridge: a kernel returns void and writes its at::Tensor& parameters, or "
                "returns at::Tensor or std::tuple<at::Tensor, ...>.");
  static constexpr int kCount = 1;
};

template <>
struct Result<void> {
  static constexpr int kCount = 0;
};

// ATen's own _out functions return their output parameters: nothing to be copied.
template <>
struct Result<at::Tensor&> : Result<void> {};

template <class... R>
struct Result<std::tuple<R...>> {
  static_assert((std::is_same_v<std::decay_t<R>, at::Tensor> && ...),
                "aten_bridge: a kernel that returns a std::tuple returns tensors only.");
  static_assert((std::is_reference_v<R> && ...) || (!std::is_reference_v<R> && ...),
                "aten_bridge: a kernel that returns a std::tuple returns at::Tensor& for none or "
                "for all of its elements.");
  static constexpr int kCount = (0 + ... + (std::is_reference_v<R> ? 0 : 1));
};

template <>
struct Result<at::Tensor> {
  static constexpr int kCount = 1;
};

inline std::array<at::Tensor, 1> result_array(at::Tensor result) { return {std::move(result)}; }

template <class... R>
std::array<at::Tensor, sizeof...(R)> result_array(std::tuple<R...> results) {
  return std::apply(
      [](auto&... result) { return std::array<at::Tensor, sizeof...(R)>{std::move(result)...}; },
      results);
}

inline std::array<const at::Tensor*, 1> address_array(at::Tensor& result) { return {&result}; }

template <class... R>
std::array<const at::Tensor*, sizeof...(R)> address_array(const std::tuple<R...>& results) {
  return std::apply(
      [](auto&... result) { return std::array<const at::Tensor*, sizeof...(R)>{&result...}; },
      results);
}

/// The parameters and the result of anything that can be called in one way only.
template <class F, class = void>
struct Signature {
  static_assert(kNever<F>,
                "aten_bridge: a kernel is a function, a lambda, or an object with one operator() "
                "that is const.");
  using ResultType = at::Tensor;
  using Parameters = std::tuple<>;
};

template <class R, class... P>
struct Signature<R (*)(P...)> {
  using ResultType = R;
  using Parameters = std::tuple<Parameter<P>...>;
};
template <class R, class... P>
struct Signature<R (*)(P...) noexcept> : Signature<R (*)(P...)> {};
template <class C, class R, class... P>
struct Signature<R (C::*)(P...) const> : Signature<R (*)(P...)> {};
template <class C, class R, class... P>
struct Signature<R (C::*)(P...) const noexcept> : Signature<R (*)(P...)> {};
template <class F>
struct Signature<F, std::void_t<decltype(&F::operator())>> : Signature<decltype(&F::operator())> {};

/// How a failure reaches the host: by a std::runtime_error or by a `Status`. Chosen by each source
/// file, hence no business of inline functions.
enum class ErrorMode : bool { kThrow, kReturn };
#ifdef ATEN_BRIDGE_ERRORS_RETURN
#define ATEN_BRIDGE_ERROR_MODE ::aten_bridge::detail::ErrorMode::kReturn
#else
#define ATEN_BRIDGE_ERROR_MODE ::aten_bridge::detail::ErrorMode::kThrow
#endif

/// All that `run` needs to know about a kernel.
struct KernelInfo {
  const char* operator_name;
  ErrorMode error_mode;
  const Binding* bindings;  // one for each parameter, then one for each result
  int count;
  int inputs;        // of `count`
  bool takes_frame;  // the kernel gets the CallFrame as it is, and there are no bindings
  const void* function;
  void (*invoke)(const void* function, const CallFrame& frame, Operand* operands);
};

/// Copies what a kernel returned to the host's buffers, after a check of dtypes and shapes.
inline void copy_results(const CallFrame& frame, const at::Tensor* results, Operand* outputs,
                         int count) {
  Report report(frame.operator_name());
  for (int i = 0; i < count; ++i) {
    const at::Tensor& result = results[i];
    const at::Tensor& output = outputs[i].view;
    if (!result.defined() || result.scalar_type() != output.scalar_type() ||
        result.sizes() != output.sizes()) {
      report.add(Status::kOutput, outputs[i].name.text() + ": expected " + outputs[i].slot.text() +
                                      " as out_shape and out_dtype say, got " +
                                      tensor_text(result) + " from the kernel");
    } else if (result.device() != output.device()) {
      report.add(Status::kDevice, outputs[i].name.text() + ": expected a tensor on " +
                                      output.device().str() + ", got one on " +
                                      result.device().str() + " from the kernel");
    }
  }
  report.raise_if_failed();
  for (int i = 0; i < count; ++i) {
    outputs[i].view.copy_(results[i]);
  }
}

/// What a kernel returns by reference is one of its output parameters; anything else would be lost.
inline void check_returned(const CallFrame& frame, const at::Tensor* const* returned, int count,
                           const Operand* operands, int operand_count) {
  for (int i = 0; i < count; ++i) {
    const bool is_output = std::any_of(operands, operands + operand_count, [&](const Operand& o) {
      return o.name.role == Role::kOutput && &o.view == returned[i];
    });
    if (!is_output) {
      throw Error(Status::kOutput,
                  std::string(frame.operator_name()) +
                      ": expected the kernel to return its output parameter, got a reference to "
                      "another tensor; return at::Tensor by value, or write the parameter");
    }
  }
}

template <class F, class Parameters = typename Signature<F>::Parameters>
struct Invoker;

template <class F, class... P>
struct Invoker<F, std::tuple<P...>> {
  using ResultType = typename Signature<F>::ResultType;
  static constexpr int kParameters = sizeof...(P);
  static constexpr int kResults = Result<ResultType>::kCount;
  static constexpr int kOutputs = (kResults + ... + (P::kBinding.role == Role::kOutput ? 1 : 0));
  static constexpr int kInputs = (0 + ... + (P::kBinding.role == Role::kInput ? 1 : 0));
  static constexpr int kCount = kParameters + kResults;
  static constexpr bool kTakesFrame = false;

  static_assert(((P::kBinding.role != Role::kSlot) && ...),
                "aten_bridge: a kernel over a CallFrame has no other parameter.");
  static_assert(kOutputs > 0,
                "aten_bridge: a kernel has at least one output: an at::Tensor& parameter or a "
                "result. MindSpore does not call an operator that has none.");
  static_assert(kResults == 0 || kOutputs == kResults,
                "aten_bridge: a kernel either writes its at::Tensor& parameters or returns its "
                "results, not both.");

  static constexpr std::array<Binding, kCount> bindings() {
    std::array<Binding, kCount> bindings{P::kBinding...};
    for (std::size_t i = kParameters; i < kCount; ++i) {
      bindings[i] = {Role::kOutput, false};
    }
    return bindings;
  }

  static void invoke(const void* function, const CallFrame& frame, Operand* operands) {
    spread(*static_cast<const F*>(function), frame, operands,
           std::make_index_sequence<kParameters>());
  }

 private:
  template <std::size_t... I>
  static void spread(const F& function, [[maybe_unused]] const CallFrame& frame, Operand* operands,
                     std::index_sequence<I...> /*indices*/) {
    if constexpr (std::is_void_v<ResultType>) {
      function(P::get(operands[I])...);
    } else if constexpr (kResults == 0) {
      const auto returned = address_array(function(P::get(operands[I])...));
      check_returned(frame, returned.data(), static_cast<int>(returned.size()), operands,
                     kParameters);
    } else {
      const auto results = result_array(function(P::get(operands[I])...));
      copy_results(frame, results.data(), operands + kParameters, kResults);
    }
  }
};

// A kernel over the raw call: `void kernel(const aten_bridge::CallFrame& frame)`.
template <class F>
struct Invoker<F, std::tuple<Parameter<const CallFrame&>>> {
  static_assert(std::is_void_v<typename Signature<F>::ResultType>,
                "aten_bridge: a kernel over a CallFrame returns void.");
  static constexpr int kInputs = 0;
  static constexpr int kCount = 0;
  static constexpr bool kTakesFrame = true;
  static constexpr std::array<Binding, 0> bindings() { return {}; }
  static void invoke(const void* function, const CallFrame& frame, Operand* /*operands*/) {
    (*static_cast<const F*>(function))(frame);
  }
};

//===----------------------------------------------------------------------===//
// One call
//===----------------------------------------------------------------------===//

/// Fills `operands` from the call; throws one `Error` for all that are wrong.
inline void bind_operands(const KernelInfo& kernel, const CallFrame& frame, Operand* operands) {
  Report report(kernel.operator_name);
  if (frame.size() != kernel.count) {
    report.add(Status::kCount,
               "expected " + count_text(kernel.inputs, "input") + " and " +
                   count_text(kernel.count - kernel.inputs, "output") + ", got " +
                   count_text(frame.size(), "slot") +
                   "; compare the arguments of the call, out_shape and out_dtype with the kernel");
    report.raise_if_failed();
  }
  int next_input = 0;
  int next_output = 0;
  for (int i = 0; i < kernel.count; ++i) {
    const Binding& binding = kernel.bindings[i];
    const bool is_input = binding.role == Role::kInput;
    Operand& operand = operands[i];
    operand.name = {binding.role, is_input ? next_input++ : next_output++};
    const int index = operand.name.index + (is_input ? 0 : kernel.inputs);
    if (frame.read(index, operand.name, operand.slot, report) && operand.slot.is_none() &&
        !binding.optional) {
      report.add(Status::kDtype, operand.name.text() + ": expected a tensor, got None");
    }
  }
  report.raise_if_failed();
  for (int i = 0; i < kernel.count; ++i) {
    Operand& operand = operands[i];
    operand.view = make_view(operand.slot, operand.name, Resizing::kFoundOut, report);
    operand.impl = operand.view.unsafeGetTensorImpl();
  }
  report.raise_if_failed();
}

/// Whether a kernel kept the contract: the result is in the host's memory, with the sizes and the
/// dtype that the host allocated it for, row-major. An alias of the view will do.
inline bool output_is_intact(const Operand& output) {
  const at::Tensor& view = output.view;
  const Slot& slot = output.slot;
  return view.defined() && view.layout() == at::kStrided &&
         view.sizes() == at::IntArrayRef(slot.sizes, static_cast<std::size_t>(slot.ndim)) &&
         view.scalar_type() == scalar_type(slot.dtype) && view.is_contiguous() &&
         (slot.numel == 0 || view.const_data_ptr() == slot.data) && !view.is_conj() &&
         !view.is_neg();
}

/// What the kernel did to an output that is not intact.
[[gnu::cold]] inline std::string output_fault(const Operand& output) {
  const at::Tensor& view = output.view;
  const Slot& slot = output.slot;
  const std::string in_memory = ": expected the result in the host's memory, got ";
  const std::string cure = "; write with an _out function or with copy_()";
  if (view.unsafeGetTensorImpl() != output.impl) {
    return in_memory + "another tensor assigned to the parameter" + cure;
  }
  const std::string as_allocated =
      ": expected " + slot.text() + " as out_shape and out_dtype say, got " + tensor_text(view);
  if (view.sizes() != at::IntArrayRef(slot.sizes, static_cast<std::size_t>(slot.ndim))) {
    return as_allocated +
           " because the kernel resized it; let out_shape return the shape of the result";
  }
  if (view.scalar_type() != scalar_type(slot.dtype)) {
    return as_allocated +
           " because the kernel changed its dtype; let out_dtype return the dtype of the result";
  }
  if (slot.numel > 0 && view.const_data_ptr() != slot.data) {
    return in_memory + "other memory because the kernel replaced the tensor's storage" + cure;
  }
  return ": expected row-major values, got strides " +
         shape_text(view.strides().data(), static_cast<int>(view.dim())) +
         (view.is_conj() || view.is_neg() ? " and a pending conjugation or negation" : "") +
         " because the kernel changed the tensor's layout" + cure;
}

inline void check_outputs(const KernelInfo& kernel, const Operand* operands) {
  Report report(kernel.operator_name);
  for (int i = 0; i < kernel.count; ++i) {
    if (kernel.bindings[i].role == Role::kOutput && !output_is_intact(operands[i])) {
      report.add(Status::kOutput, operands[i].name.text() + output_fault(operands[i]));
    }
  }
  report.raise_if_failed();
}

/// " (input 0: float32 [2, 2]; output 0: float32 [2, 2])": what a message of ATen's leaves out.
[[gnu::cold]] inline std::string operands_text(const Operand* operands, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    text.append(i == 0 ? " (" : "; ")
        .append(operands[i].name.text())
        .append(": ")
        .append(operands[i].slot.text());
  }
  return count == 0 ? text : text + ")";
}

/// The name of the type of the exception that is being handled.
[[gnu::cold]] inline std::string exception_type_text() {
  const std::type_info* type = abi::__cxa_current_exception_type();
  if (type == nullptr) {
    return "unknown";
  }
  int status = 0;
  char* demangled = abi::__cxa_demangle(type->name(), nullptr, nullptr, &status);
  std::string text = status == 0 ? demangled : type->name();
  std::free(demangled);  // NOLINT: __cxa_demangle allocates with malloc
  return text;
}

struct Failure {
  Status status;
  std::string text;
};

/// What the exception being handled says. Only an `Error` names its operator and operands itself.
[[gnu::cold]] inline Failure describe_failure(const char* operator_name,
                                              const std::string& operands) {
  Failure failure{Status::kUnknown, std::string(operator_name) + ": "};
  try {
    throw;
  } catch (const Error& error) {
    failure = {error.status(), error.what()};
  } catch (const c10::Error& error) {
    // The C++ backtrace is of use to who debugs PyTorch; PyTorch's own variable asks for it.
    const char* show = std::getenv("TORCH_SHOW_CPP_STACKTRACES");
    const bool backtrace = show != nullptr && std::strcmp(show, "1") == 0;
    failure.status = Status::kAten;
    failure.text += (backtrace ? error.what() : error.what_without_backtrace()) + operands;
  } catch (const std::exception& error) {
    failure.status = Status::kException;
    failure.text += (error.what() == nullptr ? "" : error.what()) + operands;
  } catch (...) {
    failure.text += "the kernel threw an object of type " + exception_type_text() +
                    ", which is not a std::exception" + operands;
  }
  return failure;
}

/// The same with the operands of the call, and recorded for aten_bridge_last_error(). Does not
/// throw: without memory for the text there is none.
[[gnu::cold, gnu::noinline]] inline Failure record_failure(const char* operator_name,
                                                           const Operand* operands,
                                                           int count) noexcept {
  try {
    Failure failure = describe_failure(operator_name, operands_text(operands, count));
    last_error_text() = failure.text;
    return failure;
  } catch (...) {
    last_error_text().clear();
    return {Status::kUnknown, {}};
  }
}

/// Hands a failure to the host.
[[gnu::cold]] inline int hand_over(const Failure& failure, ErrorMode mode) {
  if (mode == ErrorMode::kThrow) {
    throw std::runtime_error(failure.text);
  }
  std::fprintf(stderr, "%s\n", failure.text.c_str());
  return static_cast<int>(failure.status);
}

/// One call of a kernel from one of the host. `operands` has room for `kernel.count`.
inline int run(const KernelInfo& kernel, Operand* operands, int nparam, void** params, int* ndims,
               int64_t** shapes, const char** dtypes, void* stream, void* extra) {
  int bound = 0;
  try {
    check_pytorch(kernel.operator_name);
    const CallFrame frame(kernel.operator_name, nparam, params, ndims, shapes, dtypes, stream,
                          extra);
    const KernelScope scope;
    if (!kernel.takes_frame) {
      bind_operands(kernel, frame, operands);
      bound = kernel.count;
    }
    kernel.invoke(kernel.function, frame, operands);
    check_outputs(kernel, operands);
    return static_cast<int>(Status::kOk);
  } catch (...) {
    return hand_over(record_failure(kernel.operator_name, operands, bound), kernel.error_mode);
  }
}

/// An exported function: called with the host's seven arguments.
template <class F>
class Kernel {
 public:
  constexpr Kernel(const char* operator_name, ErrorMode error_mode, F function)
      : operator_name_(operator_name), error_mode_(error_mode), function_(std::move(function)) {}

  int operator()(int nparam, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                 void* stream, void* extra) const {
    using Invoke = Invoker<F>;
    static constexpr auto kBindings = Invoke::bindings();
    const KernelInfo info{operator_name_,  error_mode_,         kBindings.data(), Invoke::kCount,
                          Invoke::kInputs, Invoke::kTakesFrame, &function_,       &Invoke::invoke};
    std::array<Operand, Invoke::kCount> operands;
    return run(info, operands.data(), nparam, params, ndims, shapes, dtypes, stream, extra);
  }

 private:
  const char* operator_name_;
  ErrorMode error_mode_;
  F function_;
};

template <class F>
constexpr Kernel<std::decay_t<F>> make_kernel(const char* operator_name, ErrorMode error_mode,
                                              F&& function) {
  return {operator_name, error_mode, std::forward<F>(function)};
}

}  // namespace detail
}  // namespace aten_bridge

//===----------------------------------------------------------------------===//
// The export macro
//===----------------------------------------------------------------------===//

/// ATEN_BRIDGE_EXPORT(Name, function): exports the C function `Name` that a host calls. `function`
/// is a function, a lambda or a function object:
///
///   parameter const at::Tensor&, at::Tensor     the next input
///   parameter const std::optional<at::Tensor>&  the next input, which may be None
///   parameter at::Tensor&                       the next output, to be written in place
///   result at::Tensor, std::tuple<at::Tensor…>  copied to the outputs
///
/// or takes a `const aten_bridge::CallFrame&` alone and does with the call what it likes; what such
/// a kernel does to its outputs is not checked.
///
/// At namespace scope, once for each `Name` of a library. A call that fails throws a
/// std::runtime_error, or, where ATEN_BRIDGE_ERRORS_RETURN is defined before the header is
/// included, prints the text and returns a `Status`; either way `aten_bridge_last_error()` has it.
#define ATEN_BRIDGE_EXPORT(Name, ...)                                                             \
  /* Bound before `Name` is declared, which may also be the name of the function. */              \
  static const auto aten_bridge_kernel_##Name =                                                   \
      ::aten_bridge::detail::make_kernel(#Name, ATEN_BRIDGE_ERROR_MODE, __VA_ARGS__);             \
  extern "C" ATEN_BRIDGE_PUBLIC int Name(int nparam, void** params, int* ndims, int64_t** shapes, \
                                         const char** dtypes, void* stream, void* extra) {        \
    return aten_bridge_kernel_##Name(nparam, params, ndims, shapes, dtypes, stream, extra);       \
  }                                                                                               \
  static_assert(true, "") /* takes the semicolon */

#endif  // ATEN_BRIDGE_CORE_ONLY

#pragma GCC visibility pop
#endif  // ATEN_BRIDGE_H_

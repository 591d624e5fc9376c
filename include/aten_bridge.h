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
// Top to bottom: the host's calling convention, errors, dtypes, operands and attributes (none of
// which needs PyTorch: define ATEN_BRIDGE_CORE_ONLY to get just these), then devices, views,
// checks, the caller's state, the binding of a function's signature, a call, shapes before a call,
// gradients, the hooks of MindSpore and of Python, and the export macros.
//
// A source that nvcc compiles, or one with ATEN_BRIDGE_CUDA defined, has kernels for CUDA, any
// other kernels for the CPU. One with ATEN_BRIDGE_MINDSPORE_PLUGIN defined has kernels for the
// operators of MindSpore itself, not for ops.Custom.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_H_
#define ATEN_BRIDGE_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <initializer_list>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#if defined(__CUDACC__) && !defined(ATEN_BRIDGE_CUDA)
#define ATEN_BRIDGE_CUDA
#endif

#ifndef ATEN_BRIDGE_CORE_ONLY
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <c10/core/AutogradState.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/ScalarTypeToTypeMeta.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <cxxabi.h>
#include <dlfcn.h>
#include <sys/syscall.h>
#include <torch/csrc/api/include/torch/version.h>
#include <unistd.h>
#ifdef ATEN_BRIDGE_CUDA
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>
#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 11
#include <ATen/core/CachingHostAllocator.h>
#endif
#endif

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <mutex>
#include <tuple>
#include <typeinfo>
#include <utility>
#endif

#define ATEN_BRIDGE_VERSION_MAJOR 0
#define ATEN_BRIDGE_VERSION_MINOR 1
#define ATEN_BRIDGE_VERSION_PATCH 0

/// Marks what a kernel library shows to its host: a C function written by hand needs it.
#define ATEN_BRIDGE_PUBLIC __attribute__((visibility("default"), used))

#ifndef ATEN_BRIDGE_CORE_ONLY
// In libtorch_cpu of every version; the wheels of PyTorch 2.1 and 2.6 lack the header for it.
namespace caffe2 {
TORCH_API const std::map<std::string, std::string>& GetBuildOptions();  // NOLINT(*-naming)
}
// The header for it costs each kernel a second of compile time.
namespace torch::autograd {
#if TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR < 6
using MaybeBool = c10::optional<bool>;
#else
using MaybeBool = std::optional<bool>;
#endif
TORCH_API std::vector<at::Tensor> grad(  // NOLINT(*-naming)
    const std::vector<at::Tensor>& outputs, const std::vector<at::Tensor>& inputs,
    const std::vector<at::Tensor>& grad_outputs, MaybeBool retain_graph, bool create_graph,
    bool allow_unused);
}  // namespace torch::autograd
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

namespace detail {

/// The texts, one after the other.
[[gnu::cold, gnu::noinline]] inline std::string join(
    std::initializer_list<std::string_view> texts) {
  std::string joined;
  for (const std::string_view text : texts) {
    joined += text;
  }
  return joined;
}

}  // namespace detail

/// Collects the faults of one call, so that all of them are reported at once, a line each.
class Report {
 public:
  /// `operator_name` opens every line; it must outlive the report.
  explicit Report(const char* operator_name) noexcept : operator_name_(operator_name) {}

  /// Adds "<operator name>: <fault>". The first fault gives the report its status.
  [[gnu::cold, gnu::noinline]] void add(Status status,
                                        std::initializer_list<std::string_view> fault) {
    if (ok()) {
      status_ = status;
    }
    text_ += detail::join({text_.empty() ? "" : "\n", operator_name_, ": ", detail::join(fault)});
  }

  bool ok() const noexcept { return status_ == Status::kOk; }

  /// Throws `Error` with all that was added.
  [[noreturn, gnu::cold, gnu::noinline]] void raise() const { throw Error(status_, text_); }

  /// The same if anything was added.
  void raise_if_failed() const {
    if (!ok()) {
      raise();
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

/// How error texts name an operand: "input 0", "output 1", "slot 2", "input 1 'weight'".
struct OperandName {
  Role role = Role::kSlot;
  int index = 0;
  const char* label = nullptr;  ///< the author's name for it, from the kernel's checks

  std::string text() const {
    const char* role_text =
        role == Role::kInput ? "input " : (role == Role::kOutput ? "output " : "slot ");
    const std::string number = std::to_string(index);
    return label == nullptr ? detail::join({role_text, number})
                            : detail::join({role_text, number, " '", label, "'"});
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
  return join({std::to_string(count), " ", noun, count == 1 ? "" : "s"});
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

/// The element types that hosts name and PyTorch has. (No std::vector of it below: g++ makes such
/// templates of enumerations visible, whatever the pragma above says.)
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

/// Null for a name that is not in the tables. Never guesses: `likely` is only looked at first.
inline const DTypeInfo* find_dtype(std::string_view name, DType likely = DType::kNone) noexcept {
  if (dtype_info(likely).name == name) {
    return &dtype_info(likely);
  }
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

/// One checked operand of a call, whatever the host: all that a view needs.
struct Slot {
  void* data = nullptr;            ///< may be null for None and where `numel` is 0
  const int64_t* sizes = nullptr;  ///< `ndim` sizes of 0 or more; may be null where `ndim` is 0
  int ndim = 0;
  int64_t numel = 0;  ///< number of elements; 0 for None
  DType dtype = DType::kNone;
  const int64_t* strides = nullptr;  ///< `ndim`, in elements; null: row-major, dense
  int64_t offset = 0;                ///< of the first element behind `data`, in elements

  bool is_none() const noexcept { return dtype == DType::kNone; }

  /// "float32 [2, 3]" or "None".
  std::string text() const {
    return is_none() ? "None"
                     : std::string(dtype_name(dtype)) + ' ' + detail::shape_text(sizes, ndim);
  }
};

/// How an input lies in memory; no strides: row-major, dense.
struct Layout {
  std::vector<int64_t> strides;
  std::size_t offset = 0;
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
    const std::uintptr_t count = (end - begin) / sizeof(std::size_t);
    if (nparam >= 0 && end >= begin && (end - begin) % sizeof(std::size_t) == 0 &&
        count <= static_cast<std::size_t>(nparam)) {
      size_ = nparam - static_cast<int>(count);
    }
    if (size_ < 0 || (nparam > 0 && params == nullptr) ||
        (size_ > 0 && (ndims == nullptr || shapes == nullptr || dtypes == nullptr))) {
      refuse_arguments(nparam);
    }
  }

  const char* operator_name() const noexcept { return operator_name_; }

  /// Number of inputs and outputs together.
  int size() const noexcept { return size_; }

  /// The host's stream: null on the CPU; on CUDA a cudaStream_t, of which null is a valid one.
  void* stream() const noexcept { return stream_; }

  /// Number of inputs where the host tells; else -1.
  int input_count() const noexcept { return input_count_; }

  /// For hosts that tell how many inputs there are, and how each lies in memory. `layouts` has an
  /// entry for each, and must outlive the frame.
  void set_inputs(int count, const Layout* layouts) noexcept {
    input_count_ = count;
    layouts_ = layouts;
  }

  /// The host's memory of the operand at `index`, below `size()`, and its sizes.
  void* data(int index) const noexcept { return params_[index]; }
  const int64_t* sizes(int index) const noexcept { return shapes_[index]; }

  /// The number of the CUDA device that the operands are on; -1 for the memory of the CPU.
  int cuda_device() const noexcept { return cuda_device_; }

  /// For who has looked at the operands: those of a kernel are looked at before it runs.
  void set_cuda_device(int device) noexcept { cuda_device_ = device; }

  int workspace_count() const noexcept {
    return static_cast<int>(workspaces_.end - workspaces_.begin);
  }

  /// Memory of workspace `index`, of `workspace_bytes(index)` bytes, with no initial value.
  void* workspace(int index) const noexcept { return params_[size_ + index]; }
  std::size_t workspace_bytes(int index) const noexcept { return workspaces_.begin[index]; }

  /// Whether the operand at `index`, below `size()`, is a row-major tensor of that dtype and those
  /// sizes. May say no where the host has another name for the dtype.
  [[nodiscard]] bool is_dense(int index, DType dtype, const int64_t* sizes,
                              int ndim) const noexcept {
    if (ndims_[index] != ndim || dtypes_[index] == nullptr ||
        std::strcmp(dtypes_[index], dtype_name(dtype).data()) != 0) {
      return false;
    }
    if (index < input_count_ && (!layouts_[index].strides.empty() || layouts_[index].offset != 0)) {
      return false;
    }
    for (int i = 0; i < ndim; ++i) {
      if (shapes_[index] == nullptr || shapes_[index][i] != sizes[i]) {
        return false;
      }
    }
    return true;
  }

  /// Reads the operand at `index`, below `size()`, into `slot`, and touches no data; faster where
  /// `slot` has the dtype already, as one that is used again. Returns false after adding what is
  /// wrong with the operand, under `name`, to `report`.
  [[nodiscard, gnu::noinline]] bool read(int index, const OperandName& name, Slot& slot,
                                         Report& report) const {
    const char* dtype = dtypes_[index];
    const detail::DTypeInfo* info =
        dtype == nullptr ? nullptr : detail::find_dtype(dtype, slot.dtype);
    slot.data = params_[index];
    slot.sizes = shapes_[index];
    slot.ndim = ndims_[index];
    slot.numel = 0;
    slot.dtype = info == nullptr ? DType::kNone : info->dtype;
    slot.strides = nullptr;
    slot.offset = 0;
    if (index < input_count_) {
      const Layout& layout = layouts_[index];
      slot.strides = layout.strides.empty() ? nullptr : layout.strides.data();
      slot.offset = static_cast<int64_t>(layout.offset);
    }

    const bool has_sizes =
        slot.ndim >= 0 && slot.ndim <= kMaxNdim && (slot.ndim == 0 || slot.sizes != nullptr);
    if (!has_sizes || info == nullptr) {
      add_form_fault(name, dtype, slot, report);
      return false;
    }
    if (slot.is_none()) {
      return true;
    }
    bool empty = false;
    int64_t bytes = info->itemsize;  // of the tensor with every size of 0 taken as 1, as strides do
    for (int i = 0; i < slot.ndim; ++i) {
      const int64_t size = slot.sizes[i];
      if (size < 0 || __builtin_mul_overflow(bytes, size == 0 ? 1 : size, &bytes)) {
        add_size_fault(name, slot, size, report);
        return false;
      }
      empty = empty || size == 0;
    }
    slot.numel = empty ? 0 : bytes / info->itemsize;
    if (slot.data == nullptr && !empty) {
      add_null_fault(name, slot, report);
      return false;
    }
    if (slot.numel == 1) {  // whatever its strides are
      slot.data = static_cast<char*>(slot.data) + slot.offset * info->itemsize;
      slot.strides = nullptr;
      slot.offset = 0;
    }
    return true;
  }

 private:
  /// Throws what is wrong with the call's arguments.
  [[noreturn, gnu::cold, gnu::noinline]] void refuse_arguments(int nparam) const {
    Report report(operator_name_);
    if (nparam < 0) {
      report.add(Status::kCount, {"expected 0 or more slots, got ", std::to_string(nparam)});
    } else if (size_ < 0) {
      report.add(Status::kCount, {"expected `extra` to list the workspaces of a call with ",
                                  detail::count_text(nparam, "slot"),
                                  ", got something else than MindSpore 2.10 passes"});
    } else {
      if (params_ == nullptr) {
        report.add(Status::kNullPointer,
                   {"expected pointers to the operands, got a null `params`"});
      }
      if (size_ > 0 && (ndims_ == nullptr || shapes_ == nullptr || dtypes_ == nullptr)) {
        report.add(Status::kNullPointer,
                   {"expected `ndims`, `shapes` and `dtypes`, got a null pointer"});
      }
    }
    report.raise();
  }

  [[gnu::cold, gnu::noinline]] static void add_form_fault(const OperandName& name,
                                                          const char* dtype, const Slot& slot,
                                                          Report& report) {
    if (slot.ndim < 0 || slot.ndim > kMaxNdim) {
      report.add(Status::kShape, {name.text(), ": expected a rank from 0 to ",
                                  std::to_string(kMaxNdim), ", got ", std::to_string(slot.ndim)});
    } else if (slot.ndim > 0 && slot.sizes == nullptr) {
      report.add(Status::kShape, {name.text(), ": expected ", detail::count_text(slot.ndim, "size"),
                                  ", got a null shape"});
    } else {
      report.add(Status::kDtype, {name.text(), dtype_fault(dtype, slot)});
    }
  }

  [[gnu::cold, gnu::noinline]] static void add_size_fault(const OperandName& name, const Slot& slot,
                                                          int64_t size, Report& report) {
    const char* const expected = size < 0 ? "sizes of 0 or more" : "fewer than 2^63 bytes";
    report.add(Status::kShape, {name.text(), ": expected ", expected, ", got ", slot.text()});
  }

  [[gnu::cold, gnu::noinline]] static void add_null_fault(const OperandName& name, const Slot& slot,
                                                          Report& report) {
    report.add(Status::kNullPointer,
               {name.text(), ": expected a pointer to ", detail::count_text(slot.numel, "element"),
                ", got null with ", slot.text()});
  }

  /// ": expected ..., got ..." for a dtype that is not in the tables.
  [[gnu::cold]] static std::string dtype_fault(const char* dtype, const Slot& slot) {
    const std::string shape = " with shape " + detail::shape_text(slot.sizes, slot.ndim);
    if (dtype == nullptr) {
      return detail::join({": expected a dtype, got null", shape});
    }
    if (std::strcmp(dtype, "string") == 0) {
      return ": expected a tensor, got \"string\", a str";
    }
    if (std::strcmp(dtype, "typetype") == 0) {
      return ": expected a tensor, got \"typetype\", a dtype";
    }
    return detail::join({": expected ", detail::dtype_names(), ", got \"", dtype, "\"", shape});
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
  int size_ = -1;  // until the constructor knows
  int cuda_device_ = -1;
  int input_count_ = -1;
  const Layout* layouts_ = nullptr;
};

}  // namespace aten_bridge

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

namespace aten_bridge {

/// Where the values of a kernel's attributes come from: a seam between the hosts and all that
/// stands below. Each `get` returns false, and leaves `value` alone, if the attribute is not there
/// or of another type: hosts convert nothing, and neither does the bridge.
class Attributes {
 public:
  virtual ~Attributes() = default;
  virtual bool has(const char* name) const = 0;
  virtual bool get(const char* name, bool& value) const = 0;
  virtual bool get(const char* name, int64_t& value) const = 0;
  virtual bool get(const char* name, double& value) const = 0;
  virtual bool get(const char* name, std::string& value) const = 0;
  virtual bool get(const char* name, std::vector<int64_t>& value) const = 0;
  virtual bool get(const char* name, std::vector<double>& value) const = 0;
  virtual bool get(const char* name, std::vector<std::vector<int64_t>>& value) const = 0;
  virtual bool get(const char* name, std::vector<std::vector<double>>& value) const = 0;
};

namespace detail {

// MindSpore is built with the old C++ ABI or with the new one, in which a std::string is another
// class, and a kernel with the one of its libtorch. The two classes below are what a std::string
// argument and result look like from either side.

// The header in front of the characters of an old std::string.
struct OldStringHeader {
  std::size_t length;
  std::size_t capacity;
  int owners;  // beyond the first; negative: must not be shared, a copy has its own characters
};

// The old ABI's empty strings all point behind this; it is not theirs to free.
extern "C" __attribute__((weak, visibility("default"))) char
    _ZNSs4_Rep20_S_empty_rep_storageE[];  // NOLINT: the name is libstdc++'s

/// An argument: the address of it is that of a valid std::string of both ABIs, which differ in
/// what they read of it.
class HostString {
 public:
  explicit HostString(std::string_view text)
      : length_(text.size()),
        capacity_(text.size()),
        block_(sizeof(OldStringHeader) / sizeof(std::size_t) + text.size() / sizeof(std::size_t) +
               1) {
    const OldStringHeader header{length_, capacity_, -1};
    std::memcpy(block_.data(), &header, sizeof(header));
    char* chars = reinterpret_cast<char*>(block_.data()) + sizeof(header);
    std::memcpy(chars, text.data(), text.size());
    chars_ = chars;
  }
  HostString(const HostString&) = delete;
  HostString& operator=(const HostString&) = delete;

  /// The characters, which a null ends.
  const char* c_str() const noexcept { return chars_; }

 private:
  const char* chars_;     // old and new
  std::size_t length_;    // new
  std::size_t capacity_;  // new
  [[maybe_unused]] std::size_t unused_ = 0;
  std::vector<std::size_t> block_;
};

/// A result. A function of the old ABI writes one word of it, one of the new ABI two or more.
class HostStringResult {
 public:
  HostStringResult(const HostStringResult&) = delete;  // hence returned in memory, as strings are
  HostStringResult& operator=(const HostStringResult&) = delete;

  bool is_new() const { return length_ != kUntouched; }
  std::string text() const { return {chars_, is_new() ? length_ : header()->length}; }

  void free() {
    if (is_new()) {
      if (chars_ != reinterpret_cast<char*>(local_)) {
        ::operator delete(chars_);
      }
    } else if (reinterpret_cast<char*>(header()) != _ZNSs4_Rep20_S_empty_rep_storageE &&
               __atomic_fetch_add(&header()->owners, -1, __ATOMIC_ACQ_REL) <= 0) {
      ::operator delete(header());
    }
  }

  static constexpr std::size_t kUntouched = ~std::size_t{0};

 private:
  OldStringHeader* header() const { return reinterpret_cast<OldStringHeader*>(chars_) - 1; }

  char* chars_;
  std::size_t length_;
  std::size_t local_[2];  // a short new string's characters, or the capacity of a long one
};

/// The class of MindSpore's `extra`, AotExtra (2.10): the order of its virtual functions and of
/// its members. A get throws a std::exception if the attribute is not there or of another type.
/// Visible, or whole-program optimisation would conclude that nobody implements it.
struct __attribute__((visibility("default"))) AotExtra {
  virtual ~AotExtra() = default;
  virtual bool has(HostString& name) = 0;
  virtual bool get_bool(HostString& name) = 0;
  virtual int64_t get_int(HostString& name) = 0;
  virtual float get_float(HostString& name) = 0;
  virtual HostStringResult get_string(HostString& name) = 0;
  virtual std::vector<int64_t> get_ints(HostString& name) = 0;
  virtual std::vector<float> get_floats(HostString& name) = 0;
  virtual std::vector<std::vector<int64_t>> get_int_lists(HostString& name) = 0;
  virtual std::vector<std::vector<float>> get_float_lists(HostString& name) = 0;

  std::vector<std::size_t> workspaces;  // bytes of each; the host allocates them for each call
  void* kernel_data = nullptr;          // the host deletes it, see `Instance`
};

/// What MindSpore's op plugins are told of the shape of a result that is known after the run only.
struct PluginShapes {
  std::vector<std::vector<int64_t>> sizes;
  std::vector<bool> is_known;
};

/// The class of the last argument of a kernel of MindSpore's op plugin, KernelInputInfo (2.10), as
/// `AotExtra` is that of the other door.
struct __attribute__((visibility("default"))) PluginInputs {
  virtual ~PluginInputs() = default;
  virtual bool is_scalar(std::size_t index) = 0;  // a value of Python's, not a tensor
  virtual std::size_t count() = 0;
  virtual bool get_bool(std::size_t index) = 0;
  virtual int64_t get_int(std::size_t index) = 0;
  virtual double get_float(std::size_t index) = 0;
  virtual HostStringResult get_string(std::size_t index) = 0;
  virtual std::vector<int64_t> get_ints(std::size_t index) = 0;
  virtual std::vector<double> get_floats(std::size_t index) = 0;
  virtual std::vector<std::vector<int64_t>> get_int_lists(std::size_t index) = 0;
  virtual std::vector<std::vector<double>> get_float_lists(std::size_t index) = 0;
  virtual int type_id(std::size_t index) = 0;
  virtual std::optional<Layout> layout(std::size_t index) = 0;  // of none: row-major, dense
  virtual PluginShapes* shapes() = 0;
  virtual void set_shapes(std::unique_ptr<PluginShapes> shapes) = 0;

  std::vector<std::size_t> workspaces;
};

/// The double that the shortest decimal for `value` names (of subnormals one of 6 digits): 0.01 for
/// 0.01f, not 0.00999999977648. Never beyond the largest number of a dtype that `value` is.
inline double widen(float value) {
  // The shortest decimals of the largest bfloat16 and float32 lie beyond them.
  if (std::fabs(value) >= 0x1.fep127F) {
    return value;
  }
  // No two decimals of up to 6 digits are one float. What people write is found here, in 3 ns
  // instead of 140 by text; quotients of such whole numbers are what strtod() gives.
  for (const double scale : {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6}) {
    const double whole = std::nearbyint(value * scale);
    if (std::fabs(whole) < 1e6 && static_cast<float>(whole / scale) == value) {
      return whole / scale;
    }
  }
  char text[32];
  for (int digits = 6;; ++digits) {  // 9 name every float
    std::snprintf(text, sizeof(text), "%.*g", digits, static_cast<double>(value));
    if (digits == 9 || std::strtof(text, nullptr) == value) {
      return std::strtod(text, nullptr);
    }
  }
}

inline std::vector<double> widen(const std::vector<float>& values) {
  std::vector<double> wide;
  wide.reserve(values.size());
  for (const float value : values) {
    wide.push_back(widen(value));
  }
  return wide;
}

inline std::vector<std::vector<double>> widen(const std::vector<std::vector<float>>& lists) {
  std::vector<std::vector<double>> wide;
  wide.reserve(lists.size());
  for (const std::vector<float>& list : lists) {
    wide.push_back(widen(list));
  }
  return wide;
}

/// The attributes behind MindSpore's `extra`; none behind null (hosts before about 1.9).
class HostAttributes final : public Attributes {
 public:
  explicit HostAttributes(void* extra) : extra_(static_cast<AotExtra*>(extra)) {}

  bool has(const char* name) const override {
    bool found = false;
    return read(name, found, &AotExtra::has) && found;
  }
  bool get(const char* name, bool& value) const override {
    return read(name, value, &AotExtra::get_bool);
  }
  bool get(const char* name, int64_t& value) const override {
    return read(name, value, &AotExtra::get_int);
  }
  bool get(const char* name, double& value) const override {
    return read(name, value, &AotExtra::get_float);
  }
  bool get(const char* name, std::string& value) const override {
    return read(name, value, &AotExtra::get_string);
  }
  bool get(const char* name, std::vector<int64_t>& value) const override {
    return read(name, value, &AotExtra::get_ints);
  }
  bool get(const char* name, std::vector<double>& value) const override {
    return read(name, value, &AotExtra::get_floats);
  }
  bool get(const char* name, std::vector<std::vector<int64_t>>& value) const override {
    return read(name, value, &AotExtra::get_int_lists);
  }
  bool get(const char* name, std::vector<std::vector<double>>& value) const override {
    return read(name, value, &AotExtra::get_float_lists);
  }

 private:
  // no_sanitize: the dynamic type of `extra` is a class of the host's, unknown here.
  template <class T, class R>
  [[gnu::cold]] __attribute__((no_sanitize("vptr"))) bool read(
      const char* name, T& value, R (AotExtra::*get)(HostString&)) const {
    if (extra_ == nullptr) {
      return false;
    }
    HostString host_name(name);
    try {
      if constexpr (std::is_same_v<R, HostStringResult>) {
        alignas(HostStringResult) unsigned char memory[sizeof(HostStringResult)];
        std::memset(memory, 0xff, sizeof(memory));  // kUntouched
        // What memory held before an object's birth does not count, so that the compiler would
        // drop the memset.
        asm volatile("" : : "r"(memory) : "memory");
        auto* result = new (memory) HostStringResult((extra_->*get)(host_name));
        value = result->text();
        result->free();
      } else if constexpr (std::is_same_v<R, T>) {
        value = (extra_->*get)(host_name);
      } else {
        value = widen((extra_->*get)(host_name));
      }
      return true;
    } catch (const std::exception&) {
      return false;
    }
  }

  AotExtra* extra_;
};

/// What an attribute is, for error texts: "the int 1", "the list of floats [0.5, 1]".
[[gnu::cold]] inline std::string attribute_text(const Attributes& attributes, const char* name) {
  const auto number = [](auto value) {
    char text[32];
    std::snprintf(text, sizeof(text), "%.9g", static_cast<double>(value));
    return std::is_integral_v<decltype(value)> ? std::to_string(static_cast<int64_t>(value))
                                               : std::string(text);
  };
  const auto list = [](const auto& values, const auto& element) {
    std::string text = "[";
    for (const auto& value : values) {
      text.append(text.size() == 1 ? "" : ", ").append(element(value));
    }
    return text + "]";
  };
  const auto row = [&](const auto& values) { return list(values, number); };
  bool flag = false;
  int64_t integer = 0;
  double real = 0;
  std::string string;
  std::vector<int64_t> integers;
  std::vector<double> reals;
  std::vector<std::vector<int64_t>> integer_lists;
  std::vector<std::vector<double>> real_lists;
  if (attributes.get(name, flag)) {
    return flag ? "the bool True" : "the bool False";
  }
  if (attributes.get(name, integer)) {
    return "the int " + number(integer);
  }
  if (attributes.get(name, real)) {
    return "the float " + number(real);
  }
  if (attributes.get(name, string)) {
    return join({"the str \"", string, "\""});
  }
  if (attributes.get(name, integers)) {
    return "the list of ints " + row(integers);
  }
  if (attributes.get(name, reals)) {
    return "the list of floats " + row(reals);
  }
  if (attributes.get(name, integer_lists)) {
    return "the list of lists of ints " + list(integer_lists, row);
  }
  if (attributes.get(name, real_lists)) {
    return "the list of lists of floats " + list(real_lists, row);
  }
  return "something that is none of bool, int, float, str, and lists of ints or of floats";
}

}  // namespace detail
}  // namespace aten_bridge

#ifndef ATEN_BRIDGE_CORE_ONLY

//===----------------------------------------------------------------------===//
// Devices
//===----------------------------------------------------------------------===//
//
// A kernel is for the CPU or for CUDA, as its source was compiled; memory of the other is an error.
// For each there is a class that stands for one call on it. Both have the same members, which are
// called in this order:
//
//   T call(frame, records)  whether the device can be used; autograd needs more than others
//   call.locate(...)        whether the kernel can use an operand's memory
//   call.fetch(...)         the same of a number, which moves to memory of the CPU
//   call.enter()            device and host's stream become PyTorch's current ones
//   call.allocator()        for the memory of the call
//   call.finish()           whether the body left an error behind
//
// T::around_state(frame, is_made) is called before a kernel's state is made, and after it.
// The destructor makes current what was current before. T::leftover() is for after a failure.

namespace aten_bridge::detail {

/// cuPointerGetAttributes of the CUDA driver, which says where memory lies.
using QueryPointer = int (*)(unsigned int count, const int* attributes, void** values,
                             std::uintptr_t pointer);

/// Null in a process that has no driver loaded, and so no memory of CUDA either.
[[gnu::cold]] inline QueryPointer find_cuda_driver() noexcept {
  void* driver = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY);
  return driver == nullptr
             ? nullptr
             : reinterpret_cast<QueryPointer>(dlsym(driver, "cuPointerGetAttributes"));
}

/// The number of the device whose memory that is, and which alone can use it; else -1.
inline int find_cuda_device(QueryPointer query, const void* pointer) noexcept {
  constexpr int kAttributes[] = {2, 8, 9};  // memory type, managed, device
  constexpr unsigned int kDeviceMemory = 2;
  unsigned int type = 0;
  unsigned int managed = 0;  // memory of both; a bool of the driver's is 4 bytes or fewer
  int device = -1;
  void* values[] = {&type, &managed, &device};
  const int failed = query(3, kAttributes, values, reinterpret_cast<std::uintptr_t>(pointer));
  return failed == 0 && type == kDeviceMemory && managed == 0 ? device : -1;
}

/// A call on the CPU.
class CpuCall {
 public:
  static constexpr at::DeviceType kType = at::kCPU;

  explicit CpuCall(const CallFrame& frame, bool /*records*/ = false) {
    static const QueryPointer query = find_cuda_driver();
    query_ = query == nullptr && frame.stream() != nullptr ? find_cuda_driver() : query;
  }

  /// False, with the report, if the kernel cannot use the operand's memory.
  bool locate(const Slot& slot, const OperandName& name, Report& report) const {
    return query_ == nullptr || slot.data == nullptr || slot.numel == 0 || look(slot, name, report);
  }

  bool fetch(const Slot& slot, void* /*memory*/, const OperandName& name, Report& report) const {
    return locate(slot, name, report);
  }

  /// Whether there may be other memory than this one's.
  bool is_one_of_several() const { return query_ != nullptr; }

  void enter() const {}
  static c10::Device device() { return at::kCPU; }
  static c10::Allocator* allocator() { return c10::GetCPUAllocator(); }
  static bool reaches(const void* /*memory*/) { return true; }
  static bool is_of_host(const void* /*memory*/) { return true; }
  void finish() const {}
  static void around_state(const CallFrame& /*frame*/, bool /*is_made*/) {}
  static std::string leftover() { return {}; }

 private:
  [[gnu::cold]] bool look(const Slot& slot, const OperandName& name, Report& report) const {
    const int device = find_cuda_device(query_, slot.data);
    if (device >= 0) {
      report.add(Status::kDevice,
                 {name.text(), ": expected memory of the CPU, got memory of cuda:",
                  std::to_string(device), " with ", slot.text(),
                  "; this kernel was built for the CPU: in a program on the GPU, say ",
                  "set_device(\"CPU\") of the operator, or build the kernel for CUDA"});
    }
    return device < 0;
  }

  QueryPointer query_;
};

#ifdef ATEN_BRIDGE_CUDA

/// "cudaErrorInvalidValue (invalid argument)".
[[gnu::cold]] inline std::string cuda_error_text(cudaError_t error) {
  return join({cudaGetErrorName(error), " (", cudaGetErrorString(error), ")"});
}

[[gnu::cold]] inline std::string find_cuda_fault() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaSuccess && count > 0) {
    return {};
  }
  return join(
      {"expected a CUDA device, got ", error == cudaSuccess ? "none" : cuda_error_text(error),
       "; this kernel was built for CUDA: run the program where there is a GPU, or build the "
       "kernel for the CPU"});
}

/// Why CUDA cannot be used here; empty if it can.
inline const std::string& cuda_fault() {
  static const std::string fault = find_cuda_fault();
  return fault;
}

using CaptureId = unsigned long long;  // NOLINT(google-runtime-int): CUDA's type

/// Of the capture that the stream is part of.
inline std::optional<CaptureId> find_capture(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  CaptureId capture = 0;
  if (cudaStreamGetCaptureInfo(stream, &status, &capture) != cudaSuccess) {
    cudaGetLastError();
    return std::nullopt;
  }
  return status == cudaStreamCaptureStatusActive ? std::optional(capture) : std::nullopt;
}

/// While a stream is captured, what bodies allocate comes from memory that nobody gets afterwards,
/// since each replay of the graph writes to it: one pool of this library for all streams of a
/// capture on a device, and for all threads that call kernels then. Does nothing with PyTorch
/// before 2.4; memory of the CPU that is pinned is among it from 2.11 on.
class CapturePool {
 public:
  CapturePool(int device, CaptureId capture) : device_(device), capture_(capture) {
    const std::lock_guard<std::mutex> lock(mutex());
    if (users()[{device_, capture_}] == 0) {
      begin();
    }
    ++users()[{device_, capture_}];
  }

  ~CapturePool() {
    const std::lock_guard<std::mutex> lock(mutex());
    if (--users()[{device_, capture_}] == 0) {
      users().erase({device_, capture_});
      end();
    }
  }

  CapturePool(const CapturePool&) = delete;
  CapturePool& operator=(const CapturePool&) = delete;

 private:
  static std::mutex& mutex() {
    static std::mutex mutex;
    return mutex;
  }
  /// Calls that are under way, by device and capture.
  static std::map<std::pair<int, CaptureId>, int>& users() {
    static std::map<std::pair<int, CaptureId>, int> users;
    return users;
  }

  /// Nobody else's: PyTorch's own have a 0 somewhere, those of other libraries another address.
  /// PyTorch (2.11) hashes the first number alone, and its tables double with each id that has the
  /// same one, so the capture is in it too.
  std::pair<CaptureId, CaptureId> id() const {
    constexpr CaptureId kSpread = 0x9e3779b97f4a7c15;
    return {reinterpret_cast<std::uintptr_t>(&users()) + static_cast<CaptureId>(device_) +
                kSpread * capture_,
            capture_};
  }

  void begin() const {
#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 4
    c10::cuda::CUDACachingAllocator::beginAllocateToPool(
        static_cast<c10::DeviceIndex>(device_), id(),
        [capture = capture_](cudaStream_t stream) { return find_capture(stream) == capture; });
#endif
#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 11
    try {
      at::getHostAllocator(at::kCUDA)->begin_allocate_to_pool(
          id(), [capture = capture_](c10::Stream stream) {
            return find_capture(c10::cuda::CUDAStream(stream)) == capture;
          });
    } catch (...) {
      end_on_device();
      throw;
    }
#endif
  }

  void end() const noexcept {
#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 11
    try {
      at::getHostAllocator(at::kCUDA)->end_allocate_to_pool(id());
    } catch (const std::exception&) {  // of an allocator that has no pools
    }
#endif
    end_on_device();
  }

  void end_on_device() const noexcept {
#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 4
    try {
      c10::cuda::CUDACachingAllocator::endAllocateToPool(static_cast<c10::DeviceIndex>(device_),
                                                         id());
    } catch (const std::exception&) {  // likewise
    }
#endif
  }

  int device_;
  CaptureId capture_;
};

/// A call on CUDA. The host's stream is the current one during the body, so that what the body
/// launches runs behind what the host has launched, and in front of what it will: nobody waits.
/// (MindSpore's stream is a non-blocking one, which the default stream does not wait for.)
class CudaCall {
 public:
  static constexpr at::DeviceType kType = at::kCUDA;

  /// Throws `Error` if there is no CUDA device, or if an error is pending from before the call: it
  /// would be taken for one of this kernel.
  explicit CudaCall(CallFrame& frame, bool records = false)
      : frame_(frame), stream_(static_cast<cudaStream_t>(frame.stream())) {
    if (!cuda_fault().empty()) {
      throw Error(Status::kDevice, join({frame.operator_name(), ": ", cuda_fault()}));
    }
    refuse_earlier(take_error());
    if (records && stream_ == cudaStreamPerThread) {
      throw Error(Status::kCuda,
                  std::string(frame.operator_name()) +
                      ": expected a stream that is the same in all threads, got "
                      "cudaStreamPerThread; PyTorch's autograd works in threads of its own");
    }
  }

  ~CudaCall() {
    pool_.reset();
    scope_.reset();
    try {
      // The guard leaves another device current where this one has no context yet.
      if (previous_ >= 0 && c10::cuda::SetDevice(static_cast<c10::DeviceIndex>(previous_)) != 0) {
        cudaGetLastError();
      }
    } catch (const std::exception&) {  // it throws where CUDA cannot say which one is current
      cudaGetLastError();
    }
  }

  CudaCall(const CudaCall&) = delete;
  CudaCall& operator=(const CudaCall&) = delete;

  bool is_one_of_several() const { return true; }

  bool locate(const Slot& slot, const OperandName& name, Report& report) {
    if (slot.data == nullptr || slot.numel == 0) {
      return true;
    }
    const int found = find_device(slot.data);
    if (found == kHostMemory) {
      report.add(Status::kDevice,
                 {name.text(), ": expected memory of a CUDA device, got memory of the CPU with ",
                  slot.text(),
                  "; this kernel was built for CUDA: run the operator on the GPU, or build the ",
                  "kernel for the CPU"});
      return false;
    }
    if (found == kManagedMemory || found == device_) {
      return true;
    }
    if (device_ >= 0) {
      report.add(
          Status::kDevice,
          {name.text(), ": expected memory of cuda:", std::to_string(device_), " as ",
           first_.text(), ", got memory of cuda:", std::to_string(found), " with ", slot.text()});
      return false;
    }
    device_ = found;
    first_ = name;
    return true;
  }

  /// Waits for the stream, unless the host has the number in memory of the CPU.
  bool fetch(Slot& slot, void* memory, const OperandName& name, Report& report) const {
    if (slot.data == nullptr || slot.numel != 1) {
      return true;  // the fault is another
    }
    const int found = find_device(slot.data);
    const std::size_t bytes = dtype_itemsize(slot.dtype);
    if (found == kHostMemory) {
      std::memcpy(memory, slot.data, bytes);
    } else if (is_captured(stream_)) {
      report.add(Status::kCuda,
                 {name.text(), ": expected a number that can be read while the CUDA stream is ",
                  "captured, got one in memory of the GPU, which may be written ",
                  "when the graph is replayed only; make it an attribute"});
      return false;
    } else {
      c10::cuda::OptionalCUDAGuard guard;
      if (found != kManagedMemory) {
        guard.set_device(to_device(found));
      }
      // Nothing on the stream is of this call yet.
      refuse_earlier(cudaMemcpyAsync(memory, slot.data, bytes, cudaMemcpyDefault, stream_));
      refuse_earlier(cudaStreamSynchronize(stream_));
    }
    slot.data = memory;
    return true;
  }

  void enter() {
    int current = -1;
    if (cudaGetDevice(&current) != cudaSuccess) {
      refuse_earlier(cudaGetLastError());
    }
    previous_ = current;
    device_ = device_ < 0 ? current : device_;  // nothing says which: the current one
    // Starts CUDA in PyTorch, which no other function of all its versions does.
    static const bool started = at::empty({0}, at::TensorOptions(to_device(device_))).defined();
    (void)started;
    frame_.set_cuda_device(device_);
    const auto index = static_cast<c10::DeviceIndex>(device_);
    scope_.emplace(stream_ == nullptr || stream_ == cudaStreamLegacy
                       ? c10::cuda::getDefaultCUDAStream(index)
                       : c10::cuda::getStreamFromExternal(stream_, index));
    if (stream_ != nullptr && stream_ != cudaStreamLegacy) {
      if (const std::optional<CaptureId> capture = find_capture(stream_)) {
        pool_.emplace(device_, *capture);
      }
    }
  }

  c10::Device device() const { return to_device(device_); }
  static c10::Allocator* allocator() { return c10::cuda::CUDACachingAllocator::get(); }
  bool reaches(const void* memory) const { return find_device(memory) == device_; }

  /// Whether it is memory of the CPU, and of nothing else.
  static bool is_of_host(const void* memory) { return find_device(memory) == kHostMemory; }

  void finish() const {
    const cudaError_t error = take_error();
    if (error != cudaSuccess) {
      throw Error(Status::kCuda, join({frame_.operator_name(),
                                       ": a launch, or another CUDA call, of this kernel failed: ",
                                       cuda_error_text(error)}));
    }
  }

  /// Throws `Error` while the stream is captured: the state would be made when the graph is
  /// replayed. Waits for a state that is made, which calls on other streams may use.
  [[gnu::cold]] static void around_state(const CallFrame& frame, bool is_made) {
    const auto stream = static_cast<cudaStream_t>(frame.stream());
    if (is_made) {
      cudaStreamSynchronize(stream);  // finish() asks how it went
    } else if (is_captured(stream)) {
      throw Error(
          Status::kCuda,
          join({frame.operator_name(), ": expected a first call of this operator while the ",
                "CUDA stream is not captured, since its state is made in it; call it once ",
                "before the capture"}));
    }
  }

  /// Until PyTorch's current stream has done its work.
  static void wait(c10::Device device) {
    c10::cuda::getCurrentCUDAStream(device.index()).synchronize();
  }

  /// What CUDA reports beside the failure of a call, so that the next call does not meet it.
  [[gnu::cold]] static std::string leftover() {
    const cudaError_t error = cuda_fault().empty() ? take_error() : cudaSuccess;
    return error == cudaSuccess ? std::string() : "; CUDA reports " + cuda_error_text(error);
  }

 private:
  static constexpr int kHostMemory = -1;
  static constexpr int kManagedMemory = -2;  // of the CPU and of all devices

  static c10::Device to_device(int index) {
    return {at::kCUDA, static_cast<c10::DeviceIndex>(index)};
  }

  /// The number of the device whose memory that is, or one of the constants.
  static int find_device(const void* memory) {
    cudaPointerAttributes attributes = {};
    if (cudaPointerGetAttributes(&attributes, memory) != cudaSuccess) {
      cudaGetLastError();  // CUDA before 11: memory that it does not know
      return kHostMemory;
    }
    return attributes.type == cudaMemoryTypeDevice    ? attributes.device
           : attributes.type == cudaMemoryTypeManaged ? kManagedMemory
                                                      : kHostMemory;
  }

  static bool is_captured(cudaStream_t stream) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    const cudaError_t error = cudaStreamIsCapturing(stream, &status);
    cudaGetLastError();  // of the default stream, while a stream is captured that it waits for
    return error != cudaSuccess || status != cudaStreamCaptureStatusNone;
  }

  /// The last error of this thread, which is forgotten. Who asks whether an event is over and is
  /// told "not ready" has one too, and has made no mistake.
  static cudaError_t take_error() {
    const cudaError_t error = cudaGetLastError();
    return error == cudaErrorNotReady ? cudaSuccess : error;
  }

  void refuse_earlier(cudaError_t error) const {
    if (error != cudaSuccess) {
      cudaGetLastError();
      throw Error(Status::kCuda,
                  join({frame_.operator_name(),
                        ": not run: CUDA reports an error of an earlier operator or launch, ",
                        cuda_error_text(error), "; CUDA_LAUNCH_BLOCKING=1 shows which"}));
    }
  }

  CallFrame& frame_;
  cudaStream_t stream_;
  int device_ = -1;
  int previous_ = -1;
  OperandName first_;  // of the operands, that is on the device
  std::optional<CapturePool> pool_;
  std::optional<c10::cuda::CUDAStreamGuard> scope_;
};

#define ATEN_BRIDGE_CALL ::aten_bridge::detail::CudaCall
#else
#define ATEN_BRIDGE_CALL ::aten_bridge::detail::CpuCall
#endif

/// Locates the slots at `indices`, or all where it is null, for who takes a call as it comes. What
/// else may be wrong with them is another's business.
template <class DeviceCall>
[[gnu::cold, gnu::noinline]] void locate_slots(const CallFrame& frame, DeviceCall& device,
                                               const std::vector<int>* indices) {
  if (!device.is_one_of_several()) {
    return;
  }
  Report report(frame.operator_name());
  const std::size_t count =
      indices == nullptr ? static_cast<std::size_t>(frame.size()) : indices->size();
  for (std::size_t i = 0; i < count; ++i) {
    const int index = indices == nullptr ? static_cast<int>(i) : (*indices)[i];
    const OperandName name{Role::kSlot, index};
    Report ignored(frame.operator_name());
    Slot slot;
    if (index >= 0 && index < frame.size() && frame.read(index, name, slot, ignored)) {
      device.locate(slot, name, report);
    }
  }
  report.raise_if_failed();
}

}  // namespace aten_bridge::detail

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

/// A row-major tensor over memory that it does not own. With an allocator, resizing it beyond
/// `bytes` gives it memory of its own. Not at::from_blob, whose storage cannot be resized.
inline at::Tensor make_tensor(void* data, c10::Device device, std::size_t bytes,
                              c10::Allocator* allocator, at::ScalarType type,
                              at::IntArrayRef sizes) {
  const auto key = device.is_cpu()    ? c10::DispatchKey::CPU
                   : device.is_cuda() ? c10::DispatchKey::CUDA
                                      : c10::DispatchKey::Meta;
  c10::Storage storage(c10::Storage::use_byte_size_t(), bytes, c10::DataPtr(data, device),
                       allocator, /*resizable=*/allocator != nullptr);
  at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(key), c10::scalarTypeToTypeMeta(type));
  tensor.unsafeGetTensorImpl()->set_sizes_contiguous(sizes);
  return tensor;
}

/// The bytes from the operand's data to the end of its last element.
inline std::size_t slot_bytes(const Slot& slot) {
  int64_t elements = slot.numel;
  if (slot.strides != nullptr && slot.numel > 0) {
    elements = slot.offset + 1;
    for (int i = 0; i < slot.ndim; ++i) {
      elements += (slot.sizes[i] - 1) * slot.strides[i];
    }
  }
  return static_cast<std::size_t>(elements) * dtype_itemsize(slot.dtype);
}

/// A tensor over the operand's memory, undefined for None. Adds to `report` a dtype that this
/// libtorch does not have.
///
/// Without an allocator, ATen refuses to resize the tensor beyond the host's buffer. An output of
/// ATEN_BRIDGE_EXPORT has one and so moves to memory of its own: it is found out after the body, by
/// a check that can name the sizes.
template <bool kMayBeStrided>
[[gnu::noinline]] at::Tensor make_view(const Slot& slot, const OperandName& name,
                                       c10::Device device, c10::Allocator* allocator,
                                       Report& report) {
  if (slot.is_none()) {
    return {};
  }
  const at::ScalarType type = scalar_type(slot.dtype);
  if (type == at::ScalarType::Undefined) {
    report.add(Status::kDtype,
               {name.text(), ": expected a dtype of this version of PyTorch, got ", slot.text()});
    return {};
  }
  const at::IntArrayRef sizes(slot.sizes, static_cast<std::size_t>(slot.ndim));
  at::Tensor view = make_tensor(slot.data, device, slot_bytes(slot), allocator, type, sizes);
  if constexpr (kMayBeStrided) {
    if (slot.strides != nullptr) {
      view.unsafeGetTensorImpl()->set_sizes_and_strides(
          sizes, at::IntArrayRef(slot.strides, sizes.size()), slot.offset);
    }
  }
  return view;
}

}  // namespace detail

/// Views of the operands at `indices`, in that order. They are ordinary contiguous tensors over
/// the host's memory, undefined where the host passed None; what is written to them the host
/// sees. Throws one `Error` for all operands that are wrong, named "slot <index>".
inline std::vector<at::Tensor> tensors(const CallFrame& frame, c10::ArrayRef<int> indices) {
  std::vector<at::Tensor> views;
  views.reserve(indices.size());
  const c10::Device device =
      frame.cuda_device() < 0
          ? c10::Device(at::kCPU)
          : c10::Device(at::kCUDA, static_cast<c10::DeviceIndex>(frame.cuda_device()));
  Report report(frame.operator_name());
  for (const int index : indices) {
    const OperandName name{Role::kSlot, index};
    if (index < 0 || index >= frame.size()) {
      report.add(Status::kCount, {name.text(), ": expected one of the call's ",
                                  detail::count_text(frame.size(), "slot")});
      continue;
    }
    Slot slot;
    if (frame.read(index, name, slot, report)) {
      views.push_back(detail::make_view<true>(slot, name, device, /*allocator=*/nullptr, report));
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
// Checks
//===----------------------------------------------------------------------===//
//
// What a kernel accepts, stated behind its function and checked before the body:
//
//   using namespace aten_bridge;
//   ATEN_BRIDGE_EXPORT(Prelu, prelu, input("x").dtype(kFloatingPoint).sizes("N", "C", "..."),
//                      input("weight").sizes("C"));

/// A set of dtypes: one, or several joined by `|`.
class DTypeSet {
 public:
  constexpr DTypeSet() = default;
  /// A dtype that no host has is in no tensor either.
  constexpr DTypeSet(at::ScalarType type) : bits_(kNobody) {  // NOLINT(*-explicit-*)
    for (std::size_t i = 1; i < std::size(detail::kScalarTypes); ++i) {
      if (detail::kScalarTypes[i] == type) {
        bits_ = 1U << i;
      }
    }
  }
  constexpr DTypeSet operator|(DTypeSet other) const {
    other.bits_ |= bits_;
    return other;
  }
  /// Whether there is no condition.
  constexpr bool empty() const { return bits_ == 0; }
  constexpr bool contains(DType dtype) const {
    return (bits_ >> static_cast<unsigned int>(dtype) & 1U) != 0;
  }

  /// One of them, float32 where it is possible; kNone if there is none.
  constexpr DType any() const {
    if (contains(DType::kFloat32)) {
      return DType::kFloat32;
    }
    std::size_t first = 1;
    while (first < std::size(detail::kScalarTypes) && !contains(static_cast<DType>(first))) {
      ++first;
    }
    return first < std::size(detail::kScalarTypes) ? static_cast<DType>(first) : DType::kNone;
  }

  /// "float32|float64".
  std::string text() const {
    std::string text;
    if (bits_ == kNobody) {
      return "a dtype that the host does not have";
    }
    for (const detail::DTypeInfo& info : detail::kDTypes) {
      if (contains(info.dtype)) {
        text.append(text.empty() ? "" : "|").append(info.name);
      }
    }
    return text;
  }

 private:
  static constexpr std::uint32_t kNobody = 1U << static_cast<unsigned int>(DType::kNone);

  std::uint32_t bits_ = 0;  // by `DType`
};

/// float16, bfloat16, float32, float64.
inline constexpr DTypeSet kFloatingPoint =
    DTypeSet(at::kHalf) | at::kBFloat16 | at::kFloat | at::kDouble;
/// int8 to int64 and uint8; not bool.
inline constexpr DTypeSet kIntegral =
    DTypeSet(at::kByte) | at::kChar | at::kShort | at::kInt | at::kLong;
/// complex64, complex128.
inline constexpr DTypeSet kComplex = DTypeSet(at::kComplexFloat) | at::kComplexDouble;

/// One size in `CheckOption::sizes`: a number; -1, for any size; a name, which stands for the same
/// size wherever a kernel's checks have it; or once "...", for any number of any sizes.
struct SizeCheck {
  const char* name = nullptr;  // null: a number
  int64_t number = 0;

  constexpr SizeCheck() = default;
  constexpr SizeCheck(const char* name) : name(name) {}    // NOLINT(*-explicit-*)
  constexpr SizeCheck(int64_t number) : number(number) {}  // NOLINT(*-explicit-*)
  constexpr SizeCheck(int number) : number(number) {}      // NOLINT(*-explicit-*)

  constexpr bool is_rest() const { return name != nullptr && std::string_view(name) == "..."; }
  std::string text() const { return name != nullptr ? name : std::to_string(number); }
};

/// What a kernel accepts as one operand. None and sizes that are not known yet pass.
class OperandCheck {
 public:
  static constexpr std::size_t kMaxSizes = 8;

  constexpr Role role() const { return role_; }
  constexpr const char* name() const { return name_; }
  constexpr DTypeSet dtypes() const { return dtypes_; }

 protected:
  friend class CheckRun;

  constexpr OperandCheck(Role role, const char* name) : role_(role), name_(name) {}

  Role role_;
  const char* name_;
  DTypeSet dtypes_;  // empty: any
  int least_ndim_ = 0;
  int most_ndim_ = CallFrame::kMaxNdim;
  bool has_sizes_ = false;
  std::size_t size_count_ = 0;
  std::array<SizeCheck, kMaxSizes> sizes_ = {};
};

/// An option that states what a kernel accepts as an input, or as an output. Each member function
/// adds a condition and returns the result.
template <Role kRole>
class CheckOption : public OperandCheck {
 public:
  explicit constexpr CheckOption(const char* name) : OperandCheck(kRole, name) {}

  /// Any of these: `dtype(at::kFloat, at::kDouble)`, `dtype(kFloatingPoint | kComplex)`.
  template <class... T>
  constexpr CheckOption dtype(T... types) const {
    CheckOption check = *this;
    check.dtypes_ = (DTypeSet() | ... | DTypeSet(types));
    return check;
  }

  constexpr CheckOption rank(int ndim) const { return rank(ndim, ndim); }
  constexpr CheckOption rank(int least, int most) const {
    CheckOption check = *this;
    check.least_ndim_ = least;
    check.most_ndim_ = most;
    return check;
  }

  /// The sizes, one by one: `sizes("N", 3, "H", "W")`, `sizes("...", "C")`.
  template <class... S>
  constexpr CheckOption sizes(S... sizes) const {
    static_assert(sizeof...(S) <= kMaxSizes,
                  "aten_bridge: sizes() takes up to 8 sizes; leave the others to \"...\".");
    CheckOption check = *this;
    check.has_sizes_ = true;
    check.size_count_ = sizeof...(S);
    check.sizes_ = {SizeCheck(sizes)...};
    return check;
  }
};

/// States the next input of a kernel, in the order of its parameters; for an at::TensorList, each
/// of its tensors. `name` is what error texts call it, beside its number.
constexpr CheckOption<Role::kInput> input(const char* name) {
  return CheckOption<Role::kInput>(name);
}

/// States the next output.
constexpr CheckOption<Role::kOutput> output(const char* name) {
  return CheckOption<Role::kOutput>(name);
}

/// The checks of one call, which share the sizes' names.
class CheckRun {
 public:
  explicit CheckRun(Report& report) : report_(report) {}

  /// Adds to the report how the operand differs from `check`. A size of -1, a rank of -1 and a
  /// dtype of kNone are not known.
  void operator()(const OperandCheck& check, const OperandName& name, const Slot& slot) {
    if (!check.dtypes_.empty() && slot.dtype != DType::kNone &&
        !check.dtypes_.contains(slot.dtype)) {
      add_dtype_fault(check, name, slot);
    }
    if (slot.ndim < 0) {
      return;
    }
    if (slot.ndim < check.least_ndim_ || slot.ndim > check.most_ndim_) {
      add_rank_fault(check, name, slot);
    } else if (check.has_sizes_) {
      match_sizes(check, name, slot);
    }
  }

 private:
  struct NamedSize {
    const char* name;
    int64_t size;
    OperandName operand;
  };

  [[gnu::cold]] static std::string described(const Slot& slot) {
    return slot.dtype == DType::kNone ? detail::shape_text(slot.sizes, slot.ndim) : slot.text();
  }

  void match_sizes(const OperandCheck& check, const OperandName& name, const Slot& slot) {
    const auto is_rest = [](const SizeCheck& size) { return size.is_rest(); };
    const auto* begin = check.sizes_.data();
    const auto* end = begin + check.size_count_;
    const auto* rest = std::find_if(begin, end, is_rest);
    if (rest != end && std::any_of(rest + 1, end, is_rest)) {
      add_pattern_fault(check, name);
      return;
    }
    const int front = static_cast<int>(rest - begin);
    const int back = rest == end ? 0 : static_cast<int>(end - rest) - 1;
    bool fits = rest == end ? slot.ndim == front : slot.ndim >= front + back;
    std::string because;
    if (fits) {
      for (int i = 0; i < front; ++i) {
        fits = match_size(begin[i], slot.sizes[i], name, because) && fits;
      }
      for (int i = 0; i < back; ++i) {
        fits = match_size(rest[1 + i], slot.sizes[slot.ndim - back + i], name, because) && fits;
      }
    }
    if (!fits) {
      add_sizes_fault(check, name, slot, because);
    }
  }

  [[gnu::cold, gnu::noinline]] void add_dtype_fault(const OperandCheck& check,
                                                    const OperandName& name, const Slot& slot) {
    report_.add(Status::kDtype, {name.text(), ": expected ", check.dtypes_.text(), ", got \"",
                                 dtype_name(slot.dtype), "\" with shape ",
                                 detail::shape_text(slot.sizes, slot.ndim)});
  }

  [[gnu::cold, gnu::noinline]] void add_rank_fault(const OperandCheck& check,
                                                   const OperandName& name, const Slot& slot) {
    const std::string least = std::to_string(check.least_ndim_);
    const std::string most = std::to_string(check.most_ndim_);
    const std::string ranks =
        least == most ? "rank " + least : detail::join({"a rank from ", least, " to ", most});
    report_.add(Status::kShape, {name.text(), ": expected ", ranks, ", got ", described(slot)});
  }

  [[gnu::cold]] static std::string pattern(const OperandCheck& check) {
    std::string text;
    for (std::size_t i = 0; i < check.size_count_; ++i) {
      text.append(text.empty() ? "" : ", ").append(check.sizes_[i].text());
    }
    return '[' + text + ']';
  }

  [[gnu::cold, gnu::noinline]] void add_sizes_fault(const OperandCheck& check,
                                                    const OperandName& name, const Slot& slot,
                                                    const std::string& because) {
    report_.add(Status::kShape, {name.text(), ": expected sizes ", pattern(check), because,
                                 ", got ", described(slot)});
  }

  [[gnu::cold, gnu::noinline]] void add_pattern_fault(const OperandCheck& check,
                                                      const OperandName& name) {
    report_.add(Status::kShape, {name.text(), ": expected \"...\" once in the sizes of its check, ",
                                 "got ", pattern(check), "; correct the kernel's export"});
  }

  /// Whether a size is what its check says; adds to `because` what a name stands for.
  bool match_size(const SizeCheck& check, int64_t size, const OperandName& operand,
                  std::string& because) {
    if (size < 0) {
      return true;
    }
    if (check.name == nullptr) {
      return check.number < 0 || check.number == size;
    }
    for (const NamedSize& named : names_) {
      if (std::strcmp(named.name, check.name) == 0) {
        if (named.size != size) {
          because.append(because.empty() ? " with " : " and ")
              .append(check.name)
              .append(detail::join(
                  {" = ", std::to_string(named.size), " as in ", named.operand.text()}));
        }
        return named.size == size;
      }
    }
    names_.push_back({check.name, size, operand});
    return true;
  }

  Report& report_;
  c10::SmallVector<NamedSize, 8> names_;
};

//===----------------------------------------------------------------------===//
// The caller's state
//===----------------------------------------------------------------------===//

namespace detail {

/// Around the body of a kernel. Inside, operators run below autograd (no graph, 2 dispatches fewer
/// for each operator) or, where the kernel `records` one, as in a thread of its own; without
/// autocast and not in inference mode, whatever the calling thread had set. Afterwards grad mode,
/// inference mode, dispatch keys, thread count and, on x86-64, the treatment of denormals are the
/// thread's own again, also where the kernel changed them or threw. Settings of the whole process
/// are left as they are: other threads may be at them.
class KernelScope {
 public:
  explicit KernelScope(bool records = false) {
    if (autograd_.get_inference_mode()) {
      normal_mode_.emplace(/*enabled=*/false);
    }
    if (records) {
      c10::impl::_force_tls_local_dispatch_key_set(c10::impl::PODLocalDispatchKeySet());
      autograd_ = {/*grad_mode=*/true, /*inference_mode=*/false, /*fw_grad_mode=*/true,
                   /*multithreading_enabled=*/true};
    } else {
      below_autograd_.emplace(c10::autograd_dispatch_keyset_with_ADInplaceOrView |
                              c10::autocast_dispatch_keyset);
    }
  }

  ~KernelScope() {
    below_autograd_.reset();
    normal_mode_.reset();
    autograd_ = autograd_before_;
    const c10::impl::LocalDispatchKeySet keys = c10::impl::tls_local_dispatch_key_set();
    if (keys.included_ != keys_before_.included_ || keys.excluded_ != keys_before_.excluded_) {
      c10::impl::_force_tls_local_dispatch_key_set(keys_before_);
    }
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
  c10::AutogradState& autograd_ = c10::AutogradState::get_tls_state();  // the thread's own
  c10::AutogradState autograd_before_ = autograd_;
  c10::impl::LocalDispatchKeySet keys_before_ = c10::impl::tls_local_dispatch_key_set();
  int thread_count_ = at::get_num_threads();
  std::optional<c10::InferenceMode> normal_mode_;
  std::optional<c10::impl::ExcludeDispatchKeyGuard> below_autograd_;
};

/// What is wrong with the PyTorch in this process; empty if nothing is. A library is loaded with
/// the libtorch that is there already, whatever its own runpath says, and tensors differ from one
/// minor version to the next. (at::show_config() would start CUDA.)
[[gnu::cold]] inline std::string pytorch_fault() {
  const auto& options = caffe2::GetBuildOptions();
  const auto loaded = options.find("TORCH_VERSION");  // such as "2.11.0"
  const std::string built_with =
      join({std::to_string(TORCH_VERSION_MAJOR), ".", std::to_string(TORCH_VERSION_MINOR), "."});
  return loaded == options.end() || loaded->second.compare(0, built_with.size(), built_with) == 0
             ? std::string()
             : join({"expected PyTorch ", built_with, "x, with which this library was built, got ",
                     loaded->second, ", which the process had loaded before; build the library ",
                     "with the PyTorch that the program imports"});
}

/// Throws `Error` if the PyTorch in this process is not the one that the library was built with.
inline void check_pytorch(const char* operator_name) {
  static const std::string fault = pytorch_fault();
  if (!fault.empty()) {
    throw Error(Status::kAten, join({operator_name, ": ", fault}));
  }
}

//===----------------------------------------------------------------------===//
// Binding: from a function's signature to the operands of a call
//===----------------------------------------------------------------------===//
//
// Templates only list what a signature asks for (`Parameter`, `Plan`) and spread what a call
// brings over the arguments (`call`). Decoding, checking and reporting is ordinary code for all
// kernels, so that a library with many kernels stays small.

/// What a parameter, or a result, of a kernel is.
enum class Kind : std::uint8_t {
  kInput,          // a tensor
  kOptionalInput,  // a tensor or None
  kInputList,      // any number of tensors
  kOutput,
  kValue,      // an attribute while there are aten_bridge::attr options, then a number:
  kAttribute,  //
  kNumber,     // the one element of an input
  kWorkspace,
  kFrame,  // the call as it comes
};

/// The values that an input can be read as; kNone for types that are none. Lists and dtypes are
/// inputs in MindSpore's op plugins only.
enum class NumberType : std::uint8_t { kNone, kBool, kInt, kReal, kAny, kInts, kReals, kDtype };

/// One input or output of a kernel.
struct Binding {
  Kind kind = Kind::kOutput;
  NumberType number = NumberType::kNone;
  bool optional = false;  // may be None

  friend constexpr bool operator!=(const Binding& a, const Binding& b) {
    return a.kind != b.kind || a.number != b.number || a.optional != b.optional;
  }
};

/// One operand during a call: the host's memory and the tensor that the kernel works on.
struct Operand {
  OperandName name;
  Slot slot;  // of this call: says nothing of `view` before set_view() or renew()
  at::Tensor view;
  // Of `view` before the body, all written by set_view():
  const c10::TensorImpl* impl = nullptr;
  const c10::StorageImpl* storage = nullptr;
  const void* data = nullptr;
  c10::DispatchKeySet keys;
  DType dtype = DType::kNone;
  bool is_again = false;                 // as in the last call, but for the memory
  alignas(16) unsigned char number[16];  // of one whose element is fetched from a device
};

/// The operands of a kernel's calls in one thread. Between the calls their views are kept, so that
/// the next one has only to point them at other memory.
struct KeptOperands {
  [[gnu::noinline]] KeptOperands() = default;
  [[gnu::noinline]] ~KeptOperands() = default;
  KeptOperands(const KeptOperands&) = delete;
  KeptOperands& operator=(const KeptOperands&) = delete;

  std::vector<Operand> operands;
  std::vector<at::Tensor> list;  // for an at::TensorList; empty between the calls
  bool in_use = false;
};

/// The operands of a thread's calls, by the object of the host's that a call is for, such as
/// MindSpore's `extra`: each place of a network has one, and shapes of its own. The object is
/// nothing but a number here; two that fall together undo each other's views, which costs time
/// alone.
class KeptByPlace {
 public:
  [[gnu::noinline]] KeptByPlace() = default;
  [[gnu::noinline]] ~KeptByPlace() = default;
  KeptByPlace(const KeptByPlace&) = delete;
  KeptByPlace& operator=(const KeptByPlace&) = delete;

  KeptOperands& of(const void* object) {
    constexpr std::uint64_t kSpread = 0x9e3779b97f4a7c15;
    const auto number = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(object));
    std::unique_ptr<KeptOperands>& kept = kept_[number * kSpread >> (64 - kBits)];
    return kept == nullptr ? make(kept) : *kept;
  }

 private:
  static constexpr int kBits = 5;

  [[gnu::cold, gnu::noinline]] static KeptOperands& make(std::unique_ptr<KeptOperands>& kept) {
    kept = std::make_unique<KeptOperands>();
    return *kept;
  }

  std::array<std::unique_ptr<KeptOperands>, 1U << kBits> kept_;
};

/// What the host keeps for one operator of a graph (MindSpore's AotKernelData): it deletes the
/// object through the destructor, which must therefore be the first virtual function.
class Instance {
 public:
  explicit Instance(const void* attributes) : attributes_(attributes) {}
  virtual ~Instance() = default;
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  /// A std::tuple of their values, of the kernel's own types.
  const void* attributes() const { return attributes_; }

 private:
  const void* attributes_;
};

/// Memory that a kernel uses during the call.
struct Memory {
  void* data = nullptr;
  std::size_t bytes = 0;
  c10::DataPtr owner;  // where it is not the host's
};

/// All that a kernel's arguments are made from: those of a call, or stand-ins without data.
struct Arguments {
  Operand* operands = nullptr;  // inputs, then outputs, in the host's order
  int inputs = 0;
  int outputs = 0;
  int list_begin = -1;  // of the inputs that an at::TensorList takes; -1: there is none
  int list_size = 0;
  std::vector<at::Tensor> list;
  Instance* instance = nullptr;
  Memory* workspaces = nullptr;
  const CallFrame* frame = nullptr;
  void (*around_state)(const CallFrame& frame, bool is_made) = nullptr;  // of the device
  std::vector<std::vector<int64_t>>* result_sizes = nullptr;  // to be filled, where they are found

  /// The operand of input parameter `index`; of an at::TensorList, the first.
  Operand& input(int index) const {
    return operands[list_begin >= 0 && index > list_begin ? index + list_size - 1 : index];
  }
  Operand& output(int index) const { return operands[inputs + index]; }
  int size() const { return inputs + outputs; }
};

}  // namespace detail

/// Memory without an initial value that a kernel asked for with an aten_bridge::workspace option.
/// Aligned for T; valid during the call.
template <class T>
class Workspace {
 public:
  static_assert(std::is_trivial_v<T>, "aten_bridge: a Workspace holds plain values.");
  Workspace(void* data, std::size_t size) : data_(static_cast<T*>(data)), size_(size) {}

  T* data() const { return data_; }
  std::size_t size() const { return size_; }  ///< in elements
  T* begin() const { return data_; }
  T* end() const { return data_ + size_; }

  /// Throws c10::Error if `index` is not below `size()`.
  T& at(std::size_t index) const {
    TORCH_CHECK_INDEX(index < size_, "expected an index below ", size_, ", got ", index);
    return data_[index];
  }
  T& operator[](std::size_t index) const { return data_[index]; }

 private:
  T* data_;
  std::size_t size_;
};

namespace detail {

template <class>
inline constexpr bool kNever = false;

template <class T>
using Plain = std::remove_cv_t<std::remove_reference_t<T>>;

//===--- values: attributes and numbers ---===//

/// A type that attributes, and some that numbers, can be: how it is kept (`Held`) and handed over
/// (`get`), and what error texts call it.
template <class T>
struct Value {
  static constexpr bool kSupported = false;
  static constexpr NumberType kNumber = NumberType::kNone;
  using Held = char;
};

template <class T, NumberType number = NumberType::kNone>
struct OwnValue {
  static constexpr bool kSupported = true;
  static constexpr NumberType kNumber = number;
  using Held = T;
  static const T& get(const T& held) { return held; }
};

// clang-format off
template <> struct Value<bool> : OwnValue<bool, NumberType::kBool> {
  static constexpr const char* kText = "a bool"; };
template <> struct Value<int64_t> : OwnValue<int64_t, NumberType::kInt> {
  static constexpr const char* kText = "an int"; };
template <> struct Value<double> : OwnValue<double, NumberType::kReal> {
  static constexpr const char* kText = "a float, such as 1.0"; };
template <> struct Value<at::Scalar> : OwnValue<at::Scalar, NumberType::kAny> {
  static constexpr const char* kText = "a number"; };
template <> struct Value<std::string> : OwnValue<std::string> {
  static constexpr const char* kText = "a str"; };
template <> struct Value<at::ScalarType> : OwnValue<at::ScalarType, NumberType::kDtype> {
  static constexpr const char* kText = "the name of a dtype, such as \"float32\""; };
template <> struct Value<std::vector<int64_t>>
    : OwnValue<std::vector<int64_t>, NumberType::kInts> {
  static constexpr const char* kText = "a list of ints"; };
template <> struct Value<std::vector<double>>
    : OwnValue<std::vector<double>, NumberType::kReals> {
  static constexpr const char* kText = "a list of floats, such as [1.0, 2.0]"; };
template <> struct Value<std::vector<std::vector<int64_t>>>
    : OwnValue<std::vector<std::vector<int64_t>>> {
  static constexpr const char* kText = "a list of lists of ints"; };
template <> struct Value<std::vector<std::vector<double>>>
    : OwnValue<std::vector<std::vector<double>>> {
  static constexpr const char* kText = "a list of lists of floats, such as [[1.0], [2.0, 3.0]]"; };
// clang-format on

/// A type that only refers to a value of type T.
template <class View, class T>
struct ViewedValue : Value<T> {
  static View get(const T& held) { return held; }
};
template <>
struct Value<std::string_view> : ViewedValue<std::string_view, std::string> {};
template <>
struct Value<at::IntArrayRef> : ViewedValue<at::IntArrayRef, std::vector<int64_t>> {};
template <>
struct Value<at::ArrayRef<double>> : ViewedValue<at::ArrayRef<double>, std::vector<double>> {};

template <class T>
struct Value<std::optional<T>> : Value<T> {
  using Held = std::optional<typename Value<T>::Held>;
  static std::optional<T> get(const Held& held) {
    return held.has_value() ? std::optional<T>(Value<T>::get(*held)) : std::nullopt;
  }
};
template <>
struct Value<at::OptionalIntArrayRef> : Value<std::optional<std::vector<int64_t>>> {
  static at::OptionalIntArrayRef get(const Held& held) {
    return held.has_value() ? at::OptionalIntArrayRef(*held) : at::OptionalIntArrayRef();
  }
};

template <class T>
inline constexpr bool kIsOptional = false;
template <class T>
inline constexpr bool kIsOptional<std::optional<T>> = true;
template <>
inline constexpr bool kIsOptional<at::OptionalIntArrayRef> = true;

#if TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR < 2  // whose optional is not std::optional
template <class T>
struct Value<c10::optional<T>> : Value<std::optional<T>> {
  static c10::optional<T> get(const typename Value<std::optional<T>>::Held& held) {
    return held.has_value() ? c10::optional<T>(Value<T>::get(*held)) : c10::nullopt;
  }
};
template <class T>
inline constexpr bool kIsOptional<c10::optional<T>> = true;
#endif

//===--- attributes ---===//

struct NoDefault {};

/// Default of an attribute: a list, of whatever the attribute has.
struct EmptyList {
  template <class T>
  operator std::vector<T>() const {  // NOLINT(*-explicit-*)
    return {};
  }
};

/// Default of an attribute: a list of ints, or of floats.
template <class T>
using DefaultList = std::vector<std::conditional_t<std::is_integral_v<T>, int64_t, double>>;

/// An aten_bridge::attr option.
template <class Default>
struct Attr {
  const char* name;
  Default fallback;
};

/// Whether an operator must set the attribute.
template <class Held, class AttrOption>
inline constexpr bool kIsRequired =
    std::is_same_v<AttrOption, Attr<NoDefault>> && !kIsOptional<Held>;

/// Whether a default fits: no float for an int, no number for a bool.
template <class Held, class Default>
constexpr bool default_fits() {
  if constexpr (std::is_same_v<Default, NoDefault> || std::is_same_v<Held, Default>) {
    return true;
  } else if constexpr (kIsOptional<Held> && !std::is_same_v<Default, std::nullopt_t>) {
    return default_fits<typename Held::value_type, Default>();
  } else if constexpr (std::is_same_v<Held, bool>) {
    return std::is_same_v<Default, bool>;
  } else if constexpr (std::is_same_v<Held, int64_t>) {
    return std::is_integral_v<Default> && !std::is_same_v<Default, bool>;
  } else if constexpr (std::is_same_v<Held, double>) {
    return std::is_arithmetic_v<Default> && !std::is_same_v<Default, bool>;
  } else {
    return std::is_convertible_v<Default, Held>;
  }
}

template <class T>
bool get_attribute(const Attributes& attributes, const char* name, T& value) {
  return attributes.get(name, value);
}

inline bool get_attribute(const Attributes& attributes, const char* name, at::ScalarType& value) {
  std::string text;
  const DTypeInfo* info = attributes.get(name, text) ? find_dtype(text) : nullptr;
  value = info == nullptr ? at::ScalarType::Undefined : scalar_type(info->dtype);
  return value != at::ScalarType::Undefined;
}

inline bool get_attribute(const Attributes& attributes, const char* name, at::Scalar& value) {
  bool flag = false;
  int64_t integer = 0;
  double real = 0;
  if (attributes.get(name, real)) {
    value = real;
  } else if (attributes.get(name, integer)) {
    value = integer;
  } else if (attributes.get(name, flag)) {
    value = flag;
  } else {
    return false;
  }
  return true;
}

template <class T>
bool get_attribute(const Attributes& attributes, const char* name, std::optional<T>& value) {
  T given{};
  const bool found = get_attribute(attributes, name, given);
  value = std::move(given);
  return found;
}

[[gnu::cold, gnu::noinline]] inline void add_attribute_fault(const Attributes& attributes,
                                                             const char* name, const char* expected,
                                                             Report& report) {
  report.add(Status::kAttribute,
             {"attribute '", name, "': expected ", expected, ", got ",
              attributes.has(name)
                  ? attribute_text(attributes, name)
                  : join({"nothing; set it where the operator is made, as in add_prim_attr(\"",
                          name, "\", ...)"})});
}

/// The value of an attribute or its default; without either adds to the report.
template <class Held, class Default>
Held read_attribute(const Attributes& attributes, const Attr<Default>& attr, Report& report) {
  static_assert(default_fits<Held, Default>(),
                "aten_bridge: the default of an attribute has the type of its parameter: a number "
                "where that is a double, an integer, a bool, a string, at::kFloat for a dtype, "
                "{1, 2} for a list of ints, {1.0, 2.0} of floats.");
  if (kIsRequired<Held, Attr<Default>> || attributes.has(attr.name)) {
    Held value{};
    if (!get_attribute(attributes, attr.name, value)) {
      add_attribute_fault(attributes, attr.name, Value<Held>::kText, report);
    }
    return value;
  }
  if constexpr (std::is_same_v<Default, NoDefault>) {
    return Held{};
  } else {
    Held value = attr.fallback;
    return value;
  }
}

//===--- numbers ---===//

/// The one element of an input, before it becomes what the kernel asks for.
struct Number {
  enum class Type : std::uint8_t { kBool, kInt, kBigInt, kReal, kComplex };
  Type type = Type::kInt;
  int64_t integer = 0;                 // of kBool and kInt
  c10::complex<double> real = {0, 0};  // of kBigInt (2^63 and more, rounded), kReal and kComplex
};

template <class T>
T load(const void* data) {
  T value;
  std::memcpy(&value, data, sizeof(T));  // of any alignment
  return value;
}

/// `slot` has one element.
inline Number read_number(const Slot& slot) {
  const auto integer = [](int64_t value) { return Number{Number::Type::kInt, value, {}}; };
  const auto real = [](double value) { return Number{Number::Type::kReal, 0, {value, 0}}; };
  switch (slot.dtype) {
    case DType::kBool:
      return {Number::Type::kBool, load<std::uint8_t>(slot.data) != 0, {}};
    case DType::kUInt8:
      return integer(load<std::uint8_t>(slot.data));
    case DType::kInt8:
      return integer(load<std::int8_t>(slot.data));
    case DType::kUInt16:
      return integer(load<std::uint16_t>(slot.data));
    case DType::kInt16:
      return integer(load<std::int16_t>(slot.data));
    case DType::kUInt32:
      return integer(load<std::uint32_t>(slot.data));
    case DType::kInt32:
      return integer(load<std::int32_t>(slot.data));
    case DType::kUInt64: {
      const auto value = load<std::uint64_t>(slot.data);
      return value >> 63 == 0 ? integer(static_cast<int64_t>(value))
                              : Number{Number::Type::kBigInt, 0, {static_cast<double>(value), 0}};
    }
    case DType::kInt64:
      return integer(load<int64_t>(slot.data));
    case DType::kFloat16:
      return real(load<c10::Half>(slot.data));
    case DType::kBFloat16:
      return real(load<c10::BFloat16>(slot.data));
    case DType::kFloat32:
      return real(load<float>(slot.data));
    case DType::kFloat64:
      return real(load<double>(slot.data));
    case DType::kComplex64:
      return {Number::Type::kComplex, 0, load<c10::complex<float>>(slot.data)};
    case DType::kComplex128:
      return {Number::Type::kComplex, 0, load<c10::complex<double>>(slot.data)};
    case DType::kFloat8E4M3FN:
      return real(load<c10::Float8_e4m3fn>(slot.data));
    case DType::kFloat8E5M2:
      return real(load<c10::Float8_e5m2>(slot.data));
    case DType::kNone:
      break;
  }
  return {};
}

/// Converts without loss of more than a double's precision. False if that is not possible.
inline bool convert(const Number& number, int64_t& value) {
  const double real = number.real.real();
  switch (number.type) {
    case Number::Type::kBool:
    case Number::Type::kInt:
      value = number.integer;
      return true;
    case Number::Type::kReal:
      if (real >= -0x1p63 && real < 0x1p63 && real == std::trunc(real)) {
        value = static_cast<int64_t>(real);
        return true;
      }
      return false;
    default:
      return false;
  }
}

inline bool convert(const Number& number, bool& value) {
  int64_t integer = 0;
  const bool fits = convert(number, integer) && (integer == 0 || integer == 1);
  value = integer == 1;
  return fits;
}

inline bool convert(const Number& number, double& value) {
  value =
      number.type <= Number::Type::kInt ? static_cast<double>(number.integer) : number.real.real();
  return number.type != Number::Type::kComplex;
}

inline bool convert(const Number& number, at::Scalar& value) {
  switch (number.type) {
    case Number::Type::kBool:
      value = number.integer != 0;
      return true;
    case Number::Type::kInt:
      value = number.integer;
      return true;
    case Number::Type::kReal:
      value = number.real.real();
      return true;
    case Number::Type::kComplex:
      value = number.real;
      return true;
    default:
      return false;
  }
}

/// MindSpore's TypeIds that are the same in all its versions; 0 elsewhere. In the order of `DType`.
inline constexpr int kTypeIds[] = {0,  30, 37, 32, 38, 33, 39, 34, 40,
                                   35, 42, 0,  43, 44, 0,  0,  0,  0};

// Those of 2.10 for the others: bfloat16, complex64, complex128, float8e4m3fn, float8e5m2.
inline constexpr int kNewTypeIds[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 45, 0, 0, 51, 52, 46, 47};

/// The dtype that an input of a plugin names; kNone for none.
inline DType read_dtype(const Slot& slot) {
  int64_t id = 0;
  if (slot.numel == 1 && convert(read_number(slot), id) && id > 0) {
    for (std::size_t i = 1; i < std::size(kTypeIds); ++i) {
      if (kTypeIds[i] == id || kNewTypeIds[i] == id) {
        return static_cast<DType>(i);
      }
    }
  }
  return DType::kNone;
}

template <class T>
T number_as(const Slot& slot) {
  T value{};
  if constexpr (std::is_same_v<T, std::vector<int64_t>>) {
    const auto* elements = static_cast<const int64_t*>(slot.data);
    value.assign(elements, elements + slot.numel);
  } else if constexpr (std::is_same_v<T, std::vector<double>>) {
    for (int64_t i = 0; i < slot.numel; ++i) {
      Slot element = slot;
      element.data =
          static_cast<char*>(slot.data) + i * static_cast<int64_t>(dtype_itemsize(slot.dtype));
      value.emplace_back();
      convert(read_number(element), value.back());
      value.back() =
          slot.dtype == DType::kFloat32 ? widen(static_cast<float>(value.back())) : value.back();
    }
  } else if constexpr (std::is_same_v<T, at::ScalarType>) {
    value = scalar_type(read_dtype(slot));
  } else {
    convert(read_number(slot), value);
  }
  return value;
}

/// "" or how the slot is not such a number: ": expected ..., got ...".
[[gnu::cold]] inline std::string number_fault(NumberType type, const Slot& slot) {
  if (type >= NumberType::kInts) {
    return join({": expected ",
                 type == NumberType::kInts    ? "a list of ints"
                 : type == NumberType::kReals ? "a list of floats"
                                              : "the number of a dtype",
                 ", got ", slot.text()});
  }
  const char* expected = type == NumberType::kBool   ? "a bool, 0 or 1"
                         : type == NumberType::kInt  ? "an integer that an int64 can hold"
                         : type == NumberType::kReal ? "a real number"
                                                     : "a number that an at::Scalar can hold";
  if (slot.numel != 1) {
    return join({": expected ", expected, " as one element, got ", slot.text()});
  }
  const Number number = read_number(slot);
  const char* format = number.type == Number::Type::kComplex ? "%.17g%+.17gj" : "%.17g";
  char text[80];
  if (number.type <= Number::Type::kInt) {
    std::snprintf(text, sizeof(text), "%lld", static_cast<long long>(number.integer));  // NOLINT
  } else {
    std::snprintf(text, sizeof(text), format, number.real.real(), number.real.imag());
  }
  return join({": expected ", expected, ", got the ", dtype_name(slot.dtype), " ", text});
}

inline bool is_number(NumberType type, const Slot& slot) {
  bool flag = false;
  int64_t integer = 0;
  double real = 0;
  at::Scalar any;
  if (type == NumberType::kInts) {
    return slot.dtype == DType::kInt64 && slot.ndim <= 1;
  }
  if (type == NumberType::kReals) {
    return slot.ndim <= 1 && slot.dtype != DType::kComplex64 && slot.dtype != DType::kComplex128;
  }
  if (type == NumberType::kDtype) {
    return read_dtype(slot) != DType::kNone;
  }
  if (slot.numel != 1) {
    return false;
  }
  const Number number = read_number(slot);
  switch (type) {
    case NumberType::kBool:
      return convert(number, flag);
    case NumberType::kInt:
      return convert(number, integer);
    case NumberType::kReal:
      return convert(number, real);
    default:
      return convert(number, any);
  }
}

//===--- parameters ---===//

/// How a parameter of type P binds. For instance `const at::Tensor&` takes the next input, and what
/// it gets is that input's view.
template <class P>
struct Parameter {
  static constexpr Kind kKind = Kind::kValue;
};

template <>
struct Parameter<const at::Tensor&> {
  static constexpr Kind kKind = Kind::kInput;
  static const at::Tensor& get(const Arguments& arguments, int index) {
    return arguments.input(index).view;
  }
};
template <>
struct Parameter<at::Tensor> : Parameter<const at::Tensor&> {};

template <class Optional>
struct OptionalInput {
  static constexpr Kind kKind = Kind::kOptionalInput;
  static Optional get(const Arguments& arguments, int index) {
    const at::Tensor& view = arguments.input(index).view;
    return view.defined() ? Optional(view) : Optional();
  }
};
template <>
struct Parameter<const std::optional<at::Tensor>&> : OptionalInput<std::optional<at::Tensor>> {};
template <>
struct Parameter<std::optional<at::Tensor>> : OptionalInput<std::optional<at::Tensor>> {};
#if TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR < 2
template <>
struct Parameter<const c10::optional<at::Tensor>&> : OptionalInput<c10::optional<at::Tensor>> {};
template <>
struct Parameter<c10::optional<at::Tensor>> : OptionalInput<c10::optional<at::Tensor>> {};
#endif

template <>
struct Parameter<at::TensorList> {
  static constexpr Kind kKind = Kind::kInputList;
  static at::TensorList get(const Arguments& arguments, int /*index*/) { return arguments.list; }
};

template <>
struct Parameter<at::Tensor&> {
  static constexpr Kind kKind = Kind::kOutput;
  static at::Tensor& get(const Arguments& arguments, int index) {
    return arguments.output(index).view;
  }
};

/// The bytes of one element of a workspace, and what is added so that the first can be aligned.
struct ElementLayout {
  std::size_t size = 0;
  std::size_t slack = 0;
};

template <class T>
inline constexpr ElementLayout kElementLayout = {};
// All hosts align their memory for plain numbers (MindSpore 2.10 to 16 bytes).
template <class T>
inline constexpr ElementLayout kElementLayout<Workspace<T>> = {
    sizeof(T), alignof(T) > alignof(std::max_align_t) ? alignof(T) - 1 : 0};

template <class T>
struct Parameter<Workspace<T>> {
  static constexpr Kind kKind = Kind::kWorkspace;
  static Workspace<T> get(const Arguments& arguments, int index) {
    const Memory& memory = arguments.workspaces[index];
    constexpr ElementLayout kLayout = kElementLayout<Workspace<T>>;
    void* data = memory.data;
    std::size_t bytes = memory.bytes;
    if (kLayout.slack > 0) {
      data = std::align(alignof(T), bytes - kLayout.slack, data, bytes);
    }
    return {data, (memory.bytes - kLayout.slack) / sizeof(T)};
  }
};
template <class T>
struct Parameter<const Workspace<T>&> : Parameter<Workspace<T>> {};

template <>
struct Parameter<const CallFrame&> {
  static constexpr Kind kKind = Kind::kFrame;
  static const CallFrame& get(const Arguments& arguments, int /*index*/) {
    return *arguments.frame;
  }
};

/// What a std::optional or a std::vector is made of.
template <class T>
struct ElementOf {
  using Type = T;
};
template <class T>
struct ElementOf<std::optional<T>> : ElementOf<T> {};
template <class T>
struct ElementOf<std::vector<T>> : ElementOf<T> {};

/// One parameter of a kernel, so that what a compiler says of it names its number and its type.
template <std::size_t kNumber, class P>
struct KernelParameter {
  using Element = typename ElementOf<Plain<P>>::Type;
  static constexpr bool kIsInteger = std::is_integral_v<Element> &&
                                     !std::is_same_v<Element, int64_t> &&
                                     !std::is_same_v<Element, bool>;
  static constexpr bool kIsFloat = std::is_same_v<Element, float>;

  static_assert(
      !kIsInteger,
      "aten_bridge: the integers of a kernel are int64_t, its parameter number kNumber of "
      "KernelParameter<kNumber, type> has another one; write int64_t.");
  static_assert(!kIsFloat,
                "aten_bridge: the floating-point numbers of a kernel are double, its parameter "
                "number kNumber of KernelParameter<kNumber, type> is a float; write double.");
  static_assert(kIsInteger || kIsFloat || Parameter<P>::kKind != Kind::kValue ||
                    (Value<Plain<P>>::kSupported &&
                     (!std::is_reference_v<P> || std::is_const_v<std::remove_reference_t<P>>)),
                "aten_bridge: a kernel's parameters are const at::Tensor& or at::Tensor for an "
                "input, const std::optional<at::Tensor>& for an input that may be None, "
                "at::TensorList for any number of inputs, at::Tensor& for an output, "
                "aten_bridge::Workspace<T> for a workspace, and for attributes and numbers bool, "
                "int64_t (not int), double (not float), at::Scalar, at::ScalarType, std::string, "
                "std::vector of int64_t or double, at::IntArrayRef, and std::optional of these; or "
                "const aten_bridge::CallFrame& alone.");
};

template <class Indices, class... P>
struct KernelParameters;
template <std::size_t... I, class... P>
struct KernelParameters<std::index_sequence<I...>, P...> : KernelParameter<I + 1, P>... {};

/// Where the argument of a parameter comes from: its kind, and its number within that kind.
struct Place {
  Kind kind = Kind::kFrame;
  int index = 0;
};

/// What a list of parameters takes from a call when the first `attributes` of its values are
/// attributes. Numbers are inputs.
template <class... P>
struct Plan : KernelParameters<std::index_sequence_for<P...>, P...> {
  static constexpr int kParameters = sizeof...(P);

  static constexpr int count([[maybe_unused]] Kind kind) {
    return (0 + ... + (Parameter<P>::kKind == kind ? 1 : 0));
  }

  static constexpr std::array<Place, kParameters> places(int attributes) {
    constexpr Kind kKinds[] = {Parameter<P>::kKind..., Kind::kFrame};
    std::array<Place, kParameters> places = {};
    int inputs = 0;
    int outputs = 0;
    int values = 0;
    int workspaces = 0;
    for (std::size_t i = 0; i < kParameters; ++i) {
      switch (kKinds[i]) {
        case Kind::kValue:
          places[i] = values < attributes ? Place{Kind::kAttribute, values}
                                          : Place{Kind::kNumber, inputs++};
          ++values;
          break;
        case Kind::kOutput:
          places[i] = {kKinds[i], outputs++};
          break;
        case Kind::kWorkspace:
          places[i] = {kKinds[i], workspaces++};
          break;
        case Kind::kFrame:
          break;
        default:
          places[i] = {kKinds[i], inputs++};
      }
    }
    return places;
  }

  /// How many inputs there are; an at::TensorList is one.
  static constexpr int inputs(int attributes) {
    const int numbers = count(Kind::kValue) - attributes;
    return count(Kind::kInput) + count(Kind::kOptionalInput) + count(Kind::kInputList) +
           (numbers > 0 ? numbers : 0);
  }

  /// Which of the inputs is the at::TensorList; -1: none.
  static constexpr int list_begin(int attributes) {
    for (const Place& place : places(attributes)) {
      if (place.kind == Kind::kInputList) {
        return place.index;
      }
    }
    return -1;
  }

  /// Of the inputs, in their order. `N` is their number.
  template <std::size_t N>
  static constexpr std::array<Binding, N> bindings(int attributes) {
    constexpr NumberType kNumbers[] = {Value<Plain<P>>::kNumber..., NumberType::kNone};
    constexpr bool kOptional[] = {kIsOptional<Plain<P>>..., false};
    const auto from = places(attributes);
    std::array<Binding, N> bindings = {};
    for (std::size_t i = 0, input = 0; i < kParameters; ++i) {
      const Kind kind = from[i].kind;
      if (kind == Kind::kInput || kind == Kind::kOptionalInput || kind == Kind::kInputList ||
          kind == Kind::kNumber) {
        bindings[input++] = {kind, kNumbers[i], kOptional[i]};
      }
    }
    return bindings;
  }

  /// Of the elements of each workspace. `N` is their number.
  template <std::size_t N>
  static constexpr std::array<ElementLayout, N> element_layouts() {
    constexpr ElementLayout kLayouts[] = {kElementLayout<Plain<P>>..., ElementLayout()};
    std::array<ElementLayout, N> layouts = {};
    std::size_t count = 0;
    for (const ElementLayout& layout : kLayouts) {
      if (layout.size > 0) {
        layouts[count++] = layout;
      }
    }
    return layouts;
  }

  /// std::tuple of how the values are kept, in their order.
  using Values = decltype(std::tuple_cat(
      std::declval<
          std::conditional_t<Parameter<P>::kKind == Kind::kValue,
                             std::tuple<typename Value<Plain<P>>::Held>, std::tuple<>>>()...));
};

/// The first N types of a std::tuple.
template <class Tuple, class Indices>
struct FirstOf;
template <class Tuple, std::size_t... I>
struct FirstOf<Tuple, std::index_sequence<I...>> {
  using Type = std::tuple<std::tuple_element_t<I, Tuple>...>;
};
template <class Tuple, std::size_t N>
using First = typename FirstOf<Tuple, std::make_index_sequence<N>>::Type;

/// The value of an input for a parameter that only refers to it: lives as long as the call.
template <class View>
struct ViewedNumber {
  explicit ViewedNumber(const Slot& slot) {
    if constexpr (kIsOptional<View>) {
      if (!slot.is_none()) {
        held = number_as<typename Held::value_type>(slot);
      }
    } else {
      held = number_as<Held>(slot);
    }
  }
  operator View() const { return Value<View>::get(held); }  // NOLINT(*-explicit-*)

  using Held = typename Value<View>::Held;
  Held held{};
};

/// The argument for a parameter of type P; `AttributeTuple` is what the call's instance keeps.
template <class P, class AttributeTuple, Kind kind, int index>
decltype(auto) argument(const Arguments& arguments) {
  if constexpr (kind == Kind::kAttribute) {
    return Value<Plain<P>>::get(
        std::get<index>(*static_cast<const AttributeTuple*>(arguments.instance->attributes())));
  } else if constexpr (kind == Kind::kNumber) {
    static_assert(Value<Plain<P>>::kNumber != NumberType::kNone,
                  "aten_bridge: only bool, int64_t, double, at::Scalar and std::optional of these "
                  "are read from an input; a parameter of another type takes an attribute: add "
                  "aten_bridge::attr(\"name\") for it.");
    using Held = typename Value<Plain<P>>::Held;
    const Slot& slot = arguments.input(index).slot;
    if constexpr (!std::is_same_v<Held, Plain<P>>) {  // a view of the value
      return ViewedNumber<Plain<P>>{slot};
    } else if constexpr (kIsOptional<Plain<P>>) {
      return slot.is_none() ? Held() : Held(number_as<typename Held::value_type>(slot));
    } else {
      return number_as<Held>(slot);
    }
  } else {
    return Parameter<P>::get(arguments, index);
  }
}

//===----------------------------------------------------------------------===//
// Options of a kernel
//===----------------------------------------------------------------------===//

/// aten_bridge::meta(function) and aten_bridge::meta().
template <class F>
struct Meta {
  F function;
};
struct MetaSelf {};

/// aten_bridge::autograd().
struct Autograd {};

/// aten_bridge::data_dependent().
struct DataDependent {};

/// aten_bridge::gradient(function).
template <class F>
struct GradientOf {
  F function;
};

/// aten_bridge::workspace(elements).
template <class F>
struct WorkspaceOption {
  F elements;
};

struct ConstantElements {
  int64_t elements;
  int64_t operator()() const { return elements; }
};

/// aten_bridge::state<T(P...)>(): a T that is made from P..., once for each instance.
template <class>
struct State;
template <class T, class... P>
struct State<T(P...)> {
  static_assert(std::is_constructible_v<T, P...>,
                "aten_bridge: state<T(P...)>() needs a T that can be made from P...: name the "
                "types of the constructor's parameters.");
  using Object = T;
};

}  // namespace detail

/// Option: the next of the kernel's parameters that is a value (not a tensor) is the attribute
/// `name` of the operator. Its type is the parameter's: bool, int64_t, double, std::string,
/// at::Scalar, at::ScalarType (the dtype's name, such as "float32"), a std::vector of int64_t or
/// double, a std::vector of such vectors, at::IntArrayRef, or std::optional of these, which is
/// empty where the operator has no such attribute. The host converts nothing: an int is an error
/// where a float is expected. It has floats as float32; the kernel gets the double of the shortest
/// decimal that names the float32: 0.01 for Python's 0.01 (MindSpore 2.10).
inline constexpr detail::Attr<detail::NoDefault> attr(const char* name) { return {name, {}}; }

/// The same with a default, for operators that do not set it.
template <class T>
constexpr detail::Attr<T> attr(const char* name, T fallback) {
  return {name, std::move(fallback)};
}
template <class T>
auto attr(const char* name, std::initializer_list<T> fallback) {
  return detail::Attr<detail::DefaultList<T>>{name, {fallback.begin(), fallback.end()}};
}
template <class T>
auto attr(const char* name, std::initializer_list<std::initializer_list<T>> fallback) {
  std::vector<detail::DefaultList<T>> lists;
  for (const std::initializer_list<T>& list : fallback) {
    lists.emplace_back(list.begin(), list.end());
  }
  return detail::Attr<decltype(lists)>{name, std::move(lists)};
}
/// For `attr("name", {})`.
inline constexpr detail::Attr<detail::EmptyList> attr(const char* name, detail::EmptyList empty) {
  return {name, empty};
}

/// Option: `function` tells the shapes and dtypes of the outputs. It takes what the kernel takes,
/// without outputs and workspaces (parameters at the end may be left out), and returns what a
/// functional kernel would, but its tensors are meta tensors: they have a shape and a dtype, and
/// no data. A size that the host does not know yet is tried with several values.
template <class F>
constexpr detail::Meta<F> meta(F function) {
  return {std::move(function)};
}

/// Option: the kernel itself can be run on meta tensors. True for what is composed of ATen's
/// operators, false for what touches data. An output parameter starts as an empty tensor of the
/// dtype of the first input, for an _out function to resize.
constexpr detail::MetaSelf meta() { return {}; }

/// Option: operators in the kernel record a graph, so that the kernel can ask PyTorch's autograd
/// for gradients. Without it they run below autograd.
constexpr detail::Autograd autograd() { return {}; }

/// Option, of kernels of a plugin: the sizes of the results depend on the values of the inputs, as
/// those of nonzero do. The function returns its results; the host has room for the largest.
constexpr detail::DataDependent data_dependent() { return {}; }

/// In place of the function of ATEN_BRIDGE_EXPORT_GRAD: the gradient of `function`, for the
/// gradient of a gradient.
template <class F>
constexpr detail::GradientOf<std::decay_t<F>> gradient(F&& function) {
  return {std::forward<F>(function)};
}

/// Option: the next Workspace<T> parameter has as many elements as `elements` returns, which takes
/// what the kernel takes, without outputs and workspaces (parameters at the end may be left out),
/// or has always as many. It is asked before each call, and may be asked without data before the
/// first. The memory is the host's where it knew the size in time, else PyTorch's.
template <class F>
constexpr auto workspace(F elements) {
  if constexpr (std::is_integral_v<F>) {
    return detail::WorkspaceOption<detail::ConstantElements>{{elements}};
  } else {
    return detail::WorkspaceOption<F>{std::move(elements)};
  }
}

/// In place of the function: a kernel with state. `state<T(P...)>()` makes one T for each operator
/// of a network, in its first call, from P...: its attributes in the order of the attr options
/// and, where the last P is at::TensorList, the inputs of that first call as meta tensors, without
/// data; the list, not the tensors, ends with the constructor. T's operator() is the kernel. One
/// that is not const is called by one thread at a time.
///
/// MindSpore 2.10 has one T for each place of a graph that calls the operator, and in PyNative mode
/// one for each operator and shapes of its inputs. In graphs with dynamic shapes later calls have
/// other shapes than the first. T is destroyed at the latest when the program ends. A host that
/// calls no Init has a new T at each call.
template <class Made>
constexpr detail::State<Made> state() {
  return {};
}

namespace detail {

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

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
  using PlanType = Plan<>;
  template <class AttributeTuple>
  static void call(const F& function, const Arguments& arguments);
};

template <class R, class... P>
struct CallSignature {
  using ResultType = R;
  using PlanType = Plan<P...>;

  /// Calls `function` with arguments of its own types.
  template <class AttributeTuple, class F>
  static R call(F& function, const Arguments& arguments) {
    return spread<AttributeTuple>(function, arguments, std::index_sequence_for<P...>());
  }

 private:
  template <class AttributeTuple, class F, std::size_t... I>
  static R spread(F& function, [[maybe_unused]] const Arguments& arguments,
                  std::index_sequence<I...> /*indices*/) {
    [[maybe_unused]] static constexpr auto kPlaces =
        PlanType::places(static_cast<int>(std::tuple_size_v<AttributeTuple>));
    return function(argument<P, AttributeTuple, kPlaces[I].kind, kPlaces[I].index>(arguments)...);
  }
};

template <class R, class... P>
struct Signature<R (*)(P...)> : CallSignature<R, P...> {};
template <class R, class... P>
struct Signature<R (*)(P...) noexcept> : CallSignature<R, P...> {};

/// The same for the type of an operator().
template <class>
struct CallOperator;
template <class C, class R, class... P>
struct CallOperator<R (C::*)(P...) const> : CallSignature<R, P...> {
  static constexpr bool kConst = true;
};
template <class C, class R, class... P>
struct CallOperator<R (C::*)(P...)> : CallSignature<R, P...> {
  static constexpr bool kConst = false;
};
template <class C, class R, class... P>
struct CallOperator<R (C::*)(P...) const noexcept> : CallOperator<R (C::*)(P...) const> {};
template <class C, class R, class... P>
struct CallOperator<R (C::*)(P...) noexcept> : CallOperator<R (C::*)(P...)> {};

template <class F>
struct Signature<F, std::void_t<decltype(&F::operator())>>
    : CallOperator<decltype(&F::operator())> {
  static_assert(CallOperator<decltype(&F::operator())>::kConst,
                "aten_bridge: the operator() of a kernel is const; for what changes from call to "
                "call use aten_bridge::state<T(P...)>().");
};

/// Where a kernel's attributes go: to the parameters of its function, or to what makes its state.
template <class F>
struct Body {
  static constexpr bool kChanges = false;  // from call to call
  using Call = Signature<F>;
  using AttributePlan = typename Call::PlanType;
  using Object = char;
  static constexpr bool kHasState = false;
};
template <class T, class... P>
struct Body<State<T(P...)>> {
  using Call = CallOperator<decltype(&T::operator())>;
  using AttributePlan = Plan<P...>;
  using Object = T;
  static constexpr bool kHasState = true;
  static constexpr bool kChanges = !Call::kConst;
  static_assert(AttributePlan::count(Kind::kValue) + AttributePlan::count(Kind::kInputList) ==
                    sizeof...(P),
                "aten_bridge: the P... of state<T(P...)>() are types of attributes, and "
                "at::TensorList for the inputs of the first call.");

  template <class AttributeTuple>
  static void make(std::optional<T>& object, const Arguments& arguments) {
    make<AttributeTuple>(object, arguments, std::index_sequence_for<P...>());
  }

 private:
  template <class AttributeTuple, std::size_t... I>
  static void make(std::optional<T>& object, [[maybe_unused]] const Arguments& arguments,
                   std::index_sequence<I...> /*indices*/) {
    [[maybe_unused]] static constexpr auto kPlaces = AttributePlan::places(sizeof...(P));
    object.emplace(argument<P, AttributeTuple, kPlaces[I].kind, kPlaces[I].index>(arguments)...);
  }
};

/// How a failure reaches the host: by a std::runtime_error or by a `Status`. Chosen by each source
/// file, as ATEN_BRIDGE_CALL is, hence no business of inline functions.
enum class ErrorMode : bool { kThrow, kReturn };
#ifdef ATEN_BRIDGE_ERRORS_RETURN
#define ATEN_BRIDGE_ERROR_MODE ::aten_bridge::detail::ErrorMode::kReturn
#else
#define ATEN_BRIDGE_ERROR_MODE ::aten_bridge::detail::ErrorMode::kThrow
#endif

/// What the ordinary code below needs to know about a kernel.
struct KernelInfo {
  const char* operator_name;
  ErrorMode error_mode;
  const Binding* bindings;     // of its input parameters
  const OperandCheck* checks;  // of some of its inputs and outputs
  int check_count;
  int inputs;  // parameters; an at::TensorList counts as one
  int outputs;
  int list_begin;      // which of the inputs is the at::TensorList; -1: there is none
  bool lists_outputs;  // there is an output more for each tensor of the list
  int workspaces;
  bool takes_frame;   // the kernel gets the CallFrame as it is, and there are no bindings
  bool has_instance;  // attributes or state
  bool has_meta;
  bool is_gradient;        // the outputs are the gradients of the inputs that are tensors
  bool records;            // a graph for autograd
  bool is_data_dependent;  // the sizes of the results are known after the call
};

/// A kernel whatever its function. It stays where it is made: `info` points into it.
class KernelBase {
 public:
  KernelBase(const KernelBase&) = delete;
  KernelBase& operator=(const KernelBase&) = delete;

  KernelInfo info;

  /// Calls the kernel's function.
  virtual void invoke(const Arguments& arguments) const = 0;

  /// Reads the attributes, each once; adds those that are wrong to the report.
  virtual std::unique_ptr<Instance> make_instance(const Attributes& attributes,
                                                  Report& report) const = 0;

  /// The outputs as meta tensors, from inputs and outputs that are meta tensors.
  virtual std::vector<at::Tensor> infer(const Arguments& arguments) const = 0;

  /// Writes how many elements the workspaces have, and how large one of them is.
  virtual void measure_workspaces(const Arguments& arguments, int64_t* elements,
                                  ElementLayout* layouts) const = 0;

  /// Adds the attributes' names and types to a description in JSON.
  virtual void describe_attributes(std::string& text) const = 0;

 protected:
  explicit constexpr KernelBase(const KernelInfo& kernel_info) : info(kernel_info) {}
  ~KernelBase() = default;  // nobody deletes a kernel
};

/// What the host keeps for a kernel with attributes or state.
template <class AttributeTuple, class Object>
class KernelInstance final : public Instance {
 public:
  explicit KernelInstance(AttributeTuple values) : Instance(&values_), values_(std::move(values)) {}

  std::mutex mutex;              // of `object`
  std::optional<Object> object;  // the state, made before the first call

 private:
  AttributeTuple values_;
};

inline constexpr const char* kAsAllocated =
    " as out_shape and out_dtype or the meta function say, got ";

/// Copies what a kernel returned to the host's buffers, after a check of dtypes and shapes.
inline void copy_results(const Arguments& arguments, const at::Tensor* results, int count) {
  Report report(arguments.frame->operator_name());
  for (int i = 0; i < count; ++i) {
    const at::Tensor& result = results[i];
    const Operand& operand = arguments.output(i);
    const at::Tensor& output = operand.view;
    if (!result.defined() || result.scalar_type() != output.scalar_type() ||
        result.sizes() != output.sizes()) {
      report.add(Status::kOutput, {operand.name.text(), ": expected ", operand.slot.text(),
                                   kAsAllocated, tensor_text(result), " from the kernel"});
    } else if (result.device() != output.device()) {
      report.add(Status::kDevice,
                 {operand.name.text(), ": expected a tensor on ", output.device().str(),
                  ", got one on ", result.device().str(), " from the kernel"});
    }
  }
  report.raise_if_failed();
  for (int i = 0; i < count; ++i) {
    arguments.output(i).view.copy_(results[i]);
  }
}

/// Copies what a kernel returned to the begin of the host's buffers, which have room for more.
inline void copy_data_dependent_results(const Arguments& arguments, const at::Tensor* results,
                                        int count) {
  Report report(arguments.frame->operator_name());
  for (int i = 0; i < count; ++i) {
    const at::Tensor& result = results[i];
    const Operand& operand = arguments.output(i);
    if (!result.defined() || result.scalar_type() != operand.view.scalar_type() ||
        result.numel() > operand.slot.numel) {
      report.add(Status::kOutput,
                 {operand.name.text(), ": expected ", operand.slot.text(), " or less of it, got ",
                  tensor_text(result), " from the kernel"});
    }
  }
  report.raise_if_failed();
  for (int i = 0; i < count; ++i) {
    const at::Tensor& view = arguments.output(i).view;
    view.flatten().slice(0, 0, results[i].numel()).copy_(results[i].flatten());
    arguments.result_sizes->push_back(results[i].sizes().vec());
  }
}

/// What a kernel returns by reference is one of its output parameters; anything else would be lost.
inline void check_returned(const Arguments& arguments, const at::Tensor* const* returned,
                           int count) {
  const Operand* outputs = arguments.operands + arguments.inputs;
  for (int i = 0; i < count; ++i) {
    const bool is_output = std::any_of(outputs, outputs + arguments.outputs,
                                       [&](const Operand& o) { return &o.view == returned[i]; });
    if (!is_output) {
      throw Error(Status::kOutput,
                  std::string(arguments.frame->operator_name()) +
                      ": expected the kernel to return its output parameter, got a reference to "
                      "another tensor; return at::Tensor by value, or write the parameter");
    }
  }
}

// Defined below.
[[noreturn]] void rethrow_state_error(const char* operator_name, const std::exception& error);
template <class DeviceCall, class Host>
int run(const KernelBase& kernel, KeptOperands& kept, int nparam, void** params, int* ndims,
        int64_t** shapes, const char** dtypes, void* stream, void* extra);
std::vector<at::Tensor> meta_inputs(const Arguments& arguments);
std::vector<std::vector<int64_t>> infer_sizes(const KernelBase& kernel, const int* ndims,
                                              int64_t** shapes, void* extra);
std::vector<int> infer_types(const KernelBase& kernel, const std::vector<int>& types, void* extra);
void describe_attribute(std::string& json, bool first, const char* name, const char* type,
                        bool required);

/// How many of the checks are for inputs, or for outputs.
template <Role kRole, class CheckTuple>
inline constexpr int kCheckCount = 0;
template <Role kRole, Role... kRoles>
inline constexpr int kCheckCount<kRole, std::tuple<CheckOption<kRoles>...>> =
    (0 + ... + (kRoles == kRole ? 1 : 0));

/// A kernel as ATEN_BRIDGE_EXPORT makes it.
template <class F, class AttrTuple, class MetaTuple, class WorkspaceTuple, class CheckTuple,
          bool kRecords, bool kDataDependent>
class Kernel final : public KernelBase {
  using Call = typename Body<F>::Call;
  using PlanType = typename Call::PlanType;
  using AttributePlan = typename Body<F>::AttributePlan;
  using ResultType = typename Call::ResultType;

  static constexpr bool kHasState = Body<F>::kHasState;
  static constexpr int kAttributes = static_cast<int>(std::tuple_size_v<AttrTuple>);
  static_assert(kAttributes <= AttributePlan::count(Kind::kValue),
                "aten_bridge: there are more aten_bridge::attr options than parameters of types "
                "that attributes have.");
  static_assert(!kHasState || kAttributes == AttributePlan::count(Kind::kValue),
                "aten_bridge: each value that the state is made from is an attribute: add an "
                "aten_bridge::attr option for it.");
  using AttributeTuple = First<typename AttributePlan::Values, std::tuple_size_v<AttrTuple>>;
  using CallTuple = std::conditional_t<kHasState, std::tuple<>, AttributeTuple>;
  using InstanceType = KernelInstance<AttributeTuple, typename Body<F>::Object>;

  static constexpr std::size_t kChecks = std::tuple_size_v<CheckTuple>;

 public:
  static constexpr bool kTakesFrame = PlanType::count(Kind::kFrame) > 0;
  static constexpr bool kHasInstance = kHasState || kAttributes > 0;
  static constexpr bool kIsDataDependent = kDataDependent;
  static constexpr bool kIsGradient = false;
  static constexpr int kInputs = PlanType::inputs(std::tuple_size_v<CallTuple>);
  static constexpr int kListBegin = PlanType::list_begin(std::tuple_size_v<CallTuple>);
  static constexpr int kResults = Result<ResultType>::kCount;
  static constexpr int kOutputs = PlanType::count(Kind::kOutput) + kResults;
  static constexpr bool kListsOutputs = false;
  static constexpr bool kChanges = Body<F>::kChanges;
  static constexpr bool kSeveralOutputs = kOutputs > 1;
  static constexpr int kWorkspaces = PlanType::count(Kind::kWorkspace);
  static constexpr auto kBindings =
      PlanType::template bindings<kInputs>(std::tuple_size_v<CallTuple>);

 private:
  static_assert(!kTakesFrame || PlanType::kParameters == 1,
                "aten_bridge: a kernel over a CallFrame has no other parameter.");
  static_assert(!kTakesFrame || std::is_void_v<ResultType>,
                "aten_bridge: a kernel over a CallFrame returns void.");
  static_assert(!kTakesFrame || (std::tuple_size_v<AttrTuple> + std::tuple_size_v<MetaTuple> +
                                 std::tuple_size_v<WorkspaceTuple> + kChecks) == 0,
                "aten_bridge: a kernel over a CallFrame has no options.");
  static_assert(kResults == 0 || kOutputs == kResults,
                "aten_bridge: a kernel either writes its at::Tensor& parameters or returns its "
                "results, not both.");
  static_assert(PlanType::count(Kind::kInputList) <= 1,
                "aten_bridge: a kernel has at most one at::TensorList: nothing says where one ends "
                "and the next begins.");
  static_assert(kWorkspaces == std::tuple_size_v<WorkspaceTuple>,
                "aten_bridge: each Workspace parameter needs an aten_bridge::workspace option, and "
                "each option a parameter.");
  static_assert(std::tuple_size_v<MetaTuple> <= 1,
                "aten_bridge: a kernel has at most one aten_bridge::meta option.");
  static_assert(kTakesFrame || kCheckCount<Role::kInput, CheckTuple> <= kInputs,
                "aten_bridge: there are more aten_bridge::input options than inputs.");
  static_assert(kTakesFrame || kCheckCount<Role::kOutput, CheckTuple> <= kOutputs,
                "aten_bridge: there are more aten_bridge::output options than outputs.");

 public:
  constexpr Kernel(const char* operator_name, ErrorMode error_mode, F function, AttrTuple attrs,
                   MetaTuple meta, WorkspaceTuple workspaces, const CheckTuple& checks)
      : KernelBase({operator_name, error_mode, kBindings.data(), nullptr, static_cast<int>(kChecks),
                    kInputs, kOutputs, kListBegin, /*lists_outputs=*/false, kWorkspaces,
                    kTakesFrame, kHasInstance, std::tuple_size_v<MetaTuple> != 0,
                    /*is_gradient=*/false, kRecords, kDataDependent}),
        function_(std::move(function)),
        attrs_(std::move(attrs)),
        meta_(std::move(meta)),
        workspaces_(std::move(workspaces)),
        checks_(std::apply(
            [](const auto&... check) { return std::array<OperandCheck, kChecks>{check...}; },
            checks)) {
    info.checks = checks_.data();
  }

  const OperandCheck* checks() const { return checks_.data(); }

  void invoke(const Arguments& arguments) const override {
    with_function(arguments, [&](auto& function) {
      if constexpr (std::is_void_v<ResultType>) {
        Call::template call<CallTuple>(function, arguments);
      } else if constexpr (kResults == 0) {
        const auto returned = address_array(Call::template call<CallTuple>(function, arguments));
        check_returned(arguments, returned.data(), static_cast<int>(returned.size()));
      } else {
        const auto results = result_array(Call::template call<CallTuple>(function, arguments));
        if constexpr (kDataDependent) {
          copy_data_dependent_results(arguments, results.data(), kResults);
        } else {
          copy_results(arguments, results.data(), kResults);
        }
      }
    });
  }

  /// What the function returns.
  std::vector<at::Tensor> results(const Arguments& arguments) const {
    std::vector<at::Tensor> results;
    with_function(arguments, [&](auto& function) {
      results = to_vector(result_array(Call::template call<CallTuple>(function, arguments)));
    });
    return results;
  }

  [[gnu::cold]] std::unique_ptr<Instance> make_instance(
      [[maybe_unused]] const Attributes& attributes,
      [[maybe_unused]] Report& report) const override {
    return make_instance(attributes, report, std::make_index_sequence<kAttributes>());
  }

  [[gnu::cold]] std::vector<at::Tensor> infer(
      [[maybe_unused]] const Arguments& arguments) const override {
    if constexpr (std::is_same_v<MetaTuple, std::tuple<MetaSelf>>) {
      static_assert(!kHasState && kWorkspaces == 0,
                    "aten_bridge: a kernel with state or workspaces touches data, so that "
                    "aten_bridge::meta() needs a function: aten_bridge::meta(function).");
      if constexpr (kResults == 0) {
        Call::template call<CallTuple>(function_, arguments);
        std::vector<at::Tensor> outputs;
        outputs.reserve(kOutputs);
        for (int i = 0; i < kOutputs; ++i) {
          outputs.push_back(arguments.output(i).view);
        }
        return outputs;
      } else {
        return to_vector(result_array(Call::template call<CallTuple>(function_, arguments)));
      }
    } else if constexpr (std::tuple_size_v<MetaTuple> != 0) {
      return infer_by(std::get<0>(meta_).function, arguments);
    } else {
      throw Error(Status::kShape,
                  std::string(info.operator_name) +
                      ": expected out_shape and out_dtype where the operator is made, or a kernel "
                      "with a meta function, got neither; add aten_bridge::meta(function) or "
                      "aten_bridge::meta() to the kernel's export");
    }
  }

  void measure_workspaces([[maybe_unused]] const Arguments& arguments,
                          [[maybe_unused]] int64_t* elements,
                          [[maybe_unused]] ElementLayout* layouts) const override {
    if constexpr (kWorkspaces > 0) {
      constexpr auto kLayouts = PlanType::template element_layouts<kWorkspaces>();
      std::copy(kLayouts.begin(), kLayouts.end(), layouts);
      std::apply(
          [&](const auto&... option) {
            ((*elements++ = measure(option.elements, arguments)), ...);
          },
          workspaces_);
    }
  }

  [[gnu::cold]] void describe_attributes([[maybe_unused]] std::string& text) const override {
    describe_attributes(text, std::make_index_sequence<kAttributes>());
  }

 private:
  /// Calls `use` with the function, or with the state, which the first call makes.
  template <class Use>
  void with_function(const Arguments& arguments, const Use& use) const {
    if constexpr (kHasState) {
      auto& instance = static_cast<InstanceType&>(*arguments.instance);
      std::unique_lock<std::mutex> lock(instance.mutex);
      if (!instance.object.has_value()) {
        arguments.around_state(*arguments.frame, /*is_made=*/false);
        Arguments first;
        first.instance = &instance;
        first.list = meta_inputs(arguments);
        try {
          Body<F>::template make<AttributeTuple>(instance.object, first);
        } catch (const std::exception& error) {
          rethrow_state_error(info.operator_name, error);
        }
        arguments.around_state(*arguments.frame, /*is_made=*/true);
      }
      if constexpr (Call::kConst) {
        lock.unlock();
      }
      use(*instance.object);
    } else {
      use(function_);
    }
  }

  template <std::size_t... I>
  std::unique_ptr<Instance> make_instance([[maybe_unused]] const Attributes& attributes,
                                          [[maybe_unused]] Report& report,
                                          std::index_sequence<I...> /*indices*/) const {
    return std::make_unique<InstanceType>(
        AttributeTuple{read_attribute<std::tuple_element_t<I, AttributeTuple>>(
            attributes, std::get<I>(attrs_), report)...});
  }

  template <std::size_t... I>
  void describe_attributes([[maybe_unused]] std::string& text,
                           std::index_sequence<I...> /*indices*/) const {
    (describe_attribute(
         text, I == 0, std::get<I>(attrs_).name,
         Value<std::tuple_element_t<I, AttributeTuple>>::kText,
         kIsRequired<std::tuple_element_t<I, AttributeTuple>, std::tuple_element_t<I, AttrTuple>>),
     ...);
  }

  /// Whether a meta function, or one for a workspace, takes what this kernel takes.
  template <class G>
  static constexpr bool takes_the_same() {
    using Other = typename Signature<G>::PlanType;
    constexpr std::size_t kValues = std::min<std::size_t>(std::tuple_size_v<typename Other::Values>,
                                                          std::tuple_size_v<AttributeTuple>);
    constexpr int kOtherInputs = Other::inputs(kAttributes);
    if constexpr (Other::count(Kind::kOutput) + Other::count(Kind::kWorkspace) +
                          Other::count(Kind::kFrame) ==
                      0 &&
                  kOtherInputs <= kInputs &&
                  std::is_same_v<First<typename Other::Values, kValues>,
                                 First<AttributeTuple, kValues>>) {
      constexpr auto kOther = Other::template bindings<kOtherInputs>(kAttributes);
      for (int i = 0; i < kOtherInputs; ++i) {
        if (kOther[static_cast<std::size_t>(i)] != kBindings[static_cast<std::size_t>(i)]) {
          return false;
        }
      }
      return true;
    }
    return false;
  }

  template <class G>
  static std::vector<at::Tensor> infer_by(const G& function, const Arguments& arguments) {
    static_assert(takes_the_same<G>(),
                  "aten_bridge: a meta function takes the inputs and attributes that its kernel "
                  "takes, with the same types and in the same order, and no outputs.");
    static_assert(Result<typename Signature<G>::ResultType>::kCount == kOutputs,
                  "aten_bridge: a meta function returns one at::Tensor for each output of its "
                  "kernel, several in a std::tuple.");
    return to_vector(
        result_array(Signature<G>::template call<AttributeTuple>(function, arguments)));
  }

  template <class G>
  static int64_t measure(const G& function, const Arguments& arguments) {
    static_assert(takes_the_same<G>(),
                  "aten_bridge: the function of a workspace takes the inputs and attributes that "
                  "its kernel takes, with the same types and in the same order, and no outputs.");
    static_assert(std::is_integral_v<typename Signature<G>::ResultType>,
                  "aten_bridge: the function of a workspace returns its number of elements.");
    return static_cast<int64_t>(Signature<G>::template call<AttributeTuple>(function, arguments));
  }

  template <std::size_t N>
  static std::vector<at::Tensor> to_vector(const std::array<at::Tensor, N>& tensors) {
    return {tensors.begin(), tensors.end()};
  }

  F function_;
  AttrTuple attrs_;
  MetaTuple meta_;
  WorkspaceTuple workspaces_;
  std::array<OperandCheck, kChecks> checks_;
};

// Which of the options are of one kind; a tuple of one or of none.
template <class Option>
constexpr std::tuple<> attr_only(const Option& /*option*/) {
  return {};
}
template <class Default>
constexpr std::tuple<Attr<Default>> attr_only(const Attr<Default>& option) {
  return {option};
}
template <class Option>
constexpr std::tuple<> meta_only(const Option& /*option*/) {
  return {};
}
template <class G>
constexpr std::tuple<Meta<G>> meta_only(const Meta<G>& option) {
  return {option};
}
constexpr std::tuple<MetaSelf> meta_only(const MetaSelf& option) { return {option}; }
template <class Option>
constexpr std::tuple<> workspace_only(const Option& /*option*/) {
  return {};
}
template <class G>
constexpr std::tuple<WorkspaceOption<G>> workspace_only(const WorkspaceOption<G>& option) {
  return {option};
}
template <class Option>
constexpr std::tuple<> check_only(const Option& /*option*/) {
  return {};
}
template <Role kRole>
constexpr std::tuple<CheckOption<kRole>> check_only(const CheckOption<kRole>& option) {
  return {option};
}

/// Whether one of the options is aten_bridge::autograd().
template <class... Option>
inline constexpr bool kRecords = (false || ... || std::is_same_v<Option, Autograd>);
/// The same of aten_bridge::data_dependent().
template <class... Option>
inline constexpr bool kDataDependent = (false || ... || std::is_same_v<Option, DataDependent>);

template <class F, class... Option>
constexpr auto make_kernel(const char* operator_name, ErrorMode error_mode, F&& function,
                           const Option&... options) {
  auto attrs = std::tuple_cat(attr_only(options)...);
  auto metas = std::tuple_cat(meta_only(options)...);
  auto workspaces = std::tuple_cat(workspace_only(options)...);
  auto checks = std::tuple_cat(check_only(options)...);
  static_assert(std::tuple_size_v<decltype(attrs)> + std::tuple_size_v<decltype(metas)> +
                        std::tuple_size_v<decltype(workspaces)> +
                        std::tuple_size_v<decltype(checks)> + (kRecords<Option...> ? 1 : 0) +
                        (kDataDependent<Option...> ? 1 : 0) ==
                    sizeof...(options),
                "aten_bridge: behind the function of a kernel stand options: aten_bridge::attr, "
                "meta, workspace, input, output and autograd.");
  return Kernel<std::decay_t<F>, decltype(attrs), decltype(metas), decltype(workspaces),
                decltype(checks), kRecords<Option...>, kDataDependent<Option...>>(
      operator_name, error_mode, std::forward<F>(function), attrs, metas, workspaces, checks);
}

/// Whether no input is read as a list or a dtype.
template <std::size_t N>
constexpr bool reads_numbers_only(const std::array<Binding, N>& bindings) {
  for (const Binding& binding : bindings) {  // NOLINT: std::all_of is not constexpr in C++17
    if (binding.number >= NumberType::kInts && binding.kind == Kind::kNumber) {
      return false;
    }
  }
  return true;
}

/// The exported functions of a kernel, those of its types apart.
template <class K, class DeviceCall, class Host>
struct Exported {
  K kernel;

  static_assert(Host::kIsPlugin || K::kOutputs > 0 || K::kListsOutputs || K::kTakesFrame,
                "aten_bridge: a kernel has at least one output: an at::Tensor& parameter, which is "
                "not const, or a result. MindSpore does not call an operator that has none.");
  static_assert(Host::kIsPlugin || reads_numbers_only(K::kBindings),
                "aten_bridge: only bool, int64_t, double, at::Scalar and std::optional of these "
                "are read from an input; a parameter of another type takes an attribute: add "
                "aten_bridge::attr(\"name\") for it.");
  static_assert(!K::kIsDataDependent || (Host::kIsPlugin && K::kResults == K::kOutputs),
                "aten_bridge: aten_bridge::data_dependent() is for kernels of a plugin that return "
                "their results.");
  static_assert(!Host::kIsPlugin || !K::kHasInstance,
                "aten_bridge: a kernel of a plugin takes all its parameters from inputs: it has no "
                "attributes and no state.");

  static constexpr at::DeviceType kDevice = DeviceCall::kType;

  // MindSpore 2.10 has other types for one output than for several.
  using InferredSizes = std::conditional_t<K::kSeveralOutputs, std::vector<std::vector<int64_t>>,
                                           std::vector<int64_t>>;
  using InferredTypes = std::conditional_t<K::kSeveralOutputs, std::vector<int>, int>;

  operator const KernelBase&() const { return kernel; }  // NOLINT(*-explicit-*)

  int call(int nparam, void** params, int* ndims, int64_t** shapes, const char** dtypes,
           void* stream, void* extra) const {
    // Of all kernels of this type, which take operands of the same kinds.
    thread_local KeptByPlace kept;
    return run<DeviceCall, Host>(kernel, kept.of(extra), nparam, params, ndims, shapes, dtypes,
                                 stream, extra);
  }

  InferredSizes infer_shape(const int* ndims, int64_t** shapes, void* extra) const {
    if constexpr (K::kSeveralOutputs) {
      return infer_sizes(kernel, ndims, shapes, extra);
    } else {
      return infer_sizes(kernel, ndims, shapes, extra).front();
    }
  }

  InferredTypes infer_type(const std::vector<int>& types, void* extra) const {
    if constexpr (K::kSeveralOutputs) {
      return infer_types(kernel, types, extra);
    } else {
      return infer_types(kernel, types, extra).front();
    }
  }
};

template <class DeviceCall, class Host, class... Argument>
constexpr auto export_kernel(Argument&&... arguments) {
  using K = decltype(make_kernel(std::forward<Argument>(arguments)...));
  return Exported<K, DeviceCall, Host>{make_kernel(std::forward<Argument>(arguments)...)};
}

//===----------------------------------------------------------------------===//
// Hosts
//===----------------------------------------------------------------------===//
//
// MindSpore has two doors with the same seven arguments, which cannot be told apart at run time:
// the build of a source says for which one its kernels are.

/// ops.Custom. `extra` has attributes; how many of the operands are inputs is not told.
struct CustomHost {
  static constexpr bool kIsPlugin = false;

  static const char* advice() { return ""; }

  static void invoke(const KernelBase& kernel, const Arguments& arguments) {
    kernel.invoke(arguments);
  }

  struct Call {
    Call(CallFrame& /*frame*/, void* /*extra*/) {}
    void refine(int /*input*/, Operand& /*operand*/) const {}
  };
};

/// The op plugin (MS_OP_PLUGIN_PATH), for MindSpore's own operators: all parameters are inputs,
/// which may lie in memory in any way.
struct PluginHost {
  static constexpr bool kIsPlugin = true;

  /// What an error's text ends with. In PyNative mode MindSpore runs an operator on another thread
  /// than its caller's, unless it is told to wait, and raises the error at a later line.
  [[gnu::cold]] static const char* advice() {
    return getpid() == static_cast<pid_t>(syscall(SYS_gettid))
               ? ""
               : "; for the line that it belongs to, run the program with `python -m "
                 "aten_bridge.mint`, or call mindspore.runtime.launch_blocking() before the "
                 "first operator";
  }

  /// In the place of MindSpore's kernels the library's have to take what they take: where ATen has
  /// no kernel for a dtype, it is computed in a wider one. uint64 is exact below 2^63.
  static void invoke(const KernelBase& kernel, const Arguments& arguments) {
    try {
      kernel.invoke(arguments);
    } catch (const c10::NotImplementedError&) {
      if (!invoke_wider(kernel, arguments, wider_unsigned) &&
          !invoke_wider(kernel, arguments, wider_number)) {
        throw;
      }
    }
  }

  static at::ScalarType wider_unsigned(at::ScalarType type) {
    switch (static_cast<int>(type)) {  // which PyTorch has from 2.3 on, by these numbers
      case 27:                         // uint16
        return at::kInt;
      case 28:  // uint32
      case 29:  // uint64
        return at::kLong;
      default:
        return type;
    }
  }

  static at::ScalarType wider_number(at::ScalarType type) {
    switch (type) {
      case at::kHalf:
      case at::kBFloat16:
        return at::kFloat;
      case at::kBool:
      case at::kByte:
      case at::kChar:
      case at::kShort:
      case at::kInt:
      case at::kLong:
        return at::kDouble;
      default:
        return type;
    }
  }

  /// False if that does not help either; the operands are as they were.
  [[gnu::cold]] static bool invoke_wider(const KernelBase& kernel, const Arguments& arguments,
                                         at::ScalarType (*wider)(at::ScalarType)) {
    std::vector<std::pair<Operand*, at::Tensor>> narrow;
    bool done = false;
    try {
      for (int i = 0; i < arguments.size(); ++i) {
        Operand& operand = arguments.operands[i];
        if (operand.view.defined() &&
            wider(operand.view.scalar_type()) != operand.view.scalar_type()) {
          narrow.emplace_back(&operand, operand.view);
          operand.view = operand.view.to(wider(operand.view.scalar_type()));
        }
      }
      if (!narrow.empty() && arguments.list_begin < 0) {
        kernel.invoke(arguments);
        for (const auto& [operand, view] : narrow) {
          const bool is_written =
              operand >= arguments.operands + arguments.inputs || arguments.outputs == 0;
          if (is_written) {
            view.copy_(operand->view);
          }
        }
        done = true;
      }
    } catch (const std::exception&) {  // the first error says more
    }
    for (auto& [operand, view] : narrow) {
      operand->view = view;
    }
    return done;
  }

  class Call {
   public:
    // no_sanitize: the dynamic type of `extra` is a class of the host's, unknown here.
    __attribute__((no_sanitize("vptr"))) Call(CallFrame& frame, void* extra)
        : inputs_(static_cast<PluginInputs*>(extra)) {
      if (inputs_ == nullptr) {
        throw Error(Status::kNullPointer,
                    std::string(frame.operator_name()) +
                        ": expected `extra` to describe the inputs, as MindSpore's op plugins get "
                        "it, got null");
      }
      const std::size_t count = inputs_->count();
      if (count > static_cast<std::size_t>(frame.size())) {
        throw Error(Status::kCount,
                    join({frame.operator_name(), ": expected up to ",
                          count_text(frame.size(), "input"), ", got ", std::to_string(count)}));
      }
      layouts_.resize(count);
      for (std::size_t i = 0; i < count; ++i) {
        if (auto layout = inputs_->layout(i)) {
          layouts_[i] = *std::move(layout);
        }
      }
      frame.set_inputs(static_cast<int>(count), layouts_.data());
    }

    /// Python's floats arrive as float32: takes the decimal that they were.
    __attribute__((no_sanitize("vptr"))) void refine(int input, Operand& operand) const {
      Slot& slot = operand.slot;
      if (slot.dtype == DType::kFloat32 && slot.numel == 1 && slot.ndim == 0 &&
          inputs_->is_scalar(static_cast<std::size_t>(input))) {
        const double value = widen(load<float>(slot.data));
        std::memcpy(operand.number, &value, sizeof(value));
        slot.data = operand.number;
        slot.dtype = DType::kFloat64;
      }
    }

    /// Of the results, where they are known after the run only.
    __attribute__((no_sanitize("vptr"))) void set_sizes(
        std::vector<std::vector<int64_t>> sizes) const {
      auto shapes = std::make_unique<PluginShapes>();
      shapes->is_known.assign(sizes.size(), true);
      shapes->sizes = std::move(sizes);
      inputs_->set_shapes(std::move(shapes));
    }

   private:
    PluginInputs* inputs_;
    c10::SmallVector<Layout, 8> layouts_;
  };
};

#ifdef ATEN_BRIDGE_MINDSPORE_PLUGIN
#define ATEN_BRIDGE_HOST ::aten_bridge::detail::PluginHost
#else
#define ATEN_BRIDGE_HOST ::aten_bridge::detail::CustomHost
#endif

/// The names of the operators that a plugin has kernels for, or of those among them whose results'
/// sizes are known after the run only.
inline std::vector<const char*>& plugin_operators(bool data_dependent) {
  static std::array<std::vector<const char*>, 2> names;
  return names[data_dependent ? 1 : 0];
}

/// Whether the user leaves the operator to MindSpore, by its name among those, between commas, of
/// the environment variable ATEN_BRIDGE_LEAVE_TO_MINDSPORE.
inline bool is_left_to_mindspore(const char* operator_name) {
  const char* const names = std::getenv("ATEN_BRIDGE_LEAVE_TO_MINDSPORE");
  return names != nullptr &&
         ("," + std::string(names) + ",").find("," + std::string(operator_name) + ",") !=
             std::string::npos;
}

inline bool add_plugin_operator(const KernelBase& kernel) {
  if (is_left_to_mindspore(kernel.info.operator_name)) {
    return false;
  }
  plugin_operators(/*data_dependent=*/false).push_back(kernel.info.operator_name);
  if (kernel.info.is_data_dependent) {
    plugin_operators(/*data_dependent=*/true).push_back(kernel.info.operator_name);
  }
  return true;
}

//===----------------------------------------------------------------------===//
// One call
//===----------------------------------------------------------------------===//

/// The check of a parameter; null if there is none.
inline const OperandCheck* find_check(const KernelInfo& kernel, Role role, int parameter) {
  if (kernel.is_gradient && role == Role::kOutput) {
    return nullptr;  // the checks are those of the forward kernel
  }
  for (int i = 0; i < kernel.check_count; ++i) {
    if (kernel.checks[i].role() == role && parameter-- == 0) {
      return &kernel.checks[i];
    }
  }
  return nullptr;
}

inline OperandName operand_name(const OperandCheck* check, Role role, int index) {
  return {role, index, check == nullptr ? nullptr : check->name()};
}

[[gnu::cold]] inline void add_count_fault(bool has_list, int inputs, int outputs,
                                          const std::string& got, const char* what_to_compare,
                                          Report& report) {
  report.add(Status::kCount,
             {"expected ", has_list ? "at least " : "", count_text(inputs, "input"), " and ",
              count_text(outputs, "output"), ", got ", got, "; compare ", what_to_compare});
}

/// Takes `count` for the number of inputs and outputs, and divides them. False, with the report,
/// if the kernel does not have as many.
inline bool take_count(const KernelInfo& kernel, int count, Arguments& arguments, Report& report) {
  const bool has_list = kernel.list_begin >= 0;
  const int fixed = kernel.inputs + kernel.outputs - (has_list ? 1 : 0);
  const int each = kernel.lists_outputs ? 2 : 1;  // slots of a tensor of the list
  if (has_list ? count < fixed || (count - fixed) % each != 0 : count != fixed) {
    add_count_fault(has_list, fixed - kernel.outputs, kernel.outputs, count_text(count, "slot"),
                    "the arguments of the call, out_shape and out_dtype with the kernel", report);
    return false;
  }
  arguments.list_begin = kernel.list_begin;
  arguments.list_size = has_list ? (count - fixed) / each : 0;
  arguments.outputs = kernel.outputs + (kernel.lists_outputs ? arguments.list_size : 0);
  arguments.inputs = count - arguments.outputs;
  return true;
}

/// The same where the host tells how many of them are inputs. A kernel without outputs writes its
/// inputs. There may be more outputs than it has: where an operator is made of others,
/// MindSpore 2.10 now and then gives one of them the outputs of all, its own first (3 in 100 calls
/// of mint.div with a rounding mode, whose part Trunc got 2).
inline bool take_counts(const KernelInfo& kernel, int inputs, int outputs, Arguments& arguments,
                        Report& report) {
  const bool has_list = kernel.list_begin >= 0;
  const int fixed = kernel.inputs - (has_list ? 1 : 0);
  if ((has_list ? inputs < fixed : inputs != fixed) || outputs < kernel.outputs) {
    add_count_fault(has_list, fixed, kernel.outputs,
                    std::to_string(inputs) + " and " + std::to_string(outputs),
                    "the kernel's parameters with MindSpore's definition of the operator", report);
    return false;
  }
  arguments.list_begin = kernel.list_begin;
  arguments.list_size = has_list ? inputs - fixed : 0;
  arguments.outputs = kernel.outputs;
  arguments.inputs = inputs;
  return true;
}

/// How many operands there are where so many are inputs.
inline int operand_count(const KernelInfo& kernel, int inputs) {
  const int listed = kernel.lists_outputs ? std::max(0, inputs - kernel.inputs + 1) : 0;
  return inputs + kernel.outputs + listed;
}

/// The parameter that takes input `index`; all tensors of an at::TensorList have the same.
inline int input_parameter(const Arguments& arguments, int index) {
  return arguments.list_begin < 0 || index < arguments.list_begin
             ? index
             : std::max(arguments.list_begin, index - arguments.list_size + 1);
}

inline void fill_list(Arguments& arguments) {
  for (int i = 0; i < arguments.list_size; ++i) {
    arguments.list.push_back(arguments.operands[arguments.list_begin + i].view);
  }
}

/// Adds what is wrong with an input or output for its parameter.
[[gnu::noinline]] inline void check_operand(const Binding& binding, const OperandCheck* check,
                                            CheckRun& checks, const Operand& operand,
                                            Report& report) {
  const Slot& slot = operand.slot;
  if (slot.is_none()) {
    if (!binding.optional) {
      report.add(Status::kDtype,
                 {operand.name.text(), ": expected a ",
                  binding.kind == Kind::kNumber ? "number" : "tensor", ", got None"});
    }
    return;
  }
  if (binding.kind == Kind::kNumber && !is_number(binding.number, slot)) {
    report.add(slot.numel == 1 ? Status::kDtype : Status::kShape,
               {operand.name.text(), number_fault(binding.number, slot)});
  }
  if (check != nullptr) {
    checks(*check, operand.name, slot);
  }
}

/// Whether the view of an earlier call can be pointed at other memory: nobody else has it, or a
/// tensor over the same storage, and no kernel made something else of it than of another shape.
/// (One that has got names has another key.)
inline bool can_repoint(const Operand& operand) {
  const c10::TensorImpl* impl = operand.view.unsafeGetTensorImpl();
  if (impl != operand.impl || !operand.view.defined() || operand.view.use_count() != 1 ||
      operand.view.weak_use_count() != 1) {
    return false;
  }
  const c10::Storage& storage = impl->unsafe_storage();
  return storage.unsafeGetStorageImpl() == operand.storage && storage.use_count() == 1 &&
         storage.data() == operand.data && impl->key_set() == operand.keys &&
         impl->autograd_meta() == nullptr && !impl->is_wrapped_number();
}

/// Whether the tensor lies in memory as the slot says.
inline bool has_layout(const c10::TensorImpl& tensor, const Slot& slot, at::IntArrayRef sizes) {
  if (tensor.sizes() != sizes || tensor.storage_offset() != slot.offset) {
    return false;
  }
  int64_t stride = 1;
  for (std::size_t i = sizes.size(); i-- > 0;) {
    if (tensor.strides()[i] != (slot.strides == nullptr ? stride : slot.strides[i])) {
      return false;
    }
    stride *= std::max<int64_t>(sizes[i], 1);
  }
  return true;
}

/// Whether the operand at `index` is that of the last call again, perhaps elsewhere in memory: then
/// there is nothing to check, and its view has only to be pointed there.
inline bool is_again(const CallFrame& frame, int index, const Operand& operand) {
  if (operand.dtype == DType::kNone || !can_repoint(operand)) {
    return false;
  }
  const c10::TensorImpl* impl = operand.impl;
  const c10::Storage& storage = impl->unsafe_storage();
  const int64_t numel = impl->numel();
  return frame.is_dense(index, operand.dtype, impl->sizes().data(),
                        static_cast<int>(impl->dim())) &&
         (numel == 0 || frame.data(index) != nullptr) && impl->is_contiguous() &&
         impl->storage_offset() == 0 &&
         storage.nbytes() == static_cast<std::size_t>(numel) * dtype_itemsize(operand.dtype) &&
         impl->dtype() == c10::scalarTypeToTypeMeta(scalar_type(operand.dtype));
}

/// The slot of an operand that is_again(): what its view is like, at this call's memory.
inline void renew(const CallFrame& frame, int index, Operand& operand) {
  operand.slot = {frame.data(index),     frame.sizes(index), static_cast<int>(operand.impl->dim()),
                  operand.impl->numel(), operand.dtype,
                  /*strides=*/nullptr,
                  /*offset=*/0};
}

/// Points the storage of the operand's view at its memory.
inline void repoint(Operand& operand, c10::Device device) {
  if (operand.data != operand.slot.data) {
    operand.data = operand.slot.data;
    operand.view.unsafeGetTensorImpl()
        ->unsafe_storage()
        .unsafeGetStorageImpl()
        ->set_data_ptr_noswap(c10::DataPtr(operand.slot.data, device));
  }
}

/// Points the operand's view at its memory, or makes a new one.
template <bool kMayBeStrided>
[[gnu::noinline]] void set_view(Operand& operand, c10::Device device, c10::Allocator* allocator,
                                Report& report) {
  const Slot& slot = operand.slot;
  const at::ScalarType type = scalar_type(slot.dtype);
  if (type == at::ScalarType::Undefined || !can_repoint(operand) ||
      operand.impl->device() != device) {
    operand.view = make_view<kMayBeStrided>(slot, operand.name, device, allocator, report);
    operand.impl = operand.view.unsafeGetTensorImpl();
    if (operand.view.defined()) {
      operand.storage = operand.impl->unsafe_storage().unsafeGetStorageImpl();
      operand.keys = operand.impl->key_set();
    }
    operand.data = slot.data;
    operand.dtype = operand.view.defined() ? slot.dtype : DType::kNone;
    return;
  }
  operand.dtype = slot.dtype;
  c10::TensorImpl* impl = operand.view.unsafeGetTensorImpl();
  c10::StorageImpl* storage = impl->unsafe_storage().unsafeGetStorageImpl();
  repoint(operand, device);
  storage->set_nbytes(slot_bytes(slot));
  const caffe2::TypeMeta meta = c10::scalarTypeToTypeMeta(type);
  if (impl->dtype() != meta) {
    impl->set_storage_and_dtype(c10::Storage(impl->unsafe_storage()), meta);
  }
  const at::IntArrayRef sizes(slot.sizes, static_cast<std::size_t>(slot.ndim));
  if (!has_layout(*impl, slot, sizes)) {
    impl->set_storage_offset(slot.offset);
    if (!kMayBeStrided || slot.strides == nullptr) {
      impl->set_sizes_contiguous(sizes);
    } else {
      impl->set_sizes_and_strides(sizes, at::IntArrayRef(slot.strides, sizes.size()));
    }
  }
}

/// Fills the operands from the call; adds to the report all that are wrong.
template <class Host, class DeviceCall>
void bind_operands(const KernelInfo& kernel, const CallFrame& frame,
                   const typename Host::Call& host, DeviceCall& device, Arguments& arguments,
                   Report& report) {
  CheckRun checks(report);
  constexpr Binding kOutputBinding;
  const int size = arguments.size();
  for (int i = 0; i < size; ++i) {
    const bool is_input = i < arguments.inputs;
    const Role role = is_input ? Role::kInput : Role::kOutput;
    const int parameter = is_input ? input_parameter(arguments, i) : i - arguments.inputs;
    const OperandCheck* check =
        kernel.check_count == 0 ? nullptr : find_check(kernel, role, parameter);
    Operand& operand = arguments.operands[i];
    operand.name = operand_name(check, role, is_input ? i : parameter);
    const Binding& binding = is_input ? kernel.bindings[parameter] : kOutputBinding;
    const bool is_number = binding.kind == Kind::kNumber;
    operand.is_again = !is_number && check == nullptr && is_again(frame, i, operand);
    if (operand.is_again) {
      renew(frame, i, operand);
      device.locate(operand.slot, operand.name, report);
      continue;
    }
    if (!frame.read(i, operand.name, operand.slot, report) ||
        !(is_number ? device.fetch(operand.slot, operand.number, operand.name, report)
                    : device.locate(operand.slot, operand.name, report))) {
      continue;
    }
    if (is_number) {
      host.refine(i, operand);
    }
    if (operand.slot.is_none() || is_number || check != nullptr) {
      check_operand(binding, check, checks, operand, report);
    }
  }
  report.raise_if_failed();
  device.enter();
  for (int i = 0; i < size; ++i) {
    Operand& operand = arguments.operands[i];
    if (operand.is_again && operand.impl->device() == device.device()) {
      repoint(operand, device.device());
      continue;
    }
    const bool is_fetched = operand.slot.data == operand.number;
    set_view<Host::kIsPlugin>(operand, is_fetched ? c10::Device(at::kCPU) : device.device(),
                              DeviceCall::allocator(), report);
  }
  report.raise_if_failed();
  fill_list(arguments);
}

/// The bytes of workspace `index`; throws `Error` if they are not to be had.
inline std::size_t workspace_bytes(const KernelInfo& kernel, int index, int64_t elements,
                                   const ElementLayout& layout) {
  int64_t bytes = 0;
  if (elements < 0 || __builtin_mul_overflow(elements, static_cast<int64_t>(layout.size), &bytes) ||
      __builtin_add_overflow(bytes, static_cast<int64_t>(layout.slack), &bytes)) {
    throw Error(Status::kShape, join({kernel.operator_name, ": workspace ", std::to_string(index),
                                      ": expected a size from 0 to 2^63 bytes, got ",
                                      count_text(elements, "element")}));
  }
  return static_cast<std::size_t>(bytes);
}

/// What the kernel wants to have: at each call, and before the first, for the host to provide it.
inline std::vector<std::size_t> measure_workspaces(const KernelBase& kernel,
                                                   const Arguments& arguments) {
  const auto count = static_cast<std::size_t>(kernel.info.workspaces);
  std::vector<int64_t> elements(count);
  std::vector<ElementLayout> layouts(count);
  kernel.measure_workspaces(arguments, elements.data(), layouts.data());
  std::vector<std::size_t> bytes(count);
  for (std::size_t i = 0; i < count; ++i) {
    bytes[i] = workspace_bytes(kernel.info, static_cast<int>(i), elements[i], layouts[i]);
  }
  return bytes;
}

/// The host's memory where it is large enough, PyTorch's elsewhere: the host asks for sizes once,
/// and calls with other shapes may follow.
template <class DeviceCall>
[[gnu::noinline]] std::vector<Memory> take_workspaces(const KernelBase& kernel,
                                                      const DeviceCall& device,
                                                      const Arguments& arguments) {
  const CallFrame& frame = *arguments.frame;
  const std::vector<std::size_t> bytes = measure_workspaces(kernel, arguments);
  std::vector<Memory> workspaces(bytes.size());
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const int index = static_cast<int>(i);
    workspaces[i].bytes = bytes[i];
    if (index < frame.workspace_count() && frame.workspace_bytes(index) >= bytes[i] &&
        device.reaches(frame.workspace(index))) {
      workspaces[i].data = frame.workspace(index);
    } else {
      workspaces[i].owner = DeviceCall::allocator()->allocate(bytes[i]);
      workspaces[i].data = workspaces[i].owner.get();
    }
  }
  return workspaces;
}

/// Where the tensor's first element is; null if it has no storage.
inline const void* first_element(const at::Tensor& tensor) {
  const c10::Storage& storage = tensor.unsafeGetTensorImpl()->unsafe_storage();
  return !storage ? nullptr
                  : static_cast<const char*>(storage.data()) +
                        tensor.storage_offset() * static_cast<int64_t>(tensor.itemsize());
}

/// Whether a kernel kept the contract: the result is in the host's memory, with the sizes and the
/// dtype that the host allocated it for, row-major. An alias of the view will do.
inline bool output_is_intact(const Operand& output) {
  const at::Tensor& view = output.view;
  const Slot& slot = output.slot;
  return view.defined() && view.layout() == at::kStrided &&
         view.sizes() == at::IntArrayRef(slot.sizes, static_cast<std::size_t>(slot.ndim)) &&
         view.scalar_type() == scalar_type(slot.dtype) && view.is_contiguous() &&
         (slot.numel == 0 || first_element(view) == slot.data) && !view.is_conj() && !view.is_neg();
}

/// What the kernel did to an output that is not intact.
[[gnu::cold, gnu::noinline]] inline std::string output_fault(const Operand& output) {
  const at::Tensor& view = output.view;
  const Slot& slot = output.slot;
  const std::string in_memory = ": expected the result in the host's memory, got ";
  const std::string cure = "; write with an _out function or with copy_()";
  if (view.unsafeGetTensorImpl() != output.impl) {
    return join({in_memory, "another tensor assigned to the parameter", cure});
  }
  const std::string as_allocated =
      join({": expected ", slot.text(), kAsAllocated, tensor_text(view)});
  if (view.sizes() != at::IntArrayRef(slot.sizes, static_cast<std::size_t>(slot.ndim))) {
    return as_allocated +
           " because the kernel resized it; let out_shape return the shape of the result";
  }
  if (view.scalar_type() != scalar_type(slot.dtype)) {
    return as_allocated +
           " because the kernel changed its dtype; let out_dtype return the dtype of the result";
  }
  if (slot.numel > 0 && first_element(view) != slot.data) {
    return join({in_memory, "other memory because the kernel replaced the tensor's storage", cure});
  }
  return join({": expected row-major values, got strides ",
               shape_text(view.strides().data(), static_cast<int>(view.dim())),
               view.is_conj() || view.is_neg() ? " and a pending conjugation or negation" : "",
               " because the kernel changed the tensor's layout", cure});
}

/// Throws what the kernel did to its outputs.
[[noreturn, gnu::cold, gnu::noinline]] inline void refuse_outputs(const KernelInfo& kernel,
                                                                  const Arguments& arguments) {
  Report report(kernel.operator_name);
  for (int i = 0; i < arguments.outputs; ++i) {
    const Operand& output = arguments.output(i);
    if (!output_is_intact(output)) {
      report.add(Status::kOutput, {output.name.text(), output_fault(output)});
    }
  }
  report.raise();
}

inline void check_outputs(const KernelInfo& kernel, const Arguments& arguments) {
  for (int i = 0; i < arguments.outputs; ++i) {
    if (!output_is_intact(arguments.output(i))) {
      refuse_outputs(kernel, arguments);
    }
  }
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

/// What an exception says. The C++ backtrace of PyTorch's is of use to who debugs PyTorch, whose
/// own variable asks for it; where PyTorch is imported, meta functions of some operators are in
/// Python, and throw with a traceback.
[[gnu::cold]] inline std::string exception_text(const std::exception& error) {
  if (const auto* of_pytorch = dynamic_cast<const c10::Error*>(&error)) {
    const char* show = std::getenv("TORCH_SHOW_CPP_STACKTRACES");
    const bool backtrace = show != nullptr && std::strcmp(show, "1") == 0;
    return backtrace ? of_pytorch->what() : of_pytorch->what_without_backtrace();
  }
  const std::string text = error.what() == nullptr ? "" : error.what();
  return text.substr(0, text.find("\n\nAt:\n"));
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
    const std::string text = exception_text(error);
    failure.status = text.rfind("CUDA", 0) == 0 ? Status::kCuda : Status::kAten;
    failure.text += text + operands;
    if (text.find("stream is capturing") != std::string::npos ||
        text.find("during capture") != std::string::npos ||
        text.find("graph capture") != std::string::npos) {
      failure.text +=
          "; while a CUDA stream is captured a kernel cannot wait for it: no .item(), no copy to "
          "the CPU, no result whose shape depends on values";
    }
  } catch (const std::exception& error) {
    failure.status = Status::kException;
    failure.text += exception_text(error) + operands;
  } catch (...) {
    failure.text += join({"the kernel threw an object of type ", exception_type_text(),
                          ", which is not a std::exception", operands});
  }
  return failure;
}

/// The same with the operands of the call, and `more`, and recorded for aten_bridge_last_error().
/// Does not throw: without memory for the text there is none.
[[gnu::cold, gnu::noinline]] inline Failure record_failure(const char* operator_name,
                                                           const Operand* operands, int count,
                                                           const std::string& more = {}) noexcept {
  try {
    Failure failure = describe_failure(operator_name, operands_text(operands, count));
    failure.text += more;
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

/// What the host keeps for this kernel, or, where it has called no Init (hosts before about 1.9),
/// or Init met an error, the same for this call alone.
/// no_sanitize: the dynamic type of `extra` is a class of the hosts, unknown here.
__attribute__((no_sanitize("vptr"))) inline Instance* find_instance(
    const KernelBase& kernel, void* extra, std::unique_ptr<Instance>& temporary, Report& report) {
  if (!kernel.info.has_instance) {
    return nullptr;
  }
  if (extra != nullptr && static_cast<AotExtra*>(extra)->kernel_data != nullptr) {
    return static_cast<Instance*>(static_cast<AotExtra*>(extra)->kernel_data);
  }
  temporary = kernel.make_instance(HostAttributes(extra), report);
  return temporary.get();
}

/// Takes the operands for a call, and gives them back.
class OperandsInUse {
 public:
  OperandsInUse(KeptOperands& kept, Arguments& arguments, bool keeps_views)
      : kept_(kept), arguments_(arguments), keeps_views_(keeps_views) {
    kept_.in_use = true;
    arguments_.list.swap(kept_.list);
  }
  ~OperandsInUse() {
    arguments_.list.clear();
    arguments_.list.swap(kept_.list);
    if (!keeps_views_ && arguments_.operands != nullptr) {
      for (int i = 0; i < arguments_.size(); ++i) {
        arguments_.operands[i].view.reset();
      }
    }
    kept_.in_use = false;
  }
  OperandsInUse(const OperandsInUse&) = delete;
  OperandsInUse& operator=(const OperandsInUse&) = delete;

 private:
  KeptOperands& kept_;
  Arguments& arguments_;
  bool keeps_views_;
};

/// A kernel without outputs writes its inputs: the host's outputs must be these.
[[gnu::cold]] inline void check_in_place(const CallFrame& frame, int inputs) {
  Report report(frame.operator_name());
  for (int i = inputs; i < frame.size(); ++i) {
    bool is_input = false;
    for (int j = 0; j < inputs; ++j) {
      is_input = is_input || frame.data(i) == frame.data(j);
    }
    if (!is_input) {
      report.add(Status::kOutput, {OperandName{Role::kOutput, i - inputs}.text(),
                                   ": expected the memory of an input, which the kernel writes ",
                                   "in place, got other memory"});
    }
  }
  report.raise_if_failed();
}

/// Gives a kernel that writes its first input the others as they were before, where these lie in
/// the same memory: ATen cannot see it, since each view has a storage of its own.
inline void separate_from_first(const Arguments& arguments) {
  const auto begin = [](const Operand& operand) {
    return static_cast<const char*>(operand.slot.data) +
           operand.slot.offset * static_cast<int64_t>(dtype_itemsize(operand.slot.dtype));
  };
  const auto end = [](const Operand& operand) {
    return static_cast<const char*>(operand.slot.data) + slot_bytes(operand.slot);
  };
  const Operand& first = arguments.operands[0];
  for (int i = 1; i < arguments.inputs; ++i) {
    Operand& other = arguments.operands[i];
    if (!first.view.defined() || !other.view.defined() || begin(other) >= end(first) ||
        begin(first) >= end(other)) {
      continue;
    }
    if (begin(other) != begin(first) || other.view.sizes() != first.view.sizes() ||
        other.view.strides() != first.view.strides()) {
      other.view = other.view.clone();
    }
  }
}

/// Takes the numbers of inputs and outputs as the host tells them.
template <class Host>
bool take_operands(const KernelInfo& kernel, const CallFrame& frame, Arguments& arguments,
                   Report& report) {
  if constexpr (Host::kIsPlugin) {
    const int inputs = frame.input_count();
    if (!take_counts(kernel, inputs, frame.size() - inputs, arguments, report)) {
      return false;
    }
    if (kernel.outputs == 0) {
      check_in_place(frame, inputs);
    }
    return true;
  } else {
    return take_count(kernel, frame.size(), arguments, report);
  }
}

/// One call of a kernel from one of the host.
template <class DeviceCall, class Host>
int run(const KernelBase& kernel, KeptOperands& kept, int nparam, void** params, int* ndims,
        int64_t** shapes, const char** dtypes, void* stream, void* extra) {
  if (kept.in_use) {  // a kernel that calls itself, or another of its type
    KeptOperands nested;
    return run<DeviceCall, Host>(kernel, nested, nparam, params, ndims, shapes, dtypes, stream,
                                 extra);
  }
  const KernelInfo& info = kernel.info;
  Arguments arguments;
  int bound = 0;
  try {
    check_pytorch(info.operator_name);
    CallFrame frame(info.operator_name, nparam, params, ndims, shapes, dtypes, stream, extra);
    const KernelScope scope(info.records);
    DeviceCall device(frame, info.records);
    const typename Host::Call host(frame, extra);
    // What autograd records is over when the call is.
    const OperandsInUse in_use(kept, arguments, /*keeps_views=*/!info.records);
    arguments.frame = &frame;
    arguments.around_state = &DeviceCall::around_state;
    std::unique_ptr<Instance> temporary;
    std::vector<Memory> workspaces;
    if (info.takes_frame) {
      locate_slots(frame, device, /*indices=*/nullptr);
      device.enter();
    } else {
      Report report(info.operator_name);
      arguments.instance = find_instance(kernel, extra, temporary, report);
      if (!take_operands<Host>(info, frame, arguments, report)) {
        report.raise_if_failed();
      }
      if (kept.operands.size() != static_cast<std::size_t>(arguments.size())) {  // as a rule not
        kept.operands.resize(static_cast<std::size_t>(arguments.size()));
      }
      arguments.operands = kept.operands.data();
      bind_operands<Host>(info, frame, host, device, arguments, report);
      bound = arguments.size();
      if constexpr (Host::kIsPlugin) {
        if (info.outputs == 0 && arguments.inputs > 1) {
          separate_from_first(arguments);
        }
      }
      if (info.workspaces > 0) {
        workspaces = take_workspaces(kernel, device, arguments);
        arguments.workspaces = workspaces.data();
      }
    }
    std::vector<std::vector<int64_t>> sizes;
    arguments.result_sizes = &sizes;
    Host::invoke(kernel, arguments);
    device.finish();
    check_outputs(info, arguments);
    if constexpr (Host::kIsPlugin) {
      if (info.is_data_dependent) {
        host.set_sizes(std::move(sizes));
      }
    }
    return static_cast<int>(Status::kOk);
  } catch (...) {
    return hand_over(record_failure(info.operator_name, kept.operands.data(), bound,
                                    DeviceCall::leftover() + Host::advice()),
                     info.error_mode);
  }
}

//===----------------------------------------------------------------------===//
// Shapes before a call
//===----------------------------------------------------------------------===//
//
// A meta function sees tensors that have a shape and a dtype and no data. Hosts do not always know
// these yet. What is not known is tried: a result that is the same whatever is put in its place is
// known, one that differs is not.

/// Sizes of an output parameter before the kernel: empty, so that an _out function resizes it, and
/// nobody else's. One that only writes, as copy_() does, leaves them.
inline constexpr std::array<int64_t, 12> kUnwritten = {};

constexpr int64_t kUnknownSize = -1;
constexpr int64_t kUnknownRank = -2;  // a shape of this size alone (MindSpore 2.10)

/// What is known of an input before a call.
struct KnownInput {
  alignas(16) std::array<double, 2> value = {};  // of a number, in the first bytes
  std::vector<int64_t> sizes = {kUnknownRank};
  DType dtype = DType::kNone;  // where `typed` is false, a guess or kNone
  bool typed = false;          // whether the dtype is known; with kNone it is Python's None
  bool has_value = false;
  bool is_number = false;  // whether the kernel reads a number from it

  bool is_none() const { return typed && dtype == DType::kNone; }
  bool has_rank() const { return sizes.size() != 1 || sizes[0] != kUnknownRank; }
  bool is_known() const {
    return is_none() ||
           (typed && (!is_number || has_value) &&
            std::all_of(sizes.begin(), sizes.end(), [](int64_t size) { return size >= 0; }));
  }
};

inline std::vector<KnownInput> unknown_inputs(std::size_t count) {
  std::vector<KnownInput> inputs;
  while (inputs.size() < count) {
    inputs.emplace_back();
  }
  return inputs;
}

/// An output as a meta function tells it.
struct InferredOutput {
  DType dtype = DType::kNone;
  std::vector<int64_t> sizes;
};

template <class StorageImpl>
auto forbid_data(StorageImpl* storage, const char* text, int /*preferred*/)
    -> decltype(storage->release_data_and_set_meta_custom_data_ptr_error_msg_(std::string())) {
  storage->release_data_and_set_meta_custom_data_ptr_error_msg_(std::string(text));
}
// Older ones of PyTorch have a text of their own, 2.1 has none and crashes.
template <class StorageImpl>
auto forbid_data(StorageImpl* storage, const char* /*text*/, long /*fallback*/)  // NOLINT
    -> decltype(storage->set_throw_on_mutable_data_ptr()) {
  storage->set_throw_on_mutable_data_ptr();
}
inline void forbid_data(...) {}  // NOLINT(cert-dcl50-cpp)

inline constexpr const char* kNotResized =
    "expected an _out function that gives the output its shape, got a kernel that writes to the "
    "shape it has; give the kernel a meta function: aten_bridge::meta(function)";

/// A tensor without data; who asks for its data meets an error.
[[gnu::cold]] inline at::Tensor make_meta(at::IntArrayRef sizes, at::ScalarType type) {
  at::Tensor tensor = make_tensor(nullptr, at::kMeta, 0, c10::GetCPUAllocator(), type, sizes);
  forbid_data(tensor.storage().unsafeGetStorageImpl(),
              "expected a tensor with data, got a meta tensor", 0);
  return tensor;
}

/// The inputs of a call as meta tensors; undefined for None.
[[gnu::cold]] inline std::vector<at::Tensor> meta_inputs(const Arguments& arguments) {
  std::vector<at::Tensor> inputs;
  for (int i = 0; i < arguments.inputs; ++i) {
    const at::Tensor& view = arguments.operands[i].view;
    inputs.push_back(view.defined() ? make_meta(view.sizes(), view.scalar_type()) : at::Tensor());
  }
  return inputs;
}

/// Stand-ins for the operands of a call, from inputs of which everything is known.
class StandIns {
 public:
  /// Throws `Error` if the kernel cannot have these inputs.
  [[gnu::cold]] StandIns(const KernelInfo& kernel, Instance* instance,
                         const std::vector<KnownInput>& inputs)
      : operands_(
            static_cast<std::size_t>(operand_count(kernel, static_cast<int>(inputs.size())))) {
    Report report(kernel.operator_name);
    if (!take_count(kernel, static_cast<int>(operands_.size()), arguments, report)) {
      report.raise_if_failed();
    }
    arguments.operands = operands_.data();
    arguments.instance = instance;
    at::ScalarType first = at::kFloat;
    for (std::size_t i = inputs.size(); i-- > 0;) {
      const KnownInput& input = inputs[i];
      Operand& operand = operands_[i];
      operand.name = {Role::kInput, static_cast<int>(i)};
      operand.slot.data = const_cast<double*>(input.value.data());  // NOLINT: nobody writes to it
      operand.slot.sizes = input.sizes.data();
      operand.slot.ndim = static_cast<int>(input.sizes.size());
      operand.slot.dtype = input.dtype;
      operand.slot.numel = 1;  // of a number; nobody reads the others
      if (!input.is_none()) {
        operand.view = make_meta(input.sizes, scalar_type(input.dtype));
        first = input.is_number ? first : operand.view.scalar_type();
      }
    }
    for (int i = 0; i < arguments.outputs; ++i) {
      arguments.output(i).view = make_meta(kUnwritten, first);
    }
    fill_list(arguments);
  }

  StandIns(const StandIns&) = delete;
  StandIns& operator=(const StandIns&) = delete;

  Arguments arguments;  // refers to the operands

 private:
  std::vector<Operand> operands_;
};

[[gnu::cold]] inline std::vector<InferredOutput> infer_known(
    const KernelBase& kernel, Instance* instance, const std::vector<KnownInput>& inputs) {
  const StandIns stand_ins(kernel.info, instance, inputs);
  std::vector<InferredOutput> outputs;
  for (const at::Tensor& output : kernel.infer(stand_ins.arguments)) {
    if (output.defined() && output.sizes() == at::IntArrayRef(kUnwritten)) {
      throw Error(Status::kShape, join({kernel.info.operator_name, ": output ",
                                        std::to_string(outputs.size()), ": ", kNotResized}));
    }
    const auto* const type =
        std::find(std::begin(kScalarTypes) + 1, std::end(kScalarTypes),
                  output.defined() ? output.scalar_type() : at::ScalarType::Undefined);
    if (type == std::end(kScalarTypes)) {
      throw Error(Status::kDtype,
                  join({kernel.info.operator_name, ": output ", std::to_string(outputs.size()),
                        ": expected ", dtype_names(), ", got ", tensor_text(output),
                        " from the meta function"}));
    }
    outputs.push_back({static_cast<DType>(type - std::begin(kScalarTypes)), output.sizes().vec()});
  }
  return outputs;
}

/// The inputs with dtypes to be tried for those whose own is not known, the likeliest first: what
/// the checks say, a guess, float32, and indices, masks and complex numbers among them.
[[gnu::cold]] inline std::vector<std::vector<KnownInput>> dtype_candidates(
    std::vector<KnownInput> inputs) {
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].typed) {
      open.push_back(i);
      inputs[i].dtype = inputs[i].dtype == DType::kNone ? DType::kFloat32 : inputs[i].dtype;
      inputs[i].typed = true;
    }
  }
  std::vector<std::vector<KnownInput>> candidates = {inputs};
  const auto add = [&](const std::vector<std::size_t>& places, DType dtype) {
    candidates.push_back(inputs);
    for (const std::size_t place : places) {
      candidates.back()[place].dtype = dtype;
    }
  };
  for (const DType dtype : {DType::kInt64, DType::kBool, DType::kComplex64}) {
    for (const std::size_t place : open) {
      add({place}, dtype);
    }
    if (open.size() > 1) {
      add(open, dtype);
    }
  }
  for (std::size_t i = 0; i < open.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      add({open[i], open[j]}, DType::kInt64);
    }
  }
  return candidates;
}

/// What may be put in the place of what is not known, sizes and numbers: two that most operators
/// take and many numbers divide, small ones, and sizes of the other inputs, which may have to
/// agree. Not 0: meta functions divide by sizes.
[[gnu::cold]] inline std::vector<int64_t> size_candidates(const std::vector<KnownInput>& inputs) {
  std::vector<int64_t> candidates = {60, 120, 1, 2, 3};
  for (const KnownInput& input : inputs) {
    for (const int64_t size : input.sizes) {
      if (size > 0 && std::find(candidates.begin(), candidates.end(), size) == candidates.end()) {
        candidates.push_back(size);
      }
    }
  }
  return candidates;
}

/// Writes an integer as a number of the input's dtype.
[[gnu::cold]] inline void put_number(KnownInput& input, int64_t value) {
  const at::Tensor number = make_tensor(input.value.data(), at::kCPU, sizeof(input.value),
                                        /*allocator=*/nullptr, scalar_type(input.dtype), {});
  number.fill_(value);
}

/// Puts `candidate` in the place of all that is not known, and `another` in the place of one: the
/// `place`th, counted from 0. False if there are not so many.
[[gnu::cold]] inline bool put_candidates(std::vector<KnownInput>& inputs, int64_t candidate,
                                         int place = -1, int64_t another = 0) {
  int count = 0;
  for (KnownInput& input : inputs) {
    for (int64_t& size : input.sizes) {
      if (size == kUnknownSize) {
        size = count++ == place ? another : candidate;
      }
    }
    if (!input.is_known()) {
      put_number(input, count++ == place ? another : candidate);
      input.has_value = true;
    }
  }
  return place < count;
}

/// What is the same in both.
[[gnu::cold]] inline void keep_common(std::vector<InferredOutput>& outputs,
                                      const std::vector<InferredOutput>& others) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    std::vector<int64_t>& sizes = outputs[i].sizes;
    if (sizes.size() != others[i].sizes.size()) {
      sizes = {kUnknownRank};
    }
    for (std::size_t j = 0; j < sizes.size() && sizes[0] != kUnknownRank; ++j) {
      sizes[j] = sizes[j] == others[i].sizes[j] ? sizes[j] : kUnknownSize;
    }
  }
}

/// The outputs for inputs of which only sizes and numbers are unknown; nothing if the meta function
/// throws whatever is put in their place, and in `failure` what it threw first.
[[gnu::cold]] inline std::optional<std::vector<InferredOutput>> infer_over_sizes(
    const KernelBase& kernel, Instance* instance, const std::vector<KnownInput>& inputs,
    std::exception_ptr& failure) {
  std::optional<std::vector<InferredOutput>> outputs;
  int successes = 0;
  const auto add = [&](const std::vector<KnownInput>& tried) {
    try {
      const std::vector<InferredOutput> found = infer_known(kernel, instance, tried);
      if (++successes == 1) {
        outputs = found;
      } else {
        keep_common(*outputs, found);
      }
      return true;
    } catch (...) {
      failure = failure == nullptr ? std::current_exception() : failure;
      return false;
    }
  };

  std::optional<int64_t> works;
  for (const int64_t candidate : size_candidates(inputs)) {
    std::vector<KnownInput> tried = inputs;
    put_candidates(tried, candidate);
    if (add(tried) && !works.has_value()) {
      works = candidate;
    }
  }
  // One of them alone may be another: the difference of two sizes is not always 0.
  for (int place = 0; works.has_value(); ++place) {
    for (const int64_t another : {2 * *works, int64_t{1}}) {
      std::vector<KnownInput> tried = inputs;
      if (!put_candidates(tried, *works, place, another)) {
        works.reset();
        break;
      }
      add(tried);
    }
  }
  if (successes == 1) {  // which of the sizes depend on it?
    for (InferredOutput& output : *outputs) {
      std::fill(output.sizes.begin(), output.sizes.end(), kUnknownSize);
    }
  }
  return outputs;
}

/// Whether all sizes of the inputs are known, and of the outputs one is not: it depends on a
/// number.
[[gnu::cold]] inline bool depends_on_number(const std::vector<KnownInput>& inputs,
                                            const std::vector<InferredOutput>& outputs) {
  const auto is_sized = [](const std::vector<int64_t>& sizes) {
    return std::all_of(sizes.begin(), sizes.end(), [](int64_t size) { return size >= 0; });
  };
  return std::all_of(inputs.begin(), inputs.end(),
                     [&](const KnownInput& input) { return is_sized(input.sizes); }) &&
         !std::all_of(outputs.begin(), outputs.end(),
                      [&](const InferredOutput& output) { return is_sized(output.sizes); });
}

/// Adds to the report inputs that the kernel does not take, and takes guesses from its checks.
[[gnu::cold]] inline void check_known(const KernelInfo& kernel, std::vector<KnownInput>& inputs,
                                      CheckRun& checks, Report& report) {
  Arguments arguments;
  const int count = static_cast<int>(inputs.size());
  if (!take_count(kernel, operand_count(kernel, count), arguments, report)) {
    return;
  }
  for (int i = 0; i < count; ++i) {
    KnownInput& input = inputs[static_cast<std::size_t>(i)];
    const int parameter = input_parameter(arguments, i);
    const Binding& binding = kernel.bindings[parameter];
    const OperandCheck* check = find_check(kernel, Role::kInput, parameter);
    Operand operand;
    operand.name = operand_name(check, Role::kInput, i);
    operand.slot = {input.value.data(), input.sizes.data(),
                    input.has_rank() ? static_cast<int>(input.sizes.size()) : -1, 1,
                    input.typed ? input.dtype : DType::kNone};
    input.is_number = binding.kind == Kind::kNumber;
    if (input.is_number && !input.is_none() && input.has_rank()) {
      for (const int64_t size : input.sizes) {
        operand.slot.numel *= size < 0 ? 1 : size;
      }
      if (operand.slot.numel != 1) {
        report.add(Status::kShape,
                   {operand.name.text(), number_fault(binding.number, operand.slot)});
        continue;
      }
    }
    if (input.is_none() || input.has_value) {
      check_operand(binding, check, checks, operand, report);
      continue;
    }
    if (input.typed && scalar_type(input.dtype) == at::ScalarType::Undefined) {
      report.add(Status::kDtype,
                 {operand.name.text(), ": expected a dtype of this version of PyTorch, got ",
                  dtype_name(input.dtype)});
    }
    if (check != nullptr) {
      checks(*check, operand.name, operand.slot);
      if (!input.typed && input.dtype == DType::kNone) {
        input.dtype = check->dtypes().any();
      }
    }
  }
}

/// Adds to the report what the checks of the outputs say.
[[gnu::cold]] inline void check_inferred(const KernelInfo& kernel,
                                         const std::vector<InferredOutput>& outputs,
                                         CheckRun& checks) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const int index = static_cast<int>(i);
    const InferredOutput& output = outputs[i];
    const bool has_rank = output.sizes.size() != 1 || output.sizes[0] != kUnknownRank;
    if (const OperandCheck* check = find_check(kernel, Role::kOutput, index)) {
      checks(*check, operand_name(check, Role::kOutput, index),
             {nullptr, output.sizes.data(), has_rank ? static_cast<int>(output.sizes.size()) : -1,
              0, output.dtype});
    }
  }
}

/// " (inferring from input 0: float32 [-1, 2]; input 1: None)".
[[gnu::cold]] inline std::string inputs_text(const std::vector<KnownInput>& inputs) {
  std::string text;
  for (const KnownInput& input : inputs) {
    const int index = static_cast<int>(&input - inputs.data());
    text.append(text.empty() ? " (inferring from " : "; ")
        .append(OperandName{Role::kInput, index}.text())
        .append(": ");
    if (input.is_none()) {
      text += "None";
      continue;
    }
    text.append(input.typed ? dtype_name(input.dtype) : "any dtype").append(1, ' ');
    text += input.has_value ? "number"
            : input.has_rank()
                ? shape_text(input.sizes.data(), static_cast<int>(input.sizes.size()))
                : "of any rank";
  }
  return text + (inputs.empty() ? "" : ")");
}

/// Whether an error of PyTorch's is about the data of a meta tensor: each way to it has words of
/// its own, the last of them PyTorch's Python part.
[[gnu::cold]] inline bool is_about_data(const std::string& text) {
  return text.find("meta tensor") != std::string::npos ||
         text.find("aten::_local_scalar_dense") != std::string::npos ||
         text.find("data-independent implementation") != std::string::npos;
}

/// What an error of PyTorch's means to who infers shapes: the end of the text, in the author's
/// words.
[[gnu::cold]] inline std::string meta_fault(const std::string& text, const std::string& inputs) {
  if (is_about_data(text)) {
    return join(
        {"expected shapes and dtypes to be all that is needed to infer those of the outputs, got "
         "a kernel or meta function that touches a tensor's data",
         inputs, "; give the kernel a meta function that does not: aten_bridge::meta(function)"});
  }
  // An _out function would have resized the output.
  if (text.find("(0) must match") != std::string::npos ||
      text.find(shape_text(kUnwritten.data(), kUnwritten.size())) != std::string::npos) {
    return kNotResized + inputs;
  }
  for (const char* name : {"aten::", "convolution_overrideable"}) {
    const std::size_t begin = text.find(name);
    if (begin != std::string::npos && (text.find("Meta") != std::string::npos || name[0] == 'c')) {
      const std::size_t end = text.find_first_of(":' ,", begin + 6);
      return join(
          {"expected operators that tell the shapes of their results without data, got ",
           text.substr(begin, end - begin), inputs,
           "; import torch, whose Python part knows more of them, or give the kernel a meta "
           "function: aten_bridge::meta(function)"});
    }
  }
  return text + inputs;
}

/// The outputs for inputs of which something is not known. Throws what the meta function throws
/// where nothing that is put in the place of what is unknown pleases it.
[[gnu::cold]] inline std::vector<InferredOutput> infer_unknown(
    const KernelBase& kernel, Instance* instance, const std::vector<KnownInput>& inputs) {
  const bool has_ranks = std::all_of(inputs.begin(), inputs.end(), [](const KnownInput& input) {
    return input.is_none() || input.has_rank();
  });
  const std::vector<std::size_t> ranks =
      has_ranks ? std::vector<std::size_t>{0} : std::vector<std::size_t>{4, 3, 2, 1, 0, 5};
  std::exception_ptr failure;
  for (const std::vector<KnownInput>& typed : dtype_candidates(inputs)) {
    for (const std::size_t rank : ranks) {
      std::vector<KnownInput> tried = typed;
      for (KnownInput& input : tried) {
        if (!input.has_rank()) {
          input.sizes.assign(rank, kUnknownSize);
        }
      }
      if (auto outputs = infer_over_sizes(kernel, instance, tried, failure)) {
        for (InferredOutput& output : *outputs) {
          output.sizes = has_ranks ? output.sizes : std::vector<int64_t>{kUnknownRank};
        }
        return *std::move(outputs);
      }
    }
  }
  std::rethrow_exception(failure);
}

/// The outputs' dtypes, and their sizes as far as they are known.
[[gnu::cold]] inline std::vector<InferredOutput> infer(const KernelBase& kernel,
                                                       const Attributes& attributes,
                                                       std::vector<KnownInput> inputs) {
  const std::string name = kernel.info.operator_name;
  check_pytorch(kernel.info.operator_name);
  const KernelScope scope(kernel.info.records);
  Report report(kernel.info.operator_name);
  CheckRun checks(report);
  const std::unique_ptr<Instance> instance =
      kernel.info.has_instance ? kernel.make_instance(attributes, report) : nullptr;
  check_known(kernel.info, inputs, checks, report);
  report.raise_if_failed();
  const bool all_known = std::all_of(inputs.begin(), inputs.end(),
                                     [](const KnownInput& input) { return input.is_known(); });
  std::vector<InferredOutput> outputs;
  try {
    outputs = all_known ? infer_known(kernel, instance.get(), inputs)
                        : infer_unknown(kernel, instance.get(), inputs);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    const bool is_pytorchs = dynamic_cast<const c10::Error*>(&error) != nullptr;
    throw Error(is_pytorchs ? Status::kAten : Status::kException,
                join({name, ": ", meta_fault(exception_text(error), inputs_text(inputs))}));
  }
  if (depends_on_number(inputs, outputs)) {
    throw Error(Status::kShape,
                join({name, ": expected the numbers on which the shape of the output ",
                      "depends to be known before the call, got a tensor", inputs_text(inputs),
                      "; pass a Python number, make it an attribute, or give ",
                      "out_shape and out_dtype"}));
  }
  check_inferred(kernel.info, outputs, checks);
  report.raise_if_failed();
  return outputs;
}

/// Passes on the error of a state's constructor, which cannot see the data of inputs.
[[noreturn, gnu::cold]] inline void rethrow_state_error(const char* operator_name,
                                                        const std::exception& error) {
  if (!is_about_data(exception_text(error))) {
    throw;
  }
  throw Error(Status::kAten,
              std::string(operator_name) +
                  ": expected a state that is made from the shapes and dtypes of the inputs, got a "
                  "constructor that touches a tensor's data; read it in operator()");
}

//===----------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------===//

/// Which of the inputs are tensors, or may be, among those of the first `parameters`.
inline std::vector<int> tensor_inputs(const KernelInfo& kernel, const Arguments& arguments,
                                      int parameters) {
  std::vector<int> inputs;
  for (int i = 0; i < arguments.inputs; ++i) {
    const int parameter = input_parameter(arguments, i);
    if (parameter < parameters && kernel.bindings[parameter].kind != Kind::kNumber) {
      inputs.push_back(i);
    }
  }
  return inputs;
}

/// Each gradient has the dtype and shape of its input.
[[gnu::noinline]] inline void check_gradients(const KernelInfo& kernel, const Arguments& arguments,
                                              const std::vector<int>& inputs) {
  Report report(kernel.operator_name);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Operand& input = arguments.operands[inputs[i]];
    const Operand& output = arguments.output(static_cast<int>(i));
    if (!input.slot.is_none() && (output.view.scalar_type() != input.view.scalar_type() ||
                                  output.view.sizes() != input.view.sizes())) {
      report.add(Status::kOutput,
                 {output.name.text(), ": expected ", input.slot.text(), " as ", input.name.text(),
                  ", whose gradient it is, got ", output.slot.text()});
    }
  }
  report.raise_if_failed();
}

/// Throws `Error` where the function wrote its inputs, which is called twice, or where autograd
/// knows nothing of what it gives: silent zeros would be taken for gradients.
[[gnu::noinline]] inline void check_recorded(const KernelInfo& kernel, const Arguments& arguments,
                                             const std::vector<int>& inputs,
                                             const std::vector<at::Tensor>& results) {
  Report report(kernel.operator_name);
  for (int i = 0; i < arguments.inputs; ++i) {
    const Operand& input = arguments.operands[i];
    if (input.view.defined() && input.view._version() != 0) {
      report.add(Status::kAten,
                 {input.name.text(), ": expected an input that the function does not write, which ",
                  "is called twice, for the result and for the gradient, got one ",
                  "that it wrote; write to a clone() in the gradient's function"});
    }
  }
  report.raise_if_failed();
  const auto is_real = [](const at::Tensor& tensor) {
    return tensor.defined() && (tensor.is_floating_point() || tensor.is_complex());
  };
  const bool expected = std::any_of(results.begin(), results.end(), is_real) &&
                        std::any_of(inputs.begin(), inputs.end(), [&](int input) {
                          return is_real(arguments.operands[input].view);
                        });
  if (expected && std::none_of(results.begin(), results.end(), [](const at::Tensor& result) {
        return result.defined() && result.requires_grad();
      })) {
    throw Error(Status::kAten,
                std::string(kernel.operator_name) +
                    ": expected results of operators that autograd differentiates, got results "
                    "that it has no graph of, as from a loop over data or after detach(); write "
                    "the gradient by hand and export it with ATEN_BRIDGE_EXPORT");
  }
}

/// What autograd finds for each of the inputs; undefined where that is zeros. Behind the inputs of
/// the first `parameters` are the gradients of the results.
[[gnu::noinline]] inline std::vector<at::Tensor> compute_gradients(
    const KernelInfo& kernel, const Arguments& arguments, int parameters,
    const std::vector<int>& inputs, const std::vector<at::Tensor>& results, bool differentiable) {
  Report report(kernel.operator_name);
  std::vector<at::Tensor> outputs;
  std::vector<at::Tensor> given;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Operand& operand = arguments.input(parameters + static_cast<int>(i));
    const at::Tensor& result = results[i];
    if (!result.defined() || !result.requires_grad() || !operand.view.defined()) {
      continue;
    }
    if (operand.view.scalar_type() != result.scalar_type() ||
        operand.view.sizes() != result.sizes()) {
      report.add(Status::kShape,
                 {operand.name.text(), ": expected ", tensor_text(result), " as output ",
                  std::to_string(i), ", whose gradient it is, got ", operand.slot.text()});
    }
    outputs.push_back(result);
    given.push_back(operand.view);
  }
  report.raise_if_failed();

  std::vector<at::Tensor> leaves;
  for (const int input : inputs) {
    const at::Tensor& view = arguments.operands[input].view;
    if (view.defined() && view.requires_grad()) {
      leaves.push_back(view);
    }
  }
  std::vector<at::Tensor> found(leaves.size());
  if (!leaves.empty() && !outputs.empty()) {
    found = torch::autograd::grad(outputs, leaves, given, /*retain_graph=*/{}, differentiable,
                                  /*allow_unused=*/true);
  }
  std::vector<at::Tensor> gradients(inputs.size());
  std::size_t next = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const at::Tensor& view = arguments.operands[inputs[i]].view;
    if (view.defined() && view.requires_grad()) {
      gradients[i] = std::move(found[next++]);
    }
  }
  return gradients;
}

/// The gradient of a kernel that returns its results, by PyTorch's autograd. Inputs: those of the
/// kernel, then one gradient for each of its outputs, where None is a gradient of zeros. Outputs:
/// one gradient for each input that is a tensor or may be one; of integers, bools and None it is
/// zeros.
class GradientBase : public KernelBase {
 public:
  void invoke(const Arguments& arguments) const final {
    const std::vector<int> inputs = tensor_inputs(info, arguments, forward_inputs_);
    check_gradients(info, arguments, inputs);
    for (const int input : inputs) {
      const at::Tensor& view = arguments.operands[input].view;
      if (view.defined() && (view.is_floating_point() || view.is_complex())) {
        view.set_requires_grad(true);
      }
    }
    const std::vector<at::Tensor> gradients =
        differentiate(arguments, inputs, /*differentiable=*/false);
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      const at::Tensor& gradient = gradients[i];
      const at::Tensor& output = arguments.output(static_cast<int>(i)).view;
      if (!gradient.defined()) {
        output.zero_();
      } else {
        output.copy_(gradient.layout() == at::kStrided ? gradient : gradient.to_dense());
      }
    }
  }

  /// The same as tensors that can be differentiated again.
  std::vector<at::Tensor> results(const Arguments& arguments) const {
    return differentiate(arguments, tensor_inputs(info, arguments, forward_inputs_),
                         /*differentiable=*/true);
  }

  [[gnu::cold]] std::vector<at::Tensor> infer(const Arguments& arguments) const final {
    std::vector<at::Tensor> gradients;
    for (const int input : tensor_inputs(info, arguments, forward_inputs_)) {
      const at::Tensor& view = arguments.operands[input].view;
      gradients.push_back(view.defined() ? view : make_meta({0}, at::kFloat));
    }
    return gradients;
  }

 protected:
  constexpr GradientBase(int forward_inputs, bool of_function)
      : KernelBase(KernelInfo{}), forward_inputs_(forward_inputs), of_function_(of_function) {}
  ~GradientBase() = default;

  /// What the forward kernel returns.
  virtual std::vector<at::Tensor> forward(const Arguments& arguments) const = 0;

 private:
  std::vector<at::Tensor> differentiate(const Arguments& arguments, const std::vector<int>& inputs,
                                        bool differentiable) const {
    const std::vector<at::Tensor> results = forward(arguments);
    if (of_function_) {
      check_recorded(info, arguments, inputs, results);
    } else if (differentiable &&
               std::any_of(results.begin(), results.end(), [](const auto& result) {
                 return result.defined() && result.layout() != at::kStrided;
               })) {
      // PyTorch's graph of a sparse gradient does not lead to the gradient that it was made from.
      throw Error(Status::kAten, std::string(info.operator_name) +
                                     ": expected gradients that are dense, to be differentiated "
                                     "again, got a sparse one; use the function with sparse=false");
    }
    return compute_gradients(info, arguments, forward_inputs_, inputs, results, differentiable);
  }

  int forward_inputs_;  // parameters
  bool of_function_;    // not of a gradient
};

template <class Forward>
class GradientKernel final : public GradientBase {
  static_assert(Forward::kResults > 0 || Forward::kListsOutputs,
                "aten_bridge: a gradient is that of a function that returns its results; for one "
                "that writes its at::Tensor& parameters, write the gradient by hand and export it "
                "with ATEN_BRIDGE_EXPORT.");
  static_assert(!Forward::kChanges,
                "aten_bridge: a state that changes from call to call has no gradient kernel by "
                "autograd, which would have a state of its own; make operator() const, or write "
                "the gradient by hand.");
  static_assert(!Forward::kListsOutputs,
                "aten_bridge: the gradient of a function of an at::TensorList has no gradient "
                "kernel; write one by hand.");

  static constexpr bool kHasList = Forward::kListBegin >= 0;

  static constexpr int tensors() {
    int count = 0;
    for (const Binding& binding : Forward::kBindings) {
      count += binding.kind == Kind::kInput || binding.kind == Kind::kOptionalInput ? 1 : 0;
    }
    return count;
  }
  static_assert(tensors() > 0 || kHasList,
                "aten_bridge: a gradient needs an input that is a tensor.");

 public:
  static constexpr int kInputs = Forward::kInputs + Forward::kOutputs;
  static constexpr int kListBegin = Forward::kListBegin;
  static constexpr bool kListsOutputs = kHasList;
  static constexpr bool kTakesFrame = false;
  static constexpr bool kHasInstance = Forward::kHasInstance;
  static constexpr bool kIsDataDependent = false;
  static constexpr bool kIsGradient = true;
  static constexpr bool kChanges = false;
  static constexpr int kOutputs = tensors();
  static constexpr int kResults = kOutputs;
  static constexpr bool kSeveralOutputs = kOutputs > 1 || kHasList;

 private:
  static constexpr auto bindings() {
    constexpr std::size_t kForwardInputs = Forward::kInputs;
    std::array<Binding, kInputs> all = {};
    for (std::size_t i = 0; i < all.size(); ++i) {
      all[i] = i < kForwardInputs ? Forward::kBindings[i]
                                  : Binding{Kind::kInput, NumberType::kNone, /*optional=*/true};
    }
    return all;
  }

 public:
  static constexpr std::array<Binding, kInputs> kBindings = bindings();

  /// `make_forward` returns the kernel that is differentiated.
  template <class MakeForward>
  explicit constexpr GradientKernel(const MakeForward& make_forward)
      : GradientBase(Forward::kInputs, /*of_function=*/!Forward::kIsGradient),
        forward_(make_forward()) {
    info = forward_.info;
    info.bindings = kBindings.data();
    info.checks = checks();
    info.inputs = kInputs;
    info.outputs = kOutputs;
    info.lists_outputs = kListsOutputs;
    info.has_meta = true;
    info.is_gradient = true;
    info.records = true;
  }

  constexpr const OperandCheck* checks() const { return forward_.checks(); }

  [[gnu::cold]] std::unique_ptr<Instance> make_instance(const Attributes& attributes,
                                                        Report& report) const override {
    return forward_.make_instance(attributes, report);
  }

  void measure_workspaces(const Arguments& arguments, int64_t* elements,
                          ElementLayout* layouts) const override {
    forward_.measure_workspaces(arguments, elements, layouts);
  }

  [[gnu::cold]] void describe_attributes(std::string& text) const override {
    forward_.describe_attributes(text);
  }

 private:
  std::vector<at::Tensor> forward(const Arguments& arguments) const override {
    return forward_.results(arguments);
  }

  Forward forward_;
};

template <class F>
inline constexpr bool kIsGradient = false;
template <class F>
inline constexpr bool kIsGradient<GradientOf<F>> = true;

template <class F, class... Option>
constexpr auto make_gradient_kernel(const char* operator_name, ErrorMode error_mode, F&& function,
                                    const Option&... options) {
  const auto make_forward = [&] {
    if constexpr (kIsGradient<std::decay_t<F>>) {
      return make_gradient_kernel(operator_name, error_mode, std::forward<F>(function).function,
                                  options...);
    } else {
      return make_kernel(operator_name, error_mode, std::forward<F>(function), options...);
    }
  };
  return GradientKernel<decltype(make_forward())>(make_forward);
}

template <class DeviceCall, class Host, class... Argument>
constexpr auto export_gradient_kernel(Argument&&... arguments) {
  using K = decltype(make_gradient_kernel(std::forward<Argument>(arguments)...));
  return Exported<K, DeviceCall, Host>{make_gradient_kernel(std::forward<Argument>(arguments)...)};
}

//===----------------------------------------------------------------------===//
// MindSpore's hooks
//===----------------------------------------------------------------------===//

// MindSpore 2.10 passes to the infer hooks the shapes, and to another the dtypes, of those inputs
// that are tensors; not how many they are, nor where None and Python's numbers stand between them.
// aten_bridge.mindspore, the Python module, adds that as an attribute: "float32;none;#int64=3", one
// entry for each input, numbers with a # and their value where it is known, of a float32 its bits.
// Without it a kernel has to trust that there are as many inputs as it takes.
inline constexpr const char* kInputsAttribute = "aten_bridge_inputs";

// An attribute of the module's too: True where it has counted the inputs.
inline constexpr const char* kCountedAttribute = "aten_bridge_counted";

/// Splits "a;b;c".
[[gnu::cold]] inline std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(';', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

[[gnu::cold]] inline int type_id(DType dtype, const std::string& name) {
  const int id = kTypeIds[static_cast<std::size_t>(dtype)];
  if (id == 0) {
    throw Error(
        Status::kDtype,
        join({name, ": expected bool, an integer, float16, float32 or float64, got ",
              dtype_name(dtype),
              ", whose number differs between versions of MindSpore; make the operator with ",
              "aten_bridge.mindspore.kernel, or give out_dtype"}));
  }
  return id;
}

[[gnu::cold]] inline DType dtype_of_id(int id, const std::string& name) {
  for (std::size_t i = 1; i < std::size(kTypeIds); ++i) {
    if (kTypeIds[i] == id) {
      return static_cast<DType>(i);
    }
  }
  throw Error(
      Status::kDtype,
      join({name, ": expected bool, an integer, float16, float32 or float64, got MindSpore's ",
            "type ", std::to_string(id),
            ", whose number differs between its versions; make the operator with ",
            "aten_bridge.mindspore.kernel, or give out_dtype"}));
}

/// Reads one entry of `kInputsAttribute`. Says whether the hooks are told about the input.
[[gnu::cold]] inline KnownInput described_input(const std::string& entry, bool& is_tensor) {
  KnownInput input;
  const bool is_number = entry.rfind('#', 0) == 0;
  const std::size_t begin = is_number ? 1 : 0;
  const std::size_t end = std::min(entry.find('='), entry.size());
  const DTypeInfo* info = find_dtype(entry.substr(begin, end - begin));
  input.dtype = info == nullptr ? DType::kNone : info->dtype;
  input.typed = true;
  is_tensor = !is_number && !input.is_none();
  if (!is_tensor) {
    input.sizes.clear();
  }
  input.has_value = end < entry.size();
  if (input.has_value) {  // an int64; a bool's byte, and a float32, are its first bytes
    const int64_t integer = std::strtoll(entry.c_str() + end + 1, nullptr, 10);
    std::memcpy(input.value.data(), &integer, sizeof(integer));
  }
  return input;
}

/// The inputs of a kernel, and which of them the hooks are told about.
struct HookInputs {
  std::vector<KnownInput> inputs;
  std::vector<std::size_t> tensors;  // indices

  [[gnu::cold]] HookInputs(const KernelInfo& kernel, const Attributes& attributes) {
    std::string text;
    const bool described = attributes.get(kInputsAttribute, text);
    for (const std::string& entry : split(text)) {
      bool is_tensor = false;
      inputs.push_back(described_input(entry, is_tensor));
      if (is_tensor) {
        tensors.push_back(inputs.size() - 1);
      }
    }
    for (int i = 0; !described && i < kernel.inputs; ++i) {
      if (kernel.bindings[i].kind != Kind::kInput) {
        throw Error(Status::kCount,
                    std::string(kernel.operator_name) +
                        ": expected a kernel whose inputs are tensors, got one that takes None, "
                        "numbers or any number of tensors, about which MindSpore tells its infer "
                        "hooks nothing; make the operator with aten_bridge.mindspore.kernel, or "
                        "give out_shape and out_dtype");
      }
      inputs.emplace_back();
      tensors.push_back(static_cast<std::size_t>(i));
    }
    const bool several = kernel.outputs > 1 || kernel.lists_outputs;
    bool multi_output = several;
    if (attributes.get("multi_output", multi_output) && multi_output != several) {
      throw Error(
          Status::kCount,
          join({kernel.operator_name, ": expected the operator to have ",
                kernel.lists_outputs ? "several outputs" : count_text(kernel.outputs, "output"),
                ", got its attribute multi_output ", multi_output ? "True" : "False",
                "; make the operator with aten_bridge.mindspore.kernel, register its outputs, or ",
                "set the attribute"}));
    }
  }
};

/// What the last hook of this thread learned: MindSpore calls the one for shapes first, without
/// dtypes, and the one for dtypes next, without shapes.
struct HookMemory {
  const KernelBase* kernel = nullptr;
  std::vector<KnownInput> tensors;
};

inline HookMemory& hook_memory(const KernelBase& kernel) {
  thread_local HookMemory memory;
  if (memory.kernel != &kernel) {
    memory = {&kernel, {}};
  }
  return memory;
}

/// An error leaves a hook as a std::runtime_error whatever the kernel's `ErrorMode`: there is no
/// code to return, and hosts with infer hooks catch.
[[gnu::cold]] inline std::vector<std::vector<int64_t>> infer_sizes(const KernelBase& kernel,
                                                                   const int* ndims,
                                                                   int64_t** shapes,
                                                                   void* extra) try {
  const HostAttributes attributes(extra);
  HookInputs known(kernel.info, attributes);
  HookMemory& memory = hook_memory(kernel);
  if (memory.tensors.size() != known.tensors.size()) {
    memory.tensors = unknown_inputs(known.tensors.size());
  }
  for (std::size_t i = 0; i < known.tensors.size(); ++i) {
    KnownInput& input = known.inputs[known.tensors[i]];
    input.sizes.assign(shapes[i], shapes[i] + (shapes[i] == nullptr ? 0 : ndims[i]));
    if (!input.typed) {
      input.dtype = memory.tensors[i].dtype;  // of the call before: a guess
    }
    memory.tensors[i].sizes = input.sizes;
  }
  std::vector<std::vector<int64_t>> sizes;
  for (InferredOutput& output : infer(kernel, attributes, std::move(known.inputs))) {
    sizes.push_back(std::move(output.sizes));
  }
  return sizes;
} catch (...) {
  throw std::runtime_error(record_failure(kernel.info.operator_name, nullptr, 0).text);
}

[[gnu::cold]] inline std::vector<int> infer_types(const KernelBase& kernel,
                                                  const std::vector<int>& types, void* extra) try {
  const char* name = kernel.info.operator_name;
  const HostAttributes attributes(extra);
  HookInputs known(kernel.info, attributes);
  if (types.size() != known.tensors.size()) {
    throw Error(
        Status::kCount,
        join({name, ": expected ", count_text(static_cast<int64_t>(known.tensors.size()), "tensor"),
              ", got ", std::to_string(types.size())}));
  }
  HookMemory& memory = hook_memory(kernel);
  if (memory.tensors.size() != types.size()) {
    memory.tensors = unknown_inputs(types.size());
  }
  for (std::size_t i = 0; i < types.size(); ++i) {
    KnownInput& input = known.inputs[known.tensors[i]];
    const OperandName operand{Role::kInput, static_cast<int>(known.tensors[i])};
    input.dtype = dtype_of_id(types[i], join({name, ": ", operand.text()}));
    input.typed = true;
    input.sizes = memory.tensors[i].sizes;
    memory.tensors[i].dtype = input.dtype;
  }
  std::vector<int> ids;
  for (const InferredOutput& output : infer(kernel, attributes, std::move(known.inputs))) {
    const OperandName operand{Role::kOutput, static_cast<int>(ids.size())};
    ids.push_back(type_id(output.dtype, join({name, ": ", operand.text()})));
  }
  return ids;
} catch (...) {
  throw std::runtime_error(record_failure(kernel.info.operator_name, nullptr, 0).text);
}

/// Prepares what the host keeps for the kernel: its attributes, and how much memory its workspaces
/// take. Leaves errors alone, since the host would drop their text: the first call meets them
/// again. Keeps no shape, since one Init may serve calls of several, and sees -1 for a size and -2
/// for a rank that are not known yet.
///
/// no_sanitize: the dynamic type of `extra` is a class of the host's, unknown here.
[[gnu::cold]] __attribute__((no_sanitize("vptr"))) inline int init(const KernelBase& kernel,
                                                                   const int* ndims,
                                                                   int64_t** shapes,
                                                                   const char** dtypes,
                                                                   void* extra) noexcept {
  const KernelInfo& info = kernel.info;
  if (extra == nullptr || !(info.has_instance || info.workspaces > 0)) {
    return 0;
  }
  try {
    auto* host = static_cast<AotExtra*>(extra);
    check_pytorch(info.operator_name);
    const KernelScope scope(info.records);
    Report report(info.operator_name);
    if (info.has_instance && host->kernel_data == nullptr) {
      std::unique_ptr<Instance> instance = kernel.make_instance(HostAttributes(extra), report);
      report.raise_if_failed();
      host->kernel_data = instance.release();
    }
    // The host does not say how many inputs there are.
    bool is_counted = false;
    if (info.workspaces > 0 && info.list_begin < 0 &&
        HostAttributes(extra).get(kCountedAttribute, is_counted)) {
      std::vector<KnownInput> inputs = unknown_inputs(static_cast<std::size_t>(info.inputs));
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        const DTypeInfo* dtype = dtypes[i] == nullptr ? nullptr : find_dtype(dtypes[i]);
        inputs[i].sizes.assign(shapes[i], shapes[i] + (shapes[i] == nullptr ? 0 : ndims[i]));
        inputs[i].typed = dtype != nullptr;
        inputs[i].dtype = dtype == nullptr ? DType::kNone : dtype->dtype;
        inputs[i].is_number = info.bindings[i].kind == Kind::kNumber;
        if (!inputs[i].is_known()) {
          return 0;
        }
      }
      const StandIns stand_ins(info, static_cast<Instance*>(host->kernel_data), inputs);
      host->workspaces = measure_workspaces(kernel, stand_ins.arguments);
    }
  } catch (...) {  // NOLINT(bugprone-empty-catch)
  }
  return 0;
}

//===----------------------------------------------------------------------===//
// Python
//===----------------------------------------------------------------------===//
//
// What aten_bridge.mindspore, the Python module, asks a kernel through ctypes. It has what the
// hooks lack, all inputs with shapes and dtypes at once, and it can report errors in Python.

/// Of the structures below and of what Describe says: the module refuses another one.
constexpr int kPythonInterface = 1;

/// One input: a tensor, None, or a number. The module declares the same structures.
struct PythonInput {
  const char* text;  // as in `kInputsAttribute`
  int ndim;
  const int64_t* sizes;  // of a tensor
};

struct PythonAttribute {
  enum Type : int { kBool, kInt, kFloat, kString, kInts, kFloats, kIntLists, kFloatLists };

  const char* name;
  int type;
  int64_t size;      // of a list
  const void* data;  // int64_t (also of a bool), double, char, or the lists of a list
};

/// Attributes as Python has them; floats become float32 on the way, as in MindSpore.
class PythonAttributes final : public Attributes {
 public:
  PythonAttributes(const PythonAttribute* attributes, int count)
      : begin_(attributes), end_(attributes + count) {}

  bool has(const char* name) const override { return find(name) != end_; }
  [[gnu::cold]] bool get(const char* name, bool& value) const override {
    return read(name, PythonAttribute::kBool, value,
                [](const PythonAttribute& a) { return *static_cast<const int64_t*>(a.data) != 0; });
  }
  [[gnu::cold]] bool get(const char* name, int64_t& value) const override {
    return read(name, PythonAttribute::kInt, value,
                [](const PythonAttribute& a) { return *static_cast<const int64_t*>(a.data); });
  }
  [[gnu::cold]] bool get(const char* name, double& value) const override {
    return read(name, PythonAttribute::kFloat, value, [](const PythonAttribute& a) {
      return to_double(*static_cast<const double*>(a.data));
    });
  }
  [[gnu::cold]] bool get(const char* name, std::string& value) const override {
    return read(name, PythonAttribute::kString, value, [](const PythonAttribute& a) {
      return std::string(static_cast<const char*>(a.data), static_cast<std::size_t>(a.size));
    });
  }
  [[gnu::cold]] bool get(const char* name, std::vector<int64_t>& value) const override {
    return read(name, PythonAttribute::kInts, value, &ints);
  }
  [[gnu::cold]] bool get(const char* name, std::vector<double>& value) const override {
    return read(name, PythonAttribute::kFloats, value, &floats);
  }
  [[gnu::cold]] bool get(const char* name,
                         std::vector<std::vector<int64_t>>& value) const override {
    return read(name, PythonAttribute::kIntLists, value,
                [](const PythonAttribute& a) { return lists(a, &ints); });
  }
  [[gnu::cold]] bool get(const char* name, std::vector<std::vector<double>>& value) const override {
    return read(name, PythonAttribute::kFloatLists, value,
                [](const PythonAttribute& a) { return lists(a, &floats); });
  }

 private:
  static double to_double(double value) { return widen(static_cast<float>(value)); }

  static std::vector<int64_t> ints(const PythonAttribute& a) {
    const auto* data = static_cast<const int64_t*>(a.data);
    return {data, data + a.size};
  }

  static std::vector<double> floats(const PythonAttribute& a) {
    const auto* data = static_cast<const double*>(a.data);
    std::vector<double> values(data, data + a.size);
    std::transform(values.begin(), values.end(), values.begin(), to_double);
    return values;
  }

  template <class T>
  static std::vector<T> lists(const PythonAttribute& a, T (*list)(const PythonAttribute&)) {
    const auto* data = static_cast<const PythonAttribute*>(a.data);
    std::vector<T> values;
    std::transform(data, data + a.size, std::back_inserter(values), list);
    return values;
  }

  const PythonAttribute* find(const char* name) const {
    return std::find_if(begin_, end_,
                        [&](const PythonAttribute& a) { return std::strcmp(a.name, name) == 0; });
  }

  template <class T, class Convert>
  bool read(const char* name, int type, T& value, const Convert& convert) const {
    const PythonAttribute* found = find(name);
    if (found == end_ || found->type != type) {
      return false;
    }
    value = convert(*found);
    return true;
  }

  const PythonAttribute* begin_;
  const PythonAttribute* end_;
};

/// Appends `text` to JSON as a string.
[[gnu::cold]] inline void append_json(std::string& json, const char* text) {
  json += '"';
  for (; *text != '\0'; ++text) {
    if (static_cast<unsigned char>(*text) < ' ') {
      char escaped[8];
      std::snprintf(escaped, sizeof(escaped), "\\u%04x", static_cast<unsigned int>(*text));
      json += escaped;
    } else {
      json.append(*text == '"' || *text == '\\' ? "\\" : "").append(1, *text);
    }
  }
  json += '"';
}

/// What a kernel is, in JSON: {"interface": 1, "inputs": [["tensor", "x"], ...], "outputs": 1,
/// "meta": true, "attributes": [["negative_slope", "a float", false], ...]}, of a gradient kernel
/// "gradient": true, of one for CUDA "device": "cuda"; an input has its name from its check or "",
/// an attribute whether the operator must set it. Valid until the thread's next call.
[[gnu::cold]] inline const char* describe(const KernelBase& kernel, at::DeviceType device) {
  const KernelInfo& info = kernel.info;
  std::string text = "{\"interface\": " + std::to_string(kPythonInterface) + ", \"inputs\": [";
  for (int i = 0; i < info.inputs; ++i) {
    const Binding& binding = info.bindings[i];
    const OperandCheck* check = find_check(info, Role::kInput, i);
    text.append(i == 0 ? "[" : ", [");
    append_json(text,
                binding.kind == Kind::kInputList                                       ? "tensors"
                : binding.kind == Kind::kNumber && binding.number >= NumberType::kInts ? "value"
                : binding.kind == Kind::kNumber ? (binding.optional ? "number or None" : "number")
                                                : (binding.optional ? "tensor or None" : "tensor"));
    text += ", ";
    append_json(text, check == nullptr ? "" : check->name());
    text += ']';
  }
  text.append("], \"outputs\": ").append(std::to_string(info.outputs));
  text.append(", \"meta\": ").append(info.has_meta ? "true" : "false");
  text.append(info.is_gradient ? ", \"gradient\": true" : "");
  text.append(device == at::kCPU ? "" : R"(, "device": "cuda")");
  text.append(", \"attributes\": [");
  kernel.describe_attributes(text);
  text += "]}";
  thread_local std::string kept;
  kept = std::move(text);
  return kept.c_str();  // NOLINT(clang-analyzer-cplusplus.InnerPointer)
}

[[gnu::cold]] inline void describe_attribute(std::string& json, bool first, const char* name,
                                             const char* type, bool required) {
  json.append(first ? "[" : ", [");
  append_json(json, name);
  json += ", ";
  append_json(json, type);
  json.append(required ? ", true]" : ", false]");
}

/// In the place of a number of inputs: who asks wants to know of the attributes only.
constexpr int kAttributesAlone = -1;

/// Throws `Error` with all that is wrong with the attributes. Calls no function of the kernel's.
[[gnu::cold]] inline void check_attributes(const KernelBase& kernel, const Attributes& attributes) {
  check_pytorch(kernel.info.operator_name);
  Report report(kernel.info.operator_name);
  if (kernel.info.has_instance) {
    kernel.make_instance(attributes, report);
  }
  report.raise_if_failed();
}

/// The outputs in JSON, [["float32", [2, -1]], ...], or, with `*failed`, the text of an error.
/// Valid until the thread's next call.
[[gnu::cold]] inline const char* infer_for_python(const KernelBase& kernel,
                                                  const PythonInput* inputs, int input_count,
                                                  const PythonAttribute* attributes,
                                                  int attribute_count, int* failed) noexcept {
  thread_local std::string text;
  try {
    if (input_count == kAttributesAlone) {
      check_attributes(kernel, PythonAttributes(attributes, attribute_count));
      *failed = 0;
      return "[]";
    }
    std::vector<KnownInput> known;
    for (int i = 0; i < input_count; ++i) {
      bool is_tensor = false;
      known.push_back(described_input(inputs[i].text, is_tensor));
      if (is_tensor) {
        known.back().sizes.assign(inputs[i].sizes, inputs[i].sizes + inputs[i].ndim);
      }
    }
    text = "[";
    for (const InferredOutput& output :
         infer(kernel, PythonAttributes(attributes, attribute_count), std::move(known))) {
      text.append(text.size() == 1 ? "[" : ", [");
      append_json(text, std::string(dtype_name(output.dtype)).c_str());
      text += ", " + shape_text(output.sizes.data(), static_cast<int>(output.sizes.size())) + "]";
    }
    text += "]";
    *failed = 0;
    return text.c_str();  // NOLINT(clang-analyzer-cplusplus.InnerPointer)
  } catch (...) {
    record_failure(kernel.info.operator_name, nullptr, 0);
    *failed = 1;
    return aten_bridge_last_error();
  }
}

}  // namespace detail
}  // namespace aten_bridge

//===----------------------------------------------------------------------===//
// The export macro
//===----------------------------------------------------------------------===//

// clang warns of C functions that return C++ classes, as the infer hooks do.
#ifdef __clang__
#define ATEN_BRIDGE_RETURNS_CLASSES(...)                                                           \
  _Pragma("clang diagnostic push") _Pragma("clang diagnostic ignored \"-Wreturn-type-c-linkage\"") \
      __VA_ARGS__ _Pragma("clang diagnostic pop")
#else
#define ATEN_BRIDGE_RETURNS_CLASSES(...) __VA_ARGS__
#endif

/// ATEN_BRIDGE_EXPORT(Name, function, options...): exports the C function `Name` that a host calls,
/// and the host's hooks. `function` is a function, a lambda or a function object, or
/// aten_bridge::state<T(P...)>(). Its parameters, in any order:
///
///   const at::Tensor&, at::Tensor          the next input
///   const std::optional<at::Tensor>&       the next input, which may be None
///   at::TensorList                         all inputs that are left for it; at most one
///   at::Tensor&                            the next output, to be written in place
///   bool, int64_t, double, at::Scalar, std::string, std::vector<int64_t> and other values
///                                          the attribute of the next aten_bridge::attr option;
///                                          when there are no more, a bool, int64_t, double or
///                                          at::Scalar is the one element of the next input, and
///                                          std::optional of these may be None
///   aten_bridge::Workspace<T>              memory, see aten_bridge::workspace
///   result at::Tensor, std::tuple<at::Tensor…>   copied to the outputs
///
/// or it takes a `const aten_bridge::CallFrame&` alone and does with the call what it likes; what
/// such a kernel does to its outputs is not checked.
///
/// Options: aten_bridge::attr, aten_bridge::meta, aten_bridge::workspace, aten_bridge::input,
/// aten_bridge::output and aten_bridge::autograd.
///
/// Where ATEN_BRIDGE_MINDSPORE_PLUGIN is defined, the kernel is that of MindSpore's own operator
/// `Name`, and takes the parameters of that operator in their order: tensors, which may have
/// strides and an offset, numbers, and also lists (at::IntArrayRef, std::vector<double>),
/// std::optional of these, and dtypes (at::ScalarType). One without outputs writes its first input
/// in place. There are no attributes and no state; aten_bridge::data_dependent is an option more.
///
/// At namespace scope, once for each `Name` of a library. A call that fails throws a
/// std::runtime_error, or, where ATEN_BRIDGE_ERRORS_RETURN is defined before the header is
/// included, prints the text and returns a `Status`; either way `aten_bridge_last_error()` has it.
#define ATEN_BRIDGE_EXPORT(Name, ...) ATEN_BRIDGE_EXPORT_AS(Name, export_kernel, __VA_ARGS__)

/// ATEN_BRIDGE_EXPORT_GRAD(NameGrad, function, options...): exports the gradient kernel of a
/// function that returns its results, computed by PyTorch's autograd: it calls the function once
/// more, and differentiates what it did. `function` and the options are those of its
/// ATEN_BRIDGE_EXPORT; what they say of outputs has no meaning here.
///
/// Inputs: the inputs of `function`, then one gradient for each of its outputs, of that output's
/// dtype and shape (None: zeros). Outputs: one gradient for each input that is a tensor or may be
/// one, in their order, each tensor of an at::TensorList among them; of that input's dtype and
/// shape, zeros for integers, for bools, and where the result does not depend on the input; for
/// None a tensor of any shape, filled with zeros. Numbers have no gradient. Complex gradients
/// follow PyTorch's convention.
///
/// The inputs' memory is not written, and nothing of the graph is left after the call. The gradient
/// of a gradient is ATEN_BRIDGE_EXPORT_GRAD(NameGradGrad, aten_bridge::gradient(function), ...).
#define ATEN_BRIDGE_EXPORT_GRAD(Name, ...) \
  ATEN_BRIDGE_EXPORT_AS(Name, export_gradient_kernel, __VA_ARGS__)

#define ATEN_BRIDGE_EXPORT_AS(Name, make, ...)                                                    \
  /* Bound before `Name` is declared, which may also be the name of the function. */              \
  static const auto aten_bridge_kernel_##Name =                                                   \
      ::aten_bridge::detail::make<ATEN_BRIDGE_CALL, ATEN_BRIDGE_HOST>(                            \
          #Name, ATEN_BRIDGE_ERROR_MODE, __VA_ARGS__);                                            \
  extern "C" ATEN_BRIDGE_PUBLIC int Name(int nparam, void** params, int* ndims, int64_t** shapes, \
                                         const char** dtypes, void* stream, void* extra) {        \
    return aten_bridge_kernel_##Name.call(nparam, params, ndims, shapes, dtypes, stream, extra);  \
  }                                                                                               \
  ATEN_BRIDGE_EXPORT_HOOKS(Name)                                                                  \
  static_assert(true, "") /* takes the semicolon */

#ifdef ATEN_BRIDGE_MINDSPORE_PLUGIN

/// What the plugin's kernel is, for tests.
#define ATEN_BRIDGE_EXPORT_HOOKS(Name)                                         \
  extern "C" ATEN_BRIDGE_PUBLIC const char* Name##Describe() {                 \
    return ::aten_bridge::detail::describe(aten_bridge_kernel_##Name,          \
                                           aten_bridge_kernel_##Name.kDevice); \
  }                                                                            \
  [[maybe_unused]] static const bool aten_bridge_is_added_##Name =             \
      ::aten_bridge::detail::add_plugin_operator(aten_bridge_kernel_##Name);

#else

/// MindSpore's hooks, before the first call and for shapes and dtypes, and those of
/// aten_bridge.mindspore, the Python module.
#define ATEN_BRIDGE_EXPORT_HOOKS(Name)                                                        \
  ATEN_BRIDGE_RETURNS_CLASSES(                                                                \
      extern "C" ATEN_BRIDGE_PUBLIC int Name##Init(int* ndims, int64_t** shapes,              \
                                                   const char** dtypes, void* extra) {        \
        return ::aten_bridge::detail::init(aten_bridge_kernel_##Name, ndims, shapes, dtypes,  \
                                           extra);                                            \
      } extern "C" ATEN_BRIDGE_PUBLIC decltype(aten_bridge_kernel_##Name)::InferredSizes      \
          Name##InferShape(int* ndims, int64_t** shapes, void* extra) {                       \
            return aten_bridge_kernel_##Name.infer_shape(ndims, shapes, extra);               \
          } extern "C" ATEN_BRIDGE_PUBLIC decltype(aten_bridge_kernel_##Name)::InferredTypes  \
              Name##InferType(std::vector<int> types, void* extra) {                          \
                return aten_bridge_kernel_##Name.infer_type(types, extra);                    \
              } /* for aten_bridge.mindspore, the Python module */                            \
      extern "C" ATEN_BRIDGE_PUBLIC const char* Name##Describe() {                            \
        return ::aten_bridge::detail::describe(aten_bridge_kernel_##Name,                     \
                                               aten_bridge_kernel_##Name.kDevice);            \
      } extern "C" ATEN_BRIDGE_PUBLIC const char*                                             \
          Name##Infer(const ::aten_bridge::detail::PythonInput* inputs, int input_count,      \
                      const ::aten_bridge::detail::PythonAttribute* attributes,               \
                      int attribute_count, int* failed) {                                     \
            return ::aten_bridge::detail::infer_for_python(aten_bridge_kernel_##Name, inputs, \
                                                           input_count, attributes,           \
                                                           attribute_count, failed);          \
          })

#endif

#ifdef ATEN_BRIDGE_MINDSPORE_PLUGIN
// What MindSpore asks a plugin when it opens it: the operators that it has kernels for, and those
// of them whose results' sizes are known after the run only. Beside a plugin MindSpore's own
// kernels take views for whole tensors, unless whole_views.cpp is part of it, as
// aten_bridge_add_kernel() makes it.
extern "C" __attribute__((weak, visibility("hidden"))) void aten_bridge_make_views_whole();
extern "C" ATEN_BRIDGE_PUBLIC inline int GetRegisteredOpCount() {  // NOLINT: MindSpore's name
  if (aten_bridge_make_views_whole != nullptr) {
    aten_bridge_make_views_whole();
  }
  return static_cast<int>(aten_bridge::detail::plugin_operators(false).size());
}
extern "C" ATEN_BRIDGE_PUBLIC inline const char**
GetAllRegisteredOps() {  // NOLINT: MindSpore's name
  return aten_bridge::detail::plugin_operators(false).data();
}
extern "C" ATEN_BRIDGE_PUBLIC inline int GetComputeDependOpCount() {  // NOLINT: MindSpore's name
  return static_cast<int>(aten_bridge::detail::plugin_operators(true).size());
}
extern "C" ATEN_BRIDGE_PUBLIC inline const char**
GetAllOpPluginComputeDependOps() {  // NOLINT: MindSpore's name
  return aten_bridge::detail::plugin_operators(true).data();
}
#endif

#endif  // ATEN_BRIDGE_CORE_ONLY

#pragma GCC visibility pop
#endif  // ATEN_BRIDGE_H_

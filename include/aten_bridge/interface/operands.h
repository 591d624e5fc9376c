// Operands: the inputs, outputs and workspaces of a call, and all that a kernel's arguments are
// made of.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_INTERFACE_OPERANDS_H_
#define ATEN_BRIDGE_INTERFACE_OPERANDS_H_

#include <aten_bridge/core/operand_desc.h>
#include <aten_bridge/tensors/views.h>
#include <c10/util/SmallVector.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <type_traits>

#pragma GCC visibility push(hidden)

namespace aten_bridge {
class OperandCheck;
struct HostMessages;
}  // namespace aten_bridge

namespace aten_bridge::detail {

struct KernelDescriptor;

/// What a parameter, or a result, of a kernel is.
enum class ParameterKind : std::uint8_t {
  kTensor,          // an input
  kOptionalTensor,  // an input that may be None
  kTensorList,      // any number of inputs
  kOutput,
  kValue,      // an attribute while there are aten_bridge::attr options, then a number:
  kAttribute,  //
  kNumber,     // the one element of an input
  kWorkspace,
  kFrame,  // the host's call, raw
};

/// The values that an input can be read as; kNone for other types. Lists and dtypes are
/// inputs of few hosts; a dtype is the number of a `DType`.
enum class ScalarInputType : std::uint8_t {
  kNone,
  kBool,
  kInt,
  kReal,
  kAny,
  kInts,
  kReals,
  kDtype
};

/// Whether the value is read from one element; else it is a list or a dtype.
constexpr bool is_one_number(ScalarInputType type) {
  return type != ScalarInputType::kInts && type != ScalarInputType::kReals &&
         type != ScalarInputType::kDtype;
}

/// One input or output of a kernel.
struct ParameterInfo {
  ParameterKind kind = ParameterKind::kOutput;
  ScalarInputType number = ScalarInputType::kNone;
  bool optional = false;  // may be None

  friend constexpr bool operator!=(const ParameterInfo& a, const ParameterInfo& b) {
    return a.kind != b.kind || a.number != b.number || a.optional != b.optional;
  }
};

/// What is known of the view that an operand has.
enum class ViewState : std::uint8_t {
  kUnknown,   // there may be one, which has to be looked at
  kReusable,  // was unmodified and uniquely owned after the last call's body
  kMatched,   // the same, and this call has such an operand again
  kBound,     // made for this call, in a layout that a later one can take
};

/// One operand during a call: the host's memory and the tensor that the kernel works on.
struct Operand {
  OperandName name;
  const OperandCheck* check = nullptr;
  OperandDesc desc;  // this call's; `view` follows it in bind_operands()
  at::Tensor view;   // none of a number, which is read from the operand
  // What `view` had before the body, all written by set_view():
  const c10::TensorImpl* impl = nullptr;
  const c10::StorageImpl* storage = nullptr;
  const void* data = nullptr;
  std::size_t bytes = 0;  // the storage's size
  c10::DispatchKeySet keys;
  caffe2::TypeMeta type;
  DType dtype = DType::kNone;
  ViewState state = ViewState::kUnknown;
  bool is_borrowed = false;              // `view` has no share in its tensor, which others keep
  alignas(16) unsigned char number[16];  // the element, where it is fetched from a device
};

/// Tensors during a call; of up to four no list is allocated.
using Tensors = c10::SmallVector<at::Tensor, 4>;

class CallSiteCache;

/// A thread's cache of the operands of a kernel's calls.
class CallSites {
 public:
  ATEN_BRIDGE_INLINE CallSites();
  ATEN_BRIDGE_INLINE ~CallSites();
  CallSites(const CallSites&) = delete;
  CallSites& operator=(const CallSites&) = delete;

  CallSiteCache* const cache;
};

/// What the host keeps for one operator of a graph. A host may delete it as a class of its own
/// (MindSpore 2.10 as AotKernelData), through the destructor, which must therefore be the first
/// virtual function.
class Instance {
 public:
  explicit Instance(const void* attributes) : attributes_(attributes) {}
  virtual ~Instance() = default;
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  /// A std::tuple of their values, of the kernel's own types.
  const void* attributes() const { return attributes_; }

  /// Locked while a state that changes is in use: by each call of its function, and by a host whose
  /// results may be memory that it keeps. A function may call its own kernel.
  std::recursive_mutex mutex;

 private:
  const void* attributes_;
};

/// Memory that a kernel uses during the call.
struct Memory {
  void* data = nullptr;
  std::size_t bytes = 0;
  c10::DataPtr owner;  // where it is not the host's
};

/// The workspaces of a call; of up to two no list is allocated.
using Memories = c10::SmallVector<Memory, 2>;

/// What a kernel gets instead of an operand's memory that is not is_aligned().
struct AlignedCopy {
  [[gnu::cold, gnu::noinline]] ~AlignedCopy() = default;  // else it is in the end of each call

  void* host_data = nullptr;
  std::size_t bytes = 0;
  c10::DataPtr copy;                  // followed by the same as it was before the body
  std::unique_ptr<AlignedCopy> next;  // the same call's
};

struct Arguments;

/// What becomes of the tensors that a kernel returns. A host chooses the policy: to write into its
/// memory or to return new tensors (call/results.h), or one of the forms of
/// call/computed_results.h.
class ResultPolicy {
 public:
  ResultPolicy(const ResultPolicy&) = delete;
  ResultPolicy& operator=(const ResultPolicy&) = delete;

  /// Takes `count` results, which are moved from where that will do. Of a gradient kernel an
  /// undefined one is zeros, where the host has memory.
  virtual void take(const Arguments& arguments, at::Tensor* results, int count) const = 0;

  /// Whether the host has allocated the results, so that a kernel may write them where they are.
  const bool has_memory;

 protected:
  explicit constexpr ResultPolicy(bool host_has_memory) : has_memory(host_has_memory) {}
  ~ResultPolicy() = default;
};

/// All that a kernel's arguments are made from: those of a call, or meta tensors without data.
struct Arguments {
  Operand* operands = nullptr;  // inputs, then outputs, in the host's order
  int inputs = 0;
  int outputs = 0;
  int list_begin = -1;  // the first input that an at::TensorList takes; -1: none
  int list_size = 0;
  int bound = 0;            // how many operands an error's text tells of
  Tensors* list = nullptr;  // where the kernel has such a parameter, for its tensors
  std::unique_ptr<AlignedCopy>* copies = nullptr;  // the call's
  Instance* instance = nullptr;
  Memory* workspaces = nullptr;
  const KernelDescriptor* kernel = nullptr;
  const HostMessages* messages = nullptr;  // the calling host's
  const void* frame = nullptr;             // the host's, for a raw kernel
  void* stream = nullptr;                  // the host's
  void (*around_state)(const char* operator_name, void* stream,
                       bool is_made) = nullptr;  // the device's
  const ResultPolicy* results = nullptr;  // null: nothing is returned, as from a meta function

  /// The operand of input parameter `index`; of an at::TensorList, the first.
  Operand& input(int index) const {
    return operands[list_begin >= 0 && index > list_begin ? index + list_size - 1 : index];
  }
  Operand& output(int index) const { return operands[inputs + index]; }
  int size() const { return inputs + outputs; }

  /// The same inputs for another kernel, which has no outputs to write.
  Arguments with_kernel(const KernelDescriptor& other, const ResultPolicy& policy) const {
    Arguments same = *this;
    same.outputs = 0;
    same.kernel = &other;
    same.results = &policy;
    return same;
  }
};

/// Whether the tensor's memory overlaps that of an output, as that of a view of an input whose
/// memory the host reuses. ATen cannot see it, since each operand has a storage of its own.
[[gnu::noinline]] inline bool overlaps_outputs(const Arguments& arguments,
                                               const at::Tensor& result) {
  const auto begin = [](const c10::Storage& storage) {
    return reinterpret_cast<std::uintptr_t>(storage.data());
  };
  const c10::Storage& storage = result.unsafeGetTensorImpl()->unsafe_storage();
  if (!storage) {  // undefined, or not dense
    return false;
  }
  for (int i = 0; i < arguments.outputs; ++i) {
    const c10::Storage& output = arguments.output(i).view.unsafeGetTensorImpl()->unsafe_storage();
    if (begin(storage) < begin(output) + output.nbytes() &&
        begin(output) < begin(storage) + storage.nbytes()) {
      return true;
    }
  }
  return false;
}

/// The bytes of one element of a workspace, and what is added so that the first can be aligned.
struct ElementLayout {
  std::size_t size = 0;
  std::size_t slack = 0;
};

/// The parameter that takes input `index`; all tensors of an at::TensorList have the same.
inline int input_parameter(const Arguments& arguments, int index) {
  return arguments.list_begin < 0 || index < arguments.list_begin
             ? index
             : std::max(arguments.list_begin, index - arguments.list_size + 1);
}

[[gnu::noinline]] inline void put_views_in_list(const Arguments& arguments) {
  arguments.list->clear();
  for (int i = 0; i < arguments.list_size; ++i) {
    arguments.list->push_back(arguments.operands[arguments.list_begin + i].view);
  }
}

/// Fills the tensors of an at::TensorList in.
inline void fill_list(const Arguments& arguments) {
  if (arguments.list_size > 0) {
    put_views_in_list(arguments);
  }
}

[[gnu::cold, gnu::noinline]] inline Tensors output_views(const Arguments& arguments) {
  Tensors views;
  for (int i = 0; i < arguments.outputs; ++i) {
    views.push_back(arguments.output(i).view);
  }
  return views;
}

/// The inputs of a call as meta tensors; undefined for None.
[[gnu::cold]] inline Tensors meta_inputs(const Arguments& arguments) {
  Tensors inputs;
  for (int i = 0; i < arguments.inputs; ++i) {
    const OperandDesc& desc = arguments.operands[i].desc;
    const at::IntArrayRef sizes(desc.sizes, static_cast<std::size_t>(desc.ndim));
    inputs.push_back(desc.is_none() ? at::Tensor() : make_meta(sizes, scalar_type(desc.dtype)));
  }
  return inputs;
}

}  // namespace aten_bridge::detail

namespace aten_bridge {

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

}  // namespace aten_bridge

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_INTERFACE_OPERANDS_H_

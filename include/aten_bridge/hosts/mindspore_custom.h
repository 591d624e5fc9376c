// MindSpore's ops.Custom: `extra` has attributes; how many of the operands are inputs is not told.
// Its hooks are asked before the first call, and for shapes and dtypes.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_HOSTS_MINDSPORE_CUSTOM_H_
#define ATEN_BRIDGE_HOSTS_MINDSPORE_CUSTOM_H_

#include <aten_bridge/hosts/mindspore_abi.h>
#include <aten_bridge/hosts/mindspore_call.h>
#include <aten_bridge/hosts/python.h>
#include <aten_bridge/infer.h>
#include <aten_bridge/kernel.h>
#include <aten_bridge/workspaces.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#pragma GCC visibility push(hidden)

namespace aten_bridge::detail {

class MindSporeCustom : public MindSporeCall {
 public:
  static constexpr Words kWords = {
      "out_shape and out_dtype", "let out_shape return the shape of the result",
      "let out_dtype return the dtype of the result",
      "the arguments of the call, out_shape and out_dtype with the kernel"};

  template <class K>
  struct Requirements {
    static_assert(K::kOutputs > 0 || K::kListsOutputs || K::kTakesCall,
                  "aten_bridge: a kernel has at least one output: an at::Tensor& parameter, which "
                  "is not const, or a result. MindSpore does not call an operator that has none.");
    static_assert(reads_numbers_only(K::kBindings),
                  "aten_bridge: only bool, int64_t, double, at::Scalar and std::optional of these "
                  "are read from an input; a parameter of another type takes an attribute: add "
                  "aten_bridge::attr(\"name\") for it.");
    static_assert(!K::kIsDataDependent,
                  "aten_bridge: aten_bridge::data_dependent() is for kernels of a plugin that "
                  "return their results.");
  };

  using MindSporeCall::MindSporeCall;

  HostAttributes attributes() const { return HostAttributes(extra()); }

  /// Null where the host has called no Init (hosts before about 1.9), or Init met an error.
  /// no_sanitize: the dynamic type of `extra` is a class of the host's, unknown here.
  __attribute__((no_sanitize("vptr"))) Instance* instance() const {
    return extra() == nullptr
               ? nullptr
               : static_cast<Instance*>(static_cast<AotExtra*>(extra())->kernel_data);
  }
};

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

/// What the hooks of a kernel return: MindSpore 2.10 has other types for one output than for
/// several.
template <class K>
struct Inferred {
  using Sizes = std::conditional_t<K::kSeveralOutputs, std::vector<std::vector<int64_t>>,
                                   std::vector<int64_t>>;
  using Types = std::conditional_t<K::kSeveralOutputs, std::vector<int>, int>;

  static Sizes sizes(const KernelBase& kernel, const int* ndims, int64_t** shapes, void* extra) {
    if constexpr (K::kSeveralOutputs) {
      return infer_sizes(kernel, ndims, shapes, extra);
    } else {
      return infer_sizes(kernel, ndims, shapes, extra).front();
    }
  }

  static Types types(const KernelBase& kernel, const std::vector<int>& types, void* extra) {
    if constexpr (K::kSeveralOutputs) {
      return infer_types(kernel, types, extra);
    } else {
      return infer_types(kernel, types, extra).front();
    }
  }
};

}  // namespace aten_bridge::detail

#pragma GCC visibility pop

// clang warns of C functions that return C++ classes, as the infer hooks do.
#ifdef __clang__
#define ATEN_BRIDGE_RETURNS_CLASSES(...)                                                           \
  _Pragma("clang diagnostic push") _Pragma("clang diagnostic ignored \"-Wreturn-type-c-linkage\"") \
      __VA_ARGS__ _Pragma("clang diagnostic pop")
#else
#define ATEN_BRIDGE_RETURNS_CLASSES(...) __VA_ARGS__
#endif

/// What the hooks of an exported kernel return.
#define ATEN_BRIDGE_INFERRED(Name) \
  ::aten_bridge::detail::Inferred<decltype(aten_bridge_kernel_##Name.kernel)>

/// The kernel's C function, MindSpore's hooks, and those of aten_bridge.mindspore, the Python
/// module.
#define ATEN_BRIDGE_ENTRY_MINDSPORE_CUSTOM(Name)                                                   \
  extern "C" ATEN_BRIDGE_PUBLIC int Name(int nparam, void** params, int* ndims, int64_t** shapes,  \
                                         const char** dtypes, void* stream, void* extra) {         \
    return aten_bridge_kernel_##Name.call(nparam, params, ndims, shapes, dtypes, stream, extra);   \
  }                                                                                                \
  extern "C" ATEN_BRIDGE_PUBLIC int Name##Init(int* ndims, int64_t** shapes, const char** dtypes,  \
                                               void* extra) {                                      \
    return ::aten_bridge::detail::init(aten_bridge_kernel_##Name, ndims, shapes, dtypes, extra);   \
  }                                                                                                \
  ATEN_BRIDGE_RETURNS_CLASSES(                                                                     \
      extern "C" ATEN_BRIDGE_PUBLIC ATEN_BRIDGE_INFERRED(Name)::Sizes Name##InferShape(            \
          int* ndims, int64_t** shapes, void* extra) {                                             \
        return ATEN_BRIDGE_INFERRED(Name)::sizes(aten_bridge_kernel_##Name, ndims, shapes, extra); \
      } extern "C" ATEN_BRIDGE_PUBLIC ATEN_BRIDGE_INFERRED(Name)::Types                            \
          Name##InferType(std::vector<int> types, void* extra) {                                   \
            return ATEN_BRIDGE_INFERRED(Name)::types(aten_bridge_kernel_##Name, types, extra);     \
          })                                                                                       \
  ATEN_BRIDGE_ENTRY_PYTHON(Name)

#endif  // ATEN_BRIDGE_HOSTS_MINDSPORE_CUSTOM_H_

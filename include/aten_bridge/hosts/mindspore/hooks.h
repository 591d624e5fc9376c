// What MindSpore's hooks of a kernel for ops.Custom answer, before its first call.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_HOSTS_MINDSPORE_HOOKS_H_
#define ATEN_BRIDGE_HOSTS_MINDSPORE_HOOKS_H_

#include <aten_bridge/call/infer.h>
#include <aten_bridge/call/workspaces.h>
#include <aten_bridge/hosts/introspection/answers.h>
#include <aten_bridge/hosts/mindspore/abi.h>
#include <aten_bridge/hosts/mindspore/custom.h>
#include <aten_bridge/tensors/scope.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#pragma GCC visibility push(hidden)

namespace aten_bridge::detail {

/// The inputs of a kernel, and which of them the hooks are told about.
struct HookInputs {
  std::vector<AbstractValue> inputs;
  std::vector<int64_t> tensors;  // indices

  [[gnu::cold]] HookInputs(const KernelDescriptor& kernel, const Attributes& attributes) {
    std::string text;
    const bool described = attributes.get(kInputsAttribute, text);
    for (const std::string& entry : split(text)) {
      bool is_tensor = false;
      const auto index = static_cast<int64_t>(inputs.size());
      inputs.push_back(described_input(entry, is_tensor));
      if (is_tensor) {
        tensors.push_back(index);
      }
    }
    for (int64_t i = 0; !described && i < kernel.inputs; ++i) {
      if (kernel.bindings[i].kind != ParameterKind::kTensor) {
        raise(Status::kCount,
              {kernel.operator_name,
               ": expected a kernel whose inputs are tensors, got one that takes None, "
               "numbers or any number of tensors, about which MindSpore tells its infer "
               "hooks nothing; make the operator with aten_bridge.mindspore.kernel, or "
               "give out_shape and out_dtype"});
      }
      inputs.push_back({});
      tensors.push_back(i);
    }
    const bool several = kernel.has_several_outputs();
    bool multi_output = several;
    if (attributes.get("multi_output", multi_output) && multi_output != several) {
      raise(Status::kCount,
            {kernel.operator_name, ": expected the operator to have ",
             kernel.lists_outputs ? "several outputs" : count_text(kernel.outputs, "output"),
             ", got its attribute multi_output ", multi_output ? "True" : "False",
             "; make the operator with aten_bridge.mindspore.kernel, register its outputs, or ",
             "set the attribute"});
    }
  }
};

/// What the last hook of this thread learned: MindSpore calls the one for shapes first, without
/// dtypes, and the one for dtypes next, without shapes.
struct HookMemory {
  const KernelBase* kernel = nullptr;
  std::vector<AbstractValue> tensors;
};

inline HookMemory& hook_memory(const KernelBase& kernel, std::size_t tensors) {
  thread_local HookMemory memory;
  if (memory.kernel != &kernel || memory.tensors.size() != tensors) {
    memory = {&kernel, std::vector<AbstractValue>(tensors)};
  }
  return memory;
}

/// The sizes that a hook is given of an input. Throws `Error` where there are none to be read.
[[gnu::cold]] inline std::vector<int64_t> given_sizes(const int* ndims, int64_t** shapes,
                                                      std::size_t index, const OperandName& name,
                                                      Report& report) {
  if (ndims == nullptr || shapes == nullptr) {
    report.add(Status::kNullPointer, name, {"`ndims` and `shapes`", kGot, "a null pointer"});
  } else if (!has_form(ndims[index], shapes[index])) {
    report.add(Status::kShape, name, form_fault(ndims[index]));
  }
  report.raise_if_failed();
  return {shapes[index], shapes[index] + ndims[index]};
}

[[gnu::cold]] ATEN_BRIDGE_INLINE std::vector<std::vector<int64_t>> infer_sizes(
    const KernelBase& kernel, const int* ndims, int64_t** shapes, void* extra) try {
  const MindSporeAttributes attributes(extra);
  HookInputs known(kernel.info, attributes);
  Report report(kernel.info.operator_name);
  Arguments arguments;
  count_inputs(kernel.info, MindSporeCustom::kMessages, known.inputs.size(), arguments,
               report);  // before a shape is read that is not there
  HookMemory& memory = hook_memory(kernel, known.tensors.size());
  for (std::size_t i = 0; i < known.tensors.size(); ++i) {
    AbstractValue& input = known.inputs[static_cast<std::size_t>(known.tensors[i])];
    const OperandName operand{Role::kInput, static_cast<int>(known.tensors[i])};
    input.sizes = given_sizes(ndims, shapes, i, operand, report);
    if (!input.typed) {
      input.dtype = memory.tensors[i].dtype;  // the last call's: a guess
    }
    memory.tensors[i].sizes = input.sizes;
  }
  std::vector<InferredOutput> outputs =
      infer(kernel, attributes, std::move(known.inputs), MindSporeCustom::kMessages);
  std::vector<std::vector<int64_t>> sizes(outputs.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    sizes[i] = std::move(outputs[i].sizes);
  }
  return sizes;
} catch (...) {
  throw std::runtime_error(record_failure(kernel.info.operator_name, nullptr, 0).text);
}

[[gnu::cold]] ATEN_BRIDGE_INLINE std::vector<int> infer_types(const KernelBase& kernel,
                                                              const std::vector<int>& types,
                                                              void* extra) try {
  const char* name = kernel.info.operator_name;
  const MindSporeAttributes attributes(extra);
  HookInputs known(kernel.info, attributes);
  if (types.size() != known.tensors.size()) {
    raise(Status::kCount,
          {name, ": expected ", count_text(static_cast<int64_t>(known.tensors.size()), "tensor"),
           ", got ", types.size()});
  }
  HookMemory& memory = hook_memory(kernel, types.size());
  for (std::size_t i = 0; i < types.size(); ++i) {
    AbstractValue& input = known.inputs[static_cast<std::size_t>(known.tensors[i])];
    const OperandName operand{Role::kInput, static_cast<int>(known.tensors[i])};
    input.dtype = dtype_of_id(types[i], join({name, ": ", operand.text()}));
    input.typed = true;
    input.sizes = memory.tensors[i].sizes;
    memory.tensors[i].dtype = input.dtype;
  }
  const std::vector<InferredOutput> outputs =
      infer(kernel, attributes, std::move(known.inputs), MindSporeCustom::kMessages);
  std::vector<int> ids(outputs.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const OperandName operand{Role::kOutput, static_cast<int>(i)};
    ids[i] = type_id(outputs[i].dtype, join({name, ": ", operand.text()}));
  }
  return ids;
} catch (...) {
  throw std::runtime_error(record_failure(kernel.info.operator_name, nullptr, 0).text);
}

// no_sanitize: the dynamic type of `extra` is a class of the host's, unknown here.
[[gnu::cold]] __attribute__((no_sanitize("vptr"))) ATEN_BRIDGE_INLINE int init(
    const KernelBase& kernel, const int* ndims, int64_t** shapes, const char** dtypes,
    void* extra) noexcept {
  const KernelDescriptor& info = kernel.info;
  if (extra == nullptr || !(info.has_instance || info.workspaces > 0)) {
    return 0;
  }
  try {
    auto* host = static_cast<AotExtra*>(extra);
    check_pytorch(info.operator_name);
    const KernelScope scope(info.records);
    Report report(info.operator_name);
    if (info.has_instance && host->kernel_data == nullptr) {
      std::unique_ptr<Instance> instance = kernel.make_instance(MindSporeAttributes(extra), report);
      report.raise_if_failed();
      host->kernel_data = instance.release();
    }
    // The host does not say how many inputs there are.
    bool is_counted = false;
    if (info.workspaces > 0 && info.list_begin < 0 && dtypes != nullptr &&
        MindSporeAttributes(extra).get(kCountedAttribute, is_counted) && is_counted) {
      std::vector<AbstractValue> inputs(static_cast<std::size_t>(info.inputs));
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        const OperandName operand{Role::kInput, static_cast<int>(i)};
        inputs[i].sizes = given_sizes(ndims, shapes, i, operand, report);
        inputs[i].typed =
            dtypes[i] != nullptr && aten_bridge::find_dtype(dtypes[i], inputs[i].dtype);
        inputs[i].is_number = info.bindings[i].kind == ParameterKind::kNumber;
        if (!inputs[i].is_known()) {
          return 0;
        }
      }
      const MetaArguments metas(
          {kernel, static_cast<Instance*>(host->kernel_data), MindSporeCustom::kMessages}, inputs);
      const auto bytes = measure_workspaces(kernel, metas.arguments);
      host->workspaces.assign(bytes.begin(), bytes.end());
    }
  } catch (...) {  // NOLINT(bugprone-empty-catch)
  }
  return 0;
}

}  // namespace aten_bridge::detail

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_HOSTS_MINDSPORE_HOOKS_H_

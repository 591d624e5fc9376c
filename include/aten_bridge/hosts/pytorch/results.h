// Results in PyTorch: nobody else's memory.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_HOSTS_PYTORCH_RESULTS_H_
#define ATEN_BRIDGE_HOSTS_PYTORCH_RESULTS_H_

#include <ATen/ops/empty_like.h>
#include <aten_bridge/call/bind.h>
#include <aten_bridge/call/infer.h>
#include <aten_bridge/call/outputs.h>
#include <aten_bridge/hosts/pytorch/errors.h>
#include <aten_bridge/hosts/pytorch/operands.h>
#include <aten_bridge/interface/kernel_base.h>
#include <aten_bridge/tensors/exceptions.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#pragma GCC visibility push(hidden)

namespace aten_bridge::detail {

/// Adds results that are none to the report; `who` gave them.
inline void add_undefined(const Tensors& results, const char* who, Report& report) {
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!results[i].defined()) {
      report.add(Status::kOutput,
                 {"output ", i, ": expected a tensor, got an undefined tensor from the ", who});
    }
  }
}

/// Makes a tensor the output of that number, whose operand is there.
inline Operand& set_output(const Arguments& arguments, int index, const at::Tensor& output) {
  Operand& operand = arguments.output(index);
  operand.check = find_check(*arguments.kernel, Role::kOutput, index);
  operand.name = operand_name(operand.check, Role::kOutput, index);
  operand.view = output;
  operand.impl = output.unsafeGetTensorImpl();
  return operand;
}

/// kUnwritten in as many dimensions as a tensor has without memory of its own, which is quicker. A
/// result may have such sizes more often.
inline constexpr std::array<int64_t, 5> kShortUnwritten = {};

/// Runs a body with outputs that it resizes.
template <class Run>
void run_to_resize(const Arguments& arguments, const Run& run) {
  const KernelDescriptor& kernel = *arguments.kernel;
  try {
    run();
  } catch (const c10::Error& error) {
    if (is_not_resized(exception_text(error))) {
      raise(Status::kShape, {kernel.operator_name, ": ", kNotResized});
    }
    throw;
  }
  Report report(kernel.operator_name);
  for (int i = 0; i < arguments.outputs; ++i) {
    const Operand& output = arguments.output(i);
    if (output.view.unsafeGetTensorImpl() != output.impl) {
      report.add(Status::kOutput, {output.name.text(), output_fault(arguments, output)});
    }
  }
  report.raise_if_failed();
}

/// Throws what a body did to outputs that should have stayed where they are.
inline void check_written(const Arguments& arguments) {
  for (int i = 0; i < arguments.outputs; ++i) {
    if (!output_is_intact(arguments.output(i))) {
      refuse_outputs(arguments);
    }
  }
}

/// Whether a result has the memory of an input, or of a result before it.
[[gnu::always_inline]] inline bool is_shared(const Arguments& arguments, const Tensors& results,
                                             std::size_t index) {
  const at::Tensor& result = results[index];
  for (const Operand* input = arguments.operands; input != arguments.operands + arguments.inputs;
       ++input) {
    if (input->view.defined() && shares_memory(result, input->view)) {
      return true;
    }
  }
  for (std::size_t i = 0; i < index; ++i) {
    if (shares_memory(result, results[i])) {
      return true;
    }
  }
  return false;
}

/// Whether the kernel has kept a result or its memory, in its state or in a constant.
[[gnu::always_inline]] inline bool is_held(const at::Tensor& result) {
  const c10::Storage& storage = result.unsafeGetTensorImpl()->unsafe_storage();
  return result.use_count() > 1 || (storage && storage.use_count() > 1);
}

/// Whether results are row-major, as in the other hosts, and as PyTorch takes them to be where a
/// meta function tells their sizes, or the inputs whose gradients they are. A kernel that is its
/// own meta function tells strides too.
inline bool returns_row_major(const KernelDescriptor& kernel) {
  return kernel.returns_results && (kernel.is_gradient || !kernel.is_own_meta);
}

/// Whether a result of the kernel lies in its memory as PyTorch takes it to.
[[gnu::always_inline]] inline bool lies_as_told(const KernelDescriptor& kernel,
                                                const at::Tensor& result) {
  return !returns_row_major(kernel) || result.layout() != at::kStrided ||
         is_row_major_dense(result);
}

/// Copies results that have the memory of others, to which autograd and the caller write, and those
/// that do not lie as they should. PyTorch sees to it itself where it traces.
[[gnu::always_inline]] inline void separate(const Arguments& arguments, CallMode purpose,
                                            Tensors& results) {
  for (std::size_t i = 0; i < results.size() && purpose != CallMode::kTrace; ++i) {
    at::Tensor& result = results[i];
    if (arguments.kernel->records && result.requires_grad()) {
      result = result.detach();
    }
    if (purpose == CallMode::kMeta) {
      result = is_shared(arguments, results, i) ? at::empty_like(result) : result;
    } else if (!lies_as_told(*arguments.kernel, result)) {
      result = to_row_major_dense(result);
    } else if (is_shared(arguments, results, i) ||
               (arguments.kernel->returns_results && is_held(result))) {
      result = result.clone();
    }
  }
}

/// The same as what PyTorch's own operators return in inference mode, in which no body runs: over
/// the same memory, without what autograd needs.
[[gnu::noinline]] inline void make_inference_tensors(Tensors& results) {
  for (at::Tensor& result : results) {
    if (result.is_inference()) {
      continue;
    }
    if (result.layout() != at::kStrided || result.is_quantized() || result.is_nested() ||
        !(result.is_cpu() || result.is_cuda())) {
      result = result.clone();
      continue;
    }
    const c10::TensorImpl* const impl = result.unsafeGetTensorImpl();
    at::Tensor made = at::detail::make_tensor<c10::TensorImpl>(c10::Storage(impl->unsafe_storage()),
                                                               impl->key_set(), impl->dtype());
    made.unsafeGetTensorImpl()->set_sizes_and_strides(result.sizes(), result.strides(),
                                                      result.storage_offset());
    result = std::move(made);
  }
}

/// What the checks of the outputs say.
inline void check_results(const KernelDescriptor& kernel, const Tensors& results) {
  Report report(kernel.operator_name);
  CheckRun checks(report);
  KeptSizes sizes;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const int index = static_cast<int>(i);
    if (const OperandCheck* check = find_check(kernel, Role::kOutput, index)) {
      Operand operand;
      operand.view = results[i];
      describe(operand, /*has_data=*/false, sizes);
      checks(*check, operand_name(check, Role::kOutput, index), operand.desc);
    }
  }
  report.raise_if_failed();
}

/// What there is to do with what a kernel returned.
[[gnu::noinline]] inline void finish_results(const Arguments& arguments, CallMode purpose,
                                             Tensors& results) {
  Report report(arguments.kernel->operator_name);
  add_undefined(results, "kernel", report);
  report.raise_if_failed();
  separate(arguments, purpose, results);
}

}  // namespace aten_bridge::detail

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_HOSTS_PYTORCH_RESULTS_H_

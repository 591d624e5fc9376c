// Differentiation: what a gradient kernel does, by PyTorch's autograd.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_INTERFACE_DIFFERENTIATE_H_
#define ATEN_BRIDGE_INTERFACE_DIFFERENTIATE_H_

#include <aten_bridge/interface/gradient_base.h>
#include <aten_bridge/interface/operands.h>
#include <aten_bridge/tensors/views.h>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

// Autograd takes so much longer than what is here that compilers may make all of it small: cold.

#pragma GCC visibility push(hidden)

namespace aten_bridge::detail {

inline bool is_differentiable(const at::Tensor& tensor) {
  return tensor.defined() && (tensor.is_floating_point() || tensor.is_complex());
}

/// Which of the inputs are tensors, or may be, among those of the first `parameters`.
[[gnu::cold]] inline std::vector<int> tensor_inputs(const KernelDescriptor& kernel,
                                                    const Arguments& arguments, int parameters) {
  std::vector<int> inputs;
  for (int i = 0; i < arguments.inputs; ++i) {
    const int parameter = input_parameter(arguments, i);
    if (parameter < parameters && kernel.bindings[parameter].kind != ParameterKind::kNumber) {
      inputs.push_back(i);
    }
  }
  return inputs;
}

/// Each gradient has the dtype and shape of its input.
[[gnu::cold]] inline void check_gradients(const KernelDescriptor& kernel,
                                          const Arguments& arguments,
                                          const std::vector<int>& inputs) {
  Report report(kernel.operator_name);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Operand& input = arguments.operands[inputs[i]];
    const Operand& output = arguments.output(static_cast<int>(i));
    if (!input.desc.is_none() && (output.view.scalar_type() != input.view.scalar_type() ||
                                  output.view.sizes() != input.view.sizes())) {
      report.add(Status::kOutput, output.name,
                 {input.desc.text(), " as ", input.name.text(), ", whose gradient it is", kGot,
                  output.desc.text()});
    }
  }
  report.raise_if_failed();
}

/// Throws `Error` where the function wrote its inputs, which is called twice, or where autograd
/// knows nothing of what it gives: silent zeros would be taken for gradients.
[[gnu::cold]] inline void check_recorded(const KernelDescriptor& kernel, const Arguments& arguments,
                                         const std::vector<int>& inputs,
                                         const std::vector<at::Tensor>& results) {
  Report report(kernel.operator_name);
  for (int i = 0; i < arguments.inputs; ++i) {
    const Operand& input = arguments.operands[i];
    if (input.view.defined() && input.view._version() != 0) {
      report.add(Status::kAten, input.name,
                 {"an input that the function does not write, which is called twice, ",
                  "for the result and for the gradient", kGot, "one that it wrote", kDo,
                  "write to a clone() in the gradient's function"});
    }
  }
  report.raise_if_failed();
  const bool expected = std::any_of(results.begin(), results.end(), is_differentiable) &&
                        std::any_of(inputs.begin(), inputs.end(), [&](int input) {
                          return is_differentiable(arguments.operands[input].view);
                        });
  if (expected && std::none_of(results.begin(), results.end(), [](const at::Tensor& result) {
        return result.defined() && result.requires_grad();
      })) {
    raise(Status::kAten,
          {kernel.operator_name,
           ": expected results of operators that autograd differentiates, got results "
           "that it has no graph of, as from a loop over data or after detach(); write "
           "the gradient by hand and export it with ATEN_BRIDGE_EXPORT"});
  }
}

/// What autograd finds for each of the inputs; undefined where that is zeros. The inputs of the
/// first `parameters` are followed by the gradients of the results.
[[gnu::cold]] inline std::vector<at::Tensor> compute_gradients(
    const KernelDescriptor& kernel, const Arguments& arguments, int parameters,
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
      report.add(Status::kShape, operand.name,
                 {tensor_text(result), " as output ", i, ", whose gradient it is", kGot,
                  operand.desc.text()});
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

/// The gradients as tensors of the inputs' dtypes and shapes; of None an empty one.
[[gnu::cold]] inline Tensors like_inputs(const Arguments& arguments, const std::vector<int>& inputs,
                                         const std::vector<at::Tensor>& gradients) {
  at::Tensor any;
  for (const int input : inputs) {
    any = arguments.operands[input].view.defined() ? arguments.operands[input].view : any;
  }
  Tensors results;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const at::Tensor& input = arguments.operands[inputs[i]].view;
    const at::Tensor& gradient = gradients[i];
    if (!gradient.defined()) {
      const at::Tensor like = (input.defined() ? input : any).detach();
      const c10::SymInt none = 0;
      results.push_back(like.new_zeros_symint(input.defined() ? like.sym_sizes() : none));
    } else {
      results.push_back(gradient);
    }
  }
  return results;
}

/// Takes the graph from the inputs after a call. One of a function that returns its argument, as
/// aten::lift does, refers to itself, and would keep the host's memory.
class InputGraph {
 public:
  InputGraph(const Arguments& arguments, const std::vector<int>& inputs)
      : arguments_(arguments), inputs_(inputs) {}
  ~InputGraph() {
    for (const int input : inputs_) {
      const at::Tensor& view = arguments_.operands[input].view;
      if (view.defined()) {
        view.unsafeGetTensorImpl()->set_autograd_meta(nullptr);
      }
    }
  }
  InputGraph(const InputGraph&) = delete;
  InputGraph& operator=(const InputGraph&) = delete;

 private:
  const Arguments& arguments_;
  const std::vector<int>& inputs_;
};

ATEN_BRIDGE_INLINE void GradientBase::invoke(const Arguments& arguments) const {
  const std::vector<int> inputs = tensor_inputs(info, arguments, forward_inputs_);
  const InputGraph graph(arguments, inputs);
  if (arguments.results->has_memory) {
    check_gradients(info, arguments, inputs);
  }
  for (const int input : inputs) {
    const at::Tensor& view = arguments.operands[input].view;
    if (is_differentiable(view)) {
      view.set_requires_grad(true);
    }
  }
  std::vector<at::Tensor> gradients = differentiate(arguments, inputs, /*differentiable=*/false);
  for (at::Tensor& gradient : gradients) {
    if (gradient.defined() && gradient.layout() != at::kStrided) {
      gradient = gradient.to_dense();
    }
  }
  if (!arguments.results->has_memory) {
    Tensors like = like_inputs(arguments, inputs, gradients);
    arguments.results->take(arguments, like.data(), static_cast<int>(like.size()));
    return;
  }
  arguments.results->take(arguments, gradients.data(), static_cast<int>(gradients.size()));
}

ATEN_BRIDGE_INLINE std::vector<at::Tensor> GradientBase::results(const Arguments& arguments) const {
  return differentiate(arguments, tensor_inputs(info, arguments, forward_inputs_),
                       /*differentiable=*/true);
}

[[gnu::cold]] ATEN_BRIDGE_INLINE Tensors GradientBase::infer(const Arguments& arguments) const {
  Tensors gradients;
  for (const int input : tensor_inputs(info, arguments, forward_inputs_)) {
    const at::Tensor& view = arguments.operands[input].view;
    gradients.push_back(view.defined() ? view : make_meta({0}, at::kFloat));
  }
  return gradients;
}

[[gnu::cold]] ATEN_BRIDGE_INLINE std::vector<at::Tensor> GradientBase::differentiate(
    const Arguments& arguments, const std::vector<int>& inputs, bool differentiable) const {
  const std::vector<at::Tensor> results = forward(arguments);
  if (of_function_) {
    check_recorded(info, arguments, inputs, results);
  } else if (differentiable && std::any_of(results.begin(), results.end(), [](const auto& result) {
               return result.defined() && result.layout() != at::kStrided;
             })) {
    // PyTorch's graph of a sparse gradient does not lead to the gradient that it was made from.
    raise(Status::kAten, {info.operator_name,
                          ": expected gradients that are dense, to be differentiated "
                          "again, got a sparse one; use the function with sparse=false"});
  }
  return compute_gradients(info, arguments, forward_inputs_, inputs, results, differentiable);
}

}  // namespace aten_bridge::detail

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_INTERFACE_DIFFERENTIATE_H_

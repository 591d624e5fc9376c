// Gradients in PyTorch: an operator's place in autograd's graph, whose backward pass calls the
// operator of its gradient kernel.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_HOSTS_PYTORCH_AUTOGRAD_H_
#define ATEN_BRIDGE_HOSTS_PYTORCH_AUTOGRAD_H_

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <aten_bridge/hosts/pytorch/errors.h>
#include <aten_bridge/hosts/pytorch/operator.h>
#include <aten_bridge/interface/differentiate.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/saved_variable.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#pragma GCC visibility push(hidden)

namespace aten_bridge::detail {

/// An operator that was called, in the graph. Its edges are those of the inputs that are tensors or
/// may be, in their order, each tensor of a list among them.
class PyTorchNode final : public torch::autograd::Node {
 public:
  PyTorchNode(const PyTorchOperator& op, const c10::IValue* arguments)
      : operator_(op), arguments_(arguments, arguments + op.inputs() + op.attributes.size()) {
    for (std::size_t i = 0; i < op.inputs(); ++i) {
      c10::IValue& argument = arguments_[i];
      if (op.info().bindings[i].kind == ParameterKind::kNumber) {
        continue;
      }
      if (argument.isTensorList()) {
        for (const c10::IValue& element : argument.toListRef()) {
          save(element.toTensor());
        }
        list_size_ = argument.toListRef().size();
      } else {
        save(argument.isNone() ? at::Tensor() : argument.toTensor());
      }
      argument = c10::IValue();  // the graph keeps what it may look after
    }
  }

  /// Adds the next result, and returns its number.
  std::uint32_t add_result(const at::Tensor& result) {
    results_.push_back({result.sym_sizes().vec(), result.options()});
    return is_differentiable(result) ? add_input_metadata(result)
                                     : add_input_metadata(undefined_input());
  }

  std::string name() const override {
    return std::string(operator_.info().operator_name) + "Backward";
  }

  void release_variables() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (torch::autograd::SavedVariable& saved : saved_) {
      saved.reset_data();
    }
    is_released_ = true;
  }

  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    const PyTorchOperator* gradient = operator_.gradient();
    if (gradient == nullptr) {
      raise_in_pytorch(
          {operator_.info().operator_name,
           ": expected a gradient kernel in the library, got none; add ATEN_BRIDGE_EXPORT_GRAD(",
           operator_.info().operator_name,
           "Grad, function, options...), write one by hand under that name, or give the ",
           "kernel aten_bridge::composite() if PyTorch's operators are all of its body"});
    }
    TORCH_CHECK(!is_released_, torch::autograd::ERR_BACKWARD_TWICE);
    c10::Stack stack;
    put_inputs(stack);
    put_gradients(*gradient, gradients, stack);
    put_attributes(*gradient, stack);
    gradient->handle->callBoxed(&stack);
    torch::autograd::variable_list results;
    for (c10::IValue& result : stack) {
      if (result.isTensorList()) {
        for (const c10::IValue& element : result.toListRef()) {
          results.push_back(element.toTensor());
        }
      } else {
        results.push_back(std::move(result).toTensor());
      }
    }
    if (results.size() != num_outputs()) {
      raise_in_pytorch({gradient->info().operator_name, ": expected ",
                        count_text(static_cast<int64_t>(num_outputs()), "output"),
                        ", one for each tensor among the inputs of ",
                        operator_.info().operator_name, ", got ", results.size()});
    }
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (!task_should_compute_output(i)) {
        results[i] = at::Tensor();
      }
    }
    return results;
  }

 private:
  struct Result {
    std::vector<c10::SymInt> sizes;
    at::TensorOptions options;
  };

  void save(const at::Tensor& tensor) {
    saved_.emplace_back(tensor, /*is_output=*/false);
    if (is_differentiable(tensor)) {
      add_next_edge(torch::autograd::impl::gradient_edge(tensor));
    } else {
      add_next_edge(torch::autograd::Edge());
    }
  }

  void put_inputs(c10::Stack& stack) {
    std::size_t next = 0;
    const auto unpack = [&] { return saved_[next++].unpack(); };
    for (std::size_t i = 0; i < operator_.inputs(); ++i) {
      const ParameterInfo& binding = operator_.info().bindings[i];
      if (binding.kind == ParameterKind::kNumber) {
        stack.push_back(arguments_[i]);
      } else if (binding.kind == ParameterKind::kTensorList) {
        std::vector<at::Tensor> list;
        while (list.size() < list_size_) {
          list.push_back(unpack());
        }
        stack.emplace_back(std::move(list));
      } else {
        at::Tensor tensor = unpack();
        stack.push_back(tensor.defined() ? c10::IValue(std::move(tensor)) : c10::IValue());
      }
    }
  }

  void put_gradients(const PyTorchOperator& gradient,
                     const torch::autograd::variable_list& gradients, c10::Stack& stack) {
    const std::size_t inputs = operator_.inputs();
    if (gradient.inputs() != inputs + gradients.size()) {
      raise_in_pytorch({gradient.info().operator_name, ": expected the inputs of ",
                        operator_.info().operator_name, " and a gradient for each of its outputs, ",
                        count_text(static_cast<int64_t>(inputs + gradients.size()), "input"),
                        ", got ", gradient.inputs()});
    }
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      if (gradients[i].defined()) {
        stack.emplace_back(gradients[i]);
      } else if (gradient.info().bindings[inputs + i].optional) {
        stack.emplace_back();
      } else {
        stack.emplace_back(at::zeros_symint(results_[i].sizes, results_[i].options));
      }
    }
  }

  /// By their names; those of the gradient alone have their defaults.
  void put_attributes(const PyTorchOperator& gradient, c10::Stack& stack) const {
    for (const SchemaAttribute& attribute : gradient.attributes) {
      const auto same =
          std::find_if(operator_.attributes.begin(), operator_.attributes.end(),
                       [&](const SchemaAttribute& a) { return a.name == attribute.name; });
      if (same == operator_.attributes.end() && attribute.is_required) {
        raise_in_pytorch({gradient.info().operator_name, ": expected attributes that ",
                          operator_.info().operator_name, " has too, or a default, got '",
                          attribute.name, "' without one"});
      }
      const auto index =
          operator_.inputs() + static_cast<std::size_t>(same - operator_.attributes.begin());
      stack.push_back(same == operator_.attributes.end() ? attribute.fallback : arguments_[index]);
    }
  }

  const PyTorchOperator& operator_;
  std::vector<c10::IValue> arguments_;  // but for the tensors
  std::vector<torch::autograd::SavedVariable> saved_;
  std::vector<Result> results_;  // as a gradient of zeros is
  std::size_t list_size_ = 0;
  bool is_released_ = false;
  std::mutex mutex_;
};

/// How the graph owns its nodes, which differs between PyTorch's versions.
using NodePointer = decltype(torch::autograd::Edge::function);

template <class Pointer, class... Argument>
Pointer make_node(const Argument&... arguments) {
  if constexpr (std::is_same_v<Pointer, std::shared_ptr<torch::autograd::Node>>) {
    return Pointer(new PyTorchNode(arguments...), [](auto* node) { deleteNode(node); });
  } else {
    return c10::make_intrusive<PyTorchNode>(arguments...);
  }
}

/// The dispatcher's function for autograd: records the call where a gradient is asked for.
class PyTorchAutograd final : public c10::OperatorKernel {
 public:
  PyTorchAutograd(PyTorchOperator& op, bool is_out) : operator_(op), is_out_(is_out) {}

  void operator()(const c10::OperatorHandle& handle, c10::DispatchKeySet keys, c10::Stack* stack) {
    const std::size_t count =
        operator_.inputs() + operator_.attributes.size() + (is_out_ ? operator_.outputs() : 0);
    const c10::IValue* const arguments = stack->data() + (stack->size() - count);
    const bool records =
        at::GradMode::is_enabled() &&
        any_tensor(arguments, count, [](const at::Tensor& t) { return t.requires_grad(); });
    check_forward_mode(arguments, count);
    NodePointer node;
    Tensors outs;  // kept here, since the stack drops them
    if (is_out_) {
      if (records) {
        raise_in_pytorch({operator_.info().operator_name,
                          ": expected tensors that need no gradient where out is given, got one ",
                          "that requires it; call the operator without out"});
      }
      for (std::size_t i = count - operator_.outputs(); i < count; ++i) {
        outs.push_back(arguments[i].toTensor());
      }
    } else if (records) {
      node = make_node<NodePointer>(operator_, arguments);
    }
    {
      const at::AutoDispatchBelowADInplaceOrView below;
      handle.redispatchBoxed(keys & c10::after_autograd_keyset, stack);
    }
    bump_versions(outs);
    if (node != nullptr) {
      for (std::size_t i = stack->size() - result_count(); i < stack->size(); ++i) {
        record((*stack)[i], node);
      }
    }
  }

 private:
  std::size_t result_count() const {
    return operator_.info().lists_outputs ? 1 : operator_.outputs();
  }

  template <class Is>
  static bool any_tensor(const c10::IValue* values, std::size_t count, const Is& is) {
    return std::any_of(values, values + count, [&](const c10::IValue& value) {
      if (value.isTensorList()) {
        const auto& list = value.toListRef();
        return any_tensor(list.data(), list.size(), is);
      }
      return value.isTensor() && value.toTensor().defined() && is(value.toTensor());
    });
  }

  void check_forward_mode(const c10::IValue* arguments, std::size_t count) const {
    const bool has_tangent = any_tensor(
        arguments, count, [](const at::Tensor& t) { return t._fw_grad(/*level=*/0).defined(); });
    if (has_tangent) {
      raise_in_pytorch<c10::NotImplementedError>(
          {operator_.info().operator_name,
           ": expected tensors without tangents, since a gradient kernel has no forward mode, got ",
           "one with; give the kernel aten_bridge::composite() if PyTorch's operators are all of ",
           "its body"});
    }
  }

  static PyTorchNode& of(const NodePointer& node) { return static_cast<PyTorchNode&>(*node); }

  static void record(c10::IValue& result, const NodePointer& node) {
    if (result.isTensorList()) {
      for (const c10::IValue& element : result.toListRef()) {
        record(element.toTensor(), node);
      }
    } else {
      record(result.toTensor(), node);
    }
  }

  static void record(const at::Tensor& result, const NodePointer& node) {
    const std::uint32_t number = of(node).add_result(result);
    if (is_differentiable(result)) {
      torch::autograd::impl::set_gradient_edge(result, torch::autograd::Edge(node, number));
    }
  }

  const PyTorchOperator& operator_;
  bool is_out_;
};

}  // namespace aten_bridge::detail

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_HOSTS_PYTORCH_AUTOGRAD_H_

// What MindSpore records of a call, to differentiate it.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_CALLER_GRADIENT_H_
#define ATEN_BRIDGE_CALLER_GRADIENT_H_

#include "interpreter.h"
#include "queues.h"
#include "signature.h"
#include "step.h"

#include <include/pynative/backward/function.h>
#include <include/pynative/utils/pyboost/custom/tensor.h>
#include <include/utils/pynative/variable.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace aten_bridge::caller {

/// Whether a gradient may be asked for that this tensor is part of. MindSpore itself knows more
/// once it has recorded what computed the tensor, which it does in another thread.
inline bool may_need_gradient(const TensorPtr& tensor) {
  return tensor->auto_grad_meta_data() != nullptr;
}

/// How calls of an operator are differentiated whose arguments are laid out in one way. Python
/// makes it; `layout` is for Python.
struct Gradient {
  Reference weak_operator;  // the operator has this
  Reference layout;
  bool reads_results = false;
  // The operator of the gradient's kernel, once Python has called it: then C++ does.
  std::weak_ptr<Caller> kernel;
  std::vector<bool> mask;  // for each input: whether the kernel computes its gradient

  Gradient(const py::object& the_operator, py::object the_layout, bool reads)
      : weak_operator(py::weakref(the_operator)),
        layout(std::move(the_layout)),
        reads_results(reads) {}
};

/// Name the nodes of calls, and of gradients that have no gradient, in MindSpore's record.
struct KernelCall;
struct StepGradient;

}  // namespace aten_bridge::caller

namespace mindspore::pynative::autograd {

using aten_bridge::caller::Gradient;
using aten_bridge::caller::Kept;
using aten_bridge::caller::KernelCall;
using aten_bridge::caller::Reference;
using aten_bridge::caller::StepGradient;

/// One call that MindSpore differentiates.
template <>
struct CppFunctionNode<KernelCall> : public BackwardNode {
  CppFunctionNode(const std::string& name,
                  std::shared_ptr<aten_bridge::caller::Signature> signature_of_call,
                  std::shared_ptr<Gradient> gradient_of_call)
      : BackwardNode(name,
                     signature_of_call->output_types.size() - signature_of_call->written.size()),
        signature(std::move(signature_of_call)),
        gradient(std::move(gradient_of_call)) {}

  ValuePtrList CallBackward(const ValuePtrList& values) override;

  void Release() override {
    context.to_save_.clear();
    context.saved_tensors_.clear();
    kept = nullptr;
  }

  /// Lets MindSpore know of the call, and of the tensors that its gradient reads, if it may have
  /// to differentiate it.
  void record(const TensorPtrList& inputs, TensorPtrList& outputs) {
    const aten_bridge::caller::Step* step = signature->step.get();
    const TensorPtrList differentiable = step == nullptr ? inputs : chosen(inputs, step->gradients);
    if (std::none_of(differentiable.begin(), differentiable.end(),
                     aten_bridge::caller::may_need_gradient)) {
      return;
    }
    for (const TensorPtr& input : differentiable) {
      input->set_need_pipeline_sync(true);  // as MindSpore's Function has it (2.10)
    }
    TensorPtrList saved = step == nullptr ? inputs : chosen(inputs, step->inputs);
    if (gradient != nullptr && gradient->reads_results) {
      saved.insert(saved.end(), outputs.begin(), outputs.end());
    }
    context.node_ = weak_from_this();
    context.SaveForBackward(saved);
    CppFunctionDoGrad(&context, differentiable, &outputs);
    aten_bridge::caller::wait_for_record();
  }

  std::shared_ptr<aten_bridge::caller::Signature> signature;
  std::shared_ptr<Gradient> gradient;
  std::vector<int64_t> numbers;
  Reference python_operator;
  Reference python_numbers;  // as they were given, a tuple
  std::shared_ptr<Kept> kept;
  AutogradContext context;

 private:
  static TensorPtrList chosen(const TensorPtrList& tensors, const std::vector<std::size_t>& which) {
    TensorPtrList found;
    found.reserve(which.size());
    for (const std::size_t i : which) {
      found.push_back(tensors[i]);
    }
    return found;
  }

  /// Gradients of these results, with zeros for those that have none.
  TensorPtrList result_gradients(const ValuePtrList& values,
                                 const std::vector<std::size_t>& which) const;
  ValuePtrList differentiate_step(const ValuePtrList& values);
  ValuePtrList ask_python(const TensorPtrList& saved, const TensorPtrList& gradients) const;
};

/// The gradients of a step, which Python differentiates where a module was made for that.
template <>
struct CppFunctionNode<StepGradient> : public BackwardNode {
  CppFunctionNode(std::shared_ptr<aten_bridge::caller::Signature> signature_of_call,
                  std::size_t outputs)
      : BackwardNode("StepGradient", outputs), forward(std::move(signature_of_call)) {}

  /// A value for each operand of the backward program.
  ValuePtrList CallBackward(const ValuePtrList& values) override;

  void Release() override {
    context.to_save_.clear();
    context.saved_tensors_.clear();
  }

  /// `edges` are those of the forward call: without derivatives the error must be raised also where
  /// nothing but a kept value leads here.
  void record(const std::vector<Edge>& edges, TensorPtrList inputs, TensorPtrList& outputs) {
    context.node_ = weak_from_this();
    if (!forward->step->differentiate_again.is_none()) {
      context.SaveForBackward(inputs);
    } else {
      for (const Edge& edge : edges) {
        inputs.push_back(end_of(edge));
      }
    }
    CppFunctionDoGrad(&context, inputs, &outputs);
    aten_bridge::caller::wait_for_record();
  }

  /// A tensor that stands for the output to which an edge leads.
  static TensorPtr end_of(const Edge& edge) {
    TensorPtr tensor = ms::Tensor(mindspore::kNumberTypeFloat32, ShapeVector{}).tensor();
    if (edge.is_defined()) {
      const auto data = std::make_shared<AutoGradMetaData>(edge.grad_node, InputType::kOpOutput);
      data->set_requires_grad(true);
      data->set_output_index(edge.input_index);
      tensor->set_auto_grad_meta_data(data);
    }
    return tensor;
  }

  std::shared_ptr<aten_bridge::caller::Signature> forward;  // that of the step's forward program
  AutogradContext context;
};

}  // namespace mindspore::pynative::autograd

namespace aten_bridge::caller {

namespace autograd = mindspore::pynative::autograd;
using Node = autograd::CppFunctionNode<KernelCall>;

}  // namespace aten_bridge::caller

#endif  // ATEN_BRIDGE_CALLER_GRADIENT_H_

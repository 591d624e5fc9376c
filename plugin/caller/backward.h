// What MindSpore runs to differentiate a call: a kernel, a program, or a function of Python's.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_CALLER_BACKWARD_H_
#define ATEN_BRIDGE_CALLER_BACKWARD_H_

#include "caller.h"

#include <include/utils/tensor_py.h>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

namespace mindspore::pynative::autograd {

using aten_bridge::caller::Caller;
using aten_bridge::caller::is_recording_gradients;
using aten_bridge::caller::Kind;
using aten_bridge::caller::kTensor;
using aten_bridge::caller::Node;

inline py::object to_python(const TensorPtr& tensor) {
  return py::reinterpret_steal<py::object>(tensor::PackTensor(tensor));
}

/// A gradient that Python has computed, or None.
inline ValuePtr from_python(const py::handle& gradient) {
  return gradient.is_none() ? kNone : ValuePtr(tensor::ConvertPyObjectToTensor(gradient.ptr()));
}

inline TensorPtrList Node::result_gradients(const ValuePtrList& values,
                                            const std::vector<std::size_t>& which) const {
  TensorPtrList gradients;
  gradients.reserve(which.size());
  for (const std::size_t i : which) {
    gradients.push_back(values[i] == nullptr ? nullptr : values[i]->cast<TensorPtr>());
  }
  if (std::find(gradients.begin(), gradients.end(), nullptr) == gradients.end()) {
    return gradients;
  }
  ValuePtrList some;
  abstract::AbstractBasePtrList results;
  const std::size_t first =
      signature->sizes.size() - signature->output_types.size() + signature->written.size();
  for (const std::size_t i : which) {
    some.push_back(values[i]);
    results.push_back(signature->abstract(first + i));
  }
  return GradPreProcess(some, results, /*materialize_grads=*/true, name_);
}

inline ValuePtrList CppFunctionNode<StepGradient>::CallBackward(const ValuePtrList& values) {
  const py::gil_scoped_acquire acquired;
  const aten_bridge::caller::Step& step = *forward->step;
  if (step.differentiate_again.is_none()) {
    throw py::value_error(step.no_gradient);
  }
  ValuePtrList all(values);
  all.resize(step.gradients.size(), kNone);  // those of weights alone may have been computed
  abstract::AbstractBasePtrList abstracts;
  for (const std::size_t input : step.gradients) {
    abstracts.push_back(forward->abstract(input));
  }
  TensorPtrList operands = context.GetSavedTensors();
  const TensorPtrList gradients = GradPreProcess(all, abstracts, /*materialize_grads=*/true, name_);
  operands.insert(operands.end(), gradients.begin(), gradients.end());
  py::list given;
  for (const TensorPtr& operand : operands) {
    given.append(to_python(operand));
  }
  ValuePtrList found;
  for (const py::handle one : py::list(step.differentiate_again.get()(given))) {
    found.push_back(from_python(one));
  }
  return found;
}

/// A value for each input of the forward program that has a gradient.
inline ValuePtrList Node::differentiate_step(const ValuePtrList& values) {
  const aten_bridge::caller::Step& step = *signature->step;
  TensorPtrList operands = context.GetSavedTensors();
  const TensorPtrList tangents = result_gradients(values, step.tangents);
  operands.insert(operands.end(), tangents.begin(), tangents.end());
  const std::size_t of_weights = step.weight_gradients();
  bool needs_all = of_weights == 0;
  const AutoDiffInterfacePtr engine = impl::CurrentAutoDiffEngine();
  for (std::size_t i = of_weights; i < step.gradients.size(); ++i) {
    const BackwardNodePtr& source = next_edges()[i].grad_node;
    needs_all =
        needs_all || engine == nullptr || (source != nullptr && engine->IsInExecGraph(source));
  }
  const Caller& caller = needs_all ? *step.of_all : *step.of_weights;
  const std::size_t count = needs_all ? step.gradients.size() : of_weights;
  TensorPtrList found = caller.differentiate_step(*signature, count, operands, kept);
  if (is_recording_gradients()) {
    Create<CppFunctionNode<StepGradient>>(signature, count)->record(next_edges(), operands, found);
  }
  ValuePtrList results(found.begin(), found.end());
  results.resize(step.gradients.size(), kNone);
  return results;
}

/// A value for each input that is a tensor.
inline ValuePtrList Node::CallBackward(const ValuePtrList& values) {
  const py::gil_scoped_acquire acquired;
  if (signature->step != nullptr) {
    return differentiate_step(values);
  }
  std::vector<std::size_t> all(values.size());
  std::iota(all.begin(), all.end(), 0);
  const TensorPtrList gradients = result_gradients(values, all);
  const TensorPtrList saved = context.GetSavedTensors();
  const auto kernel = gradient->kernel.lock();
  TensorPtrList found;
  if (kernel != nullptr) {
    found = kernel->differentiate(*this, saved, gradients);
  }
  if (found.empty()) {
    return ask_python(saved, gradients);
  }
  ValuePtrList results;
  auto next = found.begin();
  for (std::size_t i = 0; i < signature->kinds.size(); ++i) {
    const ValuePtr result = gradient->mask[i] ? ValuePtr(*next++) : kNone;
    if (signature->kinds[i] == kTensor) {
      results.push_back(result);
    }
  }
  return results;
}

inline ValuePtrList Node::ask_python(const TensorPtrList& saved,
                                     const TensorPtrList& gradients) const {
  py::list inputs, results, result_gradients;
  auto tensor = saved.begin();
  std::size_t number = 0;
  for (const Kind kind : signature->kinds) {
    if (kind == kTensor) {
      inputs.append(to_python(*tensor++));
    } else {
      inputs.append(kind == aten_bridge::caller::kNone
                        ? py::none()
                        : py::object(py::tuple(python_numbers.get())[number++]));
    }
  }
  for (; tensor != saved.end(); ++tensor) {
    results.append(to_python(*tensor));
  }
  for (const TensorPtr& one : gradients) {
    result_gradients.append(to_python(one));
  }
  const py::sequence answer = python_operator.get().attr("differentiate")(
      gradient, gradient->layout.get(), inputs, results, result_gradients);
  ValuePtrList found;
  for (std::size_t i = 0; i < signature->kinds.size(); ++i) {
    if (signature->kinds[i] == kTensor) {
      found.push_back(from_python(py::object(answer[i])));
    }
  }
  return found;
}

}  // namespace mindspore::pynative::autograd

#endif  // ATEN_BRIDGE_CALLER_BACKWARD_H_

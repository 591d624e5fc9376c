// An operator as Python has it: what is known of its calls, and how they are run and recorded.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_CALLER_CALLER_H_
#define ATEN_BRIDGE_CALLER_CALLER_H_

#include "call.h"
#include "computed_results.h"
#include "gradient.h"
#include "mode.h"

#include <include/runtime/pipeline/pipeline.h>
#include <include/utils/tensor_py.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

namespace aten_bridge::caller {

inline mindspore::ValuePtr attribute_value(const py::handle& value) {
  if (py::isinstance<py::bool_>(value)) {
    return mindspore::MakeValue(value.cast<bool>());
  }
  if (py::isinstance<py::int_>(value)) {
    return mindspore::MakeValue(value.cast<int64_t>());
  }
  if (py::isinstance<py::float_>(value)) {
    return mindspore::MakeValue(value.cast<float>());
  }
  if (py::isinstance<py::str>(value)) {
    return mindspore::MakeValue(value.cast<std::string>());
  }
  if (py::isinstance<py::list>(value) || py::isinstance<py::tuple>(value)) {
    std::vector<mindspore::ValuePtr> elements;
    for (const py::handle element : py::reinterpret_borrow<py::sequence>(value)) {
      elements.push_back(attribute_value(element));
    }
    return std::make_shared<mindspore::ValueList>(elements);
  }
  return mindspore::MakeValue(py::str(value).cast<std::string>());
}

/// An operator, of the one thread that made it.
class Caller {
 public:
  Caller(std::uintptr_t function, std::uintptr_t init, std::uintptr_t set_strides, std::string path,
         std::string name, const py::dict& attributes, bool keeps_states)
      : keeps_states_(keeps_states) {
    auto target = std::make_shared<Target>();
    target->function = reinterpret_cast<KernelFunction>(function);
    target->init = reinterpret_cast<InitFunction>(init);
    target->set_strides = reinterpret_cast<StridesFunction>(set_strides);
    target->path = std::move(path);
    target->name = std::move(name);
    target_ = std::move(target);
    primitive_ = std::make_shared<mindspore::Primitive>("Custom");
    for (const auto& [key, value] : attributes) {
      primitive_->AddAttr(key.cast<std::string>(), attribute_value(value));
    }
  }

  /// NotImplemented where `Kernel._call` has to do something first.
  PyObject* call(PyObject* const* arguments, Py_ssize_t count) {
    if (std::this_thread::get_id() != thread_ || is_for_custom()) {
      return Py_NewRef(Py_NotImplemented);
    }
    Inputs inputs;
    for (Py_ssize_t i = 0; i < count; ++i) {
      if (!inputs.read(arguments[i])) {
        return Py_NewRef(Py_NotImplemented);
      }
    }
    const auto found = signatures_.find(inputs.key);
    if (found == signatures_.end() || !can_write(*found->second, inputs)) {
      return Py_NewRef(Py_NotImplemented);
    }
    if (found->second->sizes_call != nullptr) {
      return run_for_sizes(*found->second, inputs, arguments, count);
    }
    return run_or_queue(found->second, inputs, arguments, count);
  }

  /// Remembers the dtypes and shapes of what calls with such arguments return, and how they are
  /// differentiated. False if the caller does not take such calls.
  bool add(const py::sequence& arguments, const std::vector<std::string>& dtypes,
           const std::vector<ShapeVector>& shapes, const std::shared_ptr<Gradient>& gradient) {
    Inputs inputs;
    auto signature = make_signature(arguments, dtypes, shapes, gradient, inputs);
    if (signature == nullptr) {
      return false;
    }
    remember(std::move(inputs.key), std::move(signature));
    return true;
  }

  /// The same for calls whose results have sizes that only `sizes`, which has been told of such
  /// calls, knows once it has computed them.
  bool add_unsized(const py::sequence& arguments, const Caller& sizes,
                   const std::shared_ptr<ResultsOfLibrary>& library,
                   const std::shared_ptr<Gradient>& gradient) {
    Inputs inputs;
    auto signature = read_signature(arguments, gradient, inputs);
    const auto found = sizes.signatures_.find(inputs.key);
    if (signature == nullptr || found == sizes.signatures_.end()) {
      return false;
    }
    signature->sizes_call =
        std::make_shared<SizesCall>(SizesCall{library, sizes.target_, found->second});
    remember(std::move(inputs.key), std::move(signature));
    return true;
  }

  /// The same for calls of a step's forward program.
  bool add_step(const py::sequence& arguments, const std::vector<std::string>& dtypes,
                const std::vector<ShapeVector>& shapes, const std::shared_ptr<Step>& step) {
    Inputs inputs;
    auto signature = make_signature(arguments, dtypes, shapes, nullptr, inputs);
    if (signature == nullptr || inputs.tensors.size() != signature->kinds.size()) {
      return false;
    }
    signature->step = step;
    signature->is_of_step = true;
    signature->written = step->written;
    remember(std::move(inputs.key), std::move(signature));
    return true;
  }

  /// Where this has a step's backward program: the gradients of the first `count` inputs that have
  /// any, of a call of the forward one.
  std::vector<TensorPtr> differentiate_step(Signature& forward, std::size_t count,
                                            const std::vector<TensorPtr>& operands,
                                            const std::shared_ptr<Kept>& kept) const {
    Inputs inputs;
    for (const TensorPtr& operand : operands) {
      inputs.add_tensor(operand);
    }
    BackwardSignature& known = forward.backwards[this == forward.step->of_all.get() ? 1 : 0];
    std::shared_ptr<Signature> signature = known.key == inputs.key ? known.signature : nullptr;
    if (signature == nullptr) {
      signature = std::make_shared<Signature>(primitive_);
      signature->is_of_step = true;
      signature->add_inputs(inputs.key);
      for (std::size_t i = 0; i < count; ++i) {
        const std::size_t input = forward.step->gradients[i];
        signature->output_types.push_back(type_of_name(forward.dtypes[input]));
        signature->add(forward.dtypes[input], forward.sizes[input]);
      }
      signature->finish();
      init(*signature);
      known = {inputs.key, signature};
    }
    return run(target_, signature, inputs.tensors, {}, is_blocking(), kept);
  }

  std::size_t signature_count() const { return signatures_.size(); }

  /// A call whose results no other with such arguments has.
  PyObject* call_once(const py::sequence& arguments, const std::vector<std::string>& dtypes,
                      const std::vector<ShapeVector>& shapes,
                      const std::shared_ptr<Gradient>& gradient) {
    if (is_for_custom()) {
      return Py_NewRef(Py_NotImplemented);
    }
    Inputs inputs;
    const auto signature = make_signature(arguments, dtypes, shapes, gradient, inputs);
    if (signature == nullptr) {
      return Py_NewRef(Py_NotImplemented);
    }
    const py::tuple tuple(arguments);
    return run_or_queue(signature, inputs, PySequence_Fast_ITEMS(tuple.ptr()),
                        PyTuple_GET_SIZE(tuple.ptr()));
  }

  /// Where this is the operator of a gradient's kernel: its results for a call of another
  /// operator. Empty if Python has to call it.
  std::vector<TensorPtr> differentiate(const Node& node, const std::vector<TensorPtr>& saved,
                                       const std::vector<TensorPtr>& gradients) const {
    if (std::this_thread::get_id() != thread_ || is_for_custom()) {
      return {};
    }
    Inputs inputs;
    auto tensor = saved.begin();
    auto number = node.numbers.begin();
    for (const Kind kind : node.signature->kinds) {
      if (kind == kTensor) {
        inputs.add_tensor(*tensor++);
      } else if (kind == kNone) {
        inputs.key.push_back(kNone);
      } else {
        inputs.add_number(kind, *number++);
      }
    }
    for (const TensorPtr& gradient : gradients) {
      inputs.add_tensor(gradient);
    }
    const auto found = signatures_.find(inputs.key);
    if (found == signatures_.end()) {
      return {};
    }
    const std::shared_ptr<Signature>& signature = found->second;
    return run_and_record(make_node(signature, inputs, node.python_numbers.get()), target_,
                          signature, inputs.tensors, inputs.numbers, is_blocking());
  }

 private:
  static constexpr std::size_t kMaxSignatures = 1024;

  void remember(Key key, std::shared_ptr<Signature> signature) {
    if (signatures_.size() >= kMaxSignatures && !keeps_states_) {
      signatures_.clear();
    }
    signatures_[std::move(key)] = std::move(signature);
  }

  /// Whether inputs that a step changes are there themselves, and neither copies nor views, which
  /// MindSpore's own assign refuses (2.10).
  static bool can_write(const Signature& signature, const Inputs& inputs) {
    return std::all_of(signature.written.begin(), signature.written.end(), [&](std::size_t input) {
      return inputs.tensors[input]->is_contiguous() &&
             inputs.tensors[input]->storage_info() == nullptr;
    });
  }

  /// What is known of the inputs; null if such are not taken.
  std::shared_ptr<Signature> read_signature(const py::sequence& arguments,
                                            const std::shared_ptr<Gradient>& gradient,
                                            Inputs& inputs) const {
    for (const py::handle argument : arguments) {
      if (!inputs.read(argument.ptr())) {
        return nullptr;
      }
    }
    auto signature = std::make_shared<Signature>(primitive_);
    signature->gradient = gradient;
    return signature->add_inputs(inputs.key) ? signature : nullptr;
  }

  std::shared_ptr<Signature> make_signature(const py::sequence& arguments,
                                            const std::vector<std::string>& dtypes,
                                            const std::vector<ShapeVector>& shapes,
                                            const std::shared_ptr<Gradient>& gradient,
                                            Inputs& inputs) const {
    auto signature = read_signature(arguments, gradient, inputs);
    if (signature == nullptr) {
      return nullptr;
    }
    for (std::size_t i = 0; i < dtypes.size(); ++i) {
      const TypeId type = type_of_name(dtypes[i]);
      signature->output_types.push_back(type);
      signature->add(type_name(type), shapes[i]);
    }
    signature->finish();
    init(*signature);
    return signature;
  }

  void init(Signature& signature) const {
    if (target_->init == nullptr) {
      return;
    }
    {
      const py::gil_scoped_release released;
      const int status = target_->init(signature.ndims.data(), signature.shapes.data(),
                                       signature.dtypes.data(), &signature.extra);
      check_status(*target_, status);
    }
    signature.workspaces = signature.extra.WorkSpace();
  }

  /// The numbers among a call's arguments.
  static py::tuple python_numbers(PyObject* const* arguments, Py_ssize_t count) {
    py::list numbers;
    for (Py_ssize_t i = 0; i < count; ++i) {
      if (PyLong_Check(arguments[i]) || PyFloat_Check(arguments[i])) {
        numbers.append(py::handle(arguments[i]));
      }
    }
    return py::tuple(numbers);
  }

  /// What MindSpore may record of a call; null where it records none.
  std::shared_ptr<Node> make_node(const std::shared_ptr<Signature>& signature, const Inputs& inputs,
                                  const py::object& numbers) const {
    if (!is_recording_gradients()) {
      return nullptr;
    }
    if (signature->step != nullptr) {
      auto node = autograd::BackwardNode::Create<Node>(target_->name, signature, nullptr);
      node->kept = std::make_shared<Kept>(signature->step);
      return node;
    }
    const auto gradient = signature->gradient.lock();
    const py::object python_operator =
        gradient == nullptr ? py::none() : gradient->weak_operator.get()();
    if (python_operator.is_none()) {
      throw std::logic_error(target_->name + ": expected an operator, got one that is gone");
    }
    auto node = autograd::BackwardNode::Create<Node>(target_->name, signature, gradient);
    node->numbers = inputs.numbers;
    node->python_operator = Reference(python_operator);
    node->python_numbers = Reference(numbers);
    return node;
  }

  /// Runs a call, and lets MindSpore differentiate it where an input may need that. What computes
  /// the inputs stands before it in MindSpore's queue, or is waited for.
  static std::vector<TensorPtr> run_and_record(const std::shared_ptr<Node>& node,
                                               const std::shared_ptr<const Target>& target,
                                               const std::shared_ptr<Signature>& signature,
                                               const std::vector<TensorPtr>& inputs,
                                               const std::vector<int64_t>& numbers, bool blocks) {
    std::vector<TensorPtr> outputs =
        run(target, signature, inputs, numbers, blocks, node == nullptr ? nullptr : node->kept);
    if (node != nullptr) {
      node->record(inputs, outputs);
    }
    return outputs;
  }

  std::shared_ptr<Node> make_node(const std::shared_ptr<Signature>& signature, const Inputs& inputs,
                                  PyObject* const* arguments, Py_ssize_t argument_count) const {
    if (inputs.numbers.empty() || !is_recording_gradients()) {
      return make_node(signature, inputs, py::object());
    }
    return make_node(signature, inputs, python_numbers(arguments, argument_count));
  }

  /// A call whose results have sizes that are known once they are computed: in this thread.
  PyObject* run_for_sizes(const Signature& unsized, const Inputs& inputs,
                          PyObject* const* arguments, Py_ssize_t argument_count) const {
    const ComputedResults computed(*unsized.sizes_call, inputs);
    const auto signature = std::make_shared<Signature>(primitive_);
    signature->gradient = unsized.gradient;
    signature->add_inputs(inputs.key);
    signature->output_types = computed.types();
    for (std::size_t i = 0; i < computed.types().size(); ++i) {
      signature->add(type_name(computed.types()[i]), computed.shapes()[i]);
    }
    std::vector<TensorPtr> outputs = computed.copy();
    const auto node = make_node(signature, inputs, arguments, argument_count);
    if (node != nullptr) {
      node->record(inputs.tensors, outputs);
    }
    std::vector<PyObject*> results;
    results.reserve(outputs.size());
    for (const TensorPtr& output : outputs) {
      results.push_back(mindspore::tensor::PackTensor(output));
    }
    return results.size() == 1 ? results.front() : tuple_of(results);
  }

  PyObject* run_or_queue(const std::shared_ptr<Signature>& signature, Inputs& inputs,
                         PyObject* const* arguments, Py_ssize_t argument_count) const {
    const std::shared_ptr<Node> node = make_node(signature, inputs, arguments, argument_count);
    const std::size_t first = signature->written.size();  // None stands for those that are written
    std::vector<PyObject*> results(signature->output_types.size(), nullptr);
    for (std::size_t i = 0; i < first; ++i) {
      results[i] = Py_NewRef(Py_None);
    }
    const bool is_one =
        results.size() == 1 && (signature->step == nullptr || !signature->step->gives_tuple);
    const auto& queue = mindspore::runtime::Pipeline::Get().frontend_stage();
    const bool blocks = is_blocking();
    if (blocks || signature->is_short || signature->is_of_step || !kMayQueue) {
      if (!queue->Empty()) {
        const py::gil_scoped_release released;
        queue->Wait();
      }
      const std::vector<TensorPtr> outputs =
          run_and_record(node, target_, signature, inputs.tensors, inputs.numbers, blocks);
      for (std::size_t i = first; i < results.size(); ++i) {
        results[i] = mindspore::tensor::PackTensor(outputs[i - first]);
      }
      return is_one ? results.front() : tuple_of(results);
    }
    std::vector<mindspore::stub::StubNodePtr> promises;
    promises.reserve(results.size() - first);
    for (std::size_t i = first; i < results.size(); ++i) {
      const mindspore::tensor::TensorWrapper future(/*has_side_effect=*/false);
      results[i] = future.value();
      promises.push_back(future.MakeFuture());
    }
    const auto task = std::make_shared<Task>(
        mindspore::runtime::kFrontendTask,
        [target = target_, signature, node, tensors = std::move(inputs.tensors),
         numbers = std::move(inputs.numbers), promises]() {
          // Also where MindSpore has begun to block since: this thread is a queue's.
          const std::vector<TensorPtr> outputs =
              run_and_record(node, target, signature, tensors, numbers, /*blocks=*/false);
          for (std::size_t i = 0; i < promises.size(); ++i) {
            promises[i]->SetValue(outputs[i]);
          }
        },
        [promises](const std::exception_ptr& exception) {
          for (const auto& promise : promises) {
            promise->SetException(exception);
          }
        });
    static std::mutex mutex;
    push(queue, mutex, task);
    return is_one ? results.front() : tuple_of(results);
  }

  static PyObject* tuple_of(const std::vector<PyObject*>& results) {
    PyObject* tuple = PyTuple_New(static_cast<Py_ssize_t>(results.size()));
    for (std::size_t i = 0; tuple != nullptr && i < results.size(); ++i) {
      PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(i), results[i]);
    }
    return tuple;
  }

  std::shared_ptr<const Target> target_;
  mindspore::PrimitivePtr primitive_;
  bool
      keeps_states_;  // that calls change, so that signatures, which have them, are never forgotten
  std::thread::id thread_ = std::this_thread::get_id();
  std::unordered_map<Key, std::shared_ptr<Signature>, KeyHash> signatures_;
};

}  // namespace aten_bridge::caller

#endif  // ATEN_BRIDGE_CALLER_CALLER_H_

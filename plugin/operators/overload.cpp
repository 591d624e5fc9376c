// One overload of an operator of PyTorch's.
//
// SPDX-License-Identifier: Apache-2.0

#include "overload.h"

#include <ATen/ops/clone.h>
#include <ATen/ops/empty.h>
#include <aten_bridge/call/lent_memory.h>

#include <algorithm>

#pragma GCC visibility push(hidden)

namespace aten_bridge::operators {

namespace {

using detail::join;
using detail::Operand;
using detail::ParameterKind;
using detail::raise;
using detail::ScalarInputType;

using Stack = std::vector<c10::IValue>;

/// The thread's stack for calls, which keeps its memory; one of its own for a call within a call.
class StackInUse {
 public:
  StackInUse() { stack.swap(kept()); }
  ~StackInUse() {
    stack.clear();
    stack.swap(kept());
  }
  StackInUse(const StackInUse&) = delete;
  StackInUse& operator=(const StackInUse&) = delete;

  Stack stack;

 private:
  static Stack& kept() {
    thread_local Stack kept;
    return kept;
  }
};

c10::IValue tensor_or_none(const at::Tensor& view) {
  return view.defined() ? c10::IValue(view) : c10::IValue();
}

/// What an operator writes instead of its input: a host's arrays stay what they are.
c10::IValue copy_or_none(const at::Tensor& view) {
  return view.defined() ? c10::IValue(view.clone()) : c10::IValue();
}

// How often an operator was taken away from the dispatcher.
std::atomic<std::uint64_t> deregistrations{0};

ResolvedOperator look_up(const c10::OperatorHandle& handle) {
  ResolvedOperator found{handle, std::nullopt, dispatcher_epoch()};
  // Where both are made of one structured kernel. Of others the one that writes outputs may be
  // wrong: fft_ihfftn.out and binary_cross_entropy.out are (PyTorch 2.11).
  if (handle.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutogradNonFunctional)) {
    found.out = find_out(handle.schema());
  }
  return found;
}

/// Copies a result that an operator left in memory of its own into that of the host, as
/// aten::mse_loss.out does (PyTorch 2.11). One of another size stays: the call is refused.
void copy_into_output(Operand& output, const c10::OperatorHandle& handle) {
  const OperandDesc& desc = output.desc;
  const at::Tensor result = output.view;
  if (desc.numel == 0 || result.const_data_ptr() == desc.data ||
      result.sizes() != at::IntArrayRef(desc.sizes, static_cast<std::size_t>(desc.ndim)) ||
      result.scalar_type() != scalar_type(desc.dtype)) {
    return;
  }
  Report report(handle.operator_name().name.c_str());
  output.view = detail::make_view</*kMayBeStrided=*/false>(desc, output.name, result.device(),
                                                           /*allocator=*/nullptr, report);
  report.raise_if_failed();
  output.view.copy_(result);
}

/// Writes what an operator left of an output as a pending conjugation or negation, as
/// aten::linalg_lu_solve.out does where it solves complex systems from the right (PyTorch 2.11).
void resolve_in_place(const at::Tensor& view) {
  if (view.is_conj() || view.is_neg()) {
    const at::Tensor values = view.resolve_conj().resolve_neg();
    view._set_conj(false);
    view._set_neg(false);
    view.copy_(values);
  }
}

}  // namespace

at::Tensor defined(const at::Tensor& result) {
  return result.defined() ? result : at::empty({0}, at::kFloat);
}

std::vector<at::Tensor> defined(at::TensorList results) {
  std::vector<at::Tensor> tensors;
  tensors.reserve(results.size());
  for (const at::Tensor& result : results) {
    tensors.push_back(defined(result));
  }
  return tensors;
}

std::uint64_t dispatcher_epoch() noexcept {
  return deregistrations.load(std::memory_order_acquire);
}

void end_dispatcher_epoch() noexcept { ++deregistrations; }

/// Counts that. Lives for ever, as what is kept of operators does.
void watch_dispatcher() {
  class Listener final : public c10::OpRegistrationListener {
   public:
    void onOperatorRegistered(const c10::OperatorHandle& /*op*/) override {}
    void onOperatorDeregistered(const c10::OperatorHandle& /*op*/) override { ++deregistrations; }
  };
  static auto* const registration = new c10::RegistrationHandleRAII(
      c10::Dispatcher::singleton().addRegistrationListener(std::make_unique<Listener>()));
  static_cast<void>(registration);
}

Operator::Operator(const c10::OperatorHandle& handle, const TextAttributes& attributes, int inputs)
    : registered_(handle),
      depends_on_values_(depends_on_values(handle)),
      schema_(read_schema(handle.schema())) {
  if (!schema_.fault.empty()) {
    raise(Status::kAttribute,
          {schema_.name, ": expected an operator from tensors to new tensors, got one ",
           "that is not: ", schema_.fault});
  }
  int fixed = 0;
  bool has_open_list = false;
  for (const Argument& argument : schema_.arguments) {
    lengths_.push_back(-1);
    if (argument.form == Argument::Form::kTensor) {
      ++fixed;
    } else if (argument.form == Argument::Form::kTensors && argument.is_required) {
      // The number of its tensors is an attribute.
      constexpr int64_t kMost = 10000;
      int64_t length = 0;
      if (!attributes.get(argument.name.c_str(), length) || length < 0 || length > kMost) {
        Report report(schema_.name.c_str());
        attributes.add_fault(argument.name.c_str(), kLengthText, report);
        report.raise();
      }
      lengths_.back() = static_cast<int>(length);
      fixed += static_cast<int>(length);
    } else if (argument.form == Argument::Form::kTensors) {
      has_open_list = true;
      lengths_.back() = inputs < 0 ? -1 : 0;
    }
  }
  int missing = inputs < 0 || has_open_list ? 0 : fixed - inputs;
  for (auto argument = schema_.arguments.rbegin();
       missing > 0 && argument != schema_.arguments.rend(); ++argument) {
    if (argument->form == Argument::Form::kTensors ||
        (argument->form == Argument::Form::kTensor && !argument->is_optional)) {
      break;  // it cannot be left out: a call of so many inputs is refused
    }
    if (argument->form == Argument::Form::kTensor) {
      argument->form = Argument::Form::kDefault;  // None
      --missing;
    }
  }
  for (std::size_t i = 0; i < lengths_.size(); ++i) {
    const Argument& argument = schema_.arguments[i];
    const bool is_list = argument.form == Argument::Form::kTensors;
    if (!is_list && argument.form != Argument::Form::kTensor) {
      continue;
    }
    const bool is_open = is_list && !argument.is_required;
    if (is_open && inputs >= 0) {
      lengths_[i] = std::max(0, inputs - fixed);
    } else if (is_open) {
      list_begin_ = static_cast<int>(bindings_.size());
    }
    const bool is_any = is_open && inputs < 0;
    const int count = !is_list || is_any ? 1 : lengths_[i];
    for (int j = 0; j < count; ++j) {
      bindings_.push_back({is_any                 ? ParameterKind::kTensorList
                           : argument.is_optional ? ParameterKind::kOptionalTensor
                                                  : ParameterKind::kTensor,
                           ScalarInputType::kNone, argument.is_optional});
      checks_.push_back(input(argument.name.c_str()));
    }
  }
}

std::string Operator::key() const {
  std::string key = join({schema_.name, " ", bindings_.size()});
  for (const int length : lengths_) {
    key += ' ' + std::to_string(length);
  }
  return join({key, " ", registered_.schema()});
}

bool Operator::is_data_dependent() const { return depends_on_values_; }

RegisteredOperator::RegisteredOperator(const c10::OperatorHandle& handle)
    : name_(c10::toString(handle.operator_name())), schema_(c10::toString(handle.schema())) {
  watch_dispatcher();
  all_.push_back(std::make_unique<const ResolvedOperator>(look_up(handle)));
  resolved_ = all_.back().get();
}

bool RegisteredOperator::is_current() const {
  try {
    resolved();
    return true;
  } catch (const Error&) {
    return false;
  }
}

const ResolvedOperator& RegisteredOperator::resolved() const {
  const ResolvedOperator* last = resolved_.load(std::memory_order_acquire);
  if (last->epoch == dispatcher_epoch()) {
    return *last;
  }
  static auto* const mutex = new std::mutex;
  const std::lock_guard<std::mutex> lock(*mutex);
  const auto handle = find_overload(name_);
  if (!handle.has_value() || c10::toString(handle->schema()) != schema_) {
    raise(Status::kAten,
          {name_, ": expected the operator that was registered with PyTorch when this one was ",
           "made, got ", handle.has_value() ? "one of another schema" : "none any more",
           "; make the operator, or the module that calls it, again"});
  }
  all_.push_back(std::make_unique<const ResolvedOperator>(look_up(*handle)));
  last = all_.back().get();
  resolved_.store(last, std::memory_order_release);
  return *last;
}

void Operator::push_arguments(const Arguments& arguments, Stack& stack) const {
  const auto& values = static_cast<const OperatorInstance*>(arguments.instance)->values();
  const Operand* operand = arguments.operands;
  for (std::size_t i = 0; i < schema_.arguments.size(); ++i) {
    const Argument& argument = schema_.arguments[i];
    switch (argument.form) {
      case Argument::Form::kTensor:
        stack.push_back(argument.is_written ? copy_or_none(operand->view)
                                            : tensor_or_none(operand->view));
        ++operand;
        break;
      case Argument::Form::kTensors: {
        const int length = lengths_[i] < 0 ? arguments.list_size : lengths_[i];
        if (argument.is_optional) {
          c10::List<std::optional<at::Tensor>> list;
          for (int j = 0; j < length; ++j, ++operand) {
            list.push_back(operand->view.defined() ? std::optional<at::Tensor>(operand->view)
                                                   : std::nullopt);
          }
          stack.emplace_back(std::move(list));
        } else {
          c10::List<at::Tensor> list;
          for (int j = 0; j < length; ++j, ++operand) {
            list.push_back(operand->view);
          }
          stack.emplace_back(std::move(list));
        }
        break;
      }
      case Argument::Form::kAttribute:
      case Argument::Form::kDefault:
        stack.push_back(values[i]);
        break;
    }
  }
}

Tensors Operator::call(const Arguments& arguments) const {
  StackInUse in_use;
  push_arguments(arguments, in_use.stack);
  registered_.resolved().handle.callBoxed(&in_use.stack);
  Tensors results;
  for (c10::IValue& result : in_use.stack) {
    results.push_back(result.isTensor() ? std::move(result).toTensor() : at::Tensor());
  }
  return results;
}

bool Operator::call_out(const Arguments& arguments) const {
  const std::optional<c10::OperatorHandle>& out = registered_.resolved().out;
  if (!out.has_value()) {
    return false;
  }
  for (int i = 0; i < arguments.inputs; ++i) {
    if (detail::overlaps_outputs(arguments, arguments.operands[i].view)) {
      return false;  // ATen does not see it: it would read what it has overwritten
    }
  }
  StackInUse in_use;
  push_arguments(arguments, in_use.stack);
  for (int i = 0; i < arguments.outputs; ++i) {
    in_use.stack.emplace_back(arguments.output(i).view);
  }
  out->callBoxed(&in_use.stack);
  in_use.stack.clear();
  for (int i = 0; i < arguments.outputs; ++i) {
    copy_into_output(arguments.output(i), *out);
    resolve_in_place(arguments.output(i).view);
  }
  return true;
}

std::unique_ptr<Instance> Operator::make_instance(const Attributes& attributes,
                                                  Report& report) const {
  std::string text;
  attributes.get(kOperatorAttribute, text);
  const TextAttributes given(text);
  Stack values;
  for (const Argument& argument : schema_.arguments) {
    values.push_back(argument.form == Argument::Form::kAttribute
                         ? read_value(argument, given, report)
                         : argument.fallback);
  }
  return std::make_unique<OperatorInstance>(std::move(text), std::move(values));
}

void Operator::visit_attributes(detail::AttributeVisitor& visitor) const {
  for (const Argument& argument : schema_.arguments) {
    if (argument.form == Argument::Form::kAttribute) {
      visitor.visit({argument.name.c_str(), argument.text, argument.type, argument.is_optional,
                     argument.is_required, nullptr});
    } else if (argument.form == Argument::Form::kTensors && argument.is_required) {
      visitor.visit({argument.name.c_str(), kLengthText, AttributeType::kInt, /*is_optional=*/false,
                     /*is_required=*/true, nullptr});
    }
  }
}

}  // namespace aten_bridge::operators

#pragma GCC visibility pop

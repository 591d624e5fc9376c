// Kernels of PyTorch's operators.
//
// SPDX-License-Identifier: Apache-2.0

#include "operator_kernels.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/clone.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros_like.h>
#include <aten_bridge/call/lent_memory.h>
#include <aten_bridge/tensors/exceptions.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <mutex>
#include <sstream>

#pragma GCC visibility push(hidden)

namespace aten_bridge::operators {

namespace {

using detail::join;
using detail::kMaxNdim;
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

/// In the place of an input that an operator writes: a host's arrays stay what they are.
c10::IValue copy_or_none(const at::Tensor& view) {
  return view.defined() ? c10::IValue(view.clone()) : c10::IValue();
}

/// What gradients, and who asks for results of no size yet, get in the place of none.
at::Tensor defined(const at::Tensor& result) {
  return result.defined() ? result : at::empty({0}, at::kFloat);
}

/// Whether an operator did not compute a result of which its meta function told a shape: it is
/// undefined or, as the statistics of aten::native_batch_norm outside of training, of no elements
/// (PyTorch 2.11).
bool is_left_out(const at::Tensor& result, const at::Tensor& output, const std::string& name) {
  return !result.defined() ||
         (name == "aten::native_batch_norm" && result.numel() == 0 && output.numel() > 0);
}

/// Whether PyTorch's Python part tells other results than the kernel for the CPU gives (2.11):
/// other shapes, or, of the statistics of float16 and bfloat16, float32.
bool has_wrong_meta(const Schema& schema, const Arguments& metas) {
  const std::string& name = schema.name;
  if (name.rfind("aten::", 0) != 0) {
    return false;
  }
  const bool has_statistics =
      schema.results > 1 && (name.find("batch_norm") != std::string::npos ||
                             name.find("native_layer_norm") != std::string::npos);
  return name.find("embedding_bag") != std::string::npos ||
         (has_statistics &&
          std::any_of(metas.operands, metas.operands + metas.inputs, [](const Operand& input) {
            return input.view.defined() && at::isReducedFloatingType(input.view.scalar_type());
          }));
}

// Of the dispatcher: how often an operator was taken away from it.
std::atomic<std::uint64_t> deregistrations{0};

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

/// An operator's schema, which tells one from another that was registered by its name.
std::string schema_text(const c10::OperatorHandle& handle) {
  return c10::toString(handle.schema());
}

Registered look_up(const c10::OperatorHandle& handle) {
  Registered found{handle, std::nullopt, dispatcher_epoch()};
  // Where both are made of one structured kernel. Of others the one that writes outputs may be
  // wrong: fft_ihfftn.out and binary_cross_entropy.out are (PyTorch 2.11).
  if (handle.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutogradNonFunctional)) {
    found.out = find_out(handle.schema());
  }
  return found;
}

/// Drops the views that an operator in Python has seen, also where it fails: each has a Python
/// object, and would want the interpreter when a thread of the host's ends, which may be after it.
/// Python may still have one until it collects its garbage: only a reader of that meets an error.
class DropsSeenByPython {
 public:
  explicit DropsSeenByPython(const Arguments& arguments) : arguments_(arguments) {}
  ~DropsSeenByPython() {
    // The list has the views too. What run() fills is not const.
    const_cast<Arguments&>(arguments_).list.clear();  // NOLINT(*-const-cast)
    for (int i = 0; i < arguments_.inputs; ++i) {
      at::Tensor& view = arguments_.operands[i].view;
      if (view.defined() &&
          detail::has_python_object(view.unsafeGetTensorImpl()->pyobj_slot(), 0)) {
        detail::drop_views(&arguments_.operands[i], 1);
      }
    }
  }
  DropsSeenByPython(const DropsSeenByPython&) = delete;
  DropsSeenByPython& operator=(const DropsSeenByPython&) = delete;

 private:
  const Arguments& arguments_;
};

/// Copies a result that an operator left in memory of its own into that of the host, as
/// aten::mse_loss.out does (PyTorch 2.11). One of another size stays: the call is refused.
void copy_into_output(Operand& output, const c10::OperatorHandle& of) {
  const OperandDesc& desc = output.desc;
  const at::Tensor result = output.view;
  if (desc.numel == 0 || result.const_data_ptr() == desc.data ||
      result.sizes() != at::IntArrayRef(desc.sizes, static_cast<std::size_t>(desc.ndim)) ||
      result.scalar_type() != detail::kScalarTypes[static_cast<std::size_t>(desc.dtype)]) {
    return;
  }
  Report report(of.operator_name().name.c_str());
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

//===--- one overload ---===//

Operator::Operator(const c10::OperatorHandle& handle, const TextAttributes& attributes, int inputs)
    : text_(schema_text(handle)),
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
        raise(Status::kAttribute, {schema_.name, ": attribute '", argument.name,
                                   "': expected the number ", "of tensors in this list, got ",
                                   attributes.has(argument.name.c_str())
                                       ? detail::attribute_text(attributes, argument.name.c_str())
                                       : "nothing; " + attributes.advice(argument.name.c_str())});
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
  return join({key, " ", text_});
}

bool Operator::is_data_dependent() const { return depends_on_values_; }

const Registered& Operator::registered() const {
  const Registered* last = registered_.load(std::memory_order_acquire);
  if (last != nullptr && last->epoch == dispatcher_epoch()) {
    return *last;
  }
  static auto* const mutex = new std::mutex;
  const std::lock_guard<std::mutex> lock(*mutex);
  watch_dispatcher();
  const auto handle = find_overload(schema_.name);
  if (!handle.has_value() || schema_text(*handle) != text_) {
    raise(
        Status::kAten,
        {schema_.name, ": expected the operator that was registered with PyTorch when ",
         "this one was made, got ", handle.has_value() ? "one of another schema" : "none any more",
         "; make the operator anew"});
  }
  last = new Registered(look_up(*handle));  // the one before may be in use
  registered_.store(last, std::memory_order_release);
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
  registered().handle.callBoxed(&in_use.stack);
  Tensors results;
  for (c10::IValue& result : in_use.stack) {
    results.push_back(result.isTensor() ? std::move(result).toTensor() : at::Tensor());
  }
  return results;
}

bool Operator::call_out(const Arguments& arguments) const {
  const std::optional<c10::OperatorHandle>& out = registered().out;
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

std::unique_ptr<Instance> Operator::make_instance(const KernelBase& kernel,
                                                  const Attributes& attributes,
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
  return std::make_unique<OperatorInstance>(&kernel, std::move(text), std::move(values));
}

void Operator::visit_attributes(detail::AttributeVisitor& visitor) const {
  for (const Argument& argument : schema_.arguments) {
    if (argument.form == Argument::Form::kAttribute) {
      visitor.visit({argument.name.c_str(), argument.text, argument.type, argument.is_optional,
                     argument.is_required, nullptr});
    } else if (argument.form == Argument::Form::kTensors && argument.is_required) {
      visitor.visit({argument.name.c_str(), "the number of tensors in this list",
                     AttributeType::kInt, /*is_optional=*/false, /*is_required=*/true, nullptr});
    }
  }
}

//===--- what is done with it ---===//

namespace {

detail::KernelDescriptor make_info(const Operator& of, int outputs) {
  detail::KernelDescriptor info{};
  info.operator_name = of.schema().name.c_str();
  info.error_mode = detail::ErrorMode::kThrow;
  info.messages = &detail::MindSporeCustom::kMessages;
  info.bindings = of.bindings().data();
  info.checks = of.checks().data();
  info.check_count = static_cast<int>(of.checks().size());
  info.inputs = static_cast<int>(of.bindings().size());
  info.outputs = outputs;
  info.list_begin = of.list_begin();
  info.has_instance = true;
  info.has_meta = true;
  info.returns_results = true;
  return info;
}

/// The stand-ins of a call with memory full of `value`, so that an operator without a meta kernel
/// can be run on them.
class MaterialisedArguments {
 public:
  MaterialisedArguments(const Arguments& metas, const at::Scalar& value)
      : operands_(static_cast<std::size_t>(metas.inputs)) {
    for (int i = 0; i < metas.inputs; ++i) {
      const at::Tensor& meta = metas.operands[i].view;
      if (meta.defined()) {
        operands_[static_cast<std::size_t>(i)].view =
            at::full(meta.sizes(), value, meta.scalar_type());
      }
    }
    arguments.operands = operands_.data();
    arguments.inputs = metas.inputs;
    arguments.list_begin = metas.list_begin;
    arguments.list_size = metas.list_size;
    arguments.instance = metas.instance;
    arguments.kernel = metas.kernel;
  }
  MaterialisedArguments(const MaterialisedArguments&) = delete;
  MaterialisedArguments& operator=(const MaterialisedArguments&) = delete;

  Arguments arguments;

 private:
  std::vector<Operand> operands_;
};

/// Keeps PyTorch's random numbers as they are. What another thread draws meanwhile is drawn again.
class KeptGenerator {
 public:
  KeptGenerator() : generator_(at::detail::getDefaultCPUGenerator()), state_(get()) {}
  ~KeptGenerator() {
    try {
      const std::lock_guard<std::mutex> lock(generator_.mutex());
      generator_.set_state(state_);
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): of no memory
    }
  }
  KeptGenerator(const KeptGenerator&) = delete;
  KeptGenerator& operator=(const KeptGenerator&) = delete;

 private:
  at::Tensor get() {
    const std::lock_guard<std::mutex> lock(generator_.mutex());
    return generator_.get_state();
  }

  at::Generator generator_;
  at::Tensor state_;
};

// What to do is another thing in each host: aten_bridge._operators knows these ends and adds it.
constexpr const char* kDependsOnValues =
    ": expected an operator whose results have sizes that follow from those of its inputs, got one "
    "whose sizes depend on values";
constexpr const char* kImportPyTorch =
    "; import torch, whose Python part knows the shapes of more operators";

bool have_same_shapes(const Tensors& a, const Tensors& b) {
  return std::equal(
      a.begin(), a.end(), b.begin(), b.end(), [](const at::Tensor& x, const at::Tensor& y) {
        return x.defined() == y.defined() &&
               (!x.defined() || (x.sizes() == y.sizes() && x.scalar_type() == y.scalar_type()));
      });
}

/// Whether it is an operator of PyTorch itself, which can be run on made-up values: those of other
/// libraries may have effects, and nobody has looked at what their sizes depend on.
bool is_atens(const Operator& of) { return of.schema().name.rfind("aten::", 0) == 0; }

/// The shapes of an operator that cannot be asked with meta tensors: it is run on ones and on
/// zeros, of which other shapes come if they depend on values. One of them may be refused.
Tensors infer_by_running(const Operator& of, const Arguments& metas) {
  if (!is_atens(of)) {
    raise(Status::kShape, {of.schema().name, kDependsOnValues});
  }
  const KeptGenerator generator;
  std::optional<Tensors> of_zeros;
  try {
    of_zeros = of.call(MaterialisedArguments(metas, 0).arguments);
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
  }
  Tensors of_ones;
  try {
    of_ones = of.call(MaterialisedArguments(metas, 1).arguments);
  } catch (const std::exception& error) {
    if (of_zeros.has_value()) {
      return *std::move(of_zeros);
    }
    // aten_bridge._function imports PyTorch where a text says so, and asks again.
    raise(Status::kAten,
          {of.schema().name, ": expected shapes that PyTorch tells without data, or ",
           "with zeros or ones in the inputs, got the error: ", detail::exception_text(error),
           kImportPyTorch});
  }
  if (of_zeros.has_value() && !have_same_shapes(*of_zeros, of_ones)) {
    raise(Status::kShape, {of.schema().name, kDependsOnValues});
  }
  return of_ones;
}

/// Whether a call takes milliseconds and little memory, as far as its inputs and the attributes
/// that may be sizes say it.
bool is_small(const Arguments& metas) {
  constexpr double kMostElements = 1 << 20;
  double elements = 1;
  for (int i = 0; i < metas.inputs; ++i) {
    const at::Tensor& meta = metas.operands[i].view;
    elements *= meta.defined() ? std::max(1.0, static_cast<double>(meta.numel())) : 1;
  }
  const auto multiply = [&](int64_t number) {
    elements *= std::max(1.0, std::abs(static_cast<double>(number)));
  };
  for (const c10::IValue& value : static_cast<const OperatorInstance*>(metas.instance)->values()) {
    if (value.isInt()) {
      multiply(value.toInt());
    } else if (value.isIntList()) {
      for (const int64_t number : value.toIntVector()) {
        multiply(number);
      }
    }
  }
  return elements <= kMostElements;
}

/// Throws what PyTorch's kernel says of inputs that a meta function in Python refuses: these have
/// texts such as "not enough values to unpack" (PyTorch 2.11). The kernel is run on zeros, if that
/// is cheap; where it takes them, the meta function's text stays.
void throw_as_kernel_does(const Operator& of, const Arguments& metas) {
  const bool is_internal = of.schema().name.rfind("aten::_", 0) == 0;  // checks less
  if (is_atens(of) && !is_internal && is_small(metas)) {
    const KeptGenerator generator;
    static_cast<void>(of.call(MaterialisedArguments(metas, 0).arguments));
  }
}

std::string layout_text(at::Layout layout) {
  std::ostringstream text;
  text << layout;
  return text.str();
}

/// Whether an error says that an operator cannot be asked for shapes, not that these are wrong.
bool is_about_meta(const std::string& text) {
  return detail::is_about_data(text) || text.find("Meta") != std::string::npos ||
         text.find("meta") != std::string::npos || text.find("data pointer") != std::string::npos ||
         text.find("storage") != std::string::npos ||
         text.find("no fake impl") != std::string::npos;  // of torch.library.custom_op
}

/// What the kernels of an operator have in common: its attributes. `Base` is KernelBase, or what is
/// made of it.
template <class Base>
class KernelOf : public Base {
 public:
  template <class... Argument>
  explicit KernelOf(const Operator& of, const Argument&... arguments)
      : Base(arguments...), of_(of) {}

  std::unique_ptr<Instance> make_instance(const Attributes& attributes,
                                          Report& report) const final {
    return of_.make_instance(*this, attributes, report);
  }
  void measure_workspaces(const Arguments& /*arguments*/, int64_t* /*elements*/,
                          detail::ElementLayout* /*layouts*/) const final {}
  void visit_attributes(detail::AttributeVisitor& visitor) const final {
    of_.visit_attributes(visitor);
  }

 protected:
  ~KernelOf() = default;

  const Operator& of_;
};

/// Lets an input be recorded no more that an error says cannot be, or the last one where the error
/// is of an operator inside; false if it says that of none.
bool stop_recording(const Arguments& arguments, const std::string& error) {
  constexpr const char* kRefused = "not differentiable with respect to argument '";
  const std::size_t begin = error.find(kRefused);
  const Operand* refused = nullptr;
  for (int i = 0; begin != std::string::npos && i < arguments.inputs; ++i) {
    const Operand& operand = arguments.operands[i];
    if (operand.view.defined() && operand.view.requires_grad()) {
      refused = &operand;
      const std::string name = join({operand.name.label, "'"});
      if (error.compare(begin + std::char_traits<char>::length(kRefused), name.size(), name) == 0) {
        break;
      }
    }
  }
  if (refused != nullptr) {
    refused->view.set_requires_grad(false);
  }
  return refused != nullptr;
}

/// The operator itself.
class CallKernel final : public KernelOf<KernelBase> {
 public:
  explicit CallKernel(const Operator& of) : KernelOf(of, make_info(of, of.schema().results)) {}

  void invoke(const Arguments& arguments) const override {
    const DropsSeenByPython drops(arguments);
    if (arguments.results == nullptr && of_.call_out(arguments)) {
      return;
    }
    Tensors results = of_.call(arguments);
    for (std::size_t i = 0; i < results.size() && arguments.results == nullptr; ++i) {
      const at::Tensor& output = arguments.output(static_cast<int>(i)).view;
      if (is_left_out(results[i], output, of_.schema().name)) {
        results[i] = at::zeros_like(output);
      }
    }
    detail::copy_results(arguments, results.data(), static_cast<int>(results.size()));
  }

  /// The results as tensors that can be differentiated. PyTorch refuses to record some inputs, such
  /// as the random samples of fractional_max_pool2d: their gradients are zeros.
  std::vector<at::Tensor> results(const Arguments& arguments) const {
    for (;;) {
      try {
        const Tensors results = of_.call(arguments);
        return {results.begin(), results.end()};
      } catch (const c10::Error& error) {
        if (!stop_recording(arguments, error.what_without_backtrace())) {
          throw;
        }
      }
    }
  }

  Tensors infer(const Arguments& arguments) const override {
    Tensors results;
    try {
      results = has_wrong_meta(of_.schema(), arguments) ? infer_by_running(of_, arguments)
                                                        : of_.call(arguments);
    } catch (const Error&) {
      throw;
    } catch (const std::exception& error) {
      if (!is_about_meta(detail::exception_text(error))) {
        if (dynamic_cast<const c10::Error*>(&error) == nullptr) {  // Python's
          throw_as_kernel_does(of_, arguments);
        }
        throw;
      }
      if (of_.is_data_dependent()) {  // with these inputs: aten::index is so with masks alone
        raise(Status::kShape, {of_.schema().name, kDependsOnValues});
      }
      results = infer_by_running(of_, arguments);
    }
    for (at::Tensor& result : results) {
      result = defined(result);
      if (result.layout() != at::kStrided) {
        raise(Status::kOutput,
              {info.operator_name, ": expected an operator whose results are dense, ",
               "got one whose result is ", layout_text(result.layout())});
      }
    }
    return results;
  }
};

/// The gradient of one of these two.
template <class Forward>
class GradientKernel final : public KernelOf<detail::GradientBase> {
 public:
  GradientKernel(const Operator& of, const Forward& forward)
      : KernelOf(of, forward.info, forward.info.inputs,
                 /*of_function=*/false),  // PyTorch knows what has none
        forward_(forward),
        bindings_(forward.info.bindings, forward.info.bindings + forward.info.inputs) {
    bindings_.insert(bindings_.end(), static_cast<std::size_t>(forward.info.outputs),
                     {ParameterKind::kTensor, ScalarInputType::kNone, /*optional=*/true});
    info.bindings = bindings_.data();
    info.inputs = static_cast<int>(bindings_.size());
    info.outputs = forward.info.inputs;
    info.is_gradient = true;
    info.records = true;
  }

 private:
  std::vector<at::Tensor> forward(const Arguments& arguments) const override {
    return forward_.results(arguments);
  }

  const Forward& forward_;
  std::vector<ParameterInfo> bindings_;
};

/// The sizes of the results, which are computed for them.
class SizesKernel final : public KernelOf<KernelBase> {
 public:
  explicit SizesKernel(const Operator& of) : KernelOf(of, make_info(of, 1)) {}

  void invoke(const Arguments& arguments) const override {
    const DropsSeenByPython drops(arguments);
    const at::Tensor table = at::full({of_.schema().results, kColumns}, 0, at::kLong);
    auto* row = table.data_ptr<int64_t>();
    for (const at::Tensor& result : of_.call(arguments)) {
      const at::Tensor some = defined(result);
      const auto* const type = std::find(std::begin(detail::kScalarTypes) + 1,
                                         std::end(detail::kScalarTypes), some.scalar_type());
      if (type == std::end(detail::kScalarTypes)) {
        raise(Status::kDtype, {info.operator_name, ": expected ", detail::dtype_names(), ", got ",
                               detail::tensor_text(some)});
      }
      row[0] = type - detail::kScalarTypes;
      row[1] = some.dim();
      std::copy(some.sizes().begin(), some.sizes().end(), row + 2);
      row += kColumns;
    }
    detail::copy_results(arguments, &table, 1);
  }

  Tensors infer(const Arguments& /*arguments*/) const override {
    return {detail::make_meta({of_.schema().results, kColumns}, at::kLong)};
  }

 private:
  static constexpr int64_t kColumns = 2 + kMaxNdim;
};

/// The results in the begin of larger outputs, and their sizes.
class CountedKernel final : public KernelOf<KernelBase> {
 public:
  explicit CountedKernel(const Operator& of)
      : KernelOf(of, make_info(of, 2 * of.schema().results)) {
    info.has_meta = false;
  }

  void invoke(const Arguments& arguments) const override {
    const DropsSeenByPython drops(arguments);
    Report report(info.operator_name);
    const Tensors results = of_.call(arguments);
    const int count = static_cast<int>(results.size());
    for (int i = 0; i < count; ++i) {
      const at::Tensor result = defined(results[static_cast<std::size_t>(i)]);
      const Operand& output = arguments.output(i);
      const Operand& sizes = arguments.output(count + i);
      const bool fits =
          result.scalar_type() == output.view.scalar_type() && result.dim() == output.view.dim() &&
          std::equal(result.sizes().begin(), result.sizes().end(), output.view.sizes().begin(),
                     [](int64_t a, int64_t b) { return a <= b; });
      if (!fits) {
        report.add(Status::kOutput, {output.name.text(), ": expected ", output.desc.text(),
                                     " or less of it, as ", arguments.kernel->messages->results,
                                     " say, got ", detail::tensor_text(result)});
        continue;
      }
      if (sizes.view.scalar_type() != at::kLong || sizes.view.numel() != result.dim()) {
        report.add(Status::kOutput, {sizes.name.text(), ": expected int64 [", result.dim(),
                                     "] for the sizes of a result, got ", sizes.desc.text()});
        continue;
      }
      const bool is_shared = detail::overlaps_outputs(arguments, result);
      const at::Tensor values = is_shared ? result.clone() : result;
      at::Tensor begin = output.view;
      begin.zero_();
      for (int64_t d = 0; d < result.dim(); ++d) {
        begin = begin.narrow(d, 0, result.size(d));
      }
      begin.copy_(values);
      std::copy(result.sizes().begin(), result.sizes().end(), sizes.view.data_ptr<int64_t>());
    }
    report.raise_if_failed();
  }

  Tensors infer(const Arguments& /*arguments*/) const override {
    raise(Status::kShape, {of_.schema().name, kDependsOnValues});
  }
};

/// All kernels of an operator.
class Family {
 public:
  Family(const c10::OperatorHandle& handle, const TextAttributes& attributes, int inputs)
      : of_(handle, attributes, inputs),
        call_(of_),
        gradient_(of_, call_),
        sizes_(of_),
        counted_(of_) {}
  Family(const Family&) = delete;
  Family& operator=(const Family&) = delete;

  /// The kernel of a task; null for what is none.
  const KernelBase* find(const std::string& task) {
    if (task == "sizes") {
      return &sizes_;
    }
    if (task == "counted") {
      return &counted_;
    }
    constexpr int64_t kMostOrders = 16;
    char* end = nullptr;
    const int64_t order = std::strtoll(task.c_str(), &end, 10);
    if (end == task.c_str() || *end != '\0' || order < 0 || order > kMostOrders) {
      return nullptr;
    }
    while (static_cast<int64_t>(higher_.size()) < order - 1) {
      const detail::GradientBase& last =
          higher_.empty() ? static_cast<const detail::GradientBase&>(gradient_) : *higher_.back();
      higher_.push_back(new GradientKernel<detail::GradientBase>(of_, last));
    }
    if (order < 2) {
      return order == 0 ? static_cast<const KernelBase*>(&call_) : &gradient_;
    }
    return higher_[static_cast<std::size_t>(order - 2)];
  }

 private:
  const Operator of_;
  const CallKernel call_;
  const GradientKernel<CallKernel> gradient_;
  const SizesKernel sizes_;
  const CountedKernel counted_;
  std::vector<const GradientKernel<detail::GradientBase>*> higher_;
};

}  // namespace

namespace {

/// What has been made, for each text of a host. Never destroyed: hosts keep what points to kernels,
/// and end in any order.
struct Made {
  struct OfText {
    const KernelBase* kernel;
    std::uint64_t epoch;
  };

  std::mutex mutex;
  std::map<std::string, std::unique_ptr<Family>> families;  // by Operator::key()
  std::map<std::pair<std::string, int>, OfText> of_texts;   // and numbers of inputs

  static Made& all() {
    static auto* const made = new Made;
    return *made;
  }
};

const KernelBase& make_kernel(Made& made, const TextAttributes& attributes, int inputs) {
  const auto handle = find_overload(attributes.name());
  if (!handle.has_value()) {
    raise(Status::kAttribute, {attributes.name(), ": expected an operator that is registered with ",
                               "PyTorch, got an unknown name; import the library that has it"});
  }
  const bool is_gradient = std::strtol(attributes.task().c_str(), nullptr, 10) > 0;
  if (is_gradient && inputs < 0) {
    raise(Status::kAttribute, {attributes.name(), ": expected the number of inputs of a ",
                               "gradient, such as \"1/2\", got \"", attributes.task(), "\""});
  }
  const Operator of(*handle, attributes, inputs);
  if (is_gradient && of.bindings().empty()) {  // it would have no outputs
    raise(Status::kAttribute,
          {attributes.name(), ": expected a gradient of one input or more, got the ", "task \"",
           attributes.task(), "\" for 0 inputs"});
  }
  std::unique_ptr<Family>& family = made.families[of.key()];
  if (family == nullptr) {
    family = std::make_unique<Family>(*handle, attributes, inputs);
  }
  const KernelBase* kernel = family->find(attributes.task());
  if (kernel == nullptr) {
    raise(Status::kAttribute, {attributes.name(), ": expected a task, such as \"0\", ", "got \"",
                               attributes.task(), "\""});
  }
  return *kernel;
}

}  // namespace

std::uint64_t dispatcher_epoch() noexcept {
  return deregistrations.load(std::memory_order_acquire);
}

const KernelBase& find_kernel(const std::string& text) { return find_kernel(text, -1); }

const KernelBase& find_kernel(const std::string& text, int inputs) {
  constexpr std::size_t kMostTexts = 10000;
  Made& made = Made::all();
  const std::lock_guard<std::mutex> lock(made.mutex);
  watch_dispatcher();
  const std::uint64_t epoch = dispatcher_epoch();
  const auto known = made.of_texts.find({text, inputs});
  if (known != made.of_texts.end() && known->second.epoch == epoch) {
    return *known->second.kernel;
  }
  const TextAttributes attributes(text);
  const KernelBase* kernel = &make_kernel(made, attributes, attributes.inputs());
  const detail::KernelDescriptor& info = kernel->info;
  if (attributes.inputs() < 0 && info.list_begin < 0 && inputs >= 0 && inputs < info.inputs) {
    kernel = &make_kernel(made, attributes, inputs);
  }
  if (made.of_texts.size() >= kMostTexts) {
    made.of_texts.clear();
  }
  made.of_texts.insert_or_assign({text, inputs}, Made::OfText{kernel, epoch});
  return *kernel;
}

const KernelBase& OperatorInstance::kernel(int operands) {
  const KernelBase* last = kernel_.load(std::memory_order_relaxed);
  const detail::KernelDescriptor& info = last->info;
  if (info.is_gradient || info.list_begin >= 0 || info.inputs + info.outputs == operands) {
    return *last;
  }
  last = &find_kernel(text_, std::max(operands, info.outputs) - info.outputs);
  kernel_.store(last, std::memory_order_relaxed);
  return *last;
}

}  // namespace aten_bridge::operators

#pragma GCC visibility pop

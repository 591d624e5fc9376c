// Sequences of calls through PyTorch's dispatcher, boxed as Python makes them: overloads, meta
// tensors, autograd, modes. A call is right, or differs from a right one in one thing; its results
// are those of the kernels of ops.Custom, computed without PyTorch, and nothing of the caller's is
// changed.
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "operator.h"
#include "pytorch_host.h"
#include "text.h"

namespace fuzz::pytorch {
namespace {

using Operands = std::vector<Operand>;

Memory& memory() {
  static Memory memory;
  return memory;
}

const KernelUnderTest* find_kernel(const std::string& name) {
  for (const KernelUnderTest& kernel : kernels()) {
    if (name == kernel.name) {
      return &kernel;
    }
  }
  return nullptr;
}

/// "ScaleGrad" as "scale_grad".
std::string operator_name(const std::string& kernel) {
  std::string name;
  for (const char c : kernel) {
    const bool is_upper = std::isupper(static_cast<unsigned char>(c)) != 0;
    name.append(is_upper && !name.empty() ? "_" : "")
        .append(1, static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
  }
  return name;
}

/// One operator of a network.
struct CallSite {
  Operator of;
  Operands usual;
};

//===--- arguments ---===//

std::vector<double> widened_list(const Floats& values) {
  std::vector<double> list;
  for (const float value : values) {
    list.push_back(widened(value));
  }
  return list;
}

c10::IValue value_of(const Attribute& attribute, bool is_dtype) {
  return std::visit(
      [&](const auto& value) -> c10::IValue {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, float>) {
          return widened(value);
        } else if constexpr (std::is_same_v<T, Floats>) {
          return widened_list(value);
        } else if constexpr (std::is_same_v<T, std::vector<Floats>>) {
          std::vector<std::vector<double>> lists;
          for (const Floats& list : value) {
            lists.push_back(widened_list(list));
          }
          return lists;
        } else {
          if constexpr (std::is_same_v<T, std::string>) {
            const TypeInfo* type = is_dtype ? find_type(value) : nullptr;
            if (type != nullptr) {
              return int64_t{type->scalar_type};
            }
          }
          return value;
        }
      },
      attribute);
}

/// A number as Python has it; for anything else a tensor, which is an error.
c10::IValue number_value(const Operand& operand, const at::Tensor& tensor, bool is_float) {
  if (operand.is_none) {
    return {};
  }
  if (operand.numel() != 1) {
    return tensor;
  }
  const Number number = number_of(operand);
  if (number.integer > INT64_MAX) {
    return is_float ? c10::IValue(static_cast<double>(number.integer)) : c10::IValue(tensor);
  }
  if (number.is_bool) {
    return number.integer != 0;
  }
  if (number.is_integer) {
    return static_cast<int64_t>(number.integer);
  }
  if (number.is_complex) {
    return c10::complex<double>(number.real.real(), number.real.imag());
  }
  return number.real.real();
}

bool is_tensor(const c10::Argument& argument) {
  const std::string type = argument.type()->str();
  return type.rfind("Tensor", 0) == 0;
}
bool is_list(const c10::Argument& argument) { return argument.type()->str() == "Tensor[]"; }
bool is_out(const c10::Argument& argument) { return argument.kwarg_only(); }
bool is_input(const c10::Argument& argument) {
  return !is_out(argument) && (is_tensor(argument) || argument.name().rfind("input", 0) == 0);
}

/// The arguments of a call, but for tensors to write to; and which of the operands are tensors.
struct Call {
  c10::Stack stack;
  std::vector<bool> are_tensors;
};

Call make_call(const c10::FunctionSchema& schema, const Operands& operands, const Tensors& tensors,
               const Extra& extra) {
  Call call;
  std::size_t next = 0;
  const auto& arguments = schema.arguments();
  const auto inputs =
      static_cast<std::size_t>(std::count_if(arguments.begin(), arguments.end(), is_input));
  for (const c10::Argument& argument : arguments) {
    if (is_out(argument)) {
      continue;
    }
    if (!is_input(argument)) {
      const auto found = extra.attributes.find(argument.name());
      call.stack.push_back(found == extra.attributes.end()
                               ? argument.default_value().value_or(c10::IValue())
                               : value_of(found->second, argument.name() == "dtype"));
    } else if (is_list(argument)) {
      const std::size_t end = next + operands.size() - (inputs - 1);
      Tensors list(tensors.begin() + static_cast<std::ptrdiff_t>(next),
                   tensors.begin() + static_cast<std::ptrdiff_t>(end));
      call.are_tensors.insert(call.are_tensors.end(), list.size(), true);
      call.stack.emplace_back(std::move(list));
      next = end;
    } else {
      const bool is_none = operands[next].is_none && argument.type()->str().back() == '?';
      call.are_tensors.push_back(is_tensor(argument));
      call.stack.push_back(is_none ? c10::IValue()
                           : is_tensor(argument)
                               ? c10::IValue(tensors[next])
                               : number_value(operands[next], tensors[next],
                                              argument.type()->str().rfind("float", 0) == 0));
      ++next;
    }
  }
  return call;
}

/// PyTorch 2.11 makes wrong values of a sparse tensor whose one value has other strides than [1,
/// 1].
Layout choose_layout_for(const Operator& of, Choices& choices, const Ints& sizes) {
  return of.kernel->is(kIsSparse) ? row_major(sizes) : choose_layout(choices, sizes);
}

//===--- gradients ---===//

Operand scaled(Operand operand, int factor) {
  with_type(operand.type, [&](auto zero) {
    using T = decltype(zero);
    std::vector<T> elements = values<T>(operand);
    for (std::size_t i = 0; i < elements.size(); ++i) {
      elements[i] = static_cast<T>(elements[i] * static_cast<T>(factor));
    }
    set_values(operand, elements);
    return 0;
  });
  return operand;
}

/// A call that autograd has recorded.
struct Recorded {
  std::string kernel;
  Operands inputs;
  std::vector<bool> are_tensors;
  Tensors tensors;  // undefined for None
  Operands outputs;
  Tensors results;  // undefined where they were not asked for
};

/// Which outputs of the gradient kernel are the gradient of a tensor: several where it is there
/// several times.
std::vector<std::size_t> outputs_of(const Recorded& call, const at::Tensor& leaf) {
  std::vector<std::size_t> outputs;
  std::size_t output = 0;
  for (std::size_t i = 0; i < call.tensors.size(); ++i) {
    if (call.are_tensors[i]) {
      if (call.tensors[i].is_same(leaf)) {
        outputs.push_back(output);
      }
      ++output;
    }
  }
  return outputs;
}

/// Asks for the gradients of a call's inputs, and for those of these.
void differentiate(Recorded call, const Operator& of, Choices& choices, int order = 1) {
  Tensors leaves;
  for (const at::Tensor& tensor : call.tensors) {
    if (tensor.defined() && tensor.requires_grad() &&
        std::none_of(leaves.begin(), leaves.end(),
                     [&](const at::Tensor& leaf) { return leaf.is_same(tensor); })) {
      leaves.push_back(tensor);
    }
  }
  const int factor = order == 1 && choices.one_in(8) ? 2 : 1;  // 2: a write to a result
  Tensors results;
  Tensors given;
  Recorded gradient = {call.kernel + "Grad", call.inputs, call.are_tensors, call.tensors, {}, {}};
  for (std::size_t i = 0; i < call.outputs.size(); ++i) {
    Operand operand = choose_tensor(choices, call.outputs[i].type, call.outputs[i].sizes);
    at::Tensor tensor;
    const at::Tensor& result = call.results[i];
    const bool is_asked = result.defined() && result.requires_grad() &&
                          (!choices.one_in(4) || (i + 1 == call.outputs.size() && given.empty()));
    if (is_asked) {
      tensor = place(operand, choose_layout_for(of, choices, operand.sizes), &memory());
      tensor.set_requires_grad(choices.one_in(2));
      results.push_back(factor == 1 ? result : result.mul_(factor));
      given.push_back(tensor);
      operand = scaled(operand, factor);
    } else {
      operand = scaled(operand, 0);
    }
    gradient.inputs.push_back(operand);
    gradient.are_tensors.push_back(true);
    gradient.tensors.push_back(tensor);
  }
  if (results.empty() || leaves.empty()) {
    return;
  }
  const KernelUnderTest* kernel = find_kernel(gradient.kernel);
  Expected expected = {Outcome::kError, {}};
  if (kernel != nullptr) {
    expected = kernel->expect(gradient.inputs, of);
  }
  const bool is_written = choices.one_in(16) && leaves[0].is_contiguous() && !leaves[0].is_neg();
  if (is_written) {
    const at::NoGradGuard no_grad;
    leaves[0].add_(0);
    expected = {Outcome::kError, {}};
  }
  const bool retains = choices.one_in(2);
  const bool creates = choices.one_in(2);
  const auto backward = [&] {
    return answer_of([&] {
      return torch::autograd::grad(results, leaves, given, retains || creates, creates,
                                   /*allow_unused=*/true);
    });
  };
  scene() += ", gradient " + std::to_string(order) + (is_written ? " of what was written" : "");
  Answer answer = backward();
  if (answer.error && expected.outcome == Outcome::kValue) {
    fail("an error of a right gradient:", answer.error->c_str());
  }
  if (!answer.error && expected.outcome == Outcome::kError) {
    fail("no error of a gradient of", call.kernel.c_str());
  }
  if (answer.error) {
    return;
  }
  gradient.outputs = expected.outputs;
  bool is_repeated = false;
  const auto check = [&] {
    gradient.results.assign(expected.outputs.size(), at::Tensor());
    for (std::size_t i = 0; i < leaves.size() && expected.outcome == Outcome::kValue; ++i) {
      const std::vector<std::size_t> places = outputs_of(call, leaves[i]);
      is_repeated = is_repeated || places.size() > 1;
      at::Tensor sum;
      for (const std::size_t at : places) {
        Operand output = expected.outputs[at];
        const at::Tensor term = place(output, row_major(output.sizes), nullptr);
        sum = sum.defined() ? sum + term : term;
        gradient.results[at] = answer.results[i];
      }
      if (!answer.results[i].defined() || !at::equal(answer.results[i].detach(), sum)) {
        fail("a wrong gradient of", call.kernel.c_str());
      }
    }
  };
  check();
  const bool runs_twice = choices.one_in(2);
  if (runs_twice) {
    answer = backward();
    if (answer.error.has_value() == (retains || creates)) {
      fail("a second backward pass:", answer.error.value_or("no error").c_str());
    }
    if (answer.error) {
      return;
    }
    check();
  }
  if (creates && order < 3 && factor == 1 && !runs_twice && expected.outcome == Outcome::kValue) {
    differentiate(std::move(gradient), of, choices, order + 1);
  }
}

//===--- tensors to write to ---===//

enum class Given {
  kRight,
  kEmpty,
  kOtherSizes,
  kView,
  kInput,
  kBesideInput,
  kOtherDtype,
  kOneElement,
  kNegated,
  kNeedsGradient,
  kUndefined,
  kCount
};

/// A tensor for an output, and what comes of the call.
at::Tensor choose_given(Given how, const Operand& output, const Operator& of, const Tensors& inputs,
                        Expected& expected, Choices& choices) {
  const bool writes_any = of.kernel->is(kWritesAny);
  const auto expect = [&](Outcome outcome) {
    expected.outcome = expected.outcome == Outcome::kValue || outcome == Outcome::kError
                           ? outcome
                           : expected.outcome;
  };
  const auto options = at::TensorOptions(scalar_type(output.type));
  const auto make = [&](const Ints& sizes) { return at::full(sizes, 1, options); };
  const at::Tensor& input = inputs[0];
  switch (how) {
    case Given::kEmpty:
    case Given::kOtherSizes: {
      const at::Tensor given = make(how == Given::kEmpty ? Ints{0} : choose_sizes(choices));
      if (given.sizes() != output.sizes && (writes_any || !expected.is_inferred)) {
        expect(Outcome::kAny);
      }
      return given;
    }
    case Given::kView: {
      Operand operand = output;
      Layout layout = choose_layout(choices, output.sizes);
      layout.is_negated = false;
      const at::Tensor given = place(operand, layout, choices.one_in(2) ? &memory() : nullptr);
      if (operand.numel() > 1 && layout.strides != row_major(output.sizes).strides) {
        expect(Outcome::kAny);  // its elements may be in the same memory
      }
      return given;
    }
    case Given::kInput:
      if (input.defined() && input.scalar_type() == scalar_type(output.type) &&
          input.sizes() == output.sizes && input.is_contiguous() && !input.is_neg()) {
        return input;
      }
      break;
    case Given::kBesideInput:
      if (input.defined() && input.scalar_type() == scalar_type(output.type)) {
        const auto elements = static_cast<int64_t>(input.storage().nbytes() / input.itemsize());
        if (elements >= output.numel() && !input.is_neg()) {
          return input.as_strided(output.sizes, row_major(output.sizes).strides,
                                  elements - output.numel());
        }
      }
      break;
    case Given::kOtherDtype: {
      const Type type = choices.of(kAllTypes);
      if (type != output.type) {
        expect(writes_any || expected.outcome != Outcome::kValue ? Outcome::kAny : Outcome::kError);
      }
      return at::empty(output.sizes, at::TensorOptions(scalar_type(type)));
    }
    case Given::kOneElement:
      if (output.numel() > 1) {
        expect(Outcome::kAny);
      }
      return make({}).expand(output.sizes);
    case Given::kNegated:
      if (is_float(output.type)) {
        return at::_neg_view(make(output.sizes));
      }
      break;
    case Given::kNeedsGradient:
      if (is_float(output.type)) {
        if (at::GradMode::is_enabled()) {
          expect(Outcome::kError);
        }
        return make(output.sizes).set_requires_grad(true);
      }
      break;
    case Given::kUndefined:
      expect(Outcome::kError);
      return {};
    default:
      break;
  }
  return make(output.sizes);
}

//===--- one call ---===//

enum class Mode { kPlain, kGrad, kMeta, kNoGrad, kInference, kAutocast, kModes };
enum class Fault { kNone, kSparse, kOnMeta, kOtherType, kList, kFaults };

/// Calls of a kernel that counts them, for each number that it begins with; none if that is not
/// known.
std::map<int64_t, std::optional<int64_t>>& counts() {
  static std::map<int64_t, std::optional<int64_t>> counts;
  return counts;
}

/// What differs from the contract of ops.Custom, whose host has memory for the outputs.
Expected expect(const Operator& of, const Operands& inputs, bool is_out) {
  const KernelUnderTest& kernel = *of.kernel;
  Expected expected = kernel.expect(inputs, of);
  const std::string name = kernel.name;
  const int64_t how = of.extra->value_or("how", int64_t{0});
  if (name == "Misjudge" && (how == 2 || how == 3) && expected.outcome == Outcome::kError &&
      !of.extra->is_other<int64_t>("how")) {
    expected.outcome = Outcome::kAny;
  }
  if (name == "Misjudge" && how >= 4 && expected.outcome == Outcome::kValue) {
    expected.outcome = Outcome::kAny;  // its meta function may tell other results
  }
  if (name == "Spoil" && expected.outcome == Outcome::kError) {
    expected.outcome = Outcome::kAny;  // it may keep what is not the host's alone
  }
  if (kernel.is(kWritesAny) && !expected.is_inferred && !is_out) {
    expected.outcome = expected.outcome == Outcome::kError ? Outcome::kError : Outcome::kAny;
  }
  return expected;
}

/// Whether a kernel changes the caller's own tensors.
bool spoils(const Operator& of, const Operands& inputs) {
  return std::string(of.kernel->name) == "Spoil" && !inputs[1].is_none && inputs[1].numel() == 1 &&
         number_of(inputs[1]).real.real() != 0;
}

/// Applies a fault. False if this call cannot have it.
bool spoil(Fault fault, c10::Stack& stack, const c10::FunctionSchema& schema, Choices& choices) {
  const auto at = static_cast<std::size_t>(choices.below(static_cast<int>(stack.size())));
  c10::IValue& value = stack[at];
  const bool is_plain_tensor = value.isTensor() && value.toTensor().defined() &&
                               schema.arguments()[at].type()->str() == "Tensor";
  switch (fault) {
    case Fault::kSparse:
      if (is_plain_tensor && value.toTensor().scalar_type() == at::kDouble) {
        value = value.toTensor().detach().to_sparse();
        return true;
      }
      return false;
    case Fault::kOtherType:
      if (is_list(schema.arguments()[at])) {
        value = int64_t{3};
      } else if (is_plain_tensor) {
        value = choices.one_in(2) ? c10::IValue("text") : c10::IValue(std::vector<int64_t>{3});
      } else {
        return false;
      }
      return true;
    default:
      return false;
  }
}

/// A list of ints without the type of its elements: right, or an error.
bool forget_types(c10::Stack& stack) {
  for (c10::IValue& value : stack) {
    if (value.isIntList()) {
      c10::impl::GenericList list(c10::AnyType::get());
      for (const c10::IValue& element : value.toListRef()) {
        list.push_back(element);
      }
      value = list;
      return true;
    }
  }
  return false;
}

at::Tensor on_meta(const at::Tensor& tensor) {
  return !tensor.defined() ? tensor
                           : at::empty_strided(tensor.sizes(), tensor.strides(),
                                               tensor.options().device(at::kMeta));
}

/// Whether the result belongs to an input that is no tensor: it may have any dtype.
bool is_of_none(const Operator& of, const Operands& inputs, std::size_t result) {
  return of.kernel->is(kGivesOneEach) && inputs[result].is_none;
}

/// Results on meta tensors.
void check_shapes(const Operator& of, const Operands& inputs, const Tensors& results,
                  const Expected& expected) {
  for (std::size_t i = 0; i < results.size() && expected.outcome == Outcome::kValue; ++i) {
    const bool is_right_type = is_of_none(of, inputs, i) ||
                               results[i].scalar_type() == scalar_type(expected.outputs[i].type);
    if (!results[i].is_meta() || results[i].sizes() != expected.outputs[i].sizes ||
        !is_right_type) {
      fail("wrong shapes on meta tensors of", of.kernel->name);
    }
  }
}

void check_error(const std::string& error, const Operator& of, const Tensors& tensors) {
  // Texts of the dispatcher and of autograd, which do not know the kernel.
  for (const char* text : {"There were no tensor arguments", "Could not run 'fuzz::",
                           "Inference tensors cannot be saved for backward"}) {
    if (error.find(text) != std::string::npos) {
      return;
    }
  }
  if (std::any_of(tensors.begin(), tensors.end(), [](const auto& t) { return t.defined(); })) {
    check_text(error, of.kernel->name);
  }
}

void call(CallSite& at, Mode mode, bool is_out, Fault fault, Choices& choices) {
  const Operator& of = at.of;
  const KernelUnderTest& kernel = *of.kernel;
  const std::string name = operator_name(kernel.name);
  std::optional<c10::InferenceMode> inference_mode;
  if (mode == Mode::kInference && choices.one_in(2)) {
    inference_mode.emplace();
  }
  Operands inputs = at.usual;
  Tensors tensors;
  const bool is_repeated = choices.one_in(8);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    Operand& input = inputs[i];
    if (is_repeated && i > 0 && !input.is_none && !inputs[0].is_none &&
        input.type == inputs[0].type && input.sizes == inputs[0].sizes) {
      input = inputs[0];
      tensors.push_back(tensors[0]);
      continue;
    }
    tensors.push_back(input.is_none ? at::Tensor()
                                    : place(input, choose_layout_for(of, choices, input.sizes),
                                            choices.one_in(2) ? &memory() : nullptr));
  }
  if (mode == Mode::kInference) {  // tensors of it, or of before
    inference_mode.reset();
    if (choices.one_in(2)) {
      inference_mode.emplace();
    }
  }
  const at::AutoGradMode grad_mode(mode != Mode::kNoGrad && !inference_mode);
  Expected expected = expect(of, inputs, is_out);
  const c10::OperatorHandle handle = find_operator(name, is_out ? "out" : "");
  Call made = make_call(handle.schema(), inputs, tensors, *of.extra);
  std::vector<Before> before;
  bool has_gradient = false;
  for (std::size_t i = 0; i < tensors.size() && mode == Mode::kGrad; ++i) {
    if (tensors[i].defined() && made.are_tensors[i] &&
        (is_float(inputs[i].type) || is_complex(inputs[i].type)) && !choices.one_in(4)) {
      tensors[i].set_requires_grad(true);
    }
  }
  for (const at::Tensor& tensor : tensors) {
    if (tensor.defined()) {
      before.emplace_back(tensor);
      has_gradient = has_gradient || tensor.requires_grad();
    }
  }
  std::string more;
  Tensors given;
  for (int i = 0; is_out && i < kernel.outputs; ++i) {
    Operand output = inputs[0];
    output.is_none = output.is_number = false;
    output.bytes.resize(output.byte_count());
    if (!expected.outputs.empty()) {
      output = expected.outputs[static_cast<std::size_t>(i)];
    }
    const auto how =
        static_cast<Given>(choices.one_in(2) ? choices.below(static_cast<int>(Given::kCount)) : 0);
    more += ", to " + std::to_string(static_cast<int>(how));
    given.push_back(choose_given(how, output, of, tensors, expected, choices));
    made.stack.emplace_back(given.back());
  }
  if (is_out && has_gradient && at::GradMode::is_enabled()) {
    expected = {Outcome::kError, {}};
  }
  if (fault == Fault::kList && forget_types(made.stack)) {
    expected.outcome = expected.outcome == Outcome::kError ? Outcome::kError : Outcome::kAny;
  } else if (fault == Fault::kOnMeta && tensors[0].defined()) {
    made.stack[0] = made.stack[0].isTensor() ? c10::IValue(on_meta(tensors[0])) : made.stack[0];
    expected = {};
  } else if (spoil(fault, made.stack, handle.schema(), choices)) {
    expected = {Outcome::kError, {}};
  } else {
    fault = Fault::kNone;
  }
  if (mode == Mode::kMeta) {
    for (c10::IValue& value : made.stack) {
      if (value.isTensorList()) {
        Tensors list;
        add_tensors(value, list);
        std::transform(list.begin(), list.end(), list.begin(), on_meta);
        value = list;
      } else if (value.isTensor() && value.toTensor().layout() == at::kStrided) {
        value = on_meta(value.toTensor());
      }
    }
    if (!kernel.is(kHasMeta) || !expected.is_inferred || expected.outcome == Outcome::kError) {
      expected.outcome = Outcome::kAny;
    }
  }
  if (std::any_of(tensors.begin(), tensors.end(), [](const at::Tensor& tensor) {
        return tensor.defined() && tensor.is_inference() && tensor.requires_grad();
      })) {
    expected.outcome = Outcome::kAny;
  }
  scene() = name + (is_out ? ".out of" : " of");
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    scene() += ' ' + text(inputs[i]);
    if (tensors[i].defined()) {
      scene() += " by " + value_text(tensors[i].strides().vec()) +
                 (tensors[i].requires_grad() ? " with gradient" : "") +
                 (tensors[i].is_inference() ? " of inference" : "");
    }
  }
  scene() += ", mode " + std::to_string(static_cast<int>(mode)) + ", fault " +
             std::to_string(static_cast<int>(fault)) + more;
  std::optional<AutocastGuard> autocast;
  if (mode == Mode::kAutocast) {
    autocast.emplace();
  }
  const Answer answer = answer_of([&] { return call_boxed(handle, made.stack); },
                                  mode == Mode::kMeta || fault == Fault::kOnMeta);
  autocast.reset();
  const bool counts_calls =
      kernel.is(kCountsCalls) && mode != Mode::kMeta && fault != Fault::kOnMeta;
  if (counts_calls && of.extra->find<int64_t>("begin") != nullptr) {
    auto& count = counts()[*of.extra->find<int64_t>("begin")];
    count = answer.error || !count ? std::nullopt : std::optional(*count + 1);
  }
  if (answer.error && expected.outcome == Outcome::kValue) {
    fail("an error of a right call:", answer.error->c_str());
  }
  if (!answer.error && expected.outcome == Outcome::kError) {
    fail("no error of", kernel.name);
  }
  if (answer.error && mode != Mode::kMeta && fault == Fault::kNone) {
    check_error(*answer.error, of, tensors);
  }
  for (const Before& input : before) {
    const bool is_given = std::any_of(given.begin(), given.end(), [&](const at::Tensor& tensor) {
      return input.is_in_memory_of(tensor);
    });
    if (!is_given && !spoils(of, inputs)) {
      input.check();
    }
  }
  if (answer.error) {
    return;
  }
  if (is_out != answer.results.empty()) {
    fail("another number of results of", kernel.name);
  }
  if (fault == Fault::kOnMeta) {
    return;
  }
  const Tensors& results = is_out ? given : answer.results;
  if (mode == Mode::kMeta) {
    Tensors shapes = answer.results;
    for (std::size_t i = 0; i < given.size(); ++i) {
      shapes.push_back(made.stack[made.stack.size() - given.size() + i].toTensor());
    }
    check_shapes(of, inputs, shapes, expected);
    return;
  }
  for (std::size_t i = 0; i < results.size() && expected.outcome == Outcome::kValue; ++i) {
    if (!is_of_none(of, inputs, i) && !is_equal(results[i], expected.outputs[i])) {
      fail("a wrong value of", kernel.name);
    }
  }
  if (is_out) {
    return;
  }
  check_memory(results, tensors);
  const bool is_recorded = has_gradient && at::GradMode::is_enabled();
  for (const at::Tensor& result : results) {
    const bool is_differentiable = result.is_floating_point() || result.is_complex();
    if (result.requires_grad() != (is_recorded && is_differentiable)) {
      fail("autograd has recorded another call than", kernel.name);
    }
  }
  if (is_recorded && expected.outcome == Outcome::kValue) {
    differentiate({kernel.name, inputs, made.are_tensors, tensors, expected.outputs, results}, of,
                  choices);
  }
  const at::NoGradGuard no_grad;
  for (const at::Tensor& result : results) {  // the caller's own
    result.detach().zero_();
  }
}

/// Kernels that are operators.
const KernelUnderTest& choose_kernel(Choices& choices) {
  static const std::vector<const KernelUnderTest*> operators = [] {
    std::vector<const KernelUnderTest*> found;
    for (const KernelUnderTest& kernel : kernels()) {
      if (!kernel.is(kIsRaw)) {
        found.push_back(&kernel);
      }
    }
    return found;
  }();
  return *operators[static_cast<std::size_t>(choices.below(static_cast<int>(operators.size())))];
}

void choose_call(CallSite& at, Choices& choices) {
  const std::string name = operator_name(at.of.kernel->name);
  const Operands usual = at.usual;
  if (choices.one_in(16)) {
    at.usual[static_cast<std::size_t>(choices.below(static_cast<int>(usual.size())))].is_none =
        true;
  }
  for (Operand& input : at.usual) {
    if (input.is_none) {
      input.bytes.clear();
      input.sizes.clear();
      input.is_number = false;
    }
  }
  if (at.of.kernel->is(kCountsCalls)) {
    const int64_t* begin = at.of.extra->find<int64_t>("begin");
    at.of.count = begin == nullptr ? 0 : counts().try_emplace(*begin, 0).first->second;
  }
  const bool is_out = has_operator(name, "out") && (!has_operator(name, "") || choices.one_in(3));
  const auto mode =
      static_cast<Mode>(choices.one_in(2) ? choices.below(static_cast<int>(Mode::kModes)) : 0);
  const auto fault =
      static_cast<Fault>(choices.one_in(8) ? choices.below(static_cast<int>(Fault::kFaults)) : 0);
  if (choices.one_in(64)) {
    std::thread([&] { call(at, mode, is_out, fault, choices); }).join();
  } else {
    call(at, mode, is_out, fault, choices);
  }
  at.usual = usual;
}

/// What the Python module asks of a library that it opens.
bool check_library() {
  Quiet quiet;
  const c10::WarningUtils::WarningHandlerGuard guard(&quiet);
  const std::string begin = "{\"operators\": [[\"fuzz::";
  const std::string end = "]], \"faults\": \"\"}";
  bool is_right = true;
  for (const int replace : {0, 1}) {
    const std::string answer = aten_bridge_library()->register_with_pytorch(replace);
    is_right = is_right && answer.rfind(begin, 0) == 0 &&
               answer.find("[\"fuzz::scale\", \"Scale\", ") != std::string::npos &&
               answer.compare(answer.size() - end.size(), end.size(), end) == 0;
    if (!is_right) {
      fail("the library has other operators:", answer.c_str());
    }
  }
  return is_right;
}

/// A kept instance is not that of a call in which an empty list has another type.
bool check_empty_lists() {
  const auto kernel = std::find_if(kernels().begin(), kernels().end(), [](const auto& one) {
    return std::string_view(one.name) == "Values";
  });
  Choices none(nullptr, 0);
  Extra extra;
  kernel->set_attributes(extra, none);
  const c10::OperatorHandle handle = find_operator("values", "");
  const c10::Stack right = make_call(handle.schema(), {{}}, {at::zeros({2})}, extra).stack;
  const auto error_of = [&](const c10::Stack& stack) {
    return answer_of([&] { return call_boxed(handle, stack); }).error;
  };
  if (const auto error = error_of(right)) {
    fail("an error of a right call:", error->c_str());
  }
  int lists = 0;
  for (std::size_t i = 0; i < right.size(); ++i) {
    if (right[i].isList() && right[i].toListRef().empty()) {
      c10::Stack wrong = right;
      wrong[i] = right[i].isBoolList() ? c10::IValue(std::vector<double>{})
                                       : c10::IValue(c10::List<bool>());
      if (!error_of(wrong)) {
        fail("no error of an empty list of another type as",
             handle.schema().arguments()[i].name().c_str());
      }
      ++lists;
    }
  }
  if (lists != 6) {
    fail("another number of empty lists of", kernel->name);
  }
  return true;
}

}  // namespace
}  // namespace fuzz::pytorch

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using fuzz::pytorch::CallSite;
  [[maybe_unused]] static const bool is_right =
      fuzz::pytorch::check_library() && fuzz::pytorch::check_empty_lists();
  fuzz::Choices choices(data, size);
  // Few operators and few shapes, so that one call meets what another has left.
  std::vector<CallSite> network(3);
  for (CallSite& at : network) {
    at.of.kernel = &fuzz::pytorch::choose_kernel(choices);
    at.of.extra = std::make_unique<fuzz::Extra>();
    at.of.extra->kernel_data = new fuzz::KernelData;  // it has a state
    if (at.of.kernel->set_attributes != nullptr) {
      at.of.kernel->set_attributes(*at.of.extra, choices);
    }
    at.usual = at.of.kernel->choose(choices);
  }
  for (int calls = 0; calls < 64 && choices.are_left(); ++calls) {
    if (choices.one_in(3)) {
      fuzz::pytorch::call_with_reference(fuzz::pytorch::memory(), choices);
    } else {
      CallSite& at = network[static_cast<std::size_t>(choices.below(3))];
      if (choices.one_in(4)) {
        at.usual = at.of.kernel->choose(choices);
      }
      fuzz::pytorch::choose_call(at, choices);
    }
    fuzz::pytorch::memory().release();
  }
  // Whatever was called, right calls are right.
  fuzz::Choices none(nullptr, 0);
  for (CallSite& at : network) {
    fuzz::pytorch::choose_call(at, none);
  }
  fuzz::pytorch::memory().release();
  return 0;
}

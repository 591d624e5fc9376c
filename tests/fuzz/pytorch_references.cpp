// Calls of the kernels of tests/pytorch: what they give, their gradients and the gradients of these
// are what PyTorch's own operators give for copies of the arguments.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/forward_grad.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "pytorch_host.h"

namespace fuzz::pytorch {
namespace {

using c10::IValue;
using c10::Stack;

//===--- arguments ---===//

/// Makes tensors of a call.
class Maker {
 public:
  /// PyTorch's own operators promote dtypes of zeros without memory in another way.
  Maker(Memory& memory, Choices& choices, bool needs_gradient, bool may_lack_memory)
      : memory_(memory),
        choices_(choices),
        needs_gradient_(needs_gradient),
        may_lack_memory_(may_lack_memory) {}

  at::Tensor tensor(Type type, const Ints& sizes) {
    Operand operand = choose_tensor(choices_, type, sizes);
    const int how = choices_.below(32);
    at::Tensor tensor;
    if (how == 0 && is_float(type) && may_lack_memory_) {
      tensor = at::_efficientzerotensor(sizes, at::TensorOptions(scalar_type(type)));
    } else {
      tensor =
          place(operand, choose_layout(choices_, sizes), choices_.one_in(2) ? &memory_ : nullptr);
    }
    if (how < 8 && is_complex(type)) {
      tensor = tensor.conj();
    }
    if (needs_gradient_ && (is_float(type) || is_complex(type)) && !choices_.one_in(4)) {
      tensor.set_requires_grad(true);
    }
    return tensor;
  }

  /// Mostly of a dtype that networks have.
  at::Tensor any() {
    return tensor(choices_.one_in(4) ? choices_.of(kAllTypes)
                                     : (choices_.one_in(2) ? Type::kF64 : Type::kF32),
                  choose_sizes(choices_));
  }

  Choices& choices() { return choices_; }

 private:
  Memory& memory_;
  Choices& choices_;
  bool needs_gradient_;
  bool may_lack_memory_;
};

Type type_of(const at::Tensor& tensor) {
  for (const Type type : kAllTypes) {
    if (scalar_type(type) == tensor.scalar_type()) {
      return type;
    }
  }
  return Type::kF32;
}

const at::Tensor& tensor(const Stack& stack, std::size_t index = 0) {
  return stack[index].toTensor();
}

Stack choose_one(Maker& make) { return {make.any()}; }
Stack choose_double(Maker& make) {
  Choices& choices = make.choices();
  return {
      make.tensor(choices.one_in(8) ? choices.of(kAllTypes) : Type::kF64, choose_sizes(choices))};
}
Stack choose_matrix(Maker& make) {
  Choices& choices = make.choices();
  return {make.tensor(choices.one_in(8) ? choices.of(kAllTypes) : Type::kF64,
                      {choices.below(4), choices.below(4)})};
}
Stack choose_with_slope(Maker& make) { return {make.any(), 0.25 * make.choices().below(4)}; }
Stack choose_topk(Maker& make) {
  const at::Tensor x = make.any();
  if (x.is_complex()) {
    x.set_requires_grad(false);  // PyTorch 2.6 refuses it before it looks at the values
  }
  Choices& choices = make.choices();
  const int64_t k = choices.below(3);
  return {x, k, int64_t{choices.below(3) - 1}, choices.one_in(2)};
}
Stack choose_cat(Maker& make) {
  Choices& choices = make.choices();
  Tensors list;
  for (int more = choices.below(5); more > 0; --more) {
    list.push_back(list.empty()         ? make.any()
                   : choices.one_in(4)  ? list[0]
                   : choices.one_in(16) ? at::Tensor()
                                        : make.tensor(type_of(list[0]), list[0].sizes().vec()));
  }
  return {list, int64_t{choices.below(3) - 1}};
}
Stack choose_list(Maker& make) { return {choose_cat(make)[0], IValue()}; }
Stack choose_layer_norm(Maker& make) {
  Choices& choices = make.choices();
  const Type type = choices.one_in(2) ? Type::kF64 : Type::kF32;
  const int64_t width = choices.below(4);
  const auto maybe = [&]() -> IValue {
    return choices.one_in(3) ? IValue() : IValue(make.tensor(type, {width}));
  };
  const at::Tensor x = make.tensor(type, {choices.below(3), width});
  const IValue weight = maybe();
  return {x, weight, maybe(), 0.5};
}
Stack choose_numbers(Maker& make) {
  const at::Tensor x = make.any();
  Choices& choices = make.choices();
  const double factor = choices.below(4);
  return {x, factor, choices.one_in(2) ? IValue() : IValue(int64_t{choices.below(4)})};
}
Stack choose_checked(Maker& make) {
  Choices& choices = make.choices();
  const int64_t n = choices.one_in(2) ? 3 : 1;
  const at::Tensor x = make.tensor(Type::kF32, {n, 3});
  return {x, make.tensor(Type::kF32, {choices.one_in(8) ? 2 : n})};
}
Stack choose_table(Maker& make) {
  return {make.tensor(Type::kF32, {2, 2}), int64_t{make.choices().below(3)}};
}
Stack choose_names(Maker& make) { return {make.any(), 0.5, 1.5}; }
Stack choose_throwing(Maker& make) { return {make.any(), int64_t{make.choices().below(6)}}; }

//===--- what PyTorch's own operators give ---===//

Tensors no_result(const Stack& /*stack*/) { TORCH_CHECK(false, "an error is expected"); }
Tensors doubled(const Stack& stack) { return {tensor(stack) * 2}; }
Tensors copied(const Stack& stack) { return {tensor(stack).clone()}; }

Tensors squared(const Stack& stack) {
  TORCH_CHECK(tensor(stack).scalar_type() == at::kDouble);
  return {tensor(stack) * tensor(stack)};
}
Tensors rows_summed(const Stack& stack) {
  TORCH_CHECK(tensor(stack).scalar_type() == at::kDouble && tensor(stack).dim() == 2);
  return {tensor(stack).sum(1)};
}
Tensors matrix_doubled(const Stack& stack) {
  TORCH_CHECK(tensor(stack).scalar_type() == at::kDouble && tensor(stack).dim() == 2);
  return doubled(stack);
}
Tensors leaky_relu(const Stack& stack) {
  return {at::leaky_relu(tensor(stack), stack[1].toDouble())};
}
Tensors topk(const Stack& stack) {
  auto [found, indices] =
      at::topk(tensor(stack), stack[1].toInt(), stack[2].toInt(), stack[3].toBool());
  return {found, indices};
}
Tensors cat(const Stack& stack) {
  const Tensors list = stack[0].toTensorVector();
  TORCH_CHECK(std::all_of(list.begin(), list.end(), [](const auto& t) { return t.defined(); }));
  return {at::cat(list, stack[1].toInt())};
}
Tensors joined(const Stack& stack) { return cat({stack[0], int64_t{0}}); }
Tensors layer_norm(const Stack& stack) {
  return {at::layer_norm(tensor(stack), {tensor(stack).size(-1)}, stack[1].toOptional<at::Tensor>(),
                         stack[2].toOptional<at::Tensor>(), stack[3].toDouble())};
}
Tensors multiplied(const Stack& stack) {
  return {tensor(stack) * stack[1].toDouble() * (stack[2].isNone() ? 1 : stack[2].toInt())};
}
Tensors swish(const Stack& stack) {
  return {tensor(stack) * (tensor(stack) * stack[1].toDouble()).sigmoid()};
}
Tensors loud(const Stack& stack) { return {tensor(stack) * 2, tensor(stack).to(at::kLong)}; }
Tensors sum_checked(const Stack& stack) {
  TORCH_CHECK(tensor(stack, 0).size(0) == tensor(stack, 1).size(0));
  return {tensor(stack, 0) + tensor(stack, 1)};
}
Tensors table(const Stack& stack) { return {at::full_like(tensor(stack), stack[1].toInt())}; }
Tensors two_steps(const Stack& stack) {
  return {at::mul(tensor(stack), at::full_like(tensor(stack), 2)) + tensor(stack)};
}
Tensors named(const Stack& stack) {
  TORCH_CHECK(tensor(stack).is_floating_point() || tensor(stack).is_complex());
  return {tensor(stack) * (tensor(stack) * 2.0)};
}
Tensors filled(const Stack& stack) {
  return {tensor(stack).sum().to(tensor(stack).scalar_type()).expand_as(tensor(stack)).clone()};
}
Tensors twice(const Stack& stack) { return {tensor(stack).clone(), tensor(stack).clone()}; }

struct Reference {
  const char* kernel;
  const char* name;
  Stack (*choose)(Maker&);
  Tensors (*compute)(const Stack&);
  int order = 0;  // the highest order of gradients; 0: none
  bool is_composite = false;
  bool has_meta = true;
  std::optional<at::ScalarType> cast_to = {};  // under autocast
};

const Reference kReferences[] = {
    {"LeakyRelu", "leaky_relu", choose_with_slope, leaky_relu, 2},
    {"Square", "square", choose_double, squared, 2},
    {"TopK", "top_k", choose_topk, topk, 2},
    {"Cat", "cat", choose_cat, cat, 1},
    {"LayerNorm", "layer_norm", choose_layer_norm, layer_norm, 2},
    {"Multiply", "multiply", choose_numbers, multiplied, 1},
    {"Swish", "swish", choose_with_slope, swish, 3, /*is_composite=*/true},
    {"CheckedComposite", "checked_composite", choose_matrix, matrix_doubled, 3,
     /*is_composite=*/true},
    {"Loud", "loud", choose_one, loud, 1},
    {"Twice", "double_it", choose_one, doubled},
    {"NoGradient", "no_gradient", choose_one, doubled},
    {"Lowered", "lowered", choose_one, doubled, 1, false, true, at::kBFloat16},
    {"Raised", "raised", choose_one, doubled, 1, false, true, at::kFloat},
    {"LoweredList", "lowered_list", choose_list, joined, 0, false, true, at::kBFloat16},
    {"Same", "same", choose_one, copied},
    {"MetaSaid", "meta_said", choose_one, copied},
    {"TableOf", "table_of", choose_table, table},
    {"TwoSteps", "two_steps", choose_one, two_steps},
    {"Names", "names", choose_names, named},
    {"Checked", "checked", choose_checked, sum_checked},
    {"SumOfRows", "sum_of_rows", choose_matrix, rows_summed},
    {"Copies", "copies", choose_one, copied, 0, false, /*has_meta=*/false},
    {"FillWithSum", "fill_with_sum", choose_one, filled, 0, false, /*has_meta=*/false},
    {"SobelGrad", "sobel_grad", choose_one, twice, 0, false, /*has_meta=*/false},
    {"Assigns", "assigns", choose_one, no_result, 0, false, /*has_meta=*/false},
    {"Resizes", "resizes", choose_one, no_result, 0, false, /*has_meta=*/false},
    {"Throws", "throws", choose_throwing, no_result, 0, false, /*has_meta=*/false},
};

//===--- comparison ---===//

at::Tensor plain(const at::Tensor& tensor) {
  const at::Tensor values = tensor.detach();
  return values._is_zerotensor() ? values.clone()
                                 : values.resolve_conj().resolve_neg().contiguous();
}

/// Undefined gradients are zeros.
void compare(const at::Tensor& found, const at::Tensor& expected, const char* what) {
  if (!found.defined() || !expected.defined()) {
    const at::Tensor& other = found.defined() ? found : expected;
    if (other.defined() && plain(other).to(at::kComplexDouble).count_nonzero().item<int64_t>()) {
      fail("no value where one is due:", what);
    }
    return;
  }
  if (found.scalar_type() != expected.scalar_type() || found.sizes() != expected.sizes()) {
    fail("another dtype or shape:", what);
  }
  const at::Tensor a = plain(found);
  const at::Tensor b = plain(expected);
  const bool is_same =
      a.nbytes() == 0 || std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0;
  if (!is_same && !at::allclose(a.to(at::kComplexDouble), b.to(at::kComplexDouble), 1e-4, 1e-6,
                                /*equal_nan=*/true)) {
    fail("a wrong value:", what);
  }
}

at::Tensor copy_of(const at::Tensor& tensor) {
  return tensor.defined() ? plain(tensor).clone().set_requires_grad(tensor.requires_grad())
                          : tensor;
}

/// The same arguments, of memory of their own. A tensor that is there twice is so in both.
Stack copy_of(const Stack& stack, Tensors& originals, Tensors& copies) {
  const auto copy = [&](const at::Tensor& tensor) {
    for (std::size_t i = 0; i < originals.size(); ++i) {
      if (originals[i].is_same(tensor)) {
        return copies[i];
      }
    }
    originals.push_back(tensor);
    copies.push_back(copy_of(tensor));
    return copies.back();
  };
  Stack copied;
  for (const IValue& value : stack) {
    if (value.isTensorList()) {
      Tensors list;
      for (const at::Tensor& element : value.toTensorVector()) {
        list.push_back(copy(element));
      }
      copied.emplace_back(list);
    } else {
      copied.push_back(value.isTensor() ? IValue(copy(value.toTensor())) : value);
    }
  }
  return copied;
}

/// Compares the gradients of leaves, and the gradients of these, from the results of both.
void differentiate(const Reference& of, Tensors results, Tensors expected, Tensors leaves,
                   Tensors copies, Choices& choices, int order = 1) {
  Tensors outputs;
  Tensors expected_outputs;
  Tensors given;
  Tensors given_copies;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!results[i].defined() || !results[i].requires_grad() || !expected[i].defined() ||
        !expected[i].requires_grad() || choices.one_in(4)) {
      continue;
    }
    Operand operand = choose_tensor(choices, type_of(results[i]), results[i].sizes().vec());
    const at::Tensor gradient = place(operand, choose_layout(choices, operand.sizes), nullptr);
    gradient.set_requires_grad(choices.one_in(2));
    outputs.push_back(results[i]);
    expected_outputs.push_back(expected[i]);
    given.push_back(gradient);
    given_copies.push_back(copy_of(gradient));
  }
  if (outputs.empty() || leaves.empty()) {
    return;
  }
  scene() += ", gradient " + std::to_string(order);
  const bool creates = choices.one_in(2);
  const auto backward = [&](const Tensors& of_outputs, const Tensors& inputs, const Tensors& by) {
    return answer_of([&] {
      return torch::autograd::grad(of_outputs, inputs, by, creates, creates, /*allow_unused=*/true);
    });
  };
  const Answer answer = backward(outputs, leaves, given);
  const Answer right = backward(expected_outputs, copies, given_copies);
  if (order > of.order) {
    if (!answer.error && !of.is_composite &&
        std::any_of(right.results.begin(), right.results.end(),
                    [](const auto& tensor) { return tensor.defined(); })) {
      fail("a gradient without a gradient kernel of", of.kernel);
    }
    return;
  }
  if (answer.error.has_value() != right.error.has_value()) {
    fail("an error of one of both gradients:", answer.error.value_or(*right.error).c_str());
  }
  for (std::size_t i = 0; i < answer.results.size() && !answer.error; ++i) {
    compare(answer.results[i], right.results[i], "a gradient");
  }
  const bool is_again_right = !backward(outputs, leaves, given).error;
  if (!answer.error && is_again_right != creates && !of.is_composite) {
    fail("a second backward pass of", of.kernel);
  }
  if (creates && !answer.error) {
    leaves.insert(leaves.end(), given.begin(), given.end());
    copies.insert(copies.end(), given_copies.begin(), given_copies.end());
    Tensors all;
    Tensors all_copies;
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      if (leaves[i].requires_grad()) {
        all.push_back(leaves[i]);
        all_copies.push_back(copies[i]);
      }
    }
    differentiate(of, answer.results, right.results, all, all_copies, choices, order + 1);
  }
}

//===--- calls ---===//

enum class Mode { kPlain, kGrad, kMeta, kInference, kAutocast, kOut, kForward, kModes };

Answer compute(const Reference& of, const Stack& stack) {
  return answer_of([&]() -> Tensors { return of.compute(stack); });
}

void check_errors(const Reference& of, const Answer& answer, const Answer& right) {
  if (answer.error && !right.error) {
    fail("an error of a right call:", answer.error->c_str());
  }
  if (!answer.error && right.error) {
    fail("no error of", of.kernel);
  }
}

/// Those of lists too.
template <class Change>
void change_tensors(Stack& stack, const Change& change) {
  for (IValue& value : stack) {
    if (value.isTensorList()) {
      Tensors list = value.toTensorVector();
      std::transform(list.begin(), list.end(), list.begin(), change);
      value = list;
    } else if (value.isTensor()) {
      value = change(value.toTensor());
    }
  }
}

void call_on_meta(const Reference& of, Stack stack, const Answer& right) {
  const auto on_meta = [](const at::Tensor& tensor) {
    return tensor.defined() ? at::empty_strided(tensor.sizes(), tensor.strides(),
                                                tensor.options().device(at::kMeta))
                            : tensor;
  };
  change_tensors(stack, on_meta);
  const Answer answer =
      answer_of([&] { return call_boxed(find_operator(of.name, ""), std::move(stack)); },
                /*may_be_any=*/true);
  if (!of.has_meta || right.error) {
    return;
  }
  check_errors(of, answer, right);
  for (std::size_t i = 0; i < answer.results.size(); ++i) {
    if (!answer.results[i].is_meta() || answer.results[i].sizes() != right.results[i].sizes() ||
        answer.results[i].scalar_type() != right.results[i].scalar_type()) {
      fail("wrong shapes on meta tensors of", of.kernel);
    }
  }
}

void call_to_outputs(const Reference& of, Stack stack, const Answer& right, Choices& choices) {
  const at::Tensor x = tensor(stack);
  const std::size_t count = std::strcmp(of.name, "sobel_grad") == 0 ? 2 : 1;
  Tensors given;
  bool is_any = right.error.has_value() || right.results.size() != count;
  for (std::size_t i = 0; i < count; ++i) {
    const at::Tensor like = is_any ? x : right.results[i];
    const int how = choices.below(6);
    at::Tensor output = at::empty(like.sizes(), like.options());
    if (how == 1 && of.has_meta) {
      output = at::empty({0}, like.options());
    } else if (how == 2 && like.dim() > 1) {
      output = at::empty_like(like.transpose(0, 1).contiguous()).transpose(0, 1);
    } else if (how == 3 && x.scalar_type() == like.scalar_type() && x.sizes() == like.sizes() &&
               x.is_contiguous() && !x.is_neg() && !x.is_conj() && !x._is_zerotensor()) {
      output = x;
    } else if (how == 4 && i == 1) {
      output = given[0];
    } else if (how == 5 && like.is_complex()) {
      output = output.conj();
    }
    given.push_back(output);
    stack.emplace_back(output);
  }
  const Answer answer =
      answer_of([&] { return call_boxed(find_operator(of.name, "out"), std::move(stack)); });
  if (is_any) {
    if (!answer.error && right.error) {
      fail("no error of", of.kernel);
    }
    return;
  }
  check_errors(of, answer, right);
  for (std::size_t i = 0; i < given.size(); ++i) {
    compare(given[i], right.results[i], of.kernel);
  }
}

void call_with_tangents(const Reference& of, Stack stack) {
  const std::uint64_t level = torch::autograd::ForwardADLevel::get_next_idx();
  {
    const at::Tensor x = plain(tensor(stack)).clone();
    stack[0] = at::_make_dual(x, at::ones_like(x), static_cast<int64_t>(level));
    const Answer answer =
        answer_of([&] { return call_boxed(find_operator(of.name, ""), std::move(stack)); });
    if (!answer.error && !of.is_composite) {
      fail("a tangent was lost by", of.kernel);
    }
  }
  torch::autograd::ForwardADLevel::release_idx(level);
}

Answer call_under_autocast(const Reference& of, const Stack& stack) {
  const AutocastGuard autocast;
  return answer_of([&] { return call_boxed(find_operator(of.name, ""), stack); });
}

/// The arguments as autocast gives them to the kernel.
Stack cast(Stack stack, at::ScalarType type) {
  const auto cast_one = [type](const at::Tensor& tensor) {
    return tensor.defined() && tensor.is_floating_point() && tensor.scalar_type() != at::kDouble
               ? tensor.to(type)
               : tensor;
  };
  change_tensors(stack, cast_one);
  return stack;
}

void call(const Reference& of, Mode mode, Memory& memory, Choices& choices) {
  std::optional<c10::InferenceMode> inference_mode;
  if (mode == Mode::kInference) {
    inference_mode.emplace();
  }
  Maker make(memory, choices, mode == Mode::kGrad, !of.is_composite);
  const Stack stack = of.choose(make);
  Tensors tensors;
  Tensors copies;
  const Stack copied = copy_of(stack, tensors, copies);
  std::vector<Before> before;
  Tensors leaves;
  Tensors leaf_copies;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i].defined()) {
      continue;
    }
    scene() += ' ' + std::string(c10::toString(tensors[i].scalar_type())) + " [" +
               c10::Join(", ", tensors[i].sizes()) + "]";
    if (!tensors[i]._is_zerotensor()) {
      before.emplace_back(tensors[i]);
    }
    if (tensors[i].requires_grad()) {
      leaves.push_back(tensors[i]);
      leaf_copies.push_back(copies[i]);
    }
  }
  if (mode == Mode::kInference && choices.one_in(2)) {
    inference_mode.reset();
  }
  const bool casts = mode == Mode::kAutocast && of.cast_to.has_value();
  const Answer right = compute(of, casts ? cast(copied, *of.cast_to) : copied);
  const bool has_plain = has_operator(of.name, "");
  if (mode == Mode::kOut || !has_plain) {
    if (has_operator(of.name, "out")) {
      call_to_outputs(of, stack, leaves.empty() ? right : Answer{"a gradient", {}}, choices);
    }
    return;
  }
  if (mode == Mode::kMeta) {
    call_on_meta(of, stack, right);
    return;
  }
  if (mode == Mode::kForward && stack[0].isTensor() && !right.error &&
      right.results[0].is_floating_point() && tensor(stack).is_floating_point()) {
    call_with_tangents(of, stack);
    return;
  }
  const Answer answer = mode == Mode::kAutocast ? call_under_autocast(of, stack) : answer_of([&] {
    return call_boxed(find_operator(of.name, ""), stack);
  });
  for (const Before& input : before) {
    input.check();
  }
  if (!of.has_meta) {
    if (!answer.error) {
      fail("no error of", of.kernel);
    }
    return;
  }
  check_errors(of, answer, right);
  if (answer.error) {
    return;
  }
  for (std::size_t i = 0; i < answer.results.size(); ++i) {
    compare(answer.results[i], right.results[i], of.kernel);
  }
  if (!of.is_composite) {
    check_memory(answer.results, tensors);
  }
  if (mode == Mode::kGrad) {
    differentiate(of, answer.results, right.results, leaves, leaf_copies, choices);
  }
  const at::NoGradGuard no_grad;
  for (const at::Tensor& result : answer.results) {
    result.detach().zero_();
  }
}

}  // namespace

void call_with_reference(Memory& memory, Choices& choices) {
  const Reference& of = choices.of(kReferences);
  const auto mode = static_cast<Mode>(choices.below(static_cast<int>(Mode::kModes)));
  scene() = std::string(of.name) + ", mode " + std::to_string(static_cast<int>(mode)) + ", of";
  if (choices.one_in(64)) {
    std::thread([&] { call(of, mode, memory, choices); }).join();
  } else {
    call(of, mode, memory, choices);
  }
}

}  // namespace fuzz::pytorch

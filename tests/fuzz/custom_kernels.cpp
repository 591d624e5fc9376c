// The kernels of ops.Custom, and what they have to give, computed without PyTorch.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "results.h"

FUZZ_DECLARE(Negate)
FUZZ_DECLARE(NegateOut)
FUZZ_DECLARE(Fill)
FUZZ_DECLARE(CopyTwice)
FUZZ_DECLARE(Scale)
FUZZ_DECLARE(ScaleGrad)
FUZZ_DECLARE(Linear)
FUZZ_DECLARE(SumOfAll)
FUZZ_DECLARE_SEVERAL(SumOfAllGrad)
FUZZ_DECLARE_SEVERAL(NegateAndDouble)
FUZZ_DECLARE(AddNumber)
FUZZ_DECLARE(AddNumberGrad)
FUZZ_DECLARE(FirstRows)
FUZZ_DECLARE(NegateChecked)
FUZZ_DECLARE(NeverRight)
FUZZ_DECLARE(Product)
FUZZ_DECLARE_SEVERAL(ProductGrad)
FUZZ_DECLARE_SEVERAL(ProductGradGrad)
FUZZ_DECLARE(Differentiate)
FUZZ_DECLARE(Spoil)
FUZZ_DECLARE(Misjudge)
FUZZ_DECLARE(ReturnAnother)
FUZZ_DECLARE(WriteInputGrad)
FUZZ_DECLARE(DetachGrad)
FUZZ_DECLARE_SEVERAL(EmbedGrad)
FUZZ_DECLARE_SEVERAL(EmbedGradGrad)
FUZZ_DECLARE_SEVERAL(EmbedGradGradGrad)
FUZZ_DECLARE(Count)
FUZZ_DECLARE(Shaped)
FUZZ_DECLARE(WithWorkspace)
FUZZ_DECLARE(WithWorkspaceGrad)
FUZZ_DECLARE(WithWorkspaces)
FUZZ_DECLARE(CountSlots)
FUZZ_DECLARE(AskForMore)

namespace fuzz {
namespace {

const Expected kNotInferred = {Outcome::kAny, {}, false};

//===--- inputs ---===//

/// Inputs of the same shape, of which the last, a gradient, may have another.
template <int count>
Operands choose_with_gradient(Choices& choices) {
  Operands inputs = choose_alike(choices, count);
  if (choices.one_in(8)) {
    inputs.back() = choose_alike(choices, 1)[0];
  }
  return inputs;
}

/// Inputs of the same shape, of which the last may be None.
template <int fixed>
Operands choose_several(Choices& choices) {
  Operands inputs = choose_alike(choices, fixed + choices.below(4));
  inputs.back().is_none = choices.one_in(4);
  return inputs;
}

Operand choose_number(Choices& choices) {
  constexpr Type kTypes[] = {Type::kI64, Type::kI64, Type::kF32, Type::kI32, Type::kBool};
  Operand number = choose_tensor(choices, choices.of(kTypes), {});
  if (number.type != Type::kBool) {
    const int value = choices.below(24);
    set_numbers(number, [&](std::size_t /*i*/) { return value; });
  }
  number.is_number = number.type == Type::kI64 && choices.one_in(2);
  return number;
}
Operands choose_number_behind(Choices& choices) {
  Operands inputs = choose_alike(choices, 1);
  inputs.push_back(choose_number(choices));
  return inputs;
}
/// The same with a gradient after it.
Operands choose_number_between(Choices& choices) {
  Operands inputs = choose_alike(choices, 2);
  inputs.insert(inputs.begin() + 1, choose_number(choices));
  return inputs;
}

Operands choose_linear(Choices& choices) {
  const Type type =
      choices.one_in(8) ? choices.of(kAllTypes) : (choices.one_in(2) ? Type::kF64 : Type::kF32);
  const int64_t n = choices.below(4);
  const int64_t c = choices.below(4);
  const int64_t m = choices.below(4);
  return {choose_tensor(choices, type, {n, c}),
          choose_tensor(choices, choices.one_in(8) ? choices.of(kAllTypes) : type,
                        {m, choices.one_in(8) ? c + 1 : c})};
}

Operands choose_checked(Choices& choices) {
  constexpr Type kTypes[] = {Type::kF32, Type::kF64, Type::kC128, Type::kC64,
                             Type::kF16, Type::kF32, Type::kI32,  Type::kBF16};
  const int64_t n = choices.below(3);
  const int64_t c = choices.below(3);
  const auto other = [&](int64_t size) { return choices.one_in(16) ? size + 1 : size; };
  Ints sizes = {n, other(3), c};
  if (choices.one_in(2)) {
    sizes.insert(sizes.begin() + 2, 2);
  }
  if (choices.one_in(16)) {
    sizes.pop_back();
    sizes.pop_back();
  }
  Operands inputs = {choose_tensor(choices, choices.of(kTypes), sizes)};
  static const Ints kFront[] = {{}, {2}, {2, 2}};
  Ints of_weight = choices.one_in(16) ? choices.of(kFront) : kFront[choices.below(2)];
  of_weight.push_back(other(c));
  inputs.push_back(choose_tensor(
      choices, choices.one_in(16) ? choices.of(kAllTypes) : kTypes[choices.below(2)], of_weight));
  inputs.back().is_none = choices.one_in(4);
  for (int more = choices.below(3); more > 0; --more) {
    inputs.push_back(choose_tensor(choices, Type::kI32, {other(n), choices.below(3)}));
  }
  return inputs;
}

/// A table, indices of its rows, and gradients.
template <int count>
Operands choose_embedding(Choices& choices) {
  const Type type = choices.one_in(2) ? Type::kF32 : Type::kF64;
  const int64_t width = choices.below(3);
  const int64_t indices = choices.below(4);
  Operands inputs = {choose_tensor(choices, type, {11, width}),
                     choose_tensor(choices, Type::kI64, {indices}),
                     choose_tensor(choices, type, {indices, width})};
  for (std::size_t i = 0; inputs.size() < static_cast<std::size_t>(count); ++i) {
    inputs.push_back(inputs[i < 2 ? i : i - 2]);
  }
  return inputs;
}

//===--- results ---===//

Expected expect_negated(const Operands& inputs, const Operator& /*of*/) {
  if (inputs[0].is_none || inputs[0].type == Type::kBool) {
    return kError;
  }
  return is_known(inputs[0].type)
             ? value({map({inputs[0]}, [](const auto& row) { return -row[0]; })})
             : Expected{};
}

Expected expect_filled(const Operands& inputs, const Operator& /*of*/) {
  if (inputs[0].is_none) {
    return kError;
  }
  if (!is_known(inputs[0].type)) {
    return kNotInferred;
  }
  Expected expected = value({inputs[0]});
  set_numbers(expected.outputs[0], [](std::size_t /*i*/) { return 3; });
  expected.is_inferred = false;
  return expected;
}

/// `x + number`, in the dtype that the sum has.
Expected plus(Operand x, int64_t number) {
  if (x.is_none) {
    return kError;
  }
  if (!is_known(x.type)) {
    return {};
  }
  if (x.type == Type::kBool) {
    const std::vector<bool> bools = values<bool>(x);
    x.type = Type::kI64;
    set_values(x, Ints(bools.begin(), bools.end()));
  }
  return value({map({x}, [&](const auto& row) {
    using T = std::decay_t<decltype(row[0])>;
    if constexpr (std::is_same_v<T, int64_t>) {  // signed integers must not overflow
      return static_cast<T>(static_cast<std::uint64_t>(row[0]) +
                            static_cast<std::uint64_t>(number));
    } else {
      return row[0] + static_cast<T>(number);
    }
  })});
}

bool has_wrong_scale(const Operator& of) {
  return of.extra->is_other<float>("factor") || of.extra->is_other<int64_t>("shift");
}

Expected expect_scaled(const Operands& inputs, const Operator& of) {
  if (has_wrong_scale(of) || inputs[0].is_none) {
    return kError;
  }
  const double factor = of.extra->value_or("factor", 2.0F);
  const int64_t shift = of.extra->value_or("shift", int64_t{1});
  Operand x = inputs[0];
  if (!is_known(x.type)) {
    return {};
  }
  if (!is_float(x.type) && !is_complex(x.type)) {
    with_type(x.type, [&](auto zero) {
      using T = decltype(zero);
      std::vector<float> floats;
      if constexpr (std::is_arithmetic_v<T>) {
        for (const T element : values<T>(x)) {
          floats.push_back(static_cast<float>(element));
        }
      }
      x.type = Type::kF32;
      set_values(x, floats);
      return 0;
    });
  }
  return value({map({x}, [&](const auto& row) {
    using T = std::decay_t<decltype(row[0])>;
    return row[0] * static_cast<T>(factor) + static_cast<T>(shift);
  })});
}

Expected expect_scale_gradient(const Operands& inputs, const Operator& of) {
  if (has_wrong_scale(of) || inputs[0].is_none) {
    return kError;
  }
  if (inputs[1].is_none && is_float(inputs[0].type)) {
    return value({zeros_like(inputs[0])});
  }
  if (!are_alike(inputs) || !is_float(inputs[0].type)) {
    return {};
  }
  const double factor = of.extra->value_or("factor", 2.0F);
  return value({map({inputs[1]}, [&](const auto& row) {
    return row[0] * static_cast<std::decay_t<decltype(row[0])>>(factor);
  })});
}

Expected expect_linear(const Operands& inputs, const Operator& /*of*/) {
  const Operand& x = inputs[0];
  const Operand& w = inputs[1];
  if (x.is_none || w.is_none || x.sizes.size() != 2 || w.sizes.size() != 2 ||
      x.sizes[1] != w.sizes[1]) {
    return kError;
  }
  if (!is_float(x.type) || x.type != w.type) {
    return {};
  }
  Operand y;
  y.type = x.type;
  y.sizes = {x.sizes[0], w.sizes[0]};
  with_type(x.type, [&](auto zero) {
    using T = decltype(zero);
    const std::vector<T> a = values<T>(x);
    const std::vector<T> b = values<T>(w);
    std::vector<T> sums;
    const auto c = static_cast<std::size_t>(x.sizes[1]);
    for (std::size_t i = 0; i < static_cast<std::size_t>(x.sizes[0]); ++i) {
      for (std::size_t j = 0; j < static_cast<std::size_t>(w.sizes[0]); ++j) {
        T sum{};
        for (std::size_t k = 0; k < c; ++k) {
          sum += a[i * c + k] * b[j * c + k];
        }
        sums.push_back(sum);
      }
    }
    set_values(y, sums);
    return 0;
  });
  return value({y});
}

Expected expect_sum(const Operands& inputs, const Operator& /*of*/) {
  Operands given = inputs;
  if (given.back().is_none) {
    given.pop_back();
  }
  if (given.empty()) {
    return kError;
  }
  // Elsewhere some are broadcast, or None.
  return are_alike(given) && is_known(given[0].type) ? value({sum_of(given)}) : Expected{};
}

/// The gradient of each is that of the sum.
Expected expect_sum_gradient(const Operands& inputs, const Operator& /*of*/) {
  Operands given(inputs.begin(), inputs.end() - 1);
  const Operand& gradient = inputs.back();
  const bool has_last = !given.back().is_none;
  if (!has_last) {
    given.pop_back();
  }
  if (given.empty()) {
    return kError;
  }
  if (!are_alike(given) || !is_float(given[0].type)) {
    return {};
  }
  if (!gradient.is_none && !are_alike({given[0], gradient})) {
    return kError;
  }
  Operands outputs(given.size(), gradient.is_none ? zeros_like(given[0]) : gradient);
  if (!has_last) {
    outputs.push_back(zeros_like(inputs[inputs.size() - 2]));
  }
  return value(std::move(outputs));
}

Expected expect_both(const Operands& inputs, const Operator& of) {
  Expected expected = expect_negated(inputs, of);
  if (expected.outcome == Outcome::kValue) {
    expected.outputs.push_back(sum_of({inputs[0], inputs[0]}));
  }
  return expected;
}

/// For kernels that read a number from the second input: none if that is an error, or not known.
Expected number_fault(const Operands& inputs) {
  const Operand& n = inputs[1];
  if (inputs[0].is_none || n.is_none || n.numel() != 1) {
    return kError;
  }
  return is_complex(n.type) || !is_known(n.type) ? Expected{} : value({});
}
int64_t integer_of(const Operand& operand) {
  const Number number = number_of(operand);
  return static_cast<int64_t>(number.is_integer ? static_cast<double>(number.integer)
                                                : number.real.real());
}

Expected expect_number_added(const Operands& inputs, const Operator& /*of*/) {
  const Expected fault = number_fault(inputs);
  return fault.outcome == Outcome::kValue ? plus(inputs[0], integer_of(inputs[1])) : fault;
}

Expected expect_number_gradient(const Operands& inputs, const Operator& /*of*/) {
  const Expected fault = number_fault(inputs);
  if (fault.outcome != Outcome::kValue) {
    return fault;
  }
  if (inputs[2].is_none && is_float(inputs[0].type)) {
    return value({zeros_like(inputs[0])});
  }
  return are_alike({inputs[0], inputs[2]}) && is_float(inputs[0].type) ? value({inputs[2]})
                                                                       : Expected{};
}

Expected expect_first_rows(const Operands& inputs, const Operator& /*of*/) {
  Expected expected = number_fault(inputs);
  if (expected.outcome != Outcome::kValue) {
    return expected;
  }
  const Operand& x = inputs[0];
  const int64_t count = integer_of(inputs[1]);
  if (x.sizes.empty() || count > x.sizes[0]) {
    return kError;
  }
  Operand rows = x;
  rows.sizes[0] = count;
  rows.bytes.resize(rows.byte_count());
  expected.outputs = {rows};
  expected.is_inferred = inputs[1].is_number;
  return expected;
}

bool is_floating_point(Type type) {
  return is_float(type) || is_complex(type) || type == Type::kF16 || type == Type::kBF16;
}

Expected expect_checked(const Operands& inputs, const Operator& of) {
  const Operand& x = inputs[0];
  const Operand& weight = inputs[1];
  if (x.is_none || !is_floating_point(x.type) || x.sizes.size() < 3 || x.sizes[1] != 3) {
    return kError;
  }
  if (!weight.is_none && (!is_float(weight.type) || weight.sizes.empty() ||
                          weight.sizes.size() > 2 || weight.sizes.back() != x.sizes.back())) {
    return kError;
  }
  for (std::size_t i = 2; i < inputs.size(); ++i) {
    if (inputs[i].is_none || inputs[i].sizes.size() != 2 || inputs[i].sizes[0] != x.sizes[0]) {
      return kError;
    }
  }
  return expect_negated(inputs, of);
}

Expected expect_error(const Operands& /*inputs*/, const Operator& /*of*/) { return kError; }

Expected expect_product(const Operands& inputs, const Operator& /*of*/) {
  return are_alike(inputs) && is_known(inputs[0].type) ? value({product_of(inputs[0], inputs[1])})
                                                       : Expected{};
}

Expected expect_written_twice(const Operands& inputs, const Operator& /*of*/) {
  if (inputs[0].is_none) {
    return kError;
  }
  Expected expected =
      is_known(inputs[0].type) ? value({sum_of({inputs[0], inputs[0]})}) : Expected{};
  expected.is_inferred = false;
  return expected;
}

Expected expect_doubled(const Operands& inputs, const Operator& /*of*/) {
  if (inputs[0].is_none) {
    return kError;
  }
  return is_float(inputs[0].type) ? value({sum_of({inputs[0], inputs[0]})}) : Expected{};
}

Expected expect_spoiled(const Operands& inputs, const Operator& of) {
  Expected expected = number_fault(inputs);
  if (expected.outcome != Outcome::kValue) {
    return expected;
  }
  expected = expect_negated({inputs[0]}, of);
  const int64_t how = integer_of(inputs[1]);
  if (how == 3 || how == 5 || how == 8 || how == 11 || how == 13 || (how >= 18 && how <= 20)) {
    return kError;
  }
  const bool is_harmless = how == 0 || how == 1 || how == 9 || how >= 21;
  if (!is_harmless && expected.outcome == Outcome::kValue) {
    expected.outcome = Outcome::kAny;
  }
  return expected;
}

Expected expect_misjudged(const Operands& inputs, const Operator& of) {
  if (of.extra->is_other<int64_t>("how")) {
    return kError;
  }
  const int64_t how = of.extra->value_or("how", int64_t{0});
  Expected expected = expect_negated(inputs, of);
  if (how >= 1 && how <= 3) {
    return kError;
  }
  expected.is_inferred = how == 0;
  return expected;
}

Expected expect_integer_zeros(const Operands& inputs, const Operator& /*of*/) {
  if (inputs[0].is_none) {
    return kError;
  }
  return is_float(inputs[0].type) && !inputs[1].is_none ? kError : Expected{};
}

Expected expect_embedding_gradient(const Operands& inputs, const Operator& /*of*/) {
  const Operand& table = inputs[0];
  const Operand& indices = inputs[1];
  if (table.is_none || indices.is_none) {
    return kError;
  }
  Operand gradient = zeros_like(table);
  if (!inputs[2].is_none) {
    with_type(table.type, [&](auto zero) {
      using T = decltype(zero);
      std::vector<T> sums = values<T>(gradient);
      const std::vector<T> given = values<T>(inputs[2]);
      const Ints rows = values<int64_t>(indices);
      const auto width = static_cast<std::size_t>(table.sizes[1]);
      for (std::size_t i = 0; i < given.size(); ++i) {
        const std::size_t at = static_cast<std::size_t>(rows[i / width]) * width + i % width;
        sums[at] = static_cast<T>(sums[at] + given[i]);
      }
      set_values(gradient, sums);
      return 0;
    });
  }
  return value({gradient, zeros_like(indices)});
}

bool has_nothing(const Operand& operand) { return operand.numel() == 0; }

/// The gradient of the table's gradient has rows for the gradients that it was made from.
Expected expect_second_of_embedding(const Operands& inputs, const Operator& /*of*/) {
  if (std::any_of(inputs.begin(), inputs.end(), has_nothing)) {
    return {};
  }
  Operand rows = zeros_like(inputs[2]);
  const Ints indices = values<int64_t>(inputs[1]);
  const std::size_t bytes = rows.bytes.size() / indices.size();
  for (std::size_t i = 0; i < indices.size(); ++i) {
    std::memcpy(rows.bytes.data() + i * bytes,
                inputs[3].bytes.data() + static_cast<std::size_t>(indices[i]) * bytes, bytes);
  }
  return value({zeros_like(inputs[0]), zeros_like(inputs[1]), rows});
}

/// PyTorch cannot differentiate a sparse gradient twice.
Expected expect_no_third_gradient(const Operands& inputs, const Operator& /*of*/) {
  if (std::any_of(inputs.begin(), inputs.end(), has_nothing)) {
    return {};
  }
  return {Outcome::kError, Operands(inputs.begin(), inputs.begin() + 5)};
}

Expected expect_counted(const Operands& inputs, const Operator& of) {
  const int64_t* begin = of.extra->find<int64_t>("begin");
  if (begin == nullptr) {
    return kError;
  }
  if (!of.count) {
    return {};
  }
  return plus(inputs[0], *begin + (of.extra->kernel_data == nullptr ? 0 : *of.count));
}

Expected expect_shaped(const Operands& inputs, const Operator& of) {
  if (of.extra->is_other<int64_t>("how")) {
    return kError;
  }
  const int64_t how = of.extra->value_or("how", int64_t{0});
  Expected expected = plus(inputs[0], 1);
  if (how == 1 || how == 2) {
    expected.outcome = Outcome::kError;
  }
  return expected;
}

Expected expect_with_workspace(const Operands& inputs, const Operator& /*of*/) {
  return plus(inputs[0], static_cast<int64_t>(inputs[0].sizes.size()) + 1);
}
Expected expect_with_workspaces(const Operands& inputs, const Operator& of) {
  if (of.extra->is_other<int64_t>("each")) {
    return kError;
  }
  const int64_t elements =
      static_cast<int64_t>(inputs[0].sizes.size()) + of.extra->value_or("each", int64_t{2}) - 1;
  Expected expected = plus(inputs[0], 2 + elements);
  expected.outcome = elements < 0 || elements > 1000 ? Outcome::kError : expected.outcome;
  return expected;
}
Expected expect_given_gradient(const Operands& inputs, const Operator& /*of*/) {
  if (inputs[1].is_none && is_float(inputs[0].type) && !inputs[0].is_none) {
    return value({zeros_like(inputs[0])});
  }
  return are_alike(inputs) && is_float(inputs[0].type) ? value({inputs[1]}) : Expected{};
}

Expected expect_slots(const Operands& inputs, const Operator& /*of*/) {
  Operand last = inputs[0];
  if (last.is_none || !is_known(last.type)) {
    return {};
  }
  set_numbers(last, [&](std::size_t /*i*/) { return static_cast<int>(inputs.size() + 1); });
  return value({last});
}

//===--- attributes ---===//

void set_scale(Extra& extra, Choices& choices) {
  if (choices.one_in(2)) {
    extra.attributes["factor"] = static_cast<float>(choices.below(4));
    extra.attributes["shift"] = int64_t{choices.below(4)};
  }
  if (choices.one_in(16)) {
    extra.attributes["factor"] = true;
  }
  if (choices.one_in(16)) {
    extra.attributes["shift"] = std::string("two");
  }
}

void set_begin(Extra& extra, Choices& choices) {
  if (!choices.one_in(8)) {
    extra.attributes["begin"] = int64_t{choices.below(4)};
  }
}

template <int count>
void set_how(Extra& extra, Choices& choices) {
  if (!choices.one_in(4)) {
    extra.attributes["how"] = int64_t{choices.below(count)};
  }
  if (choices.one_in(16)) {
    extra.attributes["how"] = 1.0F;
  }
}

void set_each(Extra& extra, Choices& choices) {
  constexpr int64_t kElements[] = {0, 1, 2, 3, 50, -1, int64_t{1} << 62, INT64_MAX - 8};
  if (choices.one_in(2)) {
    extra.attributes["each"] = choices.of(kElements);
  }
}

}  // namespace

const std::vector<KernelUnderTest>& kernels() {
  static const std::vector<KernelUnderTest> kernels = [] {
    constexpr auto none = nullptr;
    std::vector<KernelUnderTest> all = {
        {FUZZ_FUNCTIONS(Negate), choose<1>, expect_negated, kHasMeta},
        {FUZZ_FUNCTIONS(NegateOut), choose<1>, expect_negated, kHasMeta | kWritesAny},
        {FUZZ_FUNCTIONS(Fill), choose<1>, expect_filled, kHasMeta | kWritesAny},
        {FUZZ_FUNCTIONS(CopyTwice), choose<1>, expect_written_twice, kHasMeta | kWritesAny},
        {FUZZ_FUNCTIONS(Scale), choose<1>, expect_scaled, kHasMeta, set_scale},
        {FUZZ_FUNCTIONS(ScaleGrad), choose_with_gradient<2>, expect_scale_gradient, kHasMeta,
         set_scale},
        {FUZZ_FUNCTIONS(Linear), choose_linear, expect_linear, kHasMeta},
        {FUZZ_FUNCTIONS(SumOfAll), choose_several<1>, expect_sum, kHasMeta},
        {FUZZ_FUNCTIONS(SumOfAllGrad), choose_several<2>, expect_sum_gradient,
         kHasMeta | kGivesOneEach},
        {FUZZ_FUNCTIONS(NegateAndDouble), choose<1>, expect_both, kHasMeta, none, 2},
        {FUZZ_FUNCTIONS(AddNumber), choose_number_behind, expect_number_added, kHasMeta},
        {FUZZ_FUNCTIONS(AddNumberGrad), choose_number_between, expect_number_gradient, kHasMeta},
        {FUZZ_FUNCTIONS(FirstRows), choose_number_behind, expect_first_rows, kHasMeta},
        {FUZZ_FUNCTIONS(NegateChecked), choose_checked, expect_checked, kHasMeta},
        {FUZZ_FUNCTIONS(NeverRight), choose<1>, expect_error, kHasMeta},
        {FUZZ_FUNCTIONS(Product), choose<2>, expect_product, kHasMeta},
        {FUZZ_FUNCTIONS(ProductGrad), choose_with_gradient<3>, expect_product_gradient, kHasMeta,
         none, 2},
        {FUZZ_FUNCTIONS(ProductGradGrad), choose<5>, expect_second_gradient, kHasMeta, none, 3},
        {FUZZ_FUNCTIONS(Differentiate), choose<1>, expect_doubled},
        {FUZZ_FUNCTIONS(Spoil), choose_number_behind, expect_spoiled, kWritesAny},
        {FUZZ_FUNCTIONS(Misjudge), choose<1>, expect_misjudged, kHasMeta, set_how<12>},
        {FUZZ_FUNCTIONS(ReturnAnother), choose<1>, expect_error},
        {FUZZ_FUNCTIONS(WriteInputGrad), choose<2>, expect_error, kHasMeta},
        {FUZZ_FUNCTIONS(DetachGrad), choose<2>, expect_integer_zeros, kHasMeta},
        {FUZZ_FUNCTIONS(EmbedGrad), choose_embedding<3>, expect_embedding_gradient,
         kHasMeta | kIsSparse, none, 2},
        {FUZZ_FUNCTIONS(EmbedGradGradGrad), choose_embedding<8>, expect_no_third_gradient,
         kHasMeta | kIsSparse, none, 5},
        {FUZZ_FUNCTIONS(EmbedGradGrad), choose_embedding<5>, expect_second_of_embedding,
         kHasMeta | kIsSparse, none, 3},
        {FUZZ_FUNCTIONS(Count), choose<1>, expect_counted, kHasMeta | kCountsCalls, set_begin},
        {FUZZ_FUNCTIONS(Shaped), choose<1>, expect_shaped, kHasMeta, set_how<4>},
        {FUZZ_FUNCTIONS(WithWorkspace), choose<1>, expect_with_workspace, kHasMeta},
        {FUZZ_FUNCTIONS(WithWorkspaceGrad), choose<2>, expect_given_gradient, kHasMeta},
        {FUZZ_FUNCTIONS(WithWorkspaces), choose<1>, expect_with_workspaces, kHasMeta, set_each},
        {FUZZ_FUNCTIONS(CountSlots), choose_several<1>, expect_slots, kWritesAny | kIsRaw},
        {FUZZ_FUNCTIONS(AskForMore), choose<1>, expect_error, kIsRaw},
    };
    for (const KernelUnderTest& kernel : kernels_of_values()) {
      all.push_back(kernel);
    }
    return all;
  }();
  return kernels;
}

}  // namespace fuzz

// Inputs that kernels of several targets take, and what these make of them, computed without
// PyTorch.
#ifndef ATEN_BRIDGE_TESTS_FUZZ_RESULTS_H_
#define ATEN_BRIDGE_TESTS_FUZZ_RESULTS_H_

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "operator.h"

namespace fuzz {

using Operands = std::vector<Operand>;

inline const Expected kError = {Outcome::kError, {}};

/// Operands of one dtype and shape.
inline Operands choose_alike(Choices& choices, int count) {
  const Type type = choices.of(kAllTypes);
  Operands inputs = {choose_tensor(choices, type, choose_sizes(choices))};
  while (inputs.size() < static_cast<std::size_t>(count)) {
    inputs.push_back(choose_tensor(choices, type, inputs[0].sizes));
  }
  return inputs;
}
template <int kCount>
Operands choose(Choices& choices) {
  return choose_alike(choices, kCount);
}

inline bool are_alike(const Operands& operands) {
  return std::none_of(operands.begin(), operands.end(), [&](const Operand& operand) {
    return operand.is_none || operand.type != operands[0].type ||
           operand.sizes != operands[0].sizes;
  });
}

/// What `f` makes of the elements of operands of the same shape.
template <class F>
Operand map(const Operands& inputs, F f) {
  Operand output = inputs[0];
  output.is_number = false;
  with_type(output.type, [&](auto zero) {
    using T = decltype(zero);
    std::vector<std::vector<T>> columns;
    for (const Operand& input : inputs) {
      columns.push_back(values<T>(input));
    }
    std::vector<T> results(columns[0].size());
    for (std::size_t i = 0; i < results.size(); ++i) {
      std::vector<T> row;
      for (const auto& column : columns) {
        row.push_back(column[i]);
      }
      results[i] = static_cast<T>(f(row));
    }
    set_values(output, results);
    return 0;
  });
  return output;
}

inline Operand product_of(const Operand& a, const Operand& b) {
  return map({a, b}, [](const auto& row) { return row[0] * row[1]; });
}
inline Operand sum_of(const Operands& operands) {
  return map(operands, [](const auto& row) {
    auto sum = row[0];
    for (std::size_t i = 1; i < row.size(); ++i) {
      sum = static_cast<decltype(sum)>(sum + row[i]);  // for bools it is an or
    }
    return sum;
  });
}
inline Operand zeros_like(Operand operand) {
  if (operand.is_none) {
    operand = Operand();
    operand.sizes = {0};
  }
  operand.bytes.assign(operand.byte_count(), 0);
  return operand;
}
inline Expected value(Operands outputs) { return {Outcome::kValue, std::move(outputs)}; }

/// Takes a, b and the gradient of their product; None is zeros.
inline Expected expect_product_gradient(const Operands& inputs, const Operator& /*of*/) {
  const Operand& a = inputs[0];
  const Operand& b = inputs[1];
  if (!are_alike({a, b}) || !is_float(a.type)) {
    return {};
  }
  if (inputs[2].is_none) {
    return value({zeros_like(a), zeros_like(b)});
  }
  return are_alike(inputs) ? value({product_of(b, inputs[2]), product_of(a, inputs[2])}) : kError;
}

/// Takes a, b, the gradient g of their product, and the gradients of a's and of b's gradient.
inline Expected expect_second_gradient(const Operands& inputs, const Operator& /*of*/) {
  if (!are_alike(inputs) || !is_float(inputs[0].type)) {
    return {};
  }
  const Operand& a = inputs[0];
  const Operand& b = inputs[1];
  const Operand& g = inputs[2];
  const Operand& of_a = inputs[3];
  const Operand& of_b = inputs[4];
  return value({product_of(of_b, g), product_of(of_a, g),
                sum_of({product_of(of_a, b), product_of(of_b, a)})});
}

}  // namespace fuzz

#endif  // ATEN_BRIDGE_TESTS_FUZZ_RESULTS_H_

// Expressions of a program's sizes, and guards, which are relations between two of them.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_OPERATORS_PROGRAM_EXPRESSION_H_
#define ATEN_BRIDGE_OPERATORS_PROGRAM_EXPRESSION_H_

#include <aten_bridge.h>

#include <cstdint>
#include <string>
#include <vector>

#pragma GCC visibility push(hidden)

namespace aten_bridge::operators {

/// An int or a float.
struct Number {
  bool is_int = true;
  int64_t integer = 0;
  double real = 0;

  double as_double() const { return is_int ? static_cast<double>(integer) : real; }
};

/// A number, a symbol's value, or a function of others.
struct Expression {
  enum class Function : std::uint8_t {
    kNumber,
    kSymbol,
    kAdd,
    kMul,
    kFloorDiv,
    kMod,
    kMax,
    kMin,
    kPow,
    kTrueDiv,
    kToFloat,
    kFloor,
    kCeil,
    kSqrt,
  };

  Function function = Function::kNumber;
  Number number;
  int symbol = 0;
  std::vector<Expression> arguments;

  bool is_constant() const;
  /// Whether all of its symbols have values, which are sizes.
  bool is_known(const std::vector<int64_t>& symbols) const;
  /// Throws `Error` for what Python has an error for, and beyond int64.
  Number evaluate(const std::vector<int64_t>& symbols) const;
};

/// What has to be true of the sizes.
struct Guard {
  enum class Relation : std::uint8_t { kEqual, kNotEqual, kAtMost, kAtLeast, kLess, kGreater };

  Expression left;
  Relation relation = Relation::kEqual;
  Expression right;
  std::string text;  // as it is written

  /// Throws `Error` as `evaluate` does.
  bool holds(const std::vector<int64_t>& symbols) const;
};

/// The number of an int. Throws `Error` for a float.
int64_t as_int(const Number& number);

}  // namespace aten_bridge::operators

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_OPERATORS_PROGRAM_EXPRESSION_H_

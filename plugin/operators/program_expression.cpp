// Computes expressions of a program's sizes, as Python does, and decides relations between them.
//
// SPDX-License-Identifier: Apache-2.0

#include "program_expression.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>

#pragma GCC visibility push(hidden)

namespace aten_bridge::operators {

namespace {

using detail::raise;

[[noreturn]] void raise_overflow() {
  raise(Status::kShape, {"AtenProgram: expected sizes within int64, got a larger one"});
}

int64_t floor_divide(int64_t a, int64_t b) {
  if (b == 0) {
    raise(Status::kShape, {"AtenProgram: expected a size other than 0 to divide by, got 0"});
  }
  if (b == -1 && a == std::numeric_limits<int64_t>::min()) {
    raise_overflow();
  }
  return a / b - static_cast<int64_t>(a % b != 0 && (a < 0) != (b < 0));
}

int64_t power(int64_t base, int64_t exponent) {
  if (base >= -1 && base <= 1 && exponent > 2) {  // nothing overflows, and would end the loop
    exponent = 2 - exponent % 2;
  }
  int64_t result = 1;
  for (; exponent > 0; --exponent) {
    if (__builtin_mul_overflow(result, base, &result)) {
      raise_overflow();
    }
  }
  return result;
}

Number integer_of(double value) {
  if (!(std::fabs(value) < 0x1p63)) {
    raise_overflow();
  }
  return {true, static_cast<int64_t>(value), 0};
}

Number combine(Expression::Function function, const Number& a, const Number& b) {
  using Function = Expression::Function;
  const bool is_int = a.is_int && b.is_int;
  Number result;
  result.is_int = is_int;
  switch (function) {
    case Function::kAdd:
      result.real = a.as_double() + b.as_double();
      if (is_int && __builtin_add_overflow(a.integer, b.integer, &result.integer)) {
        raise_overflow();
      }
      return result;
    case Function::kMul:
      result.real = a.as_double() * b.as_double();
      if (is_int && __builtin_mul_overflow(a.integer, b.integer, &result.integer)) {
        raise_overflow();
      }
      return result;
    case Function::kMax:
      return a.as_double() < b.as_double() ? b : a;
    case Function::kMin:
      return b.as_double() < a.as_double() ? b : a;
    case Function::kFloorDiv:
    case Function::kMod:
      if (!is_int) {
        result.real = std::floor(a.as_double() / b.as_double());
        result.real =
            function == Function::kMod ? a.as_double() - result.real * b.as_double() : result.real;
        return result;
      }
      result.integer = floor_divide(a.integer, b.integer);
      if (function == Function::kMod) {
        result.integer = b.integer == -1 ? 0 : a.integer - result.integer * b.integer;
      }
      return result;
    case Function::kPow:
      if (is_int && b.integer >= 0) {
        result.integer = power(a.integer, b.integer);
        return result;
      }
      return {false, 0, std::pow(a.as_double(), b.as_double())};
    default:  // kTrueDiv
      return {false, 0, a.as_double() / b.as_double()};
  }
}

}  // namespace

int64_t as_int(const Number& number) {
  if (!number.is_int) {
    raise(Status::kShape,
          {"AtenProgram: expected an int, got the float ", std::to_string(number.real)});
  }
  return number.integer;
}

bool Expression::is_constant() const {
  return function != Function::kSymbol &&
         std::all_of(arguments.begin(), arguments.end(),
                     [](const Expression& each) { return each.is_constant(); });
}

bool Expression::is_known(const std::vector<int64_t>& symbols) const {
  return (function != Function::kSymbol || symbols[static_cast<std::size_t>(symbol)] >= 0) &&
         std::all_of(arguments.begin(), arguments.end(),
                     [&](const Expression& each) { return each.is_known(symbols); });
}

Number Expression::evaluate(const std::vector<int64_t>& symbols) const {
  switch (function) {
    case Function::kNumber:
      return number;
    case Function::kSymbol:
      return {true, symbols[static_cast<std::size_t>(symbol)], 0};
    case Function::kToFloat:
      return {false, 0, arguments[0].evaluate(symbols).as_double()};
    case Function::kSqrt:
      return {false, 0, std::sqrt(arguments[0].evaluate(symbols).as_double())};
    case Function::kFloor:
      return integer_of(std::floor(arguments[0].evaluate(symbols).as_double()));
    case Function::kCeil:
      return integer_of(std::ceil(arguments[0].evaluate(symbols).as_double()));
    default: {
      Number result = arguments[0].evaluate(symbols);
      for (std::size_t i = 1; i < arguments.size(); ++i) {
        result = combine(function, result, arguments[i].evaluate(symbols));
      }
      return result;
    }
  }
}

bool Guard::holds(const std::vector<int64_t>& symbols) const {
  const Number a = left.evaluate(symbols);
  const Number b = right.evaluate(symbols);
  const bool is_int = a.is_int && b.is_int;
  const bool is_less = is_int ? a.integer < b.integer : a.as_double() < b.as_double();
  const bool is_greater = is_int ? a.integer > b.integer : a.as_double() > b.as_double();
  switch (relation) {
    case Relation::kEqual:
      return !is_less && !is_greater;
    case Relation::kNotEqual:
      return is_less || is_greater;
    case Relation::kAtMost:
      return !is_greater;
    case Relation::kAtLeast:
      return !is_less;
    case Relation::kLess:
      return is_less;
    default:
      return is_greater;
  }
}

}  // namespace aten_bridge::operators

#pragma GCC visibility pop

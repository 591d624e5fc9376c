// The text of a program: a PyTorch module's operators, one in a line, in order.
//
//   aten_bridge program 1
//   symbol s0 1 4096
//   guard mod(s0, 2) == 0
//   input %weight float32 [3, 32]
//   input %x float32 [s0, 32]
//   seed %key int64
//   %t = aten::t(%weight)
//   %y = aten::mm(%x, %t)
//   %values, _ = aten::max.dim(%y, 1, False)
//   %positive = aten::gt.Scalar(%values, 0)
//   %any = aten::any(%positive)
//   when %any, %exp = aten::exp(%y)
//   unless %any, %neg = aten::neg(%y)
//   %z = choose(%any, %exp, %neg)
//   (%a, %b) = aten::split.Tensor(%y, floordiv(s0, 2), 0)
//   output %a float32 [floordiv(s0, 2), 3]
//
// Arguments are values by their names, numbers, expressions of symbols, lists, True, False, None,
// texts in JSON's quotes, and words for dtypes, layouts and memory formats; those by keyword come
// last, others keep their defaults. Values in parentheses are the elements of a list. A seed is
// an input of any sizes, which random numbers follow from; without one they are those of PyTorch's
// generator. Guards are conditions on sizes, for which alone the lines are right. Sizes that depend
// on values are symbols that lines after a call take from its results, as "size u0 %kept 0" does.
// A call behind conditions runs if all of them hold, and "choose" is one of two values, of which
// the other need not have been computed. aten_bridge/program/_text.py writes it.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_OPERATORS_PROGRAM_TEXT_H_
#define ATEN_BRIDGE_OPERATORS_PROGRAM_TEXT_H_

#include "program_expression.h"

#include <aten_bridge.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#pragma GCC visibility push(hidden)

namespace aten_bridge::operators {

/// An argument as it is written.
struct Literal {
  enum class Kind : std::uint8_t { kNone, kBool, kNumber, kComplex, kText, kWord, kValue, kList };

  Kind kind = Kind::kNone;
  bool flag = false;
  Expression number;
  double real = 0;  // a complex number has both parts
  double imaginary = 0;
  std::string text;  // the text or the word itself, or a value's name
  std::vector<Literal> elements;
};

/// Sizes and dtype of an input or an output.
struct Form {
  std::string value;
  DType dtype = DType::kNone;
  bool is_seed = false;  // sizes may be any
  std::vector<Expression> sizes;
};

struct Symbol {
  std::string name;
  int64_t least = 0;
  int64_t most = 0;
  bool is_measured = false;  // a size of a result, which the call tells
};

/// A size of a result, of which a symbol is the name.
struct MeasuredSize {
  int symbol = 0;
  std::string value;
  int64_t dim = 0;
};

/// Whether a call runs: where a value is True, or where it is not.
struct Condition {
  std::string value;
  bool holds = true;
};

/// One line, and those after it that take sizes from its results.
struct Call {
  int line = 0;
  std::vector<Condition> conditions;  // the outer ones first
  std::vector<std::string> results;   // "" for one that nobody reads
  bool unpacks = false;               // a list, whose elements they are
  std::string operator_name;          // "aten::max.dim"
  std::vector<Literal> arguments;
  std::vector<std::pair<std::string, Literal>> keywords;
  std::vector<MeasuredSize> sizes;

  /// One of the last two arguments, by the first.
  bool chooses() const { return operator_name == "choose"; }

  /// "_ = ...": it is made for the error that it may raise.
  bool checks() const { return !unpacks && results.size() == 1 && results[0].empty(); }
};

struct ProgramText {
  std::vector<Symbol> symbols;
  std::vector<Guard> guards;
  std::vector<Form> inputs;
  std::vector<Call> calls;
  std::vector<Form> outputs;
};

/// Throws an error that says what is wrong in a line.
[[noreturn]] inline void raise_in_line(int line, const std::string& text) {
  detail::raise(Status::kAttribute, {"AtenProgram: line ", line, " of the program: ", text});
}

}  // namespace aten_bridge::operators

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_OPERATORS_PROGRAM_TEXT_H_

// A line of a program's text, and what may stand in it: values, sizes, numbers, arguments.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_OPERATORS_PROGRAM_LINE_H_
#define ATEN_BRIDGE_OPERATORS_PROGRAM_LINE_H_

#include "program_text.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#pragma GCC visibility push(hidden)

namespace aten_bridge::operators {

/// Reads one line.
class LineReader {
 public:
  LineReader(std::string_view text, int line, const std::vector<Symbol>& symbols)
      : rest_(text), line_(line), symbols_(symbols) {}

  int line() const { return line_; }
  bool at_end();

  [[noreturn]] void fail(const char* expected);

  bool take(std::string_view token);
  void expect(const char* token);

  std::string word(const char* expected);
  std::string value_name();

  void conditions(Call& call);

  /// Those before the '='; none where there is no '='.
  void results(Call& call);

  void arguments(Call& call);

  /// The rest of a line "size u0 %kept 0".
  MeasuredSize size();

  Form seed();
  Form form();
  Guard guard();

  /// An int, or `limit` for "-".
  int64_t bound(int64_t limit);

 private:
  Form value_of_dtype();
  void skip_blanks();
  bool take_keyword(std::string& name);

  /// As Python writes a float, whatever the process's locale is.
  static bool take_real(const std::string& text, double& number);

  double real();
  std::optional<Number> take_number();
  Expression expression(int depth);
  bool starts_expression() const;
  Literal literal(int depth);

  /// With \" and \\ as the only escapes.
  std::string quoted();

  std::string_view rest_;
  int line_;
  const std::vector<Symbol>& symbols_;
};

}  // namespace aten_bridge::operators

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_OPERATORS_PROGRAM_LINE_H_

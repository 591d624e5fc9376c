// Reads one line of a program's text.
//
// SPDX-License-Identifier: Apache-2.0

#include "program_line.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <locale>
#include <sstream>
#include <utility>

#pragma GCC visibility push(hidden)

namespace aten_bridge::operators {

namespace {

using detail::join;

constexpr int kMostDepth = 64;
constexpr const char* kNoLimit = "-";

struct FunctionName {
  std::string_view name;
  Expression::Function function;
  std::size_t least;  // arguments
  std::size_t most;
};
constexpr std::size_t kAny = std::numeric_limits<std::size_t>::max();
constexpr FunctionName kFunctions[] = {
    {"add", Expression::Function::kAdd, 1, kAny},
    {"mul", Expression::Function::kMul, 1, kAny},
    {"floordiv", Expression::Function::kFloorDiv, 2, 2},
    {"mod", Expression::Function::kMod, 2, 2},
    {"max", Expression::Function::kMax, 1, kAny},
    {"min", Expression::Function::kMin, 1, kAny},
    {"pow", Expression::Function::kPow, 2, 2},
    {"truediv", Expression::Function::kTrueDiv, 2, 2},
    {"float", Expression::Function::kToFloat, 1, 1},
    {"floor", Expression::Function::kFloor, 1, 1},
    {"ceil", Expression::Function::kCeil, 1, 1},
    {"sqrt", Expression::Function::kSqrt, 1, 1},
};

struct RelationName {
  std::string_view name;
  Guard::Relation relation;
};
constexpr RelationName kRelations[] = {
    // longer ones first
    {"==", Guard::Relation::kEqual},  {"!=", Guard::Relation::kNotEqual},
    {"<=", Guard::Relation::kAtMost}, {">=", Guard::Relation::kAtLeast},
    {"<", Guard::Relation::kLess},    {">", Guard::Relation::kGreater},
};

bool is_word_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == ':';
}

}  // namespace

bool LineReader::at_end() {
  skip_blanks();
  return rest_.empty();
}

void LineReader::fail(const char* expected) {
  skip_blanks();
  const std::string got = rest_.empty() ? "the end of the line" : join({"'", rest_, "'"});
  raise_in_line(line_, join({"expected ", expected, ", got ", got}));
}

bool LineReader::take(std::string_view token) {
  skip_blanks();
  if (rest_.substr(0, token.size()) != token) {
    return false;
  }
  rest_.remove_prefix(token.size());
  return true;
}

void LineReader::expect(const char* token) {
  if (!take(token)) {
    fail(join({"'", token, "'"}).c_str());
  }
}

std::string LineReader::word(const char* expected) {
  skip_blanks();
  const auto* const end = std::find_if_not(rest_.begin(), rest_.end(), is_word_character);
  const auto size = static_cast<std::size_t>(end - rest_.begin());
  if (size == 0) {
    fail(expected);
  }
  std::string word(rest_.substr(0, size));
  rest_.remove_prefix(size);
  return word;
}

std::string LineReader::value_name() {
  expect("%");
  return word("the name of a value");
}

void LineReader::conditions(Call& call) {
  for (;;) {
    const bool holds = take("when ");
    if (!holds && !take("unless ")) {
      return;
    }
    call.conditions.push_back({value_name(), holds});
    expect(",");
  }
}

void LineReader::results(Call& call) {
  call.unpacks = take("(");
  do {
    if (take("_")) {
      call.results.emplace_back();
    } else {
      call.results.push_back(value_name());
    }
  } while (take(","));
  if (call.unpacks) {
    expect(")");
  }
  expect("=");
}

void LineReader::arguments(Call& call) {
  expect("(");
  if (take(")")) {
    return;
  }
  do {
    std::string name;
    if (take_keyword(name)) {
      call.keywords.emplace_back(std::move(name), literal(0));
    } else if (call.keywords.empty()) {
      call.arguments.push_back(literal(0));
    } else {
      fail("an argument by keyword");
    }
  } while (take(","));
  expect(")");
}

MeasuredSize LineReader::size() {
  MeasuredSize size;
  const std::string name = word("the name of a symbol");
  const auto symbol = std::find_if(symbols_.begin(), symbols_.end(),
                                   [&](const Symbol& each) { return each.name == name; });
  if (symbol == symbols_.end() || symbol->is_measured) {
    raise_in_line(line_,
                  join({"expected a symbol that no line before has a size for, got '", name, "'"}));
  }
  size.symbol = static_cast<int>(symbol - symbols_.begin());
  size.value = value_name();
  const std::optional<Number> dim = take_number();
  if (!dim.has_value() || !dim->is_int || dim->integer < 0 || dim->integer >= detail::kMaxNdim) {
    raise_in_line(line_, "expected the number of a dimension after the value");
  }
  size.dim = dim->integer;
  return size;
}

Form LineReader::seed() {
  Form seed = value_of_dtype();
  seed.is_seed = true;
  if (!at::isIntegralType(scalar_type(seed.dtype), /*includeBool=*/false)) {
    raise_in_line(line_, join({"expected a seed of integers, got ", dtype_name(seed.dtype)}));
  }
  return seed;
}

Form LineReader::form() {
  Form form = value_of_dtype();
  expect("[");
  if (!take("]")) {
    do {
      form.sizes.push_back(expression(0));
    } while (take(","));
    expect("]");
  }
  if (form.sizes.size() > static_cast<std::size_t>(detail::kMaxNdim)) {
    raise_in_line(line_,
                  join({"expected at most ", detail::kMaxNdim, " sizes, got ", form.sizes.size()}));
  }
  return form;
}

Guard LineReader::guard() {
  Guard guard;
  guard.text = rest_;
  guard.left = expression(0);
  const auto* const relation =
      std::find_if(std::begin(kRelations), std::end(kRelations),
                   [&](const RelationName& each) { return take(each.name); });
  if (relation == std::end(kRelations)) {
    fail("a relation such as ==");
  }
  guard.relation = relation->relation;
  guard.right = expression(0);
  return guard;
}

int64_t LineReader::bound(int64_t limit) {
  skip_blanks();
  const std::string_view word = rest_.substr(0, rest_.find(' '));
  if (word == kNoLimit) {
    rest_.remove_prefix(word.size());
    return limit;
  }
  const std::optional<Number> number = take_number();
  if (!number.has_value() || !number->is_int) {
    fail("an int, or - where there is no limit");
  }
  return number->integer;
}

Form LineReader::value_of_dtype() {
  Form form;
  form.value = value_name();
  const std::string dtype = word("a dtype");
  if (!find_dtype(dtype, form.dtype)) {
    raise_in_line(line_, join({"expected a dtype, got '", dtype, "'"}));
  }
  return form;
}

void LineReader::skip_blanks() {
  rest_.remove_prefix(std::min(rest_.find_first_not_of(' '), rest_.size()));
}

bool LineReader::take_keyword(std::string& name) {
  skip_blanks();
  const auto* const end = std::find_if_not(rest_.begin(), rest_.end(), is_word_character);
  if (end == rest_.begin() || end == rest_.end() || *end != '=') {
    return false;
  }
  name.assign(rest_.begin(), end);
  rest_.remove_prefix(name.size() + 1);
  return true;
}

bool LineReader::take_real(const std::string& text, double& number) {
  if (text == "inf" || text == "-inf" || text == "nan") {
    number = std::strtod(text.c_str(), nullptr);
    return true;
  }
  std::istringstream stream(text);
  stream.imbue(std::locale::classic());
  return (stream >> number) && stream.peek() == std::istringstream::traits_type::eof();
}

double LineReader::real() {
  if (const std::optional<Number> number = take_number()) {
    return number->as_double();
  }
  const std::string_view rest = rest_;
  double number = 0;
  if (!take_real(word("a number"), number)) {
    rest_ = rest;
    fail("a number");
  }
  return number;
}

std::optional<Number> LineReader::take_number() {
  skip_blanks();
  const auto* const end = std::find_if_not(rest_.begin(), rest_.end(), [](char c) {
    return is_word_character(c) || c == '-' || c == '+';
  });
  const std::string text(rest_.begin(), end);
  if (text.empty() || (text[0] != '-' && std::isdigit(static_cast<unsigned char>(text[0])) == 0)) {
    return std::nullopt;
  }
  Number number;
  char* stop = nullptr;
  errno = 0;
  number.integer = std::strtoll(text.c_str(), &stop, 10);
  if (*stop != '\0' || errno != 0) {
    number.is_int = false;
    if (!take_real(text, number.real)) {
      return std::nullopt;
    }
  }
  rest_.remove_prefix(text.size());
  return number;
}

Expression LineReader::expression(int depth) {
  if (depth > kMostDepth) {
    raise_in_line(line_, "expected an expression less deep");
  }
  Expression found;
  if (const std::optional<Number> number = take_number()) {
    found.number = *number;
    return found;
  }
  const std::string name = word("a number, a symbol or a function of such");
  const auto symbol = std::find_if(symbols_.begin(), symbols_.end(),
                                   [&](const Symbol& each) { return each.name == name; });
  if (symbol != symbols_.end()) {
    found.function = Expression::Function::kSymbol;
    found.symbol = static_cast<int>(symbol - symbols_.begin());
    return found;
  }
  const auto* const function =
      std::find_if(std::begin(kFunctions), std::end(kFunctions),
                   [&](const FunctionName& each) { return each.name == name; });
  if (function == std::end(kFunctions)) {
    raise_in_line(line_, join({"expected a symbol or a function, got '", name, "'"}));
  }
  found.function = function->function;
  expect("(");
  do {
    found.arguments.push_back(expression(depth + 1));
  } while (take(","));
  expect(")");
  if (found.arguments.size() < function->least || found.arguments.size() > function->most) {
    raise_in_line(line_, join({name, ": expected ", function->least, " arguments, got ",
                               found.arguments.size()}));
  }
  return found;
}

bool LineReader::starts_expression() const {
  const char c = rest_.front();
  if (c == '-' || std::isdigit(static_cast<unsigned char>(c)) != 0) {
    return true;
  }
  const auto* const end = std::find_if_not(rest_.begin(), rest_.end(), is_word_character);
  const std::string_view name = rest_.substr(0, static_cast<std::size_t>(end - rest_.begin()));
  return (end != rest_.end() && *end == '(') ||
         std::any_of(symbols_.begin(), symbols_.end(),
                     [&](const Symbol& symbol) { return symbol.name == name; });
}

Literal LineReader::literal(int depth) {
  skip_blanks();
  Literal found;
  if (depth > kMostDepth || rest_.empty()) {
    fail("an argument");
  }
  if (rest_.front() == '%') {
    found.kind = Literal::Kind::kValue;
    found.text = value_name();
  } else if (rest_.front() == '"') {
    found.kind = Literal::Kind::kText;
    found.text = quoted();
  } else if (take("[")) {
    found.kind = Literal::Kind::kList;
    if (!take("]")) {
      do {
        found.elements.push_back(literal(depth + 1));
      } while (take(","));
      expect("]");
    }
  } else if (take("complex(")) {
    found.kind = Literal::Kind::kComplex;
    found.real = real();
    expect(",");
    found.imaginary = real();
    expect(")");
  } else if (starts_expression()) {
    found.kind = Literal::Kind::kNumber;
    found.number = expression(depth);
  } else {
    found.text = word("an argument");
    found.kind = found.text == "None"                            ? Literal::Kind::kNone
                 : found.text == "True" || found.text == "False" ? Literal::Kind::kBool
                                                                 : Literal::Kind::kWord;
    found.flag = found.text == "True";
    if (found.text == "inf" || found.text == "nan") {
      found.kind = Literal::Kind::kNumber;
      found.number.number.is_int = !take_real(found.text, found.number.number.real);
    }
  }
  return found;
}

std::string LineReader::quoted() {
  std::string text;
  for (std::size_t i = 1; i < rest_.size(); ++i) {
    if (rest_[i] == '"') {
      rest_.remove_prefix(i + 1);
      return text;
    }
    const bool is_escaped = rest_[i] == '\\' && i + 1 < rest_.size();
    i += is_escaped ? 1 : 0;
    text += is_escaped && rest_[i] == 'n' ? '\n' : rest_[i];
  }
  fail("a text that ends with a quote");
}

}  // namespace aten_bridge::operators

#pragma GCC visibility pop

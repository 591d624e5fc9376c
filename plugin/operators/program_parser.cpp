// Reads the text of a program, line by line.
//
// SPDX-License-Identifier: Apache-2.0

#include "program_parser.h"

#include "program_line.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#pragma GCC visibility push(hidden)

namespace aten_bridge::operators {

namespace {

using detail::raise;

constexpr const char* kHeader = "aten_bridge program ";
constexpr const char* kVersion = "1";

}  // namespace

ProgramText parse_program(std::string_view text) {
  ProgramText program;
  int number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    LineReader line(text.substr(0, end), ++number, program.symbols);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (number == 1) {
      if (!line.take(kHeader) || !line.take(kVersion) || !line.at_end()) {
        raise(Status::kAttribute,
              {"AtenProgram: expected a program of version ", kVersion, ", which begins with '",
               kHeader, kVersion, "', got another; export the module with this aten_bridge"});
      }
      continue;
    }
    if (line.at_end()) {
      continue;
    }
    if (line.take("symbol ")) {
      Symbol symbol;
      symbol.name = line.word("the name of a symbol");
      symbol.least = line.bound(std::numeric_limits<int64_t>::min());
      symbol.most = line.bound(std::numeric_limits<int64_t>::max());
      program.symbols.push_back(std::move(symbol));
    } else if (line.take("guard ")) {
      program.guards.push_back(line.guard());
    } else if (line.take("input ")) {
      program.inputs.push_back(line.form());
    } else if (line.take("seed ")) {
      program.inputs.push_back(line.seed());
    } else if (line.take("output ")) {
      program.outputs.push_back(line.form());
    } else if (!program.calls.empty() && line.take("size ")) {
      program.calls.back().sizes.push_back(line.size());
      const int symbol = program.calls.back().sizes.back().symbol;
      program.symbols[static_cast<std::size_t>(symbol)].is_measured = true;
    } else {
      Call call;
      call.line = number;
      line.conditions(call);
      line.results(call);
      call.operator_name = line.word("the name of an operator");
      line.arguments(call);
      program.calls.push_back(std::move(call));
    }
    if (!line.at_end()) {
      line.fail("the end of the line");
    }
  }
  if (number == 0) {
    raise(Status::kAttribute, {"AtenProgram: expected a program, got an empty text"});
  }
  if (program.outputs.empty()) {
    raise(Status::kAttribute, {"AtenProgram: expected a program with outputs, got none"});
  }
  return program;
}

}  // namespace aten_bridge::operators

#pragma GCC visibility pop

// Reads the text of a program.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_OPERATORS_PROGRAM_PARSER_H_
#define ATEN_BRIDGE_OPERATORS_PROGRAM_PARSER_H_

#include "program_text.h"

#include <string_view>

#pragma GCC visibility push(hidden)

namespace aten_bridge::operators {

/// Throws `Error` with the line.
ProgramText parse_program(std::string_view text);

}  // namespace aten_bridge::operators

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_OPERATORS_PROGRAM_PARSER_H_

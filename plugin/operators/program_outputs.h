// Leaves of a program's text the outputs that are wanted, and what they need.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_OPERATORS_PROGRAM_OUTPUTS_H_
#define ATEN_BRIDGE_OPERATORS_PROGRAM_OUTPUTS_H_

#include "program_text.h"

#include <cstddef>
#include <vector>

#pragma GCC visibility push(hidden)

namespace aten_bridge::operators {

/// Leaves the outputs that are wanted, and the calls that they need. A program with seeds has all
/// its random numbers: each that is drawn decides which come next.
void keep_wanted(ProgramText& program, const std::vector<std::size_t>& wanted);

}  // namespace aten_bridge::operators

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_OPERATORS_PROGRAM_OUTPUTS_H_

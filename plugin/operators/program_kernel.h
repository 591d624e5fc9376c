// Programs as kernels of the hosts': each by its key.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_OPERATORS_PROGRAM_KERNEL_H_
#define ATEN_BRIDGE_OPERATORS_PROGRAM_KERNEL_H_

#include "operator_text.h"

#include <aten_bridge/interface/kernel_base.h>

#pragma GCC visibility push(hidden)

namespace aten_bridge::operators {

/// By what name a text asks for a program, whose key is an attribute.
inline constexpr const char* kProgramName = "aten_bridge::program";

/// The program that is asked for; null where the attributes are those of an operator. Throws
/// `Error` where nobody has added it.
const detail::KernelBase* find_program(const TextAttributes& attributes);

}  // namespace aten_bridge::operators

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_OPERATORS_PROGRAM_KERNEL_H_

// The kernel that a text means: made once, found again.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_OPERATORS_KERNEL_CACHE_H_
#define ATEN_BRIDGE_OPERATORS_KERNEL_CACHE_H_

#include "overload.h"

#include <string>

#pragma GCC visibility push(hidden)

namespace aten_bridge::operators {

/// The kernel that such an attribute means; it lives for ever. Throws `Error` if there is none.
const KernelBase& find_kernel(const std::string& text);

/// The same for so many inputs, where the last tensors of the schema may be left out.
const KernelBase& find_kernel(const std::string& text, int inputs);

/// The kernel of a host's operator for so many inputs and outputs, usually that of its last call.
const KernelBase& find_kernel(OperatorInstance& instance, int operands);

}  // namespace aten_bridge::operators

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_OPERATORS_KERNEL_CACHE_H_

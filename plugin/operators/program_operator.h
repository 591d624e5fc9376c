// The operator that a line of a program calls, and the types of its arguments.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_OPERATORS_PROGRAM_OPERATOR_H_
#define ATEN_BRIDGE_OPERATORS_PROGRAM_OPERATOR_H_

#include "program_text.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/jit_type.h>

#pragma GCC visibility push(hidden)

namespace aten_bridge::operators {

/// Throws an error with the line if the dispatcher has none of this name.
c10::OperatorHandle find_operator(const Call& call);

/// An element's type, of a list or an optional; null of others.
c10::TypePtr element_of(const c10::TypePtr& type);

bool is_tensor(const c10::TypePtr& type);

bool is_list_of_tensors(const c10::TypePtr& type);

}  // namespace aten_bridge::operators

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_OPERATORS_PROGRAM_OPERATOR_H_

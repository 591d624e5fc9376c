// The operator that a line of a program calls, and the types of its arguments.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_OPERATORS_PROGRAM_OPERATOR_H_
#define ATEN_BRIDGE_OPERATORS_PROGRAM_OPERATOR_H_

#include "operator_schema.h"
#include "program_text.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/jit_type.h>

#pragma GCC visibility push(hidden)

namespace aten_bridge::operators {

/// Throws an error with the line if the dispatcher has none of this name.
inline c10::OperatorHandle find_operator(const Call& call) {
  const auto handle = find_overload(call.operator_name);
  if (!handle.has_value()) {
    raise_in_line(
        call.line,
        detail::join({"expected an operator of PyTorch's dispatcher, got ", call.operator_name,
                      ", which is not there; import or load its library, or export "
                      "the module with this PyTorch"}));
  }
  return *handle;
}

/// An element's type, of a list or an optional; null of others.
inline c10::TypePtr element_of(const c10::TypePtr& type) {
  if (const auto list = type->cast<c10::ListType>()) {
    return list->getElementType();
  }
  const auto optional = type->cast<c10::OptionalType>();
  return optional ? optional->getElementType() : nullptr;
}

inline bool is_tensor(const c10::TypePtr& type) {
  return type->kind() == c10::TypeKind::TensorType;
}

inline bool is_list_of_tensors(const c10::TypePtr& type) {
  return type->kind() == c10::TypeKind::ListType && is_tensor(element_of(type));
}

}  // namespace aten_bridge::operators

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_OPERATORS_PROGRAM_OPERATOR_H_

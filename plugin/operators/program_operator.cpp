// Finds the operator that a line of a program calls, and tells types of arguments apart.
//
// SPDX-License-Identifier: Apache-2.0

#include "program_operator.h"

#include "operator_schema.h"

#pragma GCC visibility push(hidden)

namespace aten_bridge::operators {

namespace {

using detail::join;

}  // namespace

c10::OperatorHandle find_operator(const Call& call) {
  const auto handle = find_overload(call.operator_name);
  if (!handle.has_value()) {
    raise_in_line(call.line,
                  join({"expected an operator of PyTorch's dispatcher, got ", call.operator_name,
                        ", which is not there; import or load its library, or export "
                        "the module with this PyTorch"}));
  }
  return *handle;
}

c10::TypePtr element_of(const c10::TypePtr& type) {
  if (const auto list = type->cast<c10::ListType>()) {
    return list->getElementType();
  }
  const auto optional = type->cast<c10::OptionalType>();
  return optional ? optional->getElementType() : nullptr;
}

bool is_tensor(const c10::TypePtr& type) { return type->kind() == c10::TypeKind::TensorType; }

bool is_list_of_tensors(const c10::TypePtr& type) {
  return type->kind() == c10::TypeKind::ListType && is_tensor(element_of(type));
}

}  // namespace aten_bridge::operators

#pragma GCC visibility pop

// The sizes of a program's inputs: what its symbols are in a call, and whether guards allow them.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_OPERATORS_PROGRAM_SIZES_H_
#define ATEN_BRIDGE_OPERATORS_PROGRAM_SIZES_H_

#include "program_text.h"

#include <ATen/core/Tensor.h>
#include <aten_bridge.h>

#include <cstdint>
#include <string>
#include <vector>

#pragma GCC visibility push(hidden)

namespace aten_bridge::operators {

/// What the symbols are for inputs of these sizes; -1 for those that calls tell. Throws `Error` if
/// the inputs are not of the program's sizes and dtypes.
std::vector<int64_t> bind_sizes(at::TensorList inputs, const std::vector<Form>& forms,
                                const std::vector<Symbol>& bounds,
                                const std::vector<Guard>& guards);

/// Adds to the report that a symbol is out of its bounds.
void check_range(const Symbol& bounds, int64_t size, Report& report);

/// Throws `Error` if a guard whose sizes are known does not hold.
void check_guards(const std::vector<Guard>& guards, const std::vector<Symbol>& symbols,
                  const std::vector<int64_t>& values);

/// Whether a tensor has the dtype of the form, and its sizes as far as they are known.
bool fits(const at::Tensor& tensor, const Form& form, const std::vector<int64_t>& symbols);

/// "float32 [8, any]".
[[gnu::cold]] std::string form_text(const Form& form, const std::vector<int64_t>& symbols);

}  // namespace aten_bridge::operators

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_OPERATORS_PROGRAM_SIZES_H_

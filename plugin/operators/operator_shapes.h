// The shapes of an operator's results: PyTorch's meta functions tell them, or small values do.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_OPERATORS_OPERATOR_SHAPES_H_
#define ATEN_BRIDGE_OPERATORS_OPERATOR_SHAPES_H_

#include "overload.h"

#pragma GCC visibility push(hidden)

namespace aten_bridge::operators {

/// The results of a call with meta tensors, as meta tensors or as others of the same sizes and
/// dtypes. Throws `Error` where the sizes depend on values, or where a result is not dense.
Tensors infer_results(const Operator& op, const Arguments& metas);

}  // namespace aten_bridge::operators

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_OPERATORS_OPERATOR_SHAPES_H_

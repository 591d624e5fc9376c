// Results of which nobody knows the sizes before they are computed.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_OPERATORS_COMPUTED_RESULTS_H_
#define ATEN_BRIDGE_OPERATORS_COMPUTED_RESULTS_H_

#include <aten_bridge/interface/kernel_base.h>

#include <cstdint>

#pragma GCC visibility push(hidden)

namespace aten_bridge::operators {

/// Gives the host a row [dtype, rank, sizes...] of int64 for each of the results, and leaves the
/// results where aten_bridge_operator_set_results() says. Throws `Error` for a dtype that hosts do
/// not have.
void tell_sizes(const detail::Arguments& arguments, at::TensorList results);

/// These rows as a meta tensor.
at::Tensor table_of_sizes(int64_t results);

}  // namespace aten_bridge::operators

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_OPERATORS_COMPUTED_RESULTS_H_

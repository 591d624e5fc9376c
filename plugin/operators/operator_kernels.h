// Kernels of an operator of PyTorch's.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_OPERATORS_OPERATOR_KERNELS_H_
#define ATEN_BRIDGE_OPERATORS_OPERATOR_KERNELS_H_

#include "overload.h"

#include <memory>
#include <string>

#pragma GCC visibility push(hidden)

namespace aten_bridge::operators {

/// All kernels of an operator. Never destroyed: hosts keep what points to them.
class OperatorKernels {
 public:
  virtual ~OperatorKernels() = default;

  /// The kernel of a task; null for anything else.
  ///
  /// Tasks: "0" the operator; "1/n", "2/n" ... its gradient for n inputs, that of the gradient and
  /// so on, which are gradient kernels as ATEN_BRIDGE_EXPORT_GRAD has them; "sizes" and "padded"
  /// the operator in another form (call/result_form.h).
  virtual const KernelBase* find(const std::string& task) = 0;
};

std::unique_ptr<OperatorKernels> make_kernels(const c10::OperatorHandle& handle,
                                              const TextAttributes& attributes, int inputs);

}  // namespace aten_bridge::operators

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_OPERATORS_OPERATOR_KERNELS_H_

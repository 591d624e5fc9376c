// Gradients by PyTorch's autograd: what does not depend on the kernel's type.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_INTERFACE_GRADIENT_BASE_H_
#define ATEN_BRIDGE_INTERFACE_GRADIENT_BASE_H_

#include <aten_bridge/interface/kernel_base.h>

#include <vector>

#pragma GCC visibility push(hidden)

namespace aten_bridge::detail {

/// The gradient of a kernel that returns its results, by PyTorch's autograd. Inputs: those of the
/// kernel, then one gradient for each of its outputs, where None is a gradient of zeros. Outputs:
/// one gradient for each input that is a tensor or may be one; of integers, bools and None it is
/// zeros.
class GradientBase : public KernelBase {
 public:
  ATEN_BRIDGE_INLINE void invoke(const Arguments& arguments) const final;

  /// The same as tensors that can be differentiated again.
  ATEN_BRIDGE_INLINE std::vector<at::Tensor> results(const Arguments& arguments) const;

  ATEN_BRIDGE_INLINE Tensors infer(const Arguments& arguments) const final;

 protected:
  constexpr GradientBase(const KernelDescriptor& kernel_info, int forward_inputs, bool of_function)
      : KernelBase(kernel_info), forward_inputs_(forward_inputs), of_function_(of_function) {}
  ~GradientBase() = default;

  /// What the forward kernel returns.
  virtual std::vector<at::Tensor> forward(const Arguments& arguments) const = 0;

 private:
  ATEN_BRIDGE_INLINE std::vector<at::Tensor> differentiate(const Arguments& arguments,
                                                           const std::vector<int>& inputs,
                                                           bool differentiable) const;

  int forward_inputs_;  // parameters
  bool of_function_;    // not of a gradient
};

}  // namespace aten_bridge::detail

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_INTERFACE_GRADIENT_BASE_H_

// A step of Adam and AdamW, for mint's optimizers.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_OPERATORS_ADAM_H_
#define ATEN_BRIDGE_OPERATORS_ADAM_H_

#include <ATen/core/Tensor.h>
#include <ATen/ops/addcdiv.h>
#include <ATen/ops/addcmul.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/sqrt.h>

#include <cmath>

namespace aten_bridge::operators {

struct AdamSettings {
  double steps;  // done before
  double rate, beta1, beta2;
  double decay;           // AdamW's, of the weight
  double gradient_decay;  // Adam's, which is added to the gradient
  double eps;
  bool amsgrad, maximize;
};

/// A step of torch.optim.AdamW or Adam on a weight, in place and to the last bit. `largest` is used
/// with amsgrad alone.
inline void take_step(const at::Tensor& weight, const at::Tensor& average,
                      const at::Tensor& squares, const at::Tensor& largest,
                      const at::Tensor& gradient, const AdamSettings& settings) {
  const auto& [steps, rate, beta1, beta2, decay, gradient_decay, eps, amsgrad, maximize] = settings;
  at::Tensor g = maximize ? gradient.neg() : gradient;
  if (gradient_decay != 0) {
    g = g.add(weight, gradient_decay);
  }
  if (decay != 0) {
    weight.mul_(1 - rate * decay);
  }
  average.lerp_(g, 1 - beta1);
  squares.mul_(beta2).addcmul_(g, g, 1 - beta2);
  if (amsgrad) {
    largest.copy_(at::maximum(largest, squares));
  }
  const double correction = std::sqrt(1 - std::pow(beta2, steps + 1));
  const at::Tensor divisor = (amsgrad ? largest : squares).sqrt().div_(correction).add_(eps);
  weight.addcdiv_(average, divisor, -rate / (1 - std::pow(beta1, steps + 1)));
}

}  // namespace aten_bridge::operators

#endif  // ATEN_BRIDGE_OPERATORS_ADAM_H_

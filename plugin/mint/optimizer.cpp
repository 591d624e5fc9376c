// What mint.optim needs beside the other operators.
#include <ATen/ops/addcdiv.h>
#include <ATen/ops/addcmul.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/sqrt.h>

#include <cmath>

#include "mint.h"

using namespace mint;  // NOLINT(google-build-using-namespace)

// A step of torch.optim.AdamW on a weight, in place. `steps` were done before; without amsgrad,
// `largest` is the squares. MindSpore asks for the results elsewhere, too.
ATEN_BRIDGE_EXPORT(AdamW, [](const Tensor& weight, const Tensor& average, const Tensor& squares,
                             const Tensor& largest, const Tensor& gradient, double steps,
                             double rate, double beta1, double beta2, double decay, double eps,
                             bool amsgrad, bool maximize, Tensor& new_weight, Tensor& new_average,
                             Tensor& new_squares) {
  const Tensor g = maximize ? gradient.neg() : gradient;
  weight.mul_(1 - rate * decay);
  average.lerp_(g, 1 - beta1);
  squares.mul_(beta2).addcmul_(g, g, 1 - beta2);
  if (amsgrad) {
    largest.copy_(at::maximum(largest, squares));
  }
  const double correction = std::sqrt(1 - std::pow(beta2, steps + 1));
  const Tensor divisor = (amsgrad ? largest : squares).sqrt().div_(correction).add_(eps);
  weight.addcdiv_(average, divisor, -rate / (1 - std::pow(beta1, steps + 1)));
  new_weight.copy_(weight);
  new_average.copy_(average);
  new_squares.copy_(squares);
});

// What mint.optim needs beside the other operators.
#include "../operators/adam.h"
#include "mint.h"

using namespace mint;  // NOLINT(google-build-using-namespace)

// Without amsgrad, `largest` is the squares. MindSpore asks for the results elsewhere, too.
ATEN_BRIDGE_EXPORT(AdamW, [](const Tensor& weight, const Tensor& average, const Tensor& squares,
                             const Tensor& largest, const Tensor& gradient, double steps,
                             double rate, double beta1, double beta2, double decay, double eps,
                             bool amsgrad, bool maximize, Tensor& new_weight, Tensor& new_average,
                             Tensor& new_squares) {
  aten_bridge::operators::take_step(
      weight, average, squares, largest, gradient,
      {steps, rate, beta1, beta2, decay, /*gradient_decay=*/0, eps, amsgrad, maximize});
  new_weight.copy_(weight);
  new_average.copy_(average);
  new_squares.copy_(squares);
});

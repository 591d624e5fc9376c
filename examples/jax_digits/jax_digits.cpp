// The layers of a network, its loss, and a step of training: each an operator of ATen's.
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/sub.h>
#include <aten_bridge.h>

#include <optional>

using at::Tensor;
using aten_bridge::attr;
using aten_bridge::meta;

// [kernels]
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  return at::linear(x, weight, bias);
}
ATEN_BRIDGE_EXPORT(Linear, linear, meta());
ATEN_BRIDGE_EXPORT_GRAD(LinearGrad, linear, meta());

Tensor leaky_relu(const Tensor& x, double slope) { return at::leaky_relu(x, slope); }
ATEN_BRIDGE_EXPORT(LeakyRelu, leaky_relu, attr("negative_slope", 0.01), meta());
ATEN_BRIDGE_EXPORT_GRAD(LeakyReluGrad, leaky_relu, attr("negative_slope", 0.01), meta());

// JAX's labels are int32, PyTorch's int64.
Tensor cross_entropy(const Tensor& scores, const Tensor& labels) {
  return at::cross_entropy_loss(scores, labels.to(at::kLong));
}
ATEN_BRIDGE_EXPORT(CrossEntropy, cross_entropy, meta());
ATEN_BRIDGE_EXPORT_GRAD(CrossEntropyGrad, cross_entropy, meta());

// Writes its output, which may lie in the memory of the weight.
void descend(const Tensor& weight, const Tensor& gradient, double rate, Tensor& next) {
  at::sub_out(next, weight, gradient, rate);
}
ATEN_BRIDGE_EXPORT(Descend, descend, attr("rate"), meta());
// [/kernels]

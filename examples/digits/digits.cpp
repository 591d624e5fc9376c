// The layers of a network and its loss: each an operator of ATen's, exported with its gradient.
#include <ATen/ops/conv2d.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/max_pool2d.h>
#include <aten_bridge.h>

using at::Tensor;
using aten_bridge::attr;
using aten_bridge::meta;

// [kernels]
Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias, at::IntArrayRef padding) {
  return at::conv2d(x, weight, bias, /*stride=*/1, padding);
}
ATEN_BRIDGE_EXPORT(Conv2d, conv2d, attr("padding", {0, 0}), meta());
ATEN_BRIDGE_EXPORT_GRAD(Conv2dGrad, conv2d, attr("padding", {0, 0}), meta());

Tensor leaky_relu(const Tensor& x, double slope) { return at::leaky_relu(x, slope); }
ATEN_BRIDGE_EXPORT(LeakyRelu, leaky_relu, attr("negative_slope", 0.01), meta());
ATEN_BRIDGE_EXPORT_GRAD(LeakyReluGrad, leaky_relu, attr("negative_slope", 0.01), meta());

Tensor max_pool2d(const Tensor& x, int64_t kernel_size) { return at::max_pool2d(x, kernel_size); }
ATEN_BRIDGE_EXPORT(MaxPool2d, max_pool2d, attr("kernel_size"), meta());
ATEN_BRIDGE_EXPORT_GRAD(MaxPool2dGrad, max_pool2d, attr("kernel_size"), meta());

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  return at::linear(x, weight, bias);
}
ATEN_BRIDGE_EXPORT(Linear, linear, meta());
ATEN_BRIDGE_EXPORT_GRAD(LinearGrad, linear, meta());

// MindSpore's labels are int32, PyTorch's int64.
Tensor cross_entropy(const Tensor& scores, const Tensor& labels, double label_smoothing) {
  return at::cross_entropy_loss(scores, labels.to(at::kLong), /*weight=*/std::nullopt,
                                at::Reduction::Mean, /*ignore_index=*/-100, label_smoothing);
}
ATEN_BRIDGE_EXPORT(CrossEntropy, cross_entropy, attr("label_smoothing", 0.0), meta());
ATEN_BRIDGE_EXPORT_GRAD(CrossEntropyGrad, cross_entropy, attr("label_smoothing", 0.0), meta());
// [/kernels]

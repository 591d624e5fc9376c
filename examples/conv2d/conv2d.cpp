// Attributes: numbers and lists that are fixed where the operator is made.
#include <ATen/ops/conv2d.h>
#include <aten_bridge.h>

using aten_bridge::attr;
using aten_bridge::input;

at::Tensor conv2d(const at::Tensor& x, const at::Tensor& weight,
                  const std::optional<at::Tensor>& bias, at::IntArrayRef stride,
                  at::IntArrayRef padding, at::IntArrayRef dilation, int64_t groups) {
  return at::conv2d(x, weight, bias, stride, padding, dilation, groups);
}
// [export]
ATEN_BRIDGE_EXPORT(Conv2d, conv2d, attr("stride", {1, 1}), attr("padding", {0, 0}),
                   attr("dilation", {1, 1}), attr("groups", 1), aten_bridge::meta(),
                   input("x").dtype(aten_bridge::kFloatingPoint).sizes("N", "C", "H", "W"),
                   input("weight").sizes("O", "I", "KH", "KW"), input("bias").sizes("O"));
// [/export]

// Attributes, lists of inputs, several outputs, and shapes that are known when the network runs.
#include <ATen/ops/cat.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/topk.h>
#include <ATen/ops/upsample_bilinear2d.h>
#include <aten_bridge.h>

using aten_bridge::attr;
using aten_bridge::input;

// [attributes]
// Numbers and lists that are fixed where the operator is made.
at::Tensor conv2d(const at::Tensor& x, const at::Tensor& weight,
                  const std::optional<at::Tensor>& bias, at::IntArrayRef stride,
                  at::IntArrayRef padding, at::IntArrayRef dilation, int64_t groups) {
  return at::conv2d(x, weight, bias, stride, padding, dilation, groups);
}
ATEN_BRIDGE_EXPORT(Conv2d, conv2d, attr("stride", {1, 1}), attr("padding", {0, 0}),
                   attr("dilation", {1, 1}), attr("groups", 1), aten_bridge::meta(),
                   input("x").dtype(aten_bridge::kFloatingPoint).sizes("N", "C", "H", "W"),
                   input("weight").sizes("O", "I", "KH", "KW"), input("bias").sizes("O"));
// [/attributes]

// [list]
at::Tensor cat(at::TensorList tensors, int64_t dim) { return at::cat(tensors, dim); }
ATEN_BRIDGE_EXPORT(Cat, cat, attr("dim", 0), aten_bridge::meta());
// [/list]

// [outputs]
ATEN_BRIDGE_EXPORT(Topk, at::topk, attr("k"), attr("dim", -1), attr("largest", true),
                   attr("sorted", true), aten_bridge::meta());
// [/outputs]

// [shapes]
at::Tensor upsample(const at::Tensor& x, double scale, bool align_corners) {
  const double scales[] = {scale, scale};
  return at::upsample_bilinear2d(x, /*output_size=*/std::nullopt, align_corners, scales);
}
ATEN_BRIDGE_EXPORT(Upsample, upsample, attr("scale"), attr("align_corners", false),
                   aten_bridge::meta(), input("x").sizes("N", "C", "H", "W"));
// [/shapes]

// Typed kernels on CUDA, from C++ sources: what the CPU's tests have, on the GPU.
#include <ATen/ops/add.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/topk.h>
#include <aten_bridge.h>

namespace {

using aten_bridge::attr;
using Vector = std::vector<int64_t>;

void leaky_relu(const at::Tensor& x, double slope, at::Tensor& y) {
  at::leaky_relu_out(y, x, slope);
}
ATEN_BRIDGE_EXPORT(LeakyRelu, leaky_relu, attr("negative_slope", 0.01), aten_bridge::meta(),
                   aten_bridge::input("x").dtype(aten_bridge::kFloatingPoint));

// The slope is an input.
void leaky_relu_by(const at::Tensor& x, const at::Scalar& slope, at::Tensor& y) {
  at::leaky_relu_out(y, x, slope);
}
ATEN_BRIDGE_EXPORT(LeakyReluBy, leaky_relu_by);

at::Tensor silu(const at::Tensor& x) { return at::silu(x); }
ATEN_BRIDGE_EXPORT(Silu, silu, aten_bridge::meta());
ATEN_BRIDGE_EXPORT_GRAD(SiluGrad, silu);
ATEN_BRIDGE_EXPORT_GRAD(SiluGradGrad, aten_bridge::gradient(silu));

at::Tensor conv2d(const at::Tensor& x, const at::Tensor& weight,
                  const std::optional<at::Tensor>& bias, const Vector& padding) {
  return at::conv2d(x, weight, bias, /*stride=*/1, padding);
}
ATEN_BRIDGE_EXPORT(Conv2d, conv2d, attr("padding", {0, 0}), aten_bridge::meta());
ATEN_BRIDGE_EXPORT_GRAD(Conv2dGrad, conv2d, attr("padding", {0, 0}));

std::tuple<at::Tensor, at::Tensor> topk(const at::Tensor& x, int64_t k) { return at::topk(x, k); }
ATEN_BRIDGE_EXPORT(TopK, topk, attr("k"), aten_bridge::meta());

at::Tensor cat(at::TensorList tensors, int64_t dim) { return at::cat(tensors, dim); }
ATEN_BRIDGE_EXPORT(Cat, cat, attr("dim", 0), aten_bridge::meta());
ATEN_BRIDGE_EXPORT_GRAD(CatGrad, cat, attr("dim", 0));

at::Tensor layer_norm(const at::Tensor& x, const std::optional<at::Tensor>& weight) {
  return at::layer_norm(x, {x.size(-1)}, weight);
}
ATEN_BRIDGE_EXPORT(LayerNorm, layer_norm);

at::Tensor embedding(const at::Tensor& weight, const at::Tensor& indices) {
  return at::embedding(weight, indices);
}
ATEN_BRIDGE_EXPORT_GRAD(EmbeddingGrad, embedding);

// A table on the device, made in the first call.
struct Table {
  explicit Table(int64_t size)
      : values(at::arange(size, at::TensorOptions(at::kCUDA).dtype(at::kFloat))) {}
  at::Tensor operator()(const at::Tensor& x) const { return at::add(x, values); }
  at::Tensor values;
};
ATEN_BRIDGE_EXPORT(AddTable, aten_bridge::state<Table(int64_t)>(), attr("size"));

}  // namespace

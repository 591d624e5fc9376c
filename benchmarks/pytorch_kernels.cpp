// LeakyRelu for PyTorch and JAX by the bridge, in the ways that a kernel can be written, with the
// same gradient as by hand.
#include <ATen/ops/empty_like.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/leaky_relu_backward.h>
#include <aten_bridge.h>

namespace {

using at::Tensor;
using aten_bridge::attr;
using aten_bridge::meta;

Tensor result(const Tensor& x, double slope) { return at::leaky_relu(x, slope); }
void output(const Tensor& x, double slope, Tensor& y) { at::leaky_relu_out(y, x, slope); }
Tensor gradient(const Tensor& x, const Tensor& dy, double slope) {
  return at::leaky_relu_backward(dy, x, slope, /*self_is_result=*/false);
}
Tensor like(const Tensor& x) { return at::empty_like(x); }

#define EXPORT(Name, function, ...)                                              \
  ATEN_BRIDGE_EXPORT(Name, function, attr("negative_slope", 0.01), __VA_ARGS__); \
  ATEN_BRIDGE_EXPORT(Name##Grad, gradient, attr("negative_slope", 0.01), meta(like))

EXPORT(Result, result, meta());
EXPORT(Output, output, meta());
EXPORT(Sized, output, meta(like));
ATEN_BRIDGE_EXPORT(ByAutograd, result, attr("negative_slope", 0.01), meta());
ATEN_BRIDGE_EXPORT_GRAD(ByAutogradGrad, result, attr("negative_slope", 0.01));
ATEN_BRIDGE_EXPORT(Composite, result, attr("negative_slope", 0.01), aten_bridge::composite());

}  // namespace

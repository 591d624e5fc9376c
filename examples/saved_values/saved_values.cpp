// A gradient written by hand, which uses what the forward kernel computed on its way.
#include <ATen/ops/native_layer_norm.h>
#include <ATen/ops/native_layer_norm_backward.h>
#include <aten_bridge.h>

#include <tuple>

using at::Tensor;
using Three = std::tuple<Tensor, Tensor, Tensor>;

// [kernels]
// The mean and the reciprocal standard deviation of each row are outputs too.
Three normalize(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps) {
  return at::native_layer_norm(x, {x.size(-1)}, weight, bias, eps);
}

// Gets them back, so that it need not call normalize once more.
Three normalize_gradient(const Tensor& x, const Tensor& weight, const Tensor& bias,
                         const Tensor& mean, const Tensor& rstd, const Tensor& dy) {
  return at::native_layer_norm_backward(dy, x, {x.size(-1)}, mean, rstd, weight, bias,
                                        /*output_mask=*/{true, true, true});
}
// [/kernels]

Three normalize_meta(const Tensor& x) {
  std::vector<int64_t> sizes = x.sizes().vec();
  sizes.back() = 1;
  return {x, x.new_empty(sizes), x.new_empty(sizes)};
}

ATEN_BRIDGE_EXPORT(Normalize, normalize, aten_bridge::attr("eps", 1e-5),
                   aten_bridge::meta(normalize_meta),
                   aten_bridge::input("x").dtype(at::kFloat).sizes("...", "C"),
                   aten_bridge::input("weight").sizes("C"), aten_bridge::input("bias").sizes("C"));

// [gradient]
// The gradients are like the first three inputs; the others need not be named.
Three normalize_gradient_meta(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  return {x, weight, bias};
}
ATEN_BRIDGE_EXPORT(NormalizeGrad, normalize_gradient, aten_bridge::meta(normalize_gradient_meta));
// [/gradient]

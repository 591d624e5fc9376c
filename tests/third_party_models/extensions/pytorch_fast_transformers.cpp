// pytorch-fast-transformers 0.4.0: kernels that make tensors in OpenMP's threads.
#include "fast_transformers/causal_product/causal_product_cpu.cpp"

#include <aten_bridge.h>

#include <tuple>

using at::Tensor;

// Queries and keys of [batch, heads, length, dim], values of [batch, heads, length, other dim].
static void causal_product(const Tensor& queries, const Tensor& keys, const Tensor& values,
                           Tensor& product) {
  causal_dot_product(queries, keys, values, product);
}
static Tensor like_values(const Tensor&, const Tensor&, const Tensor& values) {
  return at::empty_like(values);
}
ATEN_BRIDGE_EXPORT(CausalProduct, causal_product, aten_bridge::meta(like_values));

static std::tuple<Tensor, Tensor, Tensor> causal_product_grad(const Tensor& queries,
                                                              const Tensor& keys,
                                                              const Tensor& values,
                                                              const Tensor& gradient) {
  Tensor of_queries = at::zeros_like(queries);
  Tensor of_keys = at::zeros_like(keys);
  Tensor of_values = at::zeros_like(values);
  causal_dot_backward(queries, keys, values, gradient, of_queries, of_keys, of_values);
  return {of_queries, of_keys, of_values};
}
ATEN_BRIDGE_EXPORT(CausalProductGrad, causal_product_grad);

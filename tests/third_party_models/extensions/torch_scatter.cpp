// torch_scatter 2.1.2: a kernel whose second result is optional, with the gradient that the package
// writes in Python.
#include "csrc/cpu/scatter_cpu.h"

#include <aten_bridge.h>

#include <optional>
#include <tuple>

using Tensors = std::tuple<at::Tensor, at::Tensor>;

static Tensors scatter_max(const at::Tensor& src, const at::Tensor& index, int64_t dim,
                           int64_t dim_size) {
  const auto [values, places] = scatter_cpu(src, index, dim, std::nullopt, dim_size, "max");
  return {values, *places};
}
static Tensors scatter_max_meta(const at::Tensor& src, const at::Tensor& index, int64_t dim,
                                int64_t dim_size) {
  auto sizes = src.sizes().vec();
  sizes[static_cast<std::size_t>(dim)] = dim_size;
  return {at::empty(sizes, src.options()), at::empty(sizes, index.options())};
}
ATEN_BRIDGE_EXPORT(ScatterMax, scatter_max, aten_bridge::attr("dim"), aten_bridge::attr("dim_size"),
                   aten_bridge::meta(scatter_max_meta));

// Where nothing was scattered to, a place is one past the end.
static Tensors scatter_max_grad(const at::Tensor& src, const at::Tensor& index,
                                const at::Tensor& gradient, const std::optional<at::Tensor>&,
                                int64_t dim, int64_t dim_size) {
  const at::Tensor places = std::get<1>(scatter_max(src, index, dim, dim_size));
  auto sizes = src.sizes().vec();
  ++sizes[static_cast<std::size_t>(dim)];
  const at::Tensor padded = at::zeros(sizes, src.options()).scatter_(dim, places, gradient);
  return {padded.narrow(dim, 0, src.size(dim)), at::zeros_like(index)};
}
ATEN_BRIDGE_EXPORT(ScatterMaxGrad, scatter_max_grad, aten_bridge::attr("dim"),
                   aten_bridge::attr("dim_size"));

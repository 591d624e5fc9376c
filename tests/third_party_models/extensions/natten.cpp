// natten 0.17.5: tuples of int32_t and of bool as parameters, inputs that may be None, sources that
// a program has written.
#include <aten_bridge.h>
#include <natten/pytorch/na2d.h>

#include <optional>
#include <tuple>

using at::Tensor;
using Optional = std::optional<Tensor>;
using Ints = std::tuple<int32_t, int32_t>;

static Ints twice(int64_t value) {
  return {static_cast<int32_t>(value), static_cast<int32_t>(value)};
}
static constexpr std::tuple<bool, bool> kSeesAll = {false, false};

// Queries and keys of [batch, heads, height, width, dim]: each query times the keys of its window.
static Tensor qk_meta(const Tensor& query, const Tensor& /*key*/, const Optional& /*bias*/,
                      int64_t kernel_size) {
  auto sizes = query.sizes().vec();
  sizes.back() = kernel_size * kernel_size;
  return at::empty(sizes, query.options());
}
static Tensor qk(const Tensor& query, const Tensor& key, const Optional& bias,
                 int64_t kernel_size) {
  Tensor attention = qk_meta(query, key, bias, kernel_size);
  natten::pytorch::na2d_qk_forward(attention, query, key, bias, twice(kernel_size), twice(1),
                                   kSeesAll);
  return attention;
}
ATEN_BRIDGE_EXPORT(NeighborhoodQk, qk, aten_bridge::attr("kernel_size"),
                   aten_bridge::meta(qk_meta));

static std::tuple<Tensor, Tensor, Tensor> qk_grad(const Tensor& query, const Tensor& key,
                                                  const Optional& bias, const Tensor& dy,
                                                  int64_t kernel_size) {
  Tensor of_query = at::zeros_like(query);
  Tensor of_key = at::zeros_like(key);
  Optional of_bias;
  if (bias) {
    of_bias = at::zeros_like(*bias);
  }
  natten::pytorch::na2d_qk_backward(of_query, of_key, of_bias, dy, query, key, twice(kernel_size),
                                    twice(1), kSeesAll);
  return {of_query, of_key, of_bias.value_or(at::empty({0}, query.options()))};
}
ATEN_BRIDGE_EXPORT(NeighborhoodQkGrad, qk_grad, aten_bridge::attr("kernel_size"));

// Those weights times the values of the window.
static Tensor av(const Tensor& attention, const Tensor& value, int64_t kernel_size) {
  Tensor out = at::zeros_like(value);
  natten::pytorch::na2d_av_forward(out, attention, value, twice(kernel_size), twice(1), kSeesAll);
  return out;
}
static Tensor av_meta(const Tensor& /*attention*/, const Tensor& value, int64_t /*kernel_size*/) {
  return at::empty_like(value);
}
ATEN_BRIDGE_EXPORT(NeighborhoodAv, av, aten_bridge::attr("kernel_size"),
                   aten_bridge::meta(av_meta));

static std::tuple<Tensor, Tensor> av_grad(const Tensor& attention, const Tensor& value,
                                          const Tensor& dy, int64_t kernel_size) {
  Tensor of_attention = at::zeros_like(attention);
  Tensor of_value = at::zeros_like(value);
  natten::pytorch::na2d_av_backward(of_attention, of_value, dy, attention, value,
                                    twice(kernel_size), twice(1), kSeesAll);
  return {of_attention, of_value};
}
ATEN_BRIDGE_EXPORT(NeighborhoodAvGrad, av_grad, aten_bridge::attr("kernel_size"));

// Kernels that take inputs as they lie in memory.
#include <ATen/TensorOperators.h>
#include <ATen/ops/clamp_min.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linalg_cholesky.h>
#include <ATen/ops/tensor.h>
#include <aten_bridge.h>

#include <cstdint>
#include <optional>
#include <tuple>
#include <vector>

// [row_sums]
// The sum of each row, of a matrix that may be transposed or a part of another one.
void row_sums(const at::Tensor& x, at::Tensor& y) {
  const auto elements = x.accessor<float, 2>();  // knows strides
  auto* sums = y.mutable_data_ptr<float>();      // outputs are row-major
  for (int64_t i = 0; i < elements.size(0); ++i) {
    sums[i] = 0;
    for (int64_t j = 0; j < elements.size(1); ++j) {
      sums[i] += elements[i][j];
    }
  }
}
at::Tensor row_sums_meta(const at::Tensor& x) { return x.new_empty({x.size(0)}); }
ATEN_BRIDGE_EXPORT(RowSums, row_sums, aten_bridge::strided(), aten_bridge::meta(row_sums_meta),
                   aten_bridge::input("x").dtype(at::kFloat).rank(2));
// [/row_sums]

// Where an input is, and its strides.
at::Tensor place(const at::Tensor& x) {
  std::vector<int64_t> numbers = {reinterpret_cast<int64_t>(x.const_data_ptr())};
  numbers.insert(numbers.end(), x.strides().begin(), x.strides().end());
  return at::tensor(numbers, at::kLong);
}
at::Tensor place_meta(const at::Tensor& x) {
  return at::empty({1 + x.dim()}, x.options().dtype(at::kLong));
}
ATEN_BRIDGE_EXPORT(Place, place, aten_bridge::strided(), aten_bridge::meta(place_meta));
ATEN_BRIDGE_EXPORT(PlaceOfRowMajor, place, aten_bridge::meta(place_meta));

// The same of an input that may be None, and of the last tensor of a list, around a number.
std::tuple<at::Tensor, at::Tensor> places(const std::optional<at::Tensor>& a, double /*number*/,
                                          at::TensorList list) {
  return {a.has_value() ? place(*a) : at::empty({0}, at::kLong), place(list.back())};
}
std::tuple<at::Tensor, at::Tensor> places_meta(const std::optional<at::Tensor>& a,
                                               double /*number*/, at::TensorList list) {
  const auto options = list.back().options().dtype(at::kLong);
  return {a.has_value() ? place_meta(*a) : at::empty({0}, options), place_meta(list.back())};
}
ATEN_BRIDGE_EXPORT(Places, places, aten_bridge::strided(), aten_bridge::meta(places_meta));

at::Tensor scaled(const at::Tensor& x, double factor) { return x * factor * x; }
ATEN_BRIDGE_EXPORT(Scaled, scaled, aten_bridge::strided(), aten_bridge::meta(),
                   aten_bridge::attr("factor", 2.0));
ATEN_BRIDGE_EXPORT_GRAD(ScaledGrad, scaled, aten_bridge::strided(),
                        aten_bridge::attr("factor", 2.0));
ATEN_BRIDGE_EXPORT_GRAD(ScaledGradGrad, aten_bridge::gradient(scaled), aten_bridge::strided(),
                        aten_bridge::attr("factor", 2.0));

// ATen gives an output that it resizes the strides of its input.
void positive(const at::Tensor& x, at::Tensor& y) { at::clamp_min_out(y, x, 0); }
ATEN_BRIDGE_EXPORT(Positive, positive, aten_bridge::strided(), aten_bridge::meta());

// ATen gives its output strides of column-major order, whatever the input's are.
void lower(const at::Tensor& x, at::Tensor& y) { at::linalg_cholesky_out(y, x, /*upper=*/false); }
ATEN_BRIDGE_EXPORT(Lower, lower, aten_bridge::strided(), aten_bridge::meta());

// Its input itself.
at::Tensor same(const at::Tensor& x) { return x; }
ATEN_BRIDGE_EXPORT(Same, same, aten_bridge::strided(), aten_bridge::meta());

at::Tensor above(const at::Tensor& x) { return x.masked_select(x.gt(0)); }
ATEN_BRIDGE_EXPORT(Above, above, aten_bridge::strided(), aten_bridge::data_dependent());

struct Placing {
  at::Tensor operator()(const at::Tensor& x) const { return place(x); }
};
ATEN_BRIDGE_EXPORT(PlaceByState, aten_bridge::state<Placing()>(), aten_bridge::strided(),
                   aten_bridge::meta(place_meta));

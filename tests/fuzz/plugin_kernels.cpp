// Kernels for the fuzzer: one for each thing that a kernel of a plugin can ask for.
#include <ATen/ops/add.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/neg.h>
#include <ATen/ops/nonzero.h>
#include <ATen/ops/sum.h>
#include <aten_bridge.h>

#include <optional>
#include <vector>

#include "print.h"

namespace {

using at::Tensor;

Tensor negate(const Tensor& x) { return at::neg(x); }
Tensor add(const Tensor& x, const Tensor& y, const at::Scalar& alpha) {
  return at::add(x, y, alpha);
}
void inplace_add(Tensor x, const Tensor& y) { x.add_(y); }
Tensor cat(at::TensorList xs, int64_t dim) { return at::cat(xs, dim); }
Tensor non_zero(const Tensor& x) { return at::nonzero(x); }
Tensor cast(const Tensor& x, at::ScalarType type) { return x.to(type); }
Tensor add_if_given(const Tensor& x, const std::optional<Tensor>& y) {
  return y ? at::add(x, *y) : x.clone();
}
Tensor sum(const Tensor& x, at::OptionalIntArrayRef dims, bool keeps) {
  return at::sum(x, dims, keeps, x.scalar_type());
}

void print_values(at::IntArrayRef ints, at::OptionalIntArrayRef maybe,
                  const std::vector<double>& reals, double real,
                  std::optional<at::ScalarType> dtype, Tensor& y) {
  fuzz::print(y, ints, maybe ? std::optional(maybe->vec()) : std::nullopt, reals, real, dtype);
}

}  // namespace

ATEN_BRIDGE_EXPORT(Negate, negate);
ATEN_BRIDGE_EXPORT(Add, add);
ATEN_BRIDGE_EXPORT(InplaceAdd, inplace_add);
ATEN_BRIDGE_EXPORT(Cat, cat);
ATEN_BRIDGE_EXPORT(NonZero, non_zero, aten_bridge::data_dependent());
ATEN_BRIDGE_EXPORT(Cast, cast);
ATEN_BRIDGE_EXPORT(AddIfGiven, add_if_given);
ATEN_BRIDGE_EXPORT(Sum, sum);
ATEN_BRIDGE_EXPORT(PrintValues, print_values);

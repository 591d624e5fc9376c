// Kernels as those of MindSpore's own operators, for the tests of that host's adapter.
#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/nonzero.h>
#include <aten_bridge.h>

#include <numeric>

namespace {

using at::Tensor;

void copy(const Tensor& x, Tensor& y) { y.copy_(x); }
ATEN_BRIDGE_EXPORT(Copy, copy);

// Whether the view is the host's memory, and how it lies there.
void describe(const Tensor& x, Tensor& y) {
  const auto address = reinterpret_cast<std::intptr_t>(x.storage().data());
  const int64_t values[] = {address, x.storage_offset(), x.stride(0), x.stride(1),
                            static_cast<int64_t>(x.storage().nbytes())};
  for (int64_t i = 0; i < 5; ++i) {
    y.select(0, i).fill_(values[i]);
  }
}
ATEN_BRIDGE_EXPORT(DescribeView, describe);

void negate(const Tensor& x) { x.neg_(); }
ATEN_BRIDGE_EXPORT(InplaceNegate, negate);

void add(const Tensor& x, const Tensor& other) { x.add_(other); }
ATEN_BRIDGE_EXPORT(InplaceAdd, add);

// y = the values, one after the other.
void values(at::IntArrayRef ints, at::OptionalIntArrayRef more, const std::vector<double>& reals,
            double real, std::optional<at::ScalarType> dtype, Tensor& y) {
  int64_t i = 0;
  const auto put = [&](double value) { y.select(0, i++).fill_(value); };
  for (const int64_t value : ints) {
    put(static_cast<double>(value));
  }
  for (const int64_t value : more.value_or(at::IntArrayRef())) {
    put(static_cast<double>(value));
  }
  for (const double value : reals) {
    put(value);
  }
  put(real);
  put(dtype.has_value() ? static_cast<double>(*dtype) : -1);
}
ATEN_BRIDGE_EXPORT(Values, values);

Tensor cat(at::TensorList tensors, int64_t dim) { return at::cat(tensors, dim); }
ATEN_BRIDGE_EXPORT(CatPlugin, cat);

Tensor nonzero(const Tensor& x) { return at::nonzero(x); }
ATEN_BRIDGE_EXPORT(NonZeroPlugin, nonzero, aten_bridge::data_dependent());

// As at::neg() of PyTorch 2.15, which refuses bools so.
Tensor negate_numbers(const Tensor& x) {
  TORCH_CHECK_NOT_IMPLEMENTED(x.scalar_type() != at::kBool, "Negation of bools is not supported");
  return x.neg();
}
ATEN_BRIDGE_EXPORT(NegateNumbers, negate_numbers);

// y = the sums of both.
void sums(at::IntArrayRef ints, at::ArrayRef<double> reals, Tensor& y) {
  y.select(0, 0).fill_(std::accumulate(ints.begin(), ints.end(), int64_t{0}));
  y.select(0, 1).fill_(std::accumulate(reals.begin(), reals.end(), 0.0));
}
ATEN_BRIDGE_EXPORT(Sums, sums);

}  // namespace

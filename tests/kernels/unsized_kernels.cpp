// Kernels whose results have sizes that depend on values.
#include <ATen/ops/cat.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros_like.h>
#include <aten_bridge.h>

#include <tuple>

// [positives]
at::Tensor positives(const at::Tensor& x) { return x.masked_select(x.gt(0)); }
ATEN_BRIDGE_EXPORT(Positives, positives, aten_bridge::data_dependent());
ATEN_BRIDGE_EXPORT_GRAD(PositivesGrad, positives, aten_bridge::data_dependent());
// [/positives]
ATEN_BRIDGE_EXPORT_GRAD(PositivesGradGrad, aten_bridge::gradient(positives),
                        aten_bridge::data_dependent());

// A second one of the same type.
at::Tensor negatives(const at::Tensor& x) { return x.masked_select(x.lt(0)); }
ATEN_BRIDGE_EXPORT(Negatives, negatives, aten_bridge::data_dependent());

std::tuple<at::Tensor, at::Tensor> above(const at::Tensor& x, double threshold) {
  const at::Tensor mask = x.gt(threshold);
  return {x.masked_select(mask), mask.nonzero()};
}
ATEN_BRIDGE_EXPORT(Above, above, aten_bridge::data_dependent(),
                   aten_bridge::attr("threshold", 0.0));

at::Tensor above_grad(const at::Tensor& x, const at::Tensor& values, const at::Tensor& /*places*/,
                      double threshold) {
  return at::zeros_like(x).masked_scatter(x.gt(threshold), values);
}
ATEN_BRIDGE_EXPORT(AboveGrad, above_grad, aten_bridge::attr("threshold", 0.0),
                   aten_bridge::meta([](const at::Tensor& x) { return at::empty_like(x); }));

// A part of its input's memory, of as many elements as the input's first one says.
at::Tensor first(const at::Tensor& x) { return x.narrow(0, 0, x[0].item<int64_t>()); }
ATEN_BRIDGE_EXPORT(First, first, aten_bridge::data_dependent(), aten_bridge::input("x").rank(1),
                   aten_bridge::output("begin").sizes(3));

// The rows of one element each: of another number of columns than x may have.
at::Tensor rows(const at::Tensor& x) { return positives(x).reshape({-1, 1}); }
ATEN_BRIDGE_EXPORT(Rows, rows, aten_bridge::data_dependent(),
                   aten_bridge::input("x").sizes("N", "C"),
                   aten_bridge::output("y").sizes(-1, "C"));

// Results in memory that ends with the call: the workspace's, and the input's.
std::tuple<at::Tensor, at::Tensor> lent(const at::Tensor& x, aten_bridge::Workspace<float> work) {
  const at::Tensor values = positives(x);
  at::Tensor copy = at::from_blob(work.begin(), values.sizes());
  return {copy.copy_(values), at::from_blob(x.data_ptr(), values.sizes())};
}
ATEN_BRIDGE_EXPORT(Lent, lent, aten_bridge::data_dependent(),
                   aten_bridge::workspace([](const at::Tensor& x) { return x.numel(); }));

// Its input itself, which may have no elements.
at::Tensor itself(const at::Tensor& x) { return x; }
ATEN_BRIDGE_EXPORT(Itself, itself, aten_bridge::data_dependent());

// What is no memory that a host could copy.
at::Tensor formless(const at::Tensor& x, bool is_sparse) {
  return is_sparse ? x.to_sparse() : at::empty_like(x, at::TensorOptions(at::kMeta));
}
ATEN_BRIDGE_EXPORT(Formless, formless, aten_bridge::data_dependent(),
                   aten_bridge::attr("is_sparse"));

// A tensor that it keeps, and changes in the next call.
class Sum {
 public:
  at::Tensor operator()(const at::Tensor& x) {
    sum_ = sum_.defined() ? sum_.add_(x) : x.clone();
    return sum_;
  }

 private:
  at::Tensor sum_;
};
ATEN_BRIDGE_EXPORT(SumOfCalls, aten_bridge::state<Sum()>(), aten_bridge::data_dependent());

// The second result is a part of the input's memory, which may be the first one's too.
std::tuple<at::Tensor, at::Tensor> with_rest(const at::Tensor& x) {
  return {positives(x), x.narrow(0, 1, x.size(0) - 1)};
}
ATEN_BRIDGE_EXPORT(WithRest, with_rest, aten_bridge::data_dependent());

at::Tensor positives_of_all(at::TensorList list, int64_t times) {
  return positives(at::cat(list)).repeat({times});
}
ATEN_BRIDGE_EXPORT(PositivesOfAll, positives_of_all, aten_bridge::data_dependent());

class Shifted {
 public:
  explicit Shifted(double shift) : shift_(shift) {}
  at::Tensor operator()(const at::Tensor& x) const { return positives(x.add(shift_)); }

 private:
  double shift_;
};
ATEN_BRIDGE_EXPORT(Shifted, aten_bridge::state<Shifted(double)>(), aten_bridge::attr("shift"),
                   aten_bridge::data_dependent());

// One element more in each call.
class Growing {
 public:
  at::Tensor operator()(const at::Tensor& x) { return x.narrow(0, 0, ++calls_); }

 private:
  int64_t calls_ = 0;
};
ATEN_BRIDGE_EXPORT(Growing, aten_bridge::state<Growing()>(), aten_bridge::data_dependent());

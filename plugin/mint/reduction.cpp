// Many elements to one.
#include <ATen/ops/all.h>
#include <ATen/ops/amax.h>
#include <ATen/ops/amin.h>
#include <ATen/ops/any.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/argmin.h>
#include <ATen/ops/count_nonzero.h>
#include <ATen/ops/cummax.h>
#include <ATen/ops/cummin.h>
#include <ATen/ops/cumprod.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/histc.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/max.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/median.h>
#include <ATen/ops/min.h>
#include <ATen/ops/nansum.h>
#include <ATen/ops/prod.h>
#include <ATen/ops/std.h>
#include <ATen/ops/std_mean.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/trace.h>
#include <ATen/ops/var.h>
#include <ATen/ops/var_mean.h>

#include <algorithm>

#include "mint.h"

using namespace mint;  // NOLINT(google-build-using-namespace)

namespace {

// MindSpore also says "all dimensions" by a list of none.
OptionalIntArrayRef some(OptionalIntArrayRef dim) {
  return dim.has_value() && !dim->empty() ? dim : OptionalIntArrayRef();
}

// One dimension after the other, the last first, by what reduces a single one.
template <Tensor (*one)(const Tensor& x, int64_t dim, bool keepdim)>
void reduce(const Tensor& x, OptionalIntArrayRef dim, bool keepdim, Tensor& y) {
  const auto is_reduced = [&](int64_t i) {
    const auto is_it = [&](int64_t d) { return (d < 0 ? d + x.dim() : d) == i; };
    return !some(dim).has_value() || std::any_of(dim->begin(), dim->end(), is_it);
  };
  Tensor result = x;
  for (int64_t i = x.dim() - 1; i >= 0; --i) {
    if (is_reduced(i)) {
      result = one(result, i, keepdim);
    }
  }
  y.copy_(result);
}

// `reverse`: from the last element; `exclusive`: without the element itself.
template <Tensor (*one)(const Tensor& x, int64_t dim, at::ScalarType dtype), int64_t of_none>
void cumulate(const Tensor& x, int64_t dim, bool exclusive, bool reverse, Tensor& y) {
  Tensor result = one(reverse ? x.flip(dim) : x, dim, y.scalar_type());
  if (exclusive && result.size(dim) > 0) {
    result = result.roll(1, dim);
    result.select(dim, 0).fill_(of_none);
  }
  y.copy_(reverse ? result.flip(dim) : result);
}

Tensor cumprod(const Tensor& x, int64_t dim, at::ScalarType dtype) {
  return at::cumprod(x, dim, dtype);
}
Tensor cumsum(const Tensor& x, int64_t dim, at::ScalarType dtype) {
  return at::cumsum(x, dim, dtype);
}
Tensor prod(const Tensor& x, int64_t dim, bool keepdim) { return at::prod(x, dim, keepdim); }

}  // namespace

ATEN_BRIDGE_EXPORT(ArgMaxExt, [](const Tensor& x, OptionalInt dim, bool keepdim, Tensor& y) {
  at::argmax_out(y, x, dim, keepdim);
});
ATEN_BRIDGE_EXPORT(ArgMinExt, [](const Tensor& x, OptionalInt dim, bool keepdim, Tensor& y) {
  at::argmin_out(y, x, dim, keepdim);
});
ATEN_BRIDGE_EXPORT(CountNonZero, [](const Tensor& x, OptionalIntArrayRef dim, Tensor& y) {
  y.copy_(dim.has_value() ? at::count_nonzero(x, *dim) : at::count_nonzero(x));
});
ATEN_BRIDGE_EXPORT(CumminExt, [](const Tensor& x, int64_t dim, Tensor& values, Tensor& indices) {
  at::cummin_out(values, indices, x, dim);
});
ATEN_BRIDGE_EXPORT(CumsumExt, [](const Tensor& x, int64_t dim, OptionalDtype, Tensor& y) {
  at::cumsum_out(y, x, dim, y.scalar_type());
});
ATEN_BRIDGE_EXPORT(LinalgVectorNorm,
                   [](const Tensor& x, const Scalar& order, OptionalIntArrayRef dim, bool keepdim,
                      OptionalDtype, Tensor& y) {
                     at::linalg_vector_norm_out(y, x, order, dim, keepdim, y.scalar_type());
                   });
// PyTorch 2.11 reduces all dimensions where there are none, but cannot write that to a tensor that
// it is given.
ATEN_BRIDGE_EXPORT(LogSumExp, [](const Tensor& x, IntArrayRef dim, bool keepdim, Tensor& y) {
  if (dim.empty()) {
    y.copy_(at::logsumexp(x.flatten(), 0).view(y.sizes()));
  } else {
    at::logsumexp_out(y, x, dim, keepdim);
  }
});
ATEN_BRIDGE_EXPORT(HistcExt, [](const Tensor& x, int64_t bins, const Scalar& min,
                                const Scalar& max) { return at::histc(x, bins, min, max); });
// MindSpore's own take no notice of NaN.
ATEN_BRIDGE_EXPORT(Max, [](const Tensor& x, Tensor& y) { y.copy_(at::max(x)); });
ATEN_BRIDGE_EXPORT(Min, [](const Tensor& x, Tensor& y) { y.copy_(at::min(x)); });
ATEN_BRIDGE_EXPORT(MaxDim, [](const Tensor& x, int64_t dim, bool keepdim, Tensor& values,
                              Tensor& indices) { at::max_out(values, indices, x, dim, keepdim); });
ATEN_BRIDGE_EXPORT(MinDim, [](const Tensor& x, int64_t dim, bool keepdim, Tensor& values,
                              Tensor& indices) { at::min_out(values, indices, x, dim, keepdim); });
ATEN_BRIDGE_EXPORT(ReduceMax,
                   [](const Tensor& x, OptionalIntArrayRef dim, bool keepdim, Tensor& y) {
                     at::amax_out(y, x, dim.value_or(IntArrayRef()), keepdim);
                   });
ATEN_BRIDGE_EXPORT(ReduceMin,
                   [](const Tensor& x, OptionalIntArrayRef dim, bool keepdim, Tensor& y) {
                     at::amin_out(y, x, dim.value_or(IntArrayRef()), keepdim);
                   });
ATEN_BRIDGE_EXPORT(MeanExt, [](const Tensor& x, OptionalIntArrayRef dim, bool keepdim,
                               OptionalDtype, Tensor& y) {
  if (at::isIntegralType(y.scalar_type(), /*includeBool=*/true)) {
    y.copy_(at::mean(x, dim, keepdim, at::kDouble));
  } else {
    at::mean_out(y, x, dim, keepdim, y.scalar_type());
  }
});
ATEN_BRIDGE_EXPORT(MedianExt, [](const Tensor& x, Tensor& y) { y.copy_(at::median(x)); });
ATEN_BRIDGE_EXPORT(MedianDim,
                   [](const Tensor& x, int64_t dim, bool keepdim, Tensor& values, Tensor& indices) {
                     at::median_out(values, indices, x, dim, keepdim);
                   });
ATEN_BRIDGE_EXPORT(Nansum, [](const Tensor& x, OptionalIntArrayRef dim, bool keepdim, OptionalDtype,
                              Tensor& y) { at::nansum_out(y, x, dim, keepdim, y.scalar_type()); });
ATEN_BRIDGE_EXPORT(Std,
                   [](const Tensor& x, OptionalIntArrayRef dim, const Scalar& correction,
                      bool keepdim, Tensor& y) { at::std_out(y, x, dim, correction, keepdim); });
ATEN_BRIDGE_EXPORT(StdMean, [](const Tensor& x, OptionalIntArrayRef dim, const Scalar& correction,
                               bool keepdim) { return at::std_mean(x, dim, correction, keepdim); });
ATEN_BRIDGE_EXPORT(TraceExt, [](const Tensor& x, Tensor& y) { y.copy_(at::trace(x)); });
ATEN_BRIDGE_EXPORT(Var,
                   [](const Tensor& x, OptionalIntArrayRef dim, const Scalar& correction,
                      bool keepdim, Tensor& y) { at::var_out(y, x, dim, correction, keepdim); });
ATEN_BRIDGE_EXPORT(VarMean, [](const Tensor& x, OptionalIntArrayRef dim, const Scalar& correction,
                               bool keepdim) { return at::var_mean(x, dim, correction, keepdim); });
ATEN_BRIDGE_EXPORT(Cummax, [](const Tensor& x, int64_t dim, Tensor& values, Tensor& indices) {
  at::cummax_out(values, indices, x, dim);
});
ATEN_BRIDGE_EXPORT(CumProd, cumulate<cumprod, 1>);
ATEN_BRIDGE_EXPORT(CumSum, cumulate<cumsum, 0>);
// Without dimensions, of all.
ATEN_BRIDGE_EXPORT(ReduceAll, reduce<at::all>);
ATEN_BRIDGE_EXPORT(ReduceAny, reduce<at::any>);
ATEN_BRIDGE_EXPORT(ReduceProd, reduce<prod>);
ATEN_BRIDGE_EXPORT(ReduceSum, [](const Tensor& x, OptionalIntArrayRef dim, bool keepdim, bool skip,
                                 Tensor& y) {
  if (skip && !some(dim).has_value()) {
    y.copy_(x);
  } else {
    at::sum_out(y, x, some(dim), keepdim, y.scalar_type());
  }
});

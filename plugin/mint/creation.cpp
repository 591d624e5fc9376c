// Tensors of given values.
#include <ATen/ops/arange.h>
#include <ATen/ops/diag.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/tril.h>

#include "mint.h"

using namespace mint;  // NOLINT(google-build-using-namespace)

ATEN_BRIDGE_EXPORT(Arange, [](const Scalar& start, const Scalar& end, const Scalar& step,
                              OptionalDtype, Tensor& y) { at::arange_out(y, start, end, step); });
ATEN_BRIDGE_EXPORT(Clone, [](const Tensor& x, Tensor& y) { y.copy_(x); });
ATEN_BRIDGE_EXPORT(DiagExt, at::diag_out);
ATEN_BRIDGE_EXPORT(FillScalar, [](IntArrayRef, const Scalar& value, OptionalDtype, Tensor& y) {
  y.fill_(value);
});
ATEN_BRIDGE_EXPORT(FullLike, [](const Tensor&, const Scalar& value, OptionalDtype, Tensor& y) {
  y.fill_(value);
});
ATEN_BRIDGE_EXPORT(LinSpaceExt,
                   [](const Scalar& start, const Scalar& end, int64_t steps, OptionalDtype,
                      Tensor& y) { at::linspace_out(y, start, end, steps); });
ATEN_BRIDGE_EXPORT(NewFull, [](const Tensor&, IntArrayRef, const Scalar& value, OptionalDtype,
                               Tensor& y) { y.fill_(value); });
ATEN_BRIDGE_EXPORT(OnesLikeExt, [](const Tensor&, OptionalDtype, Tensor& y) { y.fill_(1); });
ATEN_BRIDGE_EXPORT(TrilExt, at::tril_out);
ATEN_BRIDGE_EXPORT(ZerosLikeExt, [](const Tensor&, OptionalDtype, Tensor& y) { y.zero_(); });

// Tensors of given values.
#include <ATen/ops/arange.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/tril.h>
#include <ATen/ops/triu.h>

#include "mint.h"

using namespace mint;  // NOLINT(google-build-using-namespace)

ATEN_BRIDGE_EXPORT(Arange, [](const Scalar& start, const Scalar& end, const Scalar& step,
                              OptionalDtype, Tensor& y) { at::arange_out(y, start, end, step); });
ATEN_BRIDGE_EXPORT(Clone, [](const Tensor& x, Tensor& y) { y.copy_(x); });
ATEN_BRIDGE_EXPORT(DiagExt, [](const Tensor& x, int64_t diagonal, Tensor& y) {
  if (x.dim() == 1) {
    y.zero_();
    y.diagonal(diagonal).copy_(x);
  } else {
    y.copy_(x.diagonal(diagonal));
  }
});
ATEN_BRIDGE_EXPORT(FillScalar, [](OptionalIntArrayRef, const Scalar& value, OptionalDtype,
                                  Tensor& y) { y.fill_(value); });
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

//===--- what MindSpore has too ---===//

// A list, since some of MindSpore's routes leave out the dtype, which the output has.
ATEN_BRIDGE_EXPORT(Cast, [](TensorList inputs, Tensor& y) { y.copy_(inputs.front()); });
ATEN_BRIDGE_EXPORT(Contiguous, [](const Tensor& x, Tensor& y) { y.copy_(x); });
ATEN_BRIDGE_EXPORT(Eye, [](int64_t rows, int64_t columns, OptionalDtype, Tensor& y) {
  at::eye_out(y, rows, columns);
});
ATEN_BRIDGE_EXPORT(Ones, [](OptionalIntArrayRef, OptionalDtype, Tensor& y) { y.fill_(1); });
ATEN_BRIDGE_EXPORT(OnesLike, [](const Tensor&, Tensor& y) { y.fill_(1); });
ATEN_BRIDGE_EXPORT(Triu, at::triu_out);
ATEN_BRIDGE_EXPORT(Zeros, [](OptionalIntArrayRef, OptionalDtype, Tensor& y) { y.zero_(); });
ATEN_BRIDGE_EXPORT(ZerosLike, [](const Tensor&, Tensor& y) { y.zero_(); });

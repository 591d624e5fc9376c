// Two tensors, or a tensor and a number, element by element.
#include <ATen/ops/addcdiv.h>
#include <ATen/ops/addcmul.h>
#include <ATen/ops/atan2.h>
#include <ATen/ops/bitwise_and.h>
#include <ATen/ops/bitwise_or.h>
#include <ATen/ops/bitwise_xor.h>
#include <ATen/ops/cdist.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/floor_divide.h>
#include <ATen/ops/fmod.h>
#include <ATen/ops/logaddexp.h>
#include <ATen/ops/logaddexp2.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/xlogy.h>

#include "mint.h"

using namespace mint;  // NOLINT(google-build-using-namespace)

ATEN_BRIDGE_EXPORT(AddcdivExt, at::addcdiv_out);
ATEN_BRIDGE_EXPORT(AddcmulExt, at::addcmul_out);
ATEN_BRIDGE_EXPORT(Atan2Ext, at::atan2_out);
ATEN_BRIDGE_EXPORT(BitwiseAndScalar, [](const Tensor& x, const Scalar& other, Tensor& y) {
  at::bitwise_and_out(y, x, other);
});
ATEN_BRIDGE_EXPORT(BitwiseOrScalar, [](const Tensor& x, const Scalar& other, Tensor& y) {
  at::bitwise_or_out(y, x, other);
});
ATEN_BRIDGE_EXPORT(BitwiseOrTensor, [](const Tensor& x, const Tensor& other, Tensor& y) {
  at::bitwise_or_out(y, x, other);
});
ATEN_BRIDGE_EXPORT(BitwiseXorScalar, [](const Tensor& x, const Scalar& other, Tensor& y) {
  at::bitwise_xor_out(y, x, other);
});
ATEN_BRIDGE_EXPORT(BitwiseXorTensor, [](const Tensor& x, const Tensor& other, Tensor& y) {
  at::bitwise_xor_out(y, x, other);
});
ATEN_BRIDGE_EXPORT(Cdist, [](const Tensor& a, const Tensor& b, double p, Tensor& y) {
  y.copy_(at::cdist(a, b, p));
});
ATEN_BRIDGE_EXPORT(ClampScalar, [](const Tensor& x, const std::optional<Scalar>& min,
                                   const std::optional<Scalar>& max,
                                   Tensor& y) { at::clamp_out(y, x, min, max); });
ATEN_BRIDGE_EXPORT(ClampTensor, [](const Tensor& x, OptionalTensor min, OptionalTensor max,
                                   Tensor& y) { at::clamp_out(y, x, min, max); });
ATEN_BRIDGE_EXPORT(EqualExt, [](const Tensor& x, const Tensor& other, Tensor& y) {
  y.fill_(at::equal(x, other));
});
ATEN_BRIDGE_EXPORT(FloorDivScalar, [](const Tensor& x, const Scalar& other, Tensor& y) {
  y.copy_(at::floor_divide(x, other));
});
ATEN_BRIDGE_EXPORT(FmodTensor, [](const Tensor& x, const Tensor& other, Tensor& y) {
  at::fmod_out(y, x, other);
});
ATEN_BRIDGE_EXPORT(LogAddExp, at::logaddexp_out);
ATEN_BRIDGE_EXPORT(LogAddExp2, at::logaddexp2_out);
ATEN_BRIDGE_EXPORT(Maximum, at::maximum_out);
ATEN_BRIDGE_EXPORT(Minimum, at::minimum_out);
ATEN_BRIDGE_EXPORT(Xlogy, [](const Tensor& x, const Tensor& other, Tensor& y) {
  at::xlogy_out(y, x, other);
});

// Two tensors, or a tensor and a number, element by element.
#include <ATen/ops/_cdist_backward.h>
#include <ATen/ops/add.h>
#include <ATen/ops/addcdiv.h>
#include <ATen/ops/addcmul.h>
#include <ATen/ops/atan2.h>
#include <ATen/ops/bitwise_and.h>
#include <ATen/ops/bitwise_or.h>
#include <ATen/ops/bitwise_xor.h>
#include <ATen/ops/cdist.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/div.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/floor_divide.h>
#include <ATen/ops/fmod.h>
#include <ATen/ops/gcd.h>
#include <ATen/ops/ge.h>
#include <ATen/ops/gt.h>
#include <ATen/ops/isclose.h>
#include <ATen/ops/le.h>
#include <ATen/ops/lerp.h>
#include <ATen/ops/linalg_cross.h>
#include <ATen/ops/logaddexp.h>
#include <ATen/ops/logaddexp2.h>
#include <ATen/ops/logical_and.h>
#include <ATen/ops/logical_or.h>
#include <ATen/ops/logical_xor.h>
#include <ATen/ops/lt.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/polar.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/remainder.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/where.h>
#include <ATen/ops/xlogy.h>

#include "mint.h"

using namespace mint;  // NOLINT(google-build-using-namespace)

namespace {

using Binary = Tensor& (*)(Tensor& y, const Tensor& x, const Tensor& other);

// ATen's functions of the name take numbers too.
template <Binary out>
void binary(const Tensor& x, const Tensor& other, Tensor& y) {
  out(y, x, other);
}

std::vector<int64_t> sizes_of_channels(const Tensor& x, int64_t format) {
  constexpr int64_t kChannelsLast = 1;
  std::vector<int64_t> sizes(static_cast<std::size_t>(x.dim()), 1);
  const std::size_t dim = format == kChannelsLast ? sizes.size() - 1 : 1;
  sizes.at(dim) = x.size(static_cast<int64_t>(dim));
  return sizes;
}

}  // namespace

ATEN_BRIDGE_EXPORT(AddcdivExt, at::addcdiv_out);
ATEN_BRIDGE_EXPORT(AddcmulExt, at::addcmul_out);
ATEN_BRIDGE_EXPORT(Atan2Ext, at::atan2_out);
ATEN_BRIDGE_EXPORT(BitwiseAndScalar, [](const Tensor& x, const Scalar& other, Tensor& y) {
  at::bitwise_and_out(y, x, other);
});
ATEN_BRIDGE_EXPORT(BitwiseOrScalar, [](const Tensor& x, const Scalar& other, Tensor& y) {
  at::bitwise_or_out(y, x, other);
});
ATEN_BRIDGE_EXPORT(BitwiseOrTensor, binary<at::bitwise_or_out>);
ATEN_BRIDGE_EXPORT(BitwiseXorScalar, [](const Tensor& x, const Scalar& other, Tensor& y) {
  at::bitwise_xor_out(y, x, other);
});
ATEN_BRIDGE_EXPORT(BitwiseXorTensor, binary<at::bitwise_xor_out>);
ATEN_BRIDGE_EXPORT(Cdist, [](const Tensor& a, const Tensor& b, double p, Tensor& y) {
  y.copy_(at::cdist(a, b, p));
});
ATEN_BRIDGE_EXPORT(ClampScalar,
                   [](const Tensor& x, const Optional<Scalar>& min, const Optional<Scalar>& max,
                      Tensor& y) { at::clamp_out(y, x, min, max); });
ATEN_BRIDGE_EXPORT(ClampTensor, [](const Tensor& x, OptionalTensor min, OptionalTensor max,
                                   Tensor& y) { at::clamp_out(y, x, min, max); });
ATEN_BRIDGE_EXPORT(EqualExt, [](const Tensor& x, const Tensor& other, Tensor& y) {
  y.fill_(at::equal(x, other));
});
ATEN_BRIDGE_EXPORT(FloorDivScalar, [](const Tensor& x, const Scalar& other, Tensor& y) {
  y.copy_(at::floor_divide(x, other));
});
ATEN_BRIDGE_EXPORT(FmodScalar, [](const Tensor& x, const Scalar& other, Tensor& y) {
  at::fmod_out(y, x, other);
});
ATEN_BRIDGE_EXPORT(FmodTensor, binary<at::fmod_out>);
ATEN_BRIDGE_EXPORT(LogAddExp, at::logaddexp_out);
ATEN_BRIDGE_EXPORT(LogAddExp2, at::logaddexp2_out);
ATEN_BRIDGE_EXPORT(Maximum, at::maximum_out);
ATEN_BRIDGE_EXPORT(Minimum, at::minimum_out);
ATEN_BRIDGE_EXPORT(Xlogy, [](const Tensor& x, const Tensor& other, Tensor& y) {
  if (y.is_complex()) {  // PyTorch refuses it, MindSpore does not
    y.copy_(x.mul(other.log()).masked_fill_(x.eq(0), 0));
  } else {
    binary<at::xlogy_out>(x, other, y);
  }
});

// What MindSpore has too: its own read views as if they were whole tensors once a library of
// kernels is loaded, and lack bfloat16.
ATEN_BRIDGE_EXPORT(Add, [](const Tensor& x, const Tensor& other, Tensor& y) {
  at::add_out(y, x, other);
});
ATEN_BRIDGE_EXPORT(AddExt, [](const Tensor& x, const Tensor& other, const Scalar& alpha,
                              Tensor& y) { at::add_out(y, x, other, alpha); });
ATEN_BRIDGE_EXPORT(Sub, [](const Tensor& x, const Tensor& other, Tensor& y) {
  at::sub_out(y, x, other);
});
ATEN_BRIDGE_EXPORT(SubExt,
                   [](const Tensor& x, const Tensor& other, const Scalar& alpha, Tensor& y) {
                     if (y.scalar_type() == at::kBool) {  // PyTorch refuses it, MindSpore does not
                       at::logical_xor_out(y, x, other);
                     } else {
                       at::sub_out(y, x, other, alpha);
                     }
                   });
ATEN_BRIDGE_EXPORT(AddN, [](TensorList tensors, Tensor& y) {
  y.copy_(tensors.front());
  for (const Tensor& x : tensors.slice(1)) {
    y.add_(x);
  }
});
ATEN_BRIDGE_EXPORT(BitwiseAndTensor, binary<at::bitwise_and_out>);
ATEN_BRIDGE_EXPORT(Div, binary<at::div_out>);
ATEN_BRIDGE_EXPORT(Equal, binary<at::eq_out>);
ATEN_BRIDGE_EXPORT(FloorDiv, binary<at::floor_divide_out>);
ATEN_BRIDGE_EXPORT(FloorMod, binary<at::remainder_out>);
ATEN_BRIDGE_EXPORT(Gcd, at::gcd_out);
ATEN_BRIDGE_EXPORT(Greater, binary<at::gt_out>);
ATEN_BRIDGE_EXPORT(GreaterEqual, binary<at::ge_out>);
ATEN_BRIDGE_EXPORT(Less, binary<at::lt_out>);
ATEN_BRIDGE_EXPORT(LessEqual, binary<at::le_out>);
ATEN_BRIDGE_EXPORT(LogicalAnd, at::logical_and_out);
ATEN_BRIDGE_EXPORT(LogicalOr, at::logical_or_out);
ATEN_BRIDGE_EXPORT(LogicalXor, at::logical_xor_out);
ATEN_BRIDGE_EXPORT(Mul, binary<at::mul_out>);
ATEN_BRIDGE_EXPORT(NotEqual, binary<at::ne_out>);
ATEN_BRIDGE_EXPORT(RealDiv, [](const Tensor& x, const Tensor& other, Tensor& y) {
  y.copy_(at::div(x, other));  // for whole numbers, too
});
ATEN_BRIDGE_EXPORT(Pow, binary<at::pow_out>);

// For nn.Dense and nn.Conv2d: one value for each channel, which is the last dimension or the
// second.
ATEN_BRIDGE_EXPORT(BiasAdd, [](const Tensor& x, const Tensor& bias, int64_t format, Tensor& y) {
  at::add_out(y, x, bias.view(sizes_of_channels(x, format)));
});
ATEN_BRIDGE_EXPORT(BiasAddGrad, [](const Tensor& dy, int64_t format, Tensor& dbias) {
  dbias.copy_(dy.sum_to_size(sizes_of_channels(dy, format)).flatten());
});
ATEN_BRIDGE_EXPORT(CdistGrad, [](const Tensor& dy, const Tensor& a, const Tensor& b,
                                 const Tensor& distances, double p, Tensor& da) {
  da.copy_(at::_cdist_backward(dy.contiguous(), a, b, p, distances));
});
ATEN_BRIDGE_EXPORT(Cross, [](const Tensor& a, const Tensor& b, int64_t dim, Tensor& y) {
  constexpr int64_t kFirstOfThree = -65530;  // MindSpore's default
  for (int64_t i = 0; dim == kFirstOfThree; ++i) {
    dim = a.size(i) == 3 ? i : dim;
  }
  at::linalg_cross_out(y, a, b, dim);
});
ATEN_BRIDGE_EXPORT(IsClose,
                   [](const Tensor& a, const Tensor& b, double rtol, double atol, bool equal_nan,
                      Tensor& y) { y.copy_(at::isclose(a, b, rtol, atol, equal_nan)); });
ATEN_BRIDGE_EXPORT(Lerp, [](const Tensor& x, const Tensor& end, const Tensor& weight, Tensor& y) {
  at::lerp_out(y, x, end, weight);
});
ATEN_BRIDGE_EXPORT(LerpScalar, [](const Tensor& x, const Tensor& end, const Scalar& weight,
                                  Tensor& y) { at::lerp_out(y, x, end, weight); });
ATEN_BRIDGE_EXPORT(Polar, at::polar_out);
ATEN_BRIDGE_EXPORT(Select, [](const Tensor& condition, const Tensor& x, const Tensor& other,
                              Tensor& y) { y.copy_(at::where(condition, x, other)); });

// One tensor in, one of the same shape out, element by element.
#include <ATen/ops/abs.h>
#include <ATen/ops/acos.h>
#include <ATen/ops/acosh.h>
#include <ATen/ops/asin.h>
#include <ATen/ops/asinh.h>
#include <ATen/ops/atan.h>
#include <ATen/ops/atanh.h>
#include <ATen/ops/bitwise_not.h>
#include <ATen/ops/ceil.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/cosh.h>
#include <ATen/ops/div.h>
#include <ATen/ops/erf.h>
#include <ATen/ops/erfc.h>
#include <ATen/ops/erfinv.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/exp2.h>
#include <ATen/ops/expm1.h>
#include <ATen/ops/floor.h>
#include <ATen/ops/frac.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/isinf.h>
#include <ATen/ops/isneginf.h>
#include <ATen/ops/log.h>
#include <ATen/ops/log10.h>
#include <ATen/ops/log1p.h>
#include <ATen/ops/log2.h>
#include <ATen/ops/logical_not.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/nan_to_num.h>
#include <ATen/ops/neg.h>
#include <ATen/ops/reciprocal.h>
#include <ATen/ops/round.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/sgn.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/sinc.h>
#include <ATen/ops/sinh.h>
#include <ATen/ops/sqrt.h>
#include <ATen/ops/square.h>
#include <ATen/ops/tan.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/trunc.h>

#include "mint.h"

using namespace mint;  // NOLINT(google-build-using-namespace)

ATEN_BRIDGE_EXPORT(Abs, at::abs_out);
ATEN_BRIDGE_EXPORT(AcosExt, at::acos_out);
ATEN_BRIDGE_EXPORT(AcoshExt, at::acosh_out);
ATEN_BRIDGE_EXPORT(AsinExt, at::asin_out);
ATEN_BRIDGE_EXPORT(AsinhExt, at::asinh_out);
ATEN_BRIDGE_EXPORT(AtanExt, at::atan_out);
ATEN_BRIDGE_EXPORT(Atanh, at::atanh_out);
ATEN_BRIDGE_EXPORT(BitwiseNot, at::bitwise_not_out);
ATEN_BRIDGE_EXPORT(Ceil, at::ceil_out);
ATEN_BRIDGE_EXPORT(Cos, at::cos_out);
ATEN_BRIDGE_EXPORT(Cosh, at::cosh_out);
ATEN_BRIDGE_EXPORT(Erf, at::erf_out);
ATEN_BRIDGE_EXPORT(Erfc, at::erfc_out);
ATEN_BRIDGE_EXPORT(Erfinv, at::erfinv_out);
ATEN_BRIDGE_EXPORT(Exp, at::exp_out);
ATEN_BRIDGE_EXPORT(Exp2, at::exp2_out);
ATEN_BRIDGE_EXPORT(Expm1, at::expm1_out);
ATEN_BRIDGE_EXPORT(Floor, at::floor_out);
ATEN_BRIDGE_EXPORT(Frac, at::frac_out);
ATEN_BRIDGE_EXPORT(IsNegInf, at::isneginf_out);
ATEN_BRIDGE_EXPORT(Log, at::log_out);
ATEN_BRIDGE_EXPORT(Log10, at::log10_out);
ATEN_BRIDGE_EXPORT(Log1p, at::log1p_out);
ATEN_BRIDGE_EXPORT(Log2, at::log2_out);
ATEN_BRIDGE_EXPORT(LogicalNot, at::logical_not_out);
ATEN_BRIDGE_EXPORT(Neg, at::neg_out);
ATEN_BRIDGE_EXPORT(Reciprocal, at::reciprocal_out);
ATEN_BRIDGE_EXPORT(Rsqrt, at::rsqrt_out);
ATEN_BRIDGE_EXPORT(Sigmoid, at::sigmoid_out);
ATEN_BRIDGE_EXPORT(Sign, [](const Tensor& x, Tensor& y) { at::sgn_out(y, x); });
ATEN_BRIDGE_EXPORT(Sin, at::sin_out);
ATEN_BRIDGE_EXPORT(Sinc, at::sinc_out);
ATEN_BRIDGE_EXPORT(Sinh, at::sinh_out);
ATEN_BRIDGE_EXPORT(Sqrt, at::sqrt_out);
ATEN_BRIDGE_EXPORT(Square, at::square_out);
ATEN_BRIDGE_EXPORT(Tan, at::tan_out);
ATEN_BRIDGE_EXPORT(Tanh, at::tanh_out);
ATEN_BRIDGE_EXPORT(Trunc, at::trunc_out);

ATEN_BRIDGE_EXPORT(RsqrtGrad, [](const Tensor& y, const Tensor& dy, Tensor& dx) {
  at::mul_out(dx, y.pow(3).mul_(-0.5).conj(), dy);
});
ATEN_BRIDGE_EXPORT(SqrtGrad, [](const Tensor& y, const Tensor& dy, Tensor& dx) {
  at::div_out(dx, dy, y.mul(2).conj());
});

ATEN_BRIDGE_EXPORT(IsFinite, [](const Tensor& x, Tensor& y) { y.copy_(at::isfinite(x)); });
ATEN_BRIDGE_EXPORT(IsInf, [](const Tensor& x, Tensor& y) { y.copy_(at::isinf(x)); });
ATEN_BRIDGE_EXPORT(NanToNum, at::nan_to_num_out);
ATEN_BRIDGE_EXPORT(Round, [](const Tensor& x, int64_t decimals, Tensor& y) {
  decimals == 0 ? at::round_out(y, x) : at::round_out(y, x, decimals);
});

// One tensor in, one of the same shape out, element by element.
#include <ATen/ops/abs.h>
#include <ATen/ops/acos.h>
#include <ATen/ops/acosh.h>
#include <ATen/ops/asin.h>
#include <ATen/ops/asinh.h>
#include <ATen/ops/atan.h>
#include <ATen/ops/bitwise_not.h>
#include <ATen/ops/exp2.h>
#include <ATen/ops/frac.h>
#include <ATen/ops/isneginf.h>
#include <ATen/ops/log10.h>
#include <ATen/ops/log2.h>
#include <ATen/ops/sinc.h>
#include <ATen/ops/tanh.h>

#include "mint.h"

ATEN_BRIDGE_EXPORT(Abs, at::abs_out);
ATEN_BRIDGE_EXPORT(AcosExt, at::acos_out);
ATEN_BRIDGE_EXPORT(AcoshExt, at::acosh_out);
ATEN_BRIDGE_EXPORT(AsinExt, at::asin_out);
ATEN_BRIDGE_EXPORT(AsinhExt, at::asinh_out);
ATEN_BRIDGE_EXPORT(AtanExt, at::atan_out);
ATEN_BRIDGE_EXPORT(BitwiseNot, at::bitwise_not_out);
ATEN_BRIDGE_EXPORT(Exp2, at::exp2_out);
ATEN_BRIDGE_EXPORT(Frac, at::frac_out);
ATEN_BRIDGE_EXPORT(IsNegInf, at::isneginf_out);
ATEN_BRIDGE_EXPORT(Log10, at::log10_out);
ATEN_BRIDGE_EXPORT(Log2, at::log2_out);
ATEN_BRIDGE_EXPORT(Sinc, at::sinc_out);
ATEN_BRIDGE_EXPORT(Tanh, at::tanh_out);

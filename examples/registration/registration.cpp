// A kernel and its gradient, which PyTorch's autograd computes.
#include <ATen/ops/pow.h>
#include <aten_bridge.h>

using aten_bridge::attr;

// [export]
at::Tensor power(const at::Tensor& x, double exponent) { return at::pow(x, exponent); }
ATEN_BRIDGE_EXPORT(Power, power, attr("exponent"), aten_bridge::meta());
ATEN_BRIDGE_EXPORT_GRAD(PowerGrad, power, attr("exponent"));
// [/export]

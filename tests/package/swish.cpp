#include <ATen/ops/silu.h>
#include <aten_bridge.h>

ATEN_BRIDGE_EXPORT(Swish, [](const at::Tensor& x, at::Tensor& y) { at::silu_out(y, x); });

#include <ATen/ops/leaky_relu.h>
#include <aten_bridge.h>

// y = x where x > 0, 0.01 * x elsewhere.
void leaky_relu(const at::Tensor& x, at::Tensor& y) { at::leaky_relu_out(y, x); }
ATEN_BRIDGE_EXPORT(LeakyRelu, leaky_relu);

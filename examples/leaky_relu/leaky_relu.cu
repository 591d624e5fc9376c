#include <ATen/ops/leaky_relu.h>
#include <aten_bridge.h>

// y = x where x > 0, slope * x elsewhere.
void leaky_relu(const at::Tensor& x, double slope, at::Tensor& y) {
  at::leaky_relu_out(y, x, slope);
}
ATEN_BRIDGE_EXPORT(LeakyRelu, leaky_relu, aten_bridge::attr("negative_slope", 0.01),
                   aten_bridge::meta());

// expect: aten_bridge: there are more aten_bridge::attr options than parameters of types that
// attributes have.
#include <aten_bridge.h>

void kernel(const at::Tensor& x, double slope, at::Tensor& y);
ATEN_BRIDGE_EXPORT(Kernel, kernel, aten_bridge::attr("slope"), aten_bridge::attr("bias"));

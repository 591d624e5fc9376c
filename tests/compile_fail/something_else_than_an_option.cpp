// expect: aten_bridge: behind the function of a kernel stand options: aten_bridge::attr, meta,
// workspace, input, output, autograd, name, composite, private_use, autocast and side_effect.
#include <aten_bridge.h>

void kernel(const at::Tensor& x, at::Tensor& y);
ATEN_BRIDGE_EXPORT(Kernel, kernel, "x");

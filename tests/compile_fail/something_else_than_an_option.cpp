// expect: aten_bridge: after the function of a kernel come options: aten_bridge::attr, meta,
// workspace, input, output, data_dependent, strided, autograd, name, composite, private_use,
// autocast and side_effect.
#include <aten_bridge.h>

void kernel(const at::Tensor& x, at::Tensor& y);
ATEN_BRIDGE_EXPORT(Kernel, kernel, "x");

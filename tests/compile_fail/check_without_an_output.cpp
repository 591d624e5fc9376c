// expect: aten_bridge: there are more aten_bridge::output options than outputs.
#include <aten_bridge.h>

void kernel(const at::Tensor& x, at::Tensor& y);
ATEN_BRIDGE_EXPORT(Kernel, kernel, aten_bridge::output("y"), aten_bridge::output("z"));

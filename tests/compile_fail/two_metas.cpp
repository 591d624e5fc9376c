// expect: aten_bridge: a kernel has at most one aten_bridge::meta option.
#include <aten_bridge.h>

at::Tensor kernel(const at::Tensor& x);
ATEN_BRIDGE_EXPORT(Kernel, kernel, aten_bridge::meta(), aten_bridge::meta(kernel));

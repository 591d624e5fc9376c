// expect: aten_bridge: a Workspace holds plain values.
#include <aten_bridge.h>

void kernel(const at::Tensor& x, aten_bridge::Workspace<at::Tensor> memory, at::Tensor& y);
ATEN_BRIDGE_EXPORT(Kernel, kernel, aten_bridge::workspace(1));

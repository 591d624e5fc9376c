// expect: aten_bridge: each Workspace parameter needs an aten_bridge::workspace option, and each
// option a parameter.
#include <aten_bridge.h>

void kernel(const at::Tensor& x, aten_bridge::Workspace<float> memory, at::Tensor& y);
ATEN_BRIDGE_EXPORT(Kernel, kernel);

// expect: aten_bridge: the function of a workspace takes the inputs and attributes that its kernel
// takes, with the same types and in the same order, and no outputs.
#include <aten_bridge.h>

void kernel(const at::Tensor& x, aten_bridge::Workspace<float> memory, at::Tensor& y);
int64_t elements(const at::Tensor& x, const at::Tensor& w);
ATEN_BRIDGE_EXPORT(Kernel, kernel, aten_bridge::workspace(elements));

// expect: aten_bridge: the function of a workspace returns its number of elements.
#include <aten_bridge.h>

void kernel(const at::Tensor& x, aten_bridge::Workspace<float> memory, at::Tensor& y);
double elements(const at::Tensor& x);
ATEN_BRIDGE_EXPORT(Kernel, kernel, aten_bridge::workspace(elements));

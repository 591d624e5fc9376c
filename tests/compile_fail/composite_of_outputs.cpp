// expect: aten_bridge: a kernel with aten_bridge::composite() returns its results, and has neither
// state nor workspaces: nothing but operators is traced.
#include <aten_bridge.h>

void kernel(const at::Tensor& x, at::Tensor& y);
ATEN_BRIDGE_EXPORT(Kernel, kernel, aten_bridge::composite());

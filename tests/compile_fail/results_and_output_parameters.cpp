// expect: aten_bridge: a kernel either writes its at::Tensor& parameters or returns its results,
// not both.
#include <aten_bridge.h>

at::Tensor kernel(const at::Tensor& x, at::Tensor& y);
ATEN_BRIDGE_EXPORT(Kernel, kernel);

// expect: aten_bridge: aten_bridge::data_dependent() is for kernels of a plugin that return their
// results.
#include <aten_bridge.h>

at::Tensor kernel(const at::Tensor& x);
ATEN_BRIDGE_EXPORT(Kernel, kernel, aten_bridge::data_dependent());

// expect: aten_bridge: a kernel with aten_bridge::data_dependent() returns its results, and has no
// meta function: nobody knows their sizes before it has run.
#include <aten_bridge.h>

void kernel(const at::Tensor& x, at::Tensor& y);
ATEN_BRIDGE_EXPORT(Kernel, kernel, aten_bridge::data_dependent());

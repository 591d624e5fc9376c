// expect: aten_bridge: a kernel has at most one at::TensorList: nothing says where one ends and the
// next begins.
#include <aten_bridge.h>

void kernel(at::TensorList a, at::TensorList b, at::Tensor& y);
ATEN_BRIDGE_EXPORT(Kernel, kernel);

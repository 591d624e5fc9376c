// expect: aten_bridge: a kernel that returns a std::tuple returns tensors only.
#include <aten_bridge.h>

std::tuple<at::Tensor, int> kernel(const at::Tensor& x);
ATEN_BRIDGE_EXPORT(Kernel, kernel);

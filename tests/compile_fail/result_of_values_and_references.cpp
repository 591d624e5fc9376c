// expect: aten_bridge: a kernel that returns a std::tuple returns at::Tensor& for none or for all
// of its elements.
#include <aten_bridge.h>

std::tuple<at::Tensor, at::Tensor&> kernel(const at::Tensor& x, at::Tensor& y);
ATEN_BRIDGE_EXPORT(Kernel, kernel);

// expect: aten_bridge: a kernel returns void and writes its at::Tensor& parameters, or returns
// at::Tensor or std::tuple<at::Tensor, ...>.
#include <aten_bridge.h>

int kernel(const at::Tensor& x, at::Tensor& y);
ATEN_BRIDGE_EXPORT(Kernel, kernel);

// expect: aten_bridge: how many tensors a kernel returns has to be known when it is compiled:
// std::tuple<at::Tensor, ...> or std::array<at::Tensor, N>, not std::vector.
#include <aten_bridge.h>

std::vector<at::Tensor> kernel(const at::Tensor& x);
ATEN_BRIDGE_EXPORT(Kernel, kernel);

// expect: aten_bridge: a meta function returns one at::Tensor for each output of its kernel,
// several in a std::tuple.
#include <aten_bridge.h>

void kernel(const at::Tensor& x, at::Tensor& y, at::Tensor& z);
at::Tensor shape(const at::Tensor& x);
ATEN_BRIDGE_EXPORT(Kernel, kernel, aten_bridge::meta(shape));

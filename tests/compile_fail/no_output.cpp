// expect: aten_bridge: a kernel has at least one output: an at::Tensor& parameter, which is not
// const, or a result; a function that is called for its effect alone has
// aten_bridge::side_effect().
#include <aten_bridge.h>

void kernel(const at::Tensor& x, const at::Tensor& y);
ATEN_BRIDGE_EXPORT(Kernel, kernel);

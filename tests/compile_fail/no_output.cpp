// expect: aten_bridge: a kernel has at least one output: an at::Tensor& parameter, which is not
// const, or a result. MindSpore does not call an operator that has none.
#include <aten_bridge.h>

void kernel(const at::Tensor& x, const at::Tensor& y);
ATEN_BRIDGE_EXPORT(Kernel, kernel);

// expect: aten_bridge: a kernel over a CallFrame has no other parameter.
#include <aten_bridge.h>

void kernel(const aten_bridge::CallFrame& frame, at::Tensor& y);
ATEN_BRIDGE_EXPORT(Kernel, kernel);

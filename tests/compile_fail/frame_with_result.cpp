// expect: aten_bridge: a kernel over a CallFrame returns void.
#include <aten_bridge.h>

int kernel(const aten_bridge::CallFrame& frame);
ATEN_BRIDGE_EXPORT(Kernel, kernel);

// expect: aten_bridge: a kernel over a CallFrame has no options.
#include <aten_bridge.h>

void kernel(const aten_bridge::CallFrame& frame);
ATEN_BRIDGE_EXPORT(Kernel, kernel, aten_bridge::input("x"));

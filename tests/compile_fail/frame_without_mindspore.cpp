// expect: aten_bridge: a kernel over a CallFrame is for MindSpore alone: add MINDSPORE to HOSTS.
#define ATEN_BRIDGE_WITHOUT_MINDSPORE
#include <aten_bridge.h>

namespace {
void kernel(const aten_bridge::CallFrame& /*frame*/) {}
}  // namespace
ATEN_BRIDGE_EXPORT(Kernel, kernel);

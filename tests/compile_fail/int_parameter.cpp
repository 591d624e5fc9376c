// expect: aten_bridge: the integers of a kernel are int64_t, its parameter number kNumber of
// KernelParameter<kNumber, type> has another one; write int64_t.
// shows: KernelParameter<2, const std::optional<int>
#include <aten_bridge.h>

void kernel(const at::Tensor& x, const std::optional<int>& count, at::Tensor& y);
ATEN_BRIDGE_EXPORT(Kernel, kernel, aten_bridge::attr("count"));

// expect: aten_bridge: the default of an attribute has the type of its parameter: a float such as
// 1.0 where that is a double, a bool, a string, {1, 2} for a list.
#include <aten_bridge.h>

void kernel(const at::Tensor& x, int64_t count, at::Tensor& y);
ATEN_BRIDGE_EXPORT(Kernel, kernel, aten_bridge::attr("count", 1.5));

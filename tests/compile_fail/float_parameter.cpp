// expect: aten_bridge: the floating-point numbers of a kernel are double, its parameter number
// kNumber of KernelParameter<kNumber, type> is a float; write double.
// shows: KernelParameter<2, float>
#include <aten_bridge.h>

void kernel(const at::Tensor& x, float slope, at::Tensor& y);
ATEN_BRIDGE_EXPORT(Kernel, kernel, aten_bridge::attr("slope", 0.01));

// expect: aten_bridge: there are more aten_bridge::input options than inputs.
#include <aten_bridge.h>

void kernel(const at::Tensor& x, at::Tensor& y);
ATEN_BRIDGE_EXPORT(Kernel, kernel, aten_bridge::input("x"), aten_bridge::input("weight"));

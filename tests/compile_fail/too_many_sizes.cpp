// expect: aten_bridge: sizes() takes up to 8 sizes; leave the others to "...".
#include <aten_bridge.h>

void kernel(const at::Tensor& x, at::Tensor& y);
ATEN_BRIDGE_EXPORT(Kernel, kernel, aten_bridge::input("x").sizes(1, 2, 3, 4, 5, 6, 7, 8, 9));

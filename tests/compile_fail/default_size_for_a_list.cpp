// expect: aten_bridge: the default of an attribute has the type of its parameter: a number where
// that is a double, an integer, a bool, a string, at::kFloat for a dtype, {1, 2} for a list of
// ints, {1.0, 2.0} of floats.
#include <aten_bridge.h>

void kernel(const at::Tensor& x, at::IntArrayRef stride, at::Tensor& y);
ATEN_BRIDGE_EXPORT(Kernel, kernel, aten_bridge::attr("stride", 2));

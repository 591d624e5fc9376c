// expect: aten_bridge: a kernel of a plugin takes all its parameters from inputs: it has no
// attributes and no state.
#define ATEN_BRIDGE_MINDSPORE_PLUGIN
#include <aten_bridge.h>

void kernel(const at::Tensor& x, double slope, at::Tensor& y);
ATEN_BRIDGE_EXPORT(Kernel, kernel, aten_bridge::attr("slope", 0.1));

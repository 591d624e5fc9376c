// expect: aten_bridge: a meta function takes the inputs and attributes that its kernel takes, with
// the same types and in the same order, and no outputs.
#include <aten_bridge.h>

void kernel(const at::Tensor& x, at::Tensor& y);
at::Tensor shape(const at::Tensor& x, at::Tensor& y);
ATEN_BRIDGE_EXPORT(Kernel, kernel, aten_bridge::meta(shape));

// expect: aten_bridge: a meta function takes the inputs and attributes that its kernel takes, with
// the same types and in the same order, and no outputs.
#include <aten_bridge.h>

void kernel(const at::Tensor& x, const at::Tensor& w, int64_t count, at::Tensor& y);
at::Tensor shape(const at::Tensor& x, int64_t count);
ATEN_BRIDGE_EXPORT(Kernel, kernel, aten_bridge::meta(shape));

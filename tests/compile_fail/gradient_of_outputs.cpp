// expect: aten_bridge: a gradient is that of a function that returns its results; for one that
// writes its at::Tensor& parameters, write the gradient by hand and export it with
// ATEN_BRIDGE_EXPORT.
#include <aten_bridge.h>

void kernel(const at::Tensor& x, at::Tensor& y);
ATEN_BRIDGE_EXPORT_GRAD(KernelGrad, kernel);

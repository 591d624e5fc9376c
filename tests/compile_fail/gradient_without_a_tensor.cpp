// expect: aten_bridge: a gradient needs an input that is a tensor.
#include <aten_bridge.h>

at::Tensor kernel(double number);
ATEN_BRIDGE_EXPORT_GRAD(KernelGrad, kernel);

// expect: aten_bridge: the gradient of a function of an at::TensorList has no gradient kernel;
// write one by hand.
#include <aten_bridge.h>

at::Tensor kernel(at::TensorList tensors);
ATEN_BRIDGE_EXPORT_GRAD(KernelGradGrad, aten_bridge::gradient(kernel));

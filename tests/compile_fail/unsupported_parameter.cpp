// expect: aten_bridge: a kernel's parameters are const at::Tensor& or at::Tensor for an input,
// const std::optional<at::Tensor>& for an input that may be None, and at::Tensor& for an output; or
// const aten_bridge::CallFrame& alone.
#include <aten_bridge.h>

void kernel(const at::Tensor& x, const char* text, at::Tensor& y);
ATEN_BRIDGE_EXPORT(Kernel, kernel);

// expect: aten_bridge: a kernel's parameters are const at::Tensor& or at::Tensor for an input,
// const std::optional<at::Tensor>& for an input that may be None, at::TensorList for any number of
// inputs, at::Tensor& for an output, aten_bridge::Workspace<T> for a workspace, and for attributes
// and numbers bool, int64_t (not int), double (not float), at::Scalar, at::ScalarType, std::string,
// std::vector of int64_t, double, bool or std::string, std::vector of the first two of these,
// at::IntArrayRef, and std::optional of these; or const aten_bridge::CallFrame& alone.
#include <aten_bridge.h>

void kernel(const at::Tensor& x, const char* text, at::Tensor& y);
ATEN_BRIDGE_EXPORT(Kernel, kernel);

// expect: aten_bridge: only bool, int64_t, double, at::Scalar and std::optional of these are read
// from an input; a parameter of another type takes an attribute: add aten_bridge::attr("name") for
// it.
#include <aten_bridge.h>

at::Tensor kernel(const at::Tensor& x, const std::vector<int64_t>& sizes);
ATEN_BRIDGE_EXPORT(Kernel, kernel, aten_bridge::data_dependent());

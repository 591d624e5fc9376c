// expect: aten_bridge: state<T(P...)>() needs a T that can be made from P...: name the types of the
// constructor's parameters.
#include <aten_bridge.h>

struct Kernel {
  explicit Kernel(const std::string& path);
  void operator()(const at::Tensor& x, at::Tensor& y) const;
};
ATEN_BRIDGE_EXPORT(WithState, aten_bridge::state<Kernel(double)>(), aten_bridge::attr("path"));

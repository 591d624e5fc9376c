// expect: aten_bridge: the P... of state<T(P...)>() are types of attributes, and at::TensorList for
// the inputs of the first call.
#include <aten_bridge.h>

struct Kernel {
  explicit Kernel(const at::Tensor& x);
  void operator()(const at::Tensor& x, at::Tensor& y) const;
};
ATEN_BRIDGE_EXPORT(WithState, aten_bridge::state<Kernel(const at::Tensor&)>());

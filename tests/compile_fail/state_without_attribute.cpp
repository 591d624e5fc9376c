// expect: aten_bridge: each value that the state is made from is an attribute: add an
// aten_bridge::attr option for it.
#include <aten_bridge.h>

struct Kernel {
  Kernel(double factor, int64_t count);
  void operator()(const at::Tensor& x, at::Tensor& y) const;
};
ATEN_BRIDGE_EXPORT(WithState, aten_bridge::state<Kernel(double, int64_t)>(),
                   aten_bridge::attr("factor"));

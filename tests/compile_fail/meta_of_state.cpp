// expect: aten_bridge: a kernel with state or workspaces touches data, so that aten_bridge::meta()
// needs a function: aten_bridge::meta(function).
#include <aten_bridge.h>

struct Kernel {
  at::Tensor operator()(const at::Tensor& x) const;
};
ATEN_BRIDGE_EXPORT(WithState, aten_bridge::state<Kernel()>(), aten_bridge::meta());

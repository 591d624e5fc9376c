// expect: aten_bridge: the operator() of a kernel is const; for what changes from call to call use
// aten_bridge::state<T(P...)>().
#include <aten_bridge.h>

ATEN_BRIDGE_EXPORT(Kernel, [](const at::Tensor& x, at::Tensor& y) mutable { y.copy_(x); });

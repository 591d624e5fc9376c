// expect: aten_bridge: a state that changes from call to call has no gradient kernel by autograd,
// which would have a state of its own; make operator() const, or write the gradient by hand.
#include <aten_bridge.h>

struct Counter {
  at::Tensor operator()(const at::Tensor& x);
};
ATEN_BRIDGE_EXPORT_GRAD(CounterGrad, aten_bridge::state<Counter()>());

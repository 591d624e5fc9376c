// A second source file of the same library.
#include <aten_bridge.h>

ATEN_BRIDGE_EXPORT(FromAnotherSource, [](const at::Tensor& x, at::Tensor& y) { y.copy_(x); });

// Neither C functions nor variables are seen from outside unless they are marked.
extern "C" int unmarked_function() { return 0; }
extern "C" int unmarked_variable;
int unmarked_variable = 0;
extern "C" ATEN_BRIDGE_PUBLIC int MarkedFunction() {
  return unmarked_function() + unmarked_variable;
}

// expect: aten_bridge: the name of a kernel's function is that of one function; this one is
// overloaded, by another of yours, of ATen or of the C library, which has a sincos: export a lambda
// that calls it, or rename it.
#include <aten_bridge.h>

at::Tensor sincos(const at::Tensor& x) { return x; }

ATEN_BRIDGE_EXPORT(Kernel, sincos);

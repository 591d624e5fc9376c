// expect: aten_bridge: a kernel over a CallFrame is for MindSpore alone, whose call it is.
#define ATEN_BRIDGE_ENTRY_BESIDE(Name)                              \
  const char* Name##Toy(const ToyTensor* tensors, int count) {      \
    return aten_bridge_kernel_##Name.call<ToyCall>(tensors, count); \
  }
#include "../kernels/toy_host.h"

namespace {
void kernel(const aten_bridge::CallFrame& /*frame*/) {}
}  // namespace
ATEN_BRIDGE_EXPORT(Kernel, kernel);

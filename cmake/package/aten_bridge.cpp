// The bridge's ordinary code, which aten_bridge_add_kernel compiles once for all libraries of a
// build folder that have the same device and host.
#ifndef ATEN_BRIDGE_COMPILED
#error "aten_bridge.cpp is compiled with the definitions of the kernels that it is for"
#endif
#define ATEN_BRIDGE_COMPILES
#ifndef AT_PER_OPERATOR_HEADERS  // PyTorch's headers include the operators that they call, not all
#define AT_PER_OPERATOR_HEADERS
#endif
#include <aten_bridge.h>

#pragma GCC visibility push(hidden)

namespace aten_bridge::detail {

#define ATEN_BRIDGE_INSTANTIATE(HOST, bit, Device) ATEN_BRIDGE_INSTANTIATE_##HOST(Device)
ATEN_BRIDGE_HOSTS(ATEN_BRIDGE_INSTANTIATE, ATEN_BRIDGE_DEVICE)

}  // namespace aten_bridge::detail

#pragma GCC visibility pop

// Kernels of a library whose only host is one that only the tests have.
#define ATEN_BRIDGE_HOST ToyCall
#define ATEN_BRIDGE_ENTRY(Name)                                                              \
  extern "C" ATEN_BRIDGE_PUBLIC const char* Name##Toy(const ToyTensor* tensors, int count) { \
    return aten_bridge_kernel_##Name.call(tensors, count);                                   \
  }
#define ATEN_BRIDGE_ENTRY_BESIDE(Name)  // none is beside it

#include "toy_host.h"

#include <ATen/ops/leaky_relu.h>

namespace {

void leaky_relu(const at::Tensor& x, double slope, at::Tensor& y) {
  at::leaky_relu_out(y, x, slope);
}

}  // namespace

ATEN_BRIDGE_EXPORT(SoleLeakyReluOfSlope, leaky_relu, aten_bridge::attr("slope"));

// Kernels for a host that only the tests have, beside MindSpore, PyTorch and JAX.
#define ATEN_BRIDGE_ENTRY_BESIDE(Name)                                                       \
  extern "C" ATEN_BRIDGE_PUBLIC const char* Name##Toy(const ToyTensor* tensors, int count) { \
    return aten_bridge_kernel_##Name.call<ToyCall>(tensors, count);                          \
  }

#include "toy_host.h"

#include <ATen/ops/add.h>
#include <ATen/ops/leaky_relu.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

namespace {

using aten_bridge::attr;
using aten_bridge::input;

void leaky_relu(const at::Tensor& x, double slope, at::Tensor& y) {
  at::leaky_relu_out(y, x, slope);
}

at::Tensor add(const at::Tensor& x, const at::Tensor& other) { return at::add(x, other); }

bool destroyed_in_call = false;

// This host keeps no state: each call makes one and destroys it.
struct Watched {
  at::Tensor operator()(const at::Tensor& x) const { return at::add(x, x); }
  ~Watched() {
    destroyed_in_call = c10::impl::tls_is_dispatch_key_excluded(c10::DispatchKey::AutogradOther);
  }
};

}  // namespace

extern "C" ATEN_BRIDGE_PUBLIC bool destroyed_in_its_call() { return destroyed_in_call; }

ATEN_BRIDGE_EXPORT(ToyLeakyRelu, leaky_relu, attr("slope", 0.5), input("x").rank(1, 2));
ATEN_BRIDGE_EXPORT(ToyLeakyReluOfSlope, leaky_relu, attr("slope"));
ATEN_BRIDGE_EXPORT(ToyAdd, add);
ATEN_BRIDGE_EXPORT(ToyWatched, aten_bridge::state<Watched()>());
ATEN_BRIDGE_EXPORT_GRAD(ToyAddGrad, add);

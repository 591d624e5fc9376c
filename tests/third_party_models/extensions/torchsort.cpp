// torchsort 0.1.10: the whole source, with its PYBIND11_MODULE, and its kernels by name.
#include "torchsort/isotonic_cpu.cpp"

#include <aten_bridge.h>

static at::Tensor like_first(torch::Tensor y) { return at::empty_like(y); }
ATEN_BRIDGE_EXPORT(IsotonicL2, isotonic_l2, aten_bridge::meta(like_first));

static at::Tensor isotonic_l2_grad(torch::Tensor y, torch::Tensor gradient) {
  return isotonic_l2_backward(y, isotonic_l2(y), gradient);
}
ATEN_BRIDGE_EXPORT(IsotonicL2Grad, isotonic_l2_grad);

static at::Tensor like_first_of_two(torch::Tensor y, torch::Tensor) { return at::empty_like(y); }
ATEN_BRIDGE_EXPORT(IsotonicKl, isotonic_kl, aten_bridge::meta(like_first_of_two));

// The operator of Ascend's sample of a wheel, as a kernel: what that registers by hand (schemas,
// implementations, autograd, Meta, a binding for Python) comes of these exports.
#include <ATen/ops/add.h>
#include <aten_bridge.h>

#include <tuple>

namespace {

using at::Tensor;
using aten_bridge::input;
using aten_bridge::meta;
using aten_bridge::private_use;

// [kernels]
Tensor add_custom(const Tensor& x, const Tensor& y) { return at::add(x, y); }
ATEN_BRIDGE_EXPORT(AddCustom, add_custom, input("x"), input("y"), meta(), private_use());

std::tuple<Tensor, Tensor> add_custom_grad(const Tensor& /*x*/, const Tensor& /*y*/,
                                           const Tensor& grad) {
  return {grad, grad};
}
ATEN_BRIDGE_EXPORT(AddCustomGrad, add_custom_grad, input("x"), input("y"), input("grad"),
                   private_use());
// [/kernels]

}  // namespace

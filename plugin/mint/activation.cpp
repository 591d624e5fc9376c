// Activations and their gradients.
#include <ATen/ops/_log_softmax.h>
#include <ATen/ops/_log_softmax_backward_data.h>
#include <ATen/ops/_prelu_kernel_backward.h>
#include <ATen/ops/_softmax_backward_data.h>
#include <ATen/ops/clamp_min.h>
#include <ATen/ops/elu.h>
#include <ATen/ops/elu_backward.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/gelu_backward.h>
#include <ATen/ops/glu.h>
#include <ATen/ops/glu_backward.h>
#include <ATen/ops/hardshrink.h>
#include <ATen/ops/hardshrink_backward.h>
#include <ATen/ops/hardsigmoid.h>
#include <ATen/ops/hardsigmoid_backward.h>
#include <ATen/ops/hardswish.h>
#include <ATen/ops/hardswish_backward.h>
#include <ATen/ops/hardtanh.h>
#include <ATen/ops/hardtanh_backward.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/leaky_relu_backward.h>
#include <ATen/ops/log_sigmoid_backward.h>
#include <ATen/ops/log_sigmoid_forward.h>
#include <ATen/ops/logit_backward.h>
#include <ATen/ops/mish.h>
#include <ATen/ops/mish_backward.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/prelu.h>
#include <ATen/ops/sigmoid_backward.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/softplus.h>
#include <ATen/ops/softplus_backward.h>
#include <ATen/ops/softshrink.h>
#include <ATen/ops/softshrink_backward.h>
#include <ATen/ops/tanh_backward.h>
#include <ATen/ops/threshold.h>
#include <ATen/ops/threshold_backward.h>

#include "mint.h"

using namespace mint;  // NOLINT(google-build-using-namespace)

namespace {

// torch.nn.functional.selu's own constants.
constexpr double kSeluAlpha = 1.6732632423543772848170429916717;
constexpr double kSeluScale = 1.0507009873554804934193349852946;

const char* gelu_name(int64_t approximate) { return approximate == 0 ? "none" : "tanh"; }

}  // namespace

ATEN_BRIDGE_EXPORT(EluExt, [](const Tensor& x, const Scalar& alpha, Tensor& y) {
  at::elu_out(y, x, alpha);
});
ATEN_BRIDGE_EXPORT(EluGradExt,
                   [](const Tensor& dy, const Tensor& x, const Scalar& alpha, bool is_result,
                      Tensor& dx) { at::elu_backward_out(dx, dy, alpha, 1, 1, is_result, x); });
ATEN_BRIDGE_EXPORT(GeluExt, [](const Tensor& x, int64_t approximate, Tensor& y) {
  at::gelu_out(y, x, gelu_name(approximate));
});
ATEN_BRIDGE_EXPORT(GeluGradExt,
                   [](const Tensor& dy, const Tensor& x, int64_t approximate, Tensor& dx) {
                     at::gelu_backward_out(dx, dy, x, gelu_name(approximate));
                   });
ATEN_BRIDGE_EXPORT(Hardtanh, at::hardtanh_out);
ATEN_BRIDGE_EXPORT(HardtanhGrad, at::hardtanh_backward_out);
ATEN_BRIDGE_EXPORT(HShrink, at::hardshrink_out);
ATEN_BRIDGE_EXPORT(HSwish, at::hardswish_out);
ATEN_BRIDGE_EXPORT(LeakyReLUExt, at::leaky_relu_out);
ATEN_BRIDGE_EXPORT(LeakyReLUGradExt, at::leaky_relu_backward_out);
// Not into MindSpore's buffer, which may have other sizes than ATen's.
ATEN_BRIDGE_EXPORT(LogSigmoid, [](const Tensor& x, Tensor& y, Tensor& /*buffer*/) {
  Tensor buffer = at::empty({0}, x.options());
  at::log_sigmoid_forward_out(y, buffer, x);
});
ATEN_BRIDGE_EXPORT(LogSigmoidGrad, [](const Tensor& dy, const Tensor& x, const Tensor& /*buffer*/,
                                      Tensor& dx) {
  at::log_sigmoid_backward_out(dx, dy, x, std::get<1>(at::log_sigmoid_forward(x)));
});
// MindSpore 2.10's own ends the process when it is called again and again.
ATEN_BRIDGE_EXPORT(LogitGrad, [](const Tensor& dy, const Tensor& x, double eps, Tensor& dx) {
  at::logit_backward_out(dx, dy, x, eps < 0 ? Optional<double>() : Optional<double>(eps));
});
ATEN_BRIDGE_EXPORT(LogSoftmaxExt, [](const Tensor& x, OptionalInt dim, OptionalDtype, Tensor& y) {
  const int64_t ndim = x.dim();
  at::_log_softmax_out(y, x.to(y.scalar_type()),
                       dim.value_or(ndim == 0 || ndim == 1 || ndim == 3 ? 0 : 1),
                       /*half_to_float=*/false);
});
ATEN_BRIDGE_EXPORT(MishExt, at::mish_out);
ATEN_BRIDGE_EXPORT(MishGradExt, [](const Tensor& dy, const Tensor& x, Tensor& dx) {
  dx.copy_(at::mish_backward(dy, x));
});
// Not relu_out() and selu(), which make a tensor of their own.
ATEN_BRIDGE_EXPORT(ReLU, [](const Tensor& x, Tensor& y) {
  if (x.scalar_type() == at::kBool) {
    y.copy_(x);
  } else {
    at::clamp_min_out(y, x, 0);
  }
});
ATEN_BRIDGE_EXPORT(SeLUExt,
                   [](const Tensor& x, Tensor& y) { at::elu_out(y, x, kSeluAlpha, kSeluScale); });
ATEN_BRIDGE_EXPORT(SeluGrad, [](const Tensor& dy, const Tensor& y, Tensor& dx) {
  at::elu_backward_out(dx, dy, kSeluAlpha, kSeluScale, 1, /*is_result=*/true, y);
});
ATEN_BRIDGE_EXPORT(SoftplusExt, at::softplus_out);
ATEN_BRIDGE_EXPORT(SoftplusGradExt, at::softplus_backward_out);
ATEN_BRIDGE_EXPORT(SoftShrink, at::softshrink_out);
ATEN_BRIDGE_EXPORT(Threshold, at::threshold_out);
ATEN_BRIDGE_EXPORT(ThresholdGrad, at::threshold_backward_out);

//===--- what MindSpore has too ---===//

ATEN_BRIDGE_EXPORT(GLU, at::glu_out);
ATEN_BRIDGE_EXPORT(GluGrad, at::glu_backward_out);
ATEN_BRIDGE_EXPORT(HShrinkGrad, at::hardshrink_backward_out);
ATEN_BRIDGE_EXPORT(HSigmoid, at::hardsigmoid_out);
ATEN_BRIDGE_EXPORT(HSigmoidGrad, at::hardsigmoid_backward_out);
ATEN_BRIDGE_EXPORT(HSwishGrad, at::hardswish_backward);
ATEN_BRIDGE_EXPORT(LogSoftmaxGrad, [](const Tensor& y, const Tensor& dy, int64_t dim, Tensor& dx) {
  at::_log_softmax_backward_data_out(dx, dy, y, dim, y.scalar_type());
});
ATEN_BRIDGE_EXPORT(PReLU, at::prelu);
ATEN_BRIDGE_EXPORT(PReLUGrad, [](const Tensor& dy, const Tensor& x, const Tensor& weight,
                                 Tensor& dx, Tensor& dweight) {
  // One weight, or one of each channel.
  std::vector<int64_t> sizes(static_cast<std::size_t>(x.dim()), 1);
  if (weight.numel() > 1) {
    sizes.at(1) = weight.numel();
  }
  const auto [a, b] = at::_prelu_kernel_backward(dy, x, weight.reshape(sizes).expand_as(x));
  dx.copy_(a);
  dweight.copy_(b.sum_to_size(sizes).reshape(weight.sizes()));
});
ATEN_BRIDGE_EXPORT(ReluGrad, [](const Tensor& dy, const Tensor& y, Tensor& dx) {
  at::threshold_backward_out(dx, dy, y, 0);
});
ATEN_BRIDGE_EXPORT(SigmoidGrad, [](const Tensor& y, const Tensor& dy, Tensor& dx) {
  at::sigmoid_backward_out(dx, dy, y);
});
ATEN_BRIDGE_EXPORT(Softmax, [](const Tensor& x, IntArrayRef dim, Tensor& y) {
  at::softmax_out(y, x, dim.at(0));
});
ATEN_BRIDGE_EXPORT(SoftmaxBackward, [](const Tensor& dy, const Tensor& y, int64_t dim, Tensor& dx) {
  at::_softmax_backward_data_out(dx, dy, y, dim, y.scalar_type());
});
ATEN_BRIDGE_EXPORT(SoftShrinkGrad, at::softshrink_backward_out);
ATEN_BRIDGE_EXPORT(TanhGrad, [](const Tensor& y, const Tensor& dy, Tensor& dx) {
  if (dx.is_complex()) {  // MindSpore conjugates dy and dx itself
    at::mul_out(dx, dy, y.square().neg_().add_(1));
  } else {
    at::tanh_backward_out(dx, dy, y);
  }
});

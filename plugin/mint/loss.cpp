// Losses, normalisation, and their gradients.
#include <ATen/TensorOperators.h>
#include <ATen/ops/binary_cross_entropy.h>
#include <ATen/ops/binary_cross_entropy_backward.h>
#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/kl_div.h>
#include <ATen/ops/l1_loss.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/mse_loss_backward.h>
#include <ATen/ops/native_batch_norm.h>
#include <ATen/ops/native_batch_norm_backward.h>
#include <ATen/ops/native_group_norm.h>
#include <ATen/ops/native_group_norm_backward.h>
#include <ATen/ops/native_layer_norm.h>
#include <ATen/ops/native_layer_norm_backward.h>
#include <ATen/ops/nll_loss2d_backward.h>
#include <ATen/ops/nll_loss2d_forward.h>
#include <ATen/ops/nll_loss_backward.h>
#include <ATen/ops/nll_loss_forward.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/sign.h>
#include <ATen/ops/smooth_l1_loss.h>
#include <ATen/ops/smooth_l1_loss_backward.h>
#include <ATen/ops/soft_margin_loss.h>
#include <ATen/ops/soft_margin_loss_backward.h>
#include <ATen/ops/var_mean.h>

#include <algorithm>
#include <numeric>

#include "mint.h"

using namespace mint;  // NOLINT(google-build-using-namespace)

//===--- losses ---===//

ATEN_BRIDGE_EXPORT(BinaryCrossEntropy,
                   [](const Tensor& x, const Tensor& target, OptionalTensor weight, int64_t how) {
                     return at::binary_cross_entropy(x, target, weight, reduction(how));
                   });
ATEN_BRIDGE_EXPORT(BinaryCrossEntropyGrad, [](const Tensor& x, const Tensor& target,
                                              const Tensor& dy, OptionalTensor weight,
                                              int64_t how) {
  return at::binary_cross_entropy_backward(dy, x, target, weight, reduction(how));
});
ATEN_BRIDGE_EXPORT(BCEWithLogitsLoss, [](const Tensor& x, const Tensor& target,
                                         OptionalTensor weight, OptionalTensor positive_weight,
                                         int64_t how) {
  return at::binary_cross_entropy_with_logits(x, target, weight, positive_weight, reduction(how));
});
ATEN_BRIDGE_EXPORT(BinaryCrossEntropyWithLogitsBackward,
                   [](const Tensor& dy, const Tensor& x, const Tensor& target,
                      OptionalTensor weight, OptionalTensor positive_weight, int64_t how,
                      Tensor& dx) {
                     const Tensor positive =
                         positive_weight.has_value() ? target * *positive_weight : target;
                     dx.copy_(at::sigmoid(x) * (positive + 1 - target) - positive);
                     dx.mul_(dy);
                     if (weight.has_value()) {
                       dx.mul_(*weight);
                     }
                     if (reduction(how) == at::Reduction::Mean) {
                       dx.div_(x.numel());
                     }
                   });
ATEN_BRIDGE_EXPORT(KLDiv, [](const Tensor& x, const Tensor& target, int64_t how, bool log_target) {
  return at::kl_div(x, target, reduction(how), log_target);
});
ATEN_BRIDGE_EXPORT(KLDivGrad, [](const Tensor& dy, const Tensor& x, const Tensor& target,
                                 int64_t how, bool log_target) {
  const Tensor weight = log_target ? target.exp() : target;
  const Tensor dx = -weight * dy;
  return reduction(how) == at::Reduction::Mean ? dx / x.numel() : dx.expand_as(x);
});
ATEN_BRIDGE_EXPORT(L1LossExt, [](const Tensor& x, const Tensor& target, int64_t how, Tensor& y) {
  y.copy_(at::l1_loss(x, target, reduction(how)));  // for integers MindSpore wants integers
});
ATEN_BRIDGE_EXPORT(L1LossBackwardExt,
                   [](const Tensor& dy, const Tensor& x, const Tensor& target, int64_t how) {
                     const Tensor dx = at::sign(x - target) * dy;
                     return reduction(how) == at::Reduction::Mean ? dx / dx.numel() : dx;
                   });
ATEN_BRIDGE_EXPORT(MSELossExt, [](const Tensor& x, const Tensor& target, int64_t how) {
  return at::mse_loss(x, target, reduction(how));
});
ATEN_BRIDGE_EXPORT(MSELossGradExt, [](const Tensor& dy, const Tensor& x, const Tensor& target,
                                      int64_t how, Tensor& dx) {
  // The operands broadcast to the sizes that dx has.
  at::mse_loss_backward_out(dx, dy, x.expand_as(dx), target.expand_as(dx), reduction(how));
});
ATEN_BRIDGE_EXPORT(NLLLoss, [](const Tensor& x, const Tensor& target, OptionalTensor weight,
                               int64_t how, int64_t ignored, Tensor& y, Tensor& total) {
  const auto [a, b] =
      at::nll_loss_forward(x, target.to(at::kLong), weight, reduction(how), ignored);
  y.copy_(a);
  total.copy_(b);
});
ATEN_BRIDGE_EXPORT(NLLLossGrad, [](const Tensor& x, const Tensor& dy, const Tensor& target,
                                   OptionalTensor weight, const Tensor& total, int64_t how,
                                   int64_t ignored) {
  return at::nll_loss_backward(dy, x, target.to(at::kLong), weight, reduction(how), ignored, total);
});
ATEN_BRIDGE_EXPORT(NLLLoss2d, [](const Tensor& x, const Tensor& target, OptionalTensor weight,
                                 int64_t how, int64_t ignored, Tensor& y, Tensor& total) {
  at::nll_loss2d_forward_out(y, total, x, target, weight, reduction(how), ignored);
});
ATEN_BRIDGE_EXPORT(NLLLoss2dGrad,
                   [](const Tensor& dy, const Tensor& x, const Tensor& target,
                      OptionalTensor weight, int64_t how, int64_t ignored, const Tensor& total) {
                     return at::nll_loss2d_backward(dy, x.contiguous(), target, weight,
                                                    reduction(how), ignored, total);
                   });
ATEN_BRIDGE_EXPORT(SmoothL1Loss,
                   [](const Tensor& x, const Tensor& target, double beta, int64_t how) {
                     return at::smooth_l1_loss(x, target, reduction(how), beta);
                   });
ATEN_BRIDGE_EXPORT(SmoothL1LossGrad, [](const Tensor& x, const Tensor& target, const Tensor& dy,
                                        double beta, int64_t how) {
  return at::smooth_l1_loss_backward(dy, x, target, reduction(how), beta);
});
ATEN_BRIDGE_EXPORT(SoftMarginLoss, [](const Tensor& x, const Tensor& target, int64_t how) {
  return at::soft_margin_loss(x, target, reduction(how));
});
ATEN_BRIDGE_EXPORT(SoftMarginLossGrad,
                   [](const Tensor& x, const Tensor& target, const Tensor& dy, int64_t how) {
                     return at::soft_margin_loss_backward(dy, x, target, reduction(how));
                   });

//===--- normalisation ---===//

namespace {

// How many elements each channel of an example has.
int64_t pixels(const Tensor& x) { return c10::multiply_integers(x.sizes().slice(2)); }

// ATen's kernels for groups read weights as if they were contiguous.
Optional<Tensor> dense(OptionalTensor weight) {
  return weight.has_value() ? Optional<Tensor>(weight->contiguous()) : Optional<Tensor>();
}

// Over the last `ndim` dimensions, which stay with size 1.
Tensor mean_of_last(const Tensor& x, int64_t ndim) {
  std::vector<int64_t> dims(static_cast<std::size_t>(ndim));
  std::iota(dims.begin(), dims.end(), -ndim);
  return x.mean(dims, /*keepdim=*/true);
}

// One value for each row of `x`, whose last `ndim` dimensions are the row.
Tensor like_rows(const Tensor& values, const Tensor& x, int64_t ndim) {
  std::vector<int64_t> sizes = x.sizes().vec();
  std::fill(sizes.end() - ndim, sizes.end(), 1);
  return values.view(sizes);
}

// As many dimensions as `x`, so that each value counts for a channel.
Tensor of_channels(const Tensor& values, const Tensor& x) {
  std::vector<int64_t> sizes(static_cast<std::size_t>(x.dim()), 1);
  sizes.at(1) = -1;
  return values.view(sizes);
}

}  // namespace

ATEN_BRIDGE_EXPORT(BatchNormExt, [](const Tensor& x, OptionalTensor weight, OptionalTensor bias,
                                    OptionalTensor mean, OptionalTensor var, bool training,
                                    double momentum, double eps, Tensor& y, Tensor& saved_mean,
                                    Tensor& saved_rstd) {
  // Without statistics ATen would read null; it takes y to lie in memory as x does.
  TORCH_CHECK(training || (mean.has_value() && var.has_value()),
              "batch_norm: expected running_mean and running_var where not training");
  at::native_batch_norm_out(y, saved_mean, saved_rstd, x.contiguous(), weight, bias, mean, var,
                            training, momentum, eps);
});
ATEN_BRIDGE_EXPORT(BatchNormGradExt, [](const Tensor& dy, const Tensor& x, OptionalTensor weight,
                                        OptionalTensor mean, OptionalTensor var,
                                        OptionalTensor saved_mean, OptionalTensor saved_rstd,
                                        bool training, double eps, IntArrayRef, Tensor& dx,
                                        Tensor& dweight, Tensor& dbias) {
  if (x.numel() == 0) {  // ATen divides by their number
    dx.zero_();
    dweight.zero_();
    dbias.zero_();
    return;
  }
  const auto [a, b, c] = at::native_batch_norm_backward(
      dy, x, weight, mean, var, saved_mean, saved_rstd, training, eps, {true, true, true});
  dx.copy_(a);
  dweight.copy_(b);
  dbias.copy_(c);
});
// The parts of a batch normalisation over several devices, which PyTorch has for CUDA only.
ATEN_BRIDGE_EXPORT(BatchNormStats, [](const Tensor& x, double eps, Tensor& mean, Tensor& rstd) {
  const Tensor rows = x.transpose(0, 1).flatten(1);
  const auto [var, average] = at::var_mean(rows, 1, /*unbiased=*/false);
  mean.copy_(average);
  rstd.copy_(at::rsqrt(var + eps));
});
ATEN_BRIDGE_EXPORT(BatchNormElemt, [](const Tensor& x, OptionalTensor weight, OptionalTensor bias,
                                      OptionalTensor mean, OptionalTensor rstd, double, Tensor& y) {
  y.copy_(x);
  if (mean.has_value()) {
    y.sub_(of_channels(*mean, x));
  }
  for (const auto& factor : {rstd, weight}) {
    if (factor.has_value()) {
      y.mul_(of_channels(*factor, x));
    }
  }
  if (bias.has_value()) {
    y.add_(of_channels(*bias, x));
  }
});
ATEN_BRIDGE_EXPORT(BatchNormGatherStatsWithCounts,
                   [](const Tensor&, const Tensor& means, const Tensor& rstds,
                      OptionalTensor running_mean, OptionalTensor running_var, double momentum,
                      double eps, OptionalTensor counts, Tensor& mean, Tensor& rstd) {
                     const Tensor count = counts.has_value() ? counts->unsqueeze(1)
                                                             : at::ones_like(means.slice(1, 0, 1));
                     const Tensor total = count.sum();
                     const Tensor average = (means * count).sum(0) / total;
                     const Tensor vars = rstds.pow(-2) - eps;
                     const Tensor squares = ((vars + (means - average).pow(2)) * count).sum(0);
                     mean.copy_(average);
                     rstd.copy_(at::rsqrt(squares / total + eps));
                     if (running_mean.has_value()) {
                       running_mean->lerp_(average, momentum);
                     }
                     if (running_var.has_value()) {
                       running_var->lerp_(squares / (total - 1), momentum);
                     }
                   });
ATEN_BRIDGE_EXPORT(GroupNorm, [](const Tensor& x, int64_t groups, OptionalTensor weight,
                                 OptionalTensor bias, double eps, Tensor& y, Tensor& mean,
                                 Tensor& rstd) {
  const auto [a, b, c] = at::native_group_norm(x.contiguous(), dense(weight), dense(bias),
                                               x.size(0), x.size(1), pixels(x), groups, eps);
  y.copy_(a);
  mean.copy_(b);
  rstd.copy_(c);
});
ATEN_BRIDGE_EXPORT(GroupNormGrad, [](const Tensor& dy, const Tensor& x, const Tensor& mean,
                                     const Tensor& rstd, OptionalTensor weight, int64_t groups,
                                     bool, bool, bool, Tensor& dx, Tensor& dweight, Tensor& dbias) {
  const auto [a, b, c] =
      at::native_group_norm_backward(dy.contiguous(), x.contiguous(), mean, rstd, dense(weight),
                                     x.size(0), x.size(1), pixels(x), groups, {true, true, true});
  dx.copy_(a);
  dweight.copy_(b);
  dbias.copy_(c);
});
ATEN_BRIDGE_EXPORT(LayerNormExt,
                   [](const Tensor& x, IntArrayRef shape, OptionalTensor weight,
                      OptionalTensor bias, double eps, Tensor& y, Tensor& mean, Tensor& rstd) {
                     const auto [a, b, c] = at::native_layer_norm(x, shape, weight, bias, eps);
                     y.copy_(a);
                     mean.copy_(b);
                     rstd.copy_(c);
                   });
ATEN_BRIDGE_EXPORT(LayerNormGradExt, [](const Tensor& dy, const Tensor& x, IntArrayRef shape,
                                        const Tensor& mean, const Tensor& rstd,
                                        OptionalTensor weight, OptionalTensor bias, IntArrayRef,
                                        Tensor& dx, Tensor& dweight, Tensor& dbias) {
  // MindSpore keeps both in float32, also of float64.
  const auto [a, b, c] =
      at::native_layer_norm_backward(dy, x, shape, mean.to(x.scalar_type()),
                                     rstd.to(x.scalar_type()), weight, bias, {true, true, true});
  dx.copy_(a);
  dweight.copy_(b);
  dbias.copy_(c);
});
ATEN_BRIDGE_EXPORT(RmsNorm, [](const Tensor& x, const Tensor& weight, double eps, Tensor& y,
                               Tensor& rstd) {
  const Tensor wide = x.to(rstd.scalar_type());
  const int64_t ndim = weight.dim();
  rstd.copy_(at::rsqrt(mean_of_last(wide.square(), ndim) + eps).view(rstd.sizes()));
  y.copy_(wide * like_rows(rstd, x, ndim) * weight);
});
ATEN_BRIDGE_EXPORT(RmsNormGrad, [](const Tensor& dy, const Tensor& x, const Tensor& rstd,
                                   const Tensor& weight, Tensor& dx, Tensor& dweight) {
  const int64_t ndim = weight.dim();
  const Tensor scale = like_rows(rstd, x, ndim);
  const Tensor normal = x.to(rstd.scalar_type()) * scale;
  const Tensor d = dy.to(rstd.scalar_type());
  const Tensor dnormal = d * weight;
  dx.copy_((dnormal - normal * mean_of_last(dnormal * normal, ndim)) * scale);
  dweight.copy_((d * normal).sum_to_size(weight.sizes()));
});

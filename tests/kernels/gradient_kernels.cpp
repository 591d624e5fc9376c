// Kernels and their gradients by autograd: operators of ATen's with attributes, and functions for
// what gradient kernels do with their inputs and outputs.
#include <ATen/TensorOperators.h>
#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/elu.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/grid_sampler.h>
#include <ATen/ops/group_norm.h>
#include <ATen/ops/huber_loss.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/softplus.h>
#include <ATen/ops/topk.h>
#include <ATen/ops/upsample_bilinear2d.h>
#include <ATen/ops/where.h>
#include <aten_bridge.h>

#include <memory>
#include <tuple>

namespace {

using at::IntArrayRef;
using at::Tensor;
using at::TensorList;
using aten_bridge::attr;
using aten_bridge::gradient;
using aten_bridge::input;
using aten_bridge::meta;
using aten_bridge::output;
using aten_bridge::state;
using aten_bridge::Workspace;
using aten_bridge::workspace;
#if TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR < 2  // whose optional is not std::optional
using MaybeTensor = c10::optional<Tensor>;
#else
using MaybeTensor = std::optional<Tensor>;
#endif

// A kernel and its gradient, with the same options.
#define EXPORT_BOTH(Name, function, ...)           \
  ATEN_BRIDGE_EXPORT(Name, function, __VA_ARGS__); \
  ATEN_BRIDGE_EXPORT_GRAD(Name##Grad, function, __VA_ARGS__)

//===--- operators ---===//

Tensor leaky_relu(const Tensor& x, double slope) { return at::leaky_relu(x, slope); }
EXPORT_BOTH(LeakyRelu, leaky_relu, attr("negative_slope", 0.01), meta());
ATEN_BRIDGE_EXPORT_GRAD(LeakyReluGradGrad, gradient(leaky_relu), attr("negative_slope", 0.01));

Tensor elu(const Tensor& x, double alpha) { return at::elu(x, alpha); }
EXPORT_BOTH(Elu, elu, attr("alpha", 1.0), meta());

Tensor gelu(const Tensor& x, std::string_view approximate) {
  return at::gelu(x, c10::string_view(approximate.data(), approximate.size()));
}
EXPORT_BOTH(Gelu, gelu, attr("approximate", "none"), meta());

Tensor softplus(const Tensor& x, const at::Scalar& beta, double threshold) {
  return at::softplus(x, beta, threshold);
}
EXPORT_BOTH(Softplus, softplus, attr("beta", 1), attr("threshold", 20.0), meta());

Tensor softmax(const Tensor& x, int64_t dim) { return at::softmax(x, dim); }
EXPORT_BOTH(Softmax, softmax, attr("dim"), meta());

Tensor conv2d(const Tensor& x, const Tensor& weight, const MaybeTensor& bias, IntArrayRef stride,
              IntArrayRef padding, int64_t groups) {
  return at::conv2d(x, weight, bias, stride, padding, /*dilation=*/1, groups);
}
EXPORT_BOTH(Conv2d, conv2d, attr("stride", {1, 1}), attr("padding", {0, 0}), attr("groups", 1),
            meta());

Tensor layer_norm(const Tensor& x, const MaybeTensor& weight, const MaybeTensor& bias, double eps) {
  return at::layer_norm(x, {x.size(-1)}, weight, bias, eps);
}
EXPORT_BOTH(LayerNorm, layer_norm, attr("eps", 1e-5), meta([](const Tensor& x) { return x; }));

Tensor group_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, int64_t groups) {
  return at::group_norm(x, groups, weight, bias);
}
EXPORT_BOTH(GroupNorm, group_norm, attr("groups"), meta([](const Tensor& x) { return x; }));

Tensor avg_pool2d(const Tensor& x, IntArrayRef kernel_size, bool count_include_pad) {
  return at::avg_pool2d(x, kernel_size, /*stride=*/2, /*padding=*/1, /*ceil_mode=*/false,
                        count_include_pad);
}
EXPORT_BOTH(AvgPool2d, avg_pool2d, attr("kernel_size"), attr("count_include_pad", true), meta());

Tensor max_pool2d(const Tensor& x, IntArrayRef kernel_size) {
  return at::max_pool2d(x, kernel_size);
}
EXPORT_BOTH(MaxPool2d, max_pool2d, attr("kernel_size"), meta());

Tensor adaptive_avg_pool2d(const Tensor& x, IntArrayRef size) {
  return at::adaptive_avg_pool2d(x, size);
}
EXPORT_BOTH(AdaptiveAvgPool2d, adaptive_avg_pool2d, attr("size"), meta());

Tensor huber_loss(const Tensor& x, const Tensor& target, double delta) {
  return at::huber_loss(x, target, at::Reduction::Mean, delta);
}
EXPORT_BOTH(HuberLoss, huber_loss, attr("delta", 1.0), meta());

Tensor cross_entropy(const Tensor& x, const Tensor& target, const MaybeTensor& weight,
                     int64_t ignore_index, double label_smoothing) {
  // PyTorch has no derivative for the weight.
  const MaybeTensor constant = weight.has_value() ? MaybeTensor(weight->detach()) : MaybeTensor();
  return at::cross_entropy_loss(x, target, constant, at::Reduction::Mean, ignore_index,
                                label_smoothing);
}
EXPORT_BOTH(CrossEntropy, cross_entropy, attr("ignore_index", -100), attr("label_smoothing", 0.0),
            meta([](const Tensor& x) { return x.new_empty({}); }));

Tensor upsample(const Tensor& x, IntArrayRef size, bool align_corners) {
  return at::upsample_bilinear2d(x, size, align_corners);
}
EXPORT_BOTH(Upsample, upsample, attr("size"), attr("align_corners", false), meta());

Tensor grid_sample(const Tensor& x, const Tensor& grid, int64_t mode, bool align_corners) {
  return at::grid_sampler(x, grid, mode, /*padding_mode=*/0, align_corners);
}
EXPORT_BOTH(GridSample, grid_sample, attr("mode", 0), attr("align_corners", false),
            meta([](const Tensor& x, const Tensor& grid) {
              return x.new_empty({x.size(0), x.size(1), grid.size(1), grid.size(2)});
            }));

EXPORT_BOTH(Matmul, at::matmul, meta());

Tensor addmm(const Tensor& x, const Tensor& a, const Tensor& b, double beta, double alpha) {
  return at::addmm(x, a, b, beta, alpha);
}
EXPORT_BOTH(Addmm, addmm, attr("beta", 1.0), attr("alpha", 1.0), meta());

Tensor embedding(const Tensor& weight, const Tensor& index, int64_t padding_index, bool sparse) {
  return at::embedding(weight, index, padding_index, /*scale_grad_by_freq=*/false, sparse);
}
EXPORT_BOTH(Embedding, embedding, attr("padding_index", -1), attr("sparse", false), meta());

Tensor index_select(const Tensor& x, const Tensor& index, int64_t dim) {
  return at::index_select(x, dim, index);
}
EXPORT_BOTH(IndexSelect, index_select, attr("dim", 0), meta());

Tensor cumsum(const Tensor& x, int64_t dim) { return at::cumsum(x, dim); }
EXPORT_BOTH(Cumsum, cumsum, attr("dim"), meta());

std::tuple<Tensor, Tensor> topk(const Tensor& x, int64_t k) { return at::topk(x, k); }
EXPORT_BOTH(Topk, topk, attr("k"), meta());

// [cat]
Tensor cat(TensorList tensors, int64_t dim) { return at::cat(tensors, dim); }
ATEN_BRIDGE_EXPORT(Cat, cat, attr("dim", 0), meta());
ATEN_BRIDGE_EXPORT_GRAD(CatGrad, cat, attr("dim", 0));
// [/cat]

//===--- what else a signature may have ---===//

// Masks x; scales it by a number; the list is added to it.
std::tuple<Tensor, Tensor> everything(const Tensor& x, const Tensor& mask, TensorList list,
                                      const MaybeTensor& bias, double factor) {
  Tensor sum = at::where(mask, x, -x) * factor;
  for (const Tensor& tensor : list) {
    sum = sum + tensor * tensor;
  }
  return {bias.has_value() ? sum + *bias : sum, x * 2};
}
EXPORT_BOTH(Everything, everything, input("x").dtype(aten_bridge::kFloatingPoint), output("sum"),
            meta([](const Tensor& x) { return std::tuple<Tensor, Tensor>(x, x); }));

// [cube]
Tensor cube(const Tensor& x) { return x * x * x; }
ATEN_BRIDGE_EXPORT(Cube, cube, meta());
ATEN_BRIDGE_EXPORT_GRAD(CubeGrad, cube);
ATEN_BRIDGE_EXPORT_GRAD(CubeGradGrad, gradient(cube));
ATEN_BRIDGE_EXPORT_GRAD(CubeGradGradGrad, gradient(gradient(cube)));
// [/cube]

Tensor first(const Tensor& x, const Tensor& /*unused*/) { return x * 1; }
EXPORT_BOTH(First, first, meta());

EXPORT_BOTH(
    Conjugate, [](const Tensor& x) { return x * x.conj(); }, meta());

EXPORT_BOTH(
    WritesItsInput, [](const Tensor& x) { return Tensor(x).mul_(2); }, meta());

ATEN_BRIDGE_EXPORT_GRAD(LoopGrad, [](const Tensor& x) {
  Tensor y = at::empty_like(x);
  for (int64_t i = 0; i < x.numel(); ++i) {
    y.mutable_data_ptr<float>()[i] = 2 * x.const_data_ptr<float>()[i];
  }
  return y;
});
ATEN_BRIDGE_EXPORT_GRAD(IndexGrad, [](const Tensor& x) { return at::argmax(x); });

ATEN_BRIDGE_EXPORT_GRAD(WritesDataGrad, [](const Tensor& x, const Tensor& n) {
  x.detach().mul_(2);
  Tensor(n).add_(1);
  return x * n;
});

EXPORT_BOTH(
    Throws,
    [](const Tensor& x) -> Tensor {
      TORCH_CHECK(x.dim() == 7, "rank ", x.dim(), " is not seven");
      return x;
    },
    meta([](const Tensor& x) { return x; }));

class Scaling {
 public:
  explicit Scaling(double factor) : factor_(factor) {}
  Tensor operator()(const Tensor& x) const { return x * factor_; }

 private:
  double factor_;
};
EXPORT_BOTH(Scale, state<Scaling(double)>(), attr("factor", 2.0),
            meta([](const Tensor& x) { return x; }));

Tensor with_workspace(const Tensor& x, Workspace<double> factor) {
  factor[0] = 3;
  return x * factor[0];
}
EXPORT_BOTH(WithWorkspace, with_workspace, workspace(1), meta([](const Tensor& x) { return x; }));

// Gradients in memory of what they are made from.
ATEN_BRIDGE_EXPORT_GRAD(TransposeGrad, [](const Tensor& x) { return x.t(); });
ATEN_BRIDGE_EXPORT_GRAD(SwapGrad, [](const Tensor& x, const Tensor& y) {
  return std::tuple<Tensor, Tensor>(y.view_as(y), x.view_as(x));
});

// Whether the graph of the last call of Watched is alive.
c10::weak_intrusive_ptr<c10::TensorImpl> last_saved(Tensor().getIntrusivePtr());
Tensor watched(const Tensor& x) {
  const Tensor saved = x * 1;
  last_saved = c10::weak_intrusive_ptr<c10::TensorImpl>(saved.getIntrusivePtr());
  return saved * saved;
}
ATEN_BRIDGE_EXPORT_GRAD(WatchedGrad, watched);
ATEN_BRIDGE_EXPORT(IsGraphAlive, [](Tensor& y) { y.fill_(!last_saved.expired()); });

// The gradient in a kernel of its own, with autograd inside.
ATEN_BRIDGE_EXPORT(
    SumOfSquares,
    [](const Tensor& x, Tensor& y, Tensor& gradient) {
      const Tensor leaf = x.detach().requires_grad_();
      const Tensor sum = (leaf * leaf).sum();
      sum.backward();
      y.copy_(sum.detach());
      gradient.copy_(leaf.grad());
    },
    aten_bridge::autograd(), meta([](const Tensor& x) {
      const Tensor leaf = x.detach().requires_grad_();
      (leaf * leaf).sum().backward();
      return std::tuple<Tensor, Tensor>(x.new_empty({}), leaf.grad());
    }));
ATEN_BRIDGE_EXPORT(Records, [](const Tensor& x, Tensor& y) {
  y.fill_((x.detach().requires_grad_() * 2).requires_grad());
});

}  // namespace

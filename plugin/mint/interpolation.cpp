// Images and signals of another size, and their gradients.
#include <ATen/ops/grid_sampler_2d.h>
#include <ATen/ops/grid_sampler_2d_backward.h>
#include <ATen/ops/grid_sampler_3d.h>
#include <ATen/ops/grid_sampler_3d_backward.h>
#include <ATen/ops/upsample_bicubic2d.h>
#include <ATen/ops/upsample_bicubic2d_backward.h>
#include <ATen/ops/upsample_bilinear2d.h>
#include <ATen/ops/upsample_bilinear2d_backward.h>
#include <ATen/ops/upsample_linear1d.h>
#include <ATen/ops/upsample_linear1d_backward.h>
#include <ATen/ops/upsample_nearest1d.h>
#include <ATen/ops/upsample_nearest1d_backward.h>
#include <ATen/ops/upsample_nearest2d.h>
#include <ATen/ops/upsample_nearest2d_backward.h>
#include <ATen/ops/upsample_nearest3d.h>
#include <ATen/ops/upsample_nearest3d_backward.h>
#include <ATen/ops/upsample_trilinear3d.h>
#include <ATen/ops/upsample_trilinear3d_backward.h>

#include "mint.h"

using namespace mint;  // NOLINT(google-build-using-namespace)

namespace {

using Scales = Optional<std::vector<double>>;

Optional<double> scale(const Scales& scales, std::size_t dim) {
  return scales.has_value() ? Optional<double>(scales->at(dim)) : Optional<double>();
}

using Upsample2d = Tensor& (*)(Tensor& y, const Tensor& x, IntArrayRef size, bool align,
                               Optional<double> height_scale, Optional<double> width_scale);

template <Upsample2d upsample_out>
void upsample_2d(const Tensor& x, OptionalIntArrayRef, const Scales& scales, bool align,
                 Tensor& y) {
  upsample_out(y, x, y.sizes().slice(2), align, scale(scales, 0), scale(scales, 1));
}

using Upsample2dBackward = Tensor& (*)(Tensor& dx, const Tensor& dy, IntArrayRef size,
                                       IntArrayRef x_size, bool align,
                                       Optional<double> height_scale, Optional<double> width_scale);

template <Upsample2dBackward backward_out>
void upsample_2d_backward(const Tensor& dy, IntArrayRef x_size, OptionalIntArrayRef,
                          const Scales& scales, bool align, Tensor& dx) {
  backward_out(dx, dy, dy.sizes().slice(2), x_size, align, scale(scales, 0), scale(scales, 1));
}

// In 2 and in 3 dimensions. MindSpore numbers modes and paddings as ATen does.
template <auto sample>
Tensor grid_sample(const Tensor& x, const Tensor& grid, int64_t mode, int64_t padding, bool align) {
  return sample(x, grid, mode, padding, align);
}
template <auto backward>
void grid_sample_backward(const Tensor& dy, const Tensor& x, const Tensor& grid, int64_t mode,
                          int64_t padding, bool align, IntArrayRef, Tensor& dx, Tensor& dgrid) {
  const auto [a, b] = backward(dy, x, grid, mode, padding, align, {true, true});
  dx.copy_(a);
  dgrid.copy_(b);
}

}  // namespace

ATEN_BRIDGE_EXPORT(UpsampleLinear1D, [](const Tensor& x, OptionalIntArrayRef, const Scales& scales,
                                        bool align, Tensor& y) {
  at::upsample_linear1d_out(y, x, y.sizes().slice(2), align, scale(scales, 0));
});
ATEN_BRIDGE_EXPORT(UpsampleLinear1DGrad, [](const Tensor& dy, IntArrayRef size, OptionalIntArrayRef,
                                            const Scales& scales, bool align, Tensor& dx) {
  at::upsample_linear1d_backward_out(dx, dy, dy.sizes().slice(2), size, align, scale(scales, 0));
});
ATEN_BRIDGE_EXPORT(UpsampleBilinear2D, upsample_2d<at::upsample_bilinear2d_out>);
ATEN_BRIDGE_EXPORT(UpsampleBilinear2DGrad,
                   upsample_2d_backward<at::upsample_bilinear2d_backward_out>);
ATEN_BRIDGE_EXPORT(UpsampleBicubic2D, upsample_2d<at::upsample_bicubic2d_out>);
ATEN_BRIDGE_EXPORT(UpsampleBicubic2DGrad,
                   upsample_2d_backward<at::upsample_bicubic2d_backward_out>);
ATEN_BRIDGE_EXPORT(UpsampleTrilinear3D, [](const Tensor& x, OptionalIntArrayRef,
                                           const Scales& scales, bool align, Tensor& y) {
  at::upsample_trilinear3d_out(y, x, y.sizes().slice(2), align, scale(scales, 0), scale(scales, 1),
                               scale(scales, 2));
});
ATEN_BRIDGE_EXPORT(UpsampleTrilinear3DGrad, [](const Tensor& dy, IntArrayRef size,
                                               OptionalIntArrayRef, const Scales& scales,
                                               bool align, Tensor& dx) {
  at::upsample_trilinear3d_backward_out(dx, dy, dy.sizes().slice(2), size, align, scale(scales, 0),
                                        scale(scales, 1), scale(scales, 2));
});

//===--- the nearest ---===//

ATEN_BRIDGE_EXPORT(UpsampleNearest1D,
                   [](const Tensor& x, OptionalIntArrayRef, const Scales& scales, Tensor& y) {
                     at::upsample_nearest1d_out(y, x, y.sizes().slice(2), scale(scales, 0));
                   });
ATEN_BRIDGE_EXPORT(UpsampleNearest1DGrad, [](const Tensor& dy, IntArrayRef size,
                                             OptionalIntArrayRef, const Scales& scales,
                                             Tensor& dx) {
  at::upsample_nearest1d_backward_out(dx, dy, dy.sizes().slice(2), size, scale(scales, 0));
});
ATEN_BRIDGE_EXPORT(UpsampleNearest2D, [](const Tensor& x, OptionalIntArrayRef, const Scales& scales,
                                         Tensor& y) {
  at::upsample_nearest2d_out(y, x, y.sizes().slice(2), scale(scales, 0), scale(scales, 1));
});
ATEN_BRIDGE_EXPORT(UpsampleNearest2DGrad,
                   [](const Tensor& dy, IntArrayRef size, OptionalIntArrayRef, const Scales& scales,
                      Tensor& dx) {
                     at::upsample_nearest2d_backward_out(dx, dy, dy.sizes().slice(2), size,
                                                         scale(scales, 0), scale(scales, 1));
                   });
ATEN_BRIDGE_EXPORT(UpsampleNearest3D,
                   [](const Tensor& x, OptionalIntArrayRef, const Scales& scales, Tensor& y) {
                     at::upsample_nearest3d_out(y, x, y.sizes().slice(2), scale(scales, 0),
                                                scale(scales, 1), scale(scales, 2));
                   });
ATEN_BRIDGE_EXPORT(UpsampleNearest3DGrad, [](const Tensor& dy, IntArrayRef size,
                                             OptionalIntArrayRef, const Scales& scales,
                                             Tensor& dx) {
  at::upsample_nearest3d_backward_out(dx, dy, dy.sizes().slice(2), size, scale(scales, 0),
                                      scale(scales, 1), scale(scales, 2));
});

//===--- samples at given places ---===//

ATEN_BRIDGE_EXPORT(GridSampler2D, grid_sample<at::grid_sampler_2d>);
ATEN_BRIDGE_EXPORT(GridSampler2DGrad, grid_sample_backward<at::grid_sampler_2d_backward>);
ATEN_BRIDGE_EXPORT(GridSampler3D, grid_sample<at::grid_sampler_3d>);
ATEN_BRIDGE_EXPORT(GridSampler3DGrad, grid_sample_backward<at::grid_sampler_3d_backward>);

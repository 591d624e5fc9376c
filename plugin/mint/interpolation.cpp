// Images and signals of another size, and their gradients.
#include <ATen/ops/upsample_bicubic2d.h>
#include <ATen/ops/upsample_bicubic2d_backward.h>
#include <ATen/ops/upsample_bilinear2d.h>
#include <ATen/ops/upsample_bilinear2d_backward.h>
#include <ATen/ops/upsample_linear1d.h>
#include <ATen/ops/upsample_linear1d_backward.h>

#include "mint.h"

using namespace mint;  // NOLINT(google-build-using-namespace)

namespace {

using Scales = std::optional<std::vector<double>>;

std::optional<double> scale(const Scales& scales, std::size_t dim) {
  return scales.has_value() ? std::optional<double>(scales->at(dim)) : std::nullopt;
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
ATEN_BRIDGE_EXPORT(UpsampleBilinear2D, [](const Tensor& x, OptionalIntArrayRef,
                                          const Scales& scales, bool align, Tensor& y) {
  at::upsample_bilinear2d_out(y, x, y.sizes().slice(2), align, scale(scales, 0), scale(scales, 1));
});
ATEN_BRIDGE_EXPORT(UpsampleBilinear2DGrad,
                   [](const Tensor& dy, IntArrayRef size, OptionalIntArrayRef, const Scales& scales,
                      bool align, Tensor& dx) {
                     at::upsample_bilinear2d_backward_out(dx, dy, dy.sizes().slice(2), size, align,
                                                          scale(scales, 0), scale(scales, 1));
                   });
ATEN_BRIDGE_EXPORT(UpsampleBicubic2D, [](const Tensor& x, OptionalIntArrayRef, const Scales& scales,
                                         bool align, Tensor& y) {
  at::upsample_bicubic2d_out(y, x, y.sizes().slice(2), align, scale(scales, 0), scale(scales, 1));
});
ATEN_BRIDGE_EXPORT(UpsampleBicubic2DGrad,
                   [](const Tensor& dy, IntArrayRef size, OptionalIntArrayRef, const Scales& scales,
                      bool align, Tensor& dx) {
                     at::upsample_bicubic2d_backward_out(dx, dy, dy.sizes().slice(2), size, align,
                                                         scale(scales, 0), scale(scales, 1));
                   });

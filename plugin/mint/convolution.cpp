// Convolutions, pooling, interpolation and padding, and their gradients.
#include <ATen/ops/_adaptive_avg_pool2d.h>
#include <ATen/ops/_adaptive_avg_pool2d_backward.h>
#include <ATen/ops/_adaptive_avg_pool3d.h>
#include <ATen/ops/_adaptive_avg_pool3d_backward.h>
#include <ATen/ops/adaptive_avg_pool1d.h>
#include <ATen/ops/adaptive_max_pool1d.h>
#include <ATen/ops/adaptive_max_pool2d.h>
#include <ATen/ops/adaptive_max_pool2d_backward.h>
#include <ATen/ops/avg_pool1d.h>
#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/avg_pool2d_backward.h>
#include <ATen/ops/avg_pool3d.h>
#include <ATen/ops/avg_pool3d_backward.h>
#include <ATen/ops/col2im.h>
#include <ATen/ops/conv1d.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/conv3d.h>
#include <ATen/ops/conv_transpose2d.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/im2col.h>
#include <ATen/ops/max_pool2d_with_indices.h>
#include <ATen/ops/max_pool2d_with_indices_backward.h>
#include <ATen/ops/max_unpool2d.h>
#include <ATen/ops/reflection_pad1d.h>
#include <ATen/ops/reflection_pad2d.h>
#include <ATen/ops/reflection_pad3d.h>
#include <ATen/ops/replication_pad1d.h>
#include <ATen/ops/replication_pad2d.h>
#include <ATen/ops/replication_pad3d.h>

#include "mint.h"

using namespace mint;  // NOLINT(google-build-using-namespace)

namespace {

// One number stands for all dimensions.
std::vector<int64_t> each(IntArrayRef values, std::size_t count) {
  return values.size() == 1 ? std::vector<int64_t>(count, values[0]) : values.vec();
}

void copy_if(bool is_wanted, Tensor& output, const Tensor& result) {
  if (is_wanted && result.defined()) {
    output.copy_(result);
  }
}

// ATen's own functions take the padding as a string too.
using Convolution = Tensor (*)(const Tensor& x, const Tensor& weight, OptionalTensor bias,
                               IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation,
                               int64_t groups);

// In 2 and in 3 dimensions. Without a stride the windows lie side by side.
template <auto pool>
Tensor average(const Tensor& x, IntArrayRef kernel, OptionalIntArrayRef stride, IntArrayRef padding,
               bool ceil, bool count_padding, OptionalInt divisor) {
  return pool(x, kernel, stride.value_or(IntArrayRef()), padding, ceil, count_padding, divisor);
}
template <auto backward>
Tensor average_backward(const Tensor& dy, const Tensor& x, IntArrayRef kernel,
                        OptionalIntArrayRef stride, IntArrayRef padding, bool ceil,
                        bool count_padding, OptionalInt divisor) {
  return backward(dy, x, kernel, stride.value_or(IntArrayRef()), padding, ceil, count_padding,
                  divisor);
}

// This is also the gradient of col2im.
Tensor im2col(const Tensor& x, IntArrayRef kernel, IntArrayRef dilation, IntArrayRef padding,
              IntArrayRef stride) {
  return at::im2col(x, each(kernel, 2), each(dilation, 2), each(padding, 2), each(stride, 2));
}

}  // namespace

//===--- convolutions ---===//

ATEN_BRIDGE_EXPORT(Conv1DExt, static_cast<Convolution>(at::conv1d));
ATEN_BRIDGE_EXPORT(Conv2DExt, static_cast<Convolution>(at::conv2d));
ATEN_BRIDGE_EXPORT(Conv2DPadding, [](const Tensor& x, const Tensor& weight, OptionalTensor bias,
                                     IntArrayRef stride, int64_t padding, IntArrayRef dilation,
                                     int64_t groups) {
  // MindSpore's numbers: 1 same, 2 valid.
  return at::conv2d(x, weight, bias, stride, padding == 1 ? "same" : "valid", dilation, groups);
});
ATEN_BRIDGE_EXPORT(Conv3DExt, static_cast<Convolution>(at::conv3d));
ATEN_BRIDGE_EXPORT(ConvTranspose2D, [](const Tensor& x, const Tensor& weight, OptionalTensor bias,
                                       IntArrayRef stride, IntArrayRef padding,
                                       IntArrayRef output_padding, int64_t groups,
                                       IntArrayRef dilation) {
  return at::conv_transpose2d(x, weight, bias, stride, padding, output_padding, groups, dilation);
});
ATEN_BRIDGE_EXPORT(ConvolutionGrad, [](const Tensor& dy, const Tensor& x, const Tensor& weight,
                                       OptionalTensor bias, IntArrayRef stride, IntArrayRef padding,
                                       IntArrayRef dilation, bool transposed,
                                       IntArrayRef output_padding, int64_t groups, IntArrayRef mask,
                                       Tensor& dx, Tensor& dweight, Tensor& dbias) {
  const auto count = static_cast<std::size_t>(weight.dim() - 2);
  const std::vector<int64_t> bias_sizes = {dy.size(weight.dim() == x.dim() ? 1 : 0)};
  const auto wanted = [&](std::size_t i) { return i >= mask.size() || mask[i]; };
  const auto [a, b, c] = at::convolution_backward(
      dy, x, weight, bias.has_value() ? bias->sizes() : IntArrayRef(bias_sizes),
      each(stride, count), each(padding, count), each(dilation, count), transposed,
      each(output_padding, count), groups, {wanted(0), wanted(1), wanted(2)});
  // ATen may compute one that is not wanted, and in other dimensions.
  copy_if(wanted(0), dx, a);
  copy_if(wanted(1), dweight, b);
  copy_if(wanted(2), dbias, c);
});

//===--- pooling ---===//

ATEN_BRIDGE_EXPORT(AdaptiveAvgPool1D, [](const Tensor& x, IntArrayRef size) {
  return at::adaptive_avg_pool1d(x, size);
});
ATEN_BRIDGE_EXPORT(AdaptiveAvgPool2DExt, [](const Tensor& x, IntArrayRef, Tensor& y) {
  y.copy_(at::_adaptive_avg_pool2d(x, y.sizes().slice(y.dim() - 2)));
});
ATEN_BRIDGE_EXPORT(AdaptiveAvgPool2DGradExt, [](const Tensor& dy, const Tensor& x) {
  return at::_adaptive_avg_pool2d_backward(dy, x);
});
ATEN_BRIDGE_EXPORT(AdaptiveAvgPool3DExt, [](const Tensor& x, IntArrayRef, Tensor& y) {
  y.copy_(at::_adaptive_avg_pool3d(x, y.sizes().slice(y.dim() - 3)));
});
ATEN_BRIDGE_EXPORT(AdaptiveAvgPool3DGradExt, [](const Tensor& dy, const Tensor& x) {
  return at::_adaptive_avg_pool3d_backward(dy, x);
});
ATEN_BRIDGE_EXPORT(AdaptiveMaxPool1D, [](const Tensor& x, IntArrayRef size) {
  return at::adaptive_max_pool1d(x, size);
});
ATEN_BRIDGE_EXPORT(AvgPool1D, [](const Tensor& x, IntArrayRef kernel, OptionalIntArrayRef stride,
                                 IntArrayRef padding, bool ceil, bool count_padding) {
  return at::avg_pool1d(x, kernel, stride.value_or(IntArrayRef()), padding, ceil, count_padding);
});
ATEN_BRIDGE_EXPORT(AvgPool2D, average<at::avg_pool2d>);
ATEN_BRIDGE_EXPORT(AvgPool2DGrad, average_backward<at::avg_pool2d_backward>);
ATEN_BRIDGE_EXPORT(AvgPool3DExt, average<at::avg_pool3d>);
ATEN_BRIDGE_EXPORT(AvgPool3DGradExt, average_backward<at::avg_pool3d_backward>);

ATEN_BRIDGE_EXPORT(AdaptiveMaxPool2D, [](const Tensor& x, IntArrayRef, Tensor& y, Tensor& indices) {
  const auto [a, b] = at::adaptive_max_pool2d(x, y.sizes().slice(y.dim() - 2));
  y.copy_(a);
  indices.copy_(b);
});
ATEN_BRIDGE_EXPORT(AdaptiveMaxPool2DGrad,
                   [](const Tensor& dy, const Tensor& x, const Tensor& indices) {
                     return at::adaptive_max_pool2d_backward(dy, x, indices.to(at::kLong));
                   });
ATEN_BRIDGE_EXPORT(MaxPoolWithIndices,
                   [](const Tensor& x, IntArrayRef kernel, OptionalIntArrayRef stride,
                      IntArrayRef padding, IntArrayRef dilation, bool ceil, at::ScalarType) {
                     return at::max_pool2d_with_indices(x, kernel, stride.value_or(IntArrayRef()),
                                                        padding, dilation, ceil);
                   });
ATEN_BRIDGE_EXPORT(MaxPoolGradWithIndices, [](const Tensor& x, const Tensor& dy,
                                              const Tensor& indices, IntArrayRef kernel,
                                              OptionalIntArrayRef stride, IntArrayRef padding,
                                              IntArrayRef dilation, bool ceil, at::ScalarType) {
  return at::max_pool2d_with_indices_backward(dy, x, kernel, stride.value_or(IntArrayRef()),
                                              padding, dilation, ceil, indices);
});
ATEN_BRIDGE_EXPORT(MaxUnpool2DExt,
                   [](const Tensor& x, const Tensor& indices, IntArrayRef, OptionalIntArrayRef,
                      IntArrayRef, OptionalIntArrayRef, Tensor& y) {
                     at::max_unpool2d_out(y, x, indices, y.sizes().slice(y.dim() - 2));
                   });

//===--- windows and padding ---===//

ATEN_BRIDGE_EXPORT(Col2ImExt, [](const Tensor& x, IntArrayRef size, IntArrayRef kernel,
                                 IntArrayRef dilation, IntArrayRef padding, IntArrayRef stride) {
  return at::col2im(x, each(size, 2), each(kernel, 2), each(dilation, 2), each(padding, 2),
                    each(stride, 2));
});
ATEN_BRIDGE_EXPORT(Col2ImGrad, im2col);
ATEN_BRIDGE_EXPORT(Im2ColExt, im2col);
ATEN_BRIDGE_EXPORT(ReflectionPad1D, [](const Tensor& x, IntArrayRef padding, Tensor& y) {
  at::reflection_pad1d_out(y, x, padding);
});
ATEN_BRIDGE_EXPORT(ReflectionPad2D, [](const Tensor& x, IntArrayRef padding, Tensor& y) {
  at::reflection_pad2d_out(y, x, padding);
});
ATEN_BRIDGE_EXPORT(ReflectionPad3D, [](const Tensor& x, IntArrayRef padding, Tensor& y) {
  at::reflection_pad3d_out(y, x, padding);
});
ATEN_BRIDGE_EXPORT(ReplicationPad1D, [](const Tensor& x, IntArrayRef padding, Tensor& y) {
  at::replication_pad1d_out(y, x, padding);
});
ATEN_BRIDGE_EXPORT(ReplicationPad2D, [](const Tensor& x, IntArrayRef padding, Tensor& y) {
  at::replication_pad2d_out(y, x, padding);
});
ATEN_BRIDGE_EXPORT(ReplicationPad3D, [](const Tensor& x, IntArrayRef padding, Tensor& y) {
  at::replication_pad3d_out(y, x, padding);
});

// mmcv 2.2.0: functions that write their arguments and take int and float, called through a
// registry of devices of the package's own.
#include <ATen/ATen.h>
#include <aten_bridge.h>

#include <tuple>

// The package has no header for them.
void roi_align_forward(at::Tensor input, at::Tensor rois, at::Tensor output, at::Tensor argmax_y,
                       at::Tensor argmax_x, int aligned_height, int aligned_width,
                       float spatial_scale, int sampling_ratio, int pool_mode, bool aligned);
void roi_align_backward(at::Tensor grad_output, at::Tensor rois, at::Tensor argmax_y,
                        at::Tensor argmax_x, at::Tensor grad_input, int aligned_height,
                        int aligned_width, float spatial_scale, int sampling_ratio, int pool_mode,
                        bool aligned);
void modulated_deform_conv_forward(at::Tensor input, at::Tensor weight, at::Tensor bias,
                                   at::Tensor ones, at::Tensor offset, at::Tensor mask,
                                   at::Tensor output, at::Tensor columns, int kernel_h,
                                   int kernel_w, const int stride_h, const int stride_w,
                                   const int pad_h, const int pad_w, const int dilation_h,
                                   const int dilation_w, const int group,
                                   const int deformable_group, const bool with_bias);
void modulated_deform_conv_backward(
    at::Tensor input, at::Tensor weight, at::Tensor bias, at::Tensor ones, at::Tensor offset,
    at::Tensor mask, at::Tensor columns, at::Tensor grad_input, at::Tensor grad_weight,
    at::Tensor grad_bias, at::Tensor grad_offset, at::Tensor grad_mask, at::Tensor grad_output,
    int kernel_h, int kernel_w, int stride_h, int stride_w, int pad_h, int pad_w, int dilation_h,
    int dilation_w, int group, int deformable_group, const bool with_bias);

using at::Tensor;

static constexpr int kMean = 1;

// [roi_align]
// Regions of [K, 5]: the picture's number, then x and y of two corners.
static Tensor roi_align_meta(const Tensor& x, const Tensor& rois, double /*spatial_scale*/,
                             at::IntArrayRef output_size, int64_t /*sampling_ratio*/) {
  return at::empty({rois.size(0), x.size(1), output_size[0], output_size[1]}, x.options());
}
static Tensor roi_align(const Tensor& x, const Tensor& rois, double spatial_scale,
                        at::IntArrayRef output_size, int64_t sampling_ratio) {
  const Tensor unused = at::empty({0}, x.options());
  Tensor y = roi_align_meta(x, rois, spatial_scale, output_size, sampling_ratio).zero_();
  roi_align_forward(x, rois, y, unused, unused, static_cast<int>(output_size[0]),
                    static_cast<int>(output_size[1]), static_cast<float>(spatial_scale),
                    static_cast<int>(sampling_ratio), kMean, /*aligned=*/true);
  return y;
}
ATEN_BRIDGE_EXPORT(RoiAlign, roi_align, aten_bridge::attr("spatial_scale"),
                   aten_bridge::attr("output_size"), aten_bridge::attr("sampling_ratio", 0),
                   aten_bridge::meta(roi_align_meta));
// [/roi_align]

static std::tuple<Tensor, Tensor> roi_align_grad(const Tensor& x, const Tensor& rois,
                                                 const Tensor& dy, double spatial_scale,
                                                 at::IntArrayRef /*output_size*/,
                                                 int64_t sampling_ratio) {
  const Tensor unused = at::empty({0}, x.options());
  Tensor dx = at::zeros_like(x);
  roi_align_backward(dy, rois, unused, unused, dx, static_cast<int>(dy.size(2)),
                     static_cast<int>(dy.size(3)), static_cast<float>(spatial_scale),
                     static_cast<int>(sampling_ratio), kMean, /*aligned=*/true);
  return {dx, at::zeros_like(rois)};
}
ATEN_BRIDGE_EXPORT(RoiAlignGrad, roi_align_grad, aten_bridge::attr("spatial_scale"),
                   aten_bridge::attr("output_size"), aten_bridge::attr("sampling_ratio", 0));

// A convolution of stride 1, each of whose taps reads x at an offset of its own.
static Tensor deform_conv_meta(const Tensor& x, const Tensor& weight, const Tensor& /*bias*/,
                               const Tensor& /*offset*/, const Tensor& /*mask*/, int64_t padding) {
  return at::empty({x.size(0), weight.size(0), x.size(2) + 2 * padding - weight.size(2) + 1,
                    x.size(3) + 2 * padding - weight.size(3) + 1},
                   x.options());
}
static Tensor deform_conv(const Tensor& x, const Tensor& weight, const Tensor& bias,
                          const Tensor& offset, const Tensor& mask, int64_t padding) {
  Tensor y = deform_conv_meta(x, weight, bias, offset, mask, padding);
  const Tensor ones = at::empty({0}, x.options());
  const Tensor columns = at::empty({0}, x.options());
  const int p = static_cast<int>(padding);
  modulated_deform_conv_forward(x, weight, bias, ones, offset, mask, y, columns,
                                static_cast<int>(weight.size(2)), static_cast<int>(weight.size(3)),
                                1, 1, p, p, 1, 1, /*group=*/1, /*deformable_group=*/1, true);
  return y;
}
ATEN_BRIDGE_EXPORT(DeformConv, deform_conv, aten_bridge::attr("padding", 0),
                   aten_bridge::meta(deform_conv_meta));

static std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> deform_conv_grad(
    const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& offset,
    const Tensor& mask, const Tensor& dy, int64_t padding) {
  const Tensor of_x = at::zeros_like(x);
  const Tensor of_weight = at::zeros_like(weight);
  const Tensor of_bias = at::zeros_like(bias);
  const Tensor of_offset = at::zeros_like(offset);
  const Tensor of_mask = at::zeros_like(mask);
  const Tensor ones = at::empty({0}, x.options());
  const Tensor columns = at::empty({0}, x.options());
  const int p = static_cast<int>(padding);
  modulated_deform_conv_backward(x, weight, bias, ones, offset, mask, columns, of_x, of_weight,
                                 of_bias, of_offset, of_mask, dy, static_cast<int>(weight.size(2)),
                                 static_cast<int>(weight.size(3)), 1, 1, p, p, 1, 1, 1, 1, true);
  return {of_x, of_weight, of_bias, of_offset, of_mask};
}
ATEN_BRIDGE_EXPORT(DeformConvGrad, deform_conv_grad, aten_bridge::attr("padding", 0));

// Shapes that depend on attributes, and sizes that are known only when the network runs.
#include <ATen/ops/upsample_bilinear2d.h>
#include <aten_bridge.h>

using aten_bridge::attr;

// [export]
at::Tensor upsample(const at::Tensor& x, double scale, bool align_corners) {
  const double scales[] = {scale, scale};
  return at::upsample_bilinear2d(x, /*output_size=*/std::nullopt, align_corners, scales);
}
ATEN_BRIDGE_EXPORT(Upsample, upsample, attr("scale"), attr("align_corners", false),
                   aten_bridge::meta(), aten_bridge::input("x").sizes("N", "C", "H", "W"));
// [/export]

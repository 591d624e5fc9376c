"""Images of another size."""

from __future__ import annotations

from mindspore.mint.nn import functional as F

from aten_bridge.mint._replace import replaces

_interpolate = F.interpolate


@replaces("nn.functional.interpolate")
def interpolate(
    input,
    size=None,
    scale_factor=None,
    mode="nearest",
    align_corners=None,
    recompute_scale_factor=None,
):
    if mode == "area" and size is not None:
        pools = (F.adaptive_avg_pool1d, F.adaptive_avg_pool2d, F.adaptive_avg_pool3d)
        return pools[input.ndim - 3](input, size)
    # A whole number is refused as a scale.
    if isinstance(scale_factor, int):
        scale_factor = float(scale_factor)
    elif scale_factor is not None and not isinstance(scale_factor, float):
        scale_factor = tuple(float(scale) for scale in scale_factor)
    return _interpolate(input, size, scale_factor, mode, align_corners, recompute_scale_factor)


@replaces("nn.functional.upsample")
def upsample(input, size=None, scale_factor=None, mode="nearest", align_corners=None):
    return interpolate(input, size, scale_factor, mode, align_corners)

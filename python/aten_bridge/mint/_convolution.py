"""Convolutions, pooling and padding."""

from __future__ import annotations

from collections.abc import Callable

from mindspore import mint
from mindspore.mint.nn import functional as F
from mindspore.ops.auto_generate import MaxPoolWithIndices, gen_ops_prim

from aten_bridge.mint._replace import REPLACED, original_of, replaces

_avg_pool2d, _pad, _unfold = F.avg_pool2d, F.pad, F.unfold


def _stride_or_none(stride):
    """None, which is the kernel's size, for an empty list.

    A graph compares a number with a list at run time only, and then has branches to join.
    """
    if isinstance(stride, (tuple, list)) and len(stride) == 0:
        return None
    return stride


@replaces("nn.functional.max_pool2d")
def max_pool2d(
    input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False
):
    stride = _stride_or_none(stride)
    pool = MaxPoolWithIndices(kernel_size, stride, padding, dilation, ceil_mode)
    output, indices = pool(input)
    return (output, indices) if return_indices else output


@replaces("nn.functional.avg_pool2d")
def avg_pool2d(
    input,
    kernel_size,
    stride=None,
    padding=0,
    ceil_mode=False,
    count_include_pad=True,
    divisor_override=None,
):
    stride = _stride_or_none(stride)
    return _avg_pool2d(
        input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )


def _convolution(original: Callable, ndim: int) -> Callable:
    def convolve(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
        if isinstance(padding, str):
            input, padding = _padded(input, weight, stride, padding, dilation, ndim)
        return original(input, weight, bias, stride, padding, dilation, groups)

    return convolve


def _padded(input, weight, stride, padding, dilation, ndim):
    """The input, and the padding in numbers: as a name it would get a gradient of zeros."""
    if padding not in ("same", "valid"):
        raise ValueError(f"conv{ndim}d: expected the padding 'same' or 'valid', got {padding!r}")
    if padding == "valid":
        return input, (0,) * ndim
    if any(step != 1 for step in _each(stride, ndim)):
        raise ValueError(f"conv{ndim}d: expected a stride of 1 with the padding 'same'")
    steps = _each(dilation, ndim)
    amounts = [steps[i] * (weight.shape[i + 2] - 1) for i in range(ndim)]
    # An odd one has its last element at the end; pad() counts from the last dimension.
    ends = []
    for amount in reversed(amounts):
        ends += [0, amount % 2]
    input = F.pad(input, ends) if sum(ends) else input
    return input, tuple([amount // 2 for amount in amounts])


def _each(value, count: int):
    values = (value,) if isinstance(value, int) else tuple(value)
    return values * count if len(values) == 1 else values


conv1d, conv2d, conv3d = (
    _convolution(original_of(f"nn.functional.conv{ndim}d"), ndim) for ndim in (1, 2, 3)
)
for _ndim, _function in enumerate((conv1d, conv2d, conv3d), 1):
    REPLACED.append((original_of(f"nn.functional.conv{_ndim}d"), _function))
    # What the layers of mint.nn call.
    REPLACED.append((getattr(gen_ops_prim, f"conv{_ndim}d_padding_op"), _function))


@replaces("conv_tbc")
def conv_tbc(input, weight, bias, pad=0):
    image = mint.permute(input, (1, 2, 0))
    return mint.permute(
        conv1d(image, mint.permute(weight, (2, 1, 0)), bias, padding=pad), (2, 0, 1)
    )


@replaces("nn.functional.unfold")
def unfold(input, kernel_size, dilation=1, padding=0, stride=1):
    if input.ndim == 4:
        return _unfold(input, kernel_size, dilation, padding, stride)
    return _unfold(input.unsqueeze(0), kernel_size, dilation, padding, stride)[0]


@replaces("nn.functional.pad")  # MindSpore's gradient takes views for whole tensors
def pad_(input, pad, mode="constant", value=None):
    rest = input.ndim - len(pad) // 2
    if mode not in ("circular", "reflect", "replicate") or value or rest not in (1, 2):
        return _pad(input, pad, mode, value)
    for i in range(len(pad) // 2):
        input = _extended(input, input.ndim - 1 - i, pad[2 * i], pad[2 * i + 1], mode)
    return input


def _extended(input, dim, before, after, mode):
    """Extends it by so many elements before the first and after the last; fewer where negative."""
    input = mint.narrow(
        input, dim, max(-before, 0), input.shape[dim] + min(before, 0) + min(after, 0)
    )
    size = input.shape[dim]
    most = size - 1 if mode == "reflect" else size
    if mode != "replicate" and max(before, after) > most:
        raise ValueError(
            f"pad: expected at most {most} elements for mode {mode!r} in dimension {dim}, "
            f"got {max(before, after)}"
        )
    parts = [input]
    if before > 0:
        parts = [
            _beyond(input, dim, {"circular": size - before, "reflect": 1}, before, mode),
            input,
        ]
    if after > 0:
        begins = {"circular": 0, "reflect": size - 1 - after, "replicate": size - 1}
        parts.append(_beyond(input, dim, begins, after, mode))
    return mint.cat(parts, dim)


def _beyond(input, dim, begins, count, mode):
    begin = begins.get(mode, 0)
    if mode == "replicate":
        return mint.repeat_interleave(mint.narrow(input, dim, begin, 1), count, dim)
    part = mint.narrow(input, dim, begin, count)
    return mint.flip(part, (dim,)) if mode == "reflect" else part

"""Activations."""

from __future__ import annotations

import mindspore as ms
from mindspore import mint
from mindspore.mint.nn import functional as F

from aten_bridge.mint._numbers import beside, number_like, of_dtype
from aten_bridge.mint._replace import replaces

_elu = F.elu


@replaces("nn.functional.elu")
def elu(input, alpha=1.0, inplace=False):
    return _elu(input, float(alpha), inplace)


@replaces("npu_gelu")
def npu_gelu(input, approximate="none"):
    return F.gelu(input, approximate=approximate)


@replaces("nn.functional.hardshrink", ms.float64)
def hardshrink(input, lambd=0.5):
    lambd = number_like(lambd, input)
    between = mint.logical_and(input >= -lambd, input <= lambd)
    return mint.where(between, mint.zeros_like(input), input)


@replaces("nn.functional.softshrink", ms.float64)
def softshrink(input, lambd=0.5):
    lambd = number_like(lambd, input)
    # Times 0 between: NaN stays NaN.
    below = mint.where(input < -lambd, input + lambd, input * 0)
    return mint.where(input > lambd, input - lambd, below)


def _log_1_plus_exp(input):
    return F.softplus(input, 1, 40)  # from 40 on the rest is less than float64 shows


@replaces("nn.functional.logsigmoid", ms.float64)
def logsigmoid(input):
    return -_log_1_plus_exp(-input)


@replaces("nn.functional.mish", ms.float64, ms.bfloat16)
def mish(input):
    if input.dtype == ms.bfloat16:
        return F.mish(input.astype(ms.float32)).astype(ms.bfloat16)
    return input * mint.tanh(_log_1_plus_exp(input))


@replaces("nn.functional.selu", ms.float64)
def selu(input):
    below = mint.expm1(mint.clamp(input, max=0)) * number_like(1.6732632423543772848, input)
    return mint.where(input > 0, input, below) * number_like(1.0507009873554804934, input)


@replaces("nn.functional.prelu", ms.float64, ms.bfloat16)
def prelu(input, weight):
    if weight.numel() > 1:
        weight = mint.reshape(weight, (-1, *[1] * (input.ndim - 2)))
    return mint.where(input > 0, input, weight * input)


# MindSpore's gradient of the gradient reads beyond its inputs, which may end the process.
@replaces("nn.functional.threshold")
def threshold(input, threshold, value, inplace=False):
    value = of_dtype(value, input.dtype)
    output = mint.where(input <= beside(threshold, input), value, input).astype(input.dtype)
    return input.copy_(output) if inplace else output


@replaces("nn.functional.threshold_")
def threshold_(input, threshold, value):
    return input.copy_(F.threshold(input, threshold, value))

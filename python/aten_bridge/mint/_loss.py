"""Losses and normalisation."""

from __future__ import annotations

import mindspore as ms
from mindspore import Tensor, mint, ops
from mindspore.mint.nn import functional as F
from mindspore.nn.loss.loss import _check_cross_entropy_inputs
from mindspore.ops.auto_generate import gen_ops_prim
from mindspore.ops.primitive import constexpr

from aten_bridge.mint._activation import logsigmoid
from aten_bridge.mint._numbers import INTEGERS, number_like
from aten_bridge.mint._promotion import promotes
from aten_bridge.mint._reduction import moments
from aten_bridge.mint._replace import REPLACED, WITHIN, named_as, replaces

_mse_loss = F.mse_loss


def _reduced(loss: Tensor, reduction: str, batch: int = 1) -> Tensor:
    if reduction == "none":
        return loss
    if reduction == "batchmean":
        return mint.sum(loss) / batch
    if reduction not in ("mean", "sum"):
        raise ValueError(f"expected the reduction 'none', 'mean' or 'sum', got {reduction!r}")
    return mint.mean(loss) if reduction == "mean" else mint.sum(loss)


@replaces("nn.functional.cosine_embedding_loss")
def cosine_embedding_loss(input1, input2, target, margin=0.0, reduction="mean"):
    def squares(x):
        return mint.sum(x * x, -1) + 1e-12  # PyTorch's

    cosine = mint.sum(input1 * input2, -1) / mint.sqrt(squares(input1) * squares(input2))
    zeros = mint.zeros_like(cosine)
    loss = mint.where(target == 1, 1 - cosine, zeros)
    above = mint.clamp(cosine - number_like(margin, cosine), 0)
    loss = loss + mint.where(target == -1, above, zeros)
    return _reduced(loss, reduction)


@replaces("nn.functional.kl_div")  # MindSpore has no gradient of the target
def kl_div(input, target, reduction="mean", log_target=False):
    if log_target:
        loss = mint.exp(target) * (target - input)
    else:
        loss = mint.xlogy(target, target) - target * input
    return _reduced(loss, reduction, input.shape[0] if input.ndim else 1)


@replaces("nn.functional.l1_loss", *INTEGERS)
def l1_loss(input, target, reduction="mean"):
    return _reduced(mint.abs(input - target), reduction)


@promotes("nn.functional.mse_loss")
def mse_loss(input, target, reduction="mean"):
    return _mse_loss(input, target, reduction)


@replaces("nn.functional.binary_cross_entropy", ms.float64)
def binary_cross_entropy(input, target, weight=None, reduction="mean"):
    # Each logarithm at least -100, and the gradient's divisor at least 1e-12, as in PyTorch.
    of_one = mint.clamp(mint.log(input), -100)
    of_zero = mint.clamp(mint.log1p(-input), -100)
    loss = ops.stop_gradient((target - 1) * of_zero - target * of_one)
    slope = (input - target) / mint.clamp((1 - input) * input, number_like(1e-12, input))
    loss = loss + ops.stop_gradient(slope) * (input - ops.stop_gradient(input))
    loss = loss + ops.stop_gradient(of_zero - of_one) * (target - ops.stop_gradient(target))
    return _reduced(loss if weight is None else loss * weight, reduction)


@replaces("nn.functional.binary_cross_entropy_with_logits", ms.float64)
def binary_cross_entropy_with_logits(input, target, weight=None, reduction="mean", pos_weight=None):
    positive = 1 if pos_weight is None else (pos_weight - 1) * target + 1
    loss = (1 - target) * input - positive * logsigmoid(input)
    return _reduced(loss if weight is None else loss * weight, reduction)


_cross_entropy, _check_of_layer = ops.cross_entropy, _check_cross_entropy_inputs


@constexpr
def check_of_layer(logits_shape, labels_shape, logits_ndim, labels_ndim, logits, labels, name=None):
    """What the layer of mindspore.nn refuses, but for bfloat16."""
    dtypes = [ms.float32 if dtype == ms.bfloat16 else dtype for dtype in (logits, labels)]
    return _check_of_layer(logits_shape, labels_shape, logits_ndim, labels_ndim, *dtypes, name)


REPLACED.append((_check_of_layer, check_of_layer))


def cross_entropy_of_ops(
    input, target, weight=None, ignore_index=-100, reduction="mean", label_smoothing=0.0
):
    rest = weight, ignore_index, reduction, label_smoothing
    target = target.astype(ms.float32) if target.dtype == ms.bfloat16 else target
    if input.dtype != ms.bfloat16:
        return _cross_entropy(input, target, *rest)
    return _cross_entropy(input.astype(ms.float32), target, *rest).astype(ms.bfloat16)


REPLACED.append((_cross_entropy, named_as(_cross_entropy, cross_entropy_of_ops)))


# ===--- normalisation ---===


_layer_norm = F.layer_norm


@replaces("nn.functional.layer_norm", ms.float64)  # MindSpore keeps mean and variance in float32
def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5):
    dim = tuple(range(-len(normalized_shape), 0))
    if not dim or tuple(input.shape[dim[0] :]) != tuple(normalized_shape):
        return _layer_norm(input, normalized_shape, weight, bias, eps)  # which says what is wrong
    variance, mean = moments(input, dim, 0, True)
    output = (input - mean) * mint.rsqrt(variance + number_like(eps, input))
    output = output if weight is None else output * weight
    return output if bias is None else output + bias


_layer_norm_of_ops = gen_ops_prim.LayerNorm.__call__


def layer_norm_of_ops(self, input_x, gamma, beta):
    """What mindspore.nn and ops normalise with. A kernel would not know the gradient's epsilon."""
    if input_x.dtype != ms.bfloat16:
        return _layer_norm_of_ops(self, input_x, gamma, beta)
    wide = [x.astype(ms.float32) for x in (input_x, gamma, beta)]
    output, mean, variance = _layer_norm_of_ops(self, *wide)
    return output.astype(ms.bfloat16), mean, variance


WITHIN.append((gen_ops_prim.LayerNorm, "__call__", layer_norm_of_ops))

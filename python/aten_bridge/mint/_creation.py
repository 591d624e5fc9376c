"""Tensors of given values."""

from __future__ import annotations

import mindspore as ms
from mindspore import Tensor, mint, ops

from aten_bridge.mint._replace import REPLACED, named_as, replaces

_full, _full_like, _full_of_ops = mint.full, mint.full_like, ops.full
_linspace, _ones, _zeros = mint.linspace, mint.ones, mint.zeros


@replaces("linspace")
def linspace(start, end, steps, *, dtype=None):
    if steps == 0:
        return _zeros((0,), dtype=dtype or ms.float32)
    return _linspace(start, end, steps, dtype=dtype)


def _size(size):
    """The size, given as one tuple or number by number."""
    return size[0] if len(size) == 1 else size


@replaces("ones")
def ones(*size, dtype=None, **keywords):
    return _ones(_size(size), dtype=dtype) if size else _ones(dtype=dtype, **keywords)


@replaces("zeros")
def zeros(*size, dtype=None, **keywords):
    return _zeros(_size(size), dtype=dtype) if size else _zeros(dtype=dtype, **keywords)


@replaces("full")
def full(size, fill_value, *, dtype=None):
    if isinstance(fill_value, Tensor) and fill_value.dtype == ms.bfloat16:
        fill_value = fill_value.astype(ms.float32)  # MindSpore has no number of a bfloat16
    if dtype != ms.float64 or isinstance(fill_value, Tensor):
        return _full(size, fill_value, dtype=dtype)
    return _full(size, 0, dtype=dtype).fill_(fill_value)


@replaces("full_like")
def full_like(input, fill_value, *, dtype=None):
    if (dtype or input.dtype) != ms.float64 or isinstance(fill_value, Tensor):
        return _full_like(input, fill_value, dtype=dtype)
    return _full_like(input, 0, dtype=dtype).fill_(fill_value)


def full_of_ops(size, fill_value, *, dtype=None):
    if dtype == ms.bfloat16:  # MindSpore's own kernel has none
        return full(size, fill_value, dtype=dtype)
    return _full_of_ops(size, fill_value, dtype=dtype)


REPLACED.append((ops.full, named_as(ops.full, full_of_ops)))

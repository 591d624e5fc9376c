"""Tensors of several dtypes, which PyTorch computes in their common one."""

from __future__ import annotations

from collections.abc import Callable

import mindspore as ms
from mindspore import Tensor
from mindspore.ops.primitive import constexpr

from aten_bridge.mint._numbers import INTEGERS
from aten_bridge.mint._replace import REPLACED, is_known, named_as, original_of

_RANKS = {  # the larger of two counts; of two equal ones, the next
    **{ms.bool_: 0, ms.uint8: 1, ms.int8: 1, ms.int16: 2, ms.int32: 3, ms.int64: 4},
    **{ms.float16: 5, ms.bfloat16: 5, ms.float32: 6, ms.float64: 7},
}
_NEXT = {1: ms.int16, 5: ms.float32}


def _kind(dtype):
    return 0 if dtype == ms.bool_ else 1 if dtype in INTEGERS else 2


@constexpr  # graph mode does not read it
def common(dtypes, ndims):
    """PyTorch's dtype of several: a tensor of no dimension counts for its kind of number alone."""
    tensors = sorted(zip(dtypes, ndims, strict=True), key=lambda tensor: tensor[1] == 0)
    dtype, most = tensors[0]
    for other, ndim in tensors[1:]:
        if other == dtype or (ndim == 0 < most and _kind(other) <= _kind(dtype)):
            continue
        if _RANKS[dtype] == _RANKS[other]:
            dtype = _NEXT[_RANKS[dtype]]
        elif _RANKS[dtype] < _RANKS[other]:
            dtype = other
    return dtype


def promotes(path: str) -> Callable:
    """The function takes tensors of several dtypes, as PyTorch's does, in their common one."""
    original = original_of(path)

    def decorate(function: Callable) -> Callable:
        def compute(*arguments, **keywords):
            if not is_known(*arguments):
                return original(*arguments, **keywords)
            tensors = [x for x in arguments if isinstance(x, Tensor)]
            dtypes = [x.dtype for x in tensors]
            if not tensors or not dtypes.count(dtypes[0]) < len(dtypes):
                return function(*arguments, **keywords)
            dtype = common(tuple(dtypes), tuple([x.ndim for x in tensors]))
            arguments = [
                x.astype(dtype) if isinstance(x, Tensor) and x.dtype != dtype else x
                for x in arguments
            ]
            return function(*arguments, **keywords)

        REPLACED.append((original, named_as(original, compute)))
        return function

    return decorate

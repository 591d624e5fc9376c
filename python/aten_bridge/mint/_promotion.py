"""Tensors of several dtypes, which PyTorch computes in their common one."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import mindspore as ms
from mindspore import Tensor
from mindspore.ops.primitive import constexpr

from aten_bridge.mint._numbers import INTEGERS
from aten_bridge.mint._replace import REPLACED, is_known, named_as, original_of

_RANKS = {  # the larger of two counts; of two equal ones, the next
    **{ms.bool_: 0, ms.uint8: 1, ms.int8: 1, ms.int16: 2, ms.int32: 3, ms.int64: 4},
    **{ms.float16: 5, ms.bfloat16: 5, ms.float32: 6, ms.float64: 7},
    **{ms.complex64: 8, ms.complex128: 9},
}
_NEXT = {1: ms.int16, 5: ms.float32}


def _kind(dtype):
    rank = _RANKS[dtype]
    return 0 if dtype == ms.bool_ else 1 if dtype in INTEGERS else 2 if rank < 8 else 3


@constexpr  # graph mode does not read it
def common(dtypes, ndims):
    """PyTorch's dtype of several: a tensor of no dimension counts for its kind of number alone.

    None if it has none for them.
    """
    if not all(dtype in _RANKS for dtype in dtypes):
        return None
    tensors = sorted(zip(dtypes, ndims, strict=True), key=lambda tensor: tensor[1] == 0)
    dtype, most = tensors[0]
    for other, ndim in tensors[1:]:
        if other == dtype or (ndim == 0 < most and _kind(other) <= _kind(dtype)):
            continue
        if _RANKS[dtype] == _RANKS[other]:
            dtype = _NEXT[_RANKS[dtype]]
        elif _RANKS[dtype] < _RANKS[other]:
            dtype = other
    is_double = any(d == ms.float64 and (n or not most) for d, n in zip(dtypes, ndims, strict=True))
    return ms.complex128 if dtype == ms.complex64 and is_double else dtype


def in_common(tensors):
    """Tensors of one dtype."""
    dtypes = [tensor.dtype for tensor in tensors]
    if dtypes.count(dtypes[0]) == len(dtypes):
        return tensors
    dtype = common(tuple(dtypes), tuple([tensor.ndim for tensor in tensors]))
    if dtype is None:
        return tensors
    return [tensor if tensor.dtype == dtype else tensor.astype(dtype) for tensor in tensors]


def promotes(path: str) -> Callable:
    """The function takes tensors of several dtypes, as PyTorch's does, in their common one."""
    original = original_of(path)

    def decorate(function: Callable) -> Callable:
        parameters = inspect.signature(function).parameters.values()
        names = tuple([one.name for one in parameters if one.kind is not one.KEYWORD_ONLY])

        def compute(*arguments, **keywords):
            for name in names[len(arguments) :]:
                if name in keywords:
                    arguments = (*arguments, keywords[name])
            keywords = {name: keywords[name] for name in keywords if name not in names}
            if not is_known(*arguments):
                return original(*arguments, **keywords)
            tensors = [x for x in arguments if isinstance(x, Tensor)]
            dtypes = [x.dtype for x in tensors]
            if not tensors or not dtypes.count(dtypes[0]) < len(dtypes):
                return function(*arguments, **keywords)
            dtype = common(tuple(dtypes), tuple([x.ndim for x in tensors]))
            if dtype is None:
                return original(*arguments, **keywords)
            arguments = [
                x.astype(dtype) if isinstance(x, Tensor) and x.dtype != dtype else x
                for x in arguments
            ]
            return function(*arguments, **keywords)

        REPLACED.append((original, named_as(original, compute)))
        return function

    return decorate

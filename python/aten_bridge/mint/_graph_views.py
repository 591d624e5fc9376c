"""Views in graphs: what a method or an index names shares its memory, as in PyNative mode.

MindSpore's compiler takes operators that copy for them, so that what is written to `x[1:]` or
`x.T` is lost. Those of mint's functions (`mint.transpose`) make views, which it also
differentiates: here the methods and `[]` get them. There is no such operator for other sizes:
`view` and `reshape` are views here where only dimensions of size 1 come or go, and copies
otherwise, of which _graph_writes.py takes care.
"""

from __future__ import annotations

from collections.abc import Callable

import mindspore as ms
from mindspore import Tensor, mint
from mindspore import _checkparam as validator
from mindspore.graph._parse import resources, standard_method
from mindspore.ops import functional as F
from mindspore.ops import tensor_method
from mindspore.ops.auto_generate import (
    broadcast_to_view_op,
    chunk_view_op,
    diagonal_view_op,
    expand_dims_view_op,
    select_ext_view_op,
    slice_ext_view_op,
    split_tensor_view_op,
    split_with_size_view_op,
    transpose_ext_view_op,
    transpose_view_op,
    unstack_ext_view_op,
)
from mindspore.ops.primitive import constexpr

from aten_bridge.mint._numbers import FLOATING
from aten_bridge.mint._replace import REPLACED, inlined, replaces


def in_graphs(*originals: Callable) -> Callable:
    """The function stands in for those that the compiler takes for a method."""

    def decorate(function: Callable) -> Callable:
        inlined(function)
        REPLACED.extend([(original, function) for original in originals])
        return function

    return decorate


# ===--- dimensions in another order ---===


@in_graphs(standard_method.T)
def transposed(x):
    return x if x.ndim <= 1 else transpose_view_op(x, tuple(range(x.ndim - 1, -1, -1)))


@replaces("t")
@in_graphs(standard_method.t, tensor_method.deprecated_tensor_t)
def t(input):
    return input if input.ndim <= 1 else transpose_ext_view_op(input, 0, 1)


@in_graphs(standard_method.permute, tensor_method.deprecated_tensor_permute)
def permute(input, *axis):
    return transpose_view_op(input, validator.check_transpose_axis(axis, input.ndim))


@in_graphs(standard_method.swapaxes, standard_method.swapdims)
def swapaxes(input, axis0, axis1):
    return transpose_ext_view_op(input, axis0, axis1)


@constexpr
def _moved(ndim, source, destination):
    source = [d % ndim for d in (source if isinstance(source, (tuple, list)) else [source])]
    places = destination if isinstance(destination, (tuple, list)) else [destination]
    rest = [d for d in range(ndim) if d not in source]
    for place, d in sorted(zip([p % ndim for p in places], source, strict=True)):
        rest.insert(place, d)
    return tuple(rest)


@in_graphs(standard_method.movedim, standard_method.moveaxis)
def movedim(input, source, destination):
    return transpose_view_op(input, _moved(input.ndim, source, destination))


# ===--- parts ---===


SLICED = (*FLOATING, ms.bool_, ms.int8, ms.int32, ms.int64, ms.uint8)  # as graphs have it
_narrow, _diagonal = tensor_method.deprecated_tensor_narrow, standard_method.diagonal


@in_graphs(standard_method.narrow, _narrow)
def narrow(input, axis, start, length):
    if isinstance(start, Tensor) or input.dtype not in SLICED:
        return _narrow(input, axis, start, length)
    begin = start + input.shape[axis] if start < 0 else start
    return slice_ext_view_op(input, axis, begin, begin + length, 1)


@replaces("narrow", ms.float64)  # which graphs do not have
def narrow_float64(input, dim, start, length):
    begin = start + input.shape[dim] if start < 0 else start
    return slice_ext_view_op(input, dim, begin, begin + length, 1)


@in_graphs(standard_method.chunk, tensor_method.deprecated_tensor_chunk, tensor_method.tensor_chunk)
def chunk(input, chunks, axis=0):
    return chunk_view_op(input, chunks, axis)


_split = tensor_method.deprecated_tensor_split


@in_graphs(standard_method.split, _split)
def split(input, split_size_or_sections, axis=0):
    if 0 in input.shape:
        return _split(input, split_size_or_sections, axis)
    if isinstance(split_size_or_sections, int):
        return split_tensor_view_op(input, split_size_or_sections, axis)
    return split_with_size_view_op(input, tuple(split_size_or_sections), axis)


@in_graphs(standard_method.unbind, tensor_method.deprecated_tensor_unbind)
def unbind(input, dim=0):
    return unstack_ext_view_op(input, dim)


@in_graphs(_diagonal)
def diagonal(x, offset=0, axis1=0, axis2=1):
    return diagonal_view_op(x, offset, axis1, axis2)


# ===--- one step after the other ---===
#
# By tables instead of branches and loops, behind which MindSpore differentiates no written view.


@constexpr
def number(is_constant):
    return int(is_constant)


@inlined
def _add(data, dim, begin, end, step):
    return expand_dims_view_op(data, dim)


@inlined
def _select(data, dim, begin, end, step):
    return select_ext_view_op(data, dim, begin)


@inlined
def _cut(data, dim, begin, end, step):
    return slice_ext_view_op(data, dim, begin, end, step)


_KINDS = (_add, _select, _cut)


@inlined
def _get_0(data, steps):
    return data


@inlined
def _get_1(data, steps):
    return _KINDS[steps[0][0]](data, *steps[0][1:])


@inlined
def _get_2(data, steps):
    return _KINDS[steps[1][0]](_get_1(data, steps), *steps[1][1:])


@inlined
def _get_3(data, steps):
    return _KINDS[steps[2][0]](_get_2(data, steps), *steps[2][1:])


@inlined
def _get_4(data, steps):
    return _KINDS[steps[3][0]](_get_3(data, steps), *steps[3][1:])


@inlined
def _get_more(data, steps):
    data = _get_4(data, steps)
    for step in steps[4:]:
        data = _KINDS[step[0]](data, *step[1:])
    return data


_GETS = (_get_0, _get_1, _get_2, _get_3, _get_4, _get_more)


@inlined
def follow(data, steps):
    return _GETS[min(len(steps), 5)](data, steps)


# ===--- other sizes ---===


@in_graphs(
    standard_method.unsqueeze,
    tensor_method.deprecated_tensor_unsqueeze,
)
def unsqueeze(input, dim):
    return expand_dims_view_op(input, dim)


@in_graphs(standard_method.expand_dims)
def expand_dims(x, axis):
    return expand_dims_view_op(x, axis)


@in_graphs(
    standard_method.broadcast_to,
    tensor_method.tensor_broadcast_to,
)
def broadcast_to(input, shape):
    return broadcast_to_view_op(input, tuple(shape))


@in_graphs(tensor_method.deprecated_tensor_expand_as, standard_method.expand_tensor_as)
def expand_as(input, x):
    return broadcast_to_view_op(input, x.shape)


@constexpr
def _resized(before, after):
    """The steps that take dimensions of size 1 away, from the last on, and add them.

    Nothing if others change.
    """
    size = 1
    for n in before:
        size *= n
    if -1 in after:
        known = 1
        for n in after:
            known *= n if n != -1 else 1
        if known == 0:
            return None
        after = tuple([size // known if n == -1 else n for n in after])
    if [n for n in before if n != 1] != [n for n in after if n != 1]:
        return None
    taken, added, i = [], [], 0
    before = list(before)
    for j, n in enumerate(after):
        while i < len(before) and before[i] == 1 and n != 1:
            taken.append(i)
            i += 1
        if i < len(before) and before[i] == n:
            i += 1
        else:
            added.append((0, j, 0, 0, 0))
    taken += range(i, len(before))
    return (*[(1, dim, 0, 0, 0) for dim in taken[::-1]], *added)


@constexpr
def _is_kept(before, after):
    return int(_resized.fn(before, after) is not None)


@inlined
def _reshape(input, shape):
    return F.reshape(input, shape)


@inlined
def _resize(input, shape):
    return follow(input, _resized(input.shape, shape))


@inlined
def _resize_known(input, shape):
    return (_reshape, _resize)[_is_kept(input.shape, shape)](input, shape)


@inlined
def as_view(input, shape):
    """The tensor in other sizes, as a view if those differ in sizes of 1 alone."""
    is_known = number(F.isconstant((input.shape, shape)))
    return (_reshape, _resize_known)[is_known](input, shape)


@inlined
def is_view(input, shape):
    return F.isconstant((input.shape, shape)) and _is_kept(input.shape, shape) == 1


@in_graphs(
    standard_method.view_as, standard_method.reshape_as, tensor_method.deprecated_tensor_view_as
)
def view_as(input, other):
    return as_view(input, other.shape)


@constexpr
def _single(shape, dim):
    """The steps that take the dimensions away, from the last on."""
    dims = range(len(shape)) if dim is None else dim if isinstance(dim, (tuple, list)) else [dim]
    most = max(len(shape), 1)
    for d in dims:
        if not -most <= d < most:
            raise IndexError(f"squeeze: expected dimensions from {-most} to {most - 1}, got {d}")
    single = sorted({d % len(shape) for d in dims if shape and shape[d] == 1}, reverse=True)
    return tuple([(1, d, 0, 0, 0) for d in single])


@inlined
def _squeeze_unknown(input, axis):
    return F.squeeze(input, axis)


@inlined
def _squeeze_known(input, axis):
    return follow(input, _single(input.shape, axis))


@in_graphs(standard_method.squeeze, tensor_method.tensor_squeeze)
def squeeze(input, axis=None):
    is_known = number(F.isconstant((input.shape, axis)))
    return (_squeeze_unknown, _squeeze_known)[is_known](input, axis)


@inlined
def _mint_squeeze(input, dim=None):
    return squeeze(input, dim)


@inlined
def _mint_reshape(input, shape):
    return as_view(input, shape)


def install() -> None:
    """What stands in for functions of mint in graphs alone."""
    resources.convert_object_map[mint.squeeze] = _mint_squeeze
    resources.convert_object_map[mint.reshape] = _mint_reshape

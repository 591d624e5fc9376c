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
from mindspore import Tensor
from mindspore import _checkparam as validator
from mindspore.common.dtype import TensorType
from mindspore.graph._parse import standard_method
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
from mindspore.ops.auto_generate.gen_ops_prim import inplace_copy_op
from mindspore.ops.composite.base import core
from mindspore.ops.composite.multitype_ops import getitem, setitem
from mindspore.ops.primitive import constexpr

from aten_bridge.mint._numbers import FLOATING
from aten_bridge.mint._replace import REPLACED, named_as, replaces


def in_graphs(*originals: Callable) -> Callable:
    """The function stands in for those that the compiler takes for a method."""

    def decorate(function: Callable) -> Callable:
        core(function)  # inlined early: MindSpore differentiates no view in a shared graph
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


_SLICED = (*FLOATING, ms.bool_, ms.int8, ms.int32, ms.int64, ms.uint8)  # as graphs have it
_narrow, _diagonal = tensor_method.deprecated_tensor_narrow, standard_method.diagonal


@in_graphs(standard_method.narrow, _narrow)
def narrow(input, axis, start, length):
    if isinstance(start, Tensor) or input.dtype not in _SLICED:
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
    """The dimensions to take away, from the last on, and those to add; nothing if others change."""
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
            added.append(j)
    taken += range(i, len(before))
    return tuple(taken[::-1]), tuple(added)


def _as_view(input, shape):
    """The tensor in other sizes, as a view if those differ in sizes of 1 alone."""
    if F.is_sequence_value_unknown(F.shape(input)) or not F.isconstant(shape):
        return F.reshape(input, shape)
    steps = _resized(input.shape, shape)
    if steps is None:
        return F.reshape(input, shape)
    for dim in steps[0]:
        input = select_ext_view_op(input, dim, 0)
    for dim in steps[1]:
        input = expand_dims_view_op(input, dim)
    return input


@in_graphs(standard_method.view)
def view(x, *shape):
    return _as_view(x, standard_method.check_view_shape(shape))


@in_graphs(standard_method.reshape, tensor_method.tensor_reshape)
def reshape(x, *shape):
    return _as_view(x, standard_method.check_reshape_shp(shape))


@in_graphs(
    standard_method.view_as, standard_method.reshape_as, tensor_method.deprecated_tensor_view_as
)
def view_as(input, other):
    return _as_view(input, other.shape)


@constexpr
def _single(shape, dim):
    """The dimensions to take away, from the last on."""
    dims = range(len(shape)) if dim is None else dim if isinstance(dim, (tuple, list)) else [dim]
    most = max(len(shape), 1)
    for d in dims:
        if not -most <= d < most:
            raise IndexError(f"squeeze: expected dimensions from {-most} to {most - 1}, got {d}")
    return tuple(sorted({d % len(shape) for d in dims if shape and shape[d] == 1}, reverse=True))


@in_graphs(standard_method.squeeze, tensor_method.tensor_squeeze)
def squeeze(input, axis=None):
    if F.is_sequence_value_unknown(F.shape(input)):
        return F.squeeze(input, axis)
    for dim in _single(input.shape, axis):
        input = select_ext_view_op(input, dim, 0)
    return input


# ===--- [] ---===


@constexpr
def _is_basic(index, dtype):
    """1 if MindSpore has views for it: of numbers, slices with a positive step, None and `...`."""
    for part in index if isinstance(index, tuple) else (index,):
        if isinstance(part, slice):
            bounds = (part.start, part.stop, part.step)
            if dtype not in _SLICED:
                return 0
            if any(not isinstance(bound, (int, type(None))) for bound in bounds):
                return 0
            if part.step is not None and part.step < 1:
                return 0
        elif isinstance(part, bool) or not isinstance(part, (int, type(None), type(...))):
            return 0
    return 1


@constexpr
def _steps(shape, index):
    """What names the part, one after the other: an operator's number and its arguments."""
    parts = index if isinstance(index, tuple) else (index,)
    named = sum(part is not None and part is not Ellipsis for part in parts)
    if named > len(shape):
        raise IndexError(
            f"expected at most {len(shape)} indices, one for each dimension, got {named}"
        )
    steps, dim, place = [], 0, 0
    for part in parts:
        if part is None:
            steps.append((0, dim, 0, 0, 0))
            dim += 1
            continue
        if part is Ellipsis:
            dim += len(shape) - named
            place += len(shape) - named
            continue
        if isinstance(part, int):
            if not -shape[place] <= part < shape[place]:
                raise IndexError(
                    f"expected an index of dimension {place} from {-shape[place]} to "
                    f"{shape[place] - 1}, got {part}"
                )
            steps.append((1, dim, part % shape[place], 0, 0))
        else:
            begin, end, step = part.indices(shape[place])
            if (begin, step) != (0, 1) or end < shape[place]:
                steps.append((2, dim, begin, max(begin, end), step))
            dim += 1
        place += 1
    return tuple(steps)


@constexpr
def _leading(ndim, shape, index, dtype):
    """How many dimensions a value has more than its place."""
    if not _is_basic.fn(index, dtype):
        return 0
    kinds = [step[0] for step in _steps.fn(shape, index)]
    return max(0, ndim - len(shape) - kinds.count(0) + kinds.count(1))


@constexpr
def _way(index, dtype, leading):
    return _is_basic.fn(index, dtype) * (1 + (leading > 0))


@constexpr
def _number(is_constant):
    return int(is_constant)


def _getter() -> Callable:
    """A function of its own, since MindSpore has no gradient of written views in a shared graph.

    Nor of those behind branches and in loops: here are tables instead.
    """

    @core
    def add(data, dim, begin, end, step):
        return expand_dims_view_op(data, dim)

    @core
    def select(data, dim, begin, end, step):
        return select_ext_view_op(data, dim, begin)

    @core
    def cut(data, dim, begin, end, step):
        return slice_ext_view_op(data, dim, begin, end, step)

    kinds = (add, select, cut)

    @core
    def get_0(data, steps):
        return data

    @core
    def get_1(data, steps):
        return kinds[steps[0][0]](data, *steps[0][1:])

    @core
    def get_2(data, steps):
        return kinds[steps[1][0]](get_1(data, steps), *steps[1][1:])

    @core
    def get_3(data, steps):
        return kinds[steps[2][0]](get_2(data, steps), *steps[2][1:])

    @core
    def get_4(data, steps):
        return kinds[steps[3][0]](get_3(data, steps), *steps[3][1:])

    @core
    def get_more(data, steps):
        data = get_4(data, steps)
        for step in steps[4:]:
            data = kinds[step[0]](data, *step[1:])
        return data

    gets = (get_0, get_1, get_2, get_3, get_4, get_more)

    @core
    def get(data, index):
        steps = _steps(data.shape, index)
        return gets[min(len(steps), 5)](data, steps)

    return get


def _as_views(original: Callable) -> Callable:
    view = _getter()

    @core
    def get(data, index):
        return (original, view)[_is_basic(index, data.dtype)](data, index)

    @core
    def compute(data, index):
        return (original, get)[_number(F.isconstant((index, data.shape)))](data, index)

    return named_as(original, compute)


def _in_place(original: Callable) -> Callable:
    """MindSpore's results are new tensors, which other names of the written one do not see."""
    view = _getter()

    @core
    def renew(data, index, value):
        return inplace_copy_op(data, original(data, index, value))

    @core
    def set_whole(data, index, value):
        inplace_copy_op(view(data, index), value)
        return data

    @core
    def set_longer(data, index, value):
        value = F.reshape(value, value.shape[_leading(value.ndim, data.shape, index, data.dtype) :])
        inplace_copy_op(view(data, index), value)
        return data

    @core
    def set_tensor(data, index, value):
        leading = _leading(value.ndim, data.shape, index, data.dtype)
        way = _way(index, data.dtype, leading)
        return (renew, set_whole, set_longer)[way](data, index, value)

    @core
    def set_number(data, index, value):
        return (renew, set_whole)[_is_basic(index, data.dtype)](
            data, index, Tensor(value, data.dtype)
        )

    @core
    def compute(data, index, value):
        is_known = _number(F.isconstant((index, data.shape)))
        if isinstance(value, Tensor):
            return (renew, set_tensor)[is_known](data, index, value)
        if isinstance(value, (int, float, bool)):
            is_known = _number(F.isconstant((index, data.shape, value)))
            return (renew, set_number)[is_known](data, index, value)
        return renew(data, index, value)

    return named_as(original, compute)


def install() -> None:
    """MindSpore's own choose by an environment variable, of which a graph keeps the branches."""
    for table, change in ((getitem, _as_views), (setitem, _in_place)):
        for kinds, function in list(table.entries):
            if isinstance(kinds[0], TensorType) and function.__module__.startswith("mindspore"):
                table.register(*kinds)(change(function))

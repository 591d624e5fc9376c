"""Views in graphs: what a method or an index names shares its memory, as in PyNative mode.

MindSpore's compiler takes operators that copy for them, so that what is written to `x[1:]` or
`x.T` is lost. Those of mint's functions (`mint.transpose`) make views, which it also
differentiates: here the methods and `[]` get them. There is no such operator for a change of sizes: `view` and `reshape` are views here where only dimensions of
size 1 come or go, and copies otherwise, of which _graph_writes.py takes care.
"""

from __future__ import annotations

from collections.abc import Callable

from mindspore import Tensor, mint
from mindspore import _checkparam as validator
from mindspore.graph._parse import standard_method
from mindspore.ops import functional as F
from mindspore.ops import tensor_method
from mindspore.ops.auto_generate import (
    broadcast_to_view_op,
    chunk_view_op,
    diagonal_view_op,
    expand_dims_view_op,
    narrow_view_op,
    select_ext_view_op,
    split_tensor_view_op,
    split_with_size_view_op,
    transpose_ext_view_op,
    transpose_view_op,
    unstack_ext_view_op,
)
from mindspore.ops.auto_generate.gen_ops_prim import inplace_copy_op
from mindspore.ops.composite.multitype_ops import _compile_utils as indices
from mindspore.ops.composite.multitype_ops import getitem
from mindspore.ops.primitive import constexpr

from aten_bridge.mint._replace import REPLACED, named_as, replaces


def in_graphs(*originals: Callable) -> Callable:
    """The function stands in for those that the compiler takes for a method."""

    def decorate(function: Callable) -> Callable:
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


_narrow, _diagonal = tensor_method.deprecated_tensor_narrow, standard_method.diagonal


@in_graphs(standard_method.narrow, _narrow)
def narrow(input, axis, start, length):
    if isinstance(start, Tensor):
        return _narrow(input, axis, start, length)
    return narrow_view_op(input, axis, start, length)


@in_graphs(
    standard_method.chunk, tensor_method.deprecated_tensor_chunk, tensor_method.tensor_chunk
)
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
    standard_method.expand_dims,
    tensor_method.deprecated_tensor_unsqueeze,
)
def unsqueeze(input, dim):
    return expand_dims_view_op(input, dim)


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
    return tuple(sorted({d % len(shape) for d in dims if shape and shape[d] == 1}, reverse=True))


@in_graphs(standard_method.squeeze, tensor_method.tensor_squeeze)
def squeeze(input, axis=None):
    if F.is_sequence_value_unknown(F.shape(input)):
        return F.squeeze(input, axis)
    for dim in _single(input.shape, axis):
        input = select_ext_view_op(input, dim, 0)
    return input


# ===--- [] ---===


def _is_basic(index):
    """Whether MindSpore has views for it: of numbers, slices with a positive step, None and `...`."""
    if isinstance(index, (list, Tensor, bool)):
        return False
    if isinstance(index, tuple):
        for part in index:
            if isinstance(part, tuple) or not _is_basic(part):
                return False
    elif isinstance(index, slice):
        for bound in (index.start, index.stop, index.step):
            if isinstance(bound, Tensor):
                return False
        return index.step is None or index.step > 0
    return True


def _has_view(data, index):
    if F.is_sequence_value_unknown(F.shape(data)) or not F.isconstant(index):
        return False
    return _is_basic(index)


_get = indices._tensor_getitem
_set = indices._tensor_setitem


def _as_views(original: Callable) -> None:
    def compute(data, index):
        if _has_view(data, index):
            return _get(data, index)
        return original(data, index)

    REPLACED.append((original, named_as(original, compute)))


for _original in (
    indices.tensor_index_by_number,
    indices.tensor_index_by_slice,
    indices.tensor_index_by_tuple,
):
    _as_views(_original)


def add_dimension(data, _):
    return expand_dims_view_op(data, 0)


getitem.register("Tensor", "None")(add_dimension)


def _in_place(original: Callable) -> None:
    """MindSpore's results are new tensors, which other names of the written one do not see."""

    def compute(data, index, value):
        if F.isconstant(data):  # with whose value the graph is compiled
            return original(data, index, value)
        if isinstance(value, (int, float, bool, Tensor)) and _has_view(data, index):
            return _set(data, index, value)
        return inplace_copy_op(data, original(data, index, value))

    REPLACED.append((original, named_as(original, compute)))


for _name in (
    *("slice", "ellipsis", "list", "bool", "number_with_number", "number_with_sequence"),
    *("number_with_tensor", "tensor_with_number", "tensor_with_sequence", "tensor_with_tensor"),
    *("tuple_with_number", "tuple_with_sequence", "tuple_with_tensor"),
):
    _in_place(getattr(indices, f"tensor_setitem_by_{_name}"))

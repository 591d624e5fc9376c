"""Elements by their places, `[]` of tensors too."""

from __future__ import annotations

import mindspore as ms
import numpy as np
from mindspore import Tensor, mint
from mindspore.common.api import _pynative_executor
from mindspore.mint.nn import functional as F
from mindspore.ops.auto_generate import (
    IndexFillScalar,
    IndexFillTensor,
    expand_dims_view_op,
    select_ext_view_op,
    slice_ext_view_op,
)

from aten_bridge.mint._native import by_name, is_native
from aten_bridge.mint._numbers import INTEGERS, beside, of_dtype
from aten_bridge.mint._replace import METHODS, method, replaces

_flip, _masked_select, _nonzero = mint.flip, mint.masked_select, mint.nonzero
_one_hot, _sort, _where = F.one_hot, mint.sort, mint.where
_repeat_interleave, _searchsorted = mint.repeat_interleave, mint.searchsorted
_roll, _topk = mint.roll, mint.topk
_masked_fill = Tensor.masked_fill


# ===--- results whose size depends on values ---===
#
# With kernels, PyNative mode may prepare the next operator before it knows the size. NumPy waits.


def _array(tensor: Tensor) -> np.ndarray:
    return (tensor.astype(ms.float32) if tensor.dtype == ms.bfloat16 else tensor).asnumpy()


@replaces("unique")
@method
def unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    values, inverse, counts = np.unique(
        _array(input), return_inverse=True, return_counts=True, axis=dim, equal_nan=False
    )
    inverse = inverse.reshape(input.shape if dim is None else -1)
    results = [
        Tensor(values, dtype=input.dtype),
        *([Tensor(inverse)] if return_inverse else []),
        *([Tensor(counts)] if return_counts else []),
    ]
    return tuple(results) if len(results) > 1 else results[0]


@replaces("bincount")
@method
def bincount(input, weights=None, minlength=0):
    counts = np.bincount(_array(input), None if weights is None else _array(weights), minlength)
    single = weights is not None and weights.dtype == ms.float32
    return Tensor(counts.astype(np.float32) if single else counts)


@replaces("masked_select")
@method
def masked_select(input, mask):
    if input.dtype == ms.bfloat16:
        return _masked_select(input.astype(ms.float32), mask).astype(ms.bfloat16)
    return _masked_select(input, mask)


@replaces("nonzero")
@method
def nonzero(input, *, as_tuple=False):
    input = input.astype(ms.float32) if input.dtype == ms.bfloat16 else input
    if as_tuple:
        places = _nonzero(input if input.ndim else mint.reshape(input, (1,)))
        return tuple(places[:, i] for i in range(places.shape[1]))
    return _nonzero(input) if input.ndim else _nonzero(mint.reshape(input, (1,)))[:, :0]


@replaces("where")
def where(condition, *arguments, **keywords):
    if len(arguments) == 2:
        input, other = arguments
        return _where(condition, beside(input, other), beside(other, input))
    if arguments or keywords:
        return _where(condition, *arguments, **keywords)
    return nonzero(condition, as_tuple=True)


@replaces("nn.functional.one_hot")
def one_hot(tensor, num_classes=-1):
    return _one_hot(tensor, int(mint.max(tensor)) + 1 if num_classes == -1 else num_classes)


# ===--- [] ---===


_getitem, _setitem = Tensor.__getitem__, Tensor.__setitem__


def _without_large_masks(index):
    """MindSpore reads a wrong mask of several dimensions beside other parts."""
    if not isinstance(index, tuple):
        return index
    parts = []
    for part in index:
        if isinstance(part, Tensor) and part.dtype == ms.bool_ and part.ndim > 1:
            parts += nonzero(part, as_tuple=True)
        else:
            parts.append(part)
    return tuple(parts)


def _names_nothing(index):
    parts = index if isinstance(index, tuple) else (index,)
    return any(isinstance(part, Tensor) and part.numel() == 0 for part in parts)


def _is_view(index):
    """Whether what the index names is a view: MindSpore writes that in place."""
    parts = index if isinstance(index, tuple) else (index,)
    kinds = (int, slice, type(None), type(...))
    return all(isinstance(part, kinds) and not isinstance(part, bool) for part in parts)


def _has_no_bfloat16(index):
    """Whether MindSpore writes to such places in other dtypes only."""
    if not isinstance(index, tuple):
        return True
    return any(isinstance(part, slice) and part.step not in (None, 1) for part in index)


def _in_steps(self, index):
    """The tensor in the steps of the index, and what is left of that.

    MindSpore's gradient of most steps is refused: "input memory out of bounds".
    """
    parts = list(index) if isinstance(index, tuple) else [index]
    if not any(isinstance(part, slice) and part.step not in (None, 1) for part in parts):
        return self, index
    taken = [_dimensions(part) for part in parts]
    dim = 0
    for i, part in enumerate(parts):
        if isinstance(part, slice) and isinstance(part.step, int) and part.step > 1:
            begin, end, step = part.indices(self.shape[dim])
            self = slice_ext_view_op(self, dim, begin, max(begin, end), step)
            parts[i] = slice(None)
        dim += self.ndim - sum(taken) if part is Ellipsis else taken[i]
    return self, tuple(parts)


def _dimensions(part):
    """How many an index's part is for; those of "..." are what the others leave."""
    if part is None or part is Ellipsis or isinstance(part, bool):
        return 0
    return part.ndim if isinstance(part, Tensor) and part.dtype == ms.bool_ else 1


def _view(self, index):
    """What the index names, if views of MindSpore's can name it; else nothing."""
    if not _is_view(index):
        return None
    parts = index if isinstance(index, tuple) else (index,)
    rest = self.ndim - sum(map(_dimensions, parts))
    if rest < 0 or parts.count(Ellipsis) > 1:
        return None
    dim = 0
    for part in parts:
        if part is None:
            self = expand_dims_view_op(self, dim)
            dim += 1
        elif part is Ellipsis:
            dim += rest
        elif part == slice(None):
            dim += 1
        elif isinstance(part, int):
            if not -self.shape[dim] <= part < self.shape[dim]:
                return None
            self = select_ext_view_op(self, dim, part)
        else:
            begin, end, step = part.indices(self.shape[dim])
            if step < 1:
                return None
            self = slice_ext_view_op(self, dim, begin, max(begin, end), step)
            dim += 1
    return self


_INDICES = (ms.int64, ms.int32, ms.bool_)


def _is_number(part):
    return isinstance(part, Tensor) and part.ndim == 0 and part.dtype in INTEGERS


def _places(self, index):
    """A view, and a tensor or None for its dimensions, if tensors are in the index; else nothing.

    PyTorch's operators take these, in one call.
    """
    parts = index if isinstance(index, tuple) else (index,)
    if not any(isinstance(part, Tensor) for part in parts) or not is_native():
        return None
    if any(isinstance(part, Tensor) and part.ndim for part in parts):
        # Beside others PyTorch takes one of rank 0 for its number.
        parts = [int(part) if _is_number(part) else part for part in parts]
    rest = self.ndim - sum(map(_dimensions, parts))
    indices, places = [], []
    for part in parts:
        if isinstance(part, Tensor) and part.dtype in _INDICES and _dimensions(part):
            indices += [slice(None)] * _dimensions(part)
            places.append(part)
        elif _is_view(part):
            indices.append(part)
            if not isinstance(part, int):
                places += [None] * (rest if part is Ellipsis else 1)
        else:
            return None
    view = _view(self, tuple(indices))
    return None if view is None else (view, places)


# An operator by name keeps its inputs for its gradient, and a tensor that is indexed may be written
# before that is computed: the gradients here need the places alone, as PyTorch's.


def _keep_places(ctx, places):
    ctx.save_for_backward(*(place for place in places if place is not None))
    ctx.is_place = [place is not None for place in places]


def _kept_places(ctx):
    kept = iter(ctx.saved_tensors)
    return [next(kept) if is_place else None for is_place in ctx.is_place]


class _Taken(ms.common._Function):
    @staticmethod
    def forward(ctx, tensor, *places):
        _keep_places(ctx, places)
        ctx.shape = tensor.shape
        return by_name("aten::index.Tensor")(tensor, *places)

    @staticmethod
    def backward(ctx, gradient):
        places = _kept_places(ctx)
        zeros = mint.zeros(ctx.shape, dtype=gradient.dtype)
        put = by_name("aten::index_put", accumulate=True)
        return (put(zeros, *places, gradient), *(None for _ in places))


class _Put(ms.common._Function):
    @staticmethod
    def forward(ctx, tensor, value, *places):
        _keep_places(ctx, places)
        ctx.shape = value.shape
        return by_name("aten::index_put")(tensor, *places, value)

    @staticmethod
    def backward(ctx, gradient):
        places = _kept_places(ctx)
        written = by_name("aten::index.Tensor")(gradient, *places)
        while written.ndim > len(ctx.shape):
            written = mint.sum(written, 0)
        for dim, size in enumerate(ctx.shape):
            if size == 1 and written.shape[dim] != 1:
                written = mint.sum(written, dim, True)
        zero = mint.zeros((), dtype=gradient.dtype)
        kept = by_name("aten::index_put")(gradient, *places, zero)
        return (kept, written, *(None for _ in places))


def _taken(self, index):
    """What the index names; nothing where MindSpore has to take it."""
    found = _places(self, index)
    operator = None if found is None else by_name("aten::index.Tensor")
    if operator is None:
        return None
    view, places = found
    return (_Taken.apply if _pynative_executor.requires_grad() else operator)(view, *places)


def _put(self, index, value):
    """Writes the value; False where MindSpore has to."""
    found = _places(self, index)
    operator = None if found is None else by_name("aten::index_put")
    if operator is None:
        return False
    value = value if isinstance(value, Tensor) else Tensor(value, self.dtype)
    if value.is_complex() and not self.is_complex():
        return False
    shape = value.shape
    while shape and shape[0] == 1:  # PyTorch leaves out what broadcasting adds
        shape = shape[1:]
    value = (value if shape == value.shape else mint.reshape(value, shape)).astype(self.dtype)
    view, places = found
    is_recorded = _pynative_executor.requires_grad()
    view.copy_(_Put.apply(view, value, *places) if is_recorded else operator(view, *places, value))
    return True


@method
def __getitem__(self, index):
    found = _taken(self, index)
    if found is not None:
        return found
    index = _without_large_masks(index)
    if self.dtype == ms.bfloat16:  # MindSpore has gradients of slices in other dtypes only
        view = _view(self, index)
        if view is self:  # x[...]
            return self
        if view is not None:
            view.parent_tensor_, view.index_of_parent_ = self, index  # as MindSpore does
            return view
    self, index = _in_steps(self, index)
    return _getitem(self, index)


# Results of these are views of their first input, in MindSpore's names of gradients' nodes.
_VIEWS = ("Reshape", "View", "Flatten", "ExpandDims", "Squeeze", "Transpose")


def _is_of_leaf(self):
    """Whether a gradient is taken by the tensor or by what it is a view of.

    MindSpore refuses to write these in place, as PyTorch does, and `x[i] = y` makes a new tensor.
    """
    if self._is_leaf:
        return self._requires_grad
    node = self._grad_node
    while node is not None and node.name() in _VIEWS:
        node = node.next_functions[0][0]
    return node is not None and node.is_leaf()


def _written(self, index, value):
    """A copy of the tensor with the value at the index."""
    if self.dtype != ms.bfloat16 or not (_is_view(index) or _has_no_bfloat16(index)):
        return _setitem(self.clone(), index, value)
    if isinstance(value, Tensor):
        value = value.astype(ms.float32)
    return _setitem(self.astype(ms.float32), index, value).astype(ms.bfloat16)


def _set_of_leaf(self, index, value):
    if self.dtype != ms.bfloat16:
        return _setitem(self, index, value)
    self.assign_value(_written(self, index, value))
    if self.parent_tensor_ is not None and _is_view(self.index_of_parent_):
        self.parent_tensor_[self.index_of_parent_] = self
    return self


@method
def __setitem__(self, index, value):
    """In place: what other names of the memory read, and their gradients, are PyTorch's.

    MindSpore itself writes so to views by `[]` alone, and not if a gradient is taken; else it makes
    a new tensor that takes the name.
    """
    index = _without_large_masks(index)
    if self.numel() == 0 or _names_nothing(index):  # which MindSpore refuses
        return self
    value = beside(value, self)
    is_recorded = _pynative_executor.requires_grad()
    if is_recorded and _is_of_leaf(self):
        return _set_of_leaf(self, index, value)
    has_row = isinstance(value, Tensor) and value.ndim > 1 and value.shape[0] == 1
    if not is_recorded and self.dtype != ms.bfloat16 and _is_view(index) and not has_row:
        return _setitem(self, index, value)
    if _put(self, index, value):
        return self
    view = _view(self, index)
    if view is None:
        return self.copy_(_written(self, index, value))
    value = value if isinstance(value, Tensor) else Tensor(value, self.dtype)
    while value.ndim > view.ndim and value.shape[0] == 1:  # which MindSpore refuses
        value = value[0]
    view.copy_(value)
    return self


# ===--- other orders, and places that are filled ---===


@replaces("flip")
def flip(input, dims):
    dims = (dims,) if isinstance(dims, int) else dims
    return _flip(input, dims) if input.ndim and len(dims) else mint.clone(input)


def _flip_method(self, *dims, **keywords):
    return flip(self, *(dims if len(dims) < 2 else [dims]), **keywords)


METHODS["flip"] = _flip_method


@replaces("roll")
def roll(input, shifts, dims=None):
    if isinstance(dims, (tuple, list)) and len(dims) == 0:  # graph mode wants None
        dims = None
    return _roll(input, shifts, dims)


@replaces("repeat_interleave")
def repeat_interleave(input, repeats=None, dim=None, *, output_size=None):
    if repeats is None:  # each index as often as its value
        input, repeats = mint.arange(input.shape[0]), input
    if isinstance(repeats, (tuple, list)) and len(repeats) == 0:  # which ends MindSpore's process
        raise ValueError("repeat_interleave: expected one repeat, or one for each place, got ()")
    return _repeat_interleave(input, repeats, dim, output_size=output_size)


@replaces("searchsorted")
def searchsorted(sorted_sequence, values, *, out_int32=False, right=False, side=None, sorter=None):
    if not isinstance(values, Tensor):
        values = Tensor(values, sorted_sequence.dtype)
    return _searchsorted(
        sorted_sequence, values, out_int32=out_int32, right=right, side=side, sorter=sorter
    )


@replaces("sort")
def sort(input, dim=-1, descending=False, stable=False):
    return _sort(input, dim=dim, descending=descending, stable=stable)


@replaces("topk")
def topk(input, k, dim=-1, largest=True, sorted=True):
    dim = -1 if dim is None else dim
    if 0 not in input.shape:
        return _topk(input, k, dim, largest, sorted)
    if k > input.shape[dim]:  # MindSpore has the shape of the input for both results
        raise ValueError(f"topk: expected k from 0 to {input.shape[dim]}, got {k}")
    values = mint.narrow(input, dim, 0, k)
    return values, mint.zeros_like(values, dtype=ms.int64)


@method
def masked_fill(self, mask, value):
    return _masked_fill(self, mask, of_dtype(value, self.dtype))


@method
def index_fill(self, dim=None, index=None, value=None, *, axis=None):
    dim = axis if dim is None else dim
    value = of_dtype(value, self.dtype)
    fill = IndexFillTensor() if isinstance(value, Tensor) else IndexFillScalar()
    return fill(self, dim, index, value)

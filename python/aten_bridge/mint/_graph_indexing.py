"""`[]` in graphs: what an index names shares its memory, and `x[i] = y` writes that of x."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from mindspore import Tensor, mint
from mindspore.common.dtype import TensorType
from mindspore.ops import functional as F
from mindspore.ops.auto_generate.gen_ops_prim import inplace_copy_op
from mindspore.ops.composite.multitype_ops import getitem, setitem
from mindspore.ops.primitive import constexpr

from aten_bridge.mint._graph_views import SLICED, follow
from aten_bridge.mint._replace import inlined, named_as


@constexpr
def _is_basic(index, dtype):
    """1 if MindSpore has views for it: of numbers, slices with a positive step, None and `...`."""
    for part in index if isinstance(index, tuple) else (index,):
        if isinstance(part, slice):
            bounds = (part.start, part.stop, part.step)
            if dtype not in SLICED:
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


@inlined
def _view_of(data, index):
    return follow(data, _steps(data.shape, index))


copies = False  # `[]` in the graphs that are compiled now, where `x[i] = y` writes all of x


@contextlib.contextmanager
def copying() -> Iterator[None]:
    global copies
    before, copies = copies, True
    try:
        yield
    finally:
        copies = before


@constexpr
def _has_views(is_known):
    return int(is_known and not copies)


@inlined
def _same(data):
    return data


@inlined
def _copied(data):
    return mint.clone(data)


@inlined
def part(data):
    """What `x[i]` has given, to write to where `x[i] = …` follows."""
    return (_copied, _same)[_has_views(True)](data)


def _as_views(original: Callable) -> Callable:
    @inlined
    def get(data, index):
        return (original, _view_of)[_is_basic(index, data.dtype)](data, index)

    @inlined
    def compute(data, index):
        return (original, get)[_has_views(F.isconstant((index, data.shape)))](data, index)

    return named_as(original, compute)


def _in_place(original: Callable) -> Callable:
    """MindSpore's results are new tensors, which other names of the written one do not see."""

    @inlined
    def renew(data, index, value):
        # What has been written before MindSpore writes in place, which it does not differentiate.
        return inplace_copy_op(data, original(mint.clone(data), index, value))

    @inlined
    def set_whole(data, index, value):
        inplace_copy_op(_view_of(data, index), value)
        return data

    @inlined
    def set_longer(data, index, value):
        value = F.reshape(value, value.shape[_leading(value.ndim, data.shape, index, data.dtype) :])
        inplace_copy_op(_view_of(data, index), value)
        return data

    @inlined
    def set_tensor(data, index, value):
        leading = _leading(value.ndim, data.shape, index, data.dtype)
        way = _way(index, data.dtype, leading)
        return (renew, set_whole, set_longer)[way](data, index, value)

    @inlined
    def set_number(data, index, value):
        return (renew, set_whole)[_is_basic(index, data.dtype)](
            data, index, Tensor(value, data.dtype)
        )

    @inlined
    def compute(data, index, value):
        is_known = _has_views(F.isconstant((index, data.shape)))
        if isinstance(value, Tensor):
            return (renew, set_tensor)[is_known](data, index, value)
        if isinstance(value, (int, float, bool)):
            is_known = _has_views(F.isconstant((index, data.shape, value)))
            return (renew, set_number)[is_known](data, index, value)
        return renew(data, index, value)

    return named_as(original, compute)


def install() -> None:
    """MindSpore's own choose by an environment variable, of which a graph keeps the branches."""
    for table, change in ((getitem, _as_views), (setitem, _in_place)):
        for kinds, function in list(table.entries):
            if isinstance(kinds[0], TensorType) and function.__module__.startswith("mindspore"):
                table.register(*kinds)(change(function))

"""Other shapes and orders of the same elements."""

from __future__ import annotations

from collections.abc import Callable

from mindspore import Tensor, mint, ops
from mindspore import _checkparam as validator
from mindspore.graph._parse import standard_method
from mindspore.ops import tensor_method
from mindspore.ops.auto_generate import (
    broadcast_to_view_op,
    gen_ops_def,
    transpose_ext_view_op,
    transpose_view_op,
)
from mindspore.ops.function import array_func

from aten_bridge.mint._promotion import in_common
from aten_bridge.mint._replace import METHODS, REPLACED, inlined, is_known, method, replaces

_squeeze = mint.squeeze


@inlined
@replaces("permute")
def permute(input, dims):
    return transpose_view_op(input, tuple(dims))


@replaces("squeeze")
def squeeze(input, dim=None):
    if dim is None:
        dim = tuple([i for i in range(input.ndim) if input.shape[i] == 1])
    if isinstance(dim, (tuple, list)) and len(dim) == 0:  # for MindSpore those are all
        return mint.reshape(input, input.shape)
    return _squeeze(input, dim)


def _squeeze_method(self, dim=None, *, axis=None):
    return squeeze(self, axis if dim is None else dim)


METHODS["squeeze"] = _squeeze_method
_split = Tensor.split


@method
def split(self, *arguments, **keywords):
    """An empty dimension has one part, of which PyTorch's operator makes none here."""
    if 0 not in self.shape:
        return _split(self, *arguments, **keywords)
    names = {"split_size": "split_size_or_sections", "dim": "axis"}
    return ops.split(
        self, *arguments, **{names.get(name, name): keywords[name] for name in keywords}
    )


# ===--- several tensors in one ---===


def _joining(original: Callable) -> None:
    """In a graph MindSpore casts all to the first one's dtype, and the result to the common one."""

    def compute(tensors, dim=0):
        return original(tensors if are_unknown(tensors) else in_common(tensors), dim)

    REPLACED.append((original, compute))


def are_unknown(tensors):
    """Whether they are no list, or graph mode has yet to learn what they are."""
    if not isinstance(tensors, (tuple, list)) or len(tensors) == 0:
        return True
    for tensor in tensors:  # noqa: SIM110  graph mode has no any()
        if not is_known(tensor) or not isinstance(tensor, Tensor):
            return True
    return False


_joining(array_func.concat_impl)
_joining(gen_ops_def.stack_ext_impl)
_dstack = ops.dstack


@replaces("dstack")
def dstack(tensors):
    return _dstack(tensors if are_unknown(tensors) else in_common(tensors))


# ===--- methods of tensors in graph mode ---===
#
# What MindSpore's compiler takes for them, where that is not what they do in PyNative mode.

_expand = standard_method.expand
_transpose = tensor_method.deprecated_tensor_transpose


@inlined
def expand(input, size, *sizes):
    """To numbers, too: MindSpore's takes a tensor of them only."""
    if isinstance(size, Tensor):
        return _expand(input, size)
    if isinstance(size, int):
        return broadcast_to_view_op(input, (size, *sizes) if sizes else (size,))
    return broadcast_to_view_op(input, tuple(size))


@inlined
def transpose(input, *axes):
    """Two numbers are the dimensions to swap: MindSpore takes them for the order of all."""
    if axes and len(axes) == 2 and isinstance(axes[0], int) and isinstance(axes[1], int):
        return transpose_ext_view_op(input, axes[0], axes[1])
    order = validator.check_transpose_axis(axes or (), input.ndim)  # a graph has None for ()
    return transpose_view_op(input, order)


REPLACED += [(_expand, expand), (_transpose, transpose)]

"""Other shapes and orders of the same elements."""

from __future__ import annotations

from mindspore import Tensor, mint, ops
from mindspore import _checkparam as validator
from mindspore.graph._parse import standard_method
from mindspore.ops import tensor_method
from mindspore.ops.auto_generate import (
    broadcast_to_view_op,
    transpose_ext_view_op,
    transpose_view_op,
)

from aten_bridge.mint._replace import METHODS, REPLACED, inlined, method, replaces

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

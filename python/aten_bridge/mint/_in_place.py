"""Methods that write their tensor."""

from __future__ import annotations

import mindspore as ms
from mindspore import Tensor, mint
from mindspore.common.api import _pynative_executor
from mindspore.ops import tensor_method
from mindspore.ops.auto_generate import inplace_sub_ext_op, inplace_sub_scalar_op

from aten_bridge.mint._complex import is_complex
from aten_bridge.mint._numbers import beside, is_wide, of_dtype
from aten_bridge.mint._replace import METHODS, REPLACED, method, named_as

_div_in_place, _fill_in_place = Tensor.div_, Tensor.fill_
_index_fill_in_place, _masked_fill_in_place = Tensor.index_fill_, Tensor.masked_fill_


def _exact_in_place(name: str) -> None:
    original, function = getattr(Tensor, name), getattr(mint, name.strip("_"))

    def compute(self, *arguments, **keywords):
        number = arguments[0] if arguments else None
        if name == "mul_" and (is_complex(self) or is_complex(number)):
            if _pynative_executor.requires_grad():
                return self.copy_(mint.clone(self) * number)
        elif name == "mul_" and is_wide(number, self):
            computed = function(self.astype(ms.float32), *arguments, **keywords)
            return self.copy_(computed.astype(self.dtype))
        rest = arguments[1:]
        return original(self, *([beside(number, self)] if arguments else []), *rest, **keywords)

    METHODS[name] = named_as(original, compute)


for _name in ("add_", "floor_divide_", "mul_", "remainder_", "sub_"):
    _exact_in_place(_name)


@method
def div_(self, other, *, rounding_mode=None):
    if rounding_mode is None and is_complex(self) and _pynative_executor.requires_grad():
        return self.copy_(mint.clone(self) / other)
    if rounding_mode is None and not is_wide(other, self):
        return _div_in_place(self, beside(other, self))
    # With a mode MindSpore's does nothing.
    if _pynative_executor.requires_grad():
        return div_by_copy(self, other, rounding_mode=rounding_mode)
    return self.copy_(mint.div(self, other, rounding_mode=rounding_mode))


def _complex_in_place(name: str, in_place: str) -> None:
    original = getattr(Tensor, name)

    def compute(self, other):
        if is_complex(self) and _pynative_executor.requires_grad():
            return getattr(self, in_place)(other)
        return original(self, other)

    METHODS[name] = named_as(original, compute)


for _name, _in_place in (("__imul__", "mul_"), ("__itruediv__", "div_")):
    _complex_in_place(_name, _in_place)


@method
def fill_(self, value):
    return _fill_in_place(self, of_dtype(value, self.dtype))


@method
def masked_fill_(self, mask, value):
    return _masked_fill_in_place(self, mask, of_dtype(value, self.dtype))


@method
def index_fill_(self, dim, index, value):
    if isinstance(value, Tensor) and _pynative_executor.requires_grad():
        return index_fill_by_mask(self, dim, index, value)
    return _index_fill_in_place(self, dim, index, of_dtype(value, self.dtype))


# ===--- gradients ---===
#
# MindSpore has no gradients of these methods, or wrong ones: the functions are made of methods that
# have gradients. In graphs _graph_writes.py replaces the methods by the functions.

_addmm_in_place, _copy_in_place, _fill_diagonal_in_place = (
    Tensor.addmm_,
    Tensor.copy_,
    Tensor.fill_diagonal_,
)
_index_put_in_place = Tensor.index_put_


def addmm_by_copy(self, mat1, mat2, *, beta=1, alpha=1):
    return self.copy_(mint.addmm(mint.clone(self), mat1, mat2, beta=beta, alpha=alpha))


def copy_of_dtype(self, src, non_blocking=False):
    """Without the cast, the gradient of a `src` of another dtype would have the dtype of `self`."""
    return _copy_in_place(self, src.astype(self.dtype), non_blocking)


def div_by_copy(self, other, *, rounding_mode=None):
    return self.copy_(mint.div(mint.clone(self), other, rounding_mode=rounding_mode))


def fill_diagonal_by_mask(self, fill_value, wrap=False):
    places = _fill_diagonal_in_place(mint.zeros(self.shape, dtype=ms.int32), 1, wrap)
    return self.masked_fill_(places == 1, fill_value)


def index_fill_by_mask(self, dim, index, value):
    places = mint.zeros(self.shape, dtype=ms.int32)
    return self.masked_fill_(places.index_fill_(dim, index, 1) == 1, value)


def index_put_by_rows(self, indices, values, accumulate=False):
    """Writes rows of the dimensions that the indices name, by index_copy_ and index_add_."""
    rows, place = 1, 0
    for i in range(len(indices)):
        size, index = self.shape[i], indices[i].astype(ms.int64)
        rows *= size
        place = place * size + mint.where(index < 0, index + size, index)
    rest = self.shape[len(indices) :]
    values = mint.broadcast_to(values.astype(self.dtype), (*place.shape, *rest))
    values = mint.reshape(values, (place.numel(), -1))
    table, place = mint.reshape(mint.clone(self), (rows, -1)), mint.reshape(place, (-1,))
    if accumulate:
        table = mint.index_add(table, 0, place, values)
    else:
        table = mint.clone(table).index_copy_(0, place, values)
    return self.copy_(mint.reshape(table, self.shape))


def has_rows(self, indices, values) -> bool:
    """Whether index_put_by_rows() can write them."""
    for index in indices:
        if index.dtype not in (ms.int32, ms.int64):
            return False
    return self.ndim > 0 and 0 not in self.shape and len(indices) > 0


@method
def addmm_(self, mat1, mat2, *, beta=1, alpha=1):
    if _pynative_executor.requires_grad():
        return addmm_by_copy(self, mat1, mat2, beta=beta, alpha=alpha)
    return _addmm_in_place(self, mat1, mat2, beta=beta, alpha=alpha)


@method
def copy_(self, src, non_blocking=False):
    if not isinstance(src, Tensor):
        return self.fill_(src)
    if src.dtype != self.dtype and _pynative_executor.requires_grad():
        return copy_of_dtype(self, src, non_blocking)
    return _copy_in_place(self, src, non_blocking)


@method
def fill_diagonal_(self, fill_value, wrap=False):
    if wrap and _pynative_executor.requires_grad():
        return fill_diagonal_by_mask(self, fill_value, wrap)
    return _fill_diagonal_in_place(self, fill_value, wrap)


@method
def index_put_(self, indices, values, accumulate=False):
    if _pynative_executor.requires_grad() and has_rows(self, indices, values):
        return index_put_by_rows(self, indices, values, accumulate)
    return _index_put_in_place(self, indices, values, accumulate)


# ===--- methods of tensors in graph mode ---===


def sub_(input, y):
    """MindSpore's compiler takes the difference for it."""
    if isinstance(y, Tensor):
        return inplace_sub_ext_op(input, y)
    return inplace_sub_scalar_op(input, y)


REPLACED.append((tensor_method.deprecated_tensor_sub_, sub_))

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
    return _index_fill_in_place(self, dim, index, of_dtype(value, self.dtype))


# ===--- methods of tensors in graph mode ---===


def sub_(input, y):
    """MindSpore's compiler takes the difference for it."""
    if isinstance(y, Tensor):
        return inplace_sub_ext_op(input, y)
    return inplace_sub_scalar_op(input, y)


REPLACED.append((tensor_method.deprecated_tensor_sub_, sub_))

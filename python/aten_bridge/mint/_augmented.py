"""Augmented assignments: `x **= y` writes x, as in PyTorch, in both modes.

MindSpore makes new tensors of these, which other names of the written one do not see, and has no
shifts of tensors. In graphs its compiler takes the functions here for the statements.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable

import mindspore as ms
from mindspore import Tensor, mint
from mindspore.graph._parse import resources, trope
from mindspore.ops.auto_generate import inplace_copy_op, left_shift_op, right_shift_op
from mindspore.ops.composite import multitype_ops
from mindspore.ops.primitive import constexpr

from aten_bridge.mint._numbers import FLOATING
from aten_bridge.mint._promotion import common
from aten_bridge.mint._replace import METHODS, inlined, is_known

_COMPLEX = (ms.complex64, ms.complex128)
_SHIFTS = {"lshift": left_shift_op, "rshift": right_shift_op}
# The methods' names, the statements in Python's syntax tree, what a graph computes.
_OPERATORS = {
    "pow": (ast.Pow, "**=", multitype_ops.pow_),
    "and": (ast.BitAnd, "&=", multitype_ops.bitwise_and),
    "or": (ast.BitOr, "|=", multitype_ops.bitwise_or),
    "xor": (ast.BitXor, "^=", multitype_ops.bitwise_xor),
    "lshift": (ast.LShift, "<<=", multitype_ops.left_shift),
    "rshift": (ast.RShift, ">>=", multitype_ops.right_shift),
}


def _kind(dtype):
    if dtype in _COMPLEX:
        return 3
    return 2 if dtype in FLOATING else int(dtype != ms.bool_)


@constexpr
def _mistake(symbol, written, dtype):
    if _kind(dtype) <= _kind(written):
        return ""
    return (
        f"`x {symbol} y`: expected a result that the dtype of x can hold, {str(written).lower()}, "
        f"got {str(dtype).lower()}; write `x = x {symbol[:-1]} y`"
    )


def _as_written(symbol, x, result):
    mistake = _mistake(symbol, x.dtype, result.dtype)
    if mistake:  # a graph adds the line
        raise TypeError(mistake)
    return result if result.dtype == x.dtype else result.astype(x.dtype)


def _shift(name: str) -> Callable:
    kernel, symbol = _SHIFTS[name], _OPERATORS[name][1][:-1]

    def compute(x, y):
        if isinstance(x, float) or isinstance(y, float):
            raise TypeError(f"{symbol}: expected integers, got a float")
        x = x if isinstance(x, Tensor) else Tensor(x, y.dtype)
        y = y if isinstance(y, Tensor) else Tensor(y, x.dtype)
        dtype = common((x.dtype, y.dtype), (x.ndim, y.ndim))
        return kernel(x.astype(dtype), y.astype(dtype))

    return compute


def _shift_method(name: str) -> Callable:
    shift = _shift(name)

    def compute(self, other):
        return shift(self, other)

    return compute


def _in_pynative_mode(name: str, symbol: str) -> None:
    compute = getattr(operator, f"{name}_" if name in ("and", "or") else name)

    def assign(self, other):
        return self.copy_(_as_written(symbol, self, compute(mint.clone(self), other)))

    METHODS[f"__i{name}__"] = assign


def _in_graphs(symbol: str, compute: Callable) -> Callable:
    @inlined
    def assign(x, y):
        if not is_known(x) or not isinstance(x, Tensor):
            return compute(x, y)
        return inplace_copy_op(x, _as_written(symbol, x, compute(mint.clone(x), y)))

    return assign


for _name, (_, _symbol, _) in _OPERATORS.items():
    _in_pynative_mode(_name, _symbol)
METHODS["bitwise_left_shift"], METHODS["bitwise_right_shift"] = map(_shift_method, _SHIFTS)
for _name in _SHIFTS:
    METHODS[f"__{_name}__"] = _shift(_name)
    METHODS[f"__r{_name}__"] = lambda self, other, name=_name: _shift(name)(other, self)


def install() -> None:
    """The compiler finds the functions by their names in a module of MindSpore's."""
    for name, (node, symbol, compute) in _OPERATORS.items():
        place = f"aten_bridge_{name}"
        setattr(trope, place, _in_graphs(symbol, compute))
        resources.parse_augassign_object_map[node] = (resources.trope_ns, place, symbol)
        if name in _SHIFTS:
            for kinds in (("Tensor", "Tensor"), ("Tensor", "Number"), ("Number", "Tensor")):
                compute.register(*kinds)(_shift(name))

"""One tensor in, one of the same shape out, element by element."""

from __future__ import annotations

import math
from collections.abc import Callable

import mindspore as ms
import numpy as np
from mindspore import Tensor, mint, ops
from mindspore.ops import tensor_method

from aten_bridge.mint._complex import is_complex
from aten_bridge.mint._numbers import INTEGERS, number_like
from aten_bridge.mint._replace import METHODS, REPLACED, is_known, named_as, original_of, replaces

_real = mint.real


def _of_integers(original: Callable) -> Callable:
    """Integers and truth values as float32, which PyTorch's results are."""

    def compute(input):
        is_whole = isinstance(input, Tensor) and input.dtype in (*INTEGERS, ms.bool_)
        return original(input.astype(ms.float32) if is_whole else input)

    return named_as(original, compute)


for _name in ("erf", "erfc", "exp", "expm1"):
    REPLACED.append((original_of(_name), _of_integers(original_of(_name))))


@replaces("square", ms.bool_)
def square(input):
    return mint.square(input.astype(ms.int64))


@replaces("item", ms.bfloat16)
def item(input):
    return input.astype(ms.float32).item()


@replaces("real")  # MindSpore's gradient of real numbers is complex
def real(input):
    return _real(input) if input.is_complex() else input


@replaces("ceil", *INTEGERS)
def ceil(input):
    return mint.clone(input)


# Tensors: of a number that is beyond float32 a graph makes infinity.
_LARGEST, _SMALLEST = (Tensor(np.array(x)) for x in (np.finfo(float).max, np.finfo(float).min))


@replaces("nan_to_num", ms.float64)
def nan_to_num(input, nan=None, posinf=None, neginf=None):
    for places, value in (
        (mint.isnan(input), 0.0 if nan is None else nan),
        (input == math.inf, _LARGEST if posinf is None else posinf),
        (input == -math.inf, _SMALLEST if neginf is None else neginf),
    ):
        value = value if isinstance(value, Tensor) else number_like(value, input)
        input = mint.where(places, value, input)
    return input


def _complex_as_before(name: str) -> None:
    """PyTorch's operator has no gradient of complex numbers in MindSpore, whose own has one."""
    function, method = getattr(ops, name), getattr(Tensor, name)

    @replaces(name, ms.complex64, ms.complex128)
    def compute(input):
        return function(input)

    def compute_method(self):
        return function(self) if is_known(self) and is_complex(self) else method(self)

    for path in (name, "arc" + name[1:]):
        METHODS[path] = named_as(getattr(Tensor, path), compute_method)


for _name in ("acos", "acosh", "asin", "asinh", "atan"):
    _complex_as_before(_name)


_complex_abs = ops.ComplexAbs()


def _real_abs(original: Callable) -> Callable:
    """MindSpore's is complex for complex numbers."""

    def compute(input):
        if is_known(input) and is_complex(input):
            return _complex_abs(input)
        return original(input)

    return named_as(original, compute)


REPLACED.append((original_of("abs"), _real_abs(original_of("abs"))))
REPLACED.append((tensor_method.tensor_abs, _real_abs(tensor_method.tensor_abs)))
for _name in ("__abs__", "abs", "absolute"):
    METHODS[_name] = _real_abs(getattr(Tensor, _name))

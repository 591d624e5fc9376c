"""Two tensors, or a tensor and a number, element by element."""

from __future__ import annotations

from collections.abc import Callable

import mindspore as ms
from mindspore import Tensor, mint
from mindspore.common.api import _pynative_executor
from mindspore.ops import tensor_method
from mindspore.ops.auto_generate import floor_mod_op

from aten_bridge.mint._complex import Product, Quotient, ReverseQuotient, is_complex
from aten_bridge.mint._numbers import FLOATING, beside, is_wide, number_like
from aten_bridge.mint._promotion import common, in_common, promotes
from aten_bridge.mint._replace import (
    METHODS,
    REPLACED,
    is_known,
    method,
    named_as,
    original_of,
    replaces,
)

_add, _div, _float_power, _fmod = mint.add, mint.div, mint.float_power, mint.fmod
_mul, _pow, _remainder, _sub = mint.mul, mint.pow, mint.remainder, mint.sub
_addcdiv, _addcmul, _cdist, _clamp = mint.addcdiv, mint.addcmul, mint.cdist, mint.clamp
_gcd, _xlogy = mint.gcd, mint.xlogy
_logaddexp, _logaddexp2 = mint.logaddexp, mint.logaddexp2


def _times(other, alpha, input):
    """The second operand and the factor that is left to MindSpore."""
    factor = beside(alpha, input)
    if not isinstance(factor, Tensor):
        return beside(other, input), alpha
    return (other.astype(ms.float64) if isinstance(other, Tensor) else other) * factor, 1


@replaces("add")
def add(input, other, *, alpha=1):
    if not is_known(input, other):  # nor with a keyword
        return _add(input, other) if alpha == 1 else _add(input, other * alpha)
    other, alpha = _times(other, alpha, input)
    return _add(beside(input, other), other, alpha=alpha)


@replaces("sub")
def sub(input, other, *, alpha=1):
    if not is_known(input, other):  # nor with a keyword
        return _sub(input, other) if alpha == 1 else _sub(input, other * alpha)
    other, alpha = _times(other, alpha, input)
    return _sub(beside(input, other), other, alpha=alpha)


@replaces("mul")
def mul(input, other):
    if not is_known(input, other):
        return _mul(input, other)
    if is_complex(input) or is_complex(other):
        return input * other
    if is_wide(other, input):
        return _mul(input.astype(ms.float32), other).astype(input.dtype)
    if is_wide(input, other):
        return _mul(input, other.astype(ms.float32)).astype(other.dtype)
    return _mul(beside(input, other), beside(other, input))


@replaces("div")
def div(input, other, *, rounding_mode=None):
    if rounding_mode is None and not is_known(input, other):
        return _div(input, other)
    if rounding_mode is None and (is_complex(input) or is_complex(other)):
        return input / other
    if is_wide(other, input):
        wide = _div(input.astype(ms.float32), other, rounding_mode=rounding_mode)
        return wide.astype(input.dtype)
    if rounding_mode is not None and isinstance(input, Tensor) and isinstance(other, Tensor):
        input, other = in_common((input, other))  # MindSpore's result has another dtype's bytes
    return _div(beside(input, other), beside(other, input), rounding_mode=rounding_mode)


@promotes("fmod")
def fmod(input, other):
    return _fmod(input, beside(other, input))


@replaces("remainder")  # MindSpore's is x - y * floor(x / y): NaN where y is infinite
def remainder(input, other):
    if not is_known(input, other):
        return _remainder(input, other)
    dtypes = [x.dtype for x in (input, other) if isinstance(x, Tensor)]
    if ms.uint16 in dtypes or ms.uint32 in dtypes or ms.uint64 in dtypes:  # FloorMod refuses them
        return _remainder(input, other)
    return floor_mod_op(beside(input, other), beside(other, input))


@replaces("pow")
def pow_(input, exponent):
    if not is_known(input, exponent):
        return _pow(input, exponent)
    return _pow(beside(input, exponent), beside(exponent, input))


@replaces("float_power")
def float_power(input, exponent):
    def wide(number):  # the result is one, too
        return Tensor(number, ms.float64) if isinstance(number, float) else number

    return _float_power(wide(input), wide(exponent))


@promotes("addcmul")
def addcmul(input, tensor1, tensor2, *, value=1):
    if input.dtype != ms.float64:
        return _addcmul(input, tensor1, tensor2, value=value)
    return input + tensor1 * tensor2 * number_like(value, input)


@promotes("addcdiv")
def addcdiv(input, tensor1, tensor2, *, value=1):
    if input.dtype != ms.float64:
        return _addcdiv(input, tensor1, tensor2, value=value)
    return input + number_like(value, input) * (tensor1 / tensor2)


@promotes("gcd")
def gcd(input, other):
    if input.dtype in (ms.int8, ms.uint8):
        return _gcd(input.astype(ms.int16), other.astype(ms.int16)).astype(input.dtype)
    return _gcd(input, other)


@promotes("logaddexp")
def logaddexp(input, other):
    if input.dtype != ms.float64:
        return _logaddexp(input, other)
    larger = mint.maximum(input, other)
    rest = mint.log1p(mint.exp(-mint.abs(input - other)))
    equal = mint.logical_and(mint.isinf(input), input == other)  # whose difference is NaN
    return mint.where(equal, input, larger + rest)


@promotes("logaddexp2")
def logaddexp2(input, other):
    return _logaddexp2(input, other)


@replaces("lerp", ms.float16, ms.bfloat16, ms.float64)
def lerp(input, end, weight):
    if input.dtype != ms.float64:  # MindSpore's gradient of these is a float32
        wide = [x.astype(ms.float32) if isinstance(x, Tensor) else x for x in (input, end, weight)]
        return mint.lerp(*wide).astype(input.dtype)
    # From the nearer end, as PyTorch rounds.
    weight = weight if isinstance(weight, Tensor) else number_like(weight, input)
    way = end - input
    return mint.where(weight < 0.5, input + weight * way, end - way * (1 - weight))


@replaces("xlogy")
def xlogy(input, other):
    def tensor(value, like):
        if isinstance(value, Tensor):
            return value
        return Tensor(value, like.dtype if like.dtype in FLOATING else ms.float32)

    return _xlogy(tensor(input, other), tensor(other, input))


def _arc_tangent(name: str) -> None:
    """MindSpore's gradients of two dtypes have the precision of the smaller."""
    original = original_of(name)

    @promotes(name)
    def compute(input, other):
        return original(input, other)

    METHODS[name] = REPLACED[-1][1]


_arc_tangent("arctan2")
_arc_tangent("atan2")


@replaces("cdist")
def cdist(x1, x2, p=2.0, compute_mode="use_mm_for_euclid_dist_if_necessary"):
    return _cdist(x1, x2, float(p), compute_mode)


def _bounds(input, min, max):
    """MindSpore wants both as tensors, or none."""
    for bound in (min, max):
        if input.dtype != ms.float64 or isinstance(bound, Tensor) or bound != bound:
            return min, max
    return tuple([bound if bound is None else Tensor(bound, input.dtype) for bound in (min, max)])


def _clamp_to_tensors(input, min=None, max=None):
    """Clamps in the common dtype; the gradient of each is of its own."""
    tensors = [x for x in (input, min, max) if isinstance(x, Tensor)]
    dtype = common(tuple([x.dtype for x in tensors]), tuple([x.ndim for x in tensors]))
    wide = [
        x.astype(dtype) if isinstance(x, Tensor) and x.dtype != dtype else x
        for x in (input, min, max)
    ]
    return _clamp(*wide)


REPLACED.append((tensor_method.tensor_clamp_tensor, _clamp_to_tensors))


@replaces("clamp")
@method
def clamp(input, min=None, max=None):
    if not is_known(input, min, max):
        return _clamp(input, min, max)
    if isinstance(min, Tensor) or isinstance(max, Tensor):
        return _clamp_to_tensors(input, min, max)
    min, max = _bounds(input, min, max)
    return _clamp(input, min, max)


@replaces("clip")
@method
def clip(input, min=None, max=None):
    return clamp(input, min, max)


# ===--- operators and methods of tensors ---===


def _exact_method(original: Callable) -> Callable:
    def compute(self, *arguments, **keywords):
        if arguments and (is_complex(self) or is_complex(arguments[0])):
            if kind is None or keywords or not _pynative_executor.requires_grad():
                return original(self, *arguments, **keywords)
            return kind.apply(original, self, *arguments)
        if arguments and isinstance(arguments[0], (int, float)):
            number, *rest = arguments
            if is_product and is_wide(number, self):
                return original(self.astype(ms.float32), *arguments, **keywords).astype(self.dtype)
            arguments = (beside(number, self), *rest)
        return original(self, *arguments, **keywords)

    name = original.__name__.strip("_")
    kind, is_product = _COMPLEX.get(name), name in _PRODUCTS
    return named_as(original, compute)


_PRODUCTS = ("div", "mul", "rmul", "truediv")
_COMPLEX = {
    **{"mul": Product, "rmul": Product, "div": Quotient, "truediv": Quotient},
    "rtruediv": ReverseQuotient,
}
for _name in (
    *("add", "eq", "ge", "gt", "le", "lt", "mul", "ne", "pow", "radd", "rmul"),
    *("rpow", "rsub", "rtruediv", "sub", "truediv"),
):
    METHODS[f"__{_name}__"] = _exact_method(getattr(Tensor, f"__{_name}__"))
for _name in ("add", "div", "eq", "ge", "gt", "le", "lt", "mul", "ne", "pow", "sub"):
    METHODS[_name] = _exact_method(getattr(Tensor, _name))


def _exact_comparison(name: str) -> None:
    original = original_of(name)

    def compute(input, other):
        return original(input, beside(other, input))

    REPLACED.append((original, named_as(original, compute)))


for _name in ("eq", "ge", "gt", "le", "lt", "ne"):
    _exact_comparison(_name)


_rtruediv = METHODS["__rtruediv__"]


@method
def __rtruediv__(self, other):
    if not is_wide(other, self):
        return _rtruediv(self, other)
    return mint.mul(mint.reciprocal(self), other)  # as PyTorch rounds


@method
def __mod__(self, other):
    return remainder(self, other)


@method
def __rmod__(self, other):
    return remainder(other, self)


METHODS["remainder"] = METHODS["__mod__"]

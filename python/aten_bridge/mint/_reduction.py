"""Many elements to one, and one after the other."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import mindspore as ms
from mindspore import Tensor, mint, nn, ops
from mindspore.ops.auto_generate import LinalgVectorNorm

from aten_bridge.mint._numbers import FLOATING, INTEGERS
from aten_bridge.mint._replace import METHODS, REPLACED, named_as, original_of, replaces

_all, _any, _cumprod, _cumsum = mint.all, mint.any, mint.cumprod, mint.cumsum


@replaces("any")
def any_(input, dim=None, keepdim=False):
    if dim is None and keepdim:
        dim = tuple(range(input.ndim))
    if not isinstance(dim, (tuple, list)):
        truth = input.astype(ms.bool_)  # MindSpore's of rank 0 is the tensor itself
        result = _any(truth) if dim is None else _any(truth, dim, keepdim)
        return result.astype(ms.uint8) if input.dtype == ms.uint8 else result
    for i in dim:
        if not -input.ndim <= i < input.ndim:
            raise IndexError(
                f"any: expected dimensions from {-input.ndim} to {input.ndim - 1}, got {i}"
            )
    dtype = ms.uint8 if input.dtype == ms.uint8 else ms.bool_  # as in PyTorch
    input = input.astype(ms.bool_)
    for i in range(input.ndim - 1, -1, -1):
        if i in dim or i - input.ndim in dim:
            input = _any(input, i, keepdim)
    return input.astype(dtype)


@replaces("all")
def all_(input, dim=None, keepdim=False):
    if isinstance(dim, (tuple, list)) and len(dim) == 0:  # no dimension: each element's own
        return input if input.dtype == ms.uint8 else input.astype(ms.bool_)
    result = _all(input, dim, keepdim)
    return result.astype(ms.uint8) if input.dtype == ms.uint8 else result


@replaces("logsumexp", ms.float64)
def logsumexp(input, dim, keepdim=False):
    largest = ops.stop_gradient(mint.amax(input, dim, True))
    largest = mint.where(mint.isinf(largest), mint.zeros_like(largest), largest)
    total = mint.log(mint.sum(mint.exp(input - largest), dim, True)) + largest
    return total if keepdim else mint.sum(total, dim)


@replaces("linalg.vector_norm")  # MindSpore asks for an operator of its own unless 0, 1, 2 or 3
def vector_norm(x, ord=2, dim=None, keepdim=False, *, dtype=None):
    dim = (dim,) if isinstance(dim, int) else dim
    x = x if dtype is None else x.astype(dtype)  # and so is its gradient
    return LinalgVectorNorm()(x, float(ord), dim, keepdim, None)


def _of_cast(path: str) -> None:
    """With a dtype it is that of the cast tensor: MindSpore's gradient has the result's dtype."""
    original = original_of(path)
    first = next(iter(inspect.signature(original).parameters))

    def compute(*arguments, **keywords):
        dtype = keywords["dtype"] if "dtype" in keywords else None  # noqa: SIM401  in graphs, too
        if dtype is None:
            return original(*arguments, **keywords)
        rest = {name: keywords[name] for name in keywords if name not in ("dtype", first)}
        x = arguments[0] if arguments else keywords[first]
        return original(x.astype(dtype), *arguments[1:], **rest)

    REPLACED.append((original, named_as(original, compute)))


for _name in ("nansum", "norm", "linalg.matrix_norm", "linalg.norm"):
    _of_cast(_name)


def _of_0_dim(path: str) -> None:
    """The function along a dimension takes a tensor of none, too."""
    original = original_of(path)

    def compute(input, dim):
        if input.ndim:
            return original(input, dim)
        results = original(mint.reshape(input, (1,)), dim)
        if isinstance(results, tuple):
            return tuple([mint.reshape(result, ()) for result in results])
        return mint.reshape(results, ())

    REPLACED.append((original, named_as(original, compute)))


for _name in ("cummax", "cummin"):
    _of_0_dim(_name)


def _shifted(x, steps, filler):
    """The last dimension without its first elements, with others behind."""
    rest = mint.narrow(x, -1, steps, x.shape[-1] - steps)
    return mint.cat((rest, mint.full_like(mint.narrow(x, -1, 0, steps), filler)), -1)


class _CumulativeProduct(nn.Cell):
    """Along the last dimension. MindSpore's gradient is NaN where an element is 0."""

    def construct(self, x):
        return _cumprod(x, -1)

    def bprop(self, x, out, dout):
        # g[k] + x[k + 1] * (g[k + 1] + x[k + 2] * (...)), the pairs composed by twos.
        factors, gradient, steps = _shifted(x, 1, 0), dout, 1
        while steps < x.shape[-1]:
            gradient = gradient + factors * _shifted(gradient, steps, 0)
            factors = factors * _shifted(factors, steps, 0)
            steps *= 2
        ones = mint.ones_like(mint.narrow(x, -1, 0, 1))
        before = mint.cat((ones, mint.narrow(out, -1, 0, x.shape[-1] - 1)), -1)
        return (gradient * before,)


_cumulative_product = _CumulativeProduct()


@replaces("cumprod")
def cumprod(input, dim, dtype=None):
    if dtype is None and input.dtype in (*INTEGERS, ms.bool_):
        dtype = ms.int64
    input = input if dtype is None else input.astype(dtype)
    if input.dtype not in FLOATING or 0 in input.shape:
        if input.ndim:
            return _cumprod(input, dim)
        return mint.reshape(_cumprod(mint.reshape(input, (1,)), dim), ())
    if not -max(input.ndim, 1) <= dim < max(input.ndim, 1):
        return _cumprod(input, dim)  # which refuses it
    if input.ndim == 0:
        return mint.select(_cumulative_product(mint.reshape(input, (1,))), 0, 0)
    if dim in (-1, input.ndim - 1):
        return _cumulative_product(input)
    return mint.transpose(_cumulative_product(mint.transpose(input, dim, -1)), dim, -1)


@replaces("cumsum")  # MindSpore's gradient has the dtype of the result
def cumsum(input, dim, dtype=None):
    if dtype is None and input.dtype in (*INTEGERS, ms.bool_):
        dtype = ms.int64
    return _cumsum(input if dtype is None else input.astype(dtype), dim)


@replaces("diff", ms.float64, ms.int16)
def diff(input, n=1, dim=-1, prepend=None, append=None):
    parts = [part for part in (prepend, input, append) if part is not None]
    input = mint.cat(parts, dim) if len(parts) > 1 else input
    for _ in range(min(n, input.shape[dim])):
        length = input.shape[dim] - 1
        input = mint.narrow(input, dim, 1, length) - mint.narrow(input, dim, 0, length)
    return input


def _place_of(name: str) -> None:
    """MindSpore's place among all elements has no dimensions, also with `keepdim`."""
    original = original_of(name)

    def compute(input, dim=None, keepdim=False):
        if dim is None and keepdim:
            return mint.reshape(original(input), (1,) * input.ndim)
        return original(input, dim, keepdim)

    REPLACED.append((original, named_as(original, compute)))


for _name in ("argmax", "argmin"):
    _place_of(_name)


# ===--- variances ---===


def moments(input, dim, correction, keepdim):
    """The variance and the mean."""
    dim = tuple(range(input.ndim)) if dim is None or dim == () else dim
    mean = mint.mean(input, dim, True)
    rest = input - mean
    count = input.numel() // max(mean.numel(), 1)
    divisor = max(count - correction, 0)
    variance = mint.sum(rest * rest, dim, keepdim) / float(divisor)
    return variance, mean if keepdim else mint.reshape(mean, variance.shape)


def var(input, dim=None, *, correction=1, keepdim=False):
    return moments(input, dim, correction, keepdim)[0]


def _root(variance):
    """With a gradient of 0 where all values are equal."""
    is_zero = variance == 0
    root = mint.sqrt(mint.where(is_zero, mint.ones_like(variance), variance))
    return mint.where(is_zero, mint.zeros_like(variance), root)


def std(input, dim=None, *, correction=1, keepdim=False):
    return _root(var(input, dim, correction=correction, keepdim=keepdim))


def var_mean(input, dim=None, *, correction=1, keepdim=False):
    return moments(input, dim, correction, keepdim)


def std_mean(input, dim=None, *, correction=1, keepdim=False):
    variance, mean = moments(input, dim, correction, keepdim)
    return _root(variance), mean


def _unbiased(of_float64: Callable) -> None:
    """The function takes PyTorch's `unbiased` too, in the second place or the third."""
    original = original_of(of_float64.__name__)

    def compute(input, dim=None, unbiased=None, keepdim=False, *, correction=1):
        if isinstance(dim, bool):
            unbiased = dim
            dim = None
        if unbiased is not None:
            correction = int(unbiased)
        if input.dtype == ms.float64:
            return of_float64(input, dim, correction=correction, keepdim=keepdim)
        return original(input, dim, correction=correction, keepdim=keepdim)

    REPLACED.append((original, named_as(original, compute)))


for _function in (std, std_mean, var, var_mean):
    _unbiased(_function)


# ===--- methods that take what the functions take ---===


def _by_dim(name: str) -> None:
    """The method takes PyTorch's keywords too, as the function does."""
    original, function = getattr(Tensor, name), original_of(name)

    def compute(self, *arguments, **keywords):
        takes = function if "dim" in keywords or "keepdim" in keywords else original
        return takes(self, *arguments, **keywords)

    METHODS[name] = named_as(original, compute)


for _name in ("amax", "amin"):
    _by_dim(_name)

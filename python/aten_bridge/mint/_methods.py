"""Methods of tensors: for many names MindSpore has two, its older one and PyTorch's.

Where there is a kernel for PyTorch's, PyNative mode takes it, but for calls by the older one's
keywords (`axis`, `ddof`). A graph takes the older one as long as that has the arguments' names, so
that one line would have two values. Here both modes take PyTorch's, and the older one for calls by
its keywords. A graph knows nothing of keywords: in the functions of programs _graph_writes.py calls
`OLDER` instead. Where both methods have one result, `axis` is another name of `dim`.

A graph passes the older method all its parameters, by their positions: those that a call leaves out
have the defaults that MindSpore's generated Python says. The functions here have other defaults, so
that None is what a call has left out.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable

from mindspore import Tensor, int32, numpy
from mindspore.graph._parse import standard_method
from mindspore.graph._parse.deprecated.deprecated_tensor_method import deprecated_tensor_method_map
from mindspore.ops import tensor_method

from aten_bridge.mint import (  # noqa: F401  which say what stands in
    _binary,
    _indexing,
    _linear_algebra,
    _reduction,
    _shape,
    _unary,
)
from aten_bridge.mint._indexing import index_fill
from aten_bridge.mint._replace import IN_GRAPHS, METHODS, REPLACED, inlined, named_as, original_of


def _in_graphs(function: Callable) -> Callable:
    name = function.__name__.strip("_")
    operator = "Deprecated" + "".join(part.capitalize() for part in name.split("_"))
    IN_GRAPHS[name] = (function, operator)
    return function


def _function_of(name: str) -> Callable:
    """What stands in for the function of mint, or that itself."""
    original = original_of(name)
    return next((function for one, function in REPLACED if one is original), original)


def _older_of(name: str) -> Callable:
    return getattr(tensor_method, deprecated_tensor_method_map[name])


_OLDER_KEYWORDS = frozenset(
    ("axis", "ddof", "initial", "keep_dims", "keepdims", "return_indices", "where")
)


def is_older(name: str, keywords: Iterable[str | None]) -> bool:
    """Whether a call of the method is one of MindSpore's older method, by its own keywords."""
    own = _OLDER_KEYWORDS | ({"dtype"} if name == "count_nonzero" else set())
    return name in OLDER and not own.isdisjoint(keywords)


# ===--- in graphs ---===

_max, _min, _median = (_function_of(name) for name in ("max", "min", "median"))
_std, _var, _sort, _topk = (_function_of(name) for name in ("std", "var", "sort", "topk"))
_argmax, _argmin, _argsort = (_function_of(f"arg{name}") for name in ("max", "min", "sort"))
_count_nonzero, _nansum = _function_of("count_nonzero"), _function_of("nansum")
# For integers in their own dtype: what a graph takes for the method with `dim` has it.
_cumsum = original_of("cumsum")
_older_std, _older_var, _older_max, _older_min = map(_older_of, ("std", "var", "max", "min"))
# What calls by the keywords of MindSpore's older methods call, where that has another result.
OLDER = {
    name: _older_of(name)
    for name in (
        *("all", "any", "argmax", "argmin", "argsort", "count_nonzero", "cumsum", "max", "min"),
        *("nansum", "sort", "std", "var"),
    )
} | {"cummin": standard_method.cummin}
_bincount, _unique, _roll, _addmm, _addmv, _addcdiv = map(
    _function_of, ("bincount", "unique", "roll", "addmm", "addmv", "addcdiv")
)
_all, _any, _logsumexp, _permute, _repeat_interleave = map(
    _function_of, ("all", "any", "logsumexp", "permute", "repeat_interleave")
)
KEEPING = {"any": _any, "argmax": _argmax, "argmin": _argmin}
_older_count, _older_cumsum, _older_dot = map(_older_of, ("count_nonzero", "cumsum", "dot"))
_addbmm, _dot, _older_addbmm = _function_of("addbmm"), _function_of("dot"), _older_of("addbmm")


@_in_graphs
def std(input, axis=None, ddof=None, keepdims=None):
    if ddof is None and keepdims is None:
        return _std(input, axis)
    return _older_std(input, axis, 0 if ddof is None else ddof, bool(keepdims))


@_in_graphs
def var(input, axis=None, ddof=None, keepdims=None):
    if ddof is None and keepdims is None:
        return _var(input, axis)
    return _older_var(input, axis, 0 if ddof is None else ddof, bool(keepdims))


def _largest_or_smallest(name: str, function: Callable, older: Callable) -> None:
    def compute(input, axis=None, keepdims=False, initial=None, where=True, return_indices=None):
        if initial is None and where is True and return_indices is None:
            if axis is not None and not isinstance(axis, (tuple, list)):
                return function(input, axis, keepdims)
            if axis is None and not keepdims:
                return function(input)
        return older(
            input, axis, keepdims, initial=initial, where=where, return_indices=bool(return_indices)
        )

    compute.__name__ = name
    _in_graphs(compute)


_largest_or_smallest("max", _max, _older_max)
_largest_or_smallest("min", _min, _older_min)


@_in_graphs
def median(input, axis=None, keepdims=False):
    if axis is None and not keepdims:
        return _median(input)
    return _median(input, -1 if axis is None else axis, keepdims)


@_in_graphs
def argmax(input, axis=None, keepdims=False):
    return _argmax(input, axis, keepdims)


@_in_graphs
def argmin(input, axis=None, keepdims=False):
    return _argmin(input, axis, keepdims)


@_in_graphs
def argsort(input, axis=-1, descending=False):
    return _argsort(input, axis, descending)


@_in_graphs
def sort(input, axis=-1, descending=False):
    return _sort(input, axis, descending)


@_in_graphs
def topk(input, k, dim=-1, largest=True, sorted=True):
    return _topk(input, k, dim, largest, sorted)


@_in_graphs
def count_nonzero(input, axis=None, keep_dims=None, dtype=None):
    if keep_dims is None and dtype is None:
        return _count_nonzero(input, axis)
    return _older_count(input, () if axis is None else axis, bool(keep_dims), dtype)


@_in_graphs
def cumsum(input, axis=None, dtype=None):
    if axis is None:  # all elements in their order, which PyTorch lacks
        return _older_cumsum(input, axis, dtype)
    return _cumsum(input, axis, dtype=dtype)


@_in_graphs
def all_(input, axis=None, keep_dims=False):
    return _all(input, axis, keep_dims)


@_in_graphs
def any_(input, axis=None, keep_dims=False):
    return _any(input, axis, keep_dims)


@_in_graphs
def logsumexp(input, dim, keepdim=False):
    return _logsumexp(input, dim, keepdim)


@_in_graphs
@inlined
def permute(input, axis=None):
    return _permute(input, () if axis is None else axis)


@_in_graphs
def bincount(input, weights=None, minlength=0):
    return _bincount(input, weights, minlength)


@_in_graphs
def unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    return _unique(input, sorted, return_inverse, return_counts, dim)


@_in_graphs
def repeat_interleave(input, repeats, dim=None):
    return _repeat_interleave(input, repeats, dim)


@_in_graphs
def roll(input, shifts, dims=None):
    return _roll(input, shifts, dims)


@_in_graphs
def addmm(input, mat1, mat2, beta=1, alpha=1):
    return _addmm(input, mat1, mat2, beta=beta, alpha=alpha)


@_in_graphs
def addmv(input, mat, vec, beta=1, alpha=1):
    return _addmv(input, mat, vec, beta=beta, alpha=alpha)


@_in_graphs
def addcdiv(input, tensor1, tensor2, value=1):
    return _addcdiv(input, tensor1, tensor2, value=value)


@_in_graphs
def addbmm(input, batch1, batch2, beta=1, alpha=1):
    if input.ndim <= 2 and batch1.ndim == 3 and batch2.ndim == 3:
        return _addbmm(input, batch1, batch2, beta=beta, alpha=alpha)
    return _older_addbmm(input, batch1, batch2, beta=beta, alpha=alpha)


@_in_graphs
def dot(input, other):
    return _dot(input, other) if input.ndim == 1 and other.ndim == 1 else _older_dot(input, other)


@_in_graphs
def nansum(input, axis=None, keepdims=False, dtype=None):
    return _nansum(input, axis, keepdims, dtype=dtype)


def _of_one(name: str) -> None:
    function = _function_of(name)

    def compute(input):
        return function(input)

    IN_GRAPHS[name] = (compute, "")


def _of_two(name: str) -> None:
    function = _function_of(name)

    def compute(input, other):
        return function(input, other)

    IN_GRAPHS[name] = (compute, "")


for _name in (
    *("acos", "acosh", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "asin", "asinh", "atan"),
    *("diag", "frac", "inverse", "log10"),
):
    _of_one(_name)
for _name in ("arctan2", "atan2", "fmod", "logaddexp", "logaddexp2", "xlogy"):
    _of_two(_name)


# Methods of which MindSpore has one in graphs: an ordinary function, called as a program calls it.


def _extreme(name: str) -> None:
    function = _function_of(name)

    def compute(input, dim=None, keepdim=False, *, axis=None, keepdims=False, keep_dims=False):
        dim = axis if dim is None else dim
        return function(input, () if dim is None else dim, keepdim or keepdims or keep_dims)

    REPLACED.append((getattr(standard_method, name), compute))


for _name in ("amax", "amin"):
    _extreme(_name)


def _scan(name: str) -> None:
    function = _function_of(name)

    def compute(input, dim=None, *, axis=None):
        return function(input, axis if dim is None else dim)

    REPLACED.append((getattr(standard_method, name), compute))


for _name in ("cummax", "cummin"):
    _scan(_name)


def flip(input, *numbers, dims=None):
    if dims is None:
        dims = numbers[0] if len(numbers) == 1 else numbers
    return _flip(input, dims)


def ptp(input, axis=None, keepdims=False):
    axis = () if axis is None else axis
    largest = _older_max(input, axis, keepdims)
    return largest - _older_min(input, axis, keepdims)


def diff(input, n=1, dim=-1, prepend=None, append=None, *, axis=None):
    return _diff(input, n, dim if axis is None else axis, prepend, append)


def addcmul(input, tensor1, tensor2, value=1):
    return _addcmul(input, tensor1, tensor2, value=value)


def trace(input, offset=0, axis1=0, axis2=1, dtype=None):
    if input.ndim == 2 and offset == 0 and axis1 == 0 and axis2 == 1 and dtype is None:
        return _trace(input)
    return _older_trace(input, offset, axis1, axis2, dtype)


_older_trace = standard_method.trace
_addcmul, _diff, _flip, _trace = map(_function_of, ("addcmul", "diff", "flip", "trace"))
for _function in (addcmul, diff, flip, ptp, trace):
    REPLACED.append((getattr(standard_method, _function.__name__), _function))


def _numpy_argmin(a, axis=None):
    """Serves mindspore.numpy, which calls the method by positions, and means the older one."""
    return _argmin_of_numpy(a, axis).astype(int32)


def _numpy_cumsum(a, axis=None, dtype=None):
    if not isinstance(a, Tensor):
        return _cumsum_of_numpy(a, axis, dtype)  # which refuses it
    return _older_cumsum(a, axis, dtype)


_argmin_of_numpy, _cumsum_of_numpy = numpy.argmin, numpy.cumsum
REPLACED += [(numpy.argmin, _numpy_argmin), (numpy.cumsum, _numpy_cumsum)]

_norm = _function_of("norm")


def _norm_or(older: Callable) -> Callable:
    """The older one has other norms of matrices: it is left for norms that are not of vectors."""

    def norm(input, p=None, dim=None, keepdim=False, *, ord=None, dtype=None):
        p = ord if p is None else p
        is_of_vectors = isinstance(dim, int) or (isinstance(dim, (tuple, list)) and len(dim) < 2)
        if not is_of_vectors or isinstance(p, str):
            return older(input, p, dim, keepdim, dtype=dtype)
        return _norm(input, 2 if p is None else p, dim, keepdim, dtype=dtype)

    return norm


REPLACED.append((standard_method.norm, _norm_or(standard_method.norm)))
METHODS["norm"] = _norm_or(Tensor.norm)


def multiply(input, other):
    return input * other


REPLACED.append((standard_method.multiply, multiply))
REPLACED.append((standard_method.index_fill, index_fill))


# ===--- in PyNative mode ---===

_NAMES = {"axis": "dim", "keepdims": "keepdim", "keep_dims": "keepdim"}


def _with_older_names(name: str, function: Callable) -> None:
    original = METHODS.get(name, getattr(Tensor, name))
    most, known = _accepted(function)
    most = 1 if name in ("std", "var") else most  # the second is the older method's `ddof`

    def compute(self, *arguments, **keywords):
        if len(arguments) > most or is_older(name, keywords):
            return original(self, *arguments, **keywords)
        if "axis" in keywords and keywords["axis"] is None:
            del keywords["axis"]
        renamed = keywords
        if arguments or "axis" in keywords:
            renamed = {_NAMES.get(key, key): value for key, value in keywords.items()}
        if known is not None and not known.issuperset(renamed):
            return original(self, *arguments, **keywords)
        return function(self, *arguments, **renamed)

    METHODS[name] = named_as(original, compute)


def _accepted(function: Callable) -> tuple[float, set[str] | None]:
    """How many arguments behind the first the function takes by position, and by which names.

    Of a function that does not say, and passes them on, as many as there are and all names.
    """
    try:
        parameters = inspect.signature(function).parameters
    except ValueError:  # one of C++
        return math.inf, None
    kinds = [parameter.kind for parameter in parameters.values()]
    if inspect.Parameter.VAR_POSITIONAL in kinds:
        return math.inf, None
    return kinds.count(inspect.Parameter.POSITIONAL_OR_KEYWORD) - 1, set(parameters)


# Those that PyNative mode has right but for the names.
for _name in ("argsort", "count_nonzero", "cumsum", "max", "median", "min", "sort"):
    _with_older_names(_name, getattr(Tensor, _name))
# Those of which the function takes more than the method.
for _name in (
    *("addcdiv", "addcmul", "addmm", "addmv", "all", "any", "argmax", "argmin", "ceil", "cummax"),
    *("cummin", "diff", "erf", "erfc", "exp", "expm1", "float_power", "gcd", "inverse", "lerp"),
    *("logaddexp", "logaddexp2", "logsumexp", "nan_to_num", "nansum", "repeat_interleave"),
    *("square", "std", "topk", "trace", "var", "xlogy"),
):
    _with_older_names(_name, _function_of(_name))

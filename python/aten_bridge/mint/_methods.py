"""Methods of tensors, of which MindSpore has two of many a name: its older one and PyTorch's.

Where there is a kernel for PyTorch's, PyNative mode takes it. A graph takes the older one as long
as that has the arguments' names, so that one line would have two values. Here both have PyTorch's:
`axis` is another name of `dim`, as in PyTorch; what only the older method has (`ddof`, `initial`)
goes to that in both modes.

A graph passes the older method all its parameters, by their positions: those that a call leaves out
have the defaults that MindSpore's generated Python says. The defaults of the functions here take
their places, so that None is what a call has left out.
"""

from __future__ import annotations

from collections.abc import Callable

from mindspore import Tensor
from mindspore.graph._parse.deprecated.deprecated_tensor_method import deprecated_tensor_method_map
from mindspore.ops import tensor_method

from aten_bridge.mint._replace import IN_GRAPHS, METHODS, REPLACED, named_as, original_of


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


# ===--- in graphs ---===

_max, _min, _median = (_function_of(name) for name in ("max", "min", "median"))
_std, _var, _sort, _topk = (_function_of(name) for name in ("std", "var", "sort", "topk"))
_argmax, _argmin, _argsort = (_function_of(f"arg{name}") for name in ("max", "min", "sort"))
_count_nonzero, _cumsum, _nansum = map(_function_of, ("count_nonzero", "cumsum", "nansum"))
_older_std, _older_var, _older_max, _older_min = map(_older_of, ("std", "var", "max", "min"))
_older_count, _older_cumsum = map(_older_of, ("count_nonzero", "cumsum"))


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


@_in_graphs
def max_(input, axis=None, keepdims=False, initial=None, where=True, return_indices=None):
    if initial is None and where is True and return_indices is None:
        if axis is not None:
            return _max(input, axis, keepdims)
        if not keepdims:
            return _max(input)
    return _older_max(
        input, axis, keepdims, initial=initial, where=where, return_indices=bool(return_indices)
    )


@_in_graphs
def min_(input, axis=None, keepdims=False, initial=None, where=True, return_indices=None):
    if initial is None and where is True and return_indices is None:
        if axis is not None:
            return _min(input, axis, keepdims)
        if not keepdims:
            return _min(input)
    return _older_min(
        input, axis, keepdims, initial=initial, where=where, return_indices=bool(return_indices)
    )


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
    return _topk(input, k, -1 if dim is None else dim, largest, sorted)


@_in_graphs
def count_nonzero(input, axis=None, keep_dims=None, dtype=None):
    if keep_dims is None and dtype is None:
        return _count_nonzero(input, axis)
    return _older_count(input, () if axis is None else axis, bool(keep_dims), dtype)


@_in_graphs
def cumsum(input, axis=None, dtype=None):
    if axis is None:  # of all elements in their order, which PyTorch has not
        return _older_cumsum(input, axis, dtype)
    return _cumsum(input, axis, dtype)


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
    *("diag", "log10"),
):
    _of_one(_name)
for _name in ("arctan2", "atan2", "fmod"):
    _of_two(_name)


# ===--- in PyNative mode ---===

_NAMES = {"axis": "dim", "keepdims": "keepdim", "keep_dims": "keepdim"}
_OWN = {  # of the older method, beside the names above
    **{name: {"ddof", "keepdims"} for name in ("std", "var")},
    **{name: {"initial", "where", "return_indices"} for name in ("max", "min")},
    "count_nonzero": {"keep_dims", "dtype"},
}


def _with_older_names(name: str, takes: Callable) -> None:
    original, own = METHODS.get(name, getattr(Tensor, name)), _OWN.get(name, set())

    def compute(self, *arguments, **keywords):
        if own.intersection(keywords):
            return original(self, *arguments, **keywords)
        if "axis" in keywords and keywords["axis"] is None:
            del keywords["axis"]
        if arguments or "axis" in keywords:
            keywords = {_NAMES.get(key, key): value for key, value in keywords.items()}
        return takes(self, *arguments, **keywords)

    METHODS[name] = named_as(original, compute)


for _name in ("argmax", "argmin", "argsort", "count_nonzero", "max", "median", "min", "nansum"):
    _with_older_names(_name, getattr(Tensor, _name))
for _name, _function in (("std", _std), ("var", _var), ("cumsum", _cumsum)):
    _with_older_names(_name, _function)
for _name in ("sort",):
    _with_older_names(_name, getattr(Tensor, _name))

"""Trees of a module's inputs and results, and the sources of functions that hosts make of them.

A tree is a list, which JSON keeps as it is: ["tensor"], ["constant", value],
["sequence", trees], or ["dict", [[key, tree], …]]. Needs no PyTorch.
"""

from __future__ import annotations

import math
import re
from collections import namedtuple
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from aten_bridge._text import format_value

Tree = list  # a word, and what belongs to it

TENSOR: Tree = ["tensor"]
_CONSTANTS = (str, bool, int, float, type(None))
_MOST_DEPTH = 32  # Python reads no source with more than 200 brackets in brackets (3.11)


class NotExportable(ValueError):
    """A graph has what no program can say."""


# ===--- from PyTorch's ---===


def children(spec: Any) -> list[Any]:
    """The subtrees (PyTorch 2.11 has a function for them; until 2.10 it has a list)."""
    return spec.children() if callable(getattr(spec, "children", None)) else spec.children_specs


def _refuse(got: str) -> NotExportable:
    return NotExportable(
        "expected results and inputs that are tensors, and tuples, lists and dicts of such, got "
        + got
    )


def _keys(spec: Any) -> list[Any]:
    """The keys of a dict, or of a class that is like one (transformers' ModelOutput)."""
    context = spec.context
    if isinstance(context, list) and context and all(isinstance(one, list) for one in context):
        context = context[0]  # a dataclass: fields with values, and those that are None
    if isinstance(context, tuple) and context and isinstance(context[-1], list):
        context = context[-1]  # a class, and its keys
    if not isinstance(context, list) or len(context) != len(children(spec)):
        raise _refuse(getattr(spec.type, "__name__", str(spec.type)))
    for key in context:
        if type(key) not in (str, int):
            raise _refuse(f"a dict with the key {key!r}")
    return context


def tree_of(spec: Any, leaves: Iterator[Tree]) -> Tree:
    """A tree of PyTorch's; classes become sequences or dicts."""
    if spec.is_leaf():
        return next(leaves)
    kind = spec.context if spec.type is namedtuple else spec.type  # PyTorch's way to say it
    if isinstance(kind, type) and issubclass(kind, (tuple, list)):
        return ["sequence", [tree_of(child, leaves) for child in children(spec)]]
    entries = zip(_keys(spec), children(spec), strict=True)
    return ["dict", [[key, tree_of(child, leaves)] for key, child in entries]]


def constant(value: Any) -> Tree:
    """A leaf of results that is no tensor."""
    if not isinstance(value, _CONSTANTS):
        raise _refuse(repr(value))
    return ["constant", value]


# ===--- from a file ---===


def check_tree(tree: Any, depth: int = 0) -> None:
    """Raises ValueError where it is another value."""
    match tree:
        case ["tensor"]:
            return
        case ["constant", value] if type(value) in _CONSTANTS:
            return
        case ["sequence", list(trees)]:
            below = trees
        case ["dict", list(entries)]:
            below, keys = [], []
            for entry in entries:
                match entry:
                    case [key, tree] if type(key) in (str, int):
                        below.append(tree)
                        keys.append(key)
                    case _:
                        raise ValueError("expected a key and a tree, got another")
            if len(set(keys)) != len(keys):
                raise ValueError(f"expected each key once, got {keys}")
        case _:
            raise ValueError("expected a tree, got another")
    if depth == _MOST_DEPTH:
        raise ValueError(f"expected a tree of at most {_MOST_DEPTH} levels, got more")
    for one in below:
        check_tree(one, depth + 1)


# ===--- what hosts do with them ---===


def _entries(tree: Tree) -> list[tuple[Any, Tree]]:
    """The keys and trees of a sequence or a dict; none of a leaf."""
    if tree[0] == "sequence":
        return list(enumerate(tree[1]))
    return [(key, one) for key, one in tree[1]] if tree[0] == "dict" else []


def tensor_count(tree: Tree) -> int:
    return int(tree == TENSOR) + sum(tensor_count(one) for _, one in _entries(tree))


def _constant_source(value: Any) -> str:
    if not isinstance(value, float) or math.isfinite(value):
        return repr(value)
    return "float('nan')" if math.isnan(value) else f"{math.copysign(1, value)} * 1e999"


def _made_of(tree: Tree, tensors: Iterator[str]) -> str:
    """The source of a tree's value from those of its tensors."""
    if tree[0] == "tensor":
        return next(tensors)
    if tree[0] == "constant":
        return _constant_source(tree[1])
    made = [(key, _made_of(one, tensors)) for key, one in _entries(tree)]
    if tree[0] == "sequence":
        return f"({''.join(f'{one}, ' for _, one in made)})"
    return "{" + ", ".join(f"{key!r}: {one}" for key, one in made) + "}"


def _tensors_of(tree: Tree, source: str) -> list[str]:
    """The sources of a tree's tensors from that of its value."""
    if tree[0] == "tensor":
        return [source]
    return [
        tensor for key, one in _entries(tree) for tensor in _tensors_of(one, f"{source}[{key!r}]")
    ]


def tensor_sources(inputs: Tree, names: Sequence[str]) -> Iterator[tuple[str, int]]:
    """What torch.export calls the tensors of a module's arguments, such as "L['x'][0]".

    `names` are those of the arguments; one of a *xs is "xs_0" there, and "L['xs'][0]" in guards.
    """
    for one_of_several in (
        r"L['\1'][\2]",
        r"L['\1_\2']",
    ):  # the later is meant where both are there
        place = 0
        for name, one in zip(names, inputs[1], strict=False):
            root = re.sub(r"L\['(.+)_(\d+)'\]", one_of_several, f"L[{name!r}]")
            for source in _tensors_of(one, root):
                yield source, place
                place += 1


def flatten_source(inputs: Tree) -> str:
    """A function `flatten` from a module's arguments to a tuple of tensors."""
    names = [f"a{i}" for i in range(len(inputs[1]))]
    tensors = [
        tensor
        for name, one in zip(names, inputs[1], strict=True)
        for tensor in _tensors_of(one, name)
    ]
    listed = "".join(f"{tensor}, " for tensor in tensors)
    return f"def flatten({', '.join(names)}):\n    return ({listed})\n"


def unflatten_source(results: Tree) -> str:
    """A function `unflatten` from a tuple of tensors to what a module returns."""
    tensors = iter([f"r[{i}]" for i in range(tensor_count(results))])
    return f"def unflatten(r):\n    return {_made_of(results, tensors)}\n"


def fits_source(inputs: Tree) -> str:
    """A function `fits` that says whether a tuple of a module's arguments has no `input_fault`.

    It takes the host's class of tensors first.
    """
    return f"def fits(Tensor, a):\n    return {_fits(inputs, 'a')}\n"


def _fits(tree: Tree, source: str) -> str:
    kind, below = tree[0], _entries(tree)
    if kind == "tensor":
        return f"isinstance({source}, Tensor)"
    if kind == "constant":
        return "False"
    conditions = [
        f"isinstance({source}, {'dict' if kind == 'dict' else '(tuple, list)'})",
        f"len({source}) == {len(below)}",
        *(f"{key!r} in {source}" for key, _ in below if kind == "dict"),
        *(_fits(one, f"{source}[{key!r}]") for key, one in below),
    ]
    return " and ".join(conditions)


def input_fault(inputs: Tree, given: Sequence[Any], is_tensor: Callable[[Any], bool]) -> str | None:
    """What is wrong with a module's arguments; None where their tree is `inputs`."""
    count = len(inputs[1])
    if len(given) != count:
        return f"expected {count} input{'s' * (count != 1)} of the module, got {len(given)}"
    for i, (value, tree) in enumerate(zip(given, inputs[1], strict=True)):
        if fault := _fault(tree, value, is_tensor):
            return f"input {i}{fault}"
    return None


def array_class(value: Any) -> str:
    """The library and the class of an array or a tensor; "" for other values."""
    if not (hasattr(value, "shape") and hasattr(value, "dtype")):
        return ""
    return f"{type(value).__module__.partition('.')[0]}.{type(value).__name__}"


def _described(value: Any) -> str:
    """A value that is no tensor of the host's; of a tensor of another library only its class."""
    if name := array_class(value):
        return f"a {name}, which the host does not take; convert it, by way of NumPy"
    return format_value(value)


def _fault(tree: Tree, value: Any, is_tensor: Callable[[Any], bool]) -> str | None:
    """What is wrong with a value, behind its name."""
    kind, below = tree[0], _entries(tree)
    if kind == "tensor":
        return None if is_tensor(value) else f": expected a tensor, got {_described(value)}"
    keys: Iterable[Any]
    if kind == "sequence" and isinstance(value, (tuple, list)):
        keys = range(len(value))
    elif kind == "dict" and isinstance(value, dict):
        keys = value
    else:
        expected = "a dict" if kind == "dict" else "a tuple or a list"
        got = "a tensor" if is_tensor(value) else _described(value)
        return f": expected {expected}, got {got}"
    wanted, got = [key for key, _ in below], list(keys)
    if set(wanted) != set(got):
        if kind == "dict":
            return f": expected a dict with the keys {wanted}, got {got}"
        return f": expected {len(wanted)} in a tuple or a list, got {len(got)}"
    for key, one in below:
        if fault := _fault(one, value[key], is_tensor):
            return f"[{key!r}]{fault}"
    return None

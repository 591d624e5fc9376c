"""Trees of a module's inputs and results, as sources of functions that hosts compile."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from aten_bridge.program._text import NotExportable


def children(spec: Any) -> list[Any]:
    """The subtrees (PyTorch 2.11 has a function for them; until 2.10 it has a list)."""
    return spec.children() if callable(getattr(spec, "children", None)) else spec.children_specs


def _is_sequence(spec: Any) -> bool:
    return spec.type in (tuple, list) or hasattr(spec.type, "_fields")


def _keys(spec: Any) -> list[Any]:
    """Those of a dict, or of a class that is like one (transformers' ModelOutput)."""
    context = spec.context
    if isinstance(context, tuple) and context and isinstance(context[-1], list):
        context = context[-1]  # a class, and its keys
    if isinstance(context, list) and len(context) == len(children(spec)):
        return context
    raise NotExportable(
        "expected results and inputs that are tensors, and tuples, lists and dicts of such, got "
        f"{getattr(spec.type, '__name__', spec.type)}"
    )


def made_of(spec: Any, leaves: Iterator[str]) -> str:
    """The source of a tree's value from those of its leaves; classes become dicts."""
    if spec.is_leaf():
        return next(leaves)
    if _is_sequence(spec):
        return f"({''.join(f'{made_of(child, leaves)}, ' for child in children(spec))})"
    entries = zip(_keys(spec), children(spec), strict=True)
    return "{" + ", ".join(f"{key!r}: {made_of(child, leaves)}" for key, child in entries) + "}"


def leaves_of(spec: Any, source: str) -> list[str]:
    """The sources of a tree's leaves from that of its value."""
    if spec.is_leaf():
        return [source]
    keys = range(len(children(spec))) if _is_sequence(spec) else _keys(spec)
    return [
        leaf
        for key, child in zip(keys, children(spec), strict=True)
        for leaf in leaves_of(child, f"{source}[{key!r}]")
    ]


def flatten_source(in_spec: Any) -> str:
    """A function `flatten` from a module's arguments to a tuple of tensors."""
    arguments, named = children(in_spec)
    if children(named):
        raise NotExportable("expected inputs by their positions, got some by their names")
    names = [f"a{i}" for i in range(len(children(arguments)))]
    leaves = [
        leaf
        for one, child in zip(names, children(arguments), strict=True)
        for leaf in leaves_of(child, one)
    ]
    listed = "".join(f"{leaf}, " for leaf in leaves)
    return f"def flatten({', '.join(names)}):\n    return ({listed})\n"


def _constant(value: Any) -> str:
    return repr(value).replace("inf", "1e999")  # which is infinite too


def unflatten_source(out_spec: Any, constants: list[Any]) -> str:
    """A function `unflatten` from a tuple of tensors to what a module returns."""
    places = iter(range(len(constants)))
    leaves = iter(
        [f"r[{next(places)}]" if constant is ... else _constant(constant) for constant in constants]
    )
    return f"def unflatten(r):\n    return {made_of(out_spec, leaves)}\n"

"""How the functions of this package replace MindSpore's.

When a module is imported, it says what its functions replace, and keeps what it needs of
MindSpore's own (`_clamp = mint.clamp`). `install` then replaces all of them: from then on
MindSpore's names refer to the functions here.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any

from mindspore import Tensor, mint
from mindspore.graph._parse.deprecated.deprecated_tensor_method import deprecated_tensor_method_map
from mindspore.ops import tensor_method
from mindspore.ops.auto_generate.cpp_create_prim_instance_helper import op_args_default_value
from mindspore.ops.composite.base import core
from mindspore.ops.functional import isconstant

# MindSpore's own, by the function that stands in for it, and the methods of tensors.
REPLACED: list[tuple[Callable, Callable]] = []
METHODS: dict[str, Callable] = {}
# What graph mode takes of those: MindSpore's operator whose defaults are those of the function.
IN_GRAPHS: dict[str, tuple[Callable, str]] = {}
# For operators, in PyNative mode, and for layers.
WITHIN: list[tuple[type, str, Callable]] = []


_NOT_IN_2_9 = {"addr_", "conv_tbc", "npu_gelu", "vdot"}
# For a function that makes views, or writes: in graphs each call gets a copy of it before gradients
# are taken. MindSpore differentiates what is written to a view in the graph that makes it alone.
inlined = core(force_inline=True)


def original_of(path: str) -> Any:
    found = mint
    for name in path.split("."):
        found = getattr(found, name)
    return found


def is_known(*values: Any) -> bool:
    """Whether graph mode knows what they are: it learns that of members of objects when it runs.

    By then both sides of a branch by their dtypes are compiled, and the result may be wrong.
    """
    for value in values:  # noqa: SIM110  graph mode has no all()
        if not isconstant(isinstance(value, Tensor)):
            return False
    return True


def named_as(original: Callable, function: Callable) -> Callable:
    """Not functools.wraps(): graph mode looks up names in the module that a function says."""
    for name in ("__name__", "__doc__"):
        if hasattr(original, name):
            setattr(function, name, getattr(original, name))
    return function


def replaces(path: str, *dtypes: Any) -> Callable:
    """The function stands in for the one of mint; with dtypes, for first inputs of these only.

    A MindSpore that has no such function gets none.
    """
    if path in _NOT_IN_2_9 and not hasattr(mint, path):
        return lambda function: function
    original = original_of(path)

    def decorate(function: Callable) -> Callable:
        name = next(iter(inspect.signature(function).parameters))

        def choose(*arguments, **keywords):
            first = arguments[0] if arguments else keywords.get(name)
            if is_known(first) and isinstance(first, Tensor) and first.dtype in dtypes:
                return function(*arguments, **keywords)
            return original(*arguments, **keywords)

        REPLACED.append((original, named_as(original, choose if dtypes else function)))
        return function

    return decorate


def method(function: Callable) -> Callable:
    """The function stands in for the method of tensors of the same name."""
    METHODS[function.__name__] = function
    return function


def install() -> None:
    """Replaces MindSpore's functions by these, wherever its modules refer to them."""
    standing_in = {id(original): function for original, function in REPLACED}
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "mindspore" and module is not None:
            for attribute, value in list(vars(module).items()):
                if id(value) in standing_in:
                    setattr(module, attribute, standing_in[id(value)])
    for name, function in METHODS.items():
        setattr(Tensor, name, function)
    for kind, name, function in WITHIN:
        setattr(kind, name, function)
    for name, (function, operator) in IN_GRAPHS.items():
        place = f"aten_bridge_{name}"
        setattr(tensor_method, place, function)
        deprecated_tensor_method_map[name] = place
        defaults = {
            parameter.name: parameter.default
            for parameter in inspect.signature(function).parameters.values()
            if parameter.default is not parameter.empty
        }
        if defaults:
            op_args_default_value[operator] = defaults

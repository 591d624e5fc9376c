"""Kernels exported with ATEN_BRIDGE_EXPORT as operators of PyTorch.

    from aten_bridge.torch import load

    my_ops = load("./my_ops.so")
    y = my_ops.leaky_relu(x, negative_slope=0.2)

A library that was built with `HOSTS PYTORCH` registers its kernels by itself when it is opened,
also by `torch.ops.load_library` or by another host: `torch.ops.my_ops.leaky_relu` is the same
operator. `load` adds errors that say what to do, functions with signatures, and libraries that were
built again.
"""

from __future__ import annotations

import inspect
import keyword
import os
from typing import Any

import torch

from aten_bridge._introspection import describe_library
from aten_bridge._library import as_path, open_newest
from aten_bridge._pytorch import library_file
from aten_bridge._text import as_switch, did_you_mean, format_value, or_list

__all__ = ["Operator", "Operators", "load"]

_SIDE_EFFECT = torch.Tag.nondeterministic_seeded  # from hosts/pytorch/registry.h
_with_effects: set[Any] = set()  # operators of which PyTorch knows


class Operator:
    """A kernel as a function of PyTorch's; `help()` tells its arguments.

    With `out=` (a tuple where there are several) the results are written there, and returned.
    """

    def __init__(self, path: str, qualified_name: str, kernel: str, *overloads: str):
        namespace, name = qualified_name.split("::")
        packet = getattr(getattr(torch.ops, namespace), name)
        self._path = path
        self._default = packet.default if "default" in overloads else None
        self._out = packet.out if "out" in overloads else None
        self.__name__ = self.__qualname__ = name
        schema = (self._default or self._out)._schema
        self._texts = [  # lists of which PyTorch would take a str for one, of letters
            (i, one.name) for i, one in enumerate(schema.arguments) if "List[str]" in str(one.type)
        ]
        keywords = [one.name for one in schema.arguments if keyword.iskeyword(one.name)]
        self._keywords = {f"{name}_": name for name in keywords}  # as the signature has them
        # An argument of the kernel's own that is named so goes before.
        self._takes_out = all(a.name != "out" for a in schema.arguments if not a.is_out)
        self._outs = [a.name for a in self._out._schema.arguments if a.is_out] if self._out else []
        self.__signature__ = _signature(
            schema, self._out is not None and self._takes_out, self._default is None
        )
        self.__doc__ = f"The kernel {kernel} of {path}.\n\n{schema}"

    def _register_effect(self) -> None:
        """Has compiled programs make each call of a kernel with side effects, in their order.

        The tag that the library gives it keeps PyTorch from leaving calls out, not from making two
        equal ones one where a program is differentiated (2.11).
        """
        op = self._default
        if op is None or op in _with_effects or _SIDE_EFFECT not in op.tags:
            return
        try:
            from torch._higher_order_ops.effects import _EffectType, _register_effectful_op
        except ImportError:  # before PyTorch 2.5
            return
        _with_effects.add(op)
        _register_effectful_op(op, _EffectType.ORDERED)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if self._keywords:
            kwargs = {self._keywords.get(name, name): value for name, value in kwargs.items()}
        for i, name in self._texts:
            value = args[i] if i < len(args) else kwargs.get(name)
            if isinstance(value, str):
                raise TypeError(
                    f"{self.__name__}: attribute {name!r}: expected a list of strs, got "
                    + format_value(value)
                )
        out = kwargs.pop("out", None) if self._takes_out else None
        if out is None and self._default is not None:
            return self._default(*args, **kwargs)
        if self._out is None:
            raise TypeError(
                f"{self.__name__}: expected no out, since the kernel returns its result"
            )
        if out is None:
            raise TypeError(
                f"{self.__name__}: expected out=, a tensor for the result, since the kernel has no "
                "meta function that tells its size, got None"
            )
        if not isinstance(out, torch.Tensor | tuple | list):
            raise TypeError(
                f"{self.__name__}: expected out to be a tensor, or a tuple of these, got "
                + format_value(out)
            )
        outs = (out,) if isinstance(out, torch.Tensor) else tuple(out)
        if len(outs) != len(self._outs):
            raise TypeError(
                f"{self.__name__}: expected as many tensors in out as there are results, "
                f"{len(self._outs)}, got {len(outs)}"
            )
        self._out(*args, **kwargs, **dict(zip(self._outs, outs, strict=True)))
        return out

    def __reduce__(self) -> tuple[Any, ...]:
        return _operator, (self._path, self.__name__)

    def __repr__(self) -> str:
        return f"<{self.__name__}{self.__signature__} of {self._path}>"


class Operators:
    """The operators of a library, by their names."""

    def __init__(self, path: str, operators: dict[str, Operator]):
        self._path = path
        self.__dict__.update(operators)
        self._names = sorted(operators)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise AttributeError(
            f"{self._path}: expected one of its operators, {or_list(self._names)}, got {name!r}"
            + did_you_mean(name, self._names)
        )

    def __dir__(self) -> list[str]:
        return self._names

    def __reduce__(self) -> tuple[Any, ...]:
        return load, (self._path,)

    def __repr__(self) -> str:
        return f"<operators of {self._path}: {', '.join(self._names)}>"


def load(path: str | os.PathLike[str], *, replace: bool = False) -> Operators:
    """Opens a kernel library, and returns its operators.

    A library that was built for several versions of PyTorch is named without them: my_ops.so stands
    for my_ops.torch2.11.so where PyTorch is 2.11.

    An operator stays that of the first library that the process has opened with its name. With
    `replace` this library's takes its place, for all who call it, as after a new build in a
    notebook: the schema has to be the same.

    Raises FileNotFoundError and OSError for what is no library, ValueError for one that was not
    built with HOSTS PYTORCH, and for a path that is not UTF-8, TypeError for what is no path or no
    bool, ImportError for one of another interface, which another version of aten_bridge may have
    made, and RuntimeError where an operator could not be registered.
    """
    path = os.path.realpath(os.path.expanduser(as_path(path)))
    file, _, name = path.rpartition(":")
    if not os.path.exists(path) and os.path.isfile(file):
        raise ValueError(
            f"{path}: expected the path of a library alone, got one with the name {name!r}; "
            f"its operators are what load({file!r}) returns"
        )
    replace = as_switch(path, "replace", replace)
    described = describe_library(open_newest(library_file(path)))
    answer = described.register_with_pytorch(replace)
    if answer is None:
        others = "that was built for other hosts" if described.kernels else "without kernels"
        raise ValueError(
            f"{path}: expected a library for PyTorch, got one {others}; "
            "build it with aten_bridge_add_kernel(... HOSTS MINDSPORE PYTORCH)"
        )
    operators, faults = answer
    if faults:
        raise RuntimeError(faults)
    found = {}
    for names in operators:
        operator = Operator(path, *names)
        operator._register_effect()
        found[operator.__name__] = operator
    return Operators(path, found)


def _operator(path: str, name: str) -> Operator:
    return getattr(load(path), name)


def _signature(schema: Any, has_out: bool, needs_out: bool) -> inspect.Signature:
    parameters = []
    for argument in schema.arguments:
        if not argument.is_out:
            default = argument.default_value if argument.has_default_value() else _EMPTY
            name = argument.name + "_" * keyword.iskeyword(argument.name)
            parameters.append(
                inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default)
            )
    if has_out:
        default = _EMPTY if needs_out else None
        parameters.append(inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY, default=default))
    return inspect.Signature(parameters)


_EMPTY = inspect.Parameter.empty

"""A process in which inputs are tried: one that ends it, or hangs, is reported as an example."""

from __future__ import annotations

import copy
import faulthandler
import functools
import importlib
import itertools
import mmap
import multiprocessing
import os
import pickle
import sys
from typing import Any, NamedTuple

import numpy as np

_SECONDS = 120  # for one input; the first imports MindSpore

# ===--- what cannot be sent as it is ---===


class Array(NamedTuple):
    """A tensor of MindSpore's or PyTorch's with the values of a NumPy array."""

    library: str
    values: np.ndarray
    dtype: str | None = None  # where NumPy has none of this name


class Dtype(NamedTuple):
    """A dtype, or another type, of MindSpore's."""

    name: str


class Nested(NamedTuple):
    """A list in a list in a list."""

    depth: int


class Cyclic(NamedTuple):
    """A list that contains itself."""


class Huge(NamedTuple):
    """An int, which Python does not print if it has more than 4,300 digits."""

    digits: int
    sign: int = 1


class Hashless(NamedTuple):
    """An object that cannot be hashed, compared or printed."""


class _Raises:
    def __repr__(self) -> str:
        raise ArithmeticError("no text")

    __hash__ = None
    __eq__ = None


def _real(value: Any) -> Any:
    """The value that a value sent stands for."""
    if isinstance(value, Array):
        if value.library == "torch":
            return importlib.import_module("torch").from_numpy(value.values.copy())
        import mindspore as ms

        dtype = None if value.dtype is None else getattr(ms, value.dtype)
        # MindSpore makes no tensor of rank 0, and none without elements, from an array.
        return ms.Tensor(value.values, dtype)
    if isinstance(value, Dtype):
        return getattr(importlib.import_module("mindspore"), value.name)
    if isinstance(value, Nested):
        return functools.reduce(lambda inner, _: [inner], range(value.depth), [])
    if isinstance(value, Huge):
        return value.sign * 10**value.digits
    if isinstance(value, Cyclic):
        cyclic: list[Any] = []
        cyclic.append(cyclic)
        return cyclic
    if isinstance(value, Hashless):
        return _Raises()
    if type(value) in (list, tuple):
        return type(value)(map(_real, value))
    if type(value) is dict:
        return {_real(key): _real(one) for key, one in value.items()}
    return value


# ===--- what is done there ---===

_operators: dict[int, Any] = {}
_numbers = itertools.count()


def _keep(operator: Any) -> int:
    """Its number."""
    _operators[number := next(_numbers)] = operator
    return number


def make(path_and_name: Any, options: dict[str, Any]) -> int:
    """The number of a new operator."""
    from aten_bridge.mindspore import kernel

    operator = kernel(_real(path_and_name), **_real(options))
    repr(operator)
    return _keep(operator)


def make_by_name(name: Any, options: dict[str, Any]) -> int:
    """The number of a new operator of PyTorch's."""
    from aten_bridge.mindspore import operator

    made = operator(_real(name), **_real(options))
    repr(made)
    return _keep(made)


def call(number: int, arguments: tuple[Any, ...]) -> Any:
    """What an operator gives, in PyNative mode."""
    return _read(_operators[number](*_real(arguments)))


def call_chain(values: list[Any], steps: list[tuple[int, list[int]]], order: list[int]) -> Any:
    """Values, and the results of operators that each take some of those before them.

    Nothing is read before the last call; then all are, in this order.
    """
    values = [_real(value) for value in values]
    for number, places in steps:
        values.append(_operators[number](*(values[place] for place in places)))
    return {place: _read(values[place]) for place in order}


def call_in_graph(number: int, arguments: tuple[Any, ...]) -> Any:
    """The same in a network that is compiled."""
    import mindspore as ms
    from host import Net

    ms.set_context(mode=ms.GRAPH_MODE)
    try:
        return _read(Net(_operators[number])(*_real(arguments)))
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)


def _read(result: Any) -> Any:
    if isinstance(result, tuple):
        return tuple(map(_read, result))
    return result.shape, str(result.dtype), result.get_bytes(), result.asnumpy()


def set_attribute(number: int, name: Any, value: Any) -> None:
    _operators[number].add_prim_attr(_real(name), _real(value))


def copy_of(number: int, how: str) -> int:
    """The number of an operator that is made of another one."""
    made = {
        "deepcopy": copy.deepcopy,
        "copy": copy.copy,
        "pickle": lambda operator: pickle.loads(pickle.dumps(operator)),
    }[how](_operators[number])
    return _keep(made)


def forget() -> None:
    _operators.clear()


def open_library(path: str) -> list[str]:
    """The names of kernels of a library, which stays open."""
    from aten_bridge._introspection import kernel_names
    from aten_bridge._library import Library

    library = Library(path)
    library.function("NoSuchFunction")
    return kernel_names(library)


def open_beside(path: str, other: str) -> list[str]:
    """The same where the process has another file of any name in its memory."""
    from aten_bridge._introspection import kernel_names
    from aten_bridge._library import open_newest

    with open(other, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ):
        return kernel_names(open_newest(path))


def load_in_pytorch(path: Any, options: dict[str, Any]) -> list[str]:
    """The names of the operators of a library for PyTorch."""
    from aten_bridge.torch import load

    operators = load(_real(path), **_real(options))
    return [repr(getattr(operators, name)) for name in dir(operators)]


def call_in_pytorch(
    path: str, name: str, arguments: tuple[Any, ...], named: dict[str, Any]
) -> list[tuple[Any, ...]]:
    """The shape, the dtype and the values of each result of an operator of a library's."""
    import torch

    from aten_bridge.torch import load

    result = getattr(load(path), name)(*_real(arguments), **_real(named))
    results = [result] if isinstance(result, torch.Tensor) else result
    return [(tuple(one.shape), str(one.dtype), one.tolist()) for one in results]


def build(
    function: str, arguments: list[Any], options: dict[str, Any], variables: dict[str, str]
) -> None:
    """`load` or `load_inline` of aten_bridge.build, up to the compiler, which refuses all."""
    import aten_bridge.build
    from aten_bridge.build import _build

    _build.run = lambda *_: (1, "")
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        getattr(aten_bridge.build, function)(*_real(arguments), **_real(options))
    finally:
        os.environ.clear()
        os.environ.update(before)


def command_line(arguments: list[str]) -> None:
    """`python -m aten_bridge.mint` up to the program, which does not exist."""
    from aten_bridge.mint import __main__ as mint

    mint.main(*arguments)


# ===--- the process, and what is sent to it ---===


def _serve(pipe: Any, path: list[str], mindspore: str | None) -> None:
    sys.path[:] = path
    faulthandler.enable()
    if mindspore:
        import mindspore as ms

        ms.set_device("CPU")
        ms.set_context(mode=ms.PYNATIVE_MODE)
        if mindspore == "blocking":
            ms.runtime.launch_blocking()
    while True:
        try:
            function, arguments = pipe.recv()
        except EOFError:
            return
        try:
            outcome = Outcome(globals()[function](*arguments))
        except BaseException as error:
            kind = type(error)
            outcome = Outcome(None, f"{kind.__module__}.{kind.__qualname__}", str(error))
        pipe.send(outcome)


class Outcome(NamedTuple):
    """What came of an input."""

    value: Any
    error: str = ""  # with its module
    text: str = ""


class Worker:
    """The process, made again when it has ended.

    `mindspore` says whether MindSpore runs each operator at once ("blocking") or queues them
    ("queues"); None is a process without MindSpore.
    """

    def __init__(self, mindspore: str | None = None):
        self._mindspore = mindspore
        self._process: Any = None

    def run(self, function: str, *arguments: Any) -> Outcome:
        if self._process is None:
            context = multiprocessing.get_context("spawn")
            self._pipe, theirs = context.Pipe()
            self._process = context.Process(
                target=_serve, args=(theirs, sys.path, self._mindspore), daemon=True
            )
            self._process.start()
            theirs.close()
        self._pipe.send((function, arguments))
        try:
            if not self._pipe.poll(_SECONDS):
                self.end()
                raise AssertionError(f"the process hangs in {function}{arguments!r}")
            return self._pipe.recv()
        except (EOFError, ConnectionResetError):
            self._process.join()
            code, self._process = self._process.exitcode, None
            raise AssertionError(
                f"the process ended with {code} in {function}{arguments!r}"
            ) from None

    def end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._process = None

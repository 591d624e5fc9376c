"""What MindSpore differentiates an operator with."""

from __future__ import annotations

import functools
import itertools
import multiprocessing.util
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import mindspore as ms
from mindspore import ops

from aten_bridge._inputs import is_tensor
from aten_bridge._kernel import KernelModel
from aten_bridge.mindspore._inputs import Inputs, flattened


@functools.cache
def _source_folder(process: int) -> Path:
    """A folder that goes when this process ends, and not with one that is forked from it."""
    folder = tempfile.mkdtemp(prefix="aten_bridge_")
    # Not atexit: processes of multiprocessing do not run it, and those that os.fork makes do.
    multiprocessing.util.Finalize(None, shutil.rmtree, (folder, True), exitpriority=0)
    return Path(folder)


_source_numbers = itertools.count()


def run_source(source: str) -> dict[str, Any]:
    """The names of a module of this text, in a file: graph mode compiles functions from there."""
    file = _source_folder(os.getpid()) / f"source_{next(_source_numbers)}.py"
    file.write_text(source, encoding="utf-8")
    namespace: dict[str, Any] = {"__name__": __name__}
    exec(compile(source, str(file), "exec"), namespace)
    return namespace


@functools.cache
def bprop_maker(parameters: str, arguments: str, gradients: str) -> Callable:
    """A function that makes a `bprop` of these texts.

    It must have one parameter for each input, and what it calls must be in its closure or module
    (MindSpore 2.10).
    """
    return run_source(
        "def make(gradient, zeros_like):\n"
        f"    def bprop({parameters}out, dout):\n"
        f"        gradients = gradient({arguments})\n"
        f"        return ({gradients})\n"
        "    return bprop\n"
    )["make"]


class MissingGradient(ops.PrimitiveWithInfer):
    """The gradient of an operator that has none: an error where a graph needs it.

    Without a `bprop` MindSpore 2.10 says "Illegal primitive: Primitive Custom's bprop not defined".
    """

    def __init__(self, text: str):
        super().__init__("MissingGradient")
        self._text = text

    def __infer__(self, *args: dict[str, Any]) -> dict[str, Any]:
        raise ValueError(self._text)


def make_bprop(
    model: KernelModel,
    of_gradient: KernelModel | None,
    gradient: ops.Primitive,
    inputs: Inputs,
    output_count: int | None,
) -> Callable:
    """A `bprop` for a network with such inputs and a tuple of so many outputs; None: one.

    It calls the operator `gradient`, whose kernel is `of_gradient` if it has one.
    """
    texts, _, layout = inputs
    mask = model.gradient_mask(texts, of_gradient)
    names = [
        name
        for i, length in enumerate(layout)
        for name in ([f"a{i}"] if length is None else [f"a{i}[{j}]" for j in range(length)])
    ]
    gradients = (f"gradients[{i}]" for i in itertools.count())
    if sum(mask) == 1:
        gradients = iter(["gradients"])
    results = []
    for name, text, has in zip(names, texts, mask, strict=True):
        result = next(gradients) if has else f"zeros_like({name})"  # a tensor for a number
        results.append(result if is_tensor(text) else "None")
    entries = iter(results)
    tuples = [
        next(entries)
        if length is None
        else f"({''.join(f'{next(entries)}, ' for _ in range(length))})"
        for length in layout
    ]
    douts = ["dout"]
    if output_count is not None:
        douts = [f"dout[{i}]" for i in range(output_count)]
    make = bprop_maker(
        "".join(f"a{i}, " for i in range(len(layout))),
        ", ".join([*names, *douts]),
        "".join(f"{entry}, " for entry in tuples),
    )
    return make(gradient, ops.zeros_like)


class Layout(NamedTuple):
    """The arguments of a call, of which a list has those in tuples one by one."""

    lengths: tuple[int | None, ...]  # for each argument: None, or the length of a tuple
    tensors: tuple[bool, ...]  # for each of the list: whether it is a tensor

    @staticmethod
    def read(arguments: Sequence[Any]) -> Layout:
        lengths = tuple(len(one) if isinstance(one, tuple | list) else None for one in arguments)
        return Layout(lengths, tuple(isinstance(one, ms.Tensor) for one in flattened(arguments)))

    def arguments(self, flat: Iterable[Any]) -> list[Any]:
        rest = iter(flat)
        return [
            next(rest) if length is None else tuple(itertools.islice(rest, length))
            for length in self.lengths
        ]


def differentiate(
    bprop: Callable,
    layout: Layout,
    flat: Sequence[Any],
    results: Sequence[Any],
    douts: Sequence[Any],
) -> list[Any]:
    """The gradients of a call by the native caller, one for each of its inputs; None: no tensor.

    `results` are given where a `bprop` of the user's may read them.
    """
    count = None if len(douts) == 1 else len(douts)
    values = tuple(results) or (None,) * len(douts)
    gradients = bprop(
        *layout.arguments(flat),
        values if count else values[0],
        tuple(douts) if count else douts[0],
    )
    given = flattened(gradients)
    return [one if is_one else None for one, is_one in zip(given, layout.tensors, strict=True)]

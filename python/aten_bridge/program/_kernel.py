"""Programs as kernels: what the objects of all hosts hold of a module."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

from aten_bridge import _introspection
from aten_bridge._codec import Strings, operator_text
from aten_bridge._function import CALL, Host, Task
from aten_bridge._introspection import text_function
from aten_bridge._kernel import KernelModel
from aten_bridge._library import Library
from aten_bridge._operators import TextFunction, operators_library

_NAME = "aten_bridge::program"  # kProgramName of plugin/operators/program_kernel.h
_UNKNOWN_SIZE, _UNKNOWN_RANK = -1, -2  # in a shape of a graph's


def _forms_of_inputs(text: str) -> list[tuple[str, list[str] | None]]:
    """The names of inputs, and their sizes: numbers, symbols and functions; None for a seed."""
    found: list[tuple[str, list[str] | None]] = []
    for line in re.finditer(r"^ *(?:input|seed) +%(\S+) +\w+(?: +\[(.*)\])? *$", text, re.M):
        name, sizes = line.groups()
        while sizes and "(" in sizes:  # what a function has is no size of its own
            sizes = re.sub(r"\w+\([^()]*\)", "computed", sizes)
        found.append((name, None if sizes is None else [one for one in sizes.split(", ") if one]))
    return found


class ProgramFunction(TextFunction):
    """A program as a kernel."""

    maker = "module"

    def __init__(self, library: Library, text: str, is_random: bool, task: Task = CALL):
        """Raises ValueError with what is wrong with the text of the program.

        Raises ImportError where the process has another PyTorch than the library was built with.
        """
        part = "" if task == CALL else task.text()
        key = hashlib.sha256("\0".join((part, text)).encode()).hexdigest()
        add = text_function(library, "aten_bridge_program_add")
        _introspection.ask(add, key.encode(), text.encode(), part.encode())
        self._marshalled = str.__str__(Strings([_NAME, CALL.text(), "key", operator_text(key)]))
        description = self.describe(library, self._marshalled)
        super().__init__(library, "AtenProgram", description._replace(has_side_effect=is_random))
        self._inputs = _forms_of_inputs(text)

    def marshal(self, attributes: Mapping[str, Any]) -> str:
        return self._marshalled

    def infer(
        self,
        texts: Sequence[str],
        shapes: Sequence[Sequence[int] | None],
        marshalled: Any,
        host: Host,
    ) -> list[tuple[str, list[int]]]:
        if faults := self._open_sizes(shapes):
            raise ValueError("\n".join(faults))
        return super().infer(texts, shapes, marshalled, host)

    def _open_sizes(self, shapes: Sequence[Sequence[int] | None]) -> list[str]:
        """What is wrong with sizes that a graph does not know, and the program does."""
        faults = []
        for (name, sizes), shape in zip(self._inputs, shapes, strict=False):
            if shape is None or sizes is None:
                continue
            begin = f"{self.name}: %{name}: expected"
            if list(shape) == [_UNKNOWN_RANK]:
                faults.append(
                    f"{begin} {len(sizes)} dimensions, got a number of them that the graph leaves "
                    "open; give set_inputs a shape with None for each size that may change"
                )
            faults += [
                f"{begin} a size of {size} in dimension {dim}, for which the module was exported, "
                f"got one that the graph leaves open; make the module with dynamic_shapes=, "
                f"{{{dim}: Dim(...)}} for this input, or give set_inputs the size"
                for dim, (size, given) in enumerate(zip(sizes, shape, strict=False))
                if given == _UNKNOWN_SIZE and size.isdigit()
            ]
        return faults

    def instead_of_sizes(self, host: Host) -> str:
        return ""

    def missing_gradient(self, is_gradient: bool) -> str:
        return (
            f"{self.name}: expected gradients of the order that the module was made with, got "
            "one of a higher order; make it with gradient_order=2, or more; 1 is the highest where "
            "gradients read buffers that a call changes, as in batch normalization in training "
            "mode, and where gradients are constants"
        )


class EvaluationFunction(ProgramFunction):
    """A program whose results may have sizes that depend on values, or that has no gradient."""

    def __init__(self, library: Library, text: str, is_random: bool):
        super().__init__(library, text, is_random)
        self._text = text

    def for_task(self, task: Task, attributes: Mapping[str, Any]) -> ProgramFunction:
        """The same program's kernel for another task: that of the sizes of its results."""
        has_side_effect = self.description.has_side_effect
        return ProgramFunction(self.library, self._text, has_side_effect, task)

    def instead_of_sizes(self, host: Host) -> str:
        return (
            f"; {host.at_once}, or pad the results inside of it, by torch.nn.functional.pad, to "
            "the largest size that they can have"
        )

    def missing_gradient(self, is_gradient: bool) -> str:
        return (
            f"{self.name}: expected a module with gradients, got one that PyTorch does not "
            "differentiate; keep it out of what is differentiated"
        )


def check_program(text: str) -> None:
    """Raises ValueError with what is wrong with the text of a program."""
    ProgramFunction(operators_library(), text, is_random=False)


def program_kernel(
    host: Host, text: str, grad: Any = None, is_random: bool = False, task: Task = CALL
) -> KernelModel:
    """A program as a kernel. Raises ValueError with what is wrong with its text."""
    function = ProgramFunction(operators_library(), text, is_random, task)
    return KernelModel(function, host, {}, grad)


def evaluation_kernel(
    host: Host, text: str, grad: Any = None, is_random: bool = False
) -> KernelModel:
    """A kernel whose results may be measured. Raises ValueError as `program_kernel` does."""
    function = EvaluationFunction(operators_library(), text, is_random)
    return KernelModel(function, host, {}, grad)

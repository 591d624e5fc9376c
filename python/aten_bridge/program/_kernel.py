"""Programs as kernels: what the objects of all hosts hold of a module."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from aten_bridge import _introspection
from aten_bridge._codec import Strings, operator_text
from aten_bridge._function import Function, Host
from aten_bridge._introspection import Description, text_function
from aten_bridge._kernel import KernelModel
from aten_bridge._library import Library
from aten_bridge._operators import OPERATOR_ATTRIBUTE, operators_library

_NAME = "aten_bridge::program"  # kProgramName of plugin/operators/program_kernel.h


class ProgramFunction(Function):
    """A program as a kernel."""

    maker = "module"

    def __init__(self, library: Library, text: str, is_random: bool):
        """Raises ValueError with what is wrong with the text of the program."""
        key = hashlib.sha256(text.encode()).hexdigest()
        add = text_function(library, "aten_bridge_program_add")
        failed, fault = _introspection.ask(add, key.encode(), text.encode())
        if failed:
            raise ValueError(fault)
        self._marshalled = str.__str__(Strings([_NAME, "0", "key", operator_text(key)]))
        describe = text_function(library, "aten_bridge_operator_describe")
        failed, answer = _introspection.ask(describe, self._marshalled.encode())
        if failed:
            raise ImportError(answer)
        description = Description.read(json.loads(answer))._replace(has_side_effect=is_random)
        symbol = "AtenOperators" if description.gives_tuple else "AtenOperator"
        infer = text_function(library, "aten_bridge_operator_infer")
        super().__init__(library, "AtenProgram", "AtenProgram", symbol, description, infer)

    def _question(self, marshalled: str) -> _introspection.Question:
        return lambda inputs, count: _introspection.ask(
            self._infer, marshalled.encode(), inputs, count
        )

    def marshal(self, attributes: Mapping[str, Any], is_exact: bool = True) -> str:
        return self._marshalled

    def carried(self, attributes: dict[str, Any]) -> dict[str, Any]:
        return {OPERATOR_ATTRIBUTE: self._marshalled}


def program_kernel(host: Host, text: str, grad: Any = None, is_random: bool = False) -> KernelModel:
    """A program as a kernel. Raises ValueError with what is wrong with its text."""
    return KernelModel(ProgramFunction(operators_library(), text, is_random), host, {}, grad)

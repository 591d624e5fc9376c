"""The inputs of a call as texts, and what is wrong with those that cannot be given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aten_bridge._text import cut, format_value
from aten_bridge.faults import Fault


class FaultText(str):
    """In place of an input's text: what is wrong with the input."""

    fault: Fault


def is_tensor(text: str) -> bool:
    """Whether an input is a tensor, by its text as `kInputsAttribute` has it."""
    return not text.startswith(("none", "#"))


def format_input(
    value: Any, tensor: Callable[[Any, Any], str], dtype: Any = None, depth: int = 0
) -> str:
    """A value for an error text; `tensor` names what is one, by the value or its dtype."""
    if isinstance(value, tuple | list):
        if depth == 3:
            return "(…)"
        dtypes = dtype if isinstance(dtype, tuple | list) else [None] * len(value)
        texts = [
            format_input(element, tensor, dtype, depth + 1)
            for element, dtype in zip(value, dtypes, strict=True)
        ]
        return cut(f"({', '.join(texts)}{',' if len(texts) == 1 else ''})")
    return tensor(value, dtype) or format_value(value)


class Reader:
    """Collects the inputs of a call, those in tuples one by one."""

    def __init__(self) -> None:
        self.texts: list[str] = []  # as `kInputsAttribute` of the headers has them, or a FaultText
        self.shapes: list[tuple[int, ...] | None] = []  # None where it is no tensor

    def add(self, text: str | Fault, shape: tuple[int, ...] | None = None) -> None:
        if isinstance(text, Fault):
            fault, text = text, FaultText(text.text)
            text.fault = fault
        self.texts.append(text)
        self.shapes.append(shape)

"""What a library says of itself and of its kernels, as its C functions say it.

Nothing else reads their texts.
"""

from __future__ import annotations

import contextlib
import ctypes
import enum
import json
import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from aten_bridge._library import DESCRIBE, Library, import_pytorch
from aten_bridge._text import as_text, format_value

_INTERFACE = 2  # kPythonInterface of hosts/introspection/introspection.h
_ATTRIBUTES_ALONE = -1  # kAttributesAlone of the same
EXACT = "aten_bridge_exact"  # kExactAttribute of hosts/introspection/answers.h


class Status(enum.IntEnum):
    """Those of `Status` in core/errors.h that Python does something about."""

    OK = 0
    PYTORCH = 12
    VALUES = 13
    META_IN_PYTHON = 14


def call_text(library: Library, name: str, *arguments: Any) -> bytes | None:
    """The text that a C function of a library returns."""
    function = library.function(name)
    function.restype = ctypes.c_char_p
    return function(*arguments)


# ===--- descriptions ---===


def _is_rows(value: Any, *types: type) -> bool:
    """Whether it is a list of lists with elements of these types."""
    return isinstance(value, list) and all(
        isinstance(row, list) and [type(element) for element in row] == [*types] for row in value
    )


def _is_description(fields: Any) -> bool:
    """Whether JSON is what `describe` of hosts/introspection/introspection.h says."""
    return (
        isinstance(fields, dict)
        and _is_rows(fields.get("inputs"), str, str)
        and _is_rows(fields.get("attributes"), str, str, bool)
        and type(outputs := fields.get("outputs")) is int
        and outputs >= 0
        and isinstance(fields.get("meta"), bool)
        and isinstance(fields.get("gradient", False), bool)
        and isinstance(fields.get("side_effect", False), bool)
        and isinstance(fields.get("device", ""), str)
    )


def _made_by(fields: Any) -> str:
    """As in " of aten_bridge 0.1.0", of JSON from a library that says so."""
    version = fields.get("version") if isinstance(fields, dict) else None
    return f" of aten_bridge {version}" if isinstance(version, str) else ""


def made_by(library: Library) -> str:
    """The same of a library, or " of an older aten_bridge", which does not say its version."""
    for name in library.kernel_names():
        if library.function(name + DESCRIBE) is not None:
            with contextlib.suppress(ValueError, RecursionError):
                text = as_text(call_text(library, name + DESCRIBE) or b"")
                if version := _made_by(json.loads(text)):
                    return version
    return " of an older aten_bridge"


class Description(NamedTuple):
    """What a kernel says about itself, from its Describe function."""

    inputs: list[str]  # "tensor", "tensor or None", "tensors", "number", "number or None"
    input_names: list[str]  # from their checks, or ""
    outputs: int
    has_meta: bool
    is_gradient: bool  # the outputs are the gradients of the tensors among the forward's inputs
    device: str  # where it wants its operands: "cpu" or "cuda"
    attribute_names: list[str]  # as exported; one may stand twice
    attribute_types: dict[str, str]  # such as "a float, such as 1.0"
    required: set[str]
    has_side_effect: bool = False  # each call has to be made

    @classmethod
    def read(cls, text: bytes | None, full_name: str) -> Description:
        """Reads what Describe returned; raises ImportError if it is of another interface."""
        try:
            # Names that are not UTF-8 are refused where they are needed.
            fields = json.loads((text or b"").decode(errors="surrogateescape"))
        except (ValueError, RecursionError):
            fields = None
        if isinstance(fields, dict) and fields.get("interface", 0) != _INTERFACE:
            raise ImportError(
                f"{full_name}: expected a library of interface {_INTERFACE}, got "
                f"{format_value(fields.get('interface', 0))}{_made_by(fields)}; build it again "
                "with the aten_bridge.h that this Python module came with, or use the module that "
                "came with the library's"
            )
        if not _is_description(fields):
            raise ImportError(
                f"{full_name}: expected a library whose kernels describe themselves, got the "
                f"description {format_value(text)}; build it again with the aten_bridge.h that "
                "this Python module came with"
            )
        return cls(
            inputs=[kind for kind, _ in fields["inputs"]],
            input_names=[as_text(os.fsencode(name)) for _, name in fields["inputs"]],
            outputs=fields["outputs"],
            has_meta=fields["meta"],
            is_gradient=fields.get("gradient", False),
            device=fields.get("device", "cpu"),
            attribute_names=[name for name, _, _ in fields["attributes"]],
            attribute_types={name: type_ for name, type_, _ in fields["attributes"]},
            required={name for name, _, required in fields["attributes"] if required},
            has_side_effect=fields.get("side_effect", False),
        )

    @property
    def gives_tuple(self) -> bool:
        """Whether MindSpore sees the outputs as a tuple."""
        return self.outputs > 1 or (self.is_gradient and "tensors" in self.inputs)

    @property
    def takes_frame(self) -> bool:
        """Whether the kernel takes any inputs and outputs, as one over a CallFrame does."""
        return self.outputs == 0


# ===--- questions about inputs and attributes ---===


class Input(ctypes.Structure):
    """PythonInput of hosts/introspection/introspection.h."""

    _fields_ = (
        ("text", ctypes.c_char_p),
        ("ndim", ctypes.c_int),
        ("sizes", ctypes.POINTER(ctypes.c_int64)),
    )


class DependsOnValues(ValueError):
    """The sizes of the results cannot be told from those of the inputs."""


class NeedsPyTorch(ValueError):
    """PyTorch's Python part would tell them, and is not imported."""


# Asks about inputs, and their number; with the attributes it is a question of the library's.
Question = Callable[[Any, int], tuple[int, str]]  # a Status, and the text


def infer_outputs(
    question: Question, texts: Sequence[str], shapes: Sequence[Sequence[int] | None]
) -> list[tuple[str, list[int]]]:
    """The dtype and shape of each output. Raises ValueError with the library's text.

    One of the two above, or that very class, which MindSpore knows.
    """
    inputs = (Input * len(texts))()
    for given, text, shape in zip(inputs, texts, shapes, strict=True):
        given.text = text.encode()
        if shape is not None:
            given.ndim = len(shape)
            given.sizes = (ctypes.c_int64 * len(shape))(*shape)
    status, text = question(inputs, len(inputs))
    if status == Status.META_IN_PYTHON and import_pytorch():
        status, text = question(inputs, len(inputs))
    if status == Status.OK:
        return [(dtype, sizes) for dtype, sizes in json.loads(text)]
    # Where PyTorch is imported, its meta functions of some operators are Python functions, whose
    # errors have a traceback.
    text = text.partition("\n\nAt:\n  ")[0]
    if status == Status.VALUES:
        raise DependsOnValues(text)
    raise (NeedsPyTorch if status == Status.META_IN_PYTHON else ValueError)(text)


def attribute_faults(question: Question, name: str, full_name: str) -> dict[str, str]:
    """What the library says of the attributes, one after another.

    Raises ImportError if the process has another PyTorch than the library was built with.
    """
    status, text = question(None, _ATTRIBUTES_ALONE)
    if status == Status.PYTORCH:
        raise ImportError(f"{full_name}: " + text.removeprefix(f"{name}: "))
    return dict(json.loads(text)) if status == Status.OK else {}


def ask(function: Any, *arguments: Any) -> tuple[int, str]:
    """The status of a C function, which writes it to its last parameter, and its text."""
    function.restype = ctypes.c_char_p
    status = ctypes.c_int(Status.OK)
    text = function(*arguments, ctypes.byref(status))
    return status.value, as_text(text)

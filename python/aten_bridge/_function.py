"""Kernels of a library: what they say about themselves, whatever the host."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import json
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from aten_bridge._library import DESCRIBE, Library, import_pytorch
from aten_bridge._marshal import Input, Marshalled
from aten_bridge._text import as_text, did_you_mean, format_value, or_list

_INTERFACE = 1  # kPythonInterface of hosts/introspection/introspection.h
_ATTRIBUTES_ALONE = -1  # kAttributesAlone of the same


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


def _made_by(fields: dict[str, Any]) -> str:
    """As in " of aten_bridge 0.1.0", of JSON from a library that says so."""
    version = fields.get("version")
    return f" of aten_bridge {version}" if isinstance(version, str) else ""


def made_by(library: Library) -> str:
    """The same of a library, or " of an older aten_bridge", which does not say its version."""
    for name in library.kernel_names():
        if (describe := library.function(name + DESCRIBE)) is not None:
            describe.restype = ctypes.c_char_p
            with contextlib.suppress(ValueError, RecursionError):
                fields = json.loads(as_text(describe() or b""))
                if isinstance(fields, dict) and (version := _made_by(fields)):
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


_OPTIONAL = " or None"  # ends the kind of an input that may be left out

# What hosts call beside a kernel itself: to call it as a kernel would end the process.
_SERVING = re.compile(r"(.+)(?:Init|Infer|InferShape|InferType|Describe|Jax)")


def _served(library: Library, name: str) -> str | None:
    """The kernel, or "" for all, for which ATEN_BRIDGE_EXPORT made this function; None: none."""
    if name.startswith("aten_bridge_"):
        return ""
    served = _SERVING.fullmatch(name)
    is_one = served is not None and library.function(served[1] + DESCRIBE) is not None
    return served[1] if is_one and library.function(name + DESCRIBE) is None else None


class Function:
    """A kernel of a library: its description and its inference, without MindSpore."""

    maker = "kernel"  # the Python function that makes operators of it

    def __init__(self, library: Library, name: str):
        self.name = name
        self.library = library
        self.path = library.path
        self.symbol = name  # of the C function that a host calls
        self.full_name = f"{library.path}:{name}"
        served = _served(library, name)
        if library.function(name) is None or served is not None:
            names = library.kernel_names()
            raise AttributeError(
                f"{library.path}: expected the kernel {name!r}, got a library with "
                + (or_list(names) if names else "no kernels; export one with ATEN_BRIDGE_EXPORT")
                + did_you_mean(served or name, names)
            )
        self._infer = library.function(name + "Infer")
        describe = library.function(name + DESCRIBE)
        self.description: Description | None = None
        if describe is not None and self._infer is not None:
            self._infer.restype = ctypes.c_char_p
            describe.restype = ctypes.c_char_p
            self.description = Description.read(describe(), self.full_name)

    @functools.cached_property
    def input_names(self) -> list[str]:
        """The names of the inputs: those of their checks, else numbers, as in PyTorch's schema."""
        names: list[str] = []
        for i, name in enumerate(self.description.input_names):
            is_one = name.isidentifier() and name not in names
            names.append(name if is_one and name not in self._taken_names else f"input{i}")
        return names

    @property
    def _taken_names(self) -> Sequence[str]:
        """What no input can be called."""
        return self.description.attribute_names

    @property
    def first_optional(self) -> int:
        """The first of the inputs that, with all behind it, may be left out."""
        kinds = self.description.inputs
        first = len(kinds)
        while first > 0 and kinds[first - 1].endswith(_OPTIONAL):
            first -= 1
        return first

    def place(self, arguments: Sequence[Any], named: Mapping[str, Any]) -> Sequence[Any]:
        """The arguments of a call in the order of the inputs, also those that are given by name.

        Last ones that may be left out are None then. The elements of a list of tensors may stand
        one by one, where nothing is named. Raises TypeError where names are wrong.
        """
        if self.description is None or self.description.takes_frame:
            if named:
                raise TypeError(
                    f"{self.name}: expected inputs by their positions, since the kernel does not "
                    f"tell their names, got {or_list(named)}"
                )
            return arguments
        kinds = self.description.inputs
        if named:
            return self._place_named(arguments, named)
        left = kinds[len(arguments) :]
        if not left or len(arguments) < self.first_optional:
            return arguments
        begin = self.list_position(len(kinds))
        if begin is not None and not isinstance(arguments[begin], tuple | list):
            return arguments  # nobody knows where the list ends
        return (*arguments, *(None for _ in left))

    def list_position(self, count: int) -> int | None:
        """Which of so many arguments is the list of tensors; None: nobody knows, or none is."""
        kinds = self.description.inputs if self.description is not None else []
        return kinds.index("tensors") if len(kinds) == count and "tensors" in kinds else None

    def _place_named(self, arguments: Sequence[Any], named: Mapping[str, Any]) -> Sequence[Any]:
        names, kinds = self.input_names, self.description.inputs
        if len(arguments) > len(kinds):
            raise TypeError(
                f"{self.name}: expected {len(kinds)} input{'s' * (len(kinds) != 1)}, where some "
                f"are given by name, got {len(arguments)} by position and {or_list(named)}; give "
                "several tensors as one tuple"
            )
        placed = dict(zip(names, arguments, strict=False))
        faults = []
        for name in named:
            if name in placed:
                faults.append(
                    f"input {names.index(name)} {name!r}: expected one value, got one by position "
                    "and one by name; leave one out"
                )
            elif name in self.description.attribute_types:
                faults.append(
                    f"expected one of {or_list(names)} as the name of an input, got {name!r}, an "
                    f"attribute; give it to {self.maker}()"
                )
            elif name not in names:
                expected = (
                    f"one of {or_list(names)} as the name of an input" if names else "no inputs"
                )
                faults.append(f"expected {expected}, got {name!r}" + did_you_mean(name, names))
        placed = placed | dict(named)
        for i, (name, kind) in enumerate(zip(names, kinds, strict=True)):
            if name not in placed and not kind.endswith(_OPTIONAL):
                what = "a tuple of tensors" if kind == "tensors" else f"a {kind}"
                faults.append(f"input {i} {name!r}: expected {what}, got nothing; give one")
        if faults:
            raise TypeError("\n".join(f"{self.name}: {fault}" for fault in faults))
        return [placed.get(name) for name in names]

    def parameter_kinds(self, count: int) -> list[str] | None:
        """What takes each of so many inputs; None if the kernel does not say."""
        if self.description is None or self.description.takes_frame:
            return None
        kinds = self.description.inputs
        if "tensors" in kinds:
            begin = kinds.index("tensors")
            kinds = kinds[:begin] + ["tensors"] * (count - len(kinds) + 1) + kinds[begin + 1 :]
        return kinds

    def count_fault(self, count: int) -> str:
        """What is wrong with so many inputs; "" if the kernel takes them."""
        if self.description is None or self.description.takes_frame:
            return ""
        kinds = self.description.inputs
        expected = len(kinds)
        least = "at least " if "tensors" in kinds else ""
        expected -= 1 if least else 0
        if count == expected or (least and count > expected):
            return ""
        if not least and self.first_optional < expected:
            least = f"{self.first_optional} to "
        plural = "" if expected == 1 else "s"
        return f"{self.name}: expected {least}{expected} input{plural}, got {count}"

    def infer(
        self, texts: Sequence[str], shapes: Sequence[Sequence[int] | None], marshalled: Any
    ) -> list[tuple[str, list[int]]]:
        """The dtype and shape of each output. Raises ValueError with the bridge's text."""
        inputs = (Input * len(texts))()
        for given, text, shape in zip(inputs, texts, shapes, strict=True):
            given.text = text.encode()
            if shape is not None:
                given.ndim = len(shape)
                given.sizes = (ctypes.c_int64 * len(shape))(*shape)
        failed, text = self._call_infer(inputs, len(inputs), marshalled)
        if failed and "import torch" in text and import_pytorch():
            failed, text = self._call_infer(inputs, len(inputs), marshalled)
        if failed:
            # Where PyTorch is imported, its meta functions of some operators are Python functions,
            # whose errors have a traceback.
            raise ValueError(text.partition("\n\nAt:\n  ")[0])
        return [(dtype, sizes) for dtype, sizes in json.loads(text)]

    def marshal(self, attributes: dict[str, Any]) -> Any:
        """The attributes as `infer` takes them."""
        types = {} if self.description is None else self.description.attribute_types
        return Marshalled(attributes, types)

    def _call_infer(
        self, inputs: ctypes.Array[Input] | None, count: int, marshalled: Marshalled
    ) -> tuple[bool, str]:
        failed = ctypes.c_int(0)
        text = self._infer(inputs, count, marshalled.array, marshalled.count, ctypes.byref(failed))
        return bool(failed.value), as_text(text)

    def check_pytorch(self) -> None:
        """Raises ImportError as attribute_faults() does. Opens PyTorch, and calls no kernel."""
        if self.description is not None:
            self._type_faults({})

    def attribute_faults(self, given: dict[str, Any]) -> dict[str, str]:
        """What is wrong with each attribute; values are bool, int, float, str, list or None.

        Raises ImportError if the process has another PyTorch than the library was built with.
        """
        if self.description is None:
            return {}
        types = self.description.attribute_types
        known = {name: value for name, value in given.items() if name in types}
        faults = self._type_faults(known)
        for name in given:
            if name not in types:
                expected = f"one of {or_list(types)}" if types else "no attributes"
                faults[name] = f"expected {expected}, got an unknown name" + did_you_mean(
                    name, types
                )
        for name in types:
            if name in self.description.required and given.get(name) is None:
                faults[name] = (
                    f"expected {types[name]}, got nothing; give it where the operator is made, as "
                    f"in {self.maker}({self.full_name!r}, {name}=...)"
                )
        return faults

    def _type_faults(self, attributes: dict[str, Any]) -> dict[str, str]:
        """What the library says of the attributes, one after another."""
        failed, text = self._call_infer(None, _ATTRIBUTES_ALONE, self.marshal(attributes))
        if not failed:
            return {}
        text = text.removeprefix(f"{self.name}: ")
        if text.startswith("expected PyTorch "):
            raise ImportError(f"{self.full_name}: {text}")
        faults = (
            re.match(r"attribute '(.*?)': (.*)", fault, re.DOTALL)
            for fault in text.split(f"\n{self.name}: ")
        )
        return {fault[1]: fault[2] for fault in faults if fault}

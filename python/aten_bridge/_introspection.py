"""What a library says of itself and of its kernels, as its table and its C functions say it."""

from __future__ import annotations

import ctypes
import enum
import functools
import json
import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from aten_bridge._codec import AttributeType, Marshalled
from aten_bridge._library import Library, exported_functions, import_pytorch
from aten_bridge._text import as_text, format_value
from aten_bridge.faults import Fault, Status, add_source, faults_of

_INTERFACE = 8  # kPythonInterface of hosts/introspection/introspection.h
_ATTRIBUTES_ALONE = -1  # kAttributesAlone of the same


# ===--- the table ---===


class _Table(ctypes.Structure):
    """LibraryTable of hosts/introspection/introspection.h."""

    _fields_ = (
        ("interface", ctypes.c_int),
        ("version", ctypes.c_char_p),
        ("release", ctypes.c_void_p),
        ("describe", ctypes.CFUNCTYPE(ctypes.c_char_p)),
        (
            "infer",
            ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p),
        ),
        ("register_with_pytorch", ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_int)),
        ("failures", ctypes.CFUNCTYPE(ctypes.c_char_p)),
    )


def _is_rows(value: Any, *types: type) -> bool:
    """Whether it is a list of lists with elements of these types."""
    return isinstance(value, list) and all(
        isinstance(row, list) and [type(element) for element in row] == [*types] for row in value
    )


def _is_names(value: Any) -> bool:
    return isinstance(value, list) and all(type(name) is str for name in value)


_SCALARS = (
    ("name", str), ("device", str), ("outputs", int), ("meta", bool), ("gradient", bool),
    ("side_effect", bool),
)  # fmt: skip


class Attribute(NamedTuple):
    """An attribute of a kernel."""

    type: AttributeType
    text: str  # what errors call the type, such as "a float, such as 1.0"
    is_required: bool


def read_attributes(rows: Sequence[Sequence[Any]]) -> dict[str, Attribute]:
    """Attributes by name, from the rows of a description."""
    return {name: Attribute(AttributeType(row[0]), *row[1:]) for name, *row in rows}


def missing_attributes(
    attributes: Mapping[str, Attribute], given: Mapping[str, Any]
) -> dict[str, Attribute]:
    """Those that have to be given, and are not."""
    return {
        name: attribute
        for name, attribute in attributes.items()
        if attribute.is_required and given.get(name) is None
    }


class InputKind(enum.IntEnum):
    """InputKind of hosts/introspection/introspection.h."""

    TENSOR = 0
    TENSORS = 1
    NUMBER = 2
    VALUE = 3


class Parameter(NamedTuple):
    """An input of a kernel."""

    name: str  # from its check, or ""
    kind: InputKind
    is_optional: bool  # whether it may be None

    @property
    def is_tensor(self) -> bool:
        return self.kind <= InputKind.TENSORS

    def __str__(self) -> str:
        return self.kind.name.lower() + " or None" * self.is_optional


class Description(NamedTuple):
    """What a kernel says about itself."""

    inputs: list[Parameter]
    outputs: int
    has_meta: bool
    is_gradient: bool  # the outputs are the gradients of the tensors among the forward's inputs
    device: str  # where it wants its operands: "cpu" or "cuda"
    attribute_names: list[str]  # as exported; one may stand twice
    attributes: dict[str, Attribute]
    has_side_effect: bool = False  # each call has to be made
    changes_state: bool = False  # a state that one call leaves to the next
    is_data_dependent: bool = False  # the sizes of the results depend on values
    is_strided: bool = False  # inputs may have strides
    hosts: frozenset[str] = frozenset()  # as aten_bridge_add_kernel() calls them
    entry_points: tuple[str, ...] = ()  # the C functions that these look up

    @classmethod
    def read(cls, fields: Any) -> Description:
        """Reads what `description` of introspection.h says; raises ValueError if it is not that."""
        if not (
            isinstance(fields, dict)
            and all(type(fields.get(name)) is type_ for name, type_ in _SCALARS)
            and fields["outputs"] >= 0
            and _is_names(fields.get("hosts"))
            and _is_names(fields.get("entry_points"))
            and _is_rows(fields.get("inputs"), str, int, bool)
            and _is_rows(fields.get("attributes"), str, int, str, bool)
        ):
            raise ValueError
        attributes = fields["attributes"]
        return cls(
            # Names that are not UTF-8 are refused where they are needed.
            inputs=[
                # A list is always there; what may be None are its tensors.
                Parameter(
                    as_text(os.fsencode(name)),
                    InputKind(kind),
                    may_be_none and kind != InputKind.TENSORS,
                )
                for name, kind, may_be_none in fields["inputs"]
            ],
            outputs=fields["outputs"],
            has_meta=fields["meta"],
            is_gradient=fields["gradient"],
            device=fields["device"],
            attribute_names=[name for name, *_ in attributes],
            attributes=read_attributes(attributes),
            has_side_effect=fields["side_effect"],
            changes_state=fields.get("changes_state") is not False and fields["side_effect"],
            is_data_dependent=fields.get("data_dependent") is True,
            is_strided=fields.get("strided") is True,
            hosts=frozenset(fields["hosts"]),
            entry_points=tuple(fields["entry_points"]),
        )

    @property
    def list_index(self) -> int | None:
        """Which of the inputs is a list of tensors."""
        return next((i for i, one in enumerate(self.inputs) if one.kind == InputKind.TENSORS), None)

    @property
    def has_several_outputs(self) -> bool:
        """Whether a call returns a tuple, also of the one gradient of a list."""
        return self.outputs > 1 or (self.is_gradient and self.list_index is not None)

    @property
    def is_raw(self) -> bool:
        """Whether the kernel takes any inputs and outputs, as one over a CallFrame does."""
        return self.outputs == 0


_REBUILD = "build it again with the aten_bridge.h that this Python module came with"


class LibraryDescription(NamedTuple):
    """What a library says about itself."""

    kernels: Mapping[str, Description] = {}
    pytorch: str = ""  # the version that it was built with, such as "2.11"
    cxx11_abi: bool = True  # whether with libstdc++'s new C++ ABI, _GLIBCXX_USE_CXX11_ABI=1
    fault: str = ""  # why it does not fit the PyTorch of the process
    table: _Table | None = None  # None: it has no kernels but C functions

    @classmethod
    def read(cls, text: bytes | None, path: str, table: _Table | None) -> LibraryDescription:
        """Reads what `describe` of the table says; raises ImportError if it is not that."""
        try:
            fields = json.loads((text or b"").decode(errors="surrogateescape"))
            kernels = {one["name"]: Description.read(one) for one in fields["kernels"]}
            pytorch, cxx11_abi, fault = (fields[one] for one in ("pytorch", "cxx11_abi", "fault"))
            if [*map(type, (pytorch, cxx11_abi, fault))] != [str, bool, str]:
                raise TypeError
        except (ValueError, TypeError, KeyError, RecursionError):
            raise ImportError(
                f"{path}: expected a library that describes its kernels, got the description "
                f"{format_value(text)}; {_REBUILD}"
            ) from None
        return cls(kernels, pytorch, cxx11_abi, as_text(os.fsencode(fault)), table)

    @property
    def version(self) -> str:
        """The version of aten_bridge whose header it was built with, for people.

        What has to fit is the interface: two versions that have the same work together.
        """
        return as_text(self.table.version or b"")

    def infer(self, name: str) -> Any:
        """What answers questions about a kernel."""
        return functools.partial(self.table.infer, list(self.kernels).index(name))

    def register_with_pytorch(self, replace: bool) -> tuple[list[list[str]], str] | None:
        """The operators, each with the kernel and the overloads, and why others are not.

        None of a library for other hosts.
        """
        if self.table is None or not self.table.register_with_pytorch:
            return None
        answer = json.loads(as_text(self.table.register_with_pytorch(replace)))
        return answer["operators"], answer["faults"]


@functools.cache
def describe_library(library: Library) -> LibraryDescription:
    """What a library says about itself; raises ImportError if it is of another interface."""
    get_table = library.function("aten_bridge_library")
    if get_table is None and library.function("aten_bridge_last_error") is not None:
        # Until interface 2 each kernel described itself; others are C functions with a header.
        names = set(exported_functions(library.path))
        if any(f"{name}Describe" in names for name in names):
            raise _another_interface(library, "an older one")
    if get_table is None:
        return LibraryDescription()
    get_table.restype = ctypes.POINTER(_Table)
    table = get_table()
    if not table or table.contents.interface != _INTERFACE:
        number, version = (table[0].interface, table[0].version) if table else (None, None)
        of_version = f" of aten_bridge {as_text(version)}" if version else ""
        raise _another_interface(library, format_value(number) + of_version)
    description = LibraryDescription.read(table[0].describe(), library.path, table[0])
    add_source(functools.partial(_failures, table[0]))
    return description


def _failures(table: _Table) -> list[tuple[str, tuple[Fault, ...]]]:
    """The texts of a library's last failures, and what is wrong with operands and attributes."""
    return [(text, _read_faults(rows)) for text, rows in json.loads(table.failures())]


def _read_faults(rows: Sequence[Sequence[Any]]) -> tuple[Fault, ...]:
    return tuple(Fault(*row[:3], Status(row[3]), *row[4:]) for row in rows)


def _another_interface(library: Library, got: str) -> ImportError:
    return ImportError(
        f"{library.path}: expected a library of interface {_INTERFACE}, got {got}; {_REBUILD}, or "
        "use the module that came with the library's"
    )


def kernel_names(library: Library) -> list[str]:
    """The kernels, or, where none was exported with ATEN_BRIDGE_EXPORT, all C functions."""
    if kernels := describe_library(library).kernels:
        return sorted(kernels)
    names = exported_functions(library.path)
    functions = {name for name in names if not name.startswith(("_", "aten_bridge_"))}
    # The dynamic linker may not find a versioned name: libm has matherr for old programs.
    return sorted(name for name in functions if library.function(name) is not None)


# ===--- questions about inputs and attributes ---===


class _Input(ctypes.Structure):
    """PythonInput of hosts/introspection/introspection.h."""

    _fields_ = (
        ("text", ctypes.c_char_p),
        ("ndim", ctypes.c_int),
        ("sizes", ctypes.POINTER(ctypes.c_int64)),
    )


class Question(ctypes.Structure):
    """PythonQuestion of hosts/introspection/introspection.h."""

    _fields_ = (
        ("results", ctypes.c_char_p),
        ("operands", ctypes.c_char_p),
        ("is_exact", ctypes.c_bool),
        ("inputs", ctypes.POINTER(_Input)),
        ("input_count", ctypes.c_int),
        ("attributes", ctypes.c_void_p),
        ("attribute_count", ctypes.c_int),
    )

    def __init__(self, results: str, operands: str, is_exact: bool, attributes: Marshalled):
        super().__init__(results.encode(), operands.encode(), is_exact)
        self.attributes = ctypes.addressof(attributes.array)
        self.attribute_count = attributes.count
        self._kept = attributes


class DependsOnValues(ValueError):
    """The sizes of the results cannot be told from those of the inputs."""


class NeedsPyTorch(ValueError):
    """PyTorch's Python part would tell them, and is not imported."""


# Any other status: what was given is wrong. MindSpore knows ValueError.
_ERRORS = {
    Status.PYTORCH: ImportError,
    Status.VALUES: DependsOnValues,
    Status.META_IN_PYTHON: NeedsPyTorch,
}


def infer_outputs(
    infer: Any, question: Question, texts: Sequence[str], shapes: Sequence[Sequence[int] | None]
) -> list[tuple[str, list[int]]]:
    """The dtype and shape of each output; the question has all but the inputs.

    Raises ask()'s errors.
    """
    inputs = (_Input * len(texts))()
    for given, text, shape in zip(inputs, texts, shapes, strict=True):
        given.text = text.encode()
        if shape is not None:
            given.ndim = len(shape)
            given.sizes = (ctypes.c_int64 * len(shape))(*shape)
    question.inputs, question.input_count = inputs, len(inputs)
    text = ""
    try:
        text = ask(infer, ctypes.byref(question))
    except NeedsPyTorch:
        if not import_pytorch():
            raise
    text = text or ask(infer, ctypes.byref(question))
    return [(dtype, sizes) for dtype, sizes in json.loads(text)]


def attribute_faults(infer: Any, question: Question) -> dict[str, Fault]:
    """What the library says of the attributes, one after another."""
    question.input_count = _ATTRIBUTES_ALONE
    try:
        text = ask(infer, ctypes.byref(question))
    except ValueError as error:  # there is no kernel of such attributes
        faults = faults_of(error)
    else:
        faults = _read_faults(json.loads(text))
    return {fault.name: fault for fault in faults}


def text_function(library: Library, name: str) -> Any:
    """A C function that returns a text. Raises ImportError where an older library has none."""
    function = library.function(name)
    if function is None:
        raise _another_interface(library, "an older one")
    function.restype = ctypes.c_char_p
    return function


def ask(function: Any, *arguments: Any) -> str:
    """The text that a C function returns, which writes a Status to its last parameter.

    Raises ValueError with this text, and with its faults, where what was given is wrong, which is
    DependsOnValues or NeedsPyTorch where that is why; and ImportError where the process has another
    PyTorch than the library was built with.
    """
    status = ctypes.c_int(Status.OK)
    text = as_text(function(*arguments, ctypes.byref(status)))
    if status.value == Status.OK:
        return text
    error = _ERRORS.get(status.value, ValueError)(text)
    error.faults = faults_of(error)
    raise error

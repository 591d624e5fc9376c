"""Operators of PyTorch's dispatcher by name, whatever the host: which overload is meant."""

from __future__ import annotations

import ctypes
import json
import math
import numbers
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from aten_bridge._function import Description, Function
from aten_bridge._library import Library, open_library
from aten_bridge._places import compiled_library
from aten_bridge._text import (
    as_float,
    as_text,
    closest,
    did_you_mean,
    format_value,
    is_utf8,
    or_list,
)

ATTRIBUTE = "aten_bridge_operator"  # kOperatorAttribute of plugin/operators/operator_text.h
CALL, SIZES, COUNTED = "0", "sizes", "counted"  # tasks, see find_kernel() of the same folder

# How the library ends errors about shapes: kDependsOnValues and kImportPyTorch of
# plugin/operators/operator_shapes.cpp.
_DEPENDS_ON_VALUES = "got one whose sizes depend on values"
_IMPORT_PYTORCH = "whose Python part knows the shapes of more operators"

_NAME = "aten_bridge_operators.so"


class Words(NamedTuple):
    """What to do, in the words of a host."""

    results: str  # who else tells how large results are
    depends_on_values: str  # where sizes depend on values, and are wanted without these
    counted_gradient: str  # where an operator that was told the largest is differentiated
    factory: str  # where an operator takes no tensor


class DependsOnValues(ValueError):
    """The sizes of the results cannot be told from those of the inputs."""


class UnknownOperator(AttributeError):
    """There is no such operator, or none that can be called."""


class Overload(NamedTuple):
    """An overload of an operator, from the library."""

    name: str  # such as "aten::max.dim"
    fault: str  # why it cannot be called
    schema: str
    depends_on_values: bool  # the sizes of its results do
    is_random: bool
    inputs: int | None  # tensors that it takes; None: any number
    attributes: dict[
        str, tuple[str, bool]
    ]  # by name: its type in words, and whether it must be set

    def faults(self, given: Mapping[str, Any]) -> tuple[int, int]:
        """How many of these attributes are not its own or are missing, and are of another type."""
        known = [name for name in given if name in self.attributes]
        missing = [
            name
            for name, (_, required) in self.attributes.items()
            if required and given.get(name) is None
        ]
        wrong = [name for name in known if not _fits(given[name], self.attributes[name][0])]
        return len(given) - len(known) + len(missing), len(wrong)


def operators_library() -> Library:
    """The library of PyTorch's operators.

    Raises FileNotFoundError, or ImportError where it is another library, with what to do.
    """
    build = "cmake --preset operators && cmake --build build/operators -t aten_bridge_operators"
    path = compiled_library(_NAME, "ATEN_BRIDGE_OPERATORS", "plugin/operators", build)
    library = open_library(str(path))
    if library.function("aten_bridge_operator_names") is None:
        raise ImportError(
            f"{path}: expected the library of PyTorch's operators by name, {_NAME}, got another; "
            "correct the variable ATEN_BRIDGE_OPERATORS"
        )
    return library


def _ask(library: Library, question: str, text: str) -> bytes:
    """What a function of the library says of a text; raises ImportError with its error."""
    function = library.function(f"aten_bridge_operator_{question}")
    function.restype = ctypes.c_char_p
    failed = ctypes.c_int(0)
    answer = function(text.encode(), ctypes.byref(failed))
    if failed.value:
        raise ImportError(as_text(answer))
    return answer


def overloads(library: Library, name: str) -> list[Overload]:
    """All overloads of a name without one, such as "aten::max"."""
    return [
        Overload(
            full,
            fault,
            schema,
            depends,
            random,
            None if inputs < 0 else inputs,
            {n: (text, must) for n, text, must in attributes},
        )
        for full, fault, schema, depends, random, inputs, attributes in json.loads(
            _ask(library, "overloads", name)
        )
    ]


def find_overload(library: Library, name: str, given: Mapping[str, Any], words: Words) -> Overload:
    """The overload that is named, or the first that takes these attributes.

    Raises UnknownOperator if there is none. Where none takes the attributes, the one with the
    fewest faults is returned: of their names first, then of their types.
    """
    if not isinstance(name, str) or "::" not in name or "\0" in name or not name.isascii():
        example = 'such as "aten::topk" or "aten::max.dim"'
        close = ""
        if isinstance(name, str) and "::" not in name:
            close = _did_you_mean(f"aten::{name}", names(library))
        raise UnknownOperator(
            f"expected the name of an operator, {example}, got {format_value(name)}{close}"
        )
    base, dot, of_overload = name.partition(".")
    wanted = base if of_overload == "default" else name  # as PyTorch calls the one without a name
    known = overloads(library, base)
    if not known:
        close = _did_you_mean(base, names(library))
        cure = "" if close else "; import the library that registers it"
        raise UnknownOperator(
            f"{name}: expected an operator that is registered with PyTorch, got an unknown "
            f"name{close or cure}"
        )
    if dot:
        known = [o for o in known if o.name == wanted] or _no_overload(name, known)
    callable_ones = [one for one in known if not one.fault]
    if _is_factory(known, callable_ones, given):
        tensors = f", or call {or_list(one.name for one in callable_ones)}" if callable_ones else ""
        like = f"{base}_like"
        if not tensors and any(not one.fault for one in overloads(library, like)):
            tensors = f", or call {like!r}"
        raise UnknownOperator(
            f"{name}: expected an operator from tensors to new tensors, got a factory, which takes "
            f"no tensor; {words.factory}{tensors}"
        )
    if not callable_ones:
        own = [one for one in known if not one.fault.startswith("it writes ")]
        reasons = dict.fromkeys(one.fault for one in own or known)
        raise UnknownOperator(
            f"{name}: expected an operator from tensors to new tensors, got one that is not: "
            + "; ".join(reasons)
        )
    return min(callable_ones, key=lambda one: one.faults(given))  # the first of several


def _is_factory(
    known: Sequence[Overload], callable_ones: Sequence[Overload], given: Mapping[str, Any]
) -> bool:
    """Whether the attributes are those of an overload that takes no tensor."""
    faults = [one.faults(given) for one in known if one.fault == "it takes no tensor"]
    return bool(faults) and all(min(faults) < one.faults(given) for one in callable_ones)


def _did_you_mean(name: str, known: Iterable[str]) -> str:
    """Of operators: with the library's name in it, all of a library would be similar."""
    namespace, _, base = name.partition("::")
    own = {one.partition("::")[2]: one for one in known if one.startswith(f"{namespace}::")}
    close = closest(base, own)
    return f"; did you mean {own[close]!r}?" if close else ""


def _no_overload(name: str, overloads: Sequence[Overload]) -> list[Overload]:
    existing = [one.name for one in overloads]
    raise UnknownOperator(
        f"{name}: expected one of {or_list(existing)}, got an unknown overload"
        + did_you_mean(name, existing)
    )


def names(library: Library) -> list[str]:
    """The names of all operators, without overloads."""
    function = library.function("aten_bridge_operator_names")
    function.restype = ctypes.c_char_p
    return json.loads(function())


# By what an attribute's type is called, up to its comma: the letters of values that fit.
_LETTERS = {
    "a bool": "b",
    "an int": "i",
    "a float": "fi",
    "a number": "bif",
    "a str": "s",
    "the name of a dtype": "s",
    "a list of bools": "B",
    "a list of ints": "Ii",
    "a list of floats": "FI",
    "a list of strs": "S",
}


def _fits(value: Any, type_: str) -> bool:
    """Whether a value may be of that type."""
    encoded = _encoded(value)
    letters = _LETTERS.get(type_.partition(",")[0])
    return encoded is not None and (letters is None or encoded[0] in letters or encoded == "I")


def _float_bits(value: float) -> str:
    return str(struct.unpack("<q", struct.pack("<d", value))[0])


def _encoded(value: Any) -> str | None:
    """A value as operator_text.h has it; None for what no attribute can be."""
    if isinstance(value, bool):
        return f"b{int(value)}"
    if isinstance(value, numbers.Integral):
        return f"i{int(value)}" if -(2**63) <= value < 2**63 else None
    if isinstance(value, numbers.Real):
        number = as_float(value)
        return None if math.isinf(number) and value != number else f"f{_float_bits(number)}"
    if isinstance(value, str):
        return None if "\0" in value or not is_utf8(value) else f"s{value}"
    if type(value).__module__ == "torch" and type(value).__name__ == "dtype":
        return "s" + str(value).removeprefix("torch.").replace("float8_", "float8")
    if not isinstance(value, list | tuple):
        return None
    # No attribute is a list of lists, however deep.
    elements = [None if isinstance(one, list | tuple) else _encoded(one) for one in value]
    if None in elements:
        return None
    letters = {element[0] for element in elements}
    if letters <= {"s"} and elements:
        return "S" + _joined([element[1:] for element in elements])
    if letters <= {"i"}:  # also of none
        return "I" + ",".join(element[1:] for element in elements)
    if letters <= {"b"}:
        return "B" + ",".join(element[1:] for element in elements)
    if letters <= {"i", "f"}:
        return "F" + ",".join(_float_bits(float(element)) for element in value)
    return None


def _joined(parts: Sequence[str]) -> str:
    return "".join(f"{len(part.encode())}:{part}" for part in parts)


class OperatorFunction(Function):
    """An operator, or its gradient, as a kernel."""

    maker = "operator"
    # MindSpore 2.10 has other hooks for one result than for several.
    symbols = ("AtenOperator", "AtenOperators")

    def __init__(
        self,
        library: Library,
        overload: Overload,
        attributes: Mapping[str, Any],
        words: Words,
        task: str = CALL,
    ):
        """Raises TypeError if attributes are not the operator's."""
        self.name = self.full_name = overload.name
        self.path = library.path
        self.overload = overload
        self.words = words
        self.task = task
        self.library = library
        self.description = None
        self._infer = library.function("aten_bridge_operator_infer")
        self._infer.restype = ctypes.c_char_p
        types = {name: text for name, (text, _) in overload.attributes.items()}
        required = {name for name, (_, must) in overload.attributes.items() if must}
        self.description = Description([], [], 1, True, False, "cpu", list(types), types, required)
        if faults := self.attribute_faults(dict(attributes)):
            raise TypeError(
                "\n".join(
                    f"{self.name}: attribute {name!r}: {text}" for name, text in faults.items()
                )
            )
        self.description = Description.read(
            _ask(library, "describe", self.marshal(attributes)), self.name
        )
        self.description = self.description._replace(has_side_effect=overload.is_random)
        self.symbol = self.symbols[self.description.gives_tuple]

    def depends_on_values(self, texts: Sequence[str], shapes: Sequence[Any], text: str) -> bool:
        """Whether the sizes of the results cannot be told from those of these inputs.

        Raises ValueError where it cannot be said, with what is wrong with the inputs.
        """
        try:
            self.infer(texts, shapes, text)
        except DependsOnValues:
            return True
        return False

    @property
    def has_gradient(self) -> bool:
        """Whether PyTorch's autograd is asked for one."""
        return self.task.partition("/")[0].isdecimal()

    def gradient(self, inputs: int, attributes: Mapping[str, Any]) -> OperatorFunction | None:
        """The gradient of a call with so many inputs; None where there is none."""
        if not self.has_gradient:
            return None
        order, _, told = self.task.partition("/")
        return self.for_task(f"{int(order) + 1}/{told or inputs}", attributes)

    def for_task(self, task: str, attributes: Mapping[str, Any]) -> OperatorFunction:
        """The same operator's kernel for another task."""
        return OperatorFunction(self.library, self.overload, attributes, self.words, task)

    def counted_gradient(self) -> str:
        """What is wrong with differentiating one that was told the largest results."""
        return (
            f"{self.name}: expected an operator whose results are as large as their values say "
            "where a network is differentiated, got one that was told the largest; "
            + self.words.counted_gradient
        )

    def infer(
        self, texts: Sequence[str], shapes: Sequence[Sequence[int] | None], marshalled: str
    ) -> list[tuple[str, list[int]]]:
        """As that of Function; raises DependsOnValues where nobody can know."""
        try:
            return super().infer(texts, shapes, marshalled)
        except ValueError as error:
            text = str(error)
        if text.endswith(_DEPENDS_ON_VALUES):
            raise DependsOnValues(f"{text}; {self.words.depends_on_values}")
        raise ValueError(
            f"{text}, or give {self.words.results}" if text.endswith(_IMPORT_PYTORCH) else text
        )

    def marshal(self, attributes: Mapping[str, Any]) -> str:
        parts = [self.name, self.task]
        for name, value in attributes.items():
            if value is not None:
                parts += [name, _encoded(value)]
        return _joined(parts)

    def _type_faults(self, attributes: dict[str, Any]) -> dict[str, str]:
        faults = {}
        for name, value in attributes.items():
            if value is not None and _encoded(value) is None:
                expected = self.description.attribute_types[name]
                faults[name] = f"expected {expected}, got {format_value(value)}"
        known = {name: value for name, value in attributes.items() if name not in faults}
        missing = self.description.required - {n for n, v in known.items() if v is not None}
        return faults if missing else super()._type_faults(known) | faults

    def parameter_kinds(self, count: int) -> list[str] | None:
        return super().parameter_kinds(count)[:count]

    def count_fault(self, count: int) -> str:
        kinds = self.description.inputs
        if count < len(kinds) and set(kinds[count:]) == {"tensor or None"}:
            return ""  # the last may be left out
        fault = super().count_fault(count)
        if fault and self.task == CALL:
            others = [
                one.name
                for one in overloads(self.library, self.name.partition(".")[0])
                if one.inputs == count and not one.fault
            ]
            fault += f"; {or_list(others)} takes {count}" if len(others) == 1 else ""
            fault += f"; {or_list(others)} take {count}" if len(others) > 1 else ""
        return fault

    def _call_infer(self, inputs: Any, count: int, marshalled: str) -> tuple[bool, str]:
        failed = ctypes.c_int(0)
        text = self._infer(marshalled.encode(), inputs, count, ctypes.byref(failed))
        return bool(failed.value), as_text(text)

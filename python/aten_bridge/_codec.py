"""Attributes as values of a few types, and how these are written for a library."""

from __future__ import annotations

import ctypes
import enum
import math
import numbers
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from aten_bridge._text import as_float, format_value, is_utf8
from aten_bridge.faults import Fault

# ATEN_BRIDGE_DTYPES of core/dtypes.h, in that order.
_DTYPES = (
    *("bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"),
    *("float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
    *("float8e4m3fn", "float8e5m2"),
)


def dtypes_of(framework: Any) -> dict[str, Any]:
    """A framework's dtypes, by the bridge's names and in the order of their numbers."""
    others = {"bool": "bool_"}
    names = {name: others.get(name, name.replace("float8", "float8_")) for name in _DTYPES}
    return {name: getattr(framework, own) for name, own in names.items()}


class Bools(list):
    """Bools as ints."""

    def given(self) -> list[bool]:
        return [bool(one) for one in self]

    def __repr__(self) -> str:
        return repr(self.given())


class Strings(str):
    """Strings as one, each with its length in bytes before it: "2:ab0:"."""

    def __new__(cls, strings: Sequence[str]) -> Strings:
        made = super().__new__(cls, "".join(f"{len(s.encode())}:{s}" for s in strings))
        made._given = list(strings)
        return made

    def given(self) -> list[str]:
        return self._given

    def __repr__(self) -> str:
        return repr(self._given)

    def __reduce__(self) -> Any:  # else a copy would be made of its characters
        return Strings, (self._given,)


class AttributeType(enum.IntEnum):
    """AttributeType of attributes.h."""

    BOOL = 0
    INT = 1
    FLOAT = 2
    STRING = 3
    INTS = 4
    FLOATS = 5
    INT_LISTS = 6
    FLOAT_LISTS = 7
    BOOLS = 8
    STRINGS = 9
    # For parameters alone: a value is a bool, an int or a float, and the name of a dtype.
    NUMBER = 10
    DTYPE = 11


# No host of the bridge's carries these as such, but as ints and as one str; errors call them so.
_CARRIED_OTHERWISE = {
    AttributeType.BOOLS: "a list of bools",
    AttributeType.STRINGS: "a list of strs",
}
# In operator_text.h, which has no lists of lists.
_LETTERS = {
    AttributeType.BOOL: "b",
    AttributeType.INT: "i",
    AttributeType.FLOAT: "f",
    AttributeType.STRING: "s",
    AttributeType.INTS: "I",
    AttributeType.FLOATS: "F",
    AttributeType.BOOLS: "B",
    AttributeType.STRINGS: "S",
}
_FLOATS = (AttributeType.FLOAT, AttributeType.FLOATS, AttributeType.FLOAT_LISTS)
LISTS_OF_LISTS = (AttributeType.INT_LISTS, AttributeType.FLOAT_LISTS)


def is_float(type_: AttributeType) -> bool:
    return type_ in _FLOATS


def attribute_type(value: Any, expected: AttributeType | None = None) -> AttributeType:
    """The type of a bool, int, float, str or list; of an empty list the one the kernel expects."""
    if isinstance(value, Bools | Strings):
        return AttributeType.BOOLS if isinstance(value, Bools) else AttributeType.STRINGS
    if isinstance(value, list):
        is_nested = isinstance(value[0], list) if value else expected in LISTS_OF_LISTS
        flat = [one for row in value for one in row] if is_nested else value
        of_floats = isinstance(flat[0], float) if flat else expected in _FLOATS
        if is_nested:
            return AttributeType.FLOAT_LISTS if of_floats else AttributeType.INT_LISTS
        return AttributeType.FLOATS if of_floats else AttributeType.INTS
    kinds = (bool, int, float, str)
    return AttributeType(next(i for i, kind in enumerate(kinds) if isinstance(value, kind)))


# ===--- for a kernel: structures ---===


class _Attribute(ctypes.Structure):
    """PythonAttribute of hosts/introspection/introspection.h."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("type", ctypes.c_int),
        ("size", ctypes.c_int64),
        ("data", ctypes.c_void_p),
    )


class Marshalled:
    """Attributes as an array of PythonAttribute, with all that it points to."""

    def __init__(self, attributes: Mapping[str, Any], types: Mapping[str, AttributeType]):
        """`types` are those of the kernel's description; attributes that are None are left out."""
        attributes = {name: value for name, value in attributes.items() if value is not None}
        self._kept: list[Any] = []
        self.count = len(attributes)
        self.array = (_Attribute * self.count)(
            *(
                self._attribute(name, value, attribute_type(value, types.get(name)))
                for name, value in attributes.items()
            )
        )

    def _attribute(self, name: str, value: Any, type_: AttributeType) -> _Attribute:
        if type_ is AttributeType.STRING:
            encoded = value.encode()
            size, data = len(encoded), ctypes.create_string_buffer(encoded)
        else:
            element: Any = ctypes.c_double if is_float(type_) else ctypes.c_int64
            values = value if isinstance(value, list) else [value]
            if type_ in LISTS_OF_LISTS or type_ is AttributeType.STRINGS:
                of_rows = AttributeType.FLOATS if is_float(type_) else AttributeType.INTS
                is_text = type_ is AttributeType.STRINGS
                row_type = AttributeType.STRING if is_text else of_rows
                rows = value.given() if is_text else value
                element, values = _Attribute, [self._attribute("", row, row_type) for row in rows]
            size, data = len(values), (element * len(values))(*values)
        self._kept.append(data)
        return _Attribute(name.encode(), type_, size, ctypes.addressof(data))


# ===--- for an operator by name: a text ---===


def operator_text(value: Any) -> str | None:
    """A value as operator_text.h has it; None for what no attribute can be."""
    value = operator_value(value)
    if value is None:
        return None
    type_ = attribute_type(value)
    if isinstance(value, str):
        return _LETTERS[type_] + str.__str__(value)
    values = value if isinstance(value, list) else [value]
    return _LETTERS[type_] + ",".join(
        _float_bits(one) if is_float(type_) else str(int(one)) for one in values
    )


def _float_bits(value: float) -> str:
    return str(struct.unpack("<q", struct.pack("<d", value))[0])


def operator_value(value: Any) -> Any:
    """The value as a bool, int, float, str or list of one of these; None for any other."""
    if isinstance(value, bool):
        return value
    if isinstance(value, numbers.Integral):
        return int(value) if -(2**63) <= value < 2**63 else None
    if isinstance(value, numbers.Real):
        number = as_float(value)
        return None if math.isinf(number) and value != number else number
    if isinstance(value, str):
        return None if "\0" in value or not is_utf8(value) else str.__str__(value)
    if type(value).__module__ == "torch" and type(value).__name__ == "dtype":
        return str(value).removeprefix("torch.").replace("float8_", "float8")
    if not isinstance(value, list | tuple):
        return None
    # No attribute is a list of lists, however deep.
    elements = [None if isinstance(one, list | tuple) else operator_value(one) for one in value]
    kinds = {type(element) for element in elements}
    if kinds == {str}:
        return Strings(elements)
    if kinds == {bool}:
        return Bools(map(int, elements))
    if kinds == {int, float}:
        return [float(element) for element in elements]
    return elements if kinds <= {int} or kinds == {float} else None


# ===--- what a host carries ---===


class AttributeConversionError(Exception):
    """A value that a host does not carry to a kernel."""

    def __init__(self, expected: str, got: str, hint: str = ""):
        self.fault = Fault(expected, got, hint)
        super().__init__(self.fault.text)


class AttributeConverter(NamedTuple):
    """What a host carries."""

    plain: Callable[[Any], Any]  # the plain Python value, where there is one, of others
    as_float: Callable[[Any], float]  # a real number as it is carried

    def number(self, value: Any) -> int | float | None:
        """An int or float as it is carried, None for other things than numbers."""
        value = self.plain(value)
        if isinstance(value, bool) or not isinstance(value, numbers.Real):
            return None
        if not isinstance(value, numbers.Integral):
            return self.as_float(value)
        if not -(2**63) <= value < 2**63:
            raise AttributeConversionError("an int from -2^63 to 2^63 - 1", format_value(value))
        return int(value)

    def carried(self, value: Any, expected: AttributeType | None) -> Any:
        """The value as it is carried to a kernel: bool, int, float, str or list."""
        value = value.given() if isinstance(value, Bools | Strings) else value
        plain = self.plain(value)
        if isinstance(plain, list | tuple) and expected in _CARRIED_OTHERWISE:
            elements, is_bools = [self.plain(one) for one in plain], expected == AttributeType.BOOLS
            if not all(isinstance(one, bool if is_bools else str) for one in elements):
                raise AttributeConversionError(_CARRIED_OTHERWISE[expected], format_value(value))
            return Bools(map(int, elements)) if is_bools else Strings(_utf8(elements))
        if isinstance(plain, bool):
            return plain
        if isinstance(plain, str):
            return _utf8([plain])[0]
        if isinstance(plain, list | tuple):
            return self._list(plain, value)
        number = self.number(plain)
        if number is None:
            raise AttributeConversionError(
                "a bool, an int, a float, a str, a dtype, or a list of ints or floats or of lists "
                "of these",
                f"{format_value(value)} of type {type(value).__name__}",
            )
        return number

    def _list(self, values: Sequence[Any], given: Any) -> list[Any]:
        """A list of ints, of floats, or of such lists, all of one kind."""
        result: list[Any] = []
        for value in values:
            value = self.plain(value)
            if isinstance(value, list | tuple) and not any(
                isinstance(v, list | tuple) for v in value
            ):
                result.append(self._list(value, given))
            else:
                result.append(self.number(value))
        flat = [
            number for value in result for number in (value if isinstance(value, list) else [value])
        ]
        kinds = {type(number) for number in flat}
        if kinds == {int, float}:
            raise AttributeConversionError(
                "ints or floats", f"both in {format_value(given)}", "write 1.0 for 1"
            )
        if type(None) in kinds or len({isinstance(value, list) for value in result}) > 1:
            raise AttributeConversionError(
                "a list of ints, of floats, or of lists of these", format_value(given)
            )
        return result


def _utf8(texts: Iterable[str]) -> list[str]:
    """Strs of that very type."""
    for text in texts:
        if not is_utf8(text):
            raise AttributeConversionError("a str in UTF-8", format_value(text))
    return [str.__str__(text) for text in texts]

"""Attributes as hosts carry them to a kernel, and what is wrong with those they cannot carry."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from aten_bridge._function import Function
from aten_bridge._marshal import BOOLS, STRINGS, Bools, Strings
from aten_bridge._text import format_value, is_utf8


class AttributeConversionError(Exception):
    """A value that a host does not carry to a kernel; the text is what was expected and got."""


class AttributeConverter(NamedTuple):
    """What a host carries."""

    plain: Callable[[Any], Any]  # the plain Python value, where there is one, of others
    number: Callable[[Any], int | float | None]  # as it is carried; None for other things

    def carried(self, value: Any, expected: str) -> Any:
        """The value as it is carried to a kernel: bool, int, float, str or list."""
        value = value.given() if isinstance(value, Bools | Strings) else value
        plain = self.plain(value)
        if isinstance(plain, list | tuple):
            elements = [self.plain(one) for one in plain]
            if expected == BOOLS and all(isinstance(one, bool) for one in elements):
                return Bools(int(one) for one in elements)
            if expected == STRINGS and all(isinstance(one, str) for one in elements):
                return Strings([_utf8(one) for one in elements])
            if expected in (BOOLS, STRINGS):
                raise AttributeConversionError(f"expected {expected}, got {format_value(value)}")
        if isinstance(plain, bool):
            return plain
        if isinstance(plain, str):
            return _utf8(plain)
        if isinstance(plain, list | tuple):
            return self._list(plain, value)
        number = self.number(plain)
        if number is None:
            raise AttributeConversionError(
                "expected a bool, an int, a float, a str, a dtype, or a list of ints or floats or "
                f"of lists of these, got {format_value(value)} of type {type(value).__name__}"
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
                f"expected ints or floats, got both in {format_value(given)}; write 1.0 for 1"
            )
        if type(None) in kinds or len({isinstance(value, list) for value in result}) > 1:
            raise AttributeConversionError(
                "expected a list of ints, of floats, or of lists of these, got "
                + format_value(given)
            )
        return result


def check_int(value: Any) -> int:
    """An int that a kernel can have."""
    if not -(2**63) <= value < 2**63:
        raise AttributeConversionError(
            f"expected an int from -2^63 to 2^63 - 1, got {format_value(value)}"
        )
    return int(value)


def _utf8(text: str) -> str:
    """A str of that very type."""
    if not is_utf8(text):
        raise AttributeConversionError(f"expected a str in UTF-8, got {format_value(text)}")
    return str.__str__(text)


def attributes_text(function: Function, faults: dict[str, str]) -> str:
    return "\n".join(
        f"{function.name}: attribute {name!r}: {fault}" for name, fault in faults.items()
    )


def check_names(function: Function, name_fault: Callable[[str, str], str]) -> None:
    """Raises ValueError if an attribute of the kernel has a name that it cannot have.

    `name_fault` says what is wrong with a name, and what to do; "" if it can be used.
    """
    names = [] if function.description is None else function.description.attribute_names
    faults = {}
    for name in names:
        if fault := name_fault(name, "rename it in the kernel's export"):
            faults[name] = fault
        elif names.count(name) > 1:
            faults[name] = (
                "expected one attribute of this name, got several; rename them in the kernel's "
                "export"
            )
    if faults:
        raise ValueError(attributes_text(function, faults))


def check_attributes(
    function: Function,
    given: dict[str, Any],
    carrier: AttributeConverter,
    name_fault: Callable[[str, str], str],
) -> dict[str, Any]:
    """The attributes as the host carries them. Raises TypeError with all that is wrong."""
    types = {} if function.description is None else function.description.attribute_types
    carried = {}
    faults = {}
    for name, value in given.items():
        if function.description is not None and name not in types:
            carried[name] = None  # whatever its value: the name is wrong
            continue
        # Of a kernel that describes itself, check_names has looked at them.
        fault = "" if function.description else name_fault(name, "rename it")
        try:
            carried[name] = None if value is None else carrier.carried(value, types.get(name, ""))
        except AttributeConversionError as error:
            fault = fault or str(error)
        if fault:
            faults[name] = fault
    faults = function.attribute_faults(carried | dict.fromkeys(faults)) | faults
    if faults:
        raise TypeError(attributes_text(function, faults))
    return {name: value for name, value in carried.items() if value is not None}

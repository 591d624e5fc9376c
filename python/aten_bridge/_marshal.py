"""Inputs and attributes as the structures that a library takes."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any


class Input(ctypes.Structure):
    """PythonInput of hosts/introspection/introspection.h."""

    _fields_ = (
        ("text", ctypes.c_char_p),
        ("ndim", ctypes.c_int),
        ("sizes", ctypes.POINTER(ctypes.c_int64)),
    )


class _Attribute(ctypes.Structure):
    """PythonAttribute of hosts/introspection/introspection.h."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("type", ctypes.c_int),
        ("size", ctypes.c_int64),
        ("data", ctypes.c_void_p),
    )


# AttributeType of attributes.h.
_BOOL, _INT, _FLOAT, _STRING, _INTS, _FLOATS, _INT_LISTS, _FLOAT_LISTS, _BOOLS, _STRINGS = range(10)

# What a kernel calls lists that no host of the bridge's carries as such: as ints, and as one str.
BOOLS, STRINGS = "a list of bools", "a list of strs"


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

    def __deepcopy__(self, memo: Any) -> Strings:
        return self


class Marshalled:
    """Attributes as an array of PythonAttribute, with all that it points to."""

    def __init__(self, attributes: dict[str, Any], types: dict[str, str]):
        """`types` are those of the kernel's description; attributes that are None are left out."""
        attributes = {name: value for name, value in attributes.items() if value is not None}
        self._kept: list[Any] = []
        self.count = len(attributes)
        self.array = (_Attribute * self.count)(
            *(
                self._attribute(name, value, types.get(name, ""))
                for name, value in attributes.items()
            )
        )

    def _attribute(self, name: str, value: Any, expected: str) -> _Attribute:
        size = 1
        if isinstance(value, Bools):
            size = len(value)
            kind, data = _BOOLS, (ctypes.c_int64 * size)(*value)
        elif isinstance(value, Strings):
            texts = [self._attribute("", text, "") for text in value.given()]
            size = len(texts)
            kind, data = _STRINGS, (_Attribute * size)(*texts)
        elif isinstance(value, bool):
            kind, data = _BOOL, (ctypes.c_int64 * 1)(value)
        elif isinstance(value, int):
            kind, data = _INT, (ctypes.c_int64 * 1)(value)
        elif isinstance(value, float):
            kind, data = _FLOAT, (ctypes.c_double * 1)(value)
        elif isinstance(value, str):
            encoded = value.encode()
            kind, data, size = _STRING, ctypes.create_string_buffer(encoded), len(encoded)
        else:
            size = len(value)
            # An empty list is a list of whatever the kernel expects.
            flat = [v for list_ in value for v in list_] if self._is_nested(value) else value
            of_floats = isinstance(flat[0], float) if flat else "of floats" in expected
            nested = self._is_nested(value) if value else "of lists" in expected
            if nested:
                kind = _FLOAT_LISTS if of_floats else _INT_LISTS
                element = "floats" if of_floats else "ints"
                data = (_Attribute * size)(*(self._attribute("", v, element) for v in value))
            else:
                kind = _FLOATS if of_floats else _INTS
                data = ((ctypes.c_double if of_floats else ctypes.c_int64) * size)(*value)
        self._kept.append(data)
        return _Attribute(name.encode(), kind, size, ctypes.addressof(data))

    @staticmethod
    def _is_nested(value: list[Any]) -> bool:
        return bool(value) and isinstance(value[0], list)

"""Attributes as MindSpore carries them to a kernel, and what is wrong with those it cannot."""

from __future__ import annotations

import ctypes
import math
import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np

from aten_bridge._function import BOOLS, STRINGS, Bools, Function, Strings
from aten_bridge._library import is_utf8, shown
from aten_bridge.mindspore._dtypes import NAMES


class Uncarriable(Exception):
    """A value that MindSpore does not carry to a kernel; the text is what was expected and got."""


def plain_value(value: Any) -> Any:
    """The plain Python value, where there is one, of NumPy's and MindSpore's."""
    # MindSpore has no getter for an np.int32, and carries np.bool_ and np.float64 as Python's.
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic)):
        return np.dtype(value).name
    try:
        return NAMES.get(value, value)
    except TypeError:  # not hashable
        return value


def carried_number(value: Any) -> int | float | None:
    """An int or float as MindSpore carries it, None for other things than numbers."""
    value = plain_value(value)
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return None
    if isinstance(value, numbers.Integral):
        if not -(2**63) <= value < 2**63:
            raise Uncarriable(f"expected an int from -2^63 to 2^63 - 1, got {shown(value)}")
        return int(value)
    try:
        number = float(value)
    except OverflowError:  # of a fraction
        number = math.inf
    single = ctypes.c_float(number).value
    # The number may be infinite, or zero, where the value is not.
    if (math.isinf(single) and value != single) or (single == 0 and value != 0):
        raise Uncarriable(
            "expected a float that a float32 can hold, as which MindSpore carries it, got "
            + shown(value)
        )
    return number


def _utf8(text: str) -> str:
    """A str of that very type."""
    if not is_utf8(text):
        raise Uncarriable(f"expected a str in UTF-8, got {shown(text)}")
    return str.__str__(text)


def _list(values: Sequence[Any], given: Any) -> list[Any]:
    """A list of ints, of floats, or of such lists, all of one kind."""
    result: list[Any] = []
    for value in values:
        value = plain_value(value)
        if isinstance(value, list | tuple) and not any(isinstance(v, list | tuple) for v in value):
            result.append(_list(value, given))
        else:
            result.append(carried_number(value))
    flat = [
        number for value in result for number in (value if isinstance(value, list) else [value])
    ]
    kinds = {type(number) for number in flat}
    if kinds == {int, float}:
        raise Uncarriable(f"expected ints or floats, got both in {shown(given)}; write 1.0 for 1")
    if type(None) in kinds or len({isinstance(value, list) for value in result}) > 1:
        raise Uncarriable(
            f"expected a list of ints, of floats, or of lists of these, got {shown(given)}"
        )
    return result


def _carried(value: Any, expected: str) -> Any:
    """The value as MindSpore carries it to a kernel: bool, int, float, str or list."""
    value = value.given() if isinstance(value, Bools | Strings) else value
    plain = plain_value(value)
    if isinstance(plain, list | tuple):
        elements = [plain_value(one) for one in plain]
        if expected == BOOLS and all(isinstance(one, bool) for one in elements):
            return Bools(int(one) for one in elements)
        if expected == STRINGS and all(isinstance(one, str) for one in elements):
            return Strings([_utf8(one) for one in elements])
        if expected in (BOOLS, STRINGS):
            raise Uncarriable(f"expected {expected}, got {shown(value)}")
    if isinstance(plain, bool):
        return plain
    if isinstance(plain, str):
        return _utf8(plain)
    if isinstance(plain, list | tuple):
        return _list(plain, value)
    number = carried_number(plain)
    if number is None:
        raise Uncarriable(
            "expected a bool, an int, a float, a str, a dtype, or a list of ints or floats or of "
            f"lists of these, got {shown(value)} of type {type(value).__name__}"
        )
    return number


def _attributes_text(function: Function, faults: dict[str, str]) -> str:
    return "\n".join(
        f"{function.name}: attribute {name!r}: {fault}" for name, fault in faults.items()
    )


# Names that an attribute cannot have in an operator of MindSpore's (2.10): ops.Custom sets them.
_CUSTOMS = {
    *("attr_names", "autodiff", "cpp_infer_shape", "cpp_infer_type", "func_name", "func_type"),
    *("imply_path", "input_names", "multi_output", "output_names", "pure_input_names"),
    *("reg_op_name", "uniq_name"),
}
_TAKEN = _CUSTOMS | {
    # MindSpore writes or reads them where a graph, or a vmap, is compiled.
    *("batch_rank", "dyn_input_sizes", "input_is_dynamic_shape", "output_is_dynamic_shape"),
    *("data_format", "primitive_target"),  # the first becomes "format", the second is checked
    # Parameters of `kernel`.
    *("grad", "out_shape", "out_dtype"),
}


def _name_fault(name: str, taken: set[str], cure: str) -> str:
    """What is wrong with the name of an attribute; "" if it can be used."""
    if name in taken or name.startswith("aten_bridge_"):
        return (
            "expected a name of the kernel's own, got one that MindSpore or kernel() uses itself; "
            + cure
        )
    return "" if is_utf8(name) else "expected a name in UTF-8; rename it"


def check_names(function: Function) -> None:
    """Raises ValueError if an attribute of the kernel has a name that it cannot have."""
    names = [] if function.description is None else function.description.attribute_names
    faults = {}
    for name in names:
        if fault := _name_fault(name, _TAKEN, "rename it in the kernel's export"):
            faults[name] = fault
        elif names.count(name) > 1:
            faults[name] = (
                "expected one attribute of this name, got several; rename them in the kernel's "
                "export"
            )
    if faults:
        raise ValueError(_attributes_text(function, faults))


def check_name(function: Function, name: Any) -> None:
    """Raises TypeError unless an operator can be given an attribute of this name, whose ever."""
    if not isinstance(name, str):
        raise TypeError(
            f"{function.name}: expected the name of an attribute as a str, got {shown(name)}"
        )
    if fault := _name_fault(name, _CUSTOMS, "leave it as it is"):
        raise TypeError(_attributes_text(function, {name: fault}))


def check_attributes(function: Function, given: dict[str, Any]) -> dict[str, Any]:
    """The attributes as MindSpore carries them. Raises TypeError with all that is wrong."""
    types = {} if function.description is None else function.description.attribute_types
    carried = {}
    faults = {}
    for name, value in given.items():
        # Of a kernel that describes itself, check_names has looked at them.
        fault = "" if function.description else _name_fault(name, _TAKEN, "rename it")
        try:
            carried[name] = None if value is None else _carried(value, types.get(name, ""))
        except Uncarriable as uncarriable:
            fault = fault or str(uncarriable)
        if fault:
            faults[name] = fault
    faults = function.attribute_faults(carried | dict.fromkeys(faults)) | faults
    if faults:
        raise TypeError(_attributes_text(function, faults))
    return {name: value for name, value in carried.items() if value is not None}

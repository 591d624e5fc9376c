"""Attributes as MindSpore carries them to a kernel, and what is wrong with those it cannot."""

from __future__ import annotations

import ctypes
import math
import numbers
from typing import Any

import numpy as np

from aten_bridge import _attributes
from aten_bridge._attributes import (
    AttributeConversionError,
    AttributeConverter,
    attributes_text,
    check_int,
)
from aten_bridge._function import Function
from aten_bridge._text import as_float, format_value, is_utf8
from aten_bridge.mindspore._dtypes import NAMES


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
        return check_int(value)
    number = as_float(value)
    single = ctypes.c_float(number).value
    # The number may be infinite, or zero, where the value is not.
    if (math.isinf(single) and value != single) or (single == 0 and value != 0):
        raise AttributeConversionError(
            "expected a float that a float32 can hold, as which MindSpore carries it, got "
            + format_value(value)
        )
    return number


_CONVERTER = AttributeConverter(plain_value, carried_number)


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
    *("grad", "has_side_effect", "out_shape", "out_dtype"),
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
    _attributes.check_names(function, _own_name_fault)


def _own_name_fault(name: str, cure: str) -> str:
    return _name_fault(name, _TAKEN, cure)


def check_name(function: Function, name: Any) -> None:
    """Raises TypeError unless an operator can be given an attribute of this name, whose ever."""
    if not isinstance(name, str):
        raise TypeError(
            f"{function.name}: expected the name of an attribute as a str, got {format_value(name)}"
        )
    if fault := _name_fault(name, _CUSTOMS, "leave it as it is"):
        raise TypeError(attributes_text(function, {name: fault}))


def check_attributes(function: Function, given: dict[str, Any]) -> dict[str, Any]:
    """The attributes as MindSpore carries them. Raises TypeError with all that is wrong."""
    return _attributes.check_attributes(function, given, _CONVERTER, _own_name_fault)

"""Attributes as XLA carries them to a kernel."""

from __future__ import annotations

import numbers
from typing import Any

import jax.numpy as jnp
import numpy as np

from aten_bridge import _attributes
from aten_bridge._attributes import AttributeConverter, check_int
from aten_bridge._function import Function
from aten_bridge._marshal import Bools
from aten_bridge._text import as_float, is_utf8
from aten_bridge.jax._dtypes import NAMES

# For the library: NONE and ROWS are kNoneAttribute and kRowsPrefix of hosts/jax/attributes.h, EXACT
# is kExactAttribute of hosts/introspection/answers.h.
NONE = "aten_bridge_none"
ROWS = "aten_bridge_rows_"
EXACT = "aten_bridge_exact"


def plain_value(value: Any) -> Any:
    """The plain Python value, where there is one, of NumPy's and JAX's."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic)):
        try:
            dtype = np.dtype(value)
        except TypeError:  # of a type without values, such as np.generic
            return value
        return NAMES.get(dtype, dtype.name)
    # What jax.numpy.float32 is: no type, but an object that has a dtype and makes arrays of it.
    if type(value) is type(jnp.float32):
        return NAMES.get(value.dtype, value.dtype.name)
    return value


def _number(value: Any) -> int | float | None:
    value = plain_value(value)
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return None
    if isinstance(value, numbers.Integral):
        return check_int(value)
    return as_float(value)


_CONVERTER = AttributeConverter(plain_value, _number)
# Parameters of `kernel`.
_TAKEN = ("grad", "has_side_effect", "input_output_aliases", "out", "vmap_method")


def _name_fault(name: str, cure: str) -> str:
    """What is wrong with the name of an attribute; "" if it can be used."""
    if name in _TAKEN or name.startswith("aten_bridge_"):
        return f"expected a name of the kernel's own, got one that kernel() uses itself; {cure}"
    return "" if is_utf8(name) else "expected a name in UTF-8; rename it"


def check_attributes(function: Function, given: dict[str, Any]) -> dict[str, Any]:
    """The attributes as plain values. Raises TypeError or ValueError with all that is wrong."""
    _attributes.check_names(function, _name_fault)
    return _attributes.check_attributes(function, given, _CONVERTER, _name_fault)


def for_xla(attributes: dict[str, Any], types: dict[str, str]) -> dict[str, Any]:
    """The attributes as `jax.ffi.ffi_call` takes them; `types` are those of the description."""
    carried: dict[str, Any] = {}
    for name, value in attributes.items():
        expected = types.get(name, "")
        if isinstance(value, Bools):
            # XLA of jaxlib 0.10 carries no array of bools.
            carried[name] = np.array(value, np.int64)
        elif isinstance(value, list):
            is_nested = isinstance(value[0], list) if value else "of lists" in expected
            flat = [one for row in value for one in row] if is_nested else value
            # An empty list is a list of whatever the kernel expects.
            of_floats = isinstance(flat[0], float) if flat else "of floats" in expected
            carried[name] = np.array(flat, np.float64 if of_floats else np.int64)
            if is_nested:
                carried[ROWS + name] = np.array([len(row) for row in value], np.int64)
        elif isinstance(value, bool):
            carried[name] = np.bool_(value)
        elif isinstance(value, int):
            carried[name] = np.int64(value)
        elif isinstance(value, float):
            carried[name] = np.float64(value)
        else:
            carried[name] = str.__str__(value)
    return carried

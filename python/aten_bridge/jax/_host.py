"""What XLA is for kernels: what it carries to them, and where they are found."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from aten_bridge._codec import (
    LISTS_OF_LISTS,
    AttributeConverter,
    AttributeType,
    attribute_type,
    dtypes_of,
    is_float,
)
from aten_bridge._function import Function, Host, open_kernel
from aten_bridge._introspection import Attribute
from aten_bridge._library import open_newest, parse_target
from aten_bridge._text import as_float

# By the bridge's names, and these.
DTYPES = {name: jnp.dtype(dtype) for name, dtype in dtypes_of(jnp).items()}
NAMES = {dtype: name for name, dtype in DTYPES.items()}

# For the library: kNoneAttribute and kRowsPrefix of hosts/jax/attributes.h.
NONE = "aten_bridge_none"
_ROWS = "aten_bridge_rows_"


def plain_value(value: Any) -> Any:
    """The plain Python value, where there is one, of NumPy's and JAX's."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic)):
        try:
            dtype = np.dtype(value)
        except TypeError:  # a type without values, such as np.generic
            return value
        return NAMES.get(dtype, dtype.name)
    # What jax.numpy.float32 is: no type, but an object that has a dtype and makes arrays of it.
    if type(value) is type(jnp.float32):
        return NAMES.get(value.dtype, value.dtype.name)
    return value


# Parameters of `kernel`.
_TAKEN = ("grad", "has_side_effect", "input_output_aliases", "out", "vmap_method")


def open_function(path_and_name: str | Path) -> Function:
    """A kernel of the library that lies there now, as `kernel` names it."""
    path, name = parse_target(path_and_name)
    return open_kernel(open_newest(path), name)


HOST = Host(
    converter=AttributeConverter(plain_value, as_float),
    taken_names=_TAKEN,
    taken_by="kernel()",
    open_function=open_function,
    is_exact=True,
    takes_gradient=lambda grad: False,
    gradients="the name of a gradient kernel or a tuple of such names",
    results="out",
    operands="the arguments of the call with the kernel",
    at_once="call it outside of jax.jit, jax.vmap and jax.checkpoint",
    largest="out, the largest that its results can be",
    padded_gradient="leave that out, outside of jax.jit",
    factory="make its result with jax.numpy or jax.random",
)


def for_xla(attributes: dict[str, Any], known: Mapping[str, Attribute]) -> dict[str, Any]:
    """The attributes as `jax.ffi.ffi_call` takes them; `known` are those of the description."""
    carried: dict[str, Any] = {}
    for name, value in attributes.items():
        type_ = attribute_type(value, known[name].type if name in known else None)
        if isinstance(value, str):
            carried[name] = str.__str__(value)
            continue
        if type_ in LISTS_OF_LISTS:
            carried[_ROWS + name] = np.array([len(row) for row in value], np.int64)
            value = [one for row in value for one in row]
        # XLA of jaxlib 0.10 carries no array of bools.
        dtype = np.bool_ if type_ is AttributeType.BOOL else np.int64
        carried[name] = np.array(value, np.float64 if is_float(type_) else dtype)[()]
    return carried

"""The bridge's dtypes and JAX's."""

from __future__ import annotations

import jax.numpy as jnp

# The bridge's names of dtypes.
DTYPES = {
    name: jnp.dtype(dtype)
    for name, dtype in {
        "bool": jnp.bool_,
        "uint8": jnp.uint8,
        "int8": jnp.int8,
        "uint16": jnp.uint16,
        "int16": jnp.int16,
        "uint32": jnp.uint32,
        "int32": jnp.int32,
        "uint64": jnp.uint64,
        "int64": jnp.int64,
        "float16": jnp.float16,
        "bfloat16": jnp.bfloat16,
        "float32": jnp.float32,
        "float64": jnp.float64,
        "complex64": jnp.complex64,
        "complex128": jnp.complex128,
        "float8e4m3fn": jnp.float8_e4m3fn,
        "float8e5m2": jnp.float8_e5m2,
    }.items()
}
NAMES = {dtype: name for name, dtype in DTYPES.items()}

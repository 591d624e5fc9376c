"""Under a mesh with explicit axes: arrays whose types say how they are spread over devices.

XLA knows nothing of what a kernel does with its inputs: it gathers them on each device, and the
result of `jax.ffi.ffi_call` is of a type that is whole on each (0.6 to 0.12).
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import jax
from jax.sharding import NamedSharding, PartitionSpec

from aten_bridge._text import cut

# JAX 0.6 differentiates through types of another mesh, and checks none: results are whole there.
_HAS_RESHARD = hasattr(jax.sharding, "reshard")

Shardings = dict[tuple[int, ...], NamedSharding]  # by shape


def _sharding_of(array: Any) -> NamedSharding | None:
    """How the type of an array says that it is spread; None: it is whole on each device."""
    if not isinstance(array, jax.Array) or not _HAS_RESHARD:  # a number
        return None
    sharding = jax.typeof(array).sharding
    spec = sharding.spec
    is_spread = any(spec) or getattr(spec, "unreduced", None) or getattr(spec, "reduced", None)
    return sharding if is_spread else None


def gather(name: str, arrays: Sequence[Any]) -> tuple[tuple[Any, ...], Shardings]:
    """The arrays, whole on each device, and how those that were not were spread.

    A warning points at the caller's caller. Cotangents of such an array are spread as it was: JAX
    differentiates `reshard` that way.
    """
    shardings = [*map(_sharding_of, arrays)]
    if not any(shardings):
        return tuple(arrays), {}
    of_shapes: Shardings = {}
    for array, sharding in zip(arrays, shardings, strict=True):
        if sharding is not None:
            of_shapes.setdefault(array.shape, sharding)
    types = [str(jax.typeof(a)) for a, s in zip(arrays, shardings, strict=True) if s is not None]
    warnings.warn(
        f"{name}: expected arrays that are whole on each device, got "
        f"{cut(', '.join(dict.fromkeys(types)))}, which each device gathers, to compute the whole "
        "result; call the function inside of jax.shard_map to compute parts of it, or gather them "
        "yourself, as in jax.sharding.reshard(x, jax.sharding.PartitionSpec())",
        stacklevel=3,
    )
    whole = PartitionSpec()
    return tuple(
        array if sharding is None else _reshard(array, sharding, whole)
        for array, sharding in zip(arrays, shardings, strict=True)
    ), of_shapes


def spread_alike(outputs: Sequence[jax.Array], shardings: Shardings) -> tuple[jax.Array, ...]:
    """The outputs, those with the shape of an input that was spread as the first of these was."""
    return tuple(
        _reshard(output, sharding, sharding.spec)
        if (sharding := shardings.get(output.shape)) is not None
        else output
        for output in outputs
    )


def _reshard(array: Any, sharding: NamedSharding, spec: PartitionSpec) -> jax.Array:
    return jax.sharding.reshard(array, NamedSharding(sharding.mesh, spec))

"""Inside of `jax.shard_map`: arrays that differ from device to device, and those that do not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec


class Varying(NamedTuple):
    """The axes of a mesh over which arrays differ, and the mesh."""

    axes: frozenset[str]
    mesh: Any


def _axes_of(array: Any) -> frozenset[str]:
    if not isinstance(array, jax.core.Tracer):
        return frozenset()
    type_ = jax.typeof(array)
    # The second since 0.10.
    return type_.vma if hasattr(type_, "vma") else type_.mat.varying


def make_alike(arrays: Sequence[Any]) -> tuple[tuple[Any, ...], Varying | None]:
    """Makes all arrays differ over the same axes; returns them and the axes, or None for no axes.

    XLA's calls take no others. JAX sums an array's cotangents over the axes it was spread over.
    """
    if not any(isinstance(array, jax.core.Tracer) for array in arrays):
        return tuple(arrays), None
    axes = [_axes_of(array) for array in arrays]
    all_axes = frozenset().union(*axes)
    if not all_axes:
        return tuple(arrays), None
    alike = (
        _spread(array, tuple(sorted(all_axes - own))) if all_axes != own else array
        for array, own in zip(arrays, axes, strict=True)
    )
    return tuple(alike), Varying(all_axes, jax.sharding.get_abstract_mesh())


def _spread(array: Any, axes: tuple[str, ...]) -> jax.Array:
    array = jnp.asarray(array)  # a number comes as one of NumPy's
    if hasattr(jax.lax, "pcast"):
        return jax.lax.pcast(array, axes, to="varying")
    return jax.lax.pvary(array, axes)  # 0.6


def struct(shape: Sequence[int], dtype: np.dtype, like: Varying | None) -> jax.ShapeDtypeStruct:
    """An output, which differs over the same axes as the inputs."""
    if like is None:
        return jax.ShapeDtypeStruct(shape, dtype)
    # 0.8 takes the axes with their mesh alone.
    sharding = NamedSharding(like.mesh, PartitionSpec(*(None for _ in shape)))
    if hasattr(jax.ShapeDtypeStruct, "vma"):
        return jax.ShapeDtypeStruct(shape, dtype, sharding=sharding, vma=like.axes)
    return jax.ShapeDtypeStruct(
        shape,
        dtype,
        sharding=sharding,
        manual_axis_type=jax.sharding.ManualAxisType(varying=like.axes),
    )

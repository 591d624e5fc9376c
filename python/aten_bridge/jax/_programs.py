"""Programs: what calls of such inputs are to JAX, one for all functions with equal calls."""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import jax
import numpy as np

Program = Callable[..., tuple[jax.Array, ...]]

# As many as JAX's own caches have entries (0.6 and 0.10). One that was compiled takes 3 MB.
MOST_PROGRAMS = 2048

_lock = threading.Lock()
_kept: dict[Hashable, Program] = {}  # in the order in which they were made


class Programs:
    """The programs of one function, as long as they are kept: JAX's traces lead to the function.

    One has several keys where numbers of Python's are in these.
    """

    def __init__(self) -> None:
        self._programs: weakref.WeakValueDictionary[Hashable, Program] = (
            weakref.WeakValueDictionary()
        )
        self.get = self._programs.get

    def add(self, key: Hashable, program: Program) -> None:
        with _lock:
            if len(self._programs) >= MOST_PROGRAMS:
                self._programs.clear()
            self._programs[key] = program


def make_program(
    name: str,
    call_xla: Callable[..., Sequence[jax.Array]],
    attributes: dict[str, Any],
    backward: Callable[[tuple[Any, ...], Sequence[Any]], tuple[Any, ...]],
) -> Program:
    """A call of XLA's with its gradient: `backward` gives the cotangents of the arrays."""

    @jax.custom_vjp
    def differentiable(*arrays: jax.Array) -> tuple[jax.Array, ...]:
        return tuple(call_xla(*arrays, **attributes))

    def forward(*arrays: jax.Array) -> tuple[Any, Any]:
        return differentiable(*arrays), arrays

    differentiable.defvjp(forward, backward)
    differentiable.__name__ = name

    # JAX keeps what it has traced as long as the function lives. `differentiable` is in there: it
    # would keep itself alive.
    def call(*arrays: jax.Array) -> tuple[jax.Array, ...]:
        return differentiable(*arrays)

    call.__name__ = call.__qualname__ = name
    # Compiled: a call outside of jit does not trace it again.
    return jax.jit(call, inline=True)


@functools.cache
def allow_effects() -> None:
    """Lets functions with gradients of their own make calls that have effects.

    JAX lets loops and branches make them; `jax.custom_vjp` is not among these (0.6 and 0.10).
    Not of `jax.checkpoint`, which would make them twice.
    """
    from jax._src import effects, ffi

    effects.custom_derivatives_allowed_effects.add_type(ffi.FfiEffect)


def shared(key: Hashable, make: Callable[[], Program]) -> Program:
    """The program of that key, which is made where there is none; the oldest one makes room."""
    with _lock:
        program = _kept.get(key)
    if program is None:
        made = make()
        with _lock:
            program = _kept.setdefault(key, made)
            while len(_kept) > MOST_PROGRAMS:
                del _kept[next(iter(_kept))]
    return program


def key_of(attributes: dict[str, Any]) -> Hashable:
    """What tells attributes, as XLA gets them, from others."""
    return tuple(
        (name, value if isinstance(value, str) else _bits(value))
        for name, value in sorted(attributes.items())
    )


def _bits(value: Any) -> Hashable:
    array = np.asarray(value)
    return array.dtype.str, array.shape, array.tobytes()

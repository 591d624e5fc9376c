"""Targets: the names by which XLA calls the handlers of libraries."""

from __future__ import annotations

import threading

import jax

from aten_bridge._function import Function
from aten_bridge._library import Library

_HANDLER = "Jax"  # what ATEN_BRIDGE_ENTRY_JAX of hosts/jax/jax.h adds to a kernel's name

_lock = threading.Lock()
_registered: dict[tuple[str, str], Library] = {}  # by target and platform, with what has it


def target_of(function: Function, symbol: str = "") -> str:
    """The name of a kernel's target, which is registered; of another `symbol` of its library's.

    It has the identity of the file's content. So a library that was built again is another target,
    in the process that knows the old one too, and what `jax.export` has written finds the same
    library again in another process.
    """
    library, path, symbol = function.library, function.path, symbol or function.symbol
    handler = library.function(symbol + _HANDLER)
    description = function.description
    # A kernel for other hosts may have a neighbour of the handler's name.
    if handler is None or (description is not None and "JAX" not in description.hosts):
        raise ValueError(
            f"{path}: expected a library for JAX, got one that was built for other hosts; build "
            "it with aten_bridge_add_kernel(... HOSTS MINDSPORE JAX)"
        )
    target = f"aten_bridge.{symbol}.{library.content}"
    is_cuda = description is not None and description.device == "cuda"
    platform = "CUDA" if is_cuda else "cpu"
    with _lock:
        # XLA takes the first alone of two copies of a file.
        if (target, platform) not in _registered:
            capsule = jax.ffi.pycapsule(handler)
            jax.ffi.register_ffi_target(target, capsule, platform=platform)
            _registered[target, platform] = library
    return target

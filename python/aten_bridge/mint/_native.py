"""What the native caller of PyNative mode does in one call, and MindSpore in many operators.

An operator of PyTorch's that is called by name takes 3 to 6 us here, and each of MindSpore's own
30 to 40 (2.10): what is composed of several is several times as slow. Graphs do it MindSpore's way,
as does PyNative mode without the caller or without the library of operators.
"""

from __future__ import annotations

import functools
from typing import Any

from aten_bridge import _operators
from aten_bridge.mindspore import _caller, kernel, operator

# Functions of functions that cells call. MindSpore's automatic mixed precision (2.10) reads the
# source of what is called by a name, copies it to another file, and imports there what is imported
# here.
IN_ONE_CALL: dict[str, Any] = {}


def is_native() -> bool:
    """Whether the caller takes a call that is made now."""
    return _caller.takes_calls()


@functools.lru_cache(1024)
def by_name(name: str, **attributes: Any) -> Any:
    """PyTorch's operator; None without the library of operators."""
    try:
        return operator(name, **attributes)
    except FileNotFoundError:
        return None


@functools.cache
def adam_steps() -> Any:
    """The kernel that steps all weights in one call; None without the library of operators."""
    try:
        return kernel(f"{_operators.operators_library().path}:AdamSteps")
    except FileNotFoundError:
        return None

"""What the native caller of PyNative mode does in one call, and MindSpore in many operators.

An operator of PyTorch's that is called by name takes 3 to 6 us here, and each of MindSpore's own
30 to 40 (2.10): what is composed of several is several times as slow. Graphs have MindSpore's way,
as has PyNative mode where there is no caller, or no library of operators.
"""

from __future__ import annotations

import functools
from typing import Any


def is_native() -> bool:
    """Whether the caller takes a call that is made now."""
    return _caller().takes_calls()


@functools.cache
def _caller() -> Any:
    from aten_bridge.mindspore import _caller

    return _caller


@functools.lru_cache(256)
def by_name(name: str, **attributes: Any) -> Any:
    """PyTorch's operator; None without the library of operators."""
    from aten_bridge.mindspore import operator

    try:
        return operator(name, **attributes)
    except FileNotFoundError:
        return None


@functools.cache
def adam_steps() -> Any:
    """The kernel that steps all weights in one call; None without the library of operators."""
    from aten_bridge._operators import operators_library
    from aten_bridge.mindspore import kernel

    try:
        return kernel(f"{operators_library().path}:AdamSteps")
    except FileNotFoundError:
        return None

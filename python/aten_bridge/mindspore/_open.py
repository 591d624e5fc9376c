"""Opening the kernel of a library."""

from __future__ import annotations

from pathlib import Path

from aten_bridge._function import Function
from aten_bridge._library import DESCRIBE, open_library, split


def open_function(path_and_name: str | Path) -> Function:
    """The kernel of a library, as `kernel` names it."""
    path, name = split(path_and_name)
    function = Function(open_library(path), name)
    if function.description is None and function.library.function(name + DESCRIBE) is not None:
        # Called with what MindSpore passes to others, it would end the process.
        raise ValueError(
            f"{function.full_name}: expected a kernel for ops.Custom, got one that HOST "
            "MINDSPORE_PLUGIN makes of MindSpore's own operator; let MS_OP_PLUGIN_PATH name the "
            "library and call that operator, or build the kernel with HOST MINDSPORE"
        )
    return function

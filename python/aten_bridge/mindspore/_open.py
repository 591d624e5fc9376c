"""Opening the kernel of a library."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from aten_bridge import _library
from aten_bridge._function import Function
from aten_bridge._library import DESCRIBE, open_library


def parse_target(path_and_name: Any) -> tuple[str, str]:
    """An absolute path, of a kind that MindSpore can use, and a name."""
    path, name = _library.parse_target(path_and_name)
    if ":" in path:
        raise ValueError(
            f"{path_and_name!r}: expected one colon, between path and name, got the path {path!r}, "
            "which MindSpore would divide at its colon; move or link the library elsewhere"
        )
    if os.path.realpath(path).endswith(("cu", "cc", "cpp")):
        raise ValueError(
            f"{path}: expected a compiled library whose name ends in .so, got a name in cu, cc or "
            "cpp, which MindSpore takes for source code; compile it with aten_bridge_add_kernel, "
            "or rename the library"
        )
    return path, name


def open_function(path_and_name: str | Path) -> Function:
    """The kernel of a library, as `kernel` names it."""
    path, name = parse_target(path_and_name)
    function = Function(open_library(path), name)
    if function.description is None and function.library.function(name + DESCRIBE) is not None:
        # Called with what MindSpore passes to others, it would end the process.
        raise ValueError(
            f"{function.full_name}: expected a kernel for ops.Custom, got one that HOST "
            "MINDSPORE_PLUGIN makes of MindSpore's own operator; let MS_OP_PLUGIN_PATH name the "
            "library and call that operator, or build the kernel with HOST MINDSPORE"
        )
    return function

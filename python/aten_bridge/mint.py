"""The library of kernels for MindSpore's mint API on the CPU.

    export MS_OP_PLUGIN_PATH=$(python -m aten_bridge.mint)
    python train.py

prints where the library is: what the variable ATEN_BRIDGE_MINT names, else the one that lies
beside this module, where `cmake --install` puts it, else the newest in the build folders of the
repository that this module is in. MindSpore reads the variable when it is imported. A MindSpore
whose plugins have another interface than the library was written for, that of 2.10, is refused.
"""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from pathlib import Path

__all__ = ["check_interface", "install", "library"]

NAME = "aten_bridge_mint.so"
HEADER = "include/mindspore/ops/kernel/cpu/op_plugin/custom_kernel_input_info.h"

# The virtual functions of MindSpore's class KernelInputInfo in their order: a library calls them by
# their places.
INTERFACE = (
    *("~KernelInputInfo", "IsScalarInput", "GetInputSize", "GetBoolInput", "GetIntInput"),
    *("GetFloatInput", "GetStrInput", "GetIntVecInput", "GetFloatVecInput", "GetInt2DVecInput"),
    *("GetFloat2DVecInput", "GetInputTypeId", "GetInputTensorLayout", "GetOutputShapeInfo"),
    "SetOutputShapeInfo",
)


class InterfaceError(Exception):
    """The installed MindSpore has plugins of another kind."""


def check_interface(header: Path | None = None) -> None:
    """Raises InterfaceError, with what to do, unless the plugins of MindSpore are those of 2.10.

    `header` is MindSpore's own description of them; by default that of the installed one. Does not
    import MindSpore.
    """
    if header is None:
        found = importlib.util.find_spec("mindspore")
        if found is None or not found.submodule_search_locations:
            raise InterfaceError("there is no MindSpore in this environment; install 2.10")
        header = Path(found.submodule_search_locations[0]) / HEADER
    try:
        text = header.read_text()
    except OSError:
        raise InterfaceError(
            f"{header}: there is no such file: this MindSpore has no plugins, or those of another "
            "version; the library is for MindSpore 2.10"
        ) from None
    functions = tuple(re.findall(r"^\s*virtual [^;(]*?(~?\w+)\(", text, re.MULTILINE))
    if functions != INTERFACE:
        raise InterfaceError(
            f"{header}: expected the plugins of MindSpore 2.10, got another interface; use "
            "MindSpore 2.10, or a newer aten_bridge"
        )


def library() -> Path:
    """The path of the library. Raises FileNotFoundError, with what to do, if there is none."""
    named = os.environ.get("ATEN_BRIDGE_MINT")
    if named:
        path = Path(named).expanduser().resolve()
        if not path.is_file():
            raise FileNotFoundError(
                f"{path}: there is no such file; correct the variable ATEN_BRIDGE_MINT"
            )
        return path
    here = Path(__file__).resolve().parent
    if (here / NAME).is_file():
        return here / NAME
    built = list((here.parents[1] / "build").glob(f"*/plugin/mint/{NAME}"))
    if built:
        return max(built, key=lambda path: path.stat().st_mtime)
    raise FileNotFoundError(
        f"there is no {NAME} in {here} and none in {here.parents[1] / 'build'}; build it with "
        "`cmake --workflow --preset demo`, or name it with the variable ATEN_BRIDGE_MINT"
    )


def install() -> None:
    """Mends the functions of mint that no kernel can: imports MindSpore.

    MindSpore 2.10 refuses some calls before it asks for a kernel (einsum, max_pool2d, float64 in
    logsumexp ...) and computes some gradients itself, wrongly. Puts functions with the same
    signatures, made of those that work, in their places, for the whole process:

        from aten_bridge.mint import install

        install()
    """
    from aten_bridge import _mint_functions

    _mint_functions.install()


if __name__ == "__main__":
    try:
        check_interface()
        print(library())
    except (FileNotFoundError, InterfaceError) as error:
        sys.exit(f"aten_bridge: {error}.")

"""The library of kernels for MindSpore's mint API on the CPU.

    export MS_OP_PLUGIN_PATH=$(python -m aten_bridge.mint)
    python train.py

prints where the library is: what the variable ATEN_BRIDGE_MINT names, else the one that lies
beside this module, where `cmake --install` puts it, else the newest in the build folders of the
repository that this module is in. MindSpore reads the variable when it is imported.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

__all__ = ["library"]

NAME = "aten_bridge_mint.so"


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


if __name__ == "__main__":
    try:
        print(library())
    except FileNotFoundError as error:
        sys.exit(f"aten_bridge: {error}.")

"""The command line, `python -m aten_bridge.mint`, of which the package tells."""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path

from aten_bridge.mint import InterfaceError, check_interface, check_library, install, library


def main(*arguments: str) -> None:
    """Prints the path of the library, or runs a program after `install()`."""
    if arguments[:1] == ("--blocking",):  # what is done without it too
        arguments = arguments[1:]
    has_queues = arguments[:1] == ("--queues",)
    program, *arguments = arguments[has_queues:] or (None,)
    try:
        if program is None:
            if has_queues:
                raise ValueError("--queues: expected a program after it")
            check_interface()
            path = library()
            check_library(path)
            print(path)
            return
        if program.startswith("-"):
            raise ValueError(f"{program}: expected a program or --queues, got an unknown option")
        if not os.path.isfile(program):  # not Path's, which raises where a name is too long
            is_folder = os.path.isdir(program)
            fault = "expected a program, got a folder" if is_folder else "there is no such file"
            raise FileNotFoundError(f"{program}: {fault}")
        # Read when PyTorch's library of threads is loaded. They would wait actively, on processors
        # that MindSpore's need (docs/performance.md, "Threads").
        os.environ.setdefault("OMP_WAIT_POLICY", "passive")
        install()
    except (OSError, InterfaceError, RuntimeError, ValueError) as error:
        sys.exit(f"aten_bridge: {error}.")
    if not has_queues:
        import mindspore

        mindspore.runtime.launch_blocking()
    # As `python program arguments` has them.
    sys.argv = [program, *arguments]
    sys.path[0] = str(Path(program).resolve().parent)
    runpy.run_path(program, run_name="__main__")


if __name__ == "__main__":
    main(*sys.argv[1:])

"""CMake and Ninja: where they are, what they print, and how long they take."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator, Sequence


def tool(name: str) -> str:
    """The path of cmake or ninja: of its package from PyPI, else on PATH."""
    folder: str | None = None
    if importlib.util.find_spec(name) is not None:
        module = importlib.import_module(name)
        folder = getattr(module, "CMAKE_BIN_DIR", None) or getattr(module, "BIN_DIR", None)
    path = shutil.which(name, path=folder) if folder else None
    path = path or shutil.which(name)
    if path is None:
        raise FileNotFoundError(
            f"{name}: expected the program, which builds kernels, got none on PATH and no package "
            f"in this environment; pip install {name}"
        )
    return path


def check_nvcc(source: str) -> None:
    """Raises FileNotFoundError unless CMake will find the compiler of CUDA."""
    named = os.environ.get("CUDACXX")
    folder = os.environ.get("CUDA_PATH")
    places = (shutil.which(named or "nvcc"), folder and shutil.which(f"{folder}/bin/nvcc"))
    if not any(places):
        raise FileNotFoundError(
            f"{source}: expected nvcc, which compiles CUDA, got {named or 'none on PATH'}; install "
            "the CUDA toolkit, and put nvcc on PATH or name it with the variable CUDACXX"
        )


def run(command: Sequence[object], verbose: bool) -> tuple[int, str]:
    """The exit status and what was printed, which is shown too if wanted."""
    words = [str(word) for word in command]
    lines = []
    with subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env={**os.environ, "LC_ALL": "C", "NINJA_STATUS": "[%f/%t] "},
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line)
            if verbose:
                print(line, end="", file=sys.stderr, flush=True)
    return process.returncode, "".join(lines)


def words_of_cmake(output: str) -> str:
    """What an error of CMake says, in one line where it is the bridge's."""
    said = re.search(r"^CMake Error[^\n]*:\n((?:\n|  [^\n]*\n)+)", output, re.M)
    if said is None:
        return f"expected a project that CMake can configure, got\n{output.rstrip()}"
    text = " ".join(textwrap.dedent(said[1]).split())
    text = text.rpartition("Reason given by package: ")[2]
    name, _, rest = text.partition("): ")
    return rest if name.startswith("aten_bridge_add_kernel(") else text


def words_of_ninja(output: str) -> str:
    """What compilers and linkers said: not their commands."""
    kept, is_command = [], False
    for line in output.splitlines():
        if is_command or line.startswith(("FAILED: ", "ninja: ")) or re.match(r"\[\d+/\d+\]", line):
            is_command = line.startswith("FAILED: ")
        else:
            kept.append(line)
    return "\n".join(kept).strip() or output.strip()


@contextlib.contextmanager
def progress(name: str, verbose: bool) -> Iterator[None]:
    """On a terminal, and in a notebook, for how long there has been work."""
    if verbose or not (sys.stderr.isatty() or "ipykernel" in sys.modules):
        yield
        return
    done = threading.Event()
    begin = time.monotonic()

    def tell() -> None:
        while not done.wait(0.5):
            seconds = time.monotonic() - begin
            print(f"\raten_bridge: building {name}, {seconds:.0f} s", end="", file=sys.stderr)
            sys.stderr.flush()
        print("\r" + " " * (40 + len(name)) + "\r", end="", file=sys.stderr, flush=True)

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield
    finally:
        done.set()
        teller.join()

"""Compiles the native caller, for `aten-bridge prepare-mindspore` and for CMake."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import mindspore as ms

from aten_bridge._places import caller_source
from aten_bridge.build._cache import cache_dir, locked, private_in
from aten_bridge.mindspore._caller import NAME, prepared_path

# As ops.CustomOpBuilder has them (MindSpore 2.10).
_FOLDERS = (
    *("", "include", "include/third_party", "include/third_party/robin_hood_hashing"),
    *("include/third_party/securec/include", "include/mindspore/include"),
    *("include/mindspore/core/include", "include/mindspore/core/mindrt/include"),
    *("include/mindspore/core/mindrt", "include/mindspore/ops", "include/mindspore/ops/include"),
    *("include/mindspore/ops/kernel/include", "include/mindspore/ccsrc"),
    "include/mindspore/ccsrc/include",
)
_LIBRARIES = (
    *("core", "common", "backend_common", "hardware_abstract", "pynative", "pynative_utils"),
    *("pyboost", "runtime_pipeline", "runtime_utils"),
)


def _commands(output: Path) -> list[list[str]]:
    """What compiles it, and what links it."""
    compiler = shlex.split(os.environ.get("CXX") or "c++")
    if shutil.which(compiler[0]) is None:
        raise FileNotFoundError(
            f"{compiler[0]}: expected a C++ compiler, got none of this name on PATH; install g++, "
            "or name one with the variable CXX"
        )
    folder = Path(ms.__file__).resolve().parent
    includes = [str(folder / name) for name in _FOLDERS] + [sysconfig.get_path("include")]
    compiled = str(output.with_suffix(".o"))
    return [
        [
            *compiler,
            *("-std=c++17", "-O1", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra", "-Wshadow"),
            *("-D_GLIBCXX_USE_CXX11_ABI=0", "-DENABLE_FAST_HASH_TABLE=1"),
            *(word for name in includes for word in ("-isystem", name)),
            *("-c", str(caller_source()), "-o", compiled),
        ],
        [
            *(*compiler, "-shared", compiled, "-o", str(output), f"-L{folder / 'lib'}"),
            *(f"-lmindspore_{name}" for name in _LIBRARIES),
            *("-Wl,-z,now", "-Wl,-z,nodelete", "-Wl,-z,noexecstack", "-s"),
        ],
    ]


def compile_caller(output: Path, verbose: bool = False) -> None:
    """Compiles it to a file. Raises RuntimeError with what the compiler says."""
    for words in _commands(output):
        if verbose:
            print(shlex.join(words), flush=True)
        done = subprocess.run(words, capture_output=True, text=True, errors="replace")
        if done.returncode != 0:
            lines = done.stderr.strip().splitlines()
            errors = [line for line in lines if "error" in line] or lines or ["nothing"]
            raise RuntimeError(
                f"{caller_source()}: expected MindSpore {ms.__version__} to have the extension "
                "interface of MindSpore 2.8 to 2.10, got from the compiler:\n"
                + ("\n".join(lines) if verbose else errors[0])
                + "\nkernels are called through ops.Custom, as before"
            )
    output.with_suffix(".o").unlink()


def prepare(verbose: bool = False) -> tuple[Path, bool]:
    """Compiles it into the user's cache. Returns its path, and whether it was compiled now."""
    path = prepared_path()
    folder = private_in(cache_dir(), "caller", path.parent.name)
    with locked(folder / "lock"):
        if path.is_file():
            return path, False
        with tempfile.TemporaryDirectory(dir=folder) as temporary:
            made = Path(temporary) / NAME
            compile_caller(made, verbose)
            os.replace(made, path)  # at once, for processes that look for it meanwhile
    return path, True


if __name__ == "__main__":  # for CMake, which says where it goes
    try:
        compile_caller(Path(sys.argv[1]) / NAME)
    except RuntimeError as error:  # such as MindSpore 2.7, which needs none
        print(error)

"""Where things lie, beside this package or in the repository: header, CMake package, libraries."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import shutil
from pathlib import Path

from aten_bridge._pytorch import library_file

_HERE = Path(__file__).resolve().parent

# (headers, CMake package): as pip has installed them, in the repository, and as `cmake --install`
# has, which puts this package into share/aten_bridge/python.
_LAYOUTS = (
    ("include", "cmake/package"),
    ("../../include", "../../cmake/package"),
    ("../../../../include", "../../../cmake/aten_bridge"),
)


def put_file(file: str | Path, place: Path) -> None:
    """Copies a file there. A process that has the old one open keeps it."""
    copy = place.with_name(f"{place.name}.{os.getpid()}")
    try:
        shutil.copy2(file, copy)
        os.replace(copy, place)
    finally:
        copy.unlink(missing_ok=True)


def _layout() -> tuple[Path, Path]:
    for names in _LAYOUTS:
        include, cmake = ((_HERE / name).resolve() for name in names)
        if (include / "aten_bridge.h").is_file() and cmake.is_dir():
            return include, cmake
    raise FileNotFoundError(
        f"{_HERE}: expected the header aten_bridge.h beside the Python package, got none; install "
        "the package with pip, or let PYTHONPATH name the repository's folder python"
    )


def include_dir() -> Path:
    """The folder of aten_bridge.h. Raises FileNotFoundError where there is none."""
    return _layout()[0]


def cmake_dir() -> Path:
    """The folder of aten_bridgeConfig.cmake: what aten_bridge_DIR is to name."""
    return _layout()[1]


def template_dir() -> Path:
    """The folder of a kernel package that new ones are made of."""
    return _beside(
        ("examples/kernel_package", "../../examples/kernel_package"), "the files of a new project"
    )


def caller_source() -> Path:
    """The source of the native caller, which `aten-bridge prepare-mindspore` compiles."""
    names = ("caller/module.cpp", "../../plugin/caller/module.cpp")
    return _beside(names, "caller/module.cpp")


def caller_files() -> list[Path]:
    """That source and the headers that it includes, which lie beside it."""
    source = caller_source()
    return [source, *sorted(source.parent.glob("*.h"))]


def _beside(names: tuple[str, ...], text: str) -> Path:
    """The first of these paths that exists. Raises FileNotFoundError otherwise."""
    for name in names:
        if (_HERE / name).exists():
            return (_HERE / name).resolve()
    raise FileNotFoundError(
        f"{_HERE}: expected {text} beside the Python package, got none; install it with pip, or "
        "let PYTHONPATH name the repository's folder python"
    )


_WHEEL = "aten_bridge_mint"  # the package of the wheel aten-bridge-mint


def compiled_library(name: str, variable: str, folder: str, build: str) -> Path:
    """The path of a library of the bridge's own, such as aten_bridge_mint.so.

    What the environment variable names, else the one beside this package, where `cmake --install`
    puts it, else the newest in this folder of the repository's build folders, else that of the
    wheel. Raises FileNotFoundError, with what to do, if there is none; `build` is the command that
    builds it.
    """
    named = os.environ.get(variable)
    if named:
        path = _file_of(Path(named).expanduser().absolute())  # a link's name tells a version
        if not path.is_file():
            raise FileNotFoundError(
                f"{path}: there is no such file; correct the variable {variable}"
            )
        return path
    if (path := _file_of(_HERE / name)).is_file():
        return path
    builds = _HERE.parents[1] / "build"
    built = []
    for place in builds.glob(f"*/{folder}"):
        with contextlib.suppress(FileNotFoundError):  # there are files for other versions alone
            built.append(_file_of(place / name))
    if built := [path for path in built if path.is_file()]:
        return max(built, key=lambda path: path.stat().st_mtime)
    package = importlib.util.find_spec(_WHEEL)
    for place in (package.submodule_search_locations or ()) if package else ():
        if (path := _file_of(Path(place) / name)).is_file():
            return path
    raise FileNotFoundError(
        f"there is no {name} in {_HERE} and none in {builds}; build it with `{build}`, install "
        "the wheel aten-bridge-mint (pip install ./plugin/mint in the repository), or name it with "
        f"the variable {variable}"
    )


def _file_of(path: Path) -> Path:
    """The file for this PyTorch, where a library is for several versions."""
    return Path(library_file(str(path)))


def version() -> str:
    """The header's version, such as "0.1.0"."""
    text = (include_dir() / "aten_bridge/core/config.h").read_text()
    return ".".join(re.findall(r"#define ATEN_BRIDGE_VERSION_\w+ (\d+)", text))

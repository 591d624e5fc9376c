"""Which PyTorch this process has, and which of a library's files was built for it.

A library that was built for several versions is a file for each: my_ops.torch2.9.so and
my_ops.torch2.11.so are what my_ops.so, and my_ops, stand for.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

_FILE = r"\.torch(\d+\.\d+)\.so"


class PyTorch(NamedTuple):
    """A minor version, such as "2.11", and whether it is in the process already."""

    version: str
    is_loaded: bool


def pytorch() -> PyTorch | None:
    """The PyTorch of this process, else the one that `import torch` would find."""
    version = minor_version(getattr(sys.modules.get("torch"), "__version__", ""))
    loaded = loaded_libraries()
    version = version or next(filter(None, map(version_beside, loaded)), "")
    if version:
        return PyTorch(version, True)
    folder = library_folder()
    version = version_beside(str(folder / "libtorch_cpu.so")) if folder else ""
    return PyTorch(version, False) if version else None


def library_folder() -> Path | None:
    """The lib folder of the PyTorch that `import torch` finds, which is not imported."""
    try:
        spec = importlib.util.find_spec("torch")
    except ValueError:  # a module that was made by hand
        return None
    folder = Path(spec.origin).parent / "lib" if spec and spec.origin else None
    return folder if folder and folder.is_dir() else None


def maps() -> str:
    """The files that the process has in its memory; their names may be any bytes."""
    return os.fsdecode(Path("/proc/self/maps").read_bytes())


def loaded_libraries() -> set[str]:
    """The libtorch_cpu.so of this process: usually one or none."""
    return set(re.findall(r" (/.*/libtorch_cpu\.so)$", maps(), re.M))


def minor_version(version: str) -> str:
    """The minor version, such as "2.11" for "2.11.0+cpu"; "" if it is not a version."""
    found = re.match(r"\d+\.\d+(?!\d)", version)
    return found[0] if found else ""


def version_beside(library: str) -> str:
    """The version of this libtorch_cpu.so's PyTorch: its Python package's, or libtorch's own."""
    folder = Path(library).parent.parent
    for name, pattern in (("version.py", r"__version__ = '(.*)'"), ("build-version", "(.*)")):
        try:
            found = re.search(pattern, (folder / name).read_text())
        except (OSError, UnicodeDecodeError):
            continue
        if found and (version := minor_version(found[1])):
            return version
    return ""


def library_files(path: str) -> dict[str, str]:
    """The files that a library is for several versions, by these, the oldest first."""
    folder, name = os.path.split(path)
    try:
        names = os.listdir(folder or ".")
    except OSError:
        return {}
    stem = re.escape(name.removesuffix(".so"))
    found = (re.fullmatch(stem + _FILE, one) for one in names)
    files = {one[1]: os.path.join(folder, one[0]) for one in found if one}
    return dict(sorted(files.items(), key=lambda item: _as_key(item[0])))


def series(words: Sequence[str], last: str) -> str:
    """The words as a series, such as "2.9, 2.11 and 2.13"."""
    return f" {last} ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def _as_key(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def library_file(path: str) -> str:
    """The file to open for a library: that of the path, else the one for this PyTorch.

    Raises FileNotFoundError where there are files for other versions alone. A path without any is
    returned as it is.
    """
    if os.path.exists(path) and not os.path.isdir(path):
        return path
    if os.path.isfile(f"{path}.so"):
        return f"{path}.so"
    files = library_files(path)
    if not files:
        return path
    here = pytorch()
    if here is not None and here.version in files:
        return files[here.version]
    raise FileNotFoundError(_no_file_fits(path, list(files), here))


def _no_file_fits(path: str, versions: list[str], here: PyTorch | None) -> str:
    path = f"{path.removesuffix('.so')}.so"
    newest = f"torch=={versions[-1]}.*"
    if here is None:
        return (
            f"{path}: expected PyTorch {series(versions, 'or')}, for which the library was built, "
            f"got no PyTorch in this environment; pip install {newest}"
        )
    has = "this process has loaded" if here.is_loaded else "this environment has"
    return (
        f"{path}: expected a library for PyTorch {here.version}, which {has}, got one for "
        f"{series(versions, 'and')}; build it with `aten-bridge build <sources> -o {path} "
        f"--pytorch {here.version}`, or install {newest}"
    )


def version_of_file(path: str) -> str:
    """The version in the name of one file of several: "2.11" for my_ops.torch2.11.so; else ""."""
    found = re.search(_FILE + "$", path)
    return found[1] if found else ""


def folder_for(path: str) -> Path | None:
    """Where a file for one version finds PyTorch: what `import torch` finds, if it is of that one.

    Such a file may have been built where that PyTorch was not, so that it does not know its folder.
    """
    version = version_of_file(path)
    folder = library_folder() if version else None
    is_right = folder and version_beside(str(folder / "libtorch_cpu.so")) == version
    return folder if is_right else None


def load_for(path: str) -> None:
    """Loads what a file needs of its PyTorch, unless the process has another one."""
    folder = folder_for(path)
    if folder is None or not loaded_libraries() <= {os.path.realpath(folder / "libtorch_cpu.so")}:
        return
    names = ["libc10.so", "libtorch_cpu.so"]
    # It finds the libraries of CUDA: a file that knows no folder of PyTorch's knows none of theirs.
    if b"\0libtorch_cuda.so\0" in Path(path).read_bytes():
        names.append("libtorch_cuda.so")
    for name in names:
        ctypes.CDLL(os.path.realpath(folder / name))


def no_pytorch_for(path: str) -> str:
    """Why a file for one version finds no PyTorch, and what to do; "" of other files."""
    version = version_of_file(path)
    if not version or folder_for(path):
        return ""
    here = pytorch()
    if here is not None and here.version == version:
        return ""
    got = f"PyTorch {here.version}" if here else "no PyTorch"
    whole = re.sub(_FILE + "$", ".so", path)
    return (
        f"{path}: expected PyTorch {version}, for which this file was built, got {got} in this "
        f"environment; install torch=={version}.*, or open {whole}, which stands for the files of "
        "all versions"
    )

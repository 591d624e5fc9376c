"""Kernel libraries: opening them, and what is wrong with those that cannot be opened."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import importlib
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

from aten_bridge import _elf
from aten_bridge._pytorch import (
    library_file,
    library_folder,
    load_for,
    loaded_libraries,
    maps,
    no_pytorch_for,
)
from aten_bridge._text import as_text, format_value, is_utf8


class Library:
    """A kernel library, loaded."""

    def __init__(self, path: str, copy: str = ""):
        """`copy` is the file that is opened instead, where there is one."""
        self.path = path
        _elf.check(path)
        self.content = _digest(copy or path)
        # Without links: the dynamic linker knows files by the names that it was given.
        file = os.path.realpath(copy or path)
        try:
            load_for(path)
            self._library = ctypes.CDLL(file)
        except OSError as error:
            text = str(error) or "a text that is not UTF-8"  # Python 3.10 and 3.11.2 lose it
            text = text.replace(file, path) if copy else text
            raise OSError(_loading_fault(path, text)) from None
        except UnicodeDecodeError as error:  # the dynamic linker's text may be any bytes
            text = as_text(error.object)
            raise OSError(_loading_fault(path, text)) from None

    def function(self, name: str) -> Any:
        """The exported C function, or None."""
        try:
            return self._library[name]
        except AttributeError:
            return None


def exported_functions(path: str) -> list[str]:
    """The C functions of a library, which is not opened. Raises OSError for another file."""
    file_identity(path)
    with _elf.read(path) as file:
        return _elf.exported_functions(file)


def has_symbol(path: str, name: str) -> bool:
    """Whether the name, or one that ends with it, is in a library, which is not opened.

    Raises OSError for another file. Needs no pyelftools, which an activated environment may lack.
    """
    file_identity(path)
    _elf.check(path)
    return name.encode() + b"\0" in Path(path).read_bytes()


def needed_libraries(path: str) -> list[tuple[str, str | None]]:
    """What a library needs by name, and where the dynamic linker finds it: None where it does not.

    Does not open the library. Raises OSError if the file is not a library for this machine.
    """
    file_identity(path)
    with _elf.read(path) as file:
        names = _elf.needed_libraries(file)
    try:
        done = subprocess.run(["ldd", path], capture_output=True, text=True, errors="replace")
    except FileNotFoundError:
        raise FileNotFoundError(
            "expected the program ldd, which tells where libraries are found, got none on PATH; "
            "install it (Debian, Ubuntu: libc-bin), or put its folder on PATH"
        ) from None
    places = dict(re.findall(r"^\s*(\S+) => (/\S.*) \(0x[0-9a-f]+\)$", done.stdout, re.M))
    places.update(
        (Path(place).name, place) for place in re.findall(r"^\s*(/\S+) ", done.stdout, re.M)
    )
    return [(name, places.get(name)) for name in names]


def newest_versions(path: str) -> dict[str, str]:
    """The newest versions of glibc, GLIBCXX and CXXABI of which a library uses anything.

    Does not open the library. Raises OSError if the file is not a library for this machine.
    """
    file_identity(path)
    with _elf.read(path) as file:
        versions = _elf.needed_versions(file)
    newest: dict[str, tuple[int, ...]] = {}
    for version in versions:
        if found := re.fullmatch(r"(GLIBC|GLIBCXX|CXXABI)_(\d+(?:\.\d+)*)", version):
            numbers = tuple(map(int, found[2].split(".")))
            newest[found[1]] = max(newest.get(found[1], ()), numbers)
    names = {"GLIBC": "glibc", "GLIBCXX": "GLIBCXX", "CXXABI": "CXXABI"}
    return {names[one]: ".".join(map(str, newest[one])) for one in names if one in newest}


@functools.cache
def _load(path: str, _version: tuple[int, ...]) -> Library:
    real = os.path.realpath(path)
    if not _is_replaced(real):
        _opened[real] = Library(path)
    elif real not in _opened or _opened[real].content != _digest(path):
        raise OSError(
            f"{path}: expected the library that the process has open, got a file that was built "
            "since; start a new process"
        )
    return _opened[real]


_opened: dict[str, Library] = {}  # by path without links, since several lead to one file


def _digest(path: str) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()[:16]


def _is_replaced(path: str) -> bool:
    """Whether the process has an older file of the name.

    The dynamic linker, which knows libraries by their names, would give that one again.
    """
    # The kernel tells names without links.
    return f" {os.path.realpath(path)} (deleted)\n" in maps()


def open_library(path: str) -> Library:
    """The library at an absolute path. Raises OSError where the process has an older file of it."""
    return _load(path, file_identity(path))


def open_newest(path: str) -> Library:
    """The same; where the process has an older file of this name, a copy of the new one."""
    return _open_copy(path, file_identity(path)) if _is_replaced(path) else open_library(path)


@functools.cache
def _open_copy(path: str, _version: tuple[int, ...]) -> Library:
    with tempfile.TemporaryDirectory(prefix="aten_bridge_") as folder:
        copy = Path(folder) / Path(path).name
        shutil.copyfile(path, copy)
        return Library(path, str(copy))


def file_identity(path: str) -> tuple[int, ...]:
    """Tells the file from a later one at the same path. Raises OSError if it is not a file."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        raise FileNotFoundError(
            f"{path}: expected a kernel library, got no such file; build it, or correct the path"
        ) from None
    except OSError as error:  # a file instead of a folder, links in a circle, a long name
        raise OSError(
            f"{path}: expected a kernel library, got the error: {error.strerror}; correct the path"
        ) from None
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(f"{path}: expected a kernel library, got a folder")
    if not stat.S_ISREG(status.st_mode):  # opening a pipe would wait for a writer
        raise OSError(f"{path}: expected a kernel library, got a pipe, a socket or a device")
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


_importing = threading.RLock()


def import_pytorch() -> bool:
    """Imports PyTorch, whose Python part has meta functions of more operators than libtorch.

    Only the one whose libtorch is loaded: two in one process clash. Says whether it is imported,
    by this thread now or by another, for whose import this one waits.
    """
    with _importing:
        if sys.modules.get("torch", "") is None:  # somebody has forbidden it
            return False
        if "torch" not in sys.modules:
            folder = library_folder()
            if folder is None:
                return False
            if loaded_libraries() != {os.path.realpath(folder / "libtorch_cpu.so")}:
                return False
        importlib.import_module("torch")  # waits for a thread that does so without asking here
        return True


def _loading_fault(path: str, text: str) -> str:
    """What dlopen's text means, and what to do."""
    missing = re.fullmatch(r"(\S+): cannot open shared object file: No such file.*", text)
    if missing:
        name = missing[1]
        is_pytorch = re.match(r"lib(torch|c10)(_\w+)?\.so", name) is not None
        if is_pytorch and (fault := no_pytorch_for(path)):
            return fault
        folder = (
            library_folder() or "<the lib folder of PyTorch>"
            if is_pytorch
            else f"<folder of {name}>"
        )
        return (
            f"{path}: expected to find {name}, which the library needs, got no such file; link "
            f"the library with -Wl,-rpath,{folder}"
            + (" or with aten_bridge_add_kernel, which does so" if is_pytorch else "")
        )
    undefined = re.search(r"undefined symbol: (\S+)", text)
    if undefined:
        torch = sys.modules.get("torch")
        version = getattr(torch, "__version__", None)
        got = f"PyTorch {version} loaded and " if version else ""
        return (
            f"{path}: expected the symbol {undefined[1]}, which the library needs, got {got}no "
            "library that has it; build with the PyTorch that the program imports, and link all "
            "libraries that the kernel uses"
        )
    return f"{path}: expected a library that can be loaded, got the error: {text}"


def parse_target(path_and_name: Any) -> tuple[str, str]:
    """The absolute path of a file, the one for this PyTorch where there are several, and a name."""
    example = 'such as "./leaky_relu.so:LeakyRelu"'
    if isinstance(path_and_name, os.PathLike):
        path_and_name = os.fspath(path_and_name)
    if not isinstance(path_and_name, str):
        raise TypeError(
            f"expected the path of a library and the name of a kernel, {example}, got "
            + format_value(path_and_name)
        )
    if re.fullmatch(r"\w+::\w+(\.\w+)?", path_and_name) and not os.path.exists(path_and_name):
        raise ValueError(
            f"{path_and_name!r}: expected the path of a library, a colon and the name of a "
            f"kernel, {example}, got the name of an operator of PyTorch's; make it with "
            f"operator({path_and_name!r})"
        )
    path, colon, name = path_and_name.rpartition(":")
    if not (path and colon and name):
        raise ValueError(
            f"{path_and_name!r}: expected the path of a library, a colon and the name of a "
            f"kernel, {example}"
        )
    if not is_utf8(path_and_name) or "\0" in path_and_name:
        raise ValueError(
            f"{path_and_name!r}: expected a path and a name in UTF-8 without NUL; rename or link "
            "the library"
        )
    return library_file(os.path.abspath(os.path.expanduser(path))), name


def as_path(path: Any) -> str:
    """The path of a library as text, as it was given."""
    try:
        text = os.fsdecode(path)
    except TypeError:
        raise TypeError(
            f'expected the path of a library, such as "./leaky_relu.so", got {format_value(path)}'
        ) from None
    if not is_utf8(text) or "\0" in text:
        raise ValueError(
            f"{text!r}: expected a path in UTF-8 without NUL; rename or link the library"
        )
    return text

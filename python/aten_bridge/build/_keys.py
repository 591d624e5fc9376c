"""Keys: what a library is made of, by content."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import shutil
import sys
from pathlib import Path

from aten_bridge import _places

# What CMake and the compilers read of the environment.
_VARIABLES = (
    *("CXX", "CXXFLAGS", "LDFLAGS", "CUDACXX", "CUDAFLAGS", "CUDAHOSTCXX", "CUDA_PATH"),
    *("CUDAARCHS", "CMAKE_PREFIX_PATH", "CMAKE_TOOLCHAIN_FILE"),
    *("CPATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH"),
)


def hash_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def hash_of_file(path: str) -> str:
    """The hash of its content; "" for what is no file, such as the name of a library."""
    if not os.path.isfile(path):  # a pipe would be read for ever
        return ""
    try:
        return hash_of(Path(path).read_bytes())
    except OSError:
        return ""


def key_of(*parts: object) -> str:
    return hash_of(json.dumps(parts).encode())[:16]


def bridge() -> str:
    """The header's files and those of the CMake package."""
    files = sorted(
        path
        for folder in (_places.include_dir(), _places.cmake_dir())
        for path in folder.rglob("*")
        if path.is_file()
    )
    return key_of([(str(path), hash_of_file(str(path))) for path in files])


def pytorch(named: str = "") -> tuple[str, object]:
    """The folder of the PyTorch that CMake will find, and an identity that another one lacks.

    Looks where FindLibtorch.cmake does, which is given `named`; does not import PyTorch.
    """
    folders = [named] if named else []
    folders += [
        os.path.join(prefix, below)
        for prefix in os.environ.get("CMAKE_PREFIX_PATH", "").replace(";", ":").split(":")
        for below in ("", "../..", "../../..", "torch")
        if prefix
    ]
    spec = importlib.util.find_spec("torch")
    if spec is not None and spec.origin is not None:
        folders.append(os.path.dirname(spec.origin))
    for folder in folders:
        if os.path.isfile(os.path.join(folder, "include/ATen/core/Tensor.h")):
            status = os.stat(os.path.join(folder, "lib/libc10.so"))
            return os.path.realpath(folder), (status.st_size, status.st_mtime_ns)
    return "", None


def compiler() -> object:
    """The compilers' files, and what of the environment changes what they do."""
    variables = {name: os.environ.get(name, "") for name in _VARIABLES}
    found = []
    for command in (variables["CXX"] or "c++", variables["CUDACXX"] or "nvcc"):
        path = shutil.which(command.split(" ")[0])
        if path is not None:
            status = os.stat(path)
            found.append((os.path.realpath(path), status.st_size, status.st_mtime_ns))
    return found, variables, sys.executable

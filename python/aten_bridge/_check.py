"""Describes a kernel library to its author: kernels, hosts, dependencies, what is missing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import NamedTuple

from aten_bridge._function import open_kernel
from aten_bridge._introspection import (
    Description,
    LibraryDescription,
    describe_library,
    kernel_names,
)
from aten_bridge._library import needed_libraries, newest_versions, open_library
from aten_bridge._pytorch import folder_for, library_file, library_files, series
from aten_bridge._text import or_list

# These come with a C++ compiler and with the system.
_EVERYWHERE = ("libstdc++.", "libm.", "libgcc_s.", "libc.", "libpthread.", "libdl.", "ld-linux")


class Report(NamedTuple):
    """Lines to print, and whether the library can be used as it is."""

    lines: list[str]
    is_usable: bool


def check(path: str) -> Report:
    """Looks at a library. Opens it in a process of its own, and runs none of its kernels.

    If the library is for several versions of PyTorch, all files are listed, and the one for this
    environment is opened. Raises OSError if the file is not a library for this machine.
    """
    path = os.path.abspath(os.path.expanduser(os.fsdecode(path)))
    try:
        file = library_file(path)
    except FileNotFoundError as error:  # none is for this PyTorch
        file, fault = "", str(error)
    files = {} if file == path else library_files(path)
    if not files:
        return _check(file)
    whole = f"{path.removesuffix('.so')}.so"
    lines = [whole, f"  for PyTorch {series(list(files), 'and')}"]
    if not file:
        lines.append("  cannot be opened here: " + fault.removeprefix(f"{whole}: "))
    is_usable = False
    for other in files.values():
        if other == file:
            opened = _check(file)
            lines += opened.lines
            is_usable = opened.is_usable
        else:
            lines += [other, *_oldest_systems_of_another(other), "  not opened"]
    return Report(lines, is_usable)


def _check(path: str) -> Report:
    lines = [path, *_oldest_systems(path)]
    needed = dict(needed_libraries(os.path.realpath(path)))  # $ORIGIN is its folder
    if folder := folder_for(path):  # as open_library() finds them
        missing = [name for name, place in needed.items() if place is None]
        needed.update((name, str(folder / name)) for name in missing if (folder / name).is_file())
        if needed.get("libc10_cuda.so") and "libc10_cuda.so" in missing:
            for name, place in needed_libraries(str(folder / "libc10_cuda.so")):
                if name in needed and name.startswith("libcudart"):
                    needed[name] = place  # PyTorch's, also where the system has one
    for name, place in needed.items():
        if place is None:
            lines.append(f"  needs {name}, which is not found")
        elif not name.startswith(_EVERYWHERE):
            lines.append(f"  needs {name}: {place}")
    opened = _open_elsewhere(path)
    if opened.is_open and None in needed.values():
        lines.append("  opens here all the same")
    return Report([*lines, *opened.lines], opened.is_usable)


def _oldest_systems(path: str) -> list[str]:
    """The oldest system that the library works on: a tag of manylinux stands for these."""
    versions = [f"{name} {version}" for name, version in newest_versions(path).items()]
    return [f"  needs {series(versions, 'and')}, or newer"] if versions else []


def _oldest_systems_of_another(path: str) -> list[str]:
    try:
        return _oldest_systems(path)
    except OSError as error:  # it does not keep this one from being used
        return [f"  cannot be opened: {error}".replace(f"{path}: ", "")]


class _Opened(NamedTuple):
    """What another process reports of a library."""

    lines: list[str]
    is_open: bool = True
    is_usable: bool = True

    @classmethod
    def fault(cls, text: str) -> _Opened:
        return cls([f"  {text}"], False, False)


def _open_elsewhere(path: str) -> _Opened:
    with tempfile.TemporaryFile() as answer:
        done = subprocess.run(
            [sys.executable, "-c", _PROGRAM, path, str(answer.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,  # libraries may print when they are opened
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            pass_fds=[answer.fileno()],
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            },
        )
        answer.seek(0)
        text = answer.read()
    if done.returncode < 0:
        return _Opened.fault(
            f"cannot be opened: the process that opened it was ended by signal {-done.returncode}"
        )
    try:
        return _Opened(*json.loads(text))
    except ValueError:
        printed = done.stderr.strip().splitlines() or ["nothing came back"]
        return _Opened.fault(f"cannot be opened: {printed[-1]}")


_PROGRAM = "from aten_bridge._check import report; report()"


def report() -> None:
    """In that process: opens the library, and writes what there is to report."""
    path, number = sys.argv[1:]
    with open(int(number), "w") as answer:
        json.dump(_open(path), answer)


def _open(path: str) -> _Opened:
    try:
        library = open_library(path)
    except OSError as error:
        return _Opened.fault("cannot be opened: " + str(error).removeprefix(f"{path}: "))
    lines: list[str] = []
    try:
        described = describe_library(library)
        lines += _built_with(described)
        names = kernel_names(library)
        for name in described.kernels:
            open_kernel(library, name)
    except ImportError as error:
        fault = "  cannot be called: " + str(error).removeprefix(f"{path}:").lstrip()
        return _Opened([*lines, fault], False, False)
    answer = described.register_with_pytorch(replace=False) or ([], "")
    operators = {kernel: operator for operator, kernel, *_ in answer[0]}
    faults = [f"  in PyTorch: {fault}" for fault in answer[1].splitlines()]
    lines += faults
    if not described.kernels:
        lines.append("  no kernel that was exported with ATEN_BRIDGE_EXPORT")
        if names:
            lines.append(f"  C functions: {or_list(names)}")
    for name, description in sorted(described.kernels.items()):
        hosts = [text.format(name) for host, text in _HOSTS.items() if host in description.hosts]
        if name in operators:
            hosts.append(f"PyTorch as torch.ops.{operators[name].replace('::', '.')}")
        if "JAX" in description.hosts:
            hosts.append("JAX")
        hosts = hosts or ["no host"]
        device = "CUDA" if description.device == "cuda" else "the CPU"
        lines.append(f"  {name}, on {device}, in {', and '.join(hosts)}")
        if description.entry_points:
            lines.append(f"    C functions {', '.join(description.entry_points)}")
        lines += [f"    {line}" for line in _operands(description)]
        if not description.hosts & {"MINDSPORE_PLUGIN", "OTHER"}:
            has_gradient = f"{name}Grad" in described.kernels
            lines += [f"    {line}" for line in _results(name, description, has_gradient)]
    return _Opened(lines, is_usable=not faults)


# The first host of a kernel, where it has one.
_HOSTS = {
    "MINDSPORE": "MindSpore",
    "MINDSPORE_PLUGIN": "MindSpore, as its own operator {}",
    "OTHER": "a host that its source defines",
}


def _built_with(described: LibraryDescription) -> Iterator[str]:
    if described.table is not None:
        abi = "new" if described.cxx11_abi else "old"
        yield (
            f"  built with aten_bridge {described.version}, PyTorch {described.pytorch} and the "
            f"{abi} C++ ABI"
        )


def _operands(description: Description) -> Iterator[str]:
    inputs = [f"{one.name}: {one}" if one.name else str(one) for one in description.inputs]
    yield f"inputs      {', '.join(inputs) or 'none'}"
    attributes = [
        f"{name}: {one.text}" + ("" if one.is_required else " (has a default)")
        for name, one in description.attributes.items()
    ]
    if attributes:
        yield f"attributes  {'; '.join(attributes)}"


def _results(name: str, description: Description, has_gradient: bool) -> Iterator[str]:
    if description.is_gradient:
        yield "outputs     a gradient for each tensor among the inputs of its kernel"
    elif description.has_meta:
        yield f"outputs     {description.outputs}"
    elif description.is_data_dependent:
        yield f"outputs     {description.outputs}, whose sizes depend on values"
    else:
        yield f"outputs     {description.outputs}, of which no meta function tells the shapes"
    if not name.endswith("Grad"):
        yield f"gradient    {name}Grad" if has_gradient else "gradient    none"

"""What a kernel library is, for whoever made it: kernels, hosts, needs, and what is missing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import NamedTuple

from aten_bridge._function import open_kernel
from aten_bridge._introspection import Description, call_text
from aten_bridge._library import DESCRIBE, Library, needed_libraries, open_library
from aten_bridge._text import as_text, or_list

# Of a C++ compiler and of the system.
_EVERYWHERE = ("libstdc++.", "libm.", "libgcc_s.", "libc.", "libpthread.", "libdl.", "ld-linux")
_OPERATORS = "aten_bridge_pytorch_operators"


class Report(NamedTuple):
    """Lines to print, and whether the library can be used as it is."""

    lines: list[str]
    is_usable: bool


def check(path: str) -> Report:
    """Looks at a library. Opens it in a process of its own, and runs none of its kernels.

    Raises OSError for what is no library for this machine.
    """
    path = os.path.realpath(os.path.expanduser(os.fsdecode(path)))
    lines = [path]
    needed = needed_libraries(path)
    for name, place in needed:
        if place is None:
            lines.append(f"  needs {name}, which is not found")
        elif not name.startswith(_EVERYWHERE):
            lines.append(f"  needs {name}: {place}")
    opened = _open_elsewhere(path)
    if opened.is_open and None in dict(needed).values():
        lines.append("  opens here all the same")
    return Report([*lines, *opened.lines], opened.is_usable)


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
                "ATEN_BRIDGE_REPORTS": "1",  # it shall not print them
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
    names = library.kernel_names()
    try:
        described = {name: _description(library, name) for name in names}
        for name in names:
            open_kernel(library, name).check_pytorch()
    except ImportError as error:
        return _Opened.fault("cannot be called: " + str(error).removeprefix(f"{path}:"))
    operators, faults = {}, []
    if library.function(_OPERATORS):
        lines = as_text(call_text(library, _OPERATORS) or b"").splitlines()
        operators = dict(reversed(line.split()[:2]) for line in lines)
        text = call_text(library, "aten_bridge_pytorch_faults", 0) or b""
        faults = [f"  in PyTorch: {fault}" for fault in as_text(text).splitlines()]
    kernels = {name: one for name, one in described.items() if one is not None}
    functions = [name for name in described if name not in kernels]
    lines = list(faults)
    if not kernels:
        lines.append("  no kernel that was exported with ATEN_BRIDGE_EXPORT")
    if functions:
        lines.append(f"  C functions: {or_list(functions)}")
    for name, description in kernels.items():
        is_custom = library.function(f"{name}Infer") is not None
        hosts = "MindSpore" if is_custom else f"MindSpore, as its own operator {name}"
        if is_custom and name in operators:
            hosts += f", and PyTorch as torch.ops.{operators[name].replace('::', '.')}"
        hosts += ", and JAX" if library.function(f"{name}Jax") else ""
        device = "CUDA" if description.device == "cuda" else "the CPU"
        lines.append(f"  {name}, on {device}, in {hosts}")
        lines += [f"    {line}" for line in _operands(description)]
        if is_custom:
            lines += [
                f"    {line}" for line in _results(name, description, f"{name}Grad" in kernels)
            ]
    return _Opened(lines, is_usable=not faults)


def _description(library: Library, kernel: str) -> Description | None:
    """None of a C function."""
    if library.function(kernel + DESCRIBE) is None:
        return None
    return Description.read(call_text(library, kernel + DESCRIBE), f"{library.path}:{kernel}")


def _operands(description: Description) -> Iterator[str]:
    inputs = [
        f"{name}: {kind}" if name else kind
        for name, kind in zip(description.input_names, description.inputs, strict=True)
    ]
    yield f"inputs      {', '.join(inputs) or 'none'}"
    attributes = [
        f"{name}: {text}" + ("" if name in description.required else " (has a default)")
        for name, text in description.attribute_types.items()
    ]
    if attributes:
        yield f"attributes  {'; '.join(attributes)}"


def _results(name: str, description: Description, has_gradient: bool) -> Iterator[str]:
    if description.is_gradient:
        yield "outputs     a gradient for each tensor among the inputs of its kernel"
    elif description.has_meta:
        yield f"outputs     {description.outputs}"
    else:
        yield f"outputs     {description.outputs}, of which no meta function tells the shapes"
    if not name.endswith("Grad"):
        yield f"gradient    {name}Grad" if has_gradient else "gradient    none"

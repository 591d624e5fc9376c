"""What a kernel library is, for whoever made it: kernels, hosts, needs, and what is missing."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any, NamedTuple

from aten_bridge._function import open_kernel
from aten_bridge._introspection import Description
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
    missing = [name for name, place in needed if place is None]
    for name, place in needed:
        if place is None:
            lines.append(f"  needs {name}, which is not found")
        elif not name.startswith(_EVERYWHERE):
            lines.append(f"  needs {name}: {place}")
    described, fault = _described(path)
    if fault:
        return Report([*lines, f"  {fault}"], False)
    if missing:
        lines.append("  opens here all the same")
    lines += _kernels(described)
    return Report(lines, not described.get("faults"))


def _described(path: str) -> tuple[dict[str, Any], str]:
    """What another process learns from the library, or why it does not."""
    with tempfile.TemporaryFile() as answer:
        done = subprocess.run(
            [sys.executable, "-c", _TELL, path, str(answer.fileno())],
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
        signal = -done.returncode
        return {}, f"cannot be opened: the process that opened it was ended by signal {signal}"
    try:
        told = json.loads(text)
    except ValueError:
        said = done.stderr.strip().splitlines() or ["nothing came back"]
        return {}, f"cannot be opened: {said[-1]}"
    return told, told.get("fault", "")


_TELL = "from aten_bridge._check import tell; tell()"


def tell() -> None:
    """In that process: writes as JSON what the library says of itself."""
    path, number = sys.argv[1:]
    with open(int(number), "w") as answer:
        json.dump(_told(path), answer)


def _told(path: str) -> dict[str, Any]:
    try:
        library = open_library(path)
    except OSError as error:
        return {"fault": "cannot be opened: " + str(error).removeprefix(f"{path}: ")}
    names = library.kernel_names()
    try:
        kernels = {name: _description(library, name) for name in names}
        for name in names:
            open_kernel(library, name).check_pytorch()
    except ImportError as error:
        return {"fault": "cannot be called: " + str(error).removeprefix(f"{path}:")}
    told = {
        "kernels": kernels,
        "is_jax": [name for name in names if library.function(f"{name}Jax")],
        "is_custom": [name for name in names if library.function(f"{name}Infer")],
    }
    if library.function(_OPERATORS):
        told["operators"] = as_text(_text(library, _OPERATORS) or b"")
        told["faults"] = as_text(_text(library, "aten_bridge_pytorch_faults", 0) or b"")
    return told


def _text(library: Library, name: str, *arguments: int) -> bytes | None:
    function = library.function(name)
    function.restype = ctypes.c_char_p
    return function(*arguments)


def _description(library: Library, kernel: str) -> dict[str, Any] | None:
    """That of `Description`; None of a C function."""
    if library.function(kernel + DESCRIBE) is None:
        return None
    text = _text(library, kernel + DESCRIBE)
    description = Description.read(text, f"{library.path}:{kernel}")._asdict()
    return description | {"required": list(description["required"])}


def _kernels(told: dict[str, Any]) -> list[str]:
    operators = dict(reversed(line.split()[:2]) for line in told.get("operators", "").splitlines())
    kernels = {name: one for name, one in told["kernels"].items() if one is not None}
    functions = [name for name in told["kernels"] if name not in kernels]
    lines = [f"  in PyTorch: {fault}" for fault in told.get("faults", "").splitlines()]
    if not kernels:
        lines.append("  no kernel that was exported with ATEN_BRIDGE_EXPORT")
    if functions:
        lines.append(f"  C functions: {or_list(functions)}")
    for name, description in kernels.items():
        if name not in told["is_custom"]:
            hosts = f"MindSpore, as its own operator {name}"
        elif name in operators:
            hosts = f"MindSpore, and PyTorch as torch.ops.{operators[name].replace('::', '.')}"
        else:
            hosts = "MindSpore"
        hosts += ", and JAX" if name in told["is_jax"] else ""
        device = "CUDA" if description["device"] == "cuda" else "the CPU"
        lines.append(f"  {name}, on {device}, in {hosts}")
        lines += [f"    {line}" for line in _operands(description)]
        if name in told["is_custom"]:
            lines += [f"    {line}" for line in _results(name, description, kernels)]
    return lines


def _operands(description: dict[str, Any]) -> Iterator[str]:
    inputs = [
        f"{name}: {kind}" if name else kind
        for name, kind in zip(description["input_names"], description["inputs"], strict=True)
    ]
    yield f"inputs      {', '.join(inputs) or 'none'}"
    attributes = [
        f"{name}: {text}" + ("" if name in description["required"] else " (has a default)")
        for name, text in description["attribute_types"].items()
    ]
    if attributes:
        yield f"attributes  {'; '.join(attributes)}"


def _results(name: str, description: dict[str, Any], kernels: dict[str, Any]) -> Iterator[str]:
    if description["is_gradient"]:
        yield "outputs     a gradient for each tensor among the inputs of its kernel"
    elif description["has_meta"]:
        yield f"outputs     {description['outputs']}"
    else:
        yield f"outputs     {description['outputs']}, of which no meta function tells the shapes"
    if not name.endswith("Grad"):
        yield f"gradient    {name}Grad" if f"{name}Grad" in kernels else "gradient    none"

"""MindSpore's mint API on the CPU.

    python -m aten_bridge.mint train.py

runs a program with the library of kernels and with the functions that stand in for those of mint
that no kernel can correct, with OMP_WAIT_POLICY=passive unless the variable is set, which is faster
beside MindSpore's threads, and makes MindSpore wait for each operator: an error is raised by the
line that it belongs to, and small operators take a fraction of the time. `--queues` before the
program's name leaves MindSpore the queues between its threads. In a program
`aten_bridge.mint.install()` does the same but for the variable and the waiting, and

    export MS_OP_PLUGIN_PATH=$(python -m aten_bridge.mint)

gives it the kernels alone. The library is what the variable ATEN_BRIDGE_MINT names, else the one
that lies beside this package, where `cmake --install` puts it, else the newest in the build folders
of the repository that this package is in, else that of the wheel aten-bridge-mint. A MindSpore
whose plugins have another interface than the library was written for, that of 2.9 and 2.10, is
refused.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import re
import warnings
from pathlib import Path

from aten_bridge._library import has_symbol
from aten_bridge._places import compiled_library
from aten_bridge._pytorch import library_file, load_for

__all__ = ["check_interface", "install", "library"]

NAME = "aten_bridge_mint.so"
VARIABLE = "ATEN_BRIDGE_MINT"
LEFT = "ATEN_BRIDGE_LEAVE_TO_MINDSPORE"
PATCH = "ATEN_BRIDGE_PATCH_MINDSPORE"
HEADER = "include/mindspore/ops/kernel/cpu/op_plugin/custom_kernel_input_info.h"

# The virtual functions of MindSpore's class KernelInputInfo in their order: a library calls them by
# their places.
INTERFACE = (
    *("~KernelInputInfo", "IsScalarInput", "GetInputSize", "GetBoolInput", "GetIntInput"),
    *("GetFloatInput", "GetStrInput", "GetIntVecInput", "GetFloatVecInput", "GetInt2DVecInput"),
    *("GetFloat2DVecInput", "GetInputTypeId", "GetInputTensorLayout", "GetOutputShapeInfo"),
    "SetOutputShapeInfo",
)


class InterfaceError(Exception):
    """The installed MindSpore has plugins of another kind."""


def check_interface(header: Path | None = None) -> None:
    """Raises InterfaceError, with what to do, unless MindSpore's plugins are those of 2.9 and 2.10.

    `header` is MindSpore's own description of them; by default that of the installed one. Does not
    import MindSpore.
    """
    if header is None:
        found = importlib.util.find_spec("mindspore")
        if found is None or not found.submodule_search_locations:
            raise InterfaceError("there is no MindSpore in this environment; install 2.9 or 2.10")
        header = Path(found.submodule_search_locations[0]) / HEADER
    try:
        text = header.read_text()
    except OSError:
        raise InterfaceError(
            f"{header}: there is no such file: this MindSpore has no plugins, or those of another "
            "version; the library is for MindSpore 2.9 and 2.10"
        ) from None
    functions = tuple(re.findall(r"^\s*virtual [^;(]*?(~?\w+)\(", text, re.MULTILINE))
    if functions != INTERFACE:
        raise InterfaceError(
            f"{header}: expected the plugins of MindSpore 2.9 and 2.10, got another interface; "
            "use MindSpore 2.10, or a newer aten_bridge"
        )


def library() -> Path:
    """The path of the library. Raises FileNotFoundError, with what to do, if there is none."""
    build = "cmake --workflow --preset demo"
    return compiled_library(NAME, VARIABLE, "plugin/mint", build)


def install() -> None:
    """Makes mint work on the CPU, for the whole process: kernels, and functions for the rest.

    MindSpore gets the library, unless MS_OP_PLUGIN_PATH names one already. MindSpore opens it with
    its first operator: call this function before that. It runs no operator itself, so
    `ms.set_device()`, `ms.runtime.launch_blocking()` and whatever else has to come before the first
    operator may come later. It also replaces functions that MindSpore 2.10 refuses on the CPU
    before it asks for a kernel (einsum, max_pool2d, float64 in logsumexp ...) or differentiates
    wrongly; the new ones take the same arguments and are made of functions that work. Functions
    that a program has imported from mint before stay MindSpore's. After an exception in a gradient
    MindSpore goes on as if there had been none. A second call does nothing.

    Raises FileNotFoundError if there is no library, InterfaceError for another MindSpore,
    RuntimeError if the library cannot be opened, has no kernels of MindSpore's operators, or was
    not opened by MindSpore, and ValueError if ATEN_BRIDGE_LEAVE_TO_MINDSPORE names an operator that
    the library does not have, each with what to do.
    """
    check_interface()
    if named := os.environ.get("MS_OP_PLUGIN_PATH"):
        named = os.environ["MS_OP_PLUGIN_PATH"] = library_file(named)
    if named and not Path(named).is_file():
        raise FileNotFoundError(
            f"{named}: there is no such file; correct the variable MS_OP_PLUGIN_PATH"
        )
    if not named:
        os.environ["MS_OP_PLUGIN_PATH"] = str(library())

    import mindspore  # noqa: F401  before the library, which looks for its kernels

    path = Path(os.environ["MS_OP_PLUGIN_PATH"]).absolute()
    kernels = _open(path)
    check_library(path, "MS_OP_PLUGIN_PATH" if named else VARIABLE)
    _check_that_inputs_arrive_contiguous(kernels)
    if _has_started():
        _check_that_mindspore_uses_it()
    _check_names_left(os.environ.get(LEFT, ""), kernels)

    from aten_bridge.mint import (
        _augmented,
        _errors,
        _functions,
        _graph_indexing,
        _graph_views,
        _graph_writes,
        _optimizer,
    )

    _augmented.install()
    _errors.install()
    _functions.install()
    _graph_views.install()
    _graph_indexing.install()
    _graph_writes.install()
    _optimizer.install()


def _open(path: Path) -> ctypes.CDLL:
    """Opens the library as MindSpore does, with a better error."""
    try:
        load_for(str(path))
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise RuntimeError(
            f"the library of kernels cannot be opened: {error}; build it for the PyTorch and the "
            "MindSpore of this environment"
        ) from None


def check_library(path: Path, variable: str = VARIABLE) -> None:
    """Raises RuntimeError if it is not a plugin: MindSpore would go on without kernels.

    Warns of a plugin with other kernels. Does not open the library.
    """
    if not has_symbol(str(path), "GetRegisteredOpCount"):  # MindSpore's question
        raise RuntimeError(
            f"{path}: expected the library of kernels, {NAME}, got a library without kernels of "
            f"MindSpore's operators; correct the variable {variable}"
        )
    if not has_symbol(str(path), "ZerosLikeExt"):
        warnings.warn(
            f"{path}: expected the library of kernels, {NAME}, got one with other kernels, beside "
            "which functions of mint do not work or are MindSpore's own; correct the variable "
            f"{variable}",
            stacklevel=3,
        )


def _check_that_inputs_arrive_contiguous(kernels: ctypes.CDLL) -> None:
    """Raises InterfaceError if MindSpore's own kernels would get views.

    Other libraries than this project's cannot tell. With ATEN_BRIDGE_PATCH_MINDSPORE=0 the library
    prints a warning instead.
    """
    if not hasattr(kernels, "aten_bridge_contiguous_copies"):
        return
    kernels.GetRegisteredOpCount()  # MindSpore's question, upon which it is prepared
    count = kernels.aten_bridge_contiguous_copies
    count.restype = ctypes.c_int64
    if count() < 0 and os.environ.get(PATCH) != "0":
        raise InterfaceError(
            "this MindSpore is neither 2.9.0 nor 2.10.0 as PyPI has them: its own kernels would "
            "take views for whole tensors, and give wrong results; use MindSpore 2.10.0"
        )


def _has_started() -> bool:
    """Whether MindSpore has run an operator, before which it reads MS_OP_PLUGIN_PATH."""
    from mindspore._c_expression import DeviceContextManager

    context = DeviceContextManager.get_instance().get_device_context("CPU")
    return context is not None and context.initialized()


def _check_that_mindspore_uses_it() -> None:
    import mindspore as ms

    try:
        ms.mint.zeros_like(ms.Tensor(0)).asnumpy()  # has a kernel in the library alone
    except RuntimeError as error:
        raise RuntimeError(
            "MindSpore runs without the library of kernels; call aten_bridge.mint.install() before "
            "its first operator, or set MS_OP_PLUGIN_PATH to what `python -m aten_bridge.mint` "
            "prints"
        ) from error


def _check_names_left(names: str, kernels: ctypes.CDLL) -> None:
    """Operators that are left to MindSpore, between commas: a mistyped one would do nothing."""
    for name in filter(None, names.split(",")):
        if not hasattr(kernels, name):
            raise ValueError(
                f"{LEFT}: the library has no operator {name!r}; expected names between commas, "
                "such as Tanh,MatMulExt"
            )

"""The native caller: a module in C++ that calls kernels in PyNative mode in place of ops.Custom.

plugin/caller/module.cpp is its source, with the headers beside it. It uses MindSpore's classes: one
file serves one version of MindSpore and one of Python, and its name says which. Where it is
missing, or does not fit, kernels are called through ops.Custom.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import importlib.util
import os
import sys
from importlib.machinery import ExtensionFileLoader, ModuleSpec
from pathlib import Path
from typing import Any, NamedTuple

import mindspore as ms
from mindspore.nn.cell import _pynative_executor
from mindspore.ops.primitive import jit_context

from aten_bridge._kernel import KernelModel
from aten_bridge._places import caller_files, compiled_library
from aten_bridge.build._cache import cache_dir, private

_MODULE = "aten_bridge_caller"
SWITCH = "ATEN_BRIDGE_NATIVE_CALLER"
NAME = f"{_MODULE}.mindspore{ms.__version__}.{sys.implementation.cache_tag}.so"
_PREPARE = "aten-bridge prepare-mindspore"
_INTERFACE = 3  # what the module has to tell as `interface`


class NativeCaller(NamedTuple):
    """What calls kernels in PyNative mode."""

    path: Path | None  # the module's; None: ops.Custom calls them
    reason: str  # why there is no module; else ""

    def __bool__(self) -> bool:
        return self.path is not None


def prepared_path() -> Path:
    """Where `aten-bridge prepare-mindspore` puts it. Raises OSError where there is no place."""
    sources = hashlib.sha256()
    for path in caller_files():
        sources.update(f"{path.name} {path.stat().st_size}\n".encode() + path.read_bytes())
    return cache_dir() / "caller" / sources.hexdigest()[:16] / NAME


def _find() -> Path:
    """The module's file. Raises FileNotFoundError, or another OSError, with what to do."""
    try:
        return compiled_library(NAME, "ATEN_BRIDGE_CALLER", "plugin/caller", _PREPARE)
    except FileNotFoundError:
        if os.environ.get("ATEN_BRIDGE_CALLER"):
            raise
    path = prepared_path()
    if not path.is_file():
        raise FileNotFoundError(
            f"there is no {NAME}, which calls kernels in less time; make it with `{_PREPARE}`"
        )
    private(path.parent)  # nobody else can have written it
    return path


@functools.cache
def _open() -> tuple[NativeCaller, Any]:
    """The module, and what is said of it."""
    if os.environ.get(SWITCH, "").strip().lower() in ("0", "off", "false", "no"):
        return NativeCaller(None, f"the variable {SWITCH} turns it off"), None
    if ms.get_context("device_target") != "CPU":
        return NativeCaller(None, "it serves programs on the CPU alone"), None
    try:
        path = _find()
        loader = ExtensionFileLoader(_MODULE, str(path))
        module = importlib.util.module_from_spec(ModuleSpec(_MODULE, loader, origin=str(path)))
        loader.exec_module(module)
        _check_interface(module, path)
        module.set_jit_context_names(jit_context.__globals__)
        _watch_cells(module)
        _order_assignments(module)
    except FileNotFoundError as error:
        return NativeCaller(None, str(error)), None
    except (ImportError, AttributeError, OSError, ValueError) as error:
        return NativeCaller(None, f"it cannot be used: {error}"), None
    return NativeCaller(path, ""), module


def _check_interface(module: Any, path: Path) -> None:
    if getattr(module, "interface", 1) != _INTERFACE:
        raise ImportError(f"{path} is of another version of aten_bridge; `{_PREPARE}` makes one")


def _watch_cells(module: Any) -> None:
    """Tells the module how many cells are running whose calls are for ops.Custom.

    MindSpore (2.10) tells its executor alone of them: of those with a mixed precision, where it
    casts the inputs of operators, and of those with `set_inputs`, where an operator has one state
    for all shapes.
    """
    executor = _pynative_executor
    tell_mixed = executor.set_mixed_precision_type
    tell_dynamic = executor.set_cell_use_dynamic_shape_process
    clear_all = executor.clear_res
    mixed, is_dynamic = 0, False

    def set_mixed_precision_type(mixed_precision_type: Any, is_push: bool = True) -> Any:
        nonlocal mixed
        mixed = max(mixed + (1 if is_push else -1), 0)
        module.set_custom_cells(mixed + is_dynamic)
        return tell_mixed(mixed_precision_type, is_push)

    def set_cell_use_dynamic_shape_process(flag: bool) -> Any:
        nonlocal is_dynamic
        is_dynamic = bool(flag)
        module.set_custom_cells(mixed + is_dynamic)
        return tell_dynamic(flag)

    def clear_res(*arguments: Any) -> Any:  # after an error: MindSpore forgets the cells
        nonlocal mixed, is_dynamic
        mixed, is_dynamic = 0, False
        module.set_custom_cells(0)
        return clear_all(*arguments)

    executor.clear_res = clear_res
    executor.set_mixed_precision_type = set_mixed_precision_type
    executor.set_cell_use_dynamic_shape_process = set_cell_use_dynamic_shape_process


def _order_assignments(module: Any) -> None:
    """Lets queued calls end before a tensor gets another's value from outside of the queues.

    MindSpore (2.10) waits for its own operators alone there: a call that reads the tensor would
    read what comes later, and one that writes it would write over that.
    """
    assign = ms.Tensor.assign_value_cpp  # also what assign_value() and set_data() call

    def assign_value_cpp(self: Any, value: Any) -> Any:
        module.wait_for_queued()
        return assign(self, value)

    ms.Tensor.assign_value_cpp = assign_value_cpp


def native_caller() -> NativeCaller:
    """What calls kernels and operators in PyNative mode: its file, or why ops.Custom does.

    if not native_caller():
        print(native_caller().reason)
    """
    return _open()[0]


def takes_calls() -> bool:
    """Whether calls that are made now, in this thread, are the caller's."""
    module = _open()[1]
    return module is not None and not module.is_for_custom()


def make_caller(model: KernelModel, attributes: dict[str, Any]) -> Any:
    """The caller of an operator; None where ops.Custom has to call it."""
    module = _open()[1]
    description = model.description
    if module is None:
        return None
    # A state that calls change has to be one, whichever way an operator is called.
    if description is not None and (description.device != "cpu" or description.changes_state):
        return None
    function = model.function
    is_strided = description is not None and description.is_strided
    return module.Caller(
        _address(function.library.function(function.symbol)),
        _address(function.library.function(f"{function.symbol}Init")),
        _address(function.library.function("aten_bridge_set_strides") if is_strided else None),
        function.path,
        function.symbol,
        attributes,
        description is None,
    )


def make_gradient(operator: Any, layout: Any, reads_results: bool) -> Any:
    """How the caller differentiates calls whose arguments have such a layout."""
    return _open()[1].Gradient(operator, layout, reads_results)


def make_results(model: KernelModel, dtypes: list[str]) -> Any:
    """How the caller reaches results that have sizes once they are computed.

    `dtypes` are in the order of the library's numbers.
    """
    library = model.function.library
    return _open()[1].ResultsOfLibrary(
        *(
            _address(library.function(f"aten_bridge_{name}_results"))
            for name in ("set", "copy", "free")
        ),
        dtypes,
    )


def make_step(model: KernelModel, **fields: Any) -> Any:
    """What the caller knows of the two programs of a step; `model` is that of the forward one."""
    library = model.function.library
    step = _open()[1].Step(
        _address(library.function("aten_bridge_program_set_kept")),
        _address(library.function("aten_bridge_program_free_kept")),
    )
    for name, value in fields.items():
        setattr(step, name, value)
    return step


def _address(function: Any) -> int:
    return 0 if function is None else ctypes.cast(function, ctypes.c_void_p).value or 0

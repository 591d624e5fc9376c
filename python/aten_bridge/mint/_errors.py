"""After an exception in a gradient the process goes on, in PyNative mode.

MindSpore 2.10 does not unwind: an exception that leaves the function that `ms.grad`, `ms.vjp` and
their kind differentiate, or a cell that `set_grad()` was called of, leaves the recording of its
operators open. From then on the function's inputs count as inputs of a gradient, so that writing
one fails ("A leaf tensor that requires grad is being used in an inplace operator"), later operators
take part in the dead gradient, and indexing an input gives nonsense ("Only support integers, ...
but got -1 with type <class 'int'>"). The functions here close it. MindSpore has one recording for
all threads: of gradients that several threads take at a time only the first is closed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from mindspore import nn
from mindspore._c_expression import MixedPrecisionType
from mindspore.common.api import _pynative_executor
from mindspore.ops.composite import base
from mindspore.ops.function.grad import grad_func

# Calls within each other: gradients of gradients, and cells.
_depth = 0


def _unwinding(original: Callable) -> Callable:
    """For a function whose first argument is what is differentiated, or a cell that is called."""

    @functools.wraps(original)
    def run(differentiated, /, *arguments, **keywords):
        global _depth
        cell = differentiated if isinstance(differentiated, nn.Cell) else None
        before = (cell.requires_grad, cell.is_top_cell) if cell is not None else None
        _depth += 1
        try:
            return original(differentiated, *arguments, **keywords)
        except BaseException:
            opens = original is not _cell_call
            if cell is not None:
                opens = opens or (cell.is_top_cell and not before[1])
                _reset(cell, *before)
            if opens and _depth == 1:
                _pynative_executor.clear_res()
                _pynative_executor.set_grad_flag(False)
            raise
        finally:
            _depth -= 1

    return run


def _reset(cell: nn.Cell, requires_grad: bool, is_top_cell: bool) -> None:
    """What MindSpore does behind a call of the cell."""
    cell.requires_grad, cell.is_top_cell = requires_grad, is_top_cell
    if cell.mixed_precision_type is not None:
        _pynative_executor.set_mixed_precision_type(MixedPrecisionType.NOTSET, False)
    if cell._dynamic_shape_inputs is not None:
        _pynative_executor.set_cell_use_dynamic_shape_process(False)


_cell_call = nn.Cell._complex_call
_function_call = base._pynative_func_grad_forward


def install() -> None:
    """Replaces MindSpore's functions by these. A second call does nothing."""
    if nn.Cell._complex_call is _cell_call:
        nn.Cell._complex_call = _unwinding(_cell_call)
        for module in (base, grad_func):
            module._pynative_func_grad_forward = _unwinding(_function_call)

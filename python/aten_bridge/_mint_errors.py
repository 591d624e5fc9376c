"""After an exception in a gradient the process goes on, in PyNative mode.

MindSpore 2.10 does not unwind: an exception that leaves the function that `ms.grad` and
`ms.value_and_grad` differentiate, or a cell that `set_grad()` was called of, leaves the recording
of its operators open. From then on the function's inputs count as inputs of a gradient, so that
writing one fails ("A leaf tensor that requires grad is being used in an inplace operator"), later
operators take part in the dead gradient, and indexing an input gives nonsense ("Only support
integers, ... but got -1 with type <class 'int'>"). The functions here close it.
"""

from __future__ import annotations

from collections.abc import Callable

from mindspore import nn
from mindspore.common.api import _pynative_executor
from mindspore.ops.composite import base

# Recordings within each other: gradients of gradients.
_depth = 0


def _unwinding(original: Callable) -> Callable:
    """Of a function whose first argument is what is differentiated."""

    def run(differentiated, *arguments, **keywords):
        global _depth
        cell = differentiated if isinstance(differentiated, nn.Cell) else None
        before = (cell.requires_grad, cell.is_top_cell) if cell else None
        _depth += 1
        try:
            return original(differentiated, *arguments, **keywords)
        except BaseException:
            if cell:
                cell.requires_grad, cell.is_top_cell = before
            if _depth == 1:
                _pynative_executor.clear_res()
                _pynative_executor.set_grad_flag(False)
            raise
        finally:
            _depth -= 1

    return run


def install() -> None:
    """Puts the functions in the places of MindSpore's. A second call does nothing."""
    if base._pynative_func_grad_forward.__module__ != __name__:
        base._pynative_func_grad_forward = _unwinding(base._pynative_func_grad_forward)
        nn.Cell._complex_call = _unwinding(nn.Cell._complex_call)

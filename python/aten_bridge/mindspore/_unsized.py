"""Operators whose results may have sizes that depend on values."""

from __future__ import annotations

from typing import Any

import mindspore as ms
from mindspore.ops.primitive import jit_context

from aten_bridge._introspection import DependsOnValues
from aten_bridge._kernel import KernelModel
from aten_bridge._operators import SIZES, for_task, read_sizes
from aten_bridge.mindspore._caller import make_results
from aten_bridge.mindspore._host import DTYPES, TENSOR_TYPES, execution_mode
from aten_bridge.mindspore._infer import Outcome, make_outcome
from aten_bridge.mindspore._inputs import Inputs, read_call, with_plain_numbers
from aten_bridge.mindspore._operator import Kernel

_DTYPE_NAMES = list(DTYPES)  # in the order of the bridge's numbers


class Unsized(Kernel):
    """An operator over a kernel that computes its results for their sizes where nobody knows them.

    The kernel is one of the library of operators: it has a task for that.
    """

    def __init__(self, model: KernelModel, *args: Any, **kwargs: Any):
        """The arguments are those of `Kernel`."""
        super().__init__(model, *args, **kwargs)
        self._sizes: Unsized | None = None
        self._depends_on_values = False
        self._measured: tuple[Any, Outcome] | None = None  # the running call's

    def _replace(self, model: KernelModel) -> None:
        super()._replace(model)
        self._sizes = None

    def _call(self, args: Any) -> Any:
        if jit_context():  # records a graph, in which sizes must be known
            return super()._call(args)
        if not self._depends_on_values:
            try:
                return super()._call(args)
            except DependsOnValues:
                self._depends_on_values = True
        operator = self._of_this_thread()
        args = with_plain_numbers(args)
        inputs = read_call(args, self._list_position(args))
        if execution_mode() == ms.PYNATIVE_MODE and operator._add_unsized(inputs, args):
            result = operator._function(*args)
            if result is not NotImplemented:
                return result
        operator._measured = inputs[:2], operator._measure(inputs, args)
        try:
            return super(Unsized, operator)._call(args)
        finally:
            operator._measured = None

    def _of_sizes(self) -> Unsized:
        """The operator that tells the sizes of results, for which it computes them."""
        if self._sizes is None:
            self._sizes = type(self)(for_task(self._model, SIZES))
        return self._sizes

    def _add_unsized(self, inputs: Inputs, args: Any) -> bool:
        """Tells the native caller, which computes results once, of such calls.

        False if it does not take them.
        """
        sizes = self._of_sizes()
        table = sizes._infer(inputs)  # checks them too
        if not (self._has_caller() and sizes._has_caller()):
            return False
        if not sizes._add_call(args, ["int64"], [table.shape]):
            return False
        library, gradient = make_results(self._model, _DTYPE_NAMES), self._native_gradient(args)
        if not self._caller.add_unsized(args, sizes._caller, library, gradient):
            return False
        self._function = self._caller.function()
        return True

    def _measure(self, inputs: Inputs, args: Any) -> Outcome:
        """Computes the results for their sizes, and waits for them."""
        sizes = read_sizes(self._of_sizes()._call(args).asnumpy().tolist())
        return make_outcome(
            inputs,
            [shape for _, shape in sizes],
            [TENSOR_TYPES[_DTYPE_NAMES[number]] for number, _ in sizes],
        )

    def _keeps_outcomes(self) -> bool:
        return self._measured is None and super()._keeps_outcomes()

    def _infer(self, inputs: Inputs) -> Outcome:
        if self._measured is not None and self._measured[0] == inputs[:2]:
            outcome = self._measured[1]
            # The inputs are all of MindSpore's key, and these are other results.
            self._set("aten_bridge_outputs", outcome.outputs_text)
            return outcome
        return super()._infer(inputs)

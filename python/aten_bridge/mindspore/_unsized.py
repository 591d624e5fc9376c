"""Operators whose results may have sizes that depend on values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms
from mindspore.ops.primitive import jit_context

from aten_bridge._function import PADDED, SIZES, is_function, read_sizes
from aten_bridge._introspection import DependsOnValues
from aten_bridge._kernel import KernelModel
from aten_bridge.mindspore._caller import make_results
from aten_bridge.mindspore._host import DTYPES, TENSOR_TYPES, execution_mode
from aten_bridge.mindspore._infer import Outcome, check_out, make_outcome
from aten_bridge.mindspore._inputs import Inputs, read_call, with_plain_numbers
from aten_bridge.mindspore._operator import Kernel

_DTYPE_NAMES = list(DTYPES)  # in the order of the bridge's numbers


def make_kernel(model: KernelModel, out_shape: Any, out_dtype: Any) -> Kernel:
    """Makes what `kernel` returns."""
    if not model.is_data_dependent:
        return Kernel(model, out_shape, out_dtype)
    check_out(model, out_shape, out_dtype)
    if out_shape is not None:
        model = model.for_task(PADDED)
        out_shape, out_dtype = with_sizes(out_shape, out_dtype)
    return Unsized(model, out_shape, out_dtype)


def with_sizes(out_shape: Any, out_dtype: Any) -> tuple[Callable, Callable]:
    """Functions as `ops.Custom` has them, for the results and, after them, for each its sizes."""

    def shapes(*inputs: Any) -> tuple[tuple[int, ...], ...]:
        given = out_shape(*inputs) if callable(out_shape) else out_shape
        several = any(isinstance(element, tuple | list) for element in given)
        results = tuple(given) if several else (given,)
        return (*results, *((len(result),) for result in results))

    def dtypes(*inputs: Any) -> tuple[Any, ...]:
        given = out_dtype(*inputs) if is_function(out_dtype) else out_dtype
        results = tuple(given) if isinstance(given, tuple | list) else (given,)
        return (*results, *(ms.int64 for _ in results))

    return shapes, dtypes


class Unsized(Kernel):
    """An operator over a kernel that computes its results for their sizes where nobody knows them.

    The kernel has `data_dependent()`, or is in the library of operators, and has a task for that.
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
        if self._model.is_data_dependent:
            self._model.check_measurable()
        operator._measured = inputs[:2], operator._measure(inputs, args)
        try:
            return super(Unsized, operator)._call(args)
        finally:
            operator._measured = None

    def _sizes_operator(self) -> Unsized:
        """The operator that tells the sizes of results, for which it computes them."""
        if self._sizes is None:
            self._sizes = type(self)(self._model.for_task(SIZES))
        return self._sizes

    def _add_unsized(self, inputs: Inputs, args: Any) -> bool:
        """Tells the native caller, which computes results once, of such calls.

        False if it does not take them.
        """
        sizes = self._sizes_operator()
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
        sizes = read_sizes(self._sizes_operator()._call(args).asnumpy().tolist())
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

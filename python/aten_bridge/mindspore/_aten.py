"""Operators of PyTorch's, by name, as operators of MindSpore."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms
from mindspore.ops.primitive import jit_context

from aten_bridge import _operators
from aten_bridge._function import is_function
from aten_bridge._introspection import DependsOnValues
from aten_bridge._kernel import KernelModel
from aten_bridge._operators import CALL, PADDED, SIZES, OperatorFunction, for_task
from aten_bridge.mindspore._caller import make_results
from aten_bridge.mindspore._host import DTYPES, HOST, TENSOR_TYPES, execution_mode
from aten_bridge.mindspore._infer import Outcome, make_outcome
from aten_bridge.mindspore._inputs import Inputs, read_call, read_infer, with_plain_numbers
from aten_bridge.mindspore._operator import Kernel

_DTYPE_NAMES = list(DTYPES)  # in the order of the bridge's numbers


def make_operator(
    name: str, grad: Any, out_shape: Any, out_dtype: Any, attributes: dict[str, Any]
) -> Operator:
    """Makes what `operator` returns."""
    if out_shape is None and out_dtype is not None:  # some of PyTorch's operators have such a one
        attributes, out_dtype = {**attributes, "out_dtype": out_dtype}, None
    is_told = out_shape is not None and out_dtype is not None
    model = _operators.make_kernel(HOST, name, grad, attributes, is_told)
    if model.function.task == PADDED:
        out_shape, out_dtype = _with_sizes(out_shape, out_dtype)
    return Operator(model, out_shape, out_dtype)


def _with_sizes(out_shape: Any, out_dtype: Any) -> tuple[Callable, Callable]:
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


class Operator(Kernel):
    """An operator of PyTorch's. Made by `operator`."""

    def __init__(self, model: KernelModel, *args: Any, **kwargs: Any):
        """Use `operator`. The arguments are those of `Kernel`."""
        super().__init__(model, *args, **kwargs)
        self._sizes: Operator | None = None
        self._depends_on_values = False
        self._measured: tuple[Any, Outcome] | None = None  # the running call's
        self._is_decided = self._given_out is None or model.function.task != CALL  # see _decide
        if model.function.overload.is_random:
            # A graph keeps its results where a cell is computed again: it would draw others.
            self.recompute(False)

    def _replace(self, model: KernelModel) -> None:
        super()._replace(model)
        self._sizes = None
        self._is_decided = self._given_out is None or model.function.task != CALL

    @staticmethod
    def _made(model: KernelModel, **more: Any) -> Kernel:
        is_operator = isinstance(model.function, OperatorFunction)
        return (Operator if is_operator else Kernel)(model, **more)

    # ===--- sizes that depend on values ---===

    def _decide(self, inputs: Inputs) -> None:
        """Where out_shape and out_dtype are given: whether they are the sizes, or the largest.

        They are the largest where the sizes cannot be told without them.
        """
        if inputs.is_dynamic:
            self._model.check_inputs(inputs.texts)
            return
        is_padded = self._model.depends_on_values(inputs.texts, inputs.shapes)
        if is_padded:
            self._given_out = _with_sizes(*self._given_out)
            self._replace(for_task(self._model, PADDED))
        self._is_decided = is_padded is not None

    def __infer__(self, *args: dict[str, Any]) -> dict[str, Any]:
        """What MindSpore asks for shapes and dtypes."""
        if not self._is_decided:
            self._decide(read_infer(args, self._list_position(args), self._is_clone))
        return super().__infer__(*args)

    def _call(self, args: Any) -> Any:
        if not self._is_decided:
            operator = self._of_this_thread()
            if operator is not self:
                return operator._call(args)
            self._decide(read_call(with_plain_numbers(args), self._list_position(args)))
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
            return super(Operator, operator)._call(args)
        finally:
            operator._measured = None

    def _of_sizes(self) -> Operator:
        """The operator that tells the sizes of results, for which it computes them."""
        if self._sizes is None:
            self._sizes = Operator(for_task(self._model, SIZES))
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
        sizes = _operators.read_sizes(self._of_sizes()._call(args).asnumpy().tolist())
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

"""Operators of PyTorch's, by name, as operators of MindSpore."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms
from mindspore.ops.primitive import jit_context

from aten_bridge._operators import (
    ATTRIBUTE,
    CALL,
    COUNTED,
    SIZES,
    DependsOnValues,
    OperatorFunction,
    Words,
    find_overload,
    operators_library,
)
from aten_bridge._text import format_value
from aten_bridge.mindspore._attributes import plain_value
from aten_bridge.mindspore._dtypes import DTYPES, TENSOR_TYPES
from aten_bridge.mindspore._infer import Outcome, make_outcome
from aten_bridge.mindspore._inputs import Inputs, read_call, read_infer, with_plain_numbers
from aten_bridge.mindspore._operator import Kernel

_WORDS = Words(
    results="out_shape and out_dtype",
    depends_on_values="call it outside of a graph, or give out_shape, the largest shapes of its "
    "results, and out_dtype",
    counted_gradient="leave that out, outside of a graph",
    factory="make its result with mindspore.ops, mindspore.mint or NumPy",
)
_DTYPE_NAMES = list(DTYPES)  # in the order of the bridge's numbers, which begin at 1


def make_operator(
    name: str, grad: Any, out_shape: Any, out_dtype: Any, attributes: dict[str, Any]
) -> Operator:
    """Makes what `operator` returns."""
    library = operators_library()
    if out_shape is None and out_dtype is not None:  # some of PyTorch's operators have such a one
        attributes, out_dtype = {**attributes, "out_dtype": out_dtype}, None
    attributes = _without_none(attributes)
    overload = find_overload(library, name, attributes, _WORDS)
    counted = overload.depends_on_values and out_shape is not None and out_dtype is not None
    task = COUNTED if counted else CALL
    function = OperatorFunction(library, overload, attributes, _WORDS, task)
    if counted:
        out_shape, out_dtype = _with_sizes(out_shape, out_dtype)
    # Of others it is known when PyTorch is asked for the shapes of a call: see Operator._decide.
    return Operator(function, grad, out_shape, out_dtype, attributes)


def _without_none(attributes: dict[str, Any]) -> dict[str, Any]:
    """The attributes as plain values of Python's."""
    return {name: plain_value(value) for name, value in attributes.items() if value is not None}


def _with_sizes(out_shape: Any, out_dtype: Any) -> tuple[Callable, Callable]:
    """Functions as `ops.Custom` has them, for the results and, behind them, for each its sizes."""

    def shapes(*inputs: Any) -> tuple[tuple[int, ...], ...]:
        given = out_shape(*inputs) if callable(out_shape) else out_shape
        several = any(isinstance(element, tuple | list) for element in given)
        results = tuple(given) if several else (given,)
        return (*results, *((len(result),) for result in results))

    def dtypes(*inputs: Any) -> tuple[Any, ...]:
        given = out_dtype(*inputs) if _is_function(out_dtype) else out_dtype
        results = tuple(given) if isinstance(given, tuple | list) else (given,)
        return (*results, *(ms.int64 for _ in results))

    return shapes, dtypes


def _is_function(value: Any) -> bool:
    return callable(value) and not isinstance(value, type)


class Operator(Kernel):
    """An operator of PyTorch's. Made by `operator`."""

    def __init__(self, *args: Any, **kwargs: Any):
        """Use `operator`. The arguments are those of `Kernel`, with an OperatorFunction."""
        self._depends_on_values = False
        self._sizes: Operator | None = None
        self._gradients: dict[int, Operator | None] = {}  # by the number of inputs
        self._measured: tuple[Any, Outcome] | None = None  # of the call that is running
        super().__init__(*args, **kwargs)
        if self._function.overload.is_random:
            # A graph keeps its results where a cell is computed again: it would draw others.
            self.recompute(False)

    # ===--- attributes: one for all, so that floats are exact and no name is taken ---===

    @staticmethod
    def _check_attributes(function: OperatorFunction, attributes: dict[str, Any]) -> dict[str, Any]:
        attributes = _without_none(attributes)
        function.for_task(function.task, attributes)  # raises TypeError
        return attributes

    def _carried(self, attributes: dict[str, Any]) -> dict[str, Any]:
        return {ATTRIBUTE: self._function.marshal(self._attributes)}

    def _set_attributes(self, attributes: dict[str, Any]) -> None:
        super()._set_attributes(attributes)
        self._sizes = None
        self._is_decided = self._given_out is None or self._function.task != CALL  # see _decide

    def _change_gradient(self, name: str, value: Any) -> None:
        self._gradients.clear()  # made anew where they are asked for
        self._bprops.clear()
        if self._grad is not None:
            super()._change_gradient(name, value)

    # ===--- gradients by PyTorch's autograd, made where they are asked for ---===

    def _find_gradient(self, input_count: int) -> Any:
        if self._grad is not None:
            return super()._find_gradient(input_count)
        if input_count not in self._gradients:
            function = self._function.gradient(input_count, self._attributes)
            self._gradients[input_count] = (
                None
                if function is None
                else Operator(function, attributes=self._attributes, forward=self)
            )
        return self._gradients[input_count]

    def _make_gradient(self, grad: str | tuple[str, ...], attributes: dict[str, Any]) -> Kernel:
        first = grad if isinstance(grad, str) else grad[0]
        if ":" not in first:
            raise ValueError(
                f"{self._function.name}: expected grad to name a library and a gradient kernel, as "
                f'in "./a.so:CubeGrad", got {format_value(first)}, and the library of operators '
                "has none; leave grad out for the gradient by PyTorch's autograd"
            )
        return super()._make_gradient(grad, attributes)

    def _missing_gradient(self) -> str:
        if self._function.task == COUNTED:
            return self._function.counted_gradient()
        return super()._missing_gradient()

    # ===--- sizes that depend on values ---===

    def _decide(self, inputs: Inputs) -> None:
        """Where out_shape and out_dtype are given: whether they are the sizes, or the largest.

        They are the largest where the sizes cannot be told without them.
        """
        self._check_inputs(inputs)
        if inputs.is_dynamic:
            return
        try:
            is_counted = self._function.depends_on_values(
                inputs.texts, inputs.shapes, self._marshalled
            )
        except ValueError:
            return  # PyTorch's kernel says what is wrong with the inputs
        if is_counted:
            self._function = self._function.for_task(COUNTED, self._attributes)
            self._given_out = _with_sizes(*self._given_out)
            self._set_attributes({})
        self._is_decided = True

    def __infer__(self, *args: dict[str, Any]) -> dict[str, Any]:
        """What MindSpore asks for shapes and dtypes."""
        if not self._is_decided:
            self._decide(read_infer(args, self._list_position(args)))
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
        inputs = read_call(args, self._list_position(args))
        operator._measured = inputs[:2], operator._measure(inputs, args)
        try:
            return super(Operator, operator)._call(args)
        finally:
            operator._measured = None

    def _measure(self, inputs: Inputs, args: Any) -> Outcome:
        """Computes the results for their sizes, and waits for them."""
        if self._sizes is None:
            function = self._function.for_task(SIZES, self._attributes)
            self._sizes = Operator(function, attributes=self._attributes)
        table = self._sizes._call(args).asnumpy().tolist()
        return make_outcome(
            inputs,
            [row[2 : 2 + row[1]] for row in table],
            [TENSOR_TYPES[_DTYPE_NAMES[row[0] - 1]] for row in table],
        )

    def _infer(self, inputs: Inputs) -> Outcome:
        if self._measured is not None and self._measured[0] == inputs[:2]:
            outcome = self._measured[1]
            # The inputs are all of MindSpore's key, and these are other results.
            self._set("aten_bridge_outputs", outcome.outputs_text)
            return outcome
        return super()._infer(inputs)

"""Operators of PyTorch's, by name, as functions of JAX."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import jax
import numpy as np

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
from aten_bridge.jax._attributes import plain_value
from aten_bridge.jax._dtypes import DTYPES
from aten_bridge.jax._inputs import Inputs
from aten_bridge.jax._operator import Kernel
from aten_bridge.jax._targets import target_of
from aten_bridge.jax._varying import struct

_WORDS = Words(
    results="out",
    depends_on_values="call it outside of jax.jit and jax.grad, or give out, the largest that its "
    "results can be",
    counted_gradient="compute it outside of jax.grad",
    factory="make its result with jax.numpy or jax.random",
)
_DTYPES = list(DTYPES.values())  # in the order of the bridge's numbers, which begin at 1
_INT64 = DTYPES["int64"]


def make_operator(
    name: str, grad: Any, out: Any, vmap_method: str | None, attributes: Mapping[str, Any]
) -> Operator:
    """Makes what `operator` returns."""
    library = operators_library()
    attributes = _without_none(attributes)
    overload = find_overload(library, name, attributes, _WORDS)
    counted = overload.depends_on_values and out is not None
    task = COUNTED if counted else CALL
    function = OperatorFunction(library, overload, attributes, _WORDS, task)
    return Operator(function, grad, out, vmap_method, attributes=attributes)


def _without_none(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes as plain values of Python's."""
    return {name: plain_value(value) for name, value in attributes.items() if value is not None}


class Operator(Kernel):
    """A function of one of PyTorch's operators. Made by `operator`."""

    def __init__(self, *args: Any, **kwargs: Any):
        """Use `operator`. The arguments are those of `Kernel`, with an OperatorFunction."""
        self._gradients: dict[int, Operator] = {}  # by the number of inputs
        self._sizes: Operator | None = None
        self._counted: Operator | None = None  # this one, where `out` is the largest
        super().__init__(*args, **kwargs)
        self._is_decided = self._out is None or self._function.task != CALL  # see _decide
        # Of gradients too, which a program of jax.export may call before one is made here.
        self._handlers = [target_of(self._function, symbol) for symbol in self._function.symbols]

    # ===--- attributes: one for all ---===

    def _check_attributes(self, attributes: dict[str, Any]) -> dict[str, Any]:
        return _without_none(attributes)  # OperatorFunction has looked at them

    def _carried(self) -> tuple[dict[str, Any], Any]:
        text = self._function.marshal(self._attributes)
        return {ATTRIBUTE: text}, text

    @property
    def targets(self) -> tuple[str, ...]:
        """The names of what XLA calls, of the operator and of gradients of any order.

        As those of a kernel. Gradients by autograd have these two, whatever the operator.
        """
        names = super().targets
        if not self._is_decided or (self._grad is None and self._function.has_gradient):
            names += tuple(name for name in self._handlers if name not in names)
        return names

    def _make_key(self) -> tuple[Hashable, ...]:
        return *super()._make_key(), self._function.overload.schema

    # ===--- gradients by PyTorch's autograd, made where they are asked for ---===

    def _find_gradient(self, input_count: int) -> Kernel | None:
        if self._grad is not None:
            return super()._find_gradient(input_count)
        function = self._function.gradient(input_count, self._attributes)
        if function is not None and input_count not in self._gradients:
            self._gradients[input_count] = Operator(
                function, vmap_method=self._vmap_method, attributes=self._attributes, forward=self
            )
        return self._gradients.get(input_count)

    def _missing_gradient(self) -> str:
        if self._function.task == COUNTED:
            return self._function.counted_gradient()
        return super()._missing_gradient()

    # ===--- calls ---===

    def _for_call(self, inputs: Inputs) -> Kernel:
        if not self._is_decided:
            self._decide(inputs)
        return self._counted or self

    def _decide(self, inputs: Inputs) -> None:
        """Where `out` is given: whether it is the results, or the largest that they can be.

        It is the largest where their sizes cannot be told without it.
        """
        self._check_inputs(inputs)
        try:
            is_counted = self._function.depends_on_values(
                inputs.texts, inputs.shapes, self._marshalled
            )
        except ValueError:
            return  # PyTorch's kernel says what is wrong with the inputs
        self._is_decided = True
        if is_counted:
            self._counted = Operator(
                self._function.for_task(COUNTED, self._attributes),
                self._grad,
                self._out,
                self._vmap_method,
                attributes=self._attributes,
            )

    # ===--- sizes that depend on values ---===

    def _given(self, inputs: Inputs) -> list[Any]:
        """For one that was told the largest results, their sizes stand behind them."""
        results = super()._given(inputs)
        if self._function.task == COUNTED:
            results += [jax.ShapeDtypeStruct((len(one.shape),), _INT64) for one in results]
        return results

    def _call(self, inputs: Inputs, output_count: int = 0) -> tuple[jax.Array, ...]:
        try:
            return super()._call(inputs, output_count)
        except DependsOnValues:
            outputs = self._call_measured(inputs)
            if outputs is None:
                raise
            return outputs

    def _call_measured(self, inputs: Inputs) -> tuple[jax.Array, ...] | None:
        """Computes the results for their sizes, and then with these; None inside of a program."""
        if any(isinstance(array, jax.core.Tracer) for array in inputs.arrays):
            return None
        if self._sizes is None:
            function = self._function.for_task(SIZES, self._attributes)
            self._sizes = Operator(function, attributes=self._attributes)
        with jax.enable_x64(True) if hasattr(jax, "enable_x64") else _x64():
            (table,) = self._sizes._call(inputs)
        if isinstance(table, jax.core.Tracer):  # of constants, inside of jax.jit
            return None
        rows = np.asarray(table).tolist()
        outputs = self._checked([(row[2 : 2 + row[1]], _DTYPES[row[0] - 1]) for row in rows])
        return self._program(inputs.types, [struct(*one, None) for one in outputs])(*inputs.arrays)

    def __reduce__(self) -> tuple[Any, ...]:
        name = self._function.name
        name = name if "." in name else f"{name}.default"
        return _made_again, (name, self._grad, self._out, self._vmap_method, self._attributes)


def _x64() -> Any:
    from jax.experimental import enable_x64  # before jax 0.8

    return enable_x64()


def _made_again(name: str, *arguments: Any) -> Operator:
    return make_operator(name, *arguments)

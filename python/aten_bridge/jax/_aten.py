"""Operators of PyTorch's, by name, as functions of JAX."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from aten_bridge._operators import (
    ATTRIBUTE,
    CALL,
    COUNTED,
    COUNTED_GRADIENT,
    DEPENDS_ON_VALUES,
    SIZES,
    OperatorFunction,
    find_overload,
    operators_library,
)
from aten_bridge.jax._attributes import plain_value
from aten_bridge.jax._dtypes import DTYPES
from aten_bridge.jax._inputs import Inputs, read_call
from aten_bridge.jax._operator import Kernel

_DTYPES = list(DTYPES.values())  # in the order of the bridge's numbers, which begin at 1


def make_operator(
    name: str, grad: Any, out: Any, vmap_method: str | None, attributes: Mapping[str, Any]
) -> Operator:
    """Makes what `operator` returns."""
    library = operators_library()
    attributes = _without_none(attributes)
    overload = find_overload(library, name, attributes)
    counted = overload.depends_on_values and out is not None
    function = OperatorFunction(library, overload, attributes, COUNTED if counted else CALL)
    return Operator(
        function, grad, _with_sizes(out) if counted else out, vmap_method, attributes=attributes
    )


def _without_none(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes as plain values of Python's."""
    return {name: plain_value(value) for name, value in attributes.items() if value is not None}


def _with_sizes(out: Any) -> Callable[..., tuple[Any, ...]]:
    """The function `out` for the results and, behind them, for each its sizes."""

    def outputs(*inputs: Any) -> tuple[Any, ...]:
        given = out(*inputs) if callable(out) and not isinstance(out, type) else out
        results = tuple(given) if isinstance(given, tuple | list) else (given,)
        sizes = (jax.ShapeDtypeStruct((len(result.shape),), jnp.int64) for result in results)
        return (*results, *sizes)

    return outputs


class Operator(Kernel):
    """A function of one of PyTorch's operators. Made by `operator`."""

    def __init__(self, *args: Any, **kwargs: Any):
        """Use `operator`. The arguments are those of `Kernel`, with an OperatorFunction."""
        self._gradients: dict[int, Operator] = {}  # by the number of inputs
        self._sizes: Operator | None = None
        super().__init__(*args, **kwargs)

    # ===--- attributes: one for all ---===

    def _check_attributes(self, attributes: dict[str, Any]) -> dict[str, Any]:
        return _without_none(attributes)  # OperatorFunction has looked at them

    def _carried(self) -> tuple[dict[str, Any], Any]:
        text = self._function.marshal(self._attributes)
        return {ATTRIBUTE: text}, text

    @functools.cached_property
    def _key(self) -> Hashable:
        return super()._key, self._function.overload.schema

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
            return f"{self._function.name}: {COUNTED_GRADIENT}"
        return super()._missing_gradient()

    # ===--- calls ---===

    def __call__(self, *args: Any) -> Any:
        """Calls the operator."""
        outputs = self._call(self._with_left_out(read_call(args)))
        return outputs if self._function.description.gives_tuple else outputs[0]

    def _with_left_out(self, inputs: Inputs) -> Inputs:
        """The inputs with None for the last ones, where these may be left out."""
        left = len(self._function.description.inputs) - len(inputs.texts)
        if left <= 0 or self._function.count_fault(len(inputs.texts)):
            return inputs
        return Inputs(
            inputs.texts + ("none",) * left, inputs.shapes + (None,) * left, inputs.arrays
        )

    # ===--- sizes that depend on values ---===

    def _outputs_of(
        self, inputs: Inputs, output_count: int
    ) -> list[tuple[Sequence[int], np.dtype]]:
        try:
            return super()._outputs_of(inputs, output_count)
        except ValueError as error:
            if DEPENDS_ON_VALUES not in str(error):
                raise
            cure = "; call it outside of a graph, or give out_shape, the largest shapes of its "
            raise _DependsOnValues(
                str(error).partition(cure)[0]
                + "; call it outside of jax.jit and jax.grad, or give out, the largest that its "
                "results can be"
            ) from None

    def _call(self, inputs: Inputs, output_count: int = 0) -> tuple[jax.Array, ...]:
        try:
            return super()._call(inputs, output_count)
        except _DependsOnValues:
            if any(isinstance(array, jax.core.Tracer) for array in inputs.arrays):
                raise
            return self._call_measured(inputs)

    def _call_measured(self, inputs: Inputs) -> tuple[jax.Array, ...]:
        """Computes the results for their sizes, and then with these."""
        if self._sizes is None:
            function = self._function.for_task(SIZES, self._attributes)
            self._sizes = Operator(function, attributes=self._attributes)
        with jax.enable_x64(True) if hasattr(jax, "enable_x64") else _x64():
            (table,) = self._sizes._call(inputs)
        rows = np.asarray(table).tolist()
        out = tuple(
            jax.ShapeDtypeStruct(tuple(row[2 : 2 + row[1]]), _DTYPES[row[0] - 1]) for row in rows
        )
        return self._program(inputs.texts, out)(*inputs.arrays)

    def __reduce__(self) -> tuple[Any, ...]:
        name = self._function.name
        out = None if self._function.task == CALL and self._out is None else self._out
        return _made_again, (name, self._grad, out, self._vmap_method, self._attributes)


class _DependsOnValues(ValueError):
    """The sizes of the results cannot be told from those of the inputs."""


def _x64() -> Any:
    from jax.experimental import enable_x64  # before jax 0.8

    return enable_x64()


def _made_again(name: str, *arguments: Any) -> Operator:
    return make_operator(name, *arguments)

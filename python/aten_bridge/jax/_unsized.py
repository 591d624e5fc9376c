"""Functions whose results may have sizes that depend on values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from aten_bridge._function import PADDED, SIZES, read_sizes
from aten_bridge._introspection import DependsOnValues
from aten_bridge._kernel import KernelModel
from aten_bridge.jax._host import DTYPES
from aten_bridge.jax._inputs import Inputs
from aten_bridge.jax._operator import Kernel, open_model
from aten_bridge.jax._outputs import check_outputs
from aten_bridge.jax._varying import struct

_DTYPES = list(DTYPES.values())  # in the order of the bridge's numbers
_INT64 = DTYPES["int64"]


def make_kernel(
    path_and_name: Any,
    attributes: Mapping[str, Any],
    grad: Any,
    has_side_effect: bool | None,
    out: Any,
    *options: Any,
) -> Kernel:
    """Makes what `kernel` returns. The options are those of `Kernel`."""
    model = open_model(path_and_name, attributes, grad, has_side_effect)
    if not model.is_data_dependent:
        return Kernel(model, out, *options)
    return Unsized(model if out is None else model.for_task(PADDED), out, *options)


class Unsized(Kernel):
    """A function over a kernel that computes its results for their sizes where nobody knows them.

    The kernel has `data_dependent()`, or is in the library of operators, and has a task for that.
    """

    def __init__(self, model: KernelModel, *args: Any, **kwargs: Any):
        """The arguments are those of `Kernel`."""
        super().__init__(model, *args, **kwargs)
        self._sizes: Unsized | None = None

    def _call(self, inputs: Inputs, output_count: int = 0) -> tuple[jax.Array, ...]:
        try:
            return super()._call(inputs, output_count)
        except DependsOnValues as error:
            depends = error  # what follows is no part of it
        if any(isinstance(array, jax.core.Tracer) for array in inputs.arrays):
            return self._call_differentiable(inputs, depends)
        return self._call_measured(inputs, depends)

    def _call_differentiable(self, inputs: Inputs, error: DependsOnValues) -> tuple[jax.Array, ...]:
        """The same where gradients are asked for outside of a program, which have the values."""

        @jax.custom_vjp
        def differentiable(*arrays: jax.Array) -> tuple[jax.Array, ...]:
            if any(isinstance(array, jax.core.Tracer) for array in arrays):
                raise error
            return self._call_measured(inputs._replace(arrays=arrays), error)

        def forward(*arrays: jax.Array) -> tuple[Any, Any]:
            outputs = differentiable(*arrays)
            return outputs, (outputs, arrays)

        def backward(kept: tuple[Any, Any], cotangents: Sequence[Any]) -> tuple[Any, ...]:
            outputs, arrays = kept
            return self._backward(inputs.types, outputs, arrays, cotangents)

        differentiable.defvjp(forward, backward)
        return self._in_reverse_mode(differentiable, inputs.arrays)

    def _call_measured(self, inputs: Inputs, error: DependsOnValues) -> tuple[jax.Array, ...]:
        """Computes the results for their sizes, and then with these; not inside of a program."""
        self._model.check_measurable()
        if self._sizes is None:
            self._sizes = type(self)(self._model.for_task(SIZES))
        with jax.enable_x64(True) if hasattr(jax, "enable_x64") else _x64():
            (table,) = self._sizes._call(inputs)
        if isinstance(table, jax.core.Tracer):  # constants inside of jax.jit
            raise error
        sizes = read_sizes(np.asarray(table).tolist())
        told = [(shape, _DTYPES[number]) for number, shape in sizes]
        outputs = check_outputs(self.__name__, told)
        return self._program(inputs.types, [struct(*one, None) for one in outputs])(*inputs.arrays)

    def _given(self, inputs: Inputs) -> list[Any]:
        """The results; where the largest were told, their sizes follow them."""
        results = super()._given(inputs)
        if self._model.function.task == PADDED:
            results += [jax.ShapeDtypeStruct((len(one.shape),), _INT64) for one in results]
        return results

    def __reduce__(self) -> tuple[Any, ...]:
        return make_kernel, self._made_of()


def _x64() -> Any:
    from jax.experimental import enable_x64  # before jax 0.8

    return enable_x64()

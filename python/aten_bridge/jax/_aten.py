"""Operators of PyTorch's, by name, as functions of JAX."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aten_bridge._function import CALL, PADDED
from aten_bridge._kernel import KernelModel
from aten_bridge._operators import OperatorFunction, make_kernel
from aten_bridge.jax._host import HOST
from aten_bridge.jax._inputs import Inputs
from aten_bridge.jax._operator import Kernel
from aten_bridge.jax._targets import target_of
from aten_bridge.jax._unsized import Unsized


def make_operator(
    name: str, grad: Any, out: Any, vmap_method: str | None, attributes: Mapping[str, Any]
) -> Operator:
    """Makes what `operator` returns."""
    return Operator(make_kernel(HOST, name, grad, attributes, out is not None), out, vmap_method)


class Operator(Unsized):
    """A function of one of PyTorch's operators. Made by `operator`."""

    def __init__(self, model: KernelModel, *args: Any, **kwargs: Any):
        """Use `operator`. The arguments are those of `Kernel`."""
        super().__init__(model, *args, **kwargs)
        self._padded: Operator | None = None  # this one, where `out` is the largest
        self._is_decided = self._out is None or model.function.task != CALL  # see _decide
        # Those of gradients too, which a program of jax.export may call before one is made here.
        self._handlers = [target_of(model.function, one) for one in OperatorFunction.kernels]

    @property
    def targets(self) -> tuple[str, ...]:
        """The names of what XLA calls, of the operator and of its gradients.

        Gradients by autograd have the same two targets for every operator.
        """
        names = super().targets
        task, grad = self._model.function.task, self._model.grad
        if not self._is_decided or (grad is None and task.results == "values"):
            names += tuple(name for name in self._handlers if name not in names)
        return names

    @staticmethod
    def _made(model: KernelModel, **more: Any) -> Kernel:
        is_operator = isinstance(model.function, OperatorFunction)
        return (Operator if is_operator else Kernel)(model, **more)

    # ===--- calls ---===

    def _for_call(self, inputs: Inputs) -> Kernel:
        if not self._is_decided:
            self._decide(inputs)
        return self._padded or self

    def _decide(self, inputs: Inputs) -> None:
        """Where `out` is given: whether it is the results, or the largest that they can be.

        It is the largest where their sizes cannot be told without it.
        """
        is_padded = self._model.depends_on_values(inputs.texts, inputs.shapes)
        if is_padded:
            padded = self._model.for_task(PADDED)
            self._padded = Operator(padded, self._out, self._vmap_method)
        self._is_decided = is_padded is not None

    def __reduce__(self) -> tuple[Any, ...]:
        model = self._model
        name = model.name if "." in model.name else f"{model.name}.default"
        return make_operator, (name, model.grad, self._out, self._vmap_method, model.attributes)

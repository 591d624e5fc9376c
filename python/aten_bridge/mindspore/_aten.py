"""Operators of PyTorch's, by name, as operators of MindSpore."""

from __future__ import annotations

from typing import Any

from aten_bridge import _operators
from aten_bridge._function import CALL, PADDED
from aten_bridge._kernel import KernelModel
from aten_bridge._operators import OperatorFunction
from aten_bridge.mindspore._host import HOST
from aten_bridge.mindspore._inputs import Inputs, read_call, with_plain_numbers
from aten_bridge.mindspore._operator import Kernel
from aten_bridge.mindspore._unsized import Unsized, with_sizes


def make_operator(
    name: str, grad: Any, out_shape: Any, out_dtype: Any, attributes: dict[str, Any]
) -> Operator:
    """Makes what `operator` returns."""
    if out_shape is None and out_dtype is not None:  # some of PyTorch's operators have such a one
        attributes, out_dtype = {**attributes, "out_dtype": out_dtype}, None
    is_told = out_shape is not None and out_dtype is not None
    model = _operators.make_kernel(HOST, name, grad, attributes, is_told)
    if model.function.task == PADDED:
        out_shape, out_dtype = with_sizes(out_shape, out_dtype)
    return Operator(model, out_shape, out_dtype)


class Operator(Unsized):
    """An operator of PyTorch's. Made by `operator`."""

    def __init__(self, model: KernelModel, *args: Any, **kwargs: Any):
        """Use `operator`. The arguments are those of `Kernel`."""
        super().__init__(model, *args, **kwargs)
        self._is_decided = self._given_out is None or model.function.task != CALL  # see _decide
        if model.function.overload.is_random:
            # A graph keeps its results where a cell is computed again: it would draw others.
            self.recompute(False)

    def _replace(self, model: KernelModel) -> None:
        super()._replace(model)
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
            self._given_out = with_sizes(*self._given_out)
            self._replace(self._model.for_task(PADDED))
        self._is_decided = is_padded is not None

    def __infer__(self, *args: dict[str, Any]) -> dict[str, Any]:
        """What MindSpore asks for shapes and dtypes."""
        if not self._is_decided:
            self._decide(self._read_infer(args))
        return super().__infer__(*args)

    def _call(self, args: Any) -> Any:
        if not self._is_decided:
            operator = self._of_this_thread()
            if operator is not self:
                return operator._call(args)
            self._decide(read_call(with_plain_numbers(args), self._list_position(args)))
        return super()._call(args)

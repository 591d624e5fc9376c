"""Shapes and dtypes of the outputs, before a call and for a graph."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any, NamedTuple

import mindspore as ms
from mindspore.common.dtype import TensorType, Type

from aten_bridge._function import is_function
from aten_bridge._kernel import KernelModel
from aten_bridge._text import format_value
from aten_bridge.mindspore._host import NAMES, OTHERS
from aten_bridge.mindspore._inputs import Inputs


class Outcome(NamedTuple):
    """The result of an inference."""

    shape: Any
    dtype: Any
    inputs_text: str
    outputs_text: str
    is_dynamic: bool

    @property
    def outputs(self) -> list[tuple[list[int], Any]]:
        """The shape and the dtype of each output."""
        is_one = not isinstance(self.shape, tuple)
        return (
            [(self.shape, self.dtype)] if is_one else list(zip(self.shape, self.dtype, strict=True))
        )


def check_out(model: KernelModel, out_shape: Any, out_dtype: Any) -> None:
    """Raises ValueError unless shapes and dtypes are known in one way."""
    if (out_shape is None) != (out_dtype is None):
        given, missing = ("out_shape", "out_dtype")[:: 1 if out_dtype is None else -1]
        raise ValueError(
            f"{model.name}: expected out_shape and out_dtype together, got {given} alone; "
            f"give {missing} too, or neither for a kernel with a meta function"
        )
    if out_shape is None and model.needs_shapes:
        raise ValueError(
            f"{model.name}: expected out_shape and out_dtype, or a kernel with a meta "
            "function, got neither; give both to kernel(), or export the kernel with "
            "aten_bridge::meta() or aten_bridge::meta(function)"
        )


def make_outcome(inputs: Inputs, shapes: list[list[int]], dtypes: list[Any]) -> Outcome:
    one = len(shapes) == 1
    return Outcome(
        shape=shapes[0] if one else tuple(shapes),
        dtype=dtypes[0] if one else tuple(dtypes),
        inputs_text=";".join(inputs.texts),
        outputs_text=f"{shapes} {dtypes}",
        is_dynamic=inputs.is_dynamic,
    )


def check_inputs(model: KernelModel, inputs: Inputs) -> None:
    """Raises TypeError with all that is wrong with the inputs of a call."""
    if model.description is not None and model.description.device == "cuda":
        target = ms.get_context("device_target")
        if target != "GPU":
            raise ValueError(
                f"{model.name}: expected a program on the GPU, got device_target {target!r}; the "
                "kernel was built for CUDA: use one that was built for the CPU"
            )
    model.check_inputs(inputs.texts)


def check_static(name: str, inputs: Inputs) -> None:
    """Raises ValueError where a graph does not know a size yet."""
    if inputs.is_dynamic:
        operands = "; ".join(
            f"input {i}: {text}{'' if shape is None else f' {list(shape)}'}"
            for i, (text, shape) in enumerate(zip(inputs.texts, inputs.shapes, strict=True))
        )
        raise ValueError(
            f"{name}: expected inputs of known sizes, or a kernel with a meta "
            f"function, got {operands}; export the kernel with aten_bridge::meta() or "
            "aten_bridge::meta(function)"
        )


def _is_shape(value: Any) -> bool:
    return isinstance(value, tuple | list) and all(
        isinstance(size, numbers.Integral) and 0 <= size < 2**63 for size in value
    )


def _is_dtype(value: Any) -> bool:
    """Whether there are tensors of it, also in MindSpore alone."""
    dtype = value.element_type() if isinstance(value, TensorType) else value
    return isinstance(dtype, Type) and (dtype in NAMES or dtype in OTHERS)


def check_given(name: str, out_shape: Any, out_dtype: Any) -> None:
    """Raises TypeError or ValueError where they are wrong, whatever the inputs are."""
    if not (is_function(out_shape) or is_function(out_dtype)):
        _given(name, out_shape, out_dtype)


def given_outcome(
    name: str,
    out_shape: Any,
    out_dtype: Any,
    inputs: Inputs,
    arguments: Sequence[dict[str, Any]],
) -> Outcome:
    """What `out_shape` and `out_dtype` say of the arguments of __infer__."""
    check_static(name, inputs)
    shape, dtype = out_shape, out_dtype
    if is_function(shape):
        shape = shape(*(argument["shape"] for argument in arguments))
    if is_function(dtype):
        dtype = dtype(*(argument["dtype"] for argument in arguments))
    return make_outcome(inputs, *_given(name, shape, dtype))


def _given(name: str, shape: Any, dtype: Any) -> tuple[list[list[int]], list[Any]]:
    """A shape and a tensor type for each output."""
    several = isinstance(shape, tuple | list) and any(
        isinstance(element, tuple | list) for element in shape
    )
    shapes = list(shape) if several else [shape]
    for element in shapes:
        if not _is_shape(element):
            raise TypeError(
                f"{name}: expected out_shape to be a shape, got {format_value(element)}"
            )
    dtypes = list(dtype) if isinstance(dtype, tuple | list) else [dtype]
    if len(shapes) != len(dtypes):
        raise ValueError(
            f"{name}: expected as many shapes as dtypes, got {len(shapes)} from out_shape and "
            f"{len(dtypes)} from out_dtype"
        )
    for element in dtypes:
        if not _is_dtype(element):
            raise TypeError(
                f"{name}: expected out_dtype to be a dtype, such as mindspore.float32, got "
                + format_value(element)
            )
    tensor_types = [
        element if isinstance(element, TensorType) else TensorType(element) for element in dtypes
    ]
    return [[*map(int, element)] for element in shapes], tensor_types

"""The inputs of a call, read in both of MindSpore's modes."""

from __future__ import annotations

import numbers
import struct
import sys
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import mindspore as ms
import numpy as np
from mindspore.common.dtype import TensorType

from aten_bridge._codec import AttributeConversionError
from aten_bridge._inputs import Reader, format_input
from aten_bridge.faults import Fault, Status
from aten_bridge.mindspore._host import CONVERTER, DTYPES, NAMES


class Inputs(NamedTuple):
    """The inputs of a call, those in tuples one by one."""

    texts: tuple[str, ...]  # as `kInputsAttribute` has them, or a FaultText
    shapes: tuple[tuple[int, ...] | None, ...]  # None where it is no tensor
    layout: tuple[int | None, ...]  # for each argument: None, or the length of a tuple

    @property
    def floats(self) -> str:
        """Python's floats among them, to the bit."""
        return " ".join(text for text in self.texts if text.startswith("#float"))

    @property
    def is_dynamic(self) -> bool:
        return any(shape and min(shape) < 0 for shape in self.shapes)


def _number_text(dtype: str, value: Any) -> str | Fault:
    # The header reads a value of these three; others are not known to come from Python.
    if value is None or dtype not in ("bool", "int64", "float32"):
        return f"#{dtype}"
    try:
        value = CONVERTER.number(value) if dtype != "bool" else value
    except AttributeConversionError as error:
        return error.fault
    if dtype == "float32":
        value = struct.unpack("<i", struct.pack("<f", value))[0]
    return f"#{dtype}={int(value)}"


def _tensor_text(dtype: Any, shape: Sequence[int]) -> str | Fault:
    return NAMES.get(dtype) or Fault(
        "|".join(DTYPES), f'"{str(dtype).lower()}" with shape {list(shape)}'
    )


def _format(value: Any, dtype: Any = None) -> str:
    """A value for an error text; graph mode may know no more than the dtype of a tensor."""
    return format_input(
        value,
        lambda one, dtype: (
            "Tensor" if isinstance(one, ms.Tensor) or isinstance(dtype, TensorType) else ""
        ),
        dtype,
    )


def _no_tensor(value: Any) -> Fault:
    return Fault(
        "a tensor, None or a number", _format(value), "give it to kernel() as an attribute"
    )


def _foreign_array(value: Any) -> Fault | None:
    """What to do with an array of another library."""
    if isinstance(value, np.ndarray | np.generic):
        return Fault("a tensor", "a NumPy array", "give it as mindspore.Tensor(array)")
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return Fault(
            "a tensor of MindSpore's",
            "one of PyTorch's",
            "give it as mindspore.Tensor(tensor.detach().cpu().numpy())",
        )
    return None


def _no_tuple(value: Any, dtype: Any = None) -> Fault:
    for i, element in enumerate(value if isinstance(value, tuple | list) else ()):
        is_number = isinstance(element, numbers.Number | np.bool_)
        if not is_number and (fault := _foreign_array(element)) is not None:
            return fault._replace(element=i)
    return Fault(
        "a tuple of one tensor or more",
        _format(value, dtype),
        "give numbers to kernel() as an attribute, and None as an argument of its own",
    )


def _several_dtypes(dtypes: Iterable[Any], shapes: Iterable[Sequence[int]]) -> Fault:
    """A tuple whose tensors a graph casts to the first one's dtype (2.10)."""
    tensors = ", ".join(
        f"{NAMES.get(dtype, dtype)} {list(shape)}"
        for dtype, shape in zip(dtypes, shapes, strict=True)
    )
    return Fault(
        "a tuple of tensors of one dtype, since MindSpore's graphs cast all of them to that of the "
        "first",
        f"({tensors})",
        "give the tensors one by one",
    )


class _Reader(Reader):
    def __init__(self) -> None:
        super().__init__()
        self.layout: list[int | None] = []

    def add(self, text: str | Fault, shape: tuple[int, ...] | None = None) -> None:
        super().add(text, shape)
        self.layout.append(None)

    def add_tuple(self, dtypes: Iterable[Any], shapes: Iterable[Sequence[int]]) -> None:
        texts = [
            (_tensor_text(dtype, shape), tuple(shape))
            for dtype, shape in zip(dtypes, shapes, strict=True)
        ]
        for text, shape in texts:
            super().add(text, shape)
        self.layout.append(len(texts))

    def inputs(self) -> Inputs:
        return Inputs(tuple(self.texts), tuple(self.shapes), tuple(self.layout))


def read_infer(
    arguments: Sequence[dict[str, Any]], list_position: int | None, is_of_graph: bool
) -> Inputs:
    """The inputs as MindSpore gives them to __infer__: their shapes, dtypes and known values.

    The list of tensors is at `list_position`, where that is known.
    """
    reader = _Reader()
    for i, argument in enumerate(arguments):
        dtype, shape, value = argument["dtype"], argument["shape"], argument["value"]
        if isinstance(dtype, TensorType):
            shape = tuple(shape)
            reader.add(_tensor_text(dtype.element_type(), shape), shape)
        elif dtype is None:
            reader.add("none")
        elif isinstance(dtype, tuple | list):
            if dtype and all(isinstance(element, TensorType) for element in dtype):
                dtypes = [element.element_type() for element in dtype]
                if is_of_graph and len(set(map(str, dtypes))) > 1:
                    reader.add(_several_dtypes(dtypes, shape))
                else:
                    reader.add_tuple(dtypes, shape)
            elif not dtype and i == list_position:
                reader.add(
                    Fault(
                        "a tuple of one tensor or more, since MindSpore runs no graph with an "
                        "empty one",
                        "()",
                        "call the operator outside of the graph",
                        Status.COUNT,
                    )
                )
            else:
                reader.add(_no_tuple(value, dtype))
        elif dtype in NAMES:
            reader.add(_number_text(NAMES[dtype], value))
        elif isinstance(dtype, type(ms.tuple_) | type(ms.list_)):
            reader.add(
                Fault(
                    "a tuple of a length that is known when the graph is compiled",
                    "one of any length",
                    "leave out mutable()'s dynamic_len",
                    Status.COUNT,
                )
            )
        elif type(dtype).__name__ == "Keyword":  # that of a signature which leaves nothing out
            reader.add(
                Fault(
                    "it by position",
                    f"it by name, as {dtype}",
                    "MindSpore's graphs know names only where a last input is left out, and no "
                    "input is a list of tensors: give all by position",
                )
            )
        else:
            reader.add(_foreign_array(value) or _no_tensor(value))
    return reader.inputs()


def flattened(arguments: Sequence[Any]) -> list[Any]:
    """Arguments of a call, with those in tuples and lists one by one."""
    return [
        one
        for argument in arguments
        for one in (argument if isinstance(argument, tuple | list) else (argument,))
    ]


_PLAIN = {ms.Tensor, ms.Parameter, type(None), bool, int, float, tuple, list}


def with_plain_numbers(arguments: Sequence[Any]) -> Sequence[Any]:
    """Arguments of a call with Python's numbers for all, of which MindSpore does not know some."""
    if all(type(argument) in _PLAIN for argument in arguments):
        return arguments
    return [
        argument if type(argument) in _PLAIN else _plain_number(argument) for argument in arguments
    ]


def _plain_number(value: Any) -> Any:
    """The number that is meant; other things, and those that cannot be carried, as they are."""
    if isinstance(value, np.bool_):
        return bool(value)
    try:
        number = CONVERTER.number(value) if isinstance(value, numbers.Real) else None
    except AttributeConversionError:
        return value
    return value if number is None else number


def read_call(arguments: Sequence[Any], list_position: int | None = None) -> Inputs:
    """The same from the arguments of a call in PyNative mode."""
    reader = _Reader()
    for i, argument in enumerate(arguments):
        if isinstance(argument, ms.Tensor):
            shape = argument.shape
            reader.add(_tensor_text(argument.dtype, shape), shape)
        elif argument is None:
            reader.add("none")
        elif isinstance(argument, bool | np.bool_):
            reader.add(_number_text("bool", argument))
        elif isinstance(argument, numbers.Integral):
            reader.add(_number_text("int64", argument))
        elif isinstance(argument, numbers.Real):
            reader.add(_number_text("float32", argument))
        elif isinstance(argument, tuple | list):
            is_open = i == list_position and any(isinstance(one, ms.Tensor) for one in arguments)
            if (argument or is_open) and all(isinstance(one, ms.Tensor) for one in argument):
                reader.add_tuple((one.dtype for one in argument), (one.shape for one in argument))
            else:
                reader.add(_no_tuple(argument))
        else:
            reader.add(_foreign_array(argument) or _no_tensor(argument))
    return reader.inputs()


def infer_arguments(arguments: Sequence[Any]) -> list[dict[str, Any]]:
    """What MindSpore gives to __infer__ of the arguments of a call, but for values (2.10)."""
    return [_infer_argument(argument) for argument in arguments]


def _infer_argument(value: Any) -> dict[str, Any]:
    if isinstance(value, ms.Tensor):
        return {"shape": list(value.shape), "dtype": TensorType(value.dtype)}
    if isinstance(value, tuple | list):
        elements = [_infer_argument(one) for one in value]
        return {name: tuple(one[name] for one in elements) for name in ("shape", "dtype")}
    if value is None:
        return {"shape": None, "dtype": None}
    dtype = ms.bool_ if isinstance(value, bool) else ms.int64
    return {"shape": [], "dtype": ms.float32 if isinstance(value, float) else dtype}

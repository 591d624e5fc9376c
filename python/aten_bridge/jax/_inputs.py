"""The inputs of a call."""

from __future__ import annotations

import math
import numbers
import struct
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from aten_bridge._inputs import Reader, format_input
from aten_bridge._text import as_float, format_value
from aten_bridge.faults import Fault, Status
from aten_bridge.jax._host import DTYPES, NAMES


class Inputs(NamedTuple):
    """The inputs of a call, those in tuples one by one."""

    texts: tuple[str, ...]  # as `kInputsAttribute` of the headers has them, or a FaultText
    shapes: tuple[tuple[int, ...] | None, ...]  # None where it is no array
    arrays: tuple[Any, ...]  # also of numbers; without those that are None
    types: tuple[str, ...]  # the texts without the values of numbers: "#float32=0" is "#float32"


def _format(value: Any) -> str:
    """A value for an error text."""
    return format_input(value, lambda one, _: "Array" if isinstance(one, jax.Array) else "")


def _foreign(value: Any) -> Fault:
    """What to say of other things than arrays of JAX's, None and numbers."""
    if isinstance(value, np.ndarray):
        return Fault(
            "an array of JAX's",
            "one of NumPy's",
            "give it as jax.numpy.asarray(array), which makes float64 and int64 32 bits wide "
            "unless jax_enable_x64 is set",
        )
    for module, of in (("torch", "PyTorch's"), ("mindspore", "MindSpore's")):
        framework = sys.modules.get(module)
        if framework is not None and isinstance(value, framework.Tensor):
            numpy = "tensor.detach().numpy()" if module == "torch" else "tensor.asnumpy()"
            hint = f"give it as jax.numpy.asarray({numpy})"
            return Fault("an array of JAX's", f"a tensor of {of}", hint)
    hint = "give it to kernel() as an attribute"
    return Fault("an array, None or a number", _format(value), hint)


class _Reader(Reader):
    def __init__(self) -> None:
        super().__init__()
        self.has_numbers = False
        self.arrays: list[Any] = []

    def add_array(self, array: Any) -> None:
        shape = array.shape
        text = NAMES.get(array.dtype)
        if text is None:
            text = Fault("|".join(DTYPES), f'"{array.dtype}" with shape {list(shape)}')
        elif not all(isinstance(size, int) for size in shape):
            hint = "export the function once for each shape"
            text = Fault("known sizes", f"{shape} of jax.export", hint, Status.SHAPE)
        self.add(text, shape)
        self.arrays.append(array)

    def add_number(self, number: Any) -> None:
        """Adds a number as JAX has Python's: of 32 bits unless jax_enable_x64 is set."""
        self.has_numbers = True
        is_wide = jax.config.jax_enable_x64
        if isinstance(number, bool | np.bool_):
            array, value = np.bool_(number), int(number)
        elif isinstance(number, numbers.Integral):
            bits = 64 if is_wide else 32
            value = int(number)
            if not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
                hint = "" if is_wide else "set jax_enable_x64 for larger ones"
                expected = f"an int from -2^{bits - 1} to 2^{bits - 1} - 1"
                self.add(Fault(expected, format_value(number), hint))
                return
            array = (np.int64 if is_wide else np.int32)(value)
        else:
            real = as_float(number)
            with np.errstate(over="ignore"):
                array = (np.float64 if is_wide else np.float32)(real)
            is_infinite = math.isinf(real) and number == real
            if (math.isinf(array) and not is_infinite) or (array == 0 and number != 0):
                hint = "" if is_wide else "set jax_enable_x64 for others"
                expected = f"a float that a {array.dtype.name} can hold, as which JAX has it"
                self.add(Fault(expected, format_value(number), hint))
                return
            integer, floating = ("<q", "<d") if is_wide else ("<i", "<f")
            value = struct.unpack(integer, struct.pack(floating, array))[0]  # its bits
        self.add(f"#{array.dtype.name}={value}")
        self.arrays.append(array)

    def inputs(self) -> Inputs:
        texts = types = tuple(self.texts)
        if self.has_numbers:
            types = tuple(text.partition("=")[0] if text[0] == "#" else text for text in texts)
        return Inputs(texts, tuple(self.shapes), tuple(self.arrays), types)


def _plain(argument: Any) -> Any:
    """The array of what says that it is one, as parameters of networks do."""
    is_one = hasattr(type(argument), "__jax_array__") and not isinstance(argument, jax.Array)
    return argument.__jax_array__() if is_one else argument


def _has_array(arguments: Sequence[Any]) -> bool:
    return any(isinstance(_plain(argument), jax.Array) for argument in arguments)


def read_call(arguments: Sequence[Any], list_position: int | None = None) -> Inputs:
    """The inputs from the arguments of a call; a list at that position may be empty.

    It may not where no array is beside it.
    """
    reader = _Reader()
    for i, argument in enumerate(arguments):
        if isinstance(argument, jax.Array):  # or a tracer
            reader.add_array(argument)
            continue
        argument = _plain(argument)
        if isinstance(argument, jax.Array):
            reader.add_array(argument)
        elif argument is None:
            reader.add("none")
        elif isinstance(argument, bool | np.bool_ | numbers.Real):
            reader.add_number(argument)
        elif isinstance(argument, tuple | list):
            elements = [*map(_plain, argument)]
            if elements and all(isinstance(element, jax.Array) for element in elements):
                for element in elements:
                    reader.add_array(element)
            elif elements or i != list_position or not _has_array(arguments):
                reader.add(
                    Fault(
                        "a tuple of one array or more",
                        _format(argument),
                        "give numbers to kernel() as an attribute, and None as an argument of its "
                        "own",
                    )
                )
        else:
            reader.add(_foreign(argument))
    return reader.inputs()

"""Kernels exported with ATEN_BRIDGE_EXPORT as operators of MindSpore.

    from aten_bridge.mindspore import kernel

    leaky_relu = kernel("./leaky_relu.so:LeakyRelu", negative_slope=0.2, grad="LeakyReluGrad")
    y = leaky_relu(x)

`kernel` makes an `ops.Custom` that knows what the library says about itself: it checks the library
and the attributes at once, infers shapes and dtypes with the kernel's meta function, and
differentiates with a gradient kernel. Facts about MindSpore in the comments are measured on 2.10.0
(CPU).
"""

from __future__ import annotations

import atexit
import copy
import ctypes
import functools
import itertools
import json
import math
import numbers
import struct
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import mindspore as ms
import numpy as np
from mindspore import nn, ops
from mindspore.common.dtype import TensorType, Type

from aten_bridge._function import Description, Function, Marshalled
from aten_bridge._library import open_library, or_list, split

__all__ = ["Kernel", "kernel"]


def kernel(
    path_and_name: str | Path,
    /,
    *,
    grad: str | tuple[str, ...] | ops.Primitive | Callable | None = None,
    out_shape: Any = None,
    out_dtype: Any = None,
    **attributes: Any,
) -> Kernel:
    """Makes an operator of a kernel.

    Each call makes an operator of its own: kernels with state share none, and neither do a copy
    made by `copy.deepcopy` and its original. Needs MindSpore 2.10. PyTorch is imported only if a
    kernel's operators tell their shapes in its Python part alone, such as those of a convolution.

    Args:
        path_and_name: The library and the name of the kernel, as a text or a path:
            "./leaky_relu.so:LeakyRelu". The path is taken from the current folder at once, "~" is
            the home folder.
        grad: What computes the gradient: the name of a gradient kernel, in the same library or
            with a path of its own; a tuple of such names, for the gradient, the gradient of the
            gradient and so on; an operator; or a function as MindSpore's `bprop`, which takes
            the inputs, the output and the output's gradient, and returns a tuple. A gradient
            kernel, or an operator, takes the inputs, then one gradient for each output, and gives
            one gradient for each tensor among the inputs. A gradient kernel gets those of the
            attributes that it knows, and, without a meta function, has outputs like the inputs.
        out_shape: The shape of the output, or a function of the inputs' shapes, as in
            `ops.Custom`; a tuple of shapes for several outputs. For kernels without a meta
            function, together with `out_dtype`.
        out_dtype: The dtype of the output, or a function of the inputs' dtypes.
        **attributes: The kernel's attributes: bool, int, float, str, lists of ints or of floats,
            lists of such lists, dtypes, and NumPy's equivalents. None stands for no value, and
            gives the default. Nothing is converted: write 1.0 where a kernel has a float.

    Returns:
        The operator. It takes tensors, None and Python numbers, and tuples of tensors in place of
        several tensors. Several outputs are a tuple; those of rank 0 are tensors too.

    Raises:
        FileNotFoundError: There is no such file.
        OSError: The file is no library for this machine, or cannot be loaded.
        ImportError: The process has another PyTorch than the library was built with.
        AttributeError: The library has no such kernel.
        TypeError: An attribute is unknown, missing or of another type.
        ValueError: The path or the name of an attribute cannot be used with MindSpore, or shapes
            and dtypes are not given where the kernel has no meta function.

    """
    return Kernel(path_and_name, grad, out_shape, out_dtype, attributes)


# ===--- dtypes ---===

# The bridge's names of dtypes. MindSpore also has hifloat8 and qint4x2, which PyTorch has not.
_DTYPES = {
    "bool": ms.bool_,
    "uint8": ms.uint8,
    "int8": ms.int8,
    "uint16": ms.uint16,
    "int16": ms.int16,
    "uint32": ms.uint32,
    "int32": ms.int32,
    "uint64": ms.uint64,
    "int64": ms.int64,
    "float16": ms.float16,
    "bfloat16": ms.bfloat16,
    "float32": ms.float32,
    "float64": ms.float64,
    "complex64": ms.complex64,
    "complex128": ms.complex128,
    "float8e4m3fn": ms.float8_e4m3fn,
    "float8e5m2": ms.float8_e5m2,
}
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}
# With ms.float32 in place of its tensor type, graph mode makes Python numbers of 0-dim results.
_TENSOR_TYPES = {name: TensorType(dtype) for name, dtype in _DTYPES.items()}


# ===--- attributes ---===


class _Uncarriable(Exception):
    """A value that MindSpore does not carry to a kernel; the text is what was expected and got."""


def _plain(value: Any) -> Any:
    """The plain Python value, where there is one, of NumPy's and MindSpore's."""
    # MindSpore has no getter for an np.int32, and carries np.bool_ and np.float64 as Python's.
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic)):
        return np.dtype(value).name
    try:
        return _NAMES.get(value, value)
    except TypeError:  # not hashable
        return value


def _number(value: Any) -> int | float | None:
    """An int or float as MindSpore carries it, None for other things than numbers."""
    value = _plain(value)
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return None
    if isinstance(value, numbers.Integral):
        if not -(2**63) <= value < 2**63:
            raise _Uncarriable(f"expected an int from -2^63 to 2^63 - 1, got {value}")
        return int(value)
    value = float(value)
    single = ctypes.c_float(value).value
    if (math.isinf(single) and not math.isinf(value)) or (single == 0 and value != 0):
        raise _Uncarriable(
            f"expected a float that a float32 can hold, as which MindSpore carries it, got {value}"
        )
    return value


def _list(values: Sequence[Any], given: Any) -> list[Any]:
    """A list of ints, of floats, or of such lists, all of one kind."""
    result: list[Any] = []
    for value in values:
        value = _plain(value)
        if isinstance(value, list | tuple) and not any(isinstance(v, list | tuple) for v in value):
            result.append(_list(value, given))
        else:
            result.append(_number(value))
    flat = [
        number for value in result for number in (value if isinstance(value, list) else [value])
    ]
    kinds = {type(number) for number in flat}
    if kinds == {int, float}:
        raise _Uncarriable(f"expected ints or floats, got both in {given!r}; write 1.0 for 1")
    if type(None) in kinds or len({isinstance(value, list) for value in result}) > 1:
        raise _Uncarriable(
            f"expected a list of ints, of floats, or of lists of these, got {given!r}"
        )
    return result


def _carried(value: Any) -> Any:
    """The value as MindSpore carries it to a kernel: bool, int, float, str or list."""
    plain = _plain(value)
    if isinstance(plain, bool | str):
        return plain
    if isinstance(plain, list | tuple):
        return _list(plain, value)
    number = _number(plain)
    if number is None:
        raise _Uncarriable(
            "expected a bool, an int, a float, a str, a dtype, or a list of ints or floats or of "
            f"lists of these, got {value!r} of type {type(value).__name__}"
        )
    return number


def _attributes_text(function: Function, faults: dict[str, str]) -> str:
    return "\n".join(
        f"{function.name}: attribute {name!r}: {fault}" for name, fault in faults.items()
    )


# Names that an attribute cannot have in an operator of MindSpore's (2.10).
_TAKEN = {
    # ops.Custom sets them.
    *("attr_names", "autodiff", "cpp_infer_shape", "cpp_infer_type", "func_name", "func_type"),
    *("imply_path", "input_names", "multi_output", "output_names", "pure_input_names"),
    *("reg_op_name", "uniq_name"),
    # MindSpore writes or reads them where a graph, or a vmap, is compiled.
    *("batch_rank", "dyn_input_sizes", "input_is_dynamic_shape", "output_is_dynamic_shape"),
    *("data_format", "primitive_target"),  # the first becomes "format", the second is checked
    # Parameters of `kernel`.
    *("grad", "out_shape", "out_dtype"),
}


def _check_names(function: Function) -> None:
    """Raises ValueError if an attribute of the kernel has a name that it cannot have."""
    names = [] if function.description is None else function.description.attribute_names
    faults = {}
    for name in names:
        if name in _TAKEN or name.startswith("aten_bridge_"):
            faults[name] = (
                "expected a name of the kernel's own, got one that MindSpore or kernel() uses "
                "itself; rename it in the kernel's export"
            )
        elif names.count(name) > 1:
            faults[name] = (
                "expected one attribute of this name, got several; rename them in the kernel's "
                "export"
            )
    if faults:
        raise ValueError(_attributes_text(function, faults))


def _check_attributes(function: Function, given: dict[str, Any]) -> dict[str, Any]:
    """The attributes as MindSpore carries them. Raises TypeError with all that is wrong."""
    carried = {}
    faults = {}
    for name, value in given.items():
        try:
            carried[name] = None if value is None else _carried(value)
        except _Uncarriable as fault:
            faults[name] = str(fault)
    faults = function.attribute_faults(carried | dict.fromkeys(faults)) | faults
    if faults:
        raise TypeError(_attributes_text(function, faults))
    return {name: value for name, value in carried.items() if value is not None}


# ===--- gradients ---===


@functools.cache
def _source_folder() -> Path:
    """A folder that goes when the program ends."""
    folder = tempfile.TemporaryDirectory(prefix="aten_bridge_")
    atexit.register(folder.cleanup)
    return Path(folder.name)


_bprop_numbers = itertools.count()


@functools.cache
def _bprop_maker(parameters: str, arguments: str, gradients: str) -> Callable:
    """A function that makes a `bprop` of these texts.

    Graph mode compiles the source of a `bprop`: it must be in a file, with one parameter for each
    input, and what it calls must be in its closure or module (MindSpore 2.10).
    """
    source = (
        "def make(gradient, zeros_like):\n"
        f"    def bprop({parameters}out, dout):\n"
        f"        gradients = gradient({arguments})\n"
        f"        return ({gradients})\n"
        "    return bprop\n"
    )
    file = _source_folder() / f"bprop_{next(_bprop_numbers)}.py"
    file.write_text(source)
    namespace: dict[str, Any] = {"__name__": __name__}
    exec(compile(source, str(file), "exec"), namespace)
    return namespace["make"]


class _MissingGradient(ops.PrimitiveWithInfer):
    """The gradient of an operator that has none: an error where a graph needs it.

    Without a `bprop` MindSpore 2.10 says "Illegal primitive: Primitive Custom's bprop not defined".
    """

    def __init__(self, text: str):
        super().__init__("MissingGradient")
        self._text = text

    def __infer__(self, *args: dict[str, Any]) -> dict[str, Any]:
        raise ValueError(self._text)


def _is_names(grad: Any) -> bool:
    names = (grad,) if isinstance(grad, str) else grad
    return isinstance(names, tuple) and bool(names) and all(isinstance(n, str) for n in names)


# ===--- operators ---===

# Written by the module into each operator, for the library and for MindSpore's cache.
_INPUTS = "aten_bridge_inputs"  # kInputsAttribute of aten_bridge.h
_COUNTED = "aten_bridge_counted"  # kCountedAttribute of aten_bridge.h
_OUTPUTS = "aten_bridge_outputs"
_CALL = "aten_bridge_call"
_SERIAL_NUMBER = "aten_bridge_serial_number"

_serial_numbers = itertools.count()

_MAX_OUTCOMES = 1024  # of one operator


class _Inputs(NamedTuple):
    """The inputs of a call, those in tuples one by one."""

    texts: tuple[str, ...]  # as `kInputsAttribute` has them, or a _Fault
    shapes: tuple[tuple[int, ...] | None, ...]  # of tensors
    layout: tuple[int | None, ...]  # for each argument: None, or the length of a tuple

    @property
    def is_dynamic(self) -> bool:
        return any(shape and min(shape) < 0 for shape in self.shapes)


class _Fault(str):
    """In place of an input's text: what was expected and got."""


def _is_tensor(text: str) -> bool:
    return not text.startswith(("none", "#"))


class _Outcome(NamedTuple):
    """The result of an inference."""

    shape: Any
    dtype: Any
    inputs_text: str
    outputs_text: str
    is_dynamic: bool


def _number_text(dtype: str, value: Any) -> str:
    # The header reads a value of these three; others are not known to come from Python.
    if value is None or dtype not in ("bool", "int64", "float32"):
        return f"#{dtype}"
    try:
        value = _number(value) if dtype != "bool" else value
    except _Uncarriable as fault:
        return _Fault(fault)
    if dtype == "float32":
        value = struct.unpack("<i", struct.pack("<f", value))[0]
    return f"#{dtype}={int(value)}"


def _tensor_text(dtype: Any, shape: Sequence[int]) -> str:
    return _NAMES.get(dtype) or _Fault(
        f'expected {"|".join(_DTYPES)}, got "{str(dtype).lower()}" with shape {list(shape)}'
    )


def _brief(value: Any, dtype: Any = None) -> str:
    """A value for an error text; graph mode may know no more than the dtype of a tensor."""
    if isinstance(value, tuple | list):
        dtypes = dtype if isinstance(dtype, tuple | list) else [None] * len(value)
        texts = [_brief(*element) for element in zip(value, dtypes, strict=True)]
        return f"({', '.join(texts)}{',' if len(texts) == 1 else ''})"
    if isinstance(value, ms.Tensor) or isinstance(dtype, TensorType):
        return "Tensor"
    return repr(value)


def _no_tensor(value: Any) -> _Fault:
    return _Fault(
        f"expected a tensor, None or a number, got {_brief(value)}; give it to kernel() as an "
        "attribute"
    )


def _foreign_array(value: Any) -> _Fault | None:
    """What to do with an array of another library."""
    if isinstance(value, np.ndarray | np.generic):
        return _Fault("expected a tensor, got a NumPy array; give it as mindspore.Tensor(array)")
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return _Fault(
            "expected a tensor of MindSpore's, got one of PyTorch's; give it as "
            "mindspore.Tensor(tensor.detach().cpu().numpy())"
        )
    return None


def _no_tuple(value: Any, dtype: Any = None) -> _Fault:
    return _Fault(
        f"expected a tuple of one tensor or more, got {_brief(value, dtype)}; give numbers to "
        "kernel() as an attribute, and None as an argument of its own"
    )


class _Reader:
    """Collects the inputs of a call."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.shapes: list[tuple[int, ...] | None] = []
        self.layout: list[int | None] = []

    def add(self, text: str, shape: tuple[int, ...] | None = None) -> None:
        self.texts.append(text)
        self.shapes.append(shape)
        self.layout.append(None)

    def add_tuple(self, tensors: list[tuple[str, tuple[int, ...]]]) -> None:
        for text, shape in tensors:
            self.texts.append(text)
            self.shapes.append(shape)
        self.layout.append(len(tensors))

    def inputs(self) -> _Inputs:
        return _Inputs(tuple(self.texts), tuple(self.shapes), tuple(self.layout))


def _read_infer(arguments: Sequence[dict[str, Any]]) -> _Inputs:
    """The inputs as MindSpore gives them to __infer__: their shapes, dtypes and known values."""
    reader = _Reader()
    for argument in arguments:
        dtype, shape, value = argument["dtype"], argument["shape"], argument["value"]
        if isinstance(dtype, TensorType):
            shape = tuple(shape)
            reader.add(_tensor_text(dtype.element_type(), shape), shape)
        elif dtype is None:
            reader.add("none")
        elif isinstance(dtype, tuple | list):
            if dtype and all(isinstance(element, TensorType) for element in dtype):
                reader.add_tuple(
                    [
                        (_tensor_text(element.element_type(), sizes), tuple(sizes))
                        for element, sizes in zip(dtype, shape, strict=True)
                    ]
                )
            else:
                reader.add(_no_tuple(value, dtype))
        elif dtype in _NAMES:
            reader.add(_number_text(_NAMES[dtype], value))
        elif isinstance(dtype, type(ms.tuple_) | type(ms.list_)):
            reader.add(
                _Fault(
                    "expected a tuple of a length that is known when the graph is compiled, got "
                    "one of any length; leave out mutable()'s dynamic_len"
                )
            )
        else:
            reader.add(_no_tensor(value))
    return reader.inputs()


def _read_call(arguments: Sequence[Any]) -> _Inputs:
    """The same from the arguments of a call in PyNative mode."""
    reader = _Reader()
    for argument in arguments:
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
            if argument and all(isinstance(element, ms.Tensor) for element in argument):
                reader.add_tuple(
                    [
                        (_tensor_text(element.dtype, element.shape), element.shape)
                        for element in argument
                    ]
                )
            else:
                reader.add(_no_tuple(argument))
        else:
            reader.add(_foreign_array(argument) or _no_tensor(argument))
    return reader.inputs()


class Kernel(ops.Custom):
    """An operator over a kernel. Made by `kernel`."""

    # MindSpore compiles a clone wherever the operator stands in a graph (2.10), so that what a
    # compilation leaves in it, such as input_is_dynamic_shape, meets no other.
    __setattr_flag__ = True

    _function: Function | None = None  # while MindSpore's constructor runs

    def __init__(
        self,
        path_and_name: str | Path,
        grad: Any = None,
        out_shape: Any = None,
        out_dtype: Any = None,
        attributes: dict[str, Any] | None = None,
        forward: Kernel | None = None,
    ):
        """Use `kernel`. `forward` is the operator whose gradients this one computes."""
        path, name = split(path_and_name)
        function = Function(open_library(path), name)
        _check_names(function)
        self._check_out(function, out_shape, out_dtype, forward)
        attributes = _check_attributes(function, attributes or {})
        # The shape and the dtype are never used: `__infer__` is overridden. With None, MindSpore
        # would ask the library's hooks alone, which do not see None and numbers, and graph mode
        # would make Python numbers of 0-dim results.
        super().__init__(
            f"{path}:{name}",
            out_shape=(1,),
            out_dtype=ms.float32,
            func_type="aot",
            bprop=grad
            if callable(grad) and not isinstance(grad, (ops.Primitive, nn.Cell))
            else None,
        )
        self._path = path
        self._function = function
        self._grad = grad
        self._given_out = None if out_shape is None else (out_shape, out_dtype)
        self._forward = forward
        self._bprops: dict[Any, Callable] = {}
        self._output_count: int | None = None  # in the network that is differentiated; see _bprop
        self._is_clone = False
        # In PyNative mode MindSpore keeps kernels by function, inputs and attributes: without a
        # number of its own, an operator would share state and outputs with another.
        self._set(_SERIAL_NUMBER, next(_serial_numbers))
        if function.description is not None and not function.description.takes_frame:
            self._set(_COUNTED, True)  # _check_inputs does so
        if function.description is not None and self._given_out is None:
            self._set("reg_op_name", name)  # without it, MindSpore calls no hook
            self._set("multi_output", function.description.gives_tuple)
        if function.description is not None and function.description.device == "cpu":
            self._run_on_cpu()
        self._gradient: ops.Primitive | None = None
        if isinstance(grad, ops.Primitive):
            self._gradient = grad
        elif _is_names(grad):
            self._gradient = self._make_gradient(grad, attributes)
        elif grad is not None and (not callable(grad) or isinstance(grad, nn.Cell)):
            raise TypeError(
                f"{name}: expected grad to be the name of a gradient kernel, a tuple of such "
                f"names, an operator or a function, got {grad!r}"
            )
        self._attributes: dict[str, Any] = {}
        self._set_attributes(attributes)

    def _run_on_cpu(self) -> None:
        """In a program on the GPU: MindSpore then brings the operands to the CPU."""
        if ms.get_context("device_target") != "CPU":
            self._set("primitive_target", "CPU")  # as set_device() does

    @staticmethod
    def _check_out(
        function: Function, out_shape: Any, out_dtype: Any, forward: Kernel | None
    ) -> None:
        description = function.description
        if (out_shape is None) != (out_dtype is None):
            given, missing = ("out_shape", "out_dtype")[:: 1 if out_dtype is None else -1]
            raise ValueError(
                f"{function.name}: expected out_shape and out_dtype together, got {given} alone; "
                f"give {missing} too, or neither for a kernel with a meta function"
            )
        if out_shape is None and forward is None and not (description and description.has_meta):
            raise ValueError(
                f"{function.name}: expected out_shape and out_dtype, or a kernel with a meta "
                "function, got neither; give both to kernel(), or export the kernel with "
                "aten_bridge::meta() or aten_bridge::meta(function)"
            )

    def _make_gradient(self, grad: str | tuple[str, ...], attributes: dict[str, Any]) -> Kernel:
        first, *others = (grad,) if isinstance(grad, str) else grad
        full_name = first if ":" in first else f"{self._path}:{first}"
        path, name = split(full_name)
        description = Function(open_library(path), name).description
        if description is not None:
            types = description.attribute_types
            own = self._function.description
            missing = [] if own is None else [n for n in own.attribute_types if n not in types]
            if description.is_gradient and missing:
                raise ValueError(
                    f"{name}: expected the attributes of {self._function.name}, got a gradient "
                    f"kernel without {or_list(missing)}; give ATEN_BRIDGE_EXPORT_GRAD the attr "
                    "options of ATEN_BRIDGE_EXPORT"
                )
            attributes = {key: value for key, value in attributes.items() if key in types}
        return Kernel(full_name, tuple(others) or None, attributes=attributes, forward=self)

    # ===--- attributes ---===

    def _set(self, name: str, value: Any) -> None:
        """Sets an attribute of MindSpore's, and no attribute of the Python object."""
        self.attrs[name] = value
        self.add_attr(name, value)

    def _remove(self, name: str) -> None:
        self.attrs.pop(name, None)
        self.del_attr(name)

    def _set_attributes(self, attributes: dict[str, Any]) -> None:
        """Sets attributes of the kernel."""
        self._attributes |= attributes
        for name, value in attributes.items():
            self._set(name, value)
        description = self._function.description
        types = {} if description is None else description.attribute_types
        self._marshalled = Marshalled(self._attributes, types)
        self._outcomes: dict[Any, _Outcome] = {}

    def add_prim_attr(self, name: str, value: Any) -> Kernel:
        """Sets an attribute, with `kernel`'s checks and errors where it is one of the kernel's.

        A graph that is compiled keeps the old value (MindSpore 2.10). The gradient's operator is
        changed too.
        """
        description = self._function.description if self._function else None
        if description is None or name not in description.attribute_types:
            return super().add_prim_attr(name, value)
        checked = _check_attributes(self._function, self._attributes | {name: value})
        if name in checked:
            self._set_attributes({name: checked[name]})
        elif self._attributes.pop(name, None) is not None:
            self._remove(name)
            self._set_attributes({})
        if _is_names(self._grad):
            self._gradient.add_prim_attr(name, value)
        return self

    # ===--- inference ---===

    def __call__(self, *args: Any) -> Any:
        """Calls the kernel in PyNative mode; graph mode compiles the operator instead."""
        # An error in `__infer__` destroys what MindSpore keeps for all operators, the state of
        # other kernels among it (2.10): it is raised here.
        inputs = _read_call(args)
        if self._given_out is None:
            self._infer(inputs)
        else:
            self._check_inputs(inputs)
        return super().__call__(*args)

    def __infer__(self, *args: dict[str, Any]) -> dict[str, Any]:
        """What MindSpore asks: shapes and dtypes of the outputs, before each call or graph."""
        inputs = _read_infer(args)
        if self._given_out is None:
            outcome = self._infer(inputs)
        else:
            outcome = self._apply_given_out(inputs, args)
        if self._given_out is not None:
            # What a function returns may change, but the inputs are all of the key.
            self._set(_OUTPUTS, outcome.outputs_text)
        if outcome.is_dynamic:
            if not isinstance(outcome.shape, tuple) and self._function.description.gives_tuple:
                raise ValueError(
                    f"{self._function.name}: expected a tuple of two tensors or more where sizes "
                    "are not known when the graph is compiled, got one tensor; call the operator "
                    "with tensors of known sizes, or add an empty one"
                )
            self._record(_INPUTS, outcome.inputs_text)
            self._record("cpp_infer_shape", True)
        if self._is_clone and self.bprop is None:
            output_count = len(outcome.shape) if isinstance(outcome.shape, tuple) else None
            self._record(_CALL, json.dumps([inputs, output_count]))
        return {"shape": outcome.shape, "dtype": outcome.dtype, "value": None}

    def _record(self, name: str, value: Any) -> None:
        """Sets an attribute of one node of a graph, as MindSpore notes during `__infer__` (2.10).

        It must not stay: before `__infer__`, MindSpore would ask the library's hook about the next
        node, with the attributes of this one.
        """
        self._set(name, value)
        self._remove(name)

    def _infer(self, inputs: _Inputs) -> _Outcome:
        key = inputs[:2]
        outcome = self._outcomes.get(key)
        if outcome is None:
            self._check_inputs(inputs)
            description = self._function.description
            if description is not None and description.has_meta:
                outputs = self._function.infer(inputs.texts, inputs.shapes, self._marshalled)
            else:
                self._check_static(inputs)
                outputs = self._outputs_like_inputs(inputs)
            outcome = self._outcome(
                inputs,
                [list(shape) for _, shape in outputs],
                [_TENSOR_TYPES[dtype] for dtype, _ in outputs],
            )
            if len(self._outcomes) == _MAX_OUTCOMES:
                self._outcomes.clear()
            self._outcomes[key] = outcome
        return outcome

    def _outcome(self, inputs: _Inputs, shapes: list[list[int]], dtypes: list[Any]) -> _Outcome:
        one = len(shapes) == 1
        return _Outcome(
            shape=shapes[0] if one else tuple(shapes),
            dtype=dtypes[0] if one else tuple(dtypes),
            inputs_text=";".join(inputs.texts),
            outputs_text=f"{shapes} {dtypes}",
            is_dynamic=inputs.is_dynamic,
        )

    def _check_gpu(self) -> None:
        target = ms.get_context("device_target")
        if target != "GPU":
            raise ValueError(
                f"{self._function.name}: expected a program on the GPU, got device_target "
                f"{target!r}; the kernel was built for CUDA: use one that was built for the CPU"
            )

    def _check_inputs(self, inputs: _Inputs) -> None:
        description = self._function.description
        if description is not None and description.device == "cuda":
            self._check_gpu()
        if self._forward is None and (description is None or description.takes_frame):
            return  # what it takes is its own affair
        name = self._function.name
        faults = [
            f"{name}: input {i}: {text}"
            for i, text in enumerate(inputs.texts)
            if isinstance(text, _Fault)
        ]
        count_fault = self._function.count_fault(len(inputs.texts))
        if faults or count_fault:
            raise TypeError("\n".join(filter(None, [count_fault, *faults])))

    def _check_static(self, inputs: _Inputs) -> None:
        if inputs.is_dynamic:
            operands = "; ".join(
                f"input {i}: {text}{'' if shape is None else f' {list(shape)}'}"
                for i, (text, shape) in enumerate(zip(inputs.texts, inputs.shapes, strict=True))
            )
            raise ValueError(
                f"{self._function.name}: expected inputs of known sizes, or a kernel with a meta "
                f"function, got {operands}; export the kernel with aten_bridge::meta() or "
                "aten_bridge::meta(function)"
            )

    def _apply_given_out(self, inputs: _Inputs, args: Sequence[dict[str, Any]]) -> _Outcome:
        """What `out_shape` and `out_dtype` say."""
        name = self._function.name
        self._check_inputs(inputs)
        self._check_static(inputs)
        shape, dtype = self._given_out
        shape = shape(*(arg["shape"] for arg in args)) if callable(shape) else shape
        dtype = dtype(*(arg["dtype"] for arg in args)) if callable(dtype) else dtype
        if not isinstance(shape, tuple | list):
            raise TypeError(f"{name}: expected out_shape to be a shape, got {shape!r}")
        several = any(isinstance(element, tuple | list) for element in shape)
        shapes = list(shape) if several else [shape]
        dtypes = list(dtype) if isinstance(dtype, tuple | list) else [dtype]
        if len(shapes) != len(dtypes):
            raise ValueError(
                f"{name}: expected as many shapes as dtypes, got {len(shapes)} from out_shape and "
                f"{len(dtypes)} from out_dtype"
            )
        for element in dtypes:
            if not isinstance(element, Type):
                raise TypeError(
                    f"{name}: expected out_dtype to be a dtype, such as mindspore.float32, got "
                    f"{element!r}"
                )
        tensor_types = [
            element if isinstance(element, TensorType) else TensorType(element)
            for element in dtypes
        ]
        return self._outcome(inputs, [list(element) for element in shapes], tensor_types)

    # ===--- gradients ---===

    def _has_gradient(self, texts: Sequence[str], gradient: Description | None) -> list[bool]:
        """For each input, whether such a gradient kernel has an output for it.

        A kernel of a fixed number of outputs may have one for each tensor that could be given,
        also where None is, as those of ATEN_BRIDGE_EXPORT_GRAD have; one over a CallFrame has none
        for None.
        """
        given = [_is_tensor(text) for text in texts]
        kinds = self._function.parameter_kinds(len(texts))
        if kinds is None:
            return given
        possible = [kind.startswith("tensor") for kind in kinds]
        if gradient is not None and (gradient.is_gradient or sum(possible) == gradient.outputs):
            return possible
        return [a and b for a, b in zip(given, possible, strict=True)]

    def _outputs_like_inputs(self, inputs: _Inputs) -> list[tuple[str, Sequence[int]]]:
        """The outputs of a gradient kernel that does not tell them: those of the forward inputs."""
        description = self._function.description
        count = len(inputs.texts) - (self._forward._output_count or 1)
        mask = self._forward._has_gradient(inputs.texts[:count], description)
        return [
            ("float32", [0]) if shape is None else (text, shape)
            for text, shape, has in zip(inputs.texts, inputs.shapes, mask, strict=False)
            if has
        ]

    def get_bprop(self) -> Callable | None:
        """What MindSpore differentiates the operator with; it asks after `__infer__`."""
        if self.bprop is not None:
            return self.bprop
        if not self._is_clone:
            return self._pynative_bprop
        inputs, output_count = json.loads(self.get_attr_dict()[_CALL])
        return self._bprop(_Inputs(*map(tuple, inputs)), output_count)

    def _pynative_bprop(self, *args: Any) -> Any:
        """A `bprop` for any number of inputs, which graph mode cannot compile."""
        if self._gradient is None:
            raise ValueError(self._missing_gradient())
        *inputs, _, dout = args
        output_count = len(dout) if isinstance(dout, tuple) else None
        return self._bprop(_read_call(inputs), output_count)(*args)

    def _bprop(self, inputs: _Inputs, output_count: int | None) -> Callable:
        """A `bprop` for a network with such inputs and a tuple of so many outputs; None: one."""
        self._output_count = output_count
        key = (inputs.layout, tuple(map(_is_tensor, inputs.texts)), output_count)
        if key not in self._bprops:
            self._bprops[key] = self._make_bprop(inputs, output_count)
        return self._bprops[key]

    def _make_bprop(self, inputs: _Inputs, output_count: int | None) -> Callable:
        texts, _, layout = inputs
        description = None
        if isinstance(self._gradient, Kernel):
            description = self._gradient._function.description
        mask = self._has_gradient(texts, description)
        outputs = 0 if description is None or description.is_gradient else description.outputs
        if outputs not in (0, sum(mask)):  # 0: any number
            raise ValueError(
                f"{self._gradient._function.name}: expected as many outputs as "
                f"{self._function.name} has tensors among its inputs, {sum(mask)}, got {outputs}"
            )
        names = [
            name
            for i, length in enumerate(layout)
            for name in ([f"a{i}"] if length is None else [f"a{i}[{j}]" for j in range(length)])
        ]
        gradients = (f"gradients[{i}]" for i in itertools.count())
        if sum(mask) == 1:
            gradients = iter(["gradients"])
        results = []
        for name, text, has in zip(names, texts, mask, strict=True):
            gradient = next(gradients) if has else f"zeros_like({name})"  # a tensor for a number
            results.append(gradient if _is_tensor(text) else "None")
        entries = iter(results)
        tuples = [
            next(entries)
            if length is None
            else f"({''.join(f'{next(entries)}, ' for _ in range(length))})"
            for length in layout
        ]
        douts = ["dout"]
        if output_count is not None:
            douts = [f"dout[{i}]" for i in range(output_count)]
        make = _bprop_maker(
            "".join(f"a{i}, " for i in range(len(layout))),
            ", ".join([*names, *douts]),
            "".join(f"{entry}, " for entry in tuples),
        )
        gradient = self._gradient or _MissingGradient(self._missing_gradient())
        return make(gradient, ops.zeros_like)

    def _missing_gradient(self) -> str:
        if self._forward is None:
            cure = 'name one with grad="...", as in kernel("./a.so:Cube", grad="CubeGrad")'
        else:
            cure = 'name one more, as in kernel("./a.so:Cube", grad=("CubeGrad", "CubeGradGrad"))'
        return (
            f"{self._function.name}: expected an operator with a gradient kernel where a network "
            f"is differentiated, got one without; {cure}"
        )

    # ===--- copies ---===

    def __deepcopy__(self, memo: dict[int, Any]) -> Kernel:
        """An operator of its own, without the state of this one."""
        out_shape, out_dtype = self._given_out or (None, None)
        copied = Kernel(
            f"{self._path}:{self._function.name}",
            self._grad,
            out_shape,
            out_dtype,
            self._attributes,
            self._forward,
        )
        for name, value in self.attrs.items():
            if name not in copied.attrs and name != _OUTPUTS:
                copied.add_prim_attr(name, value)
        return copied

    def _clone(self) -> Kernel:
        cloned = copy.deepcopy(self)
        cloned._is_clone = True
        if hasattr(self, "instance_name"):
            cloned.set_prim_instance_name(self.instance_name)
        return cloned

    def __repr__(self) -> str:
        arguments = [repr(f"{self._path}:{self._function.name}")]
        arguments += [f"{name}={value!r}" for name, value in self._attributes.items()]
        if self._grad is not None:
            arguments.append(f"grad={self._grad!r}")
        return f"kernel({', '.join(arguments)})"

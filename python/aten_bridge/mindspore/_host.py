"""What MindSpore is for kernels: what it carries to them, and where it finds them."""

from __future__ import annotations

import ctypes
import functools
import math
import os
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import nn, ops
from mindspore.common.dtype import TensorType

from aten_bridge import _library
from aten_bridge._codec import AttributeConversionError, AttributeConverter, dtypes_of
from aten_bridge._function import Function, Host, open_kernel
from aten_bridge._library import open_library
from aten_bridge._text import as_float, format_value

# ===--- dtypes ---===

DTYPES = dtypes_of(ms)  # by the bridge's names
NAMES = {dtype: name for name, dtype in DTYPES.items()}
OTHERS = (ms.hifloat8, ms.qint4x2)  # MindSpore's, which PyTorch lacks
# With ms.float32 in place of its tensor type, graph mode makes Python numbers of 0-dim results.
TENSOR_TYPES = {name: TensorType(dtype) for name, dtype in DTYPES.items()}

# ===--- modes ---===

# GRAPH_MODE or PYNATIVE_MODE. ms.get_context("mode") takes 14 us (2.10).
execution_mode = getattr(ms.context, "_get_mode", functools.partial(ms.get_context, "mode"))

# ===--- attributes ---===


def plain_value(value: Any) -> Any:
    """The plain Python value, where there is one, of NumPy's and MindSpore's."""
    # MindSpore has no getter for an np.int32, and carries np.bool_ and np.float64 as Python's.
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic)):
        return np.dtype(value).name
    try:
        return NAMES.get(value, value)
    except TypeError:  # not hashable
        return value


def _float32(value: Any) -> float:
    """A real number, which MindSpore carries in 32 bits."""
    number = as_float(value)
    single = ctypes.c_float(number).value
    # The number may be infinite, or zero, where the value is not.
    if (math.isinf(single) and value != single) or (single == 0 and value != 0):
        raise AttributeConversionError(
            "a float that a float32 can hold, as which MindSpore carries it", format_value(value)
        )
    return number


CONVERTER = AttributeConverter(plain_value, _float32)


# Names that an attribute cannot have in an operator of MindSpore's (2.10): ops.Custom sets them.
_CUSTOMS = {
    *("attr_names", "autodiff", "cpp_infer_shape", "cpp_infer_type", "func_name", "func_type"),
    *("imply_path", "input_names", "multi_output", "output_names", "pure_input_names"),
    *("reg_op_name", "uniq_name"),
}
_TAKEN = _CUSTOMS | {
    # MindSpore writes or reads them where a graph, or a vmap, is compiled.
    *("batch_rank", "dyn_input_sizes", "input_is_dynamic_shape", "output_is_dynamic_shape"),
    *("data_format", "primitive_target"),  # the first becomes "format", the second is checked
    # Parameters of `kernel`.
    *("grad", "has_side_effect", "out_shape", "out_dtype"),
}


def check_name(function: Function, name: Any) -> None:
    """Raises TypeError unless an operator can be given an attribute of this name."""
    if not isinstance(name, str):
        raise TypeError(
            f"{function.name}: expected the name of an attribute as a str, got {format_value(name)}"
        )
    if fault := HOST.name_fault(name, "leave it as it is", _CUSTOMS):
        raise function.attribute_error(TypeError, {name: fault})


# ===--- kernels ---===


def parse_target(path_and_name: Any) -> tuple[str, str]:
    """An absolute path, of a kind that MindSpore can use, and a name."""
    path, name = _library.parse_target(path_and_name)
    if ":" in path:
        raise ValueError(
            f"{path_and_name!r}: expected one colon, between path and name, got the path {path!r}, "
            "which MindSpore would divide at its colon; move or link the library elsewhere"
        )
    if os.path.realpath(path).endswith(("cu", "cc", "cpp")):
        raise ValueError(
            f"{path}: expected a compiled library whose name ends in .so, got a name in cu, cc or "
            "cpp, which MindSpore takes for source code; compile it with aten_bridge_add_kernel, "
            "or rename the library"
        )
    return path, name


def open_function(path_and_name: str | Path) -> Function:
    """The kernel of a library, as `kernel` names it."""
    path, name = parse_target(path_and_name)
    function = open_kernel(open_library(path), name)
    hosts = ["MINDSPORE"] if function.description is None else function.description.hosts
    # Called with what MindSpore passes to others, such a kernel would end the process.
    if "MINDSPORE_PLUGIN" in hosts:
        raise ValueError(
            f"{function.full_name}: expected a kernel for ops.Custom, got one that HOST "
            "MINDSPORE_PLUGIN makes of MindSpore's own operator; let MS_OP_PLUGIN_PATH name the "
            "library and call that operator, or build the kernel with HOST MINDSPORE"
        )
    if "OTHER" in hosts:
        raise ValueError(
            f"{function.full_name}: expected a kernel for ops.Custom, got one for a host that its "
            "source defines; build it without ATEN_BRIDGE_HOST"
        )
    if "MINDSPORE" not in hosts:
        raise ValueError(
            f"{function.full_name}: expected a kernel for MindSpore, got one that was built for "
            "other hosts; add MINDSPORE to the HOSTS of its aten_bridge_add_kernel"
        )
    return function


def is_bprop(grad: Any) -> bool:
    """Whether it is a function as MindSpore's `bprop`."""
    return callable(grad) and not isinstance(grad, ops.Primitive | nn.Cell | type)


HOST = Host(
    converter=CONVERTER,
    taken_names=_TAKEN,
    taken_by="MindSpore or kernel()",
    open_function=open_function,
    is_exact=False,
    takes_gradient=lambda grad: isinstance(grad, ops.Primitive) or is_bprop(grad),
    gradients="the name of a gradient kernel, a tuple of such names, an operator or a function",
    results="out_shape and out_dtype",
    operands="the arguments of the call, out_shape and out_dtype with the kernel",
    at_once="call it outside of a graph",
    largest="out_shape, the largest shapes of its results, and out_dtype",
    padded_gradient="leave that out, outside of a graph",
    factory="make its result with mindspore.ops, mindspore.mint or NumPy",
)

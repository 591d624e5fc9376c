"""MindSpore as the host of kernel libraries: networks of kernels, and checks of what they give."""

import itertools
import os
import re
from pathlib import Path

import numpy as np
import pytest
from mindspore import nn, ops

BUILD = Path(os.environ["ATEN_BRIDGE_BUILD_DIR"]).resolve()
KERNELS = BUILD / "tests/test_kernels.so"
KERNELS_RETURN = BUILD / "tests/test_kernels_return.so"
GRADIENTS = BUILD / "tests/test_gradients.so"
MINDSPORE = BUILD / "tests/test_mindspore.so"
TUTORIAL = BUILD / "tests/test_tutorial.so"
LEAKY_RELU = BUILD / "examples/leaky_relu/leaky_relu.so"

# ===--- networks ---===


def first(*inputs):
    """As out_shape or out_dtype: the output is like the first input."""
    return inputs[0]


def pair(a, b):
    """The same for two outputs: each is like the input in its place."""
    return a, b


serial_numbers = itertools.count()


def custom(name, library=KERNELS, out_shape=first, out_dtype=first):
    operator = ops.Custom(f"{library}:{name}", out_shape, out_dtype, func_type="aot")
    # Without an attribute of its own, PyNative mode would take it for an earlier operator of the
    # same name and inputs, and return that one's shape and dtype.
    operator.add_prim_attr("serial_number", next(serial_numbers))
    return operator


class Net(nn.Cell):
    def __init__(self, operator):
        super().__init__()
        self.operator = operator

    def construct(self, *inputs):
        return self.operator(*inputs)


class Chain(nn.Cell):
    def __init__(self, inner, outer):
        super().__init__()
        self.inner = inner
        self.outer = outer

    def construct(self, x):
        return self.outer(self.inner(x))


def call(name, *inputs, **options):
    """The result of a new network of one kernel; the options are those of `custom`."""
    return Net(custom(name, **options))(*inputs)


# ===--- results and errors ---===


def assert_same(result, expected):
    """Shape, dtype and every bit of a MindSpore tensor against a NumPy array or a torch tensor."""
    result, expected = result.asnumpy(), np.asarray(expected)
    np.testing.assert_array_equal(result, expected, strict=True)
    assert result.tobytes() == expected.tobytes()  # tells 0.0 from -0.0


# What the bridge accepts, as its messages list it.
DTYPES = (
    "bool|uint8|int8|uint16|int16|uint32|int32|uint64|int64|float16|bfloat16|float32|float64|"
    "complex64|complex128|float8e4m3fn|float8e5m2"
)

RULE = "-" * 52
STACK = f"\n\n{RULE}\n- C++ Call Stack: (For framework developers)\n{RULE}\n"


def host_error(run):
    """The text of the error that `run` ends with, without MindSpore's list of its own sources."""
    with pytest.raises(RuntimeError) as error:
        run()
    text, separator, sources = str(error.value).rpartition(STACK)
    assert separator == STACK
    assert re.fullmatch(r"\S+/(custom_aot_cpu_kernel\.cc|call\.h):\d+ \w+\n", sources)
    return text


def bridge_error(run, library=KERNELS):
    """All that the kernel library says in the error that `run` ends with."""
    text = host_error(run)
    prefix = (
        "For 'Custom' on CPU, operator failed when executing user defined file "
        f"{library}! Error message is "
    )
    assert text.startswith(prefix)
    return text.removeprefix(prefix)


def error_text(kind, run):
    """The text of the exception of that very type that `run` ends with."""
    with pytest.raises(kind) as error:
        run()
    assert error.type is kind
    return str(error.value)

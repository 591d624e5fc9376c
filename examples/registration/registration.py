"""Three ways to give MindSpore a gradient: by name, by a function, and with registration."""

import sys

import mindspore as ms
import numpy as np
import torch
from mindspore import nn, ops
from mindspore.ops import CustomRegOp, DataType

from aten_bridge.mindspore import kernel
from compare import compare


# [grad]
def square_by_name(library):
    return kernel(f"{library}:Power", grad="PowerGrad", exponent=2.0)


# [/grad]


# [bprop]
def square_by_function(library):
    gradient = ops.Custom(
        f"{library}:PowerGrad", lambda x, dy: x, lambda x, dy: x, func_type="aot"
    ).add_prim_attr("exponent", 2.0)

    def bprop(x, y, dy):
        return (gradient(x, dy),)

    return ops.Custom(
        f"{library}:Power", lambda x: x, lambda x: x, func_type="aot", bprop=bprop
    ).add_prim_attr("exponent", 2.0)


# [/bprop]


# [reg_info]
def power_info(name, *inputs):
    """What MindSpore should know of a kernel: it then refuses int32 before the kernel is called."""
    info = CustomRegOp(name)
    for index, input_name in enumerate(inputs):
        info.input(index, input_name)
    info.output(0, "result")
    info.attr("exponent", "required", "float", value=2.0)
    for dtype in (DataType.F32_Default, DataType.F64_Default):
        info.dtype_format(*[dtype] * len(inputs), dtype)
    return info.target("CPU").get_op_info()


def square_by_registration(library):
    # Without out_shape and out_dtype, MindSpore asks the kernels for shapes and dtypes.
    gradient = ops.Custom(
        f"{library}:PowerGrad", func_type="aot", reg_info=power_info("PowerGrad", "x", "dy")
    )

    def bprop(x, y, dy):
        return (gradient(x, dy),)

    return ops.Custom(
        f"{library}:Power", func_type="aot", bprop=bprop, reg_info=power_info("Power", "x")
    )


# [/reg_info]


class Net(nn.Cell):
    def __init__(self, square):
        super().__init__()
        self.square = square

    def construct(self, x):
        return self.square(x)


def main(library):
    x = np.array([1, 4, 9], np.float32)
    leaf = torch.tensor(x, requires_grad=True)
    (expected,) = torch.autograd.grad((leaf**2).sum(), leaf)
    print(f"The gradient of the square of {x}: {expected.numpy()}")
    for make in (square_by_name, square_by_function, square_by_registration):
        compare(make.__name__, lambda make=make: ms.grad(Net(make(library))), (x,), expected)


if __name__ == "__main__":
    ms.set_device("CPU")
    main(sys.argv[1] if len(sys.argv) > 1 else "./registration.so")

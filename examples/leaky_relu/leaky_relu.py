"""LeakyRelu of MindSpore's tutorial: an ATen operator as an operator of MindSpore's.

Run with the path of the library: python leaky_relu.py ./leaky_relu.so
"""

import sys

import mindspore as ms
import numpy as np
from mindspore import nn, ops

library = sys.argv[1] if len(sys.argv) > 1 else "./leaky_relu.so"


# [net]
class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.leaky_relu = ops.Custom(
            library + ":LeakyRelu",
            out_shape=lambda x: x,
            out_dtype=lambda x: x,
            func_type="aot",
        )

    def construct(self, x):
        return self.leaky_relu(x)


# [/net]


if __name__ == "__main__":
    ms.set_device("CPU")
    x = ms.Tensor(np.array([[0.0, -0.1], [-0.2, 1.0]], np.float32))
    for name, mode in (("graph", ms.GRAPH_MODE), ("PyNative", ms.PYNATIVE_MODE)):
        ms.set_context(mode=mode)
        print(f"LeakyRelu in MindSpore, {name} mode:")
        print(Net()(x))

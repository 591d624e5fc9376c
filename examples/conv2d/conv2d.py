"""conv2d with attributes and an optional bias."""

import sys

import mindspore as ms
import numpy as np
import torch
from mindspore import nn

from aten_bridge.mindspore import kernel
from compare import compare


# [net]
class Net(nn.Cell):
    def __init__(self, library):
        super().__init__()
        self.conv2d = kernel(f"{library}:Conv2d", stride=[2, 1], padding=[1, 0], groups=2)

    def construct(self, x, weight, bias):
        return self.conv2d(x, weight, bias)


# [/net]


def main(library):
    random = np.random.default_rng(0)
    x = random.standard_normal((2, 4, 8, 8), np.float32)
    weight = random.standard_normal((6, 2, 3, 3), np.float32)
    bias = random.standard_normal(6, np.float32)
    for b in (bias, None):
        expected = torch.conv2d(
            torch.from_numpy(x),
            torch.from_numpy(weight),
            None if b is None else torch.from_numpy(b),
            stride=(2, 1),
            padding=(1, 0),
            groups=2,
        )
        title = "conv2d" if b is not None else "conv2d without bias"
        compare(title, lambda: Net(library), (x, weight, b), expected)


if __name__ == "__main__":
    ms.set_device("CPU")
    main(sys.argv[1] if len(sys.argv) > 1 else "./conv2d.so")

"""Any number of tensors in a row."""

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
        self.cat = kernel(f"{library}:Cat", dim=-1)

    def construct(self, x, y, z):
        return self.cat(x, y, z), self.cat(x, y)


# [/net]


def main(library):
    x, y, z = (np.full((2, size), size, np.float32) for size in (1, 2, 3))
    tensors = [torch.from_numpy(a) for a in (x, y, z)]
    expected = torch.cat(tensors, -1), torch.cat(tensors[:2], -1)
    compare("cat", lambda: Net(library), (x, y, z), expected)


if __name__ == "__main__":
    ms.set_device("CPU")
    main(sys.argv[1] if len(sys.argv) > 1 else "./cat.so")

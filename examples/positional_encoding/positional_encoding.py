"""Positional encoding from a table that is built once."""

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
        self.encode = kernel(f"{library}:PositionalEncoding", max_length=100)

    def construct(self, x):
        return self.encode(x)


# [/net]


def main(library):
    length, width = 100, 16
    angle = torch.arange(length)[:, None] * torch.exp(
        torch.arange(0, width, 2) * (-np.log(10000.0) / width)
    )
    table = torch.stack((angle.sin(), angle.cos()), dim=2).reshape(length, width)
    x = np.random.default_rng(0).standard_normal((2, 7, width), np.float32)
    compare("positional_encoding", lambda: Net(library), (x,), torch.from_numpy(x) + table[:7])


if __name__ == "__main__":
    ms.set_device("CPU")
    main(sys.argv[1] if len(sys.argv) > 1 else "./positional_encoding.so")

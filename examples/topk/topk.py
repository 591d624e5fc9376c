"""The largest elements and where they are, two outputs."""

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
        self.topk = kernel(f"{library}:Topk", k=3)

    def construct(self, x):
        values, indices = self.topk(x)
        return values, indices


# [/net]


def main(library):
    x = np.random.default_rng(0).standard_normal((4, 16), np.float32)
    compare("topk", lambda: Net(library), (x,), tuple(torch.topk(torch.from_numpy(x), 3)))


if __name__ == "__main__":
    ms.set_device("CPU")
    main(sys.argv[1] if len(sys.argv) > 1 else "./topk.so")

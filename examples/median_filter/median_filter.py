"""Medians of neighbours, with memory to sort them in."""

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
        self.median_filter = kernel(f"{library}:MedianFilter", window=5)

    def construct(self, x):
        return self.median_filter(x)


# [/net]


def main(library):
    x = np.random.default_rng(0).standard_normal(1000, np.float32)
    expected = torch.from_numpy(x).unfold(0, 5, 1).median(1).values
    compare("median_filter", lambda: Net(library), (x,), expected)


if __name__ == "__main__":
    ms.set_device("CPU")
    main(sys.argv[1] if len(sys.argv) > 1 else "./median_filter.so")

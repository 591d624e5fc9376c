"""Nearest neighbours by a loop of one's own."""

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
        self.nearest = kernel(f"{library}:Nearest")

    def construct(self, queries, points):
        return self.nearest(queries, points)


# [/net]


def main(library):
    random = np.random.default_rng(0)
    queries = random.standard_normal((1000, 8), np.float32)
    points = random.standard_normal((200, 8), np.float32)
    expected = torch.cdist(torch.from_numpy(queries), torch.from_numpy(points)).argmin(1)
    compare("nearest", lambda: Net(library), (queries, points), expected)
    compare(
        "nearest of no points",
        lambda: Net(library),
        (queries, points[:0]),
        -torch.ones(1000).long(),
    )


if __name__ == "__main__":
    ms.set_device("CPU")
    main(sys.argv[1] if len(sys.argv) > 1 else "./nearest.so")

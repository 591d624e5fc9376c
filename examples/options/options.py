"""Attributes, lists of inputs, several outputs, and sizes that are known only at run time."""

import sys

import mindspore as ms
import numpy as np
import torch
from mindspore import nn

from aten_bridge.mindspore import kernel
from compare import compare


# [attributes]
class Conv2d(nn.Cell):
    def __init__(self, library):
        super().__init__()
        self.conv2d = kernel(f"{library}:Conv2d", stride=[2, 1], padding=[1, 0], groups=2)

    def construct(self, x, weight, bias):
        return self.conv2d(x, weight, bias)


# [/attributes]


class Cat(nn.Cell):
    def __init__(self, library):
        super().__init__()
        self.cat = kernel(f"{library}:Cat", dim=-1)

    def construct(self, x, y, z):
        return self.cat(x, y, z), self.cat(x, y)


# [outputs]
class Topk(nn.Cell):
    def __init__(self, library):
        super().__init__()
        self.topk = kernel(f"{library}:Topk", k=3)

    def construct(self, x):
        values, indices = self.topk(x)
        return values, indices


# [/outputs]


# [shapes]
class Upsample(nn.Cell):
    def __init__(self, library):
        super().__init__()
        self.upsample = kernel(f"{library}:Upsample", scale=2.0)
        # Compiled once for images of every size.
        self.set_inputs(ms.Tensor(shape=[None, 3, None, None], dtype=ms.float32))

    def construct(self, x):
        return self.upsample(x)


# [/shapes]


def conv2d(library, random):
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
        compare(title, lambda: Conv2d(library), (x, weight, b), expected)


def cat(library):
    x, y, z = (np.full((2, size), size, np.float32) for size in (1, 2, 3))
    tensors = [torch.from_numpy(a) for a in (x, y, z)]
    expected = torch.cat(tensors, -1), torch.cat(tensors[:2], -1)
    compare("cat", lambda: Cat(library), (x, y, z), expected)


def topk(library, random):
    x = random.standard_normal((4, 16), np.float32)
    compare("topk", lambda: Topk(library), (x,), tuple(torch.topk(torch.from_numpy(x), 3)))


def upsample(library, random):
    net = Upsample(library)
    for sizes in ((1, 3, 8, 8), (2, 3, 5, 12)):
        x = random.standard_normal(sizes, np.float32)
        expected = torch.nn.functional.interpolate(
            torch.from_numpy(x), scale_factor=2.0, mode="bilinear"
        )
        compare("upsample", lambda: net, (x,), expected)


def main(library):
    random = np.random.default_rng(0)
    conv2d(library, random)
    cat(library)
    topk(library, random)
    upsample(library, random)


if __name__ == "__main__":
    ms.set_device("CPU")
    main(sys.argv[1] if len(sys.argv) > 1 else "./options.so")

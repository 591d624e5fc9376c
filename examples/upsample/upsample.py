"""Bilinear interpolation of images whose size is known only at run time."""

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
        self.upsample = kernel(f"{library}:Upsample", scale=2.0)
        # Compiled once for images of every size.
        self.set_inputs(ms.Tensor(shape=[None, 3, None, None], dtype=ms.float32))

    def construct(self, x):
        return self.upsample(x)


# [/net]


def main(library):
    random = np.random.default_rng(0)
    net = Net(library)
    for sizes in ((1, 3, 8, 8), (2, 3, 5, 12)):
        x = random.standard_normal(sizes, np.float32)
        expected = torch.nn.functional.interpolate(
            torch.from_numpy(x), scale_factor=2.0, mode="bilinear"
        )
        compare("upsample", lambda: net, (x,), expected)


if __name__ == "__main__":
    ms.set_device("CPU")
    main(sys.argv[1] if len(sys.argv) > 1 else "./upsample.so")

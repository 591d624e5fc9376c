"""Layer normalisation with and without weight and bias."""

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
        self.layer_norm = kernel(f"{library}:LayerNorm", eps=1e-6)

    def construct(self, x, weight=None, bias=None):
        return self.layer_norm(x, weight, bias)


# [/net]


def main(library):
    random = np.random.default_rng(0)
    x = random.standard_normal((3, 5, 8), np.float32)
    weight, bias = random.standard_normal((2, 8), np.float32)
    for w, b in ((weight, bias), (weight, None), (None, None)):
        given = [None if a is None else torch.from_numpy(a) for a in (w, b)]
        expected = torch.nn.functional.layer_norm(torch.from_numpy(x), (8,), *given, eps=1e-6)
        compare("layer_norm", lambda: Net(library), (x, w, b), expected)


if __name__ == "__main__":
    ms.set_device("CPU")
    main(sys.argv[1] if len(sys.argv) > 1 else "./layer_norm.so")

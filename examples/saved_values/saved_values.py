"""Layer normalisation whose gradient uses the mean and deviation that the forward pass computed."""

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
        gradient = kernel(f"{library}:NormalizeGrad")

        def bprop(x, weight, bias, out, dout):
            _, mean, rstd = out
            return gradient(x, weight, bias, mean, rstd, dout[0])

        self.normalize = kernel(f"{library}:Normalize", eps=1e-6, grad=bprop)

    def construct(self, x, weight, bias):
        y, _, _ = self.normalize(x, weight, bias)
        return y


# [/net]


def main(library):
    random = np.random.default_rng(0)
    x = random.standard_normal((3, 5, 8), np.float32)
    weight, bias = random.standard_normal((2, 8), np.float32)
    inputs = [torch.from_numpy(a).requires_grad_() for a in (x, weight, bias)]
    y = torch.nn.functional.layer_norm(inputs[0], (8,), *inputs[1:], eps=1e-6)
    compare("layer_norm", lambda: Net(library), (x, weight, bias), y.detach())
    gradients = torch.autograd.grad(y.sum(), inputs)
    compare(
        "its gradients",
        lambda: ms.grad(Net(library), grad_position=(0, 1, 2)),
        (x, weight, bias),
        gradients,
    )


if __name__ == "__main__":
    ms.set_device("CPU")
    main(sys.argv[1] if len(sys.argv) > 1 else "./saved_values.so")

"""The installed package my_ops in hosts that share a process: what each version must do.

    python smoke_wheel.py pytorch mindspore jax

Imports the hosts in that order, calls the kernel in each as soon as it is there and in all once
more, with its gradient, and prints which of the package's files is loaded, and PyTorch's version.
"""

import re
import sys
from pathlib import Path

import numpy as np

X = np.array([-1.0, 0.0, 2.0], np.float32)
SIGMOID = 1 / (1 + np.exp(-X))
SWISH, GRADIENT = X * SIGMOID, SIGMOID * (1 + X * (1 - SIGMOID))


def pytorch():
    import torch
    from my_ops.torch import swish

    x = torch.tensor(X, requires_grad=True)
    y = swish(x)
    y.sum().backward()
    return y.detach().numpy(), x.grad.numpy()


def mindspore():
    import mindspore as ms
    from my_ops.mindspore import swish

    x = ms.Tensor(X)
    return swish(x).asnumpy(), ms.grad(swish)(x).asnumpy()


def jax():
    import jax
    from my_ops import library

    from aten_bridge.jax import kernel

    swish = kernel(f"{library}:Swish", grad="SwishGrad")
    return jax.jit(swish)(X), jax.grad(lambda x: swish(x).sum())(X)


def main(*order):
    hosts = [{"pytorch": pytorch, "mindspore": mindspore, "jax": jax}[name] for name in order]
    for host in [*hosts, *hosts]:
        y, gradient = host()
        np.testing.assert_allclose(y, SWISH, rtol=1e-6)
        np.testing.assert_allclose(gradient, GRADIENT, rtol=1e-6, atol=1e-7)
    maps = Path("/proc/self/maps").read_text()
    (file,) = set(re.findall(r"/(my_ops\.[^/]*\.so)$", maps, re.M))
    (libtorch,) = set(re.findall(r" (/.*)/libtorch_cpu\.so$", maps, re.M))
    version = (Path(libtorch).parent / "version.py").read_text()
    print(file, re.search(r"__version__ = '([\d.]+)", version)[1])


if __name__ == "__main__":
    main(*sys.argv[1:])

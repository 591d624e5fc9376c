"""A kernel and its gradient in the MindSpore of this environment: what each version must do.

    python smoke.py <test_gradients.so> [--global]

`--global` shows the library's symbols to all others, as a program that sets RTLD_GLOBAL does.
Prints MindSpore's version; an assertion, or what MindSpore raises, says what is wrong.
"""

import ctypes
import sys
from pathlib import Path

import mindspore as ms
import numpy as np
from mindspore import nn, ops

from aten_bridge.mindspore import kernel

X = np.array([[0.0, -0.5, 2.0], [-2.0, 1.0, -4.0]], np.float32)
SLOPE = 0.25  # exact, so that results are
Y = np.where(X > 0, X, X * np.float32(SLOPE))
GRADIENT = np.where(X > 0, np.float32(1), np.float32(SLOPE))


class Plain(nn.Cell):
    def __init__(self, library):
        super().__init__()
        self.kernel = ops.Custom(
            f"{library}:LeakyRelu", out_shape=lambda x: x, out_dtype=lambda x: x, func_type="aot"
        )
        self.kernel.add_prim_attr("negative_slope", SLOPE)

    def construct(self, x):
        return self.kernel(x)


class Network(nn.Cell):
    def __init__(self, library):
        super().__init__()
        self.kernel = kernel(f"{library}:LeakyRelu", negative_slope=SLOPE, grad="LeakyReluGrad")

    def construct(self, x):
        return self.kernel(x)


def check(library):
    for net in (Plain(library), Network(library)):
        for _ in range(3):
            np.testing.assert_array_equal(net(ms.Tensor(X)).asnumpy(), Y)
        other = net(ms.Tensor(X[:, :1].astype(np.float64)))
        np.testing.assert_array_equal(other.asnumpy(), Y[:, :1].astype(np.float64))
    gradient = ms.grad(Network(library))(ms.Tensor(X))
    np.testing.assert_array_equal(gradient.asnumpy(), GRADIENT)
    text = ""
    try:
        Network(library)(ms.Tensor(np.ones((2, 2), np.int32))).asnumpy()
    except Exception as error:
        text = str(error)
    assert "LeakyRelu: " in text, f"expected an error for int32, got {text!r}"


def main(path, *options):
    library = str(Path(path).resolve())
    if "--global" in options:
        ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)
    ms.set_device("CPU")
    for mode in (ms.GRAPH_MODE, ms.PYNATIVE_MODE):
        ms.set_context(mode=mode)
        check(library)
    print(ms.__version__)


if __name__ == "__main__":
    main(*sys.argv[1:])

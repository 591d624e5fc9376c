"""Counts allocations in calls by the native caller and by ops.Custom, and in graphs.

python in_mindspore.py <folder of the tests' libraries>

ATEN_BRIDGE_OPERATORS in the environment is the library of operators by name.
"""

import contextlib
import os
import sys
from pathlib import Path

import counting
import mindspore as ms
import numpy as np
from mindspore import nn, ops

from aten_bridge.mindspore import kernel, native_caller, operator

FOLDER = Path(sys.argv[1])
X = ms.Tensor(np.arange(12, dtype=np.float32).reshape(3, 4))
MORE = ms.Tensor(np.arange(8, dtype=np.float32).reshape(2, 4))


def plain(library, name):
    """Without aten_bridge's Python package."""
    path = f"{FOLDER / library}:{name}"
    return ops.Custom(path, out_shape=lambda x: x, out_dtype=lambda x: x, func_type="aot")


class Net(nn.Cell):
    def __init__(self, operator):
        super().__init__()
        self.operator = operator

    def construct(self, *inputs):
        return self.operator(*inputs)


def of(name, **attributes):
    return "test_gradients.so", Net(kernel(f"{FOLDER}/test_gradients.so:{name}", **attributes))


def by_name(name, **attributes):
    return os.environ["ATEN_BRIDGE_OPERATORS"], Net(operator(name, **attributes))


def throwing():
    net = Net(plain("test_kernels.so", "ThrowRuntimeError"))

    def call():
        with contextlib.suppress(RuntimeError):
            net(X).asnumpy()
        return X

    return call


def read(result):
    """Waits for a result, and with it for all that were asked for before."""
    for tensor in result if isinstance(result, tuple) else (result,):
        tensor.asnumpy()


def main():
    is_off = os.environ.get("ATEN_BRIDGE_NATIVE_CALLER") == "0"
    assert (native_caller().path is None) == is_off, native_caller().reason
    counts = {}
    for mode, name in ((ms.PYNATIVE_MODE, "PyNative"), (ms.GRAPH_MODE, "graph")):
        ms.set_context(mode=mode)
        leaky_relu = of("LeakyRelu", negative_slope=0.25, grad="LeakyReluGrad")
        gradient = ms.grad(leaky_relu[1])
        calls = {
            "Copy": ("test_kernels.so", Net(plain("test_kernels.so", "Copy")), (X,)),
            "LeakyRelu": (*leaky_relu, (X,)),
            "Topk": (*of("Topk", k=2), (X,)),
            "Cat": (*of("Cat"), ((X, MORE),)),
            "Cat of six": (*of("Cat"), ((X,) * 6,)),  # more than PyTorch's small vectors hold
            "Scale with a state": (*of("Scale"), (X,)),
            "WithWorkspace": (*of("WithWorkspace"), (X,)),
            "aten::leaky_relu": (*by_name("aten::leaky_relu", negative_slope=0.25), (X,)),
            "aten::topk": (*by_name("aten::topk", k=2), (X,)),
            "aten::cat": (*by_name("aten::cat", dim=0), (X, MORE)),
            "LeakyReluGrad by autograd": ("test_gradients.so", gradient, (X,)),
        }
        if name == "PyNative":  # graph mode calls no kernel any more behind an error
            calls["ThrowRuntimeError"] = ("test_kernels.so", throwing(), ())
        for what, (library, call, inputs) in calls.items():
            counts[f"{what}, {name}"] = counting.count(
                FOLDER / library,
                lambda call=call, inputs=inputs: call(*inputs),
                read,
            )
    counting.show(counts)


main()

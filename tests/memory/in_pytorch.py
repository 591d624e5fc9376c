"""Counts allocations in calls in PyTorch.

python in_pytorch.py <test_pytorch.so>
"""

import contextlib
import sys

import counting
import torch

from aten_bridge.torch import load

LIBRARY = sys.argv[1]
my = load(LIBRARY)
x = torch.linspace(-2, 2, 12).reshape(3, 4)
out = torch.empty(3, 4)


def throw():
    with contextlib.suppress(RuntimeError):
        my.throws(x, how=5)


CALLS = {
    "leaky_relu": lambda: my.leaky_relu(x, negative_slope=0.25),
    "leaky_relu of a transposed tensor": lambda: my.leaky_relu(x.t()),
    "leaky_relu with out": lambda: my.leaky_relu(x, out=out),
    "top_k": lambda: my.top_k(x, 2),
    "cat": lambda: my.cat([x, x], 1),
    "scale by numbers": lambda: my.scale(x, 2.0, 3),
    "count, with a state": lambda: my.count(x),
    "swish, a composite": lambda: my.swish(x),
    "throws": throw,
}


def main():
    torch.set_num_threads(1)
    counting.show({name: counting.count(LIBRARY, call) for name, call in CALLS.items()})


main()

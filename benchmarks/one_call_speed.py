"""What one call of the native caller takes in place of many operators of MindSpore, in mint.

    python -m aten_bridge.mint benchmarks/one_call_speed.py

prints in Markdown the microseconds of each way in PyNative mode, on small float32 tensors,
MindSpore waiting for each operator (`--queues` before the file's name: with its queues); both ways
alternate.
"""

import os
import statistics
import time

import mindspore as ms
import numpy as np
import torch
from mindspore import mint

from aten_bridge.mindspore import _caller, native_caller

ROUNDS, CALLS, WEIGHTS = 9, 100, 30


def cases():
    """Functions by name; the last has PyTorch's own beside it."""
    random = np.random.default_rng(0)

    def tensor(*shape):
        return ms.Tensor(random.standard_normal(shape).astype(np.float32))

    x, row, column = tensor(8, 16), ms.Tensor([0, 2, 1, 3]), ms.Tensor([5, -2, 1, 3])
    mask, value, batch, matrix = x > 0, tensor(4, 16), tensor(4, 8, 16), tensor(16, 8)
    weights = [ms.Parameter(tensor(32, 32), name=f"w{i}") for i in range(WEIGHTS)]
    optimizer, gradients = mint.optim.AdamW(weights), tuple(tensor(32, 32) for _ in weights)

    def write():
        x[row] = value

    return {
        "`x[i]`": lambda: x[row],
        "`x[i, j]`": lambda: x[row, column],
        "`x[mask]`": lambda: x[mask],
        "`x[:, i]`": lambda: x[:, row],
        "`x[i] = y`": write,
        '`einsum("bij,jk->bik", x, y)`': lambda: mint.einsum("bij,jk->bik", batch, matrix),
        f"a step of `AdamW` on {WEIGHTS} weights of 32x32": lambda: optimizer(gradients),
    }


def microseconds(function):
    for _ in range(5):
        function()
    ms.runtime.synchronize()
    begin = time.perf_counter()
    for _ in range(CALLS):
        function()
    ms.runtime.synchronize()
    return (time.perf_counter() - begin) / CALLS * 1e6


def step_of_pytorch():
    weights = [torch.nn.Parameter(torch.randn(32, 32)) for _ in range(WEIGHTS)]
    for weight in weights:
        weight.grad = torch.randn(32, 32)
    return torch.optim.AdamW(weights).step


def main():
    if not native_caller():
        raise SystemExit(native_caller().reason)
    torch.set_num_threads(1)
    takes_calls = _caller.takes_calls
    print("| | one call | MindSpore's way |\n|---|--:|--:|")
    for name, function in cases().items():
        times = ([], [])
        for _ in range(ROUNDS):
            for way, answer in zip(times, (takes_calls, lambda: False), strict=True):
                _caller.takes_calls = answer
                way.append(microseconds(function))
        one, many = map(statistics.median, times)
        print(f"| {name} | {one:.3g} | {many:.3g} |")
    step = step_of_pytorch()
    times = [microseconds(step) for _ in range(ROUNDS)]
    print(f"\nPyTorch's own step of AdamW: {statistics.median(times):.4g}")
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} processors")


if __name__ == "__main__":
    main()

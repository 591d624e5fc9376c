"""What a call costs in PyTorch: the bridge's operators beside one that was written by hand.

    python pytorch_speed.py <pytorch_kernels.so> <pytorch_typed.so>

LeakyRelu of 4x4 float32 by `torch.ops`, forward without a graph, and forward and backward. Of many
short rounds in turn, medians: of the time, and of the time divided by that by hand in the same
round, which other work on the machine hardly moves.
"""

import statistics
import sys
import time

import torch

ROUNDS = 401
CALLS = 300


def forward(operator, x):
    with torch.inference_mode():
        for _ in range(CALLS):
            operator(x, 0.2)


def forward_and_backward(operator, x):
    leaf = x.clone().requires_grad_()
    ones = torch.ones_like(x)
    for _ in range(CALLS // 10):
        torch.autograd.grad(operator(leaf, 0.2), leaf, ones)


def measure(run, calls, operators, x):
    """Nanoseconds of a call in each round, by name."""
    seconds = {name: [] for name in operators}
    for _ in range(ROUNDS):
        for name, operator in operators.items():
            begin = time.perf_counter()
            run(operator, x)
            seconds[name].append(time.perf_counter() - begin)
    return {name: [of / calls * 1e9 for of in all_] for name, all_ in seconds.items()}


def main(kernels, typed):
    torch.ops.load_library(kernels)
    torch.ops.load_library(typed)
    torch.set_num_threads(1)
    typed_operators = torch.ops.typed
    bridge = torch.ops.bridge_speed
    operators = {
        "by hand, returns its result": typed_operators.leaky_relu.default,
        "by hand, an _out function": typed_operators.output.default,
        "by hand, writes at::empty_like(x)": typed_operators.sized.default,
        "aten::leaky_relu": torch.ops.aten.leaky_relu.default,
        "bridge, returns its result": bridge.result.default,
        "bridge, an _out function, meta()": bridge.output.default,
        "bridge, writes its output, meta(function)": bridge.sized.default,
        "bridge, gradient by autograd": bridge.by_autograd.default,
        "bridge, composite()": bridge.composite.default,
    }
    x = torch.randn(4, 4)
    for title, run, calls in (
        ("forward", forward, CALLS),
        ("forward and backward", forward_and_backward, CALLS // 10),
    ):
        times = measure(run, calls, operators, x)
        by_hand = times["by hand, returns its result"]
        print(f"{title}, 4x4, ns a call")
        for name, nanoseconds in times.items():
            ratio = statistics.median(
                one / other for one, other in zip(nanoseconds, by_hand, strict=True)
            )
            print(f"  {name:43}{statistics.median(nanoseconds):9.0f}  {ratio:.2f}")


if __name__ == "__main__":
    main(*sys.argv[1:])

"""What a call costs in PyTorch: the bridge's operators beside one that was written by hand.

    python pytorch_speed.py <pytorch_kernels.so> <pytorch_typed.so>

LeakyRelu of 4x4 float32 by `torch.ops`, forward without a graph, and forward and backward. Of many
short rounds in turn, medians: of the time, and of the time divided by that by hand in the same
round, which other work on the machine hardly moves: by that of an operator that returns its result,
and by that of one with the same body.
"""

import statistics
import sys
import time

import torch

ROUNDS = 401
CALLS = 300


RETURNS = "by hand, returns its result"
RESIZES = "by hand, an _out function"
WRITES = "by hand, writes at::empty_like(x)"


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
    rows = {  # an operator, and which one by hand has the same body
        RETURNS: (typed_operators.leaky_relu, RETURNS),
        RESIZES: (typed_operators.output, RESIZES),
        WRITES: (typed_operators.sized, WRITES),
        "aten::leaky_relu": (torch.ops.aten.leaky_relu, RETURNS),
        "bridge, returns its result": (bridge.result, RETURNS),
        "bridge, an _out function, meta()": (bridge.output, RESIZES),
        "bridge, writes its output, meta(function)": (bridge.sized, WRITES),
        "bridge, gradient by autograd": (bridge.by_autograd, RETURNS),
        "bridge, composite()": (bridge.composite, RETURNS),
    }
    operators = {name: packet.default for name, (packet, _) in rows.items()}
    x = torch.randn(4, 4)
    for title, run, calls in (
        ("forward", forward, CALLS),
        ("forward and backward", forward_and_backward, CALLS // 10),
    ):
        times = measure(run, calls, operators, x)
        print(f"{title}, 4x4, ns a call, times by hand, times the same body by hand")
        for name, nanoseconds in times.items():
            by_hand, by_same_body = (
                statistics.median(a / b for a, b in zip(nanoseconds, times[other], strict=True))
                for other in (RETURNS, rows[name][1])
            )
            median = statistics.median(nanoseconds)
            print(f"  {name:43}{median:9.0f}  {by_hand:.2f}  {by_same_body:.2f}")


if __name__ == "__main__":
    main(*sys.argv[1:])

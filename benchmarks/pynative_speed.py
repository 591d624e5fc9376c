"""What a kernel's call costs in MindSpore's PyNative mode: by the native caller and ops.Custom.

    PYTHONPATH=python python benchmarks/pynative_speed.py build/test/tests/test_gradients.so

prints in Markdown the least and the median of the rounds, in microseconds for a call on 2x2
float32, beside MindSpore's own relu: both with MindSpore's queues, its default, and where it runs
each operator at once (`ms.runtime.launch_blocking()`). A round waits for its last result. Each
setting and each way has a process of its own; the processes take turns, so that a change of the
machine's speed meets all.
"""

import json
import os
import statistics
import subprocess
import sys
import time

ROUNDS, TURNS = 7, 3
CALLS = {"forward": 300, "gradient": 30, "chain": 30}


def measure(library: str, setting: str) -> None:
    """Prints the times of this process."""
    import mindspore as ms
    import numpy as np
    from mindspore import mint

    from aten_bridge.mindspore import kernel, native_caller

    ms.set_device("CPU")
    if setting == "blocking":
        ms.runtime.launch_blocking()
    relu = mint.nn.functional.relu
    operator = kernel(f"{library}:LeakyRelu", negative_slope=0.2, grad="LeakyReluGrad")
    x = ms.Tensor(np.float32([[1, -2], [3, -4]]))
    kernel_step = ms.grad(lambda a: operator(a))
    relu_step = ms.grad(lambda a: relu(a))

    def chain(one, other):
        y = x
        for _ in range(10):
            y = other(one(y))
        return y

    runs = {
        ("forward", "kernel"): lambda: operator(x),
        ("forward", "mint relu"): lambda: relu(x),
        ("gradient", "kernel"): lambda: kernel_step(x),
        ("gradient", "mint relu"): lambda: relu_step(x),
        ("chain", "kernel"): lambda: chain(operator, relu),
        ("chain", "mint relu"): lambda: chain(relu, relu),
    }
    times: dict[str, list[float]] = {}
    for (what, name), run in runs.items():
        count = CALLS[what]
        for _ in range(count // 3):
            run().asnumpy()
        for _ in range(ROUNDS):
            begin = time.perf_counter()
            for _ in range(count):
                result = run()
            result.asnumpy()
            spent = (time.perf_counter() - begin) / count * 1e6
            times.setdefault(f"{what}, {name}", []).append(spent)
    print(json.dumps({"caller": bool(native_caller()), "times": times}))


def main(library: str) -> None:
    """Prints the tables."""
    for setting in ("queues", "blocking"):
        times: dict[str, dict[str, list[float]]] = {"1": {}, "0": {}}
        for _ in range(TURNS):
            for switch, rows in times.items():
                done = subprocess.run(
                    [sys.executable, __file__, library, setting],
                    env={**os.environ, "ATEN_BRIDGE_NATIVE_CALLER": switch},
                    stdout=subprocess.PIPE,
                    text=True,
                    check=True,
                )
                said = json.loads(done.stdout)
                if said["caller"] != (switch == "1"):
                    raise SystemExit("expected the native caller, got none; build it first")
                for name, values in said["times"].items():
                    rows.setdefault(name, []).extend(values)
        print(f"\n{setting}:\n\n| call | native caller, min | median | ops.Custom, min | median |")
        print("|---|--:|--:|--:|--:|")
        for name, values in times["1"].items():
            pairs = [(min(v), statistics.median(v)) for v in (values, times["0"][name])]
            print(f"| {name} | " + " | ".join(f"{t:.1f}" for pair in pairs for t in pair) + " |")


if __name__ == "__main__":
    measure(*sys.argv[1:]) if len(sys.argv) == 3 else main(sys.argv[1])

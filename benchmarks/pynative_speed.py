"""What a kernel's call costs in MindSpore's PyNative mode: by the native caller and ops.Custom.

    PYTHONPATH=python python benchmarks/pynative_speed.py build/full/bench

prints in Markdown the least and the median of the rounds, in microseconds, and the ratio of the
medians to MindSpore's own operators in the same processes: both with MindSpore's queues, its
default, and where it runs each operator at once (`ms.runtime.launch_blocking()`). The folder is
that of the target `bench`. A round waits for its last result. Each setting and each way has a
process of its own; the processes take turns, so that a change of the machine's speed meets all.
`--output` writes the same as JSON.

forward, gradient: one call on 2x2 float32, leaky_relu and relu; the gradient's kernel uses
    PyTorch's autograd
by hand: the same gradient by a kernel that is written by hand
chain: ten calls whose results a relu takes
hundred: a hundred operators of one kernel, each with its own attribute, one after the other
digits: a training step of examples/digits, a batch of 64, in kernels and in MindSpore's layers
LSTM: five steps of a cell of 32 for a batch of 8, and the gradients of its weights, by name and in
    mint
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import mint_speed

ROUNDS, TURNS = 5, 3
SETTINGS = ("queues", "blocking")
WAYS = ("native caller", "`ops.Custom`")
CALLS = {
    "forward": 300,
    "gradient": 30,
    "by hand": 30,
    "chain": 30,
    "hundred": 5,
    "digits": 2,
    "LSTM": 2,
}
EXAMPLES = Path(__file__).parents[1] / "examples"


def digits_step(net, loss_of, batch):
    """A step of training, call by call."""
    from mindspore import nn, value_and_grad

    optimizer = nn.Adam(net.trainable_params(), 0.001)
    loss_and_gradients = value_and_grad(loss_of, None, optimizer.parameters)

    def step():
        loss, gradients = loss_and_gradients(*batch)
        optimizer(gradients)
        return loss

    return step


def lstm_step(functions):
    """The gradients of an LSTM of these functions."""
    import mindspore as ms
    import numpy as np

    linear, sigmoid, tanh, multiply, add = functions
    random = np.random.default_rng(0)
    weights = [
        tuple(
            ms.Parameter(ms.Tensor(random.standard_normal((32, 32)).astype(np.float32)) * 0.1)
            for _ in range(2)
        )
        for _ in range(4)
    ]
    xs = [ms.Tensor(random.standard_normal((8, 32)).astype(np.float32)) for _ in range(5)]
    zero = ms.Tensor(np.zeros((8, 32), np.float32))

    def loss():
        h, c = zero, zero
        for x in xs:
            i, f, o, g = (add(linear(x, of_x), linear(h, of_h)) for of_x, of_h in weights)
            c = add(multiply(sigmoid(f), c), multiply(sigmoid(i), tanh(g)))
            h = multiply(sigmoid(o), tanh(c))
        return h.sum()

    step = ms.value_and_grad(loss, None, [one for pair in weights for one in pair])
    return lambda: step()[0]


def make_runs(build: Path) -> dict[tuple[str, str], object]:
    """What is measured: by kernels, and by MindSpore's own."""
    import mindspore as ms
    import numpy as np
    from mindspore import mint, nn

    from aten_bridge.mindspore import kernel, operator

    sys.path.insert(0, str(EXAMPLES / "digits"))
    from digits import NetOfKernels, NetOfMindSpore

    library = build / "examples/digits/digits.so"
    relu = mint.nn.functional.relu
    leaky_relu = kernel(f"{library}:LeakyRelu", negative_slope=0.2, grad="LeakyReluGrad")
    by_hand = kernel(
        f"{build}/benchmarks/benchmark_kernels.so:TypedLeakyRelu", grad="HandwrittenLeakyReluGrad"
    )
    hundred = [kernel(f"{library}:LeakyRelu", negative_slope=i / 100) for i in range(100)]
    x = ms.Tensor(np.float32([[1, -2], [3, -4]]))
    random = np.random.default_rng(0)
    batch = (
        ms.Tensor(random.standard_normal((64, 1, 8, 8)).astype(np.float32)),
        ms.Tensor(random.integers(0, 10, 64).astype(np.int32)),
    )
    of_kernels = NetOfKernels(str(library))
    of_mindspore = NetOfMindSpore()
    cross_entropy = nn.CrossEntropyLoss(label_smoothing=0.1)

    def chain(functions):
        y = x
        for function in functions:
            y = function(y)
        return y

    def by_name(name):
        return operator(f"aten::{name}")

    def gradient_of(function):
        step = ms.grad(lambda a: function(a))
        return lambda: step(x)

    own_gradient = gradient_of(relu)
    names = ("linear", "sigmoid", "tanh", "mul", "add")
    own = (mint.nn.functional.linear, mint.sigmoid, mint.tanh, mint.mul, mint.add)
    return {
        ("forward", "kernel"): lambda: leaky_relu(x),
        ("forward", "MindSpore"): lambda: relu(x),
        ("gradient", "kernel"): gradient_of(leaky_relu),
        ("gradient", "MindSpore"): own_gradient,
        ("by hand", "kernel"): gradient_of(by_hand),
        ("by hand", "MindSpore"): own_gradient,
        ("chain", "kernel"): lambda: chain([leaky_relu, relu] * 10),
        ("chain", "MindSpore"): lambda: chain([relu, relu] * 10),
        ("hundred", "kernel"): lambda: chain(hundred),
        ("hundred", "MindSpore"): lambda: chain([relu] * 100),
        ("digits", "kernel"): digits_step(
            of_kernels, lambda a, b: of_kernels.loss(of_kernels(a), b), batch
        ),
        ("digits", "MindSpore"): digits_step(
            of_mindspore, lambda a, b: cross_entropy(of_mindspore(a), b), batch
        ),
        ("LSTM", "kernel"): lstm_step([by_name(name) for name in names]),
        ("LSTM", "MindSpore"): lstm_step(own),
    }


def measure(build: Path, setting: str) -> None:
    """Prints the times of this process."""
    import mindspore as ms

    from aten_bridge.mindspore import native_caller

    ms.set_device("CPU")
    if setting == "blocking":
        ms.runtime.launch_blocking()
    times: dict[str, list[float]] = {}
    runs = make_runs(build)
    for (what, _), run in runs.items():
        for _ in range(CALLS[what] // 3 + 2):
            run().asnumpy()
    for _ in range(ROUNDS):
        for (what, name), run in runs.items():
            count = CALLS[what]
            begin = time.perf_counter()
            for _ in range(count):
                result = run()
            result.asnumpy()
            spent = (time.perf_counter() - begin) / count * 1e6
            times.setdefault(f"{what}, {name}", []).append(spent)
    found = native_caller()
    print(json.dumps({"caller": bool(found), "reason": found.reason, "times": times}))


def run(build: Path, setting: str, has_caller: bool) -> dict[str, list[float]]:
    """The times of a process of its own."""
    from aten_bridge.mindspore._caller import NAME

    environment = {
        **os.environ,
        "ATEN_BRIDGE_CALLER": str(build / "plugin/caller" / NAME),
        "ATEN_BRIDGE_NATIVE_CALLER": str(int(has_caller)),
        "ATEN_BRIDGE_OPERATORS": str(build / "plugin/operators/aten_bridge_operators.so"),
    }
    environment.pop("MS_OP_PLUGIN_PATH", None)  # what is compared with are MindSpore's own kernels
    done = subprocess.run(
        [sys.executable, __file__, str(build), "--measure", setting],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    answer = json.loads(done.stdout.splitlines()[-1])
    if answer["caller"] != has_caller:
        print(f"{sys.argv[0]}: nothing is measured: {answer['reason']}")
        sys.exit()
    return answer["times"]


def compare(build: Path, setting: str) -> dict[str, dict[str, dict[str, float]]]:
    """What each call takes in each way: its least, its median, and the ratio of the medians."""
    times: dict[str, dict[str, list[float]]] = {way: {} for way in WAYS}
    for _ in range(TURNS):
        for way, rows in times.items():
            for name, values in run(build, setting, way == WAYS[0]).items():
                rows.setdefault(name, []).extend(values)
    rows = {}
    for what in CALLS:
        rows[what] = {}
        for way in WAYS:
            kernel, own = (times[way][f"{what}, {name}"] for name in ("kernel", "MindSpore"))
            median = statistics.median(kernel)
            rows[what][way] = {
                "min": min(kernel),
                "median": median,
                "ratio": median / statistics.median(own),
            }
    return rows


def cells_of(rows: dict[str, dict[str, dict[str, float]]]) -> tuple[list[str], list[list[str]]]:
    """The head and the lines of a table of these rows."""
    head = ["what"]
    for way in WAYS:
        head += [f"{way}, min", "median", "/ MindSpore's own"]
    lines = []
    for what, ways in rows.items():
        cells = []
        for numbers in ways.values():
            cells += [f"{numbers['min']:.1f}", f"{numbers['median']:.1f}"]
            cells.append(f"{numbers['ratio']:.2f}")
        lines.append([what, *cells])
    return head, lines


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", type=Path)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--measure", help=argparse.SUPPRESS)  # the process of a setting
    options = parser.parse_args()
    if options.measure:
        measure(options.build, options.measure)
        return
    mint_speed.check_environment()
    settings = {setting: compare(options.build.resolve(), setting) for setting in SETTINGS}
    for setting, rows in settings.items():
        print(f"\n{setting}:\n")
        head, lines = cells_of(rows)
        for line in (head, ["---", *["--:"] * (len(head) - 1)], *lines):
            mint_speed.row(*line)
    if options.output:
        import mindspore

        written = {"mindspore": mindspore.__version__, "settings": settings}
        options.output.write_text(json.dumps(written, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""How fast ATen's operators are in MindSpore on the CPU, beside MindSpore's own.

    MS_OP_PLUGIN_PATH=$(python -m aten_bridge.mint) python benchmarks/operator_speed.py

prints in Markdown, for common operators and three sizes, how many times as fast as MindSpore's own
the library of kernels for mint is, call by call (PyNative) and as graphs of one operator, and by
how much the results differ. Where MindSpore has no kernel for the function of mint on the CPU, its
own side is the function or operator of mindspore.ops that computes the same there. Processes,
rounds and options are those of mint_speed.py.
"""

import json
import os
import pathlib
import re
import statistics
import sys
import tempfile

import mint_speed
from mint_speed import MODES, SIZES, Process, cell, ratio, row

PATIENCE = 1.5  # times as many rounds, for less disturbed ones
ROUNDING = 2e-5  # relative to the largest result: sums and exp in float32 differ by this

# In mint, and in MindSpore where that is another; operands are those of mint_speed.py.
OPERATORS = {
    "relu": ("F.relu(x)", None),
    "gelu": ('F.gelu(x, approximate="tanh")', 'ops.gelu(x, "tanh")'),
    "silu": ("F.silu(x)", None),
    "sigmoid": ("sigmoid(x)", None),
    "tanh": ("tanh(x)", None),
    "leaky_relu": ("F.leaky_relu(x)", "ops.leaky_relu(x, 0.01)"),
    "elu": ("F.elu(x)", "ops.elu(x)"),
    "softmax": ("F.softmax(x, 1)", None),
    "log_softmax": ("F.log_softmax(x, 1)", "ops.log_softmax(x, 1)"),
    "layer_norm": ("F.layer_norm(x, (n,), v, w)", "classic_layer_norm(x, v, w)[0]"),
    "batch_norm": (
        "F.batch_norm(images, average, variance, average, variance)",
        "ops.batch_norm(images, average, variance, average, variance)",
    ),
    "group_norm": ("F.group_norm(images, 1)", None),
    "matmul": ("matmul(a, c)", None),
    "bmm": ("bmm(batch, batch)", None),
    "linear": ("F.linear(a, c)", None),
    "conv2d": ("F.conv2d(images, weight2)", "ops.conv2d(images, weight2)"),
    "max_pool2d": ("F.max_pool2d(images, 2)", "ops.max_pool2d(images, 2)"),
    "avg_pool2d": ("F.avg_pool2d(images, 2)", "ops.avg_pool2d(images, 2, 2)"),
    "adaptive_avg_pool2d": (
        "F.adaptive_avg_pool2d(images, 2)",
        "ops.adaptive_avg_pool2d(images, 2)",
    ),
    "sum": ("sum(x, 1)", None),
    "max": ("max(x, 1)", None),
    "cumsum": ("cumsum(x, 1)", "ops.cumsum(x, 1)"),
    "sort": ("sort(x)", "ops.sort(x)"),
    "topk": ("topk(x, 3)", "ops.topk(x, 3)"),
    "gather": ("gather(x, 1, places)", None),
    "scatter_add": (
        "scatter_add(x, 1, places, y)",
        'ops.tensor_scatter_elements(x, places, y, 1, "add")',
    ),
    "interpolate": (
        'F.interpolate(images, scale_factor=2.0, mode="bilinear")',
        "ops.interpolate(images, scale_factor=2.0, mode='bilinear', recompute_scale_factor=True)",
    ),
    "cross_entropy": ("F.cross_entropy(x, target)", "ops.cross_entropy(x, target)"),
    "mse_loss": ("F.mse_loss(x, y)", "ops.mse_loss(x, y)"),
    "binary_cross_entropy": ("F.binary_cross_entropy(q, r)", None),
}


class Worker(mint_speed.Worker):
    def __init__(self, options):
        super().__init__(options.threads, options.processor_time)
        names = self.modules["mint"]
        names["classic_layer_norm"] = self.ms.ops.LayerNorm(1, 1, 1e-5)
        if os.environ.get("MS_OP_PLUGIN_PATH"):
            sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "python"))
            from aten_bridge.mint import install

            install()  # MindSpore refuses max_pool2d without
            names |= vars(self.ms.mint)

    def save(self, side, call, n, file):
        """The first result, as a file."""
        import numpy as np

        result = self.function(side, call, n)()
        np.save(file, (result[0] if isinstance(result, tuple) else result).asnumpy())


def difference(sides, n, folder):
    """The largest one of the results, as a share of the largest result."""
    import numpy as np

    results = []
    for index, (process, side, call) in enumerate(sides):
        file = f"{folder}/{index}.npy"
        error = process.ask("save", side=side, call=call, n=n, file=file)
        if error:
            return None
        results.append(np.load(file).astype(np.float64))
    one, other = results
    if one.shape != other.shape:
        return float("inf")
    return float(np.abs(one - other).max() / np.abs(other).max())


def main():
    options = mint_speed.parse_options(__doc__, rounds=3)
    if options.worker:
        Worker(options).serve()
        return
    sizes = options.sizes.split(",")
    with_library, without = (Process(name, sys.argv[1:]) for name in (mint_speed.library(), None))
    record, disturbances = {}, []

    print(f"{options.threads} threads on each side, {options.rounds} rounds\n")
    columns = [(size, mode) for size in sizes for mode in MODES]
    row("call", "MindSpore's own", *map(": ".join, columns), "difference")
    row("---", "---", *["--:"] * len(columns), "--:")
    for name, (call, classic) in OPERATORS.items():
        if not re.search(options.match, call):
            continue
        own = classic or call
        one = record[name] = {"call": call, "own": own, "seconds": {}, "difference": {}}
        ratios = []
        for size in sizes:
            sides = {}
            for mode, side in MODES.items():
                pair = (with_library, side, call), (without, side, own)
                sides[f"library {mode}"], sides[f"MindSpore {mode}"] = pair
                with tempfile.TemporaryDirectory() as folder:
                    one["difference"][f"{size} {mode}"] = difference(pair, SIZES[size], folder)
            times, shares = mint_speed.measure(sides, SIZES[size], options, PATIENCE)
            disturbances.extend(shares)
            one["seconds"][size] = times
            ratios += [ratio(times, f"MindSpore {mode}", f"library {mode}") for mode in MODES]
        differences = [share for share in one["difference"].values() if share is not None]
        largest = max(differences, default=0)
        marked = f"{largest:.1e}" + (" (!)" if largest > ROUNDING else "")
        row(f"`{call}`", f"`{own}`" if classic else "the same", *map(cell, ratios), marked)

    disturbed = statistics.median(disturbances)
    print(f"\nOther programs had {disturbed:.0%} of the processors.")
    if options.output:
        with open(options.output, "w") as file:
            json.dump(
                {
                    "threads": options.threads,
                    "rounds": options.rounds,
                    "disturbed": disturbed,
                    "operators": record,
                },
                file,
            )


if __name__ == "__main__":
    main()

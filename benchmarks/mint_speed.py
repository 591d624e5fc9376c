"""How fast the library of kernels for MindSpore's mint is on the CPU, as ratios.

    MS_OP_PLUGIN_PATH=$(python -m aten_bridge.mint) python benchmarks/mint_speed.py

prints in Markdown: the library's operators against MindSpore's own kernels, where it has them, and
against PyTorch's own calls; and what one small call costs. `--match` picks calls by a regular
expression, `--sizes` sizes, `--rounds` says how often each is measured, `--output` names a file for
all times in JSON.

Two processes measure alternately, one with the library and one without. A measurement is a batch of
calls, issued one after the other, and one wait for the last of them: in PyNative mode a call
returns before its kernel has run, so the time of a batch divided by its calls is the pace at which
MindSpore gets through a network's calls. Batches that are not counted come before it. PyTorch's
calls are in batches too, in the process that has the library. A ratio is taken within a round, in
which the sides follow each other; the table has the medians of the rounds. A round in which other
programs had more than a tenth of the processors is measured again, up to four times as many rounds;
the quietest count. `--wait` lets each round wait so many seconds for other programs to end. Each
side has `--threads` threads, by default as many as the process has processors. On a busy machine
`--threads 1 --processor-time` still tells kernels apart: it counts the processors' time of all
threads but the one that issues MindSpore's calls, which keeps a processor busy while it waits.
"""

import argparse
import functools
import importlib.util
import json
import linecache
import os
import re
import statistics
import subprocess
import sys
import time
import types

SIZES = {"small": 4, "middle": 256, "large": 2048}  # tensors of 4x4 and so on, or as many elements
MODES = {"PyNative": "mint", "graph": "graph"}  # the sides that measure them
PROCESSORS = len(os.sched_getaffinity(0))
BATCH_SECONDS = 0.03
WAKE_SECONDS = 0.05
LONG_CALL = 0.3  # seconds of one that is warm after the second
DISTURBED = 0.1  # the share of the processors that other programs had in a round
PATIENCE = 4  # times as many rounds, for less disturbed ones
LONGEST_BATCH = 20000
WORTH = 1.2  # a difference that is named
SMALL = "neg(x)"  # the call whose cost is told

# Calls of the functions of mint, and of PyTorch's of the same name, on operands(). F is
# nn.functional.
CALLS = """
abs(x)  acos(u)  acosh(p)  asin(u)  asinh(x)  atan(x)  bitwise_not(i)  exp2(x)  frac(x)  isneginf(x)
log10(p)  log2(p)  sinc(x)  tanh(x)  atan2(x, y)  bitwise_and(i, 3)  bitwise_xor(i, j)
clamp(x, -0.5, 0.5)  floor_divide(x, 0.7)  fmod(x, y)  logaddexp(x, y)  logaddexp2(x, y)
maximum(x, y)  minimum(x, y)  xlogy(p, p)  addcdiv(x, y, p)  addcmul(x, y, p)  cdist(points, points)

amax(x, 1)  amin(x, 1)  argmax(x, 1)  argmin(x)  count_nonzero(x)  cummin(x, 1)  cumsum(x, 1)
histc(x, 64, -3, 3)  kthvalue(x, 2)  logsumexp(x, 1)  max(x)  max(x, 1)  min(x)  mean(x)  mean(x, 1)
mean(x, 0)  median(x)  median(x, 1)  nansum(x)  norm(x)  linalg.vector_norm(x, 1, 1)  std(x)
std_mean(x, dim=1)  trace(x)  var(x)  var(x, dim=1)

mm(a, c)  matmul(a, c)  bmm(batch, batch)  mv(x, v)  dot(v, w)  outer(v, w)  addmm(a, a, c)
addmv(v, x, w)  baddbmm(batch, batch, batch)  inverse(a)  linalg.qr(a)

F.elu(x)  F.gelu(x)  F.hardshrink(x)  F.hardswish(x)  F.hardtanh(x)  F.leaky_relu(x)
F.log_softmax(x, 1)  F.logsigmoid(x)  F.mish(x)  F.relu(x)  F.relu6(x)  F.selu(x)  F.softplus(x)
F.softshrink(x)  F.threshold(x, 0.1, 2.0)

F.binary_cross_entropy(q, r)  F.cross_entropy(x, target)  F.kl_div(x, q)  F.l1_loss(x, y)
F.mse_loss(x, y)  F.nll_loss(x, target)  F.soft_margin_loss(x, signs)  F.layer_norm(x, (n,), v, w)
F.batch_norm(images, average, variance, None, None, True)

F.conv1d(signal, weight1)  F.conv2d(images, weight2)  F.conv_transpose2d(images, weight2)
F.avg_pool2d(images, 2)  F.adaptive_avg_pool2d(images, 2)  F.unfold(images, 3, padding=1)
F.pad(x, (1, 1))  F.pad(images, (1, 1, 1, 1), mode="reflect")
F.interpolate(images, scale_factor=2.0, mode="bilinear")

argsort(x)  sort(x)  topk(x, 3)  index_select(x, 0, index)  scatter_add(x, 1, places, y)
repeat_interleave(x, 2, dim=1)  roll(x, 1, 0)  stack([x, y])  take(x, places)
F.embedding(index, x)  F.one_hot(index, n)

arange(n * n)  full((n, n), 2.0)  full_like(x, 2)  linspace(0, 1, n * n)  ones_like(x)
zeros_like(x)  clone(x)  diag(v)  tril(x)
bernoulli(q)  randn(n, n)  rand_like(x)  randperm(n * n)  F.dropout(x, 0.5)

t.add_(y)  t.add_(1.5)  t.clamp_(min=-1.0)  t.copy_(y)  t.fill_(2.0)  t.masked_fill_(mask, 7.0)
t.mul_(signs)  t.zero_()

ceil(x)  cos(x)  erf(x)  exp(x)  expm1(x)  floor(x)  isfinite(x)  log(p)  log1p(p)  nan_to_num(x)
neg(x)  reciprocal(p)  round(x)  rsqrt(p)  sigmoid(x)  sign(x)  sin(x)  sqrt(p)  square(x)  tan(x)
trunc(x)  add(x, y)  add(x, 1.5)  sub(x, y)  mul(x, y)  mul(x, 1.5)  div(x, y)  pow(p, 2)  pow(p, y)
remainder(x, p)  eq(x, y)  gt(x, y)  lt(x, 0.5)  logical_and(mask, mask)  logical_not(mask)
lerp(x, y, 0.3)  where(mask, x, y)  x.to(float16)

all(mask)  cummax(x, 1)  cumprod(u, 1)  prod(u)  sum(x)  sum(x, 1)  sum(x, 0)

F.prelu(x, slope)  F.silu(x)  F.hardsigmoid(x)  F.softmax(x, 1)  F.linear(a, c)
F.smooth_l1_loss(x, y)  F.binary_cross_entropy_with_logits(x, r)  F.group_norm(images, 1)

cat([x, y])  cat([x, y], 1)  flip(x, (1,))  gather(x, 1, places)
scatter(x, 1, places, y)  searchsorted(ordered, x)  tile(x, (2, 1))  triu(x)
transpose(x, 0, 1).contiguous()  ones((n, n))  zeros((n, n))
"""

# MindSpore's operators of the library that only gradients ask for, and PyTorch's.
GRADIENTS = {
    "gelu_grad_ext_op(y, x)": "aten.gelu_backward(y, x)",
    "leaky_relu_grad_ext_op(y, x, 0.01, False)": "aten.leaky_relu_backward(y, x, 0.01, False)",
    "threshold_grad_op(y, x, 0.0)": "aten.threshold_backward(y, x, 0)",
    "softplus_grad_ext_op(y, x, 1, 20)": "aten.softplus_backward(y, x, 1, 20)",
    "mse_loss_grad_ext_op(loss, x, y)": "aten.mse_loss_backward(loss, x, y, 1)",
    "embedding_dense_backward_op(y, index, n)": "aten.embedding_dense_backward(y, index, n, -1, 0)",
}


def calls(text):
    """The calls of a list: two spaces or ends of lines lie between them."""
    return re.split(r"\s{2,}|\n", text.strip())


# ===--- a process that measures ---===


def operands(n):
    """NumPy arrays, and numbers."""
    import numpy as np

    rng = np.random.default_rng(1)

    def real(*shape):
        return rng.standard_normal(shape).astype(np.float32)

    x = real(n, n)
    channels, pixels = {4: (1, 4), 256: (4, 64), 512: (4, 64), 2048: (16, 128)}[n]
    k = min(n, 1024)  # matrices of products
    side = int(n / channels**0.5)
    return {
        "n": n,
        **{"x": x, "y": real(n, n), "t": x.copy(), "u": np.tanh(x), "p": np.abs(x) + 1.1},
        **{"q": 1 / (1 + np.exp(-x)), "r": np.float32(x > 0), "signs": np.sign(x), "mask": x > 0},
        **{"v": real(n), "w": real(n), "ordered": np.sort(real(n)), "points": real(n, 8)},
        **{"slope": np.float32([0.25]), "loss": np.float32(0.5)},
        **{name: rng.integers(-9, 9, (n, n)) for name in ("i", "j")},
        **{name: rng.integers(0, n, n) for name in ("index", "target")},
        "places": rng.integers(0, n, (n, n)),
        **{"a": real(k, k), "c": real(k, k), "batch": real(channels, side, side)},
        "images": real(channels, channels, pixels, pixels),
        "weight2": real(channels, channels, 3, 3),
        "signal": real(channels, channels, pixels**2),
        "weight1": real(channels, channels, 3),
        **{"average": real(channels), "variance": np.abs(real(channels))},
    }


class Worker:
    """Measures calls of mint, one by one or as graphs, and of PyTorch in this process."""

    def __init__(self, threads=None, processor_time=False):
        if threads:
            # For kernels that MindSpore calls; PyTorch reads it when it is loaded.
            os.environ["OMP_NUM_THREADS"] = str(threads)
        import mindspore as ms
        import numpy as np
        import torch
        from mindspore import mint
        from mindspore.ops.auto_generate import gen_ops_prim

        ms.set_device("CPU")
        if threads:
            torch.set_num_threads(threads)
            ms.device_context.cpu.op_tuning.threads_num(threads)
        ms.runtime.synchronize()  # the first one only logs that it is not for CPUs
        modules = {
            "mint": {**vars(gen_ops_prim), **vars(mint), "F": mint.nn.functional},
            "torch": {**vars(torch), "F": torch.nn.functional, "aten": torch.ops.aten},
        }
        modules["mint"] |= {"float16": ms.float16, "ops": ms.ops}
        self.modules = modules
        makers = {"mint": ms.Tensor, "torch": torch.tensor}
        self.ms = ms
        self.processor_time = processor_time
        wait = ms.runtime.synchronize
        self.waits = {"mint": wait, "graph": wait, "torch": lambda: None}

        @functools.cache
        def names(side, n):
            arrays = (np.ndarray, np.generic)
            converted = {
                name: makers[side](value) if isinstance(value, arrays) else value
                for name, value in operands(n).items()
            }
            return {**modules[side], **converted}

        self.names = names
        self.function = functools.lru_cache(maxsize=2)(self.function)  # a row's; graphs take long

    def function(self, side, call, n):
        if side == "graph":
            return self.graph(call, n)
        return eval(f"lambda: {call}", self.names(side, n))

    def graph(self, call, n):
        """A graph of the call. Its tensors are inputs: constants are computed once."""
        names = self.names("mint", n)
        used = dict.fromkeys(re.findall(r"\w+", call))
        inputs = [name for name in used if isinstance(names.get(name), self.ms.Tensor)]
        source = f"def graph({', '.join(inputs)}):\n    return {call}\n"
        # MindSpore reads the source, and looks for names in the function's module.
        linecache.cache[call] = (len(source), None, source.splitlines(True), call)
        module = sys.modules[f"size_{n}"] = types.ModuleType(f"size_{n}")
        vars(module).update(names, __name__=module.__name__)
        exec(compile(source, call, "exec"), vars(module))
        return functools.partial(self.ms.jit(module.graph), *(names[name] for name in inputs))

    def batch(self, side, function, count):
        """Seconds per call."""
        start = self.clock(side)
        for _ in range(count):
            function()
        self.waits[side]()
        return (self.clock(side) - start) / count

    def clock(self, side):
        if not self.processor_time:
            return time.perf_counter()
        # MindSpore's wait keeps a processor busy, but in graph mode.
        return time.process_time() - (time.thread_time() if side == "mint" else 0)

    def measure(self, side, call, n, count):
        """Seconds per call, and how many calls a batch should have. None for `count`: warm up."""
        function = self.function(side, call, n)
        if count is not None:
            # After a pause two threads share one processor for some 40 ms.
            start = time.perf_counter()
            while time.perf_counter() - start < WAKE_SECONDS:
                self.batch(side, function, count)
            return self.batch(side, function, count), count
        count = 1
        # MindSpore's own kernels try several numbers of threads in their first calls.
        for batches in range(4):
            seconds = self.batch(side, function, count)
            count = min(LONGEST_BATCH, max(1, round(BATCH_SECONDS / seconds)))
            if batches and seconds > LONG_CALL:  # the first makes the graph
                break
        return seconds, count

    def serve(self):
        """Answers the orders on standard input, a line of JSON each."""
        answers = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)  # what else is printed
        for order in sys.stdin:
            try:
                name, arguments = json.loads(order)
                answer = getattr(self, name)(**arguments)
            except Exception as error:
                answer = str(error)
            print(json.dumps(answer), file=answers, flush=True)


# ===--- the process that gives the orders ---===


class Process:
    """A worker, with the library or without: the running script with `--worker`."""

    def __init__(self, library, options, **environment):
        environment = os.environ | environment
        environment.pop("MS_OP_PLUGIN_PATH", None)
        environment["GLOG_v"] = "4"  # errors of kernels that are not there
        if library:
            environment["MS_OP_PLUGIN_PATH"] = library
        self.process = subprocess.Popen(
            [sys.executable, sys.argv[0], "--worker", *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def ask(self, name, **arguments):
        """Calls the worker's method."""
        print(json.dumps([name, arguments]), file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline()
        if not answer:
            sys.exit(f"{sys.argv[0]}: the process that measures ended at {arguments}")
        return json.loads(answer)

    def measure(self, side, call, n, count=None):
        return self.ask("measure", side=side, call=call, n=n, count=count)


class Others:
    """Counts what other programs have of the processors."""

    def __init__(self, processes):
        self.pids = [os.getpid(), *(process.process.pid for process in processes)]
        self.start, self.ticks = time.perf_counter(), self.count()

    def count(self):
        with open("/proc/stat") as file:
            user, nice, system, _, _, *interrupts_and_stolen = file.readline().split()[1:9]
        ticks = sum(map(int, (user, nice, system, *interrupts_and_stolen)))
        for pid in self.pids:
            with open(f"/proc/{pid}/stat") as file:
                fields = file.read().rpartition(")")[2].split()
            ticks -= int(fields[11]) + int(fields[12])
        return ticks

    def share(self):
        """Since this was made."""
        seconds = (self.count() - self.ticks) / os.sysconf("SC_CLK_TCK")
        return seconds / ((time.perf_counter() - self.start) * os.cpu_count())


def wait_for_quiet(processes, seconds):
    """At most so long."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        others = Others(processes)
        time.sleep(0.3)
        if others.share() < DISTURBED:
            break


def measure(sides, n, options, patience=PATIENCE):
    """Seconds per call of each side that has the call, round by round, and how disturbed they are.

    `sides` are {name: (process, "mint", "graph" or "torch", call)}.
    """
    counts = {}
    for name, (process, side, call) in sides.items():
        answer = process.measure(side, call, n)
        if not isinstance(answer, str):
            counts[name] = answer[1]
        elif name != "MindSpore":  # MindSpore has no such kernel
            print(f"{name}: {call}: {answer.strip().splitlines()[0]}", file=sys.stderr)
    names = list(counts)
    processes = {process for process, _, _ in sides.values()}
    measured = []
    while names and len(measured) < patience * options.rounds:
        turn = len(measured) % len(names)
        wait_for_quiet(processes, options.wait)
        others = Others(processes)
        times = {
            name: sides[name][0].measure(*sides[name][1:], n, counts[name])[0]
            for name in names[turn:] + names[:turn]
        }
        measured.append((others.share(), times))
        if sum(share < DISTURBED for share, _ in measured) == options.rounds:
            break
    quietest = sorted(measured, key=lambda one: one[0])[: options.rounds]
    return {name: [times[name] for _, times in quietest] for name in names}, [
        share for share, _ in quietest
    ]


def ratio(times, above, below):
    """The median of the rounds' ratios, or None where a side has no such call."""
    if above not in times or below not in times:
        return None
    return statistics.median(a / b for a, b in zip(times[above], times[below], strict=True))


def cell(value):
    return "" if value is None else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def row(*cells):
    print("| " + " | ".join(cells) + " |", flush=True)


def check_environment():
    """Ends the program where what is measured is not there."""
    for package in ("mindspore", "torch"):
        if importlib.util.find_spec(package) is None:
            print(f"{sys.argv[0]}: nothing is measured: {package} is not in this environment.")
            sys.exit()


def library():
    """The path of the library of kernels."""
    check_environment()
    named = os.environ.get("MS_OP_PLUGIN_PATH", "")
    if not os.path.isfile(named):
        sys.exit(
            f"{sys.argv[0]}: set MS_OP_PLUGIN_PATH to the library of kernels for mint "
            "(python -m aten_bridge.mint)"
        )
    return named


def parse_options(description, rounds, threads=PROCESSORS):
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--match", default="")
    parser.add_argument("--sizes", default=",".join(SIZES))
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--threads", type=int, default=threads)
    parser.add_argument("--wait", type=float, default=0)
    parser.add_argument("--processor-time", action="store_true")
    parser.add_argument("--output")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    return options


def main():
    options = parse_options(__doc__, rounds=7)
    if options.worker:
        Worker(options.threads, options.processor_time).serve()
        return
    sizes = options.sizes.split(",")
    with_library, without = (Process(name, sys.argv[1:]) for name in (library(), None))
    record, disturbances = {}, []

    def times_of(call):
        """The times of the library, of MindSpore's own and of PyTorch, for each size."""
        sides = {
            "library": (with_library, "mint", call),
            "MindSpore": (without, "mint", call),
            "PyTorch": (with_library, "torch", GRADIENTS.get(call, call)),
        }
        for size in sizes:
            times, shares = measure(sides, SIZES[size], options)
            disturbances.extend(shares)
            record[f"{call} {size}"] = times
            yield times

    print(f"{options.threads} threads on each side, {options.rounds} rounds\n")
    pairs = (("library", "MindSpore"), ("library", "PyTorch"))
    row("call", *(f"{size}: {' / '.join(pair)}" for size in sizes for pair in pairs))
    row("---", *["--:"] * len(pairs) * len(sizes))
    slower = []
    for call in [*calls(CALLS), *GRADIENTS]:
        if re.search(options.match, call):
            ratios = [ratio(measured_of, *pair) for measured_of in times_of(call) for pair in pairs]
            row(f"`{call}`", *map(cell, ratios))
            if max((r for r in ratios[::2] if r is not None), default=0) > WORTH:
                slower.append(call)
    print(f"\nMindSpore's own kernel is faster at some size: {', '.join(slower)}\n")

    row("one call, 4x4", "us", f"/ MindSpore's own `{SMALL}`")
    row("---", "--:", "--:")
    sides = {
        f"MindSpore's own `{SMALL}`": (without, "mint", SMALL),
        f"the library's `{SMALL}`": (with_library, "mint", SMALL),
        f"PyTorch's `{SMALL}`": (with_library, "torch", SMALL),
    }
    times, _ = measure(sides, SIZES["small"], options)
    for name, seconds in times.items():
        microseconds = statistics.median(seconds) * 1e6
        row(name, f"{microseconds:.1f}", cell(ratio(times, name, next(iter(sides)))))

    print(f"\nOther programs had {statistics.median(disturbances):.0%} of the processors.")
    if options.output:
        with open(options.output, "w") as file:
            json.dump(record, file)


if __name__ == "__main__":
    main()

"""Tables and pictures of what the target `bench` measured.

    python performance.py <folder with the JSON files> [--write]

prints the tables and draws the pictures into that folder. `--write` puts the tables where README
and the pages in docs/ have marks for them, and the pictures into docs/performance/.
"""

import argparse
import importlib.metadata
import json
import pathlib
import re
import statistics

import pynative_speed
from mint_speed import MODES, SIZES, cell, ratio
from operator_speed import ROUNDING

ROOT = pathlib.Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
BLOCK = re.compile(r"(<!-- begin: benchmarks/performance\.py#(\w+) -->\n).*?(<!-- end -->)", re.S)

SLOTS = (1, 2, 8, 32)
# Rows of slots_benchmark.cpp and of the peers, in the order of the table.
ROWS = {
    "empty": "an empty C function",
    "guards": "the guards that a call enters",
    "views": "a kernel that does nothing: views, checks, guards",
    "tutorial": "conversion as in MindSpore's tutorial",
    "from_blob": "`at::from_blob`",
    "dlpack": "DLPack: `at::fromDLPack`",
    "tvm_ffi": "tvm-ffi: a function over `TensorView`",
    "xla_ffi": "XLA FFI: a handler over buffers",
    "operator": "an operator, called directly",
    "operator_through_bridge": "the same, as a kernel",
}
DIRECT = "direct/leaky_relu_out_below_autograd"
MOST_BESIDE = 120  # ns that LeakyRelu may take more than the operator
PYNATIVE_GOALS = {  # by the rows of pynative_speed.py
    "forward": "a call",
    "by hand": "a gradient written by hand",
    "gradient": "a gradient by PyTorch's autograd",
}
BLUE, ORANGE, GREY = "#1f6fb4", "#c8581a", "#8a8f94"
LIGHT, DARK = "#8fc1ea", "#0d3a63"


def is_operator(function):
    """Whether a function that the library calls is the operator of its kernel."""
    return function.startswith("at::_ops::")


class Results:
    """What was measured."""

    def __init__(self, folder):
        self.folder = folder
        self.calls = json.loads((folder / "call_benchmark.json").read_text())
        self.builds = json.loads((folder / "build_cost.json").read_text())
        self.instructions = self.of("instructions.json")
        self.pynative = self.of("pynative_speed.json")
        self.operators = self.of("operator_speed.json")
        self.threads = self.of("thread_speed.json")
        self.training = self.of("training_speed.json")
        self.medians = {  # processor time
            row["run_name"]: row["cpu_time"]
            for row in self.calls["benchmarks"]
            if row["aggregate_name"] == "median"
        }

    def of(self, name):
        """What a file has; None without it."""
        path = self.folder / name
        return json.loads(path.read_text()) if path.exists() else None

    def times_as_fast(self, mode):
        """ATen's operators as MindSpore's own: {operator: {size: ratio}}."""
        return {
            name: {
                size: ratio(times, f"MindSpore {mode}", f"library {mode}")
                for size, times in one["seconds"].items()
            }
            for name, one in self.operators["operators"].items()
        }

    def of_relu(self, setting, row="forward"):
        """A kernel's call as times of `mint` relu, by the native caller and by `ops.Custom`."""
        ways = self.pynative["settings"][setting][row].values()
        return [cell(way["ratio"]) for way in ways]

    def at(self, row):
        """Nanoseconds of a row of slots_benchmark.cpp for each number of slots."""
        return [self.medians[f"{row}/{slots}"] for slots in SLOTS]

    def rows(self):
        """Those that are there: the peers may be missing."""
        return [row for row in ROWS if f"{row}/1" in self.medians]

    def views(self):
        """The time for two tensors, without the guards and the call itself."""
        return self.medians["views/2"] - self.medians["guards/2"]

    def tutorial(self):
        """The conversion of two tensors, without the call itself."""
        return self.medians["tutorial/2"] - self.medians["empty/2"]

    def whole_call(self):
        """The ratio of the whole call of LeakyRelu, 4x4, to the operator's own."""
        return self.medians["call/leaky_relu"] / self.medians[DIRECT]

    def beside_the_operator(self):
        """Nanoseconds of the whole call of LeakyRelu, 4x4, less the operator's own."""
        return self.medians["call/leaky_relu"] - self.medians[DIRECT]

    def bridge_instructions(self):
        """All of a LeakyRelu call but the operator's: the bridge's, and those of what it calls."""
        own, called = self.instructions["own"], self.instructions["called"]
        others = (cost for name, cost in called.items() if not is_operator(name))
        return sum(own.values()) + sum(others)

    def two_attributes(self):
        return self.medians["call/leaky_relu_with_two_attributes"] / self.medians["call/leaky_relu"]

    def elements(self):
        """Nanoseconds as a kernel, and called directly, for each number of elements."""
        return [
            (count, *(self.medians[f"{name}_on_elements/{count}"] for name in ("call", "direct")))
            for count in (10**exponent for exponent in range(8))
        ]

    def further_slots(self):
        """Nanoseconds for each slot more, between one number of slots and the next."""
        times = self.at("views")
        return [
            (times[i + 1] - times[i]) / (SLOTS[i + 1] - SLOTS[i]) for i in range(len(SLOTS) - 1)
        ]

    def compile_time(self, source="leaky_relu"):
        """The ratio of the source with the header to that without."""
        return self.builds[source]["seconds"] / self.builds["leaky_relu_alone"]["seconds"]


# ===--- tables ---===


def table(head, rows):
    lines = [head, ["---", *["--:"] * (len(head) - 1)], *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def number(value):
    return f"{value:.1f}" if value < 100 else f"{value:,.0f}"


def duration(nanoseconds):
    """With the unit that suits it."""
    for unit, size in (("ms", 1e6), ("µs", 1e3)):
        if nanoseconds >= size:
            return f"{nanoseconds / size:.3g} {unit}"
    return f"{nanoseconds:.3g} ns"


def kib(size):
    return f"{size / 1024:.0f} KiB"


# The summary in both languages of README: what was always measured, and what needs MindSpore.
SUMMARY = (
    "- Views of two tensors are made and checked in **{views} ns**, not counting the guards of"
    " a call; the conversion of MindSpore's tutorial takes {tutorial} ns, two calls of"
    " `at::from_blob` {from_blob} ns, two DLPack imports {dlpack} ns."
    " A whole `LeakyRelu` call on 4x4 tensors takes **{call} times** as long as the operator alone:"
    " {more} ns more.\n"
    "- The library of that kernel is **{size}** large, and its source compiles in {seconds} s,"
    " **{compiling} times** as long as the operator's call without the bridge.\n",
    "- In MindSpore on the CPU {count} common operators of ATen are, in the median and on large"
    " tensors, **{pynative} times** as fast as MindSpore's own in PyNative mode and **{graph}"
    " times** in graph mode.\n",
    "- Once `aten-bridge prepare-mindspore` has compiled the native caller, a kernel call in"
    " MindSpore's PyNative mode takes **{queues} times** as long as MindSpore's own `mint` relu,"
    " and **{blocking} times** when blocking; by `ops.Custom` it takes {custom_queues} and"
    " {custom_blocking} times as long.\n",
)
SUMMARY_IN_CHINESE = (
    "- 为两个张量建立并检查视图需 **{views} ns**，不含每次调用的保护；MindSpore 教程的转换需"
    " {tutorial} ns，调用两次 `at::from_blob` 需 {from_blob} ns，两次 DLPack 导入需"
    " {dlpack} ns。"
    "在 4x4 张量上，完整的一次 `LeakyRelu` 调用用时是算子本身的 **{call} 倍**，多"
    " {more} ns。\n"
    "- 该 kernel 的库为 **{size}**，源码的编译用时 {seconds} s，是不用本项目、只调用该算子的源码的"
    " **{compiling} 倍**。\n",
    "- 在 CPU 上的 MindSpore 里，{count} 个常用的 ATen 算子在大张量上的中位速度，PyNative"
    " 模式下是 MindSpore 自带算子的 **{pynative} 倍**，图模式下是 **{graph} 倍**。\n",
    "- 用 `aten-bridge prepare-mindspore` 编译原生调用器之后，在 MindSpore 的 PyNative 模式下，"
    "调用一次 kernel 的用时，使用队列时是 `mint` 自带 relu 的"
    " **{queues} 倍**，阻塞执行时是 **{blocking} 倍**；经由 `ops.Custom` 则分别是"
    " {custom_queues} 倍和 {custom_blocking} 倍。\n",
)


def summary(results, texts=SUMMARY):
    two = {row: number(results.medians[f"{row}/2"]) for row in ("from_blob", "dlpack")}
    builds = results.builds["leaky_relu"]
    text = texts[0].format(
        views=number(results.views()),
        tutorial=number(results.tutorial()),
        call=f"{results.whole_call():.2f}",
        more=number(results.beside_the_operator()),
        size=kib(builds["bytes"]),
        seconds=f"{builds['seconds']:.1f}",
        compiling=f"{results.compile_time():.2f}",
        **two,
    )
    if results.operators:
        pynative, graph = (
            cell(statistics.median(row["large"] for row in results.times_as_fast(mode).values()))
            for mode in MODES
        )
        count = len(results.operators["operators"])
        text += texts[1].format(count=count, pynative=pynative, graph=graph)
    if results.pynative:
        queues, blocking = (results.of_relu(setting) for setting in pynative_speed.SETTINGS)
        text += texts[2].format(
            queues=queues[0],
            blocking=blocking[0],
            custom_queues=queues[1],
            custom_blocking=blocking[1],
        )
    return text


def summary_in_chinese(results):
    return summary(results, SUMMARY_IN_CHINESE)


def disturbance(results):
    """How much of the processors other programs had; never less than nothing."""
    return (
        f"Other programs had {max(0.0, results['disturbed']):.0%} of the processors while this was"
        " measured.\n"
    )


def goals(results):
    views, further = results.views(), results.further_slots()
    faster = results.tutorial() / views
    more, attributes = results.beside_the_operator(), results.two_attributes()
    size, compiling = results.builds["leaky_relu"]["bytes"], results.compile_time()
    with_all = results.compile_time("leaky_relu_header_only")
    rows = [  # the goal, what was measured, and a number with its limit
        ("two views made and checked in 25 ns", f"{number(views)} ns", views, 25),
        (
            "100 times faster than the tutorial's conversion",
            f"{faster:.1f} times",
            100 / faster,
            1,
        ),
        (
            f"LeakyRelu at most {MOST_BESIDE} ns slower than the operator",
            f"{number(more)} ns",
            more,
            MOST_BESIDE,
        ),
        ("with two attributes no slower", f"{attributes:.2f}", round(attributes, 2), 1),
        (
            "cost linear in the number of slots",
            " / ".join(map(number, further)) + " ns for each more, up to 2 / 8 / 32",
            further[-1] / further[-2],
            1.1,
        ),
        ("LeakyRelu's `.so` under 150 KiB", kib(size), size / 1024, 150),
        (
            "its compile time within 1.2 of the operator's without the header",
            f"{compiling:.2f}",
            compiling,
            1.2,
        ),
        ("within 1.6 of it with all of the bridge in it", f"{with_all:.2f}", with_all, 1.6),
    ]
    if results.instructions:
        spent = results.bridge_instructions()
        reached = f"{spent:,.0f} instructions"
        rows.append(
            ("at most 1,000 instructions of its call beside the operator", reached, spent, 1000)
        )
        count = results.instructions["allocations"]
        reached = f"{count:,.0f} instructions of `malloc`"
        rows.append(("no heap allocation from the second call on", reached, count, 0))
    for row, what in PYNATIVE_GOALS.items() if results.pynative else ():
        found = [results.of_relu(setting, row)[0] for setting in pynative_speed.SETTINGS]
        text = f"{what} in PyNative mode at most as long as that of `mint` relu"
        rows.append((text, " / ".join(found) + ", queues / blocking", max(map(float, found)), 1))

    def verdict(value, limit):
        if value <= limit:
            return "met"
        return f"missed: {value / limit:.2f} times the goal" if limit else "missed"

    lines = [[text, reached, verdict(*numbers)] for text, reached, *numbers in rows]
    return table(["goal", "measured", ""], lines)


def slots(results):
    rows = [[ROWS[row], *map(number, results.at(row))] for row in results.rows()]
    return table(["ns per call, slots:", *map(str, SLOTS)], rows)


def elements(results):
    rows = [
        [f"{count:,}", duration(call), duration(direct), f"{call / direct:.2f}"]
        for count, call, direct in results.elements()
    ]
    return table(["elements", "as a kernel", "called directly", "ratio"], rows)


def layers(results):
    same, other = (
        results.medians[f"alternating/{shapes}"] for shapes in ("one_shape", "two_shapes")
    )
    return (
        "Two layers of a network alternately call a kernel that does nothing, with two tensors"
        f" each: the two calls take {number(same)} ns where all tensors have one shape, and "
        f"{number(other)} ns where each layer has its own.\n"
    )


def instructions(results):
    if not results.instructions:
        return "Not counted: valgrind was not there, or failed.\n"
    own, called = results.instructions["own"], results.instructions["called"]
    operator = sum(cost for name, cost in called.items() if is_operator(name))
    others = {name: cost for name, cost in called.items() if not is_operator(name)}
    total = sum(own.values()) + sum(called.values())

    def line(text, cost):
        return [text, f"{cost:,.0f}", f"{cost / total:.0%}"]

    def group(text, costs, named):
        """The sum, then the largest by name."""
        costs = dict(sorted(costs.items(), key=lambda item: -item[1]))
        yield line(text, sum(costs.values()))
        for name, cost in list(costs.items())[:named]:
            yield line(f"&nbsp;&nbsp; `{name}`", cost)

    counted = table(
        ["instructions of one call of LeakyRelu, 4x4", "", ""],
        [
            line("the operator", operator),
            *group("the bridge's own functions", own, named=6),
            *group("what they call in PyTorch and the C library", others, named=6),
            line("sum", total),
        ],
    )
    empty, alone, after, call = (
        number(results.medians[row])
        for row in ("views/2", DIRECT, "direct_after_empty_kernel", "call/leaky_relu")
    )
    return counted + (
        f"\nA loop with more code in it is slower than its parts: a kernel that does nothing takes"
        f" {empty} ns and the operator {alone} ns, each in a loop of its own; one called after the"
        f" other, on tensors of their own, they take {after} ns, and LeakyRelu {call} ns.\n"
    )


def build(results):
    texts = {
        "leaky_relu_alone": "the operator's call without the header",
        "header_unused": "the same, the header included and not used",
        "leaky_relu": "LeakyRelu, by `aten_bridge_add_kernel`",
        "leaky_relu_for_all_hosts": "the same for MindSpore, PyTorch and JAX",
        "leaky_relu_header_only": "LeakyRelu with all of the bridge in it",
    }
    rows = [
        [
            text,
            f"{cost['seconds']:.1f} s",
            f"{cost['read_seconds']:.1f} s",
            f"{cost['peak_kib'] / 1024:,.0f} MiB",
            kib(cost["bytes"]) if "bytes" in cost else "",
        ]
        for text, cost in ((text, results.builds[name]) for name, text in texts.items())
    ]
    head = ["", "compile time", "`-fsyntax-only`", "memory at the peak", "`.so`"]
    library = results.builds["leaky_relu"]
    kinds = {kind: kib(size) for kind, size in library["sections"].items()}
    rest = kib(library["bytes"] - sum(library["sections"].values()))
    return table(head, rows) + (
        f"\nOf LeakyRelu's {kib(library['bytes'])} {kinds['code']} are code, {kinds['unwinding']}"
        f" tables for exceptions, {kinds['constants']} constants and texts, {rest} symbols and what"
        " binds them.\n"
    )


NO_MINDSPORE = "Not measured: MindSpore or PyTorch was not in the Python environment.\n"


def operators(results):
    if not results.operators:
        return NO_MINDSPORE
    ratios = {mode: results.times_as_fast(mode) for mode in MODES}
    columns = [(size, mode) for size in SIZES for mode in MODES]
    rows = []
    for name, one in results.operators["operators"].items():
        largest = max(one["difference"].values())
        rows.append(
            [
                f"`{one['call']}`",
                "the same" if one["own"] == one["call"] else f"`{one['own']}`",
                *(cell(ratios[mode][name][size]) for size, mode in columns),
                f"**{largest:.0e}**" if largest > ROUNDING else f"{largest:.0e}" if largest else "",
            ]
        )
    medians = [
        cell(statistics.median(ratio[size] for ratio in ratios[mode].values()))
        for size, mode in columns
    ]
    head = ["ATen's", "MindSpore's own", *map(", ".join, columns), "difference"]
    return table(head, [*rows, ["median", "", *medians, ""]]) + (
        f"\nThreads on each side: {results.operators['threads']}. {disturbance(results.operators)}"
    )


def threads(results):
    if not results.threads:
        return NO_MINDSPORE
    chains = results.threads["chains"]
    settings = list(next(iter(chains.values())))
    rows = [
        [name, *(f"{seconds[setting] * 1e6:,.0f}" for setting in settings)]
        for name, seconds in chains.items()
    ]
    return table(["µs per call", *settings], rows) + "\n" + disturbance(results.threads)


def training(results):
    if not results.training:
        return NO_MINDSPORE
    times = results.training["times"]
    sides = list(times["TransformerEncoder.step"])
    rows = []
    for part, seconds in times.items():
        network, _, name = part.partition(".")
        values = [f"{seconds[side] * 1e3:.1f}" if side in seconds else "" for side in sides]
        ratios = [
            f"{seconds[side] / seconds['PyTorch']:.2f}" if side in seconds else ""
            for side in sides[1:]
        ]
        rows.append([f"{network}, {name}", *values, *ratios])
    head = ["ms", *sides, *(f"{side} / PyTorch" for side in sides[1:])]
    return table(head, rows) + "\n" + disturbance(results.training)


def pynative(results):
    if not results.pynative:
        return NO_MINDSPORE
    texts = (
        "With MindSpore's queues, its default:",
        "Blocking, where MindSpore runs each operator at once (`ms.runtime.launch_blocking()`):",
    )
    tables = (
        f"{text}\n\n{table(*pynative_speed.cells_of(results.pynative['settings'][setting]))}"
        for text, setting in zip(texts, pynative_speed.SETTINGS, strict=True)
    )
    return "\n".join([*tables, f"MindSpore {results.pynative['mindspore']}.\n"])


def gradients(results):
    texts = {
        "forward kernel": ("call/leaky_relu", "call_on/conv2d"),
        "gradient kernel by autograd": (
            "call_on/leaky_relu_gradient_by_autograd",
            "call_on/conv2d_gradient_by_autograd",
        ),
        "gradient kernel by hand (`leaky_relu_backward`)": (
            "call_on/leaky_relu_gradient_by_hand",
            None,
        ),
        "PyTorch's forward and backward, with a graph": (
            "pytorch_forward_and_backward/leaky_relu",
            "pytorch_forward_and_backward/conv2d",
        ),
    }
    head = ["", "leaky_relu, 4x4", "conv2d, 8x16x32x32 with 16 filters of 3x3"]
    return table(
        head,
        [
            [text, *(duration(results.medians[row]) if row else "" for row in rows)]
            for text, rows in texts.items()
        ],
    )


def machine(results):
    context = results.calls["context"]
    processor = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    versions = [f"PyTorch {context['pytorch']}", results.builds["compiler"]]
    peers = [str(results.folder / "peers")]
    for package, name in (("apache-tvm-ffi", "tvm-ffi"), ("jaxlib", "jaxlib, for XLA FFI,")):
        for found in importlib.metadata.distributions(name=package, path=peers):
            versions.append(f"{name} {found.version}")
    return (
        f"{context['date'][:10]}, {context['num_cpus']} processors"
        f" ({processor.group(1) if processor else 'of a kind that is not told'});"
        f" {', '.join(versions)}; Release (`-O3`).\n"
    )


TABLES = {
    "summary": summary,
    "summary_in_chinese": summary_in_chinese,
    "machine": machine,
    "goals": goals,
    "slots": slots,
    "layers": layers,
    "instructions": instructions,
    "elements": elements,
    "build": build,
    "gradients": gradients,
    "pynative": pynative,
    "operators": operators,
    "threads": threads,
    "training": training,
}


# ===--- pictures ---===


def axes_of(figure, rows=1, columns=1, **options):
    """Without what is no data."""
    axes = figure.subplots(rows, columns, squeeze=False, **options).flatten()
    for one in axes:
        one.spines[["top", "right"]].set_visible(False)
        one.grid(axis="y", color="#e4e6e8", linewidth=0.8)
        one.set_axisbelow(True)
    return axes


def draw_slots(results, figure):
    figure.set_size_inches(8, 5)
    (axes,) = axes_of(figure)
    colors = {"views": BLUE, "tutorial": ORANGE}
    names = {
        "empty": "empty C function",
        "guards": "guards alone",
        "views": "aten_bridge",
        "tutorial": "MindSpore's tutorial",
        "from_blob": "at::from_blob",
        "dlpack": "at::fromDLPack",
        "tvm_ffi": "tvm-ffi (no ATen)",
        "xla_ffi": "XLA FFI (no ATen)",
    }
    axes.set(xscale="log", yscale="log", xlabel="slots (4x4 float32 tensors)", ylabel="ns per call")
    axes.set_xticks(SLOTS, SLOTS)
    axes.minorticks_off()
    height = 0.0  # the last label's
    for row in sorted(set(names) & set(results.rows()), key=lambda row: results.at(row)[-1]):
        times = results.at(row)
        color = colors.get(row, GREY)
        axes.plot(SLOTS, times, "o-", color=color, linewidth=2.4 if row == "views" else 1.4, ms=4)
        height = max(times[-1], 1.5 * height)  # labels do not cover each other
        axes.annotate(
            names[row],
            (SLOTS[-1], height),
            xytext=(8, 0),
            textcoords="offset points",
            va="center",
            color=color,
            weight="bold" if row == "views" else "normal",
            annotation_clip=False,
        )
    axes.set_title("Tensors handed to a function that does nothing", loc="left")


def draw_elements(results, figure):
    figure.set_size_inches(8, 5.5)
    above, below = axes_of(figure, 2, sharex=True, height_ratios=(3, 2))
    counts, calls, direct = zip(*results.elements(), strict=True)
    above.plot(counts, calls, "o-", color=BLUE, ms=4, label="LeakyRelu as a kernel")
    above.plot(counts, direct, "o-", color=GREY, ms=4, label="at::leaky_relu_out, called directly")
    above.set(xscale="log", yscale="log", ylabel="ns per call")
    above.legend(frameon=False)
    above.set_title("A whole call and the operator alone", loc="left")
    ratios = [call / one for call, one in zip(calls, direct, strict=True)]
    goal = [(one + MOST_BESIDE) / one for one in direct]
    below.plot(counts, goal, "--", color=ORANGE, linewidth=1)
    below.text(
        counts[0],
        goal[0],
        f"goal: {MOST_BESIDE} ns more",
        color=ORANGE,
        va="bottom",
        fontsize="small",
    )
    below.plot(counts, ratios, "o-", color=BLUE, ms=4)
    below.set(xlabel="elements (float32)", ylabel="ratio", ylim=(min(0.9, *ratios), None))


def draw_operators(results, figure):
    figure.set_size_inches(9, 8)
    axes = axes_of(figure, columns=len(MODES), sharex=True, sharey=True)
    order = results.times_as_fast("graph")
    names = sorted(order, key=lambda name: statistics.geometric_mean(order[name].values()))
    for one, mode in zip(axes, MODES, strict=True):
        ratios = results.times_as_fast(mode)
        one.axvline(1, color=ORANGE, linewidth=1.2)
        for (size, n), color in zip(SIZES.items(), (LIGHT, BLUE, DARK), strict=True):
            values = [ratios[name][size] for name in names]
            one.plot(values, names, "o", color=color, ms=5, label=f"{size} ({n}x{n})")
        one.set(xscale="log", xlabel="times as fast as MindSpore's own", title=mode)
        one.xaxis.set_major_formatter("{x:g}")
        one.margins(y=0.02)
    axes[-1].legend(frameon=False, loc="lower right", fontsize="small")
    figure.suptitle("ATen through the bridge and MindSpore's own operators", x=0.02, ha="left")
    figure.tight_layout()


def draw_training(results, figure):
    times = results.training["times"]
    networks = list(dict.fromkeys(part.partition(".")[0] for part in times))
    figure.set_size_inches(9, 3.6)
    axes = axes_of(figure, columns=len(networks))
    colors = {"PyTorch": ORANGE, "PyNative": LIGHT, "blocking": BLUE, "graph": DARK}
    for one, network in zip(axes, networks, strict=True):
        sides = list(times[f"{network}.step"])
        heights = [times[f"{network}.step"][side] * 1e3 for side in sides]
        one.bar(sides, heights, color=[colors[side] for side in sides], width=0.65)
        for side, height in zip(sides, heights, strict=True):
            one.text(side, height, f"{height:.1f}", ha="center", va="bottom", fontsize="small")
        one.set(title=network, ylabel="ms" if network == networks[0] else "")
        one.margins(y=0.12)
    figure.suptitle("A training step: loss, gradients and Adam", x=0.02, ha="left")
    figure.tight_layout()


# Drawn where their file is there.
PICTURES = {
    "slots.svg": (draw_slots, "call_benchmark.json"),
    "elements.svg": (draw_elements, "call_benchmark.json"),
    "operators.svg": (draw_operators, "operator_speed.json"),
    "training.svg": (draw_training, "training_speed.json"),
}


def draw(results, folder):
    try:
        import matplotlib
    except ImportError:
        print("No pictures are drawn: matplotlib is not installed (pip install matplotlib).")
        return
    from matplotlib.figure import Figure

    # Text as text, and the same file from the same figures.
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "aten_bridge"})
    folder.mkdir(exist_ok=True)
    for name, (function, source) in PICTURES.items():
        if (results.folder / source).exists():
            figure = Figure(facecolor="white")
            function(results, figure)
            figure.savefig(
                folder / name,
                bbox_inches="tight",
                pad_inches=0.3,  # fonts may be wider where it is seen
                metadata={"Date": None, "Creator": None},
            )
            print(f"Picture: {folder / name}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    results = Results(options.folder)
    if options.write:
        for page in (*ROOT.glob("README*.md"), *DOCS.glob("*.md")):
            text = page.read_text()
            written = BLOCK.sub(lambda m: f"{m[1]}\n{TABLES[m[2]](results)}\n{m[3]}", text)
            if written != text:
                page.write_text(written)
    else:
        print(*(function(results) for function in TABLES.values()), sep="\n")
    draw(results, DOCS / "performance" if options.write else options.folder)


if __name__ == "__main__":
    main()

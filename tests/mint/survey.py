"""Which functions of mint work on the CPU, without and with the library: the table in the docs.

    MS_OP_PLUGIN_PATH=$(python -m aten_bridge.mint) python tests/mint/survey.py [--write]

Each call of cases.py is made in both frameworks, in float32 and with each dtype that PyTorch takes,
with inputs that lie in memory as they come and with transposed parts of larger ones, in graph mode,
without elements and with one; then its gradient in the floating-point dtypes. Another process makes
the calls, since some of MindSpore's faults end it. 12 to 22 minutes, most of it for the faults
without the library.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from cases import FAMILIES

DTYPES = ("float32", "float16", "bfloat16", "float64", "int32", "int64", "bool")
# A result's, relative and absolute. The same operators in both, or MindSpore's own composition.
TOLERANCE = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 1e-5, "float64": 1e-11}
GRADIENT_TOLERANCE = {"float16": 2e-2, "bfloat16": 1e-1, "float32": 1e-4, "float64": 1e-9}
GRADIENT = "gradient"  # a kind of call with its dtype: "gradient float32"
GRAPH_GRADIENT = "graph gradient"  # in float32
SHAPES = ("empty", "0-dim")
# In MindSpore's texts.
NO_KERNEL = ("unregistered", "not registered", "Unsupported op [")
PAGE = Path(__file__).parents[2] / "docs" / "mint-functions.md"
BEGIN, END = "<!-- begin: tests/mint/survey.py -->\n", "<!-- end -->\n"


def calls() -> dict[str, list]:
    """By the function's name: the family, arguments and keywords of its calls."""
    found: dict[str, list] = {}
    for family, cases in FAMILIES.items():
        for module, function, arguments, keywords in cases:
            name = f"{module}.{function}".lstrip(".")
            found.setdefault(name, []).append((family, arguments, keywords))
    return found


def is_real(value) -> bool:
    return isinstance(value, np.ndarray) and value.dtype == np.float32


def leaves(value) -> list:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [leaf for part in value for leaf in leaves(part)]
    return [value]


def jobs(pattern: str, kinds_of_real: Iterable[str]) -> Iterator[dict]:
    for name, of_function in calls().items():
        for index, (family, *given) in enumerate(of_function):
            if pattern not in name:
                continue
            has_real = any(is_real(leaf) for leaf in leaves(given))
            kinds = ["float32", "graph"]
            if has_real:
                kinds = [*DTYPES, "strided", "graph", "strided graph", *kinds_of_real]
            for kind in kinds:
                if family != "random numbers" or kind in (*DTYPES, "graph"):
                    yield {"name": name, "index": index, "kind": kind}


# ===--- the process that makes the calls ---===


def functions(name: str) -> tuple:
    """Those of mint and of PyTorch: "mm", "nn.functional.relu"."""
    import torch

    elsewhere = {
        "addr_": torch.Tensor.addr_,
        "item": torch.Tensor.item,
        "npu_gelu": torch.nn.functional.gelu,
        "nn.functional.flatten": torch.flatten,
        "nn.functional.sigmoid_": torch.sigmoid_,
        # PyTorch has these on CUDA only.
        "batch_norm_stats": batch_norm_stats,
        "batch_norm_elemt": batch_norm_elemt,
        "batch_norm_gather_stats_with_counts": batch_norm_gather_stats_with_counts,
    }
    module, _, function = name.rpartition(".")
    of_mint, of_torch = (
        importlib.import_module(f"{root}.{module}".rstrip("."))
        for root in ("mindspore.mint", "torch")
    )
    return getattr(of_mint, function), elsewhere.get(name) or getattr(of_torch, function)


class Worker:
    """Answers jobs: whether PyTorch takes the call, and what is wrong with MindSpore's result."""

    def __init__(self):
        import mindspore as ms
        import torch

        self.ms, self.torch = ms, torch
        ms.set_device("CPU")
        torch.set_num_threads(1)
        if os.environ.get("MS_OP_PLUGIN_PATH"):
            from aten_bridge.mint import install

            install()

    def tensor_of_mindspore(self, array, kind):
        ms = self.ms
        array = as_shape(array, kind)
        if not is_real(array):
            return ms.Tensor(array)
        if kind == "strided" and array.ndim > 0:
            # The rest of a larger tensor, transposed.
            inner = (slice(1, None),) * array.ndim
            larger = np.zeros([size + 1 for size in array.T.shape], np.float32)
            larger[inner] = array.T
            return ms.Tensor(larger).permute(tuple(reversed(range(array.ndim))))[inner]
        if kind == "bfloat16":
            return ms.Tensor(array).astype(ms.bfloat16)
        return ms.Tensor(as_dtype(array, kind))

    def tensor_of_pytorch(self, array, kind):
        array = as_shape(array, kind)
        if not is_real(array):
            return self.torch.tensor(array)
        if kind == "bfloat16":
            return self.torch.tensor(array).to(self.torch.bfloat16)
        return self.torch.tensor(as_dtype(array, kind))

    def answer(self, name, index, kind):
        family, arguments, keywords = calls()[name][index]
        if kind.startswith(GRADIENT):
            return self.gradient(name, arguments, keywords, kind.removeprefix(f"{GRADIENT} "))
        if kind in ("strided graph", GRAPH_GRADIENT):
            return self.in_graph(name, arguments, keywords, is_gradient=kind == GRAPH_GRADIENT)
        of_mint, of_torch = functions(name)
        inputs = convert((arguments, keywords), lambda a: self.tensor_of_pytorch(a, kind))
        try:
            expected = of_torch(*inputs[0], **inputs[1])
        except Exception as error:
            return False, first_line(error)
        ours = convert((arguments, keywords), lambda a: self.tensor_of_mindspore(a, kind))
        try:
            result = (self.compiled(of_mint) if kind == "graph" else of_mint)(*ours[0], **ours[1])
            fault = self.fault(result, expected, with_values=family != "random numbers")
            if fault is None and name.endswith("_"):
                fault = self.fault(ours[0][0], inputs[0][0])
        except Exception as error:
            fault = f"error: {first_line(error)}"
        if fault is not None:
            self.run_to_the_end()
        return True, fault

    def compiled(self, function):
        @self.ms.jit
        def graph(*inputs, **more):
            return function(*inputs, **more)

        return graph

    def in_graph(self, name, arguments, keywords, is_gradient):
        """With the first two inputs transposed in the graph, and the result after it.

        Graph mode knows little of Python: one function for one input, one for two.
        """
        ms, torch = self.ms, self.torch
        of_mint, of_torch = functions(name)
        places = [i for i, a in enumerate(arguments) if is_real(a) and a.ndim > 1][:2]
        if not places or name.endswith("_"):
            return False, "no such input"
        theirs = list(convert(arguments, torch.tensor))
        for i in places:
            theirs[i].requires_grad_(is_gradient)
        try:
            expected = of_torch(*theirs, **convert(keywords, torch.tensor))
        except Exception as error:
            return False, first_line(error)
        ours, more = convert(arguments, ms.Tensor), convert(keywords, ms.Tensor)
        first, last = places[0], places[-1]
        before, between, after = ours[:first], ours[first + 1 : last], ours[last + 1 :]
        permute = ms.mint.permute
        order_x, order_y = (tuple(reversed(range(arguments[i].ndim))) for i in (first, last))

        def of_one(x):
            return of_mint(*before, permute(x, order_x), *after, **more)

        def of_two(x, y):
            return of_mint(
                *before, permute(x, order_x), *between, permute(y, order_y), *after, **more
            )

        forward = of_one if len(places) == 1 else of_two
        transposed = [ms.Tensor(np.ascontiguousarray(arguments[i].T)) for i in places]
        if not is_gradient:
            return True, self.fault_of(lambda: ms.jit(forward)(*transposed), expected)
        if not isinstance(expected, torch.Tensor) or not expected.requires_grad:
            return False, "no gradient"
        order = tuple(reversed(range(expected.ndim)))
        weights = np.sin(np.arange(expected.numel()) + 1).astype(np.float32)
        weights = weights.reshape(tuple(reversed(expected.shape)))
        try:
            (expected.permute(order) * torch.tensor(weights)).sum().backward()
        except RuntimeError as error:
            return False, first_line(error)
        if any(theirs[i].grad is None for i in places):
            return False, "no gradient"
        weights = ms.Tensor(weights)

        def loss_of_one(x):
            return ms.mint.sum(permute(of_one(x), order) * weights)

        def loss_of_two(x, y):
            return ms.mint.sum(permute(of_two(x, y), order) * weights)

        loss = loss_of_one if len(places) == 1 else loss_of_two
        gradients = [theirs[i].grad.permute(order_x if i == first else order_y) for i in places]
        gradient = ms.grad(loss, grad_position=tuple(range(len(places))))
        return True, self.fault_of(
            lambda: ms.jit(gradient)(*transposed), gradients, GRADIENT_TOLERANCE["float32"]
        )

    def fault_of(self, call, expected, tolerance=None):
        try:
            return self.fault(call(), expected, tolerance=tolerance)
        except Exception as error:
            self.run_to_the_end()
            return f"error: {first_line(error)}"

    def run_to_the_end(self):
        """Waits for what runs, so that an error of this call is not raised in the next one."""
        with contextlib.suppress(Exception):
            self.ms.runtime.synchronize()

    def fault(self, result, expected, with_values=True, tolerance=None):
        """What is wrong with a result, or None."""
        torch, ms = self.torch, self.ms
        results, all_expected = leaves(result), leaves(expected)
        if len(results) != len(all_expected):
            return f"{len(results)} results, not {len(all_expected)}"
        for one, other in zip(results, all_expected, strict=True):
            if not isinstance(other, torch.Tensor):
                if isinstance(one, ms.Tensor) or one != other:
                    return f"{one}, not {other}"
                continue
            dtype = str(other.dtype).removeprefix("torch.")
            got = f"{str(one.dtype).lower()} {list(one.shape)}"
            if got != f"{dtype} {list(other.shape)}":
                return f"{got}, not {dtype} {list(other.shape)}"
            other = other.detach()
            if dtype == "bfloat16":
                one, other = one.astype(ms.float32), other.float()
            one, other = one.asnumpy(), other.numpy()
            bound = tolerance or TOLERANCE.get(dtype, 1e-5)
            if with_values and not np.allclose(one, other, bound, bound, equal_nan=True):
                return f"{shown(one)}, not {shown(other)}"
        return None

    def gradient(self, name, arguments, keywords, dtype):
        """Gradients of all results' squares and transposed views, by all inputs that have one."""
        ms, torch = self.ms, self.torch
        of_mint, of_torch = functions(name)
        arrays = [leaf for leaf in leaves((arguments, keywords)) if is_real(leaf)]

        def place(values, tensor):
            """The arguments with the values instead of the arrays."""
            rest = iter(values)
            return convert(
                (arguments, keywords), lambda a: next(rest) if is_real(a) else tensor(a.copy())
            )

        def loss(result, weights):
            transposed = result.permute(tuple(reversed(range(result.ndim))))
            return (result * result).sum() + (transposed * weights(tuple(transposed.shape))).sum()

        def weights(shape):
            return np.sin(np.arange(np.prod(shape, dtype=int)) + 1).reshape(shape).astype("float32")

        def of_pytorch(array):
            return self.tensor_of_pytorch(array, dtype)

        def of_mindspore(array):
            return self.tensor_of_mindspore(array, dtype)

        inputs = [of_pytorch(array).requires_grad_() for array in arrays]
        try:
            # An input that is written must not be a leaf of the graph.
            given = place([x * 1 for x in inputs] if name.endswith("_") else inputs, of_pytorch)
            results = leaves(of_torch(*given[0], **given[1]))
            used = [
                isinstance(x, torch.Tensor) and x.requires_grad and x.is_floating_point()
                for x in results
            ]
            if not any(used):
                return False, "no gradient"
            sum(
                loss(x, lambda shape: of_pytorch(weights(shape)))
                for x, use in zip(results, used, strict=True)
                if use
            ).backward()
        except (RuntimeError, TypeError) as error:
            return False, first_line(error)
        wanted = [i for i, x in enumerate(inputs) if x.grad is not None]

        def total(*values):
            ours = [of_mindspore(array) for array in arrays]
            for i, value in zip(wanted, values, strict=True):
                ours[i] = value * 1 if name.endswith("_") else value
            given = place(ours, of_mindspore)
            results = leaves(of_mint(*given[0], **given[1]))
            return sum(
                loss(x, lambda shape: of_mindspore(weights(shape)))
                for x, use in zip(results, used, strict=True)
                if use
            )

        try:
            gradients = ms.grad(total, grad_position=tuple(range(len(wanted))))(
                *(of_mindspore(arrays[i]) for i in wanted)
            )
            gradients = gradients if isinstance(gradients, tuple) else (gradients,)
            for i, gradient in zip(wanted, gradients, strict=True):
                if str(gradient.dtype).lower() != dtype:
                    return True, f"input {i}: {gradient.dtype}, not {dtype}"
                one = gradient.astype(ms.float64).asnumpy()
                other = inputs[i].grad.double().numpy()
                tolerance = GRADIENT_TOLERANCE[dtype]
                close = one.shape == other.shape and np.allclose(
                    one, other, tolerance, tolerance, equal_nan=True
                )
                if not close:
                    return True, f"input {i}: {shown(one)}, not {shown(other)}"
        except Exception as error:
            return True, f"error: {first_line(error)}"
        return True, None


def convert(value, tensor):
    if isinstance(value, (list, tuple)):
        return type(value)(convert(part, tensor) for part in value)
    if isinstance(value, dict):
        return {name: convert(part, tensor) for name, part in value.items()}
    return tensor(value) if isinstance(value, np.ndarray) else value


def as_shape(array, kind):
    """A copy, without elements or with one where the kind says so."""
    if kind == "empty":
        return array[:0].copy()
    if kind == "0-dim" and array.size > 0:
        return array.ravel()[:1].reshape(()).copy()
    return array.copy()


def as_dtype(array, kind):
    if kind == "bool":
        return array > 0
    if kind in ("int32", "int64"):
        return np.nan_to_num(array * 3).astype(kind)
    return array.astype(kind) if kind in DTYPES else array


def shown(array) -> str:
    return " ".join(f"{value:.6g}" for value in array.ravel()[:4])


def first_line(error) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip(" -\n")]
    return lines[0] if lines else type(error).__name__


def only_float32(x):
    """Without a gradient, too: MindSpore's part of these is for layers that have their own."""
    if str(x.dtype) != "torch.float32":
        raise TypeError(f"{x.dtype}")
    return x.detach()


def batch_norm_stats(x, eps):
    x = only_float32(x).transpose(0, 1).flatten(1).double()
    return x.mean(1).float(), (x.var(1, unbiased=False) + eps).rsqrt().float()


def batch_norm_elemt(x, weight, bias, mean, rstd, eps):
    weight, bias, mean, rstd = (v.detach().view(1, -1, 1, 1) for v in (weight, bias, mean, rstd))
    return (only_float32(x) - mean) * rstd * weight + bias


def batch_norm_gather_stats_with_counts(
    x, means, rstds, running_mean, running_var, momentum, eps, counts
):
    """By samples that have these means and variances."""
    means, rstds, counts = means.detach(), rstds.detach(), only_float32(counts)
    part = (counts / counts.sum()).unsqueeze(1).double()
    mean = (means * part).sum(0)
    squares = rstds.double() ** -2 - eps + means.double() ** 2
    var = (squares * part).sum(0) - mean**2
    return mean.float(), (var + eps).rsqrt().float()


def work() -> None:
    worker = Worker()
    for line in sys.stdin:
        job = json.loads(line)
        takes, fault = worker.answer(**job)
        print("\n@" + json.dumps({**job, "takes": takes, "fault": fault}), flush=True)


# ===--- the process that asks ---===


def survey(library: str, pattern: str = "", shapes: tuple = ()) -> list[dict]:
    """The answers to all jobs; without a library where its path is empty."""
    environment = {**os.environ, "MS_OP_PLUGIN_PATH": library}
    if not library:
        del environment["MS_OP_PLUGIN_PATH"]  # MindSpore takes "" for a path

    def start():
        return subprocess.Popen(
            [sys.executable, __file__, "--work"],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    answers = []
    worker = start()
    # The table has no others, and most end in an error, after which a new process has to start.
    kinds = [f"{GRADIENT} float32"]
    if library:
        kinds = [*(f"{GRADIENT} {dtype}" for dtype in GRADIENT_TOLERANCE), GRAPH_GRADIENT, *shapes]
    for job in jobs(pattern, kinds):
        answer = ask(worker, job)
        answers.append(answer)
        # What follows such an error may end the process, or have its fault.
        is_error = GRADIENT in job["kind"] and str(answer["fault"]).startswith("error")
        is_spoilt = is_error or (job["kind"] in SHAPES and answer["fault"] is not None)
        if is_spoilt or answer["fault"] == "the process ends":
            worker.kill()
            worker.wait()
            worker = start()
    worker.kill()
    worker.wait()
    return answers


def ask(worker, job):
    worker.stdin.write(json.dumps(job) + "\n")
    worker.stdin.flush()
    for line in worker.stdout:
        if line.startswith("@"):
            return json.loads(line[1:])
    return {**job, "takes": True, "fault": "the process ends"}


# ===--- the table ---===


def verdict(answers: list[dict]) -> str:
    faults = [answer["fault"] for answer in answers if answer["takes"] and answer["fault"]]
    if not answers or not any(answer["takes"] for answer in answers):
        return ""
    if not faults:
        return "yes"
    if any(text in fault for fault in faults for text in NO_KERNEL):
        return "no kernel"
    return "error" if all(fault.startswith("error") for fault in faults) else "wrong"


def summarize(answers: list[dict]) -> dict[str, tuple[str, str, str, str]]:
    """By function: the values, those in graph mode, the gradient, the dtypes."""
    by_function: dict[str, list] = {}
    for answer in answers:
        by_function.setdefault(answer["name"], []).append(answer)
    table = {}
    for name, rows in by_function.items():
        values = verdict([row for row in rows if row["kind"] in ("float32", "strided")])
        graph = verdict([row for row in rows if row["kind"] in ("graph", "strided graph")])
        gradient = verdict([row for row in rows if row["kind"] == f"{GRADIENT} float32"])
        of_dtype = {
            dtype: verdict([row for row in rows if row["kind"] == dtype]) for dtype in DTYPES
        }
        taken = [dtype for dtype, works in of_dtype.items() if works]
        lacking = [dtype for dtype in taken if of_dtype[dtype] != "yes"]
        dtypes = "all" if not lacking else "all but " + ", ".join(lacking)
        if len(lacking) == len(taken):
            dtypes = "none"
        table[name] = (values, graph, gradient, dtypes if len(taken) > 1 else "")
    return table


def render(alone: dict, with_library: dict, answers: list[dict]) -> str:
    lines = []
    for family, cases in FAMILIES.items():
        names = dict.fromkeys(f"{case[0]}.{case[1]}".lstrip(".") for case in cases)
        lines += [f"### {family.capitalize()}", "", HEAD, "|---" * 9 + "|"]
        for name in names:
            if calls()[name][0][0] == family:
                cells = [f"`{name}`", *alone[name], *with_library[name]]
                lines.append(f"| {' | '.join(cells)} |")
        lines.append("")
    lines += ["### What does not work with the library", ""]
    for call, fault in faults(answers).items():
        lines.append(f"- {call}: {fault.removeprefix('error: ')[:160]}")
    return "\n".join([count(with_library, alone), "", *lines, ""])


def faults(answers: list[dict]) -> dict[str, str]:
    """By the call: the function and the dtype, or what else is special."""
    return {
        f"`{answer['name']}`, {answer['kind']}": answer["fault"]
        for answer in answers
        if answer["takes"] and answer["fault"]
    }


def differences(answers: list[dict]) -> list[str]:
    """Rows of the page that say something else, and faults that it does not name."""
    with_library = summarize(answers)
    rows, named = {}, set()
    for line in PAGE.read_text().partition(BEGIN)[2].splitlines():
        if line.startswith("- `"):
            named.add(line.removeprefix("- ").partition(": ")[0])
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) == 9 and cells[0].startswith("`"):
            rows[cells[0].strip("`")] = tuple(cells[5:])
    named = {call for call in named if not call.endswith(SHAPES)}  # not asked again
    return [
        f"{name}: the page says {rows.get(name)}, the host {with_library.get(name)}"
        for name in sorted({*rows, *with_library})
        if rows.get(name) != with_library.get(name)
    ] + sorted(named ^ faults(answers).keys())


HEAD = (
    "| function | alone | graph mode | gradient | dtypes "
    "| with the library | graph mode | gradient | dtypes |"
)


def count(with_library: dict, alone: dict | None = None) -> str:
    """How many functions work, as a sentence; in brackets, without the library."""

    def yes(column):
        counts = [
            str(sum(row[column] == "yes" for row in table.values()))
            for table in (with_library, alone)
            if table is not None
        ]
        return counts[0] if alone is None else f"{counts[0]} ({counts[1]} without the library)"

    differentiable = sum(bool(row[2]) for row in with_library.values())
    return (
        f"Of {len(with_library)} functions {yes(0)} give PyTorch's values, {yes(1)} in graph mode; "
        f"of {differentiable} that have a gradient {yes(2)} give PyTorch's."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", action="store_true", help="answer jobs, one a line")
    parser.add_argument("--only", default="", help="functions whose names have this part")
    parser.add_argument("--write", action="store_true", help="put the table into the page")
    options = parser.parse_args()
    if options.work:
        work()
        return
    answers = survey(os.environ["MS_OP_PLUGIN_PATH"], options.only, SHAPES)
    with_library = summarize(answers)
    if not options.write:
        for call, fault in faults(answers).items():
            print(f"{call}: {fault[:200]}")
        print(count(with_library))
        return
    alone = summarize(survey("", options.only))
    before, _, rest = PAGE.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text(before + BEGIN + "\n" + render(alone, with_library, answers) + END + after)


if __name__ == "__main__":
    main()

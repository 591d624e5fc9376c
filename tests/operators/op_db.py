"""PyTorch's own samples of its operators, called by name in MindSpore and compared with PyTorch.

    python tests/operators/op_db.py [--only REGEX] [--part K/N] [--dtypes NAME,NAME] [--graph]
                                    [--calls N] [--with-torch] [--report FILE] [--verbose]

`torch.testing._internal.common_methods_invocations.op_db` (PyTorch 2.11) has samples of 500 and
more operators. For each sample of a dtype, the call of an aten operator that it stands for is
found, or, where a Python function of PyTorch's calls several, all of these. One process computes
what PyTorch gives for each, forward and, where PyTorch differentiates it, backward; another,
without PyTorch's Python part, makes the same calls through `aten_bridge.mindspore.operator`, in
PyNative or in graph mode, and compares. Where a graph cannot know the sizes of results, it is told
larger ones. Both begin again behind an operator that ends the second, which is told by name.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import pickle
import re
import subprocess
import sys
import traceback
import warnings
from pathlib import Path
from typing import Any, NamedTuple

# ===--- the calls that samples stand for ---===


def samples(op, dtype):
    """The samples of an OpInfo, as far as they can be made."""
    try:
        yield from op.sample_inputs("cpu", dtype, requires_grad=False)
    except Exception as error:
        print(f"  {op.name}: no samples: {error}", file=sys.stderr)


def resolved(op, sample):
    """The overload that the operator of the same name takes the sample by; None if none does."""
    import torch

    names = dict.fromkeys(
        [op.aten_name or op.name, op.name.replace(".", "_"), op.name.rpartition(".")[2]]
    )
    for name in names:
        packet = getattr(torch.ops.aten, name, None)
        if packet is None:
            continue
        try:
            overload = torch._C._jit_resolve_packet(
                f"aten::{name}", sample.input, *sample.args, **sample.kwargs
            )
            return getattr(packet, overload or "default")
        except Exception:
            continue
    return None


def calls_of(op, sample):
    """(overload, args, kwargs) of a sample."""
    from torch.utils._python_dispatch import TorchDispatchMode

    overload = resolved(op, sample)
    if overload is not None:
        try:  # where a Python function has the name, but other arguments
            overload(sample.input, *sample.args, **sample.kwargs)
            yield overload, (sample.input, *sample.args), sample.kwargs
            return
        except RuntimeError:
            pass
    calls = []

    class Recorder(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            calls.append((function, args, kwargs or {}))
            return function(*args, **(kwargs or {}))

    with Recorder():
        op(sample.input, *sample.args, **sample.kwargs)
    yield from calls


class Uncallable(Exception):
    """Something that the bridge says that it does not take."""


def bound(overload, args, kwargs):
    """The tensors, and the attributes, of a call, by the overload's schema."""
    import torch

    inputs, attributes = [], {}
    arguments = overload._schema.arguments
    lists = [a.name for a in arguments if str(a.type) in ("List[Tensor]", "List[Optional[Tensor]]")]
    for i, argument in enumerate(arguments):
        if i < len(args) and not argument.kwarg_only:
            value = args[i]
        elif argument.name in kwargs:
            value = kwargs[argument.name]
        else:
            if "Tensor" in str(argument.type):
                inputs += [] if "List" in str(argument.type) else [None]
            continue
        kind = str(argument.type)
        if "Tensor" in kind:
            if isinstance(value, (list, tuple)):
                if argument.name in lists[:-1]:
                    attributes[argument.name] = len(value)
                inputs += value
            elif isinstance(value, (bool, int, float, complex)):
                inputs.append(torch.tensor(value))
            else:
                inputs.append(value)
        elif isinstance(value, torch.Tensor):
            attributes[argument.name] = value.tolist()
        elif (
            value is None
            or isinstance(value, (torch.device, torch.layout, torch.memory_format))
            or argument.name == "device"
        ):
            pass  # on the CPU, dense and row-major, as all of the host's tensors are
        elif isinstance(value, (torch.Generator, complex)):
            raise Uncallable(f"{type(value).__name__} as '{argument.name}'")
        else:
            attributes[argument.name] = list(value) if isinstance(value, (list, tuple)) else value
    return inputs, attributes


def with_inputs(overload, args, kwargs, inputs):
    """The arguments of a call with these tensors instead of its own."""
    queue = list(inputs)
    arguments = overload._schema.arguments

    def replaced(argument, value):
        if "Tensor" not in str(argument.type):
            return value
        if isinstance(value, (list, tuple)):
            return [queue.pop(0) for _ in value]
        return queue.pop(0)

    new_args, new_kwargs = [], {}
    for i, argument in enumerate(arguments):
        if i < len(args) and not argument.kwarg_only:
            new_args.append(replaced(argument, args[i]))
        elif argument.name in kwargs:
            new_kwargs[argument.name] = replaced(argument, kwargs[argument.name])
        elif "Tensor" in str(argument.type) and "List" not in str(argument.type):
            queue.pop(0)
    return new_args, new_kwargs


# ===--- what PyTorch gives ---===

# Their results are not told by their inputs.
UNDETERMINED = re.compile(r"empty|rrelu|dropout|_efficientzerotensor|_make_dual|multinomial")
# Some of their results are not written: rows of _ctc_loss's second beyond a length.
PARTLY_WRITTEN = re.compile(r"aten::_ctc_loss\b")
# PyTorch's own meta function says another shape than its kernel on the CPU gives.
CONTRADICTED = re.compile(r"aten::native_batch_norm\b")


class Call(NamedTuple):
    """A call, and what PyTorch gives for it; tensors are NumPy arrays with PyTorch's dtypes."""

    key: str
    name: str  # the overload's
    attributes: dict[str, Any]
    inputs: list[Any]
    expected: list[Any]
    is_determined: bool
    wanted: list[int]  # the inputs with a gradient; none where PyTorch has none
    weights: list[Any]  # the results' weights in the sum that is differentiated
    gradients: list[Any]  # the gradients of those inputs


def tensors_of(results):
    """The tensors among the results."""
    return list(results) if isinstance(results, tuple | list) else [results]


def plain(tensor):
    """A tensor as an array and the name of its dtype: NumPy has no bfloat16."""
    import torch

    if tensor is None:
        return None
    name = str(tensor.dtype).removeprefix("torch.")
    tensor = tensor.detach().resolve_conj().resolve_neg()
    tensor = tensor.float() if tensor.dtype == torch.bfloat16 else tensor
    return tensor.numpy(force=True), name  # also of a ZeroTensor


def called(overload, args, kwargs, leaves):
    """The results of a call with these tensors; those that PyTorch refuses to record are not."""
    while True:
        recorded = [i for i, t in enumerate(leaves) if t is not None and t.requires_grad]
        new_args, new_kwargs = with_inputs(overload, args, kwargs, leaves)
        try:
            return tensors_of(overload(*new_args, **new_kwargs))
        except RuntimeError as error:
            if not recorded:  # as_strided beyond what is left of a tensor, made whole
                raise Uncallable("PyTorch refuses the call with row-major tensors") from None
            refused = re.search(r"not differentiable with respect to argument '(\w+)'", str(error))
            names = [a.name for a in overload._schema.arguments if "Tensor" in str(a.type)]
            if refused is None:  # geqrf of complex numbers, say, has no gradient at all
                refused_ones = recorded
            elif refused[1] in names:
                refused_ones = [names.index(refused[1])]
            else:
                refused_ones = recorded[-1:]
            for i in refused_ones:
                leaves[i] = leaves[i].detach()


def reference(key, overload, args, kwargs):
    """The call with PyTorch's results."""
    import torch

    inputs, attributes = bound(overload, args, kwargs)
    for tensor in inputs:
        if tensor is not None and (tensor.layout != torch.strided or tensor.is_quantized):
            raise Uncallable(f"a tensor of layout {tensor.layout}")
    name = f"{overload._schema.name}.{overload._schema.overload_name or 'default'}"
    is_determined = (
        torch.Tag.nondeterministic_seeded not in overload.tags
        and UNDETERMINED.search(name) is None
        and PARTLY_WRITTEN.search(name) is None
    )
    leaves = [None if t is None else t.detach().clone().contiguous() for t in inputs]
    for leaf in leaves:
        if can_be_differentiated(leaf):
            leaf.requires_grad_()
    results = called(overload, args, kwargs, leaves)
    results = [torch.zeros(0) if result is None else result for result in results]
    for result in results:
        if not isinstance(result, torch.Tensor):
            raise Uncallable(f"a result of type {type(result).__name__}")
        if result.layout != torch.strided or result.dtype == torch.complex32:
            raise Uncallable(f"a result of {result.layout} and {result.dtype}")
    wanted, weights, gradients = [], [], []
    if is_determined:
        wanted, weights, gradients = differentiated(leaves, results)
    return Call(
        key,
        name,
        {
            key: str(value).removeprefix("torch.") if isinstance(value, torch.dtype) else value
            for key, value in attributes.items()
        },
        [plain(leaf) for leaf in leaves],
        [plain(result) for result in results],
        is_determined,
        wanted,
        [plain(weight) for weight in weights],
        [plain(gradient) for gradient in gradients],
    )


def can_be_differentiated(tensor):
    """Whether a tensor, or None, has real or complex numbers."""
    return tensor is not None and (tensor.is_floating_point() or tensor.is_complex())


def differentiated(leaves, results):
    """Which inputs have gradients, of the sum of the results with which weights, and these.

    The sum is real: of complex results it is that of their real and imaginary parts.
    """
    import torch

    def weight_of(result):
        if not result.requires_grad:
            return None
        weight = torch.linspace(0.5, 1.5, result.numel()).reshape(result.shape)
        return ((1 - 0.5j) * weight if result.is_complex() else weight).to(result.dtype)

    def weighted_sum(result, weight):
        product = result * weight
        return (torch.view_as_real(product) if product.is_complex() else product).sum()

    weights = [weight_of(result) for result in results]
    wanted = [i for i, t in enumerate(leaves) if can_be_differentiated(t)]
    if not wanted or all(weight is None for weight in weights):
        return [], [], []
    weighted = zip(results, weights, strict=True)
    total = sum(weighted_sum(*pair) for pair in weighted if pair[1] is not None)
    recorded = [i for i in wanted if leaves[i].requires_grad]
    try:
        found = torch.autograd.grad(total, [leaves[i] for i in recorded], allow_unused=True)
    except (RuntimeError, NotImplementedError):
        return [], [], []  # PyTorch does not differentiate it
    gradients = {i: torch.zeros_like(leaves[i]) for i in wanted}
    gradients |= {i: g for i, g in zip(recorded, found, strict=True) if g is not None}
    dense = [g.to_dense() if g.layout != torch.strided else g for g in gradients.values()]
    return wanted, weights, dense


def key_of(overload, args, kwargs):
    """A call's key: another call with the same has nothing new."""
    import torch

    def text(value):
        if isinstance(value, torch.Tensor):
            return f"T{tuple(value.shape)}{value.dtype}"
        if isinstance(value, list | tuple):
            return "[" + ",".join(map(text, value)) + "]"
        return repr(value)

    return f"{overload} {text(args)} {sorted((k, text(v)) for k, v in kwargs.items())}"


def distinct_calls(op, dtype, write):
    """The calls that the samples of an OpInfo stand for, each once."""
    seen = set()
    for sample in samples(op, dtype):
        write("sample")
        try:
            calls = list(calls_of(op, sample))
        except Exception as error:
            write("skip", f"PyTorch refuses its own sample: {error}"[:200])
            continue
        for call in calls:
            key = key_of(*call)
            if key not in seen:
                seen.add(key)
                yield key, call


def spread(calls, limit):
    """At most so many of the calls of each overload, from all over the list."""
    of_overload = collections.defaultdict(list)
    for key, call in calls:
        of_overload[call[0]].append((key, call))
    for one in of_overload.values():
        count = len(one)
        yield from (
            one
            if count <= limit
            else (one[(2 * i + 1) * count // (2 * limit)] for i in range(limit))
        )


def compute(numbers, dtype, limit):
    """Writes what PyTorch gives for operators, by their numbers in op_db, to stdout, pickled."""
    warnings.simplefilter("ignore")
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what others print
    import torch
    from torch.testing._internal.common_methods_invocations import op_db

    def write(*record):
        pickle.dump(record, out)

    torch.set_num_threads(1)
    for number in numbers:
        op = op_db[number]
        full = op.name + (f".{op.variant_test_name}" if op.variant_test_name else "")
        write("begin", number, full)
        calls = distinct_calls(op, getattr(torch, dtype), write)
        for key, call in calls if limit is None else spread(calls, limit):
            try:
                write("call", reference(key, *call))
            except Uncallable as reason:
                write("skip", f"{call[0]}: {reason}")
        write("end", number)
        out.flush()


# ===--- the same in MindSpore ---===


def to_mindspore(given):
    import mindspore as ms

    if given is None:
        return None
    array, dtype = given
    return ms.Tensor(array, ms.bfloat16 if dtype == "bfloat16" else None)


def compare(ours, theirs, exact):
    """Raises AssertionError where they differ."""
    import numpy as np

    expected, dtype = theirs
    got = str(ours.dtype).lower()
    assert got == dtype.replace("float8_", "float8"), f"dtype {got}, not {dtype}"
    assert tuple(ours.shape) == expected.shape, f"shape {ours.shape}, not {expected.shape}"
    if exact:
        relative, absolute = TOLERANCES.get(dtype, (0, 0))
        array = (ours.float() if dtype == "bfloat16" else ours).asnumpy()
        np.testing.assert_allclose(array, expected, relative, absolute, equal_nan=True)


# torch.testing.assert_close's.
TOLERANCES = {
    "float16": (1e-3, 1e-5),
    "bfloat16": (1.6e-2, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
    "complex64": (1.3e-6, 1e-5),
    "complex128": (1e-7, 1e-7),
}


def check_call(call):
    """Makes a call in MindSpore; says what was compared: "forward" or "both"."""
    import mindspore as ms
    from mindspore import nn

    from aten_bridge.mindspore import operator

    class Network(nn.Cell):
        """The operator."""

        def __init__(self, one):
            super().__init__()
            self.one = one

        def construct(self, *tensors):
            return self.one(*tensors)

    class Sum(nn.Cell):
        """The sum of its results, with weights; MindSpore itself has no bfloat16 sum."""

        def __init__(self, one, weights):
            super().__init__()
            self.one = one
            self.weights = weights
            self.is_tuple = len(weights) > 1
            self.sum, self.mul = operator("aten::sum"), operator("aten::mul")
            self.add, self.parts = operator("aten::add"), operator("aten::view_as_real")
            self.are_complex = [w is not None and w.is_complex() for w in weights]

        def weighted(self, result, weight, is_complex):
            product = self.mul(result, weight)
            return self.sum(self.parts(product) if is_complex else product)

        def construct(self, *tensors):
            results = self.one(*tensors)
            if not self.is_tuple:
                return self.weighted(results, self.weights[0], self.are_complex[0])
            total = 0
            weights = zip(results, self.weights, self.are_complex)  # noqa: B905  for graphs
            for result, weight, is_complex in weights:
                if weight is not None:
                    total = self.add(self.weighted(result, weight, is_complex), total)
            return total

    try:
        one = operator(call.name, **call.attributes)
    except AttributeError as error:
        raise Uncallable(str(error).partition("that is not: ")[2] or str(error)) from None
    given = [to_mindspore(array) for array in call.inputs]
    try:
        got = tensors_of(Network(one)(*given))
    except ValueError as error:
        if "got one whose sizes depend on values; call it outside of a graph" not in str(error):
            raise
        check_larger(call, Network, given)
        return "forward"
    assert len(got) == len(call.expected), f"{len(got)} results, not {len(call.expected)}"
    for i, (ours, theirs) in enumerate(zip(got, call.expected, strict=True)):
        if i == 0 or CONTRADICTED.search(call.name) is None:
            compare(ours, theirs, call.is_determined)
    if not call.wanted:
        return "forward"
    network = Sum(one, tuple(to_mindspore(weight) for weight in call.weights))
    ours = ms.grad(network, grad_position=tuple(call.wanted))(*given)
    ours = ours if isinstance(ours, tuple) else (ours,)
    for our, gradient in zip(ours, call.gradients, strict=True):
        compare(our, gradient, exact=True)
    return "both"


def check_larger(call, network, given):
    """The same of a call that is told larger results than it has: the rest of them is zeros."""
    import mindspore as ms

    from aten_bridge.mindspore import operator

    one = operator(
        call.name,
        out_shape=tuple(tuple(size + 1 for size in array.shape) for array, _ in call.expected),
        out_dtype=tuple(
            getattr(ms, "bool_" if dtype == "bool" else dtype) for _, dtype in call.expected
        ),
        **call.attributes,
    )
    count = len(call.expected)
    got = network(one)(*given)
    assert len(got) == 2 * count, f"{len(got)} results, not {count} and their sizes"
    for ours, sizes, theirs in zip(got[:count], got[count:], call.expected, strict=True):
        array, dtype = theirs
        assert tuple(sizes.asnumpy()) == array.shape, f"sizes {sizes}, not {array.shape}"
        whole = (*(slice(0, size) for size in array.shape), ...)
        begin = ours.asnumpy()[whole]
        compare(to_mindspore((begin, dtype)), theirs, call.is_determined)
        rest = ours.asnumpy().copy()
        rest[whole] = 0
        assert not rest.any(), "numbers behind the result"


def records():
    """What `compute` writes."""
    while True:
        try:
            yield pickle.load(sys.stdin.buffer)
        except EOFError:
            return


def work(graph):
    """Checks what comes from stdin; a line of JSON for each operator's begin and end."""
    import mindspore as ms

    ms.set_context(mode=ms.GRAPH_MODE if graph else ms.PYNATIVE_MODE)
    counts, faults, skipped, overloads = {}, [], {}, {}
    for kind, *rest in records():
        if kind == "begin":
            counts, skipped = collections.Counter(), collections.Counter()
            faults, overloads = [], {}
            print(json.dumps({"begin": rest[0], "name": rest[1]}), flush=True)
        elif kind == "sample":
            counts["samples"] += 1
        elif kind == "skip":
            skipped[rest[0]] += 1
        elif kind == "end":
            report = {
                "end": rest[0],
                "counts": counts,
                "faults": faults,
                "skipped": skipped,
                "overloads": sorted(overloads.items()),
            }
            print(json.dumps(report), flush=True)
        else:
            (call,) = rest
            try:
                compared = check_call(call)
                counts[compared] += 1
                overloads[call.name] = max(overloads.get(call.name, ""), compared, key=len)
            except Uncallable as reason:
                skipped[f"{call.name}: {reason}"] += 1
            except Exception as error:
                text = f"{type(error).__name__}: {error}"[:600]
                where = traceback.extract_tb(error.__traceback__)[-1]
                faults.append([call.key[:300], text, f"{Path(where.filename).name}:{where.lineno}"])


# ===--- both ---===


def chosen(only, part, dtype):
    """The numbers of the operators to be checked."""
    import torch
    from torch.testing._internal.common_methods_invocations import op_db

    numbers = [
        i
        for i, op in enumerate(op_db)
        if re.search(only, op.name) and getattr(torch, dtype) in op.supported_dtypes("cpu")
    ]
    index, count = map(int, part.split("/"))
    return numbers[index - 1 :: count]


# The processes have other memory and other threads: MKL's sums are to be the same all the same.
REPRODUCIBLE = {"MKL_CBWR": "COMPATIBLE", "OMP_NUM_THREADS": "1"}


def run(dtype, arguments):
    """The reports of all operators; an operator that ends its process has a fault."""
    reports = []
    left = chosen(arguments.only, arguments.part, dtype)
    environment = os.environ | REPRODUCIBLE
    errors = None if arguments.verbose else subprocess.DEVNULL
    this = [sys.executable, __file__]
    while left:
        # MindSpore (2.10) compiles more slowly the more graphs a process has made.
        now = left[:20] if arguments.graph else left
        one = [*this, "--compute", ",".join(map(str, now)), "--dtypes", dtype]
        one += [] if arguments.calls is None else ["--calls", str(arguments.calls)]
        theirs = subprocess.Popen(one, stdout=subprocess.PIPE, stderr=errors, env=environment)
        other = [*this, "--work"]
        other += ["--graph"] * arguments.graph + ["--with-torch"] * arguments.with_torch
        ours = subprocess.Popen(
            other,
            stdin=theirs.stdout,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=environment,
        )
        theirs.stdout.close()
        begun = None
        for line in ours.stdout:
            try:
                report = json.loads(line)
            except ValueError:
                continue  # a line of another's
            if not isinstance(report, dict):
                continue
            if "begin" in report:
                begun = report
            elif "end" in report:
                reports.append({"name": begun["name"], **report})
                left.remove(begun["begin"])
                begun = None
                if arguments.verbose or report["faults"]:
                    show(reports[-1])
        status = ours.wait(), theirs.wait()
        if begun is not None:
            fault = ["", f"the process ended with status {status[0]}", ""]
            reports.append(
                {
                    "name": begun["name"],
                    "counts": {},
                    "faults": [fault],
                    "skipped": {},
                    "overloads": [],
                }
            )
            show(reports[-1])
            left.remove(begun["begin"])
        elif any(status):
            raise SystemExit(f"the processes ended with {status} between two operators")
    return reports


def show(report):
    print(report["name"], report["counts"], flush=True)
    for fault in report["faults"][:4]:
        print("   FAULT", *fault, sep="\n         ", flush=True)


def summarize(dtype, reports, verbose):
    """Prints what was compared, and says how many faults there are."""
    total = collections.Counter()
    reasons = collections.Counter()
    faults = right = 0
    for report in reports:
        total.update(report["counts"])
        reasons.update(report["skipped"])
        faults += len(report["faults"])
        right += not report["faults"] and bool(report["overloads"])
    overloads = {name for report in reports for name, _ in report["overloads"]}
    print(
        f"{dtype}: {len(reports)} operators of op_db, {total['samples']} samples, "
        f"{len(overloads)} overloads of aten: {total['forward'] + total['both']} calls, "
        f"of {total['both']} also the gradient; "
        f"{right} operators right, {faults} faults"
    )
    for reason, count in reasons.most_common(40 if verbose else 0):
        print(f"  not called: {count} x {reason}")
    return faults


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="a regular expression of operators' names")
    parser.add_argument("--part", default="1/1", help="K/N: each N-th operator from the K-th on")
    parser.add_argument(
        "--dtypes", default="float32", help="of the samples: names with commas, one after another"
    )
    parser.add_argument("--graph", action="store_true", help="in graph mode")
    parser.add_argument(
        "--calls", type=int, metavar="N", help="at most N of each operator and overload; else all"
    )
    parser.add_argument("--with-torch", action="store_true", help="import PyTorch beside MindSpore")
    parser.add_argument("--report", type=Path, help="where a report in JSON is written")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--compute", help=argparse.SUPPRESS)
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.compute is not None:
        numbers = map(int, arguments.compute.split(","))
        compute(numbers, arguments.dtypes, arguments.calls)
        return 0
    if arguments.work:
        if arguments.with_torch:
            import torch  # noqa: F401
        work(arguments.graph)
        return 0
    reports = {dtype: run(dtype, arguments) for dtype in arguments.dtypes.split(",")}
    if arguments.report:
        arguments.report.write_text(json.dumps(reports, indent=1))
    faults = 0
    for dtype, of_dtype in reports.items():
        faults += summarize(dtype, of_dtype, arguments.verbose)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

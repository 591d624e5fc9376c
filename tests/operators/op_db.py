"""PyTorch's own samples of its operators, called by name in MindSpore and compared with PyTorch.

    python tests/operators/op_db.py [--only REGEX] [--part K/N] [--report FILE] [--verbose]

`torch.testing._internal.common_methods_invocations.op_db` (PyTorch 2.11) has samples of 500 and
more operators. For each sample of float32, the call of an aten operator that it stands for is
found, or, where a Python function of PyTorch's calls several, all of these. Each is made through
`aten_bridge.mindspore.operator` in PyNative mode, forward and, where PyTorch differentiates it,
backward, and compared with PyTorch's own result of the same overload.

Workers run the operators one after the other, so that one that ends its process is told by name.
"""

from __future__ import annotations

import argparse
import collections
import json
import re
import subprocess
import sys
import traceback
import warnings
from pathlib import Path

# ===--- the calls that samples stand for ---===


def samples(op):
    """The samples of an OpInfo, as far as they can be made."""
    import torch

    try:
        yield from op.sample_inputs("cpu", torch.float32, requires_grad=False)
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
    """The arguments of a call with these tensors in the places of its own."""
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


# ===--- one call in both ---===

# Their results are not told by their inputs.
UNDETERMINED = re.compile(r"empty|rrelu|dropout|_efficientzerotensor|_make_dual|multinomial")
# Some of their results are not written: rows of _ctc_loss's second beyond a length.
PARTLY_WRITTEN = re.compile(r"aten::_ctc_loss\b")
# PyTorch's own meta function says another shape than its kernel on the CPU gives.
CONTRADICTED = re.compile(r"aten::native_batch_norm\b")


def tensors_of(results):
    """The tensors among the results."""
    return list(results) if isinstance(results, (tuple, list)) else [results]


def to_mindspore(tensor):
    import mindspore as ms

    return (
        None if tensor is None else ms.Tensor(tensor.detach().resolve_conj().resolve_neg().numpy())
    )


def compare(ours, theirs, exact):
    """Raises AssertionError where they differ."""
    import numpy as np
    import torch

    theirs = theirs.detach()
    assert tuple(ours.shape) == tuple(theirs.shape), f"shape {ours.shape}, not {theirs.shape}"
    if theirs.dtype == torch.bfloat16:  # which NumPy has not
        assert str(ours.dtype) == "BFloat16", f"dtype {ours.dtype}, not bfloat16"
        ours, theirs = ours.float(), theirs.float()
    array = ours.asnumpy()
    if array.dtype == np.ulonglong:
        array = array.astype(np.uint64)
    theirs = theirs.to_dense() if theirs.layout != torch.strided else theirs
    expected = theirs.resolve_conj().resolve_neg().numpy(force=True)  # also of a ZeroTensor
    assert array.dtype == expected.dtype, f"dtype {array.dtype}, not {expected.dtype}"
    if exact:
        torch.testing.assert_close(
            torch.from_numpy(array.copy()), torch.from_numpy(expected.copy()), equal_nan=True
        )


def check_call(overload, args, kwargs):
    """Makes a call in MindSpore; says what was compared: "forward" or "both"."""
    import mindspore as ms
    import torch

    from aten_bridge.mindspore import operator

    inputs, attributes = bound(overload, args, kwargs)
    for tensor in inputs:
        if tensor is not None and (tensor.layout != torch.strided or tensor.is_quantized):
            raise Uncallable(f"a tensor of layout {tensor.layout}")
    name = f"{overload._schema.name}.{overload._schema.overload_name or 'default'}"
    exact = (
        torch.Tag.nondeterministic_seeded not in overload.tags
        and UNDETERMINED.search(name) is None
        and PARTLY_WRITTEN.search(name) is None
    )
    try:
        one = operator(name, **attributes)
    except AttributeError as error:
        raise Uncallable(str(error).partition("that is not: ")[2] or str(error)) from None
    # The reference first: where PyTorch refuses the call, there is nothing to compare.
    leaves = [None if t is None else t.detach().clone().contiguous() for t in inputs]
    for leaf in leaves:
        if leaf is not None and leaf.is_floating_point():
            leaf.requires_grad_()
    new_args, new_kwargs = with_inputs(overload, args, kwargs, leaves)
    while True:
        try:
            results = tensors_of(overload(*new_args, **new_kwargs))
            break
        except RuntimeError as error:
            # Some inputs may not require gradients: their gradient is taken for zeros.
            refused = re.search(r"not differentiable with respect to argument '(\w+)'", str(error))
            if refused is None:  # as_strided beyond what is left of a tensor, made whole
                raise Uncallable("PyTorch refuses the call with row-major tensors") from None
            names = [a.name for a in overload._schema.arguments if "Tensor" in str(a.type)]
            recorded = [i for i, t in enumerate(leaves) if t is not None and t.requires_grad]
            named = names.index(refused[1]) if refused[1] in names else recorded[-1]
            leaves[named].requires_grad_(False)
    expected = [torch.zeros(0) if result is None else result for result in results]
    for result in expected:
        if result.layout != torch.strided or result.dtype == torch.complex32:
            raise Uncallable(f"a result of {result.layout} and {result.dtype}")
    given = [to_mindspore(leaf) for leaf in leaves]
    got = tensors_of(one(*given))
    assert len(got) == len(expected), f"{len(got)} results, not {len(expected)}"
    for i, (ours, theirs) in enumerate(zip(got, expected, strict=True)):
        if i == 0 or CONTRADICTED.search(name) is None:
            compare(ours, theirs, exact)
    # Gradients, of the sum of all floating-point results with different weights.
    weights = [
        torch.linspace(0.5, 1.5, result.numel()).reshape(result.shape).to(result.dtype)
        if result.dtype in (torch.float32, torch.float64) and result.requires_grad
        else None
        for result in expected
    ]
    wanted = [i for i, leaf in enumerate(leaves) if leaf is not None and leaf.is_floating_point()]
    if not exact or not wanted or all(weight is None for weight in weights):
        return "forward"
    total = sum(
        (result * weight).sum()
        for result, weight in zip(expected, weights, strict=True)
        if weight is not None
    )
    found = [None] * len(leaves)
    recorded = [i for i in wanted if leaves[i].requires_grad]
    try:
        gradients = torch.autograd.grad(total, [leaves[i] for i in recorded], allow_unused=True)
        for i, gradient in zip(recorded, gradients, strict=True):
            found[i] = gradient
    except (RuntimeError, NotImplementedError):
        return "forward"  # PyTorch does not differentiate it
    of_mindspore = [None if weight is None else to_mindspore(weight) for weight in weights]

    def function(*tensors):
        results = tensors_of(one(*tensors))
        sums = [(r * w).sum() for r, w in zip(results, of_mindspore, strict=True) if w is not None]
        return sum(sums[1:], sums[0])

    ours = ms.grad(function, grad_position=tuple(wanted))(*given)
    ours = ours if isinstance(ours, tuple) else (ours,)
    for i, our in zip(wanted, ours, strict=True):
        theirs = torch.zeros_like(leaves[i]) if found[i] is None else found[i]
        compare(our, theirs, exact)
    return "both"


# ===--- workers ---===


def key_of(overload, args, kwargs):
    """Of a call: another of the same key has nothing new."""
    import torch

    def text(value):
        if isinstance(value, torch.Tensor):
            return f"T{tuple(value.shape)}{value.dtype}"
        if isinstance(value, (list, tuple)):
            return "[" + ",".join(map(text, value)) + "]"
        return repr(value)

    return f"{overload} {text(args)} {sorted((k, text(v)) for k, v in kwargs.items())}"


def work(names):
    """Checks operators by their numbers in op_db; a line of JSON for each begin and end."""
    warnings.simplefilter("ignore")
    import mindspore as ms
    import torch
    from torch.testing._internal.common_methods_invocations import op_db

    ms.set_context(mode=ms.PYNATIVE_MODE)
    torch.set_num_threads(1)
    for number in names:
        op = op_db[number]
        full = op.name + (f".{op.variant_test_name}" if op.variant_test_name else "")
        print(json.dumps({"begin": number, "name": full}), flush=True)
        counts = collections.Counter()
        faults, skipped, seen, overloads = [], collections.Counter(), set(), {}
        for sample in samples(op):
            counts["samples"] += 1
            try:
                calls = list(calls_of(op, sample))
            except Exception as error:
                skipped[f"PyTorch refuses its own sample: {str(error).splitlines()[0]}"] += 1
                continue
            for call in calls:
                key = key_of(*call)
                if key in seen:
                    continue
                seen.add(key)
                name = str(call[0])
                try:
                    compared = check_call(*call)
                    counts[compared] += 1
                    overloads[name] = max(overloads.get(name, ""), compared, key=len)
                except Uncallable as reason:
                    skipped[f"{name}: {reason}"] += 1
                except Exception as error:
                    text = f"{type(error).__name__}: {error}"[:400]
                    where = traceback.extract_tb(error.__traceback__)[-1]
                    faults.append([key[:300], text, f"{Path(where.filename).name}:{where.lineno}"])
        print(
            json.dumps(
                {
                    "end": number,
                    "counts": counts,
                    "faults": faults,
                    "skipped": skipped,
                    "overloads": sorted(overloads.items()),
                }
            ),
            flush=True,
        )


def chosen(only, part):
    """The numbers of the operators to be checked."""
    import torch
    from torch.testing._internal.common_methods_invocations import op_db

    numbers = [
        i
        for i, op in enumerate(op_db)
        if re.search(only, op.name) and torch.float32 in op.supported_dtypes("cpu")
    ]
    index, count = map(int, part.split("/"))
    return numbers[index - 1 :: count]


def run(numbers, verbose):
    """The reports of all operators; an operator that ends its process has a fault."""
    reports = []
    left = list(numbers)
    while left:
        worker = subprocess.Popen(
            [sys.executable, __file__, "--work", ",".join(map(str, left))],
            stdout=subprocess.PIPE,
            stderr=None if verbose else subprocess.DEVNULL,
            text=True,
        )
        begun = None
        for line in worker.stdout:
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
                if verbose or report["faults"]:
                    show(reports[-1])
        status = worker.wait()
        if begun is not None:
            fault = ["", f"the process ended with status {status}", ""]
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
        elif status != 0:
            raise SystemExit(f"a worker ended with status {status} before its first operator")
    return reports


def show(report):
    print(report["name"], report["counts"], flush=True)
    for fault in report["faults"][:4]:
        print("   FAULT", *fault, sep="\n         ", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="a regular expression of operators' names")
    parser.add_argument("--part", default="1/1", help="K/N: each N-th operator from the K-th on")
    parser.add_argument("--report", type=Path, help="where a report in JSON is written")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.work is not None:
        work(map(int, arguments.work.split(",")))
        return 0
    reports = run(chosen(arguments.only, arguments.part), arguments.verbose)
    if arguments.report:
        arguments.report.write_text(json.dumps(reports, indent=1))
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
        f"{len(reports)} operators of op_db, {total['samples']} samples, {len(overloads)} overloads "
        f"of aten: {total['forward'] + total['both']} calls, of {total['both']} also the gradient; "
        f"{right} operators right, {faults} faults"
    )
    for reason, count in reasons.most_common(40 if arguments.verbose else 0):
        print(f"  not called: {count} x {reason}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

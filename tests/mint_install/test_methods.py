"""Graphs and PyNative mode agree over all methods of tensors, and with PyTorch where that has them.

The calls are those of method_cases.py.
"""

import contextlib
import importlib.util
import sys

import mindspore as ms
import numpy as np
import pytest
import torch
from method_cases import CASES, OTHER_THAN_PYTORCH, REFUSED_BY_GRAPHS
from mindspore.common.api import _pynative_executor

NAMES = ("x", "y", "u", "v", "w", "g", "a", "b", "c", "d", "z", "i", "j", "k", "m")


def arrays(dtype):
    random = np.random.default_rng(3)

    def make(*shape):
        if dtype == "bool":
            return random.integers(0, 2, shape).astype(bool)
        if dtype == "int32":
            values = random.integers(-5, 6, shape).astype(dtype)
            return np.where(values == 0, 2, values).astype(dtype)
        return (random.uniform(0.1, 0.9, shape) * random.choice([-1, 1], shape)).astype(dtype)

    shapes = {"x": (3, 4), "y": (3, 4), "v": (4,), "w": (4,), "a": (3, 3), "b": (3, 3)}
    shapes |= {"c": (2, 3, 3), "d": (2, 3, 3), "z": ()}
    found = {name: np.asarray(make(*shape), dtype) for name, shape in shapes.items()}
    other = np.float64 if dtype == "float32" else np.int64
    found |= {"u": found["y"].astype(other), "g": found["w"].astype(other)}
    found |= {"i": random.integers(0, 3, (3, 4)), "j": np.array([2, 0])}
    return found | {"k": np.array([1, 0, 2, 1]), "m": random.integers(0, 2, (3, 4)).astype(bool)}


def leaves(value):
    if isinstance(value, (list, tuple)):
        return [leaf for part in value for leaf in leaves(part)]
    return [value]


def plain(value):
    """Of each result: its dtype, and its values; the dtype of a Python number is its type."""
    found = []
    for leaf in leaves(value):
        kind = str(getattr(leaf, "dtype", type(leaf).__name__)).lower().removeprefix("torch.")
        if kind == "bfloat16":
            leaf = leaf.astype(ms.float32) if isinstance(leaf, ms.Tensor) else leaf.float()
        if isinstance(leaf, ms.Tensor):
            leaf = leaf.asnumpy()
        elif isinstance(leaf, torch.Tensor):
            leaf = leaf.resolve_conj().numpy()
        found.append((kind, np.asarray(leaf)))
    return found


def ask(call):
    """The results, or the first words of the error."""
    try:
        return plain(call())
    except Exception as error:
        for _ in range(3):  # what the call has begun besides, whose errors come with the next one
            with contextlib.suppress(Exception):
                _pynative_executor.sync()
        return f"{type(error).__name__}: {error}"


def same(one, other):
    if isinstance(one, str) or isinstance(other, str):
        return isinstance(one, str) and isinstance(other, str)
    numbers = {"int", "float", "bool"}  # a graph's tensors of no dimension, among several results
    return len(one) == len(other) and all(
        (kind == other_kind or numbers.intersection((kind, other_kind)))
        and values.shape == other_values.shape
        and (
            np.array_equal(values, other_values)
            if values.dtype.kind not in "fc"
            else np.allclose(values, other_values, rtol=1e-5, atol=1e-6, equal_nan=True)
        )
        for (kind, values), (other_kind, other_values) in zip(one, other, strict=True)
    )


def shown(results):
    if isinstance(results, str):
        return results.split("\n")[0][:120]
    return ", ".join(f"{kind}{list(v.shape)} {v.ravel()[:4]}" for kind, v in results)


@pytest.fixture(scope="module")
def functions(tmp_path_factory):
    """Of each call, in a file, since the compiler reads the source."""
    path = tmp_path_factory.mktemp("methods") / "calls_of_methods.py"
    lines = ["import mindspore as ms", ""]
    for number, case in enumerate(CASES):
        call = case.replace("torch.", "ms.")
        lines += [f"def call_{number}({', '.join(NAMES)}):", f"    return {call}", ""]
    path.write_text("\n".join(lines))
    spec = importlib.util.spec_from_file_location("calls_of_methods", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["calls_of_methods"] = module  # where the compiler looks for it
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("dtype", ["float32", "int32", "bool"])
def test_graphs_and_pynative_mode_agree_over_all_methods(functions, dtype):
    given = arrays(dtype)
    theirs = {name: torch.tensor(array) for name, array in given.items()} | {"torch": torch}
    ours = [ms.Tensor(given[name]) for name in NAMES]
    faults = []
    for number, case in enumerate(CASES):
        function = getattr(functions, f"call_{number}")
        pynative, graph = (
            ask(lambda call=call: call(*ours)) for call in (function, ms.jit(function))
        )
        expected = ask(lambda case=case: eval(case, {}, theirs))
        is_refused = isinstance(graph, str) and not isinstance(pynative, str)
        if is_refused != (dtype in REFUSED_BY_GRAPHS.get(case, ())) and dtype != "bool":
            faults.append((case, "graphs", shown(pynative), shown(graph)))
        elif not is_refused and not same(pynative, graph):
            faults.append((case, "two results", shown(pynative), shown(graph)))
        if not isinstance(expected, str) and not isinstance(pynative, str):
            differs = dtype in OTHER_THAN_PYTORCH.get(case, ())
            if same(pynative, expected) == differs:
                faults.append((case, "PyTorch", shown(pynative), shown(expected)))
    assert not faults, "\n".join(" | ".join(fault) for fault in faults)

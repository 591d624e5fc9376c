"""Graphs and PyNative mode agree over all methods of tensors, and with PyTorch where that has them.

The calls are those of method_cases.py.
"""

import re
import sys

import mindspore as ms
import numpy as np
import pytest
import torch
from checks import ask, compiled, same, shown
from method_cases import CASES, OTHER_THAN_PYTORCH, REFUSED_BY_GRAPHS
from mindspore import mint

pytestmark = pytest.mark.full

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


@pytest.fixture(scope="module")
def functions(tmp_path_factory):
    calls = [case.replace("torch.", "ms.") for case in CASES]
    return compiled(tmp_path_factory, "calls_of_methods", NAMES, calls)


@pytest.mark.nightly
@pytest.mark.parametrize("dtype", ["float32", "int32", "bool"])
def test_graphs_and_pynative_mode_agree_over_all_methods(functions, dtype):
    given = arrays(dtype)
    theirs = {name: torch.tensor(array) for name, array in given.items()} | {"torch": torch}
    ours = [ms.Tensor(given[name]) for name in NAMES]
    faults = []
    for number, case in enumerate(CASES):
        function = functions[number]
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


# What MindSpore has without the library, in both modes.
OF_OLDER_METHODS = {
    "x.max(axis=1)": ["float32", [3, 6]],
    "x.max(axis=(0, 1))": ["float32", 6],
    "x.max(1, keepdims=True)": ["float32", [[3], [6]]],
    "x.max(axis=1, initial=4.0)": ["float32", [4, 6]],
    "x.min(axis=0, keepdims=True)": ["float32", [[3, 1, 2]]],
    "x.std(axis=1)": ["float32", [(2 / 3) ** 0.5] * 2],
    "x.std(axis=None)": ["float32", (35 / 12) ** 0.5],
    "x.std(1, ddof=1)": ["float32", [1, 1]],
    "x.var(axis=0)": ["float32", [0.25, 6.25, 2.25]],
    "x.var(keepdims=True)": ["float32", [[35 / 12]]],
    "x.argmin(axis=1)": ["int32", [1, 0]],
    "x.argsort(axis=1)": ["int32", [[1, 2, 0], [0, 2, 1]]],
    "x.sort(axis=1)": [
        *("float32", [[1, 2, 3], [4, 5, 6]]),
        *("int32", [[1, 2, 0], [0, 2, 1]]),
    ],
    "x.count_nonzero(axis=1)": ["int32", [3, 3]],
    "x.cummin(axis=0)": ["float32", [[3, 1, 2]] * 2, "int32", [[0, 0, 0]] * 2],
    "i.nansum(axis=1)": ["int32", [6, 15]],
    "x.all(axis=())": ["bool", True],
    "x.ptp()": ["float32", 5],
    "x.ptp(1)": ["float32", [2, 2]],
    "x.ptp(axis=0, keepdims=True)": ["float32", [[1, 5, 3]]],
    "x.ptp(keepdims=True)": ["float32", [[5]]],
    "numpy.ptp(x, 1)": ["float32", [2, 2]],
    "numpy.argmin(x, 1)": ["int32", [1, 0]],
    "numpy.cumsum(x > 2, 1)": ["int32", [[1, 1, 1], [1, 2, 3]]],
    "x.expand_dims(axis=1)": ["float32", [[[3, 1, 2]], [[4, 6, 5]]]],
    # What is no tensor keeps its methods, and so do functions of modules.
    "other.max(x, axis=1)": ["float32", [[4, 2, 3], [5, 7, 6]]],
    "ops.max(x, axis=1)": ["float32", [3, 6], "int64", [0, 1]],
    "Other(x).value.max(axis=1)": ["float32", [3, 6]],
    # By positions, and `dim`, the methods are PyTorch's.
    "x.max(1)": ["float32", [3, 6], "int64", [0, 1]],
    "x.std(dim=1)": ["float32", [1, 1]],
}


class Other:
    def __init__(self, value=None):
        self.value = value

    def max(self, x, axis):
        return x + axis


def test_calls_by_mindspores_own_keywords_get_its_older_methods(tmp_path_factory):
    functions = compiled(tmp_path_factory, "calls_by_axis", ("x", "i"), OF_OLDER_METHODS)
    x = np.array([[3, 1, 2], [4, 6, 5]])
    given = ms.Tensor(x, ms.float32), ms.Tensor(x, ms.int32)
    faults = []
    for (case, results), function in zip(OF_OLDER_METHODS.items(), functions, strict=True):
        names = {"numpy": ms.numpy, "ops": ms.ops, "Other": Other, "other": Other()}
        vars(sys.modules[function.__module__]).update(names)
        kinds, values = results[::2], map(np.asarray, results[1::2])
        expected = list(zip(kinds, values, strict=True))
        for mode, call in (("PyNative", function), ("graph", ms.jit(function))):
            result = ask(lambda call=call: call(*given))
            if not same(result, expected):
                faults.append((mode, case, shown(result), shown(expected)))
    assert not faults, "\n".join(" | ".join(fault) for fault in faults)


# Functions that take more dtypes, or numbers, than MindSpore's methods of their names.
FUNCTIONS = (
    *("x.ceil()", "x.erf()", "x.erfc()", "x.exp()", "x.expm1()", "x.nan_to_num()", "x.square()"),
    *("x.argmax()", "x.argmax(1, True)", "x.gcd(y)", "x.logaddexp(y)", "x.logaddexp2(y)"),
    *("x.logsumexp(1, True)", "x.cummax(dim=0)", "x.cummin(1)", "x.cummin(dim=0)", "x.diff(dim=0)"),
    *("x.nan_to_num(1.0, 2.0, 3.0)", "x.lerp(y, 0.5)", "x.lerp(y, y)", "x.addcmul(y, y)"),
    *("x.addcmul(y, y, value=2)", "x.addcdiv(y, y)", "x.norm(2, 1)", "x.norm(p=1, dim=0)"),
    *("x.flip((0,))", "x.repeat_interleave(2, 1)", "v.repeat_interleave(k)", "a.addmm(a, b)"),
    *("a.addmm(a, b, beta=2, alpha=3)", "a.inverse()", "c.inverse()", "x.xlogy(2)", "x.std()"),
    *("x.any((0, 1))", "x.var(1)", "x.xlogy(y)", "x.float_power(y)", "v.outer(w)", "x.topk(2)"),
    *("v.outer(g)", "x.addcmul(g, y)", "x.logaddexp(g)", "x.addcdiv(g, y)", "x.logaddexp2(g)"),
)
DTYPES = (
    *("float16", "bfloat16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8"),
    "bool",
)


@pytest.mark.parametrize("dtype", DTYPES)
def test_methods_take_what_the_functions_of_their_names_take(dtype):
    given = arrays("int32" if "int" in dtype else "float32" if "float" in dtype else dtype)
    kept = ("g", "i", "j", "k", "m")

    def converted(module, array, name):
        tensor = getattr(module, "Tensor" if module is ms else "tensor")(array)
        kind = getattr(module, "bool_" if (module, dtype) == (ms, "bool") else dtype)
        return tensor if name in kept else tensor.astype(kind) if module is ms else tensor.to(kind)

    ours, theirs = (
        {name: converted(module, array, name) for name, array in given.items()}
        for module in (ms, torch)
    )
    tolerance = {"float16": 2e-3, "bfloat16": 3e-2}.get(dtype, 1e-5)
    faults = []
    for case in FUNCTIONS:
        tensor, name, rest = re.fullmatch(r"(\w+)\.(\w+)\((.*)\)", case).groups()
        call = f"mint.{name}({tensor}, {rest})"
        function = ask(lambda call=call: eval(call, {"mint": mint}, ours))
        method = ask(lambda case=case: eval(case, {}, ours))
        expected = ask(lambda case=case: eval(case, {}, theirs))
        if not same(method, function, tolerance):
            faults.append((case, "function", shown(function), "method", shown(method)))
        if not isinstance(expected, str) and not same(method, expected, tolerance):
            faults.append((case, "PyTorch", shown(expected), "method", shown(method)))
    assert not faults, "\n".join(" | ".join(fault) for fault in faults)


def calls_of_topk(k, dim):
    def of_method(x):
        return x.topk(k, dim)

    def of_mint(x):
        return mint.topk(x, k, dim)

    return of_method, of_mint, ms.jit(of_method), ms.jit(of_mint)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0,), (2, 0, 4)])
@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_topk_of_empty_tensors(shape, dtype):
    x = np.zeros(shape, dtype)
    for dim in range(-len(shape), len(shape)):
        for k in (0, 1, 3):
            expected = ask(lambda k=k, dim=dim: torch.tensor(x).topk(k, dim))
            for call in calls_of_topk(k, dim):
                result = ask(lambda call=call: call(ms.Tensor(x)))
                if isinstance(expected, str):
                    most = shape[dim]
                    first_line = result.split("\n")[0].replace("'", "")  # in graphs in quotes
                    assert first_line == f"ValueError: topk: expected k from 0 to {most}, got {k}"
                else:
                    assert same(result, expected), (k, dim, shown(result), shown(expected))

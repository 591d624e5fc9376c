"""Graphs and PyNative mode agree over all methods of tensors, and with PyTorch where that has them.

The calls are those of method_cases.py.
"""

import mindspore as ms
import numpy as np
import pytest
import torch
from checks import ask, compiled, same, shown
from method_cases import CASES, OTHER_THAN_PYTORCH, REFUSED_BY_GRAPHS

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

"""What the tests of install() share."""

import contextlib
import importlib.util
import os
import subprocess
import sys

import mindspore as ms
import numpy as np
import pytest
import torch
from mindspore.common.api import _pynative_executor

MODES = pytest.mark.parametrize("mode", ["pynative", "graph"])


def in_mode(function, mode):
    return ms.jit(function) if mode == "graph" else function


def assert_equal(result, expected, tolerance=0.0):
    """The same values, shapes and dtypes; several in the same order."""
    if isinstance(expected, (tuple, list)):
        assert len(result) == len(expected)
        for one, other in zip(result, expected, strict=True):
            assert_equal(one, other, tolerance)
        return
    result, expected = result.asnumpy(), expected.detach().numpy()
    assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_allclose(result, expected, rtol=tolerance, atol=tolerance)


def run(*arguments, **variables):
    """Python with these arguments, in a process that has the library's path alone."""
    environment = {k: v for k, v in os.environ.items() if k != "MS_OP_PLUGIN_PATH"}
    environment["ATEN_BRIDGE_MINT"] = os.environ["MS_OP_PLUGIN_PATH"]
    environment.update(variables)
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, env=environment
    )


# ===--- calls that both frameworks read, as expressions ---===


def compiled(tmp_path_factory, name, parameters, calls):
    """A function of the parameters for each call, in a file, where the compiler reads it."""
    path = tmp_path_factory.mktemp(name) / f"{name}.py"
    lines = ["import mindspore as ms", "from mindspore import mint as n"]
    lines += ["from mindspore.mint.nn import functional as F", ""]
    for number, call in enumerate(calls):
        lines += [f"def call_{number}({', '.join(parameters)}):", f"    return {call}", ""]
    path.write_text("\n".join(lines))
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # where the compiler looks for it
    spec.loader.exec_module(module)
    return [getattr(module, f"call_{number}") for number in range(len(calls))]


def leaves(value):
    if isinstance(value, (list, tuple)):
        return [leaf for part in value for leaf in leaves(part)]
    return [value]


def plain(value):
    """For each result: its dtype, and its values; the dtype of a Python number is its type."""
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


def same(one, other, tolerance=1e-5):
    if isinstance(one, str) or isinstance(other, str):
        return isinstance(one, str) and isinstance(other, str)
    numbers = {"int", "float", "bool"}  # a graph's tensors of no dimension, among several results
    return len(one) == len(other) and all(
        (kind == other_kind or numbers.intersection((kind, other_kind)))
        and values.shape == other_values.shape
        and (
            np.array_equal(values, other_values)
            if values.dtype.kind not in "fc"
            else np.allclose(values, other_values, rtol=tolerance, atol=tolerance, equal_nan=True)
        )
        for (kind, values), (other_kind, other_values) in zip(one, other, strict=True)
    )


def shown(results):
    if isinstance(results, str):
        return results.split("\n")[0][:120]
    return ", ".join(f"{kind}{list(v.shape)} {v.ravel()[:4]}" for kind, v in results)

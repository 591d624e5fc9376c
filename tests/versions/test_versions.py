"""Libraries that were built with two versions of the header, in one process, whatever the order."""

import itertools
import os
import pathlib
import re
import subprocess
import sys

import pytest

FOLDER = pathlib.Path(os.environ["ATEN_BRIDGE_BUILD_DIR"]).resolve() / "tests/versions"
LIBRARIES = [FOLDER / "this_version.so", FOLDER / "other_version.so"]

# Each program uses the libraries one after the other, and then both once more.
MINDSPORE = """
import mindspore as ms
from aten_bridge.mindspore import kernel

def use(library):
    x = ms.Tensor([1.0, 2.0], ms.float32)
    scale = kernel(library + ":Scale", factor=0.5, grad="ScaleGrad")
    yield scale(x).asnumpy()[0]
    def call(x):
        return scale(x)
    yield ms.jit(call)(x).asnumpy()[0]
    yield ms.grad(call)(x).asnumpy()[0]
    yield kernel(library + ":ScaleInfer")(x).asnumpy()[0]
    yield kernel(library + ":ScaleDescribe")(x).asnumpy()[0]
    count = kernel(library + ":Count", first=3.0)
    first, second = count(x).asnumpy()[0], count(x).asnumpy()[0]
    yield second - first
    try:
        kernel(library + ":Fail")(x).asnumpy()
    except RuntimeError as error:
        yield error
"""
JAX = """
import jax, jax.numpy as jnp
from aten_bridge.jax import kernel
def use(library):
    x = jnp.array([1.0, 2.0])
    scale = kernel(library + ":Scale", factor=0.5, grad="ScaleGrad")
    yield scale(x)[0]
    yield jax.jit(scale)(x)[0]
    yield jax.grad(lambda x: scale(x).sum())(x)[0]
    yield kernel(library + ":ScaleInfer")(x)[0]
    yield kernel(library + ":ScaleDescribe")(x)[0]
    count = kernel(library + ":Count", first=3.0)
    first, second = count(x)[0], count(x)[0]
    yield second - first
    try:
        kernel(library + ":Fail")(x).block_until_ready()
    except Exception as error:
        yield error
"""
# Both register the same operators: each time one takes them from the other.
PYTORCH = """
import torch
from aten_bridge.torch import load
def use(library):
    my = load(library, replace=True)
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = my.scale(x, 0.5)
    yield y[0].item()
    yield torch.ops.bridge_versions.scale(x, 0.5)[0].item()
    yield torch.autograd.grad(y.sum(), x)[0][0].item()
    yield my.scale_infer(x)[0].item()
    yield my.scale_describe(x)[0].item()
    first, second = my.count(x, 3.0)[0].item(), my.count(x, 3.0)[0].item()
    yield second - first
    try:
        my.fail(x)
    except RuntimeError as error:
        yield error
"""
USE = """
for library in [*libraries, *libraries]:
    *values, error = use(library)
    print(*map(float, values), error)
"""
WITH_ALL_SYMBOLS = "import ctypes\nfor one in libraries: ctypes.CDLL(one, ctypes.RTLD_GLOBAL)\n"


def expected(library):
    version = 1 + LIBRARIES.index(library)
    values = [0.5 * version] * 3 + [3.0 * version, 5.0 * version, 1.0]
    return " ".join(map(str, values)) + f" Fail: of version {version}, of rank 1"


@pytest.mark.parametrize("begin", ["", WITH_ALL_SYMBOLS], ids=["as hosts do", "RTLD_GLOBAL"])
@pytest.mark.parametrize(
    "order", itertools.permutations(LIBRARIES), ids=["this first", "other first"]
)
@pytest.mark.parametrize(
    ("host", "program"), [("mindspore", MINDSPORE), ("torch", PYTORCH), ("jax", JAX)]
)
def test_two_versions_in_one_process(host, program, order, begin, tmp_path):
    pytest.importorskip(f"{host}.version")  # the tests have folders of these names
    libraries = f"libraries = {[str(path) for path in order]!r}\n"
    script = tmp_path / "script.py"
    script.write_text(libraries + program + begin + USE)
    done = subprocess.run(
        [sys.executable, script],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "GLOG_v": "4"},
    )
    assert done.returncode == 0, done.stdout
    found = re.findall(r"(?m)^([\d. ]+ ).*(Fail: of version \d, of rank \d)", done.stdout)
    lines = ["".join(parts) for parts in found]
    assert lines == [expected(library) for library in (*order, *order)], done.stdout

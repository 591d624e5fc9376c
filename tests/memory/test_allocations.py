"""Who allocates memory below a kernel's function, from the second call on, in every host.

ATEN_BRIDGE_SHOW_ALLOCATIONS=1 in the environment shows where the bridge does.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
BUILD = Path(os.environ["ATEN_BRIDGE_BUILD_DIR"]).resolve()
CALLS = 100


def counts(program, *arguments, **variables):
    """Numbers of allocations by what was called: the library's own, and of what it called."""
    done = subprocess.run(
        [sys.executable, HERE / program, *arguments],
        env={
            "ATEN_BRIDGE_OPERATORS": str(BUILD / "plugin/operators/aten_bridge_operators.so"),
            **os.environ,
            "LD_PRELOAD": str(BUILD / "tests/memory/allocation_counter.so"),
            "OMP_NUM_THREADS": "1",
            **variables,
        },
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert done.returncode == 0, done.stdout
    print(done.stdout)
    line = next(line for line in done.stdout.splitlines() if line.startswith("counts: "))
    # In each call; a thread that makes its first one, as MindSpore's second queue, makes more once.
    found = json.loads(line.removeprefix("counts: "))
    return {what: [number // CALLS for number in numbers] for what, numbers in found.items()}


def own(of_all):
    return {what: numbers[0] for what, numbers in of_all.items()}


def test_in_mindspore():
    of_all = counts("in_mindspore.py", BUILD / "tests")
    own_of_all = own(of_all)
    # Errors are texts: that they are counted shows that the bridge's allocations are seen.
    assert own_of_all.pop("ThrowRuntimeError, PyNative") >= 1
    for mode in ("PyNative", "graph"):
        # A graph is recorded for each call, with tensors and lists that autograd keeps.
        assert own_of_all.pop(f"LeakyReluGrad by autograd, {mode}") == 13
        # The dispatcher takes a list of tensors as an object of its own.
        assert own_of_all.pop(f"aten::cat, {mode}") == 3
        # What has no result of its own needs nothing from PyTorch either.
        assert of_all[f"Copy, {mode}"] == [0, 0]
    assert own_of_all == dict.fromkeys(own_of_all, 0)


def test_in_a_plugin():
    library = BUILD / "plugin/mint/aten_bridge_mint.so"
    of_all = counts("in_plugin.py", library, MS_OP_PLUGIN_PATH=str(library))
    for mode in ("PyNative", "graph"):
        assert of_all[f"erf, {mode}"] == [0, 0]
    own_of_all = own(of_all)
    # In a graph x.T is a call of Transpose, which has a list of dimensions.
    assert own_of_all == dict.fromkeys(own_of_all, 0)


def test_in_pytorch():
    of_all = counts("in_pytorch.py", BUILD / "tests/test_pytorch.so")
    own_of_all = own(of_all)
    assert own_of_all.pop("throws") >= 1
    # The result of a body that resizes it: its tensor and its storage, in place of at::empty()'s.
    assert own_of_all.pop("leaky_relu") == 2
    assert own_of_all.pop("leaky_relu of a transposed tensor") == 2
    assert sum(of_all["leaky_relu"]) == 4  # with its memory, and what the operator needs
    assert own_of_all == dict.fromkeys(own_of_all, 0)
    # Results are PyTorch's tensors; where the caller gives one, nothing is allocated.
    assert of_all["leaky_relu with out"] == [0, 0]


@pytest.mark.skipif("ATEN_BRIDGE_JAX_LIBRARY" not in os.environ, reason="in the target `jax`")
def test_in_jax():
    of_all = counts("in_jax.py", os.environ["ATEN_BRIDGE_JAX_LIBRARY"])
    own_of_all = own(of_all)
    assert own_of_all.pop("Throws") >= 1
    assert own_of_all.pop("LeakyReluGrad") == 13
    assert own_of_all.pop("aten::cat") == 3
    assert own_of_all == dict.fromkeys(own_of_all, 0)
    assert of_all["LeakyRelu"] == [0, 0]  # writes its output

"""Processes of their own: with PyTorch's Python package and without it, and forked ones."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from host import BUILD, LEAKY_RELU

SCRIPT = Path(__file__).parents[2] / "examples/leaky_relu/leaky_relu.py"


@pytest.mark.parametrize(
    "imports",
    [
        "sys.modules['torch'] = None",  # makes its import fail
        "import torch, mindspore",
        "import mindspore, torch",
    ],
    ids=["torch never", "torch first", "torch last"],
)
def test_script_ends_well_with_the_right_result(imports):
    code = f"import runpy, sys; {imports}; runpy.run_path({str(SCRIPT)!r}, run_name='__main__')"
    process = subprocess.run(
        [sys.executable, "-c", code, LEAKY_RELU], capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stderr
    assert process.stdout == (
        "LeakyRelu in MindSpore, graph mode:\n"
        "[[ 0.    -0.001]\n"
        " [-0.002  1.   ]]\n"
        "LeakyRelu in MindSpore, PyNative mode:\n"
        "[[ 0.    -0.001]\n"
        " [-0.002  1.   ]]\n"
    )


# Graph mode reads the source of a gradient from a file, one for each number of inputs.
FORKED = """
import os
import sys

import mindspore as ms

from aten_bridge.mindspore import kernel

ms.set_context(mode=ms.GRAPH_MODE)
library = sys.argv[1]
cube = kernel(f"{library}:Cube", grad="CubeGrad")
matmul = kernel(f"{library}:Matmul", grad="MatmulGrad")
x = ms.Tensor([-1, 2], ms.float32)


def of_one(x):
    return cube(x)


def of_two(x):
    return matmul(x, cube(x))


print(ms.grad(of_one)(x))
child = os.fork()
if child == 0:
    sys.exit(0)
os.waitpid(child, 0)  # MindSpore 2.10 may end it with a signal, after what Python runs at exit
print(ms.grad(of_two)(x))
"""


def test_a_forked_process_leaves_the_gradients_of_its_parent_alone(tmp_path):
    script = tmp_path / "forked.py"
    script.write_text(FORKED)
    process = subprocess.run(
        [sys.executable, script, BUILD / "tests/test_gradients.so"],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    assert process.stdout == "[ 3. 12.]\n[-4. 32.]\n"
    assert list(tmp_path.glob("aten_bridge_*")) == []

"""The tutorial's script in processes of its own: with PyTorch's Python package and without."""

import subprocess
import sys
from pathlib import Path

import pytest
from host import LEAKY_RELU

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

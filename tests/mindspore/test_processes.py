"""The tutorial's script in processes of its own: with PyTorch's Python package and without it."""

import subprocess
import sys
from pathlib import Path

import pytest
from host import LEAKY_RELU

SCRIPT = Path(__file__).parents[2] / "examples/leaky_relu/leaky_relu.py"
RUN = "import runpy; runpy.run_path(sys.argv[1], run_name='__main__')"


@pytest.mark.parametrize(
    "imports",
    ["import mindspore", "import torch, mindspore", "import mindspore, torch"],
    ids=["torch never", "torch first", "torch last"],
)
def test_script_ends_well_with_the_right_result(imports):
    # A module that is None cannot be imported.
    forbid = "" if "torch" in imports else "sys.modules['torch'] = None; "
    # argv as the script itself would have it, from its second element on.
    code = f"import sys; {forbid}{imports}; sys.argv.pop(0); {RUN.replace('[1]', '[0]')}"
    process = subprocess.run(
        [sys.executable, "-c", code, SCRIPT, LEAKY_RELU], capture_output=True, text=True, check=False
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

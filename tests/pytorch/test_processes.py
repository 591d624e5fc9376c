"""Processes of their own: eight at once, forked before and after the first call, and spawned."""

import os
import subprocess
import sys

import pytest

# Behind the library: how they are started, the first before their parent's first call.
PROGRAM = """
import multiprocessing
import sys

import torch

from aten_bridge.torch import load

OPERATORS = load(sys.argv[1])


def check(number):
    x = torch.tensor([-float(number)], requires_grad=True)
    y = OPERATORS.leaky_relu(x, 2.0)
    y.backward()
    assert (y.item(), x.grad.item()) == (-2.0 * number, 2.0)


if __name__ == "__main__":
    for start in sys.argv[2:]:
        context = multiprocessing.get_context(start)
        children = [context.Process(target=check, args=(number,)) for number in range(8)]
        for child in children:
            child.start()
        for child in children:
            child.join()
        print([child.exitcode for child in children])
        check(1)
"""


@pytest.mark.full
@pytest.mark.parametrize("starts", [["fork", "fork"], ["spawn"]], ids=["forked", "spawned"])
def test_eight_processes(starts, library, tmp_path):
    script = tmp_path / "script.py"  # which spawned processes import
    script.write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, script, library, *starts],
        # Where it sees a GPU, PyTorch's backward() refuses in a process that was forked behind one.
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == len(starts) * f"{[0] * 8}\n"

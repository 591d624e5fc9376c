"""Processes of their own: eight at once, forked before JAX has computed, and spawned."""

import subprocess
import sys

import pytest

# Behind the library: how they are started, before their parent's first call.
PROGRAM = """
import multiprocessing
import sys

import jax
import jax.numpy as jnp

from aten_bridge.jax import kernel

KERNEL = kernel(f"{sys.argv[1]}:LeakyRelu", grad="LeakyReluGrad", negative_slope=2.0)


def check(number):
    value, gradient = jax.value_and_grad(jax.jit(lambda x: KERNEL(x).sum()))(jnp.array([-number]))
    assert (float(value), gradient.tolist()) == (-2.0 * number, [2.0])


if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[2])
    children = [context.Process(target=check, args=(float(number),)) for number in range(8)]
    for child in children:
        child.start()
    for child in children:
        child.join()
    print([child.exitcode for child in children])
    check(1.0)
"""


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_eight_processes(start, library, tmp_path):
    script = tmp_path / "script.py"  # which spawned processes import
    script.write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, script, library, start], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{[0] * 8}\n"

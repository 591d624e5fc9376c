"""Ctrl-C while a kernel does not return."""

import signal
import subprocess
import sys

BEGIN = """
import os, signal, threading
import jax, jax.numpy as jnp
from aten_bridge.jax import kernel

hang = kernel(library + ":Hang")
x = jnp.ones(2)
signal.signal(signal.SIGINT, signal.default_int_handler)  # also where it was ignored
"""


def interrupted(library, program):
    """What a program prints behind Ctrl-C in its kernel, and how it ends."""
    with subprocess.Popen(
        [sys.executable, "-c", f"library = {str(library)!r}\n{BEGIN}{program}"],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout.readline() == "hanging\n"
            process.send_signal(signal.SIGINT)
            return process.communicate(timeout=120)[0], process.returncode
        finally:
            process.kill()


def test_while_another_thread_calls(library):
    program = """
thread = threading.Thread(target=hang, args=(x,), daemon=True)
try:
    thread.start()
    thread.join()
except KeyboardInterrupt:
    print("interrupted", flush=True)
    os._exit(0)  # the thread is still there
"""
    assert interrupted(library, program) == ("interrupted\n", 0)


def test_while_a_program_runs_beside_python(library):
    """JAX returns at once from a call of a program with more work."""
    program = """
def work_and_hang(x):
    return hang(jax.lax.fori_loop(0, 3, lambda i, x: x @ x, x))

try:
    jax.block_until_ready(jax.jit(work_and_hang)(jnp.ones((300, 300))))
except KeyboardInterrupt:
    print("interrupted", flush=True)
    os._exit(0)  # at its end Python would wait for the program
"""
    assert interrupted(library, program) == ("interrupted\n", 0)


def test_while_the_call_itself_waits(library):
    """JAX runs a small program in the thread that calls it: Python's handler waits for it."""
    program = """
signal.signal(signal.SIGINT, signal.SIG_DFL)
hang(x)
"""
    assert interrupted(library, program) == ("", -signal.SIGINT)

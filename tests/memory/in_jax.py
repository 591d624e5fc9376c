"""Counts allocations in calls in JAX, of compiled programs as XLA runs them.

python in_jax.py <test_pytorch.so>
"""

import contextlib
import sys

import counting
import jax
import jax.numpy as jnp
import torch

from aten_bridge.jax import kernel

LIBRARY = sys.argv[1]
jax.config.update("jax_enable_x64", True)  # indices are int64
x = jnp.linspace(-2, 2, 12, dtype=jnp.float32).reshape(3, 4)


def program(name, *arguments, **options):
    """A call of a jitted program that does nothing but call the kernel."""
    function = kernel(f"{LIBRARY}:{name}", **options)
    compiled = jax.jit(function).lower(*arguments).compile()
    return lambda: compiled(*arguments)


def throw():
    with contextlib.suppress(jax.errors.JaxRuntimeError):
        jax.block_until_ready(THROWS())


THROWS = program("Throws", x, how=5, out=jax.ShapeDtypeStruct(x.shape, x.dtype))
CALLS = {
    "LeakyRelu": program("LeakyRelu", x, negative_slope=0.25),
    "LeakyReluGrad": program("LeakyReluGrad", x, x, negative_slope=0.25),
    "TopK": program("TopK", x, k=2),
    "Cat": program("Cat", [x, x], dim=1),
    "LayerNorm without weight": program("LayerNorm", x, None, None),
    "Count, with a state": program("Count", x),
    "Throws": throw,
}


def main():
    torch.set_num_threads(1)
    wait = jax.block_until_ready
    counting.show({name: counting.count(LIBRARY, call, wait) for name, call in CALLS.items()})


main()

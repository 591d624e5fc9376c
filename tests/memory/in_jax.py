"""Counts allocations in calls in JAX, of compiled programs as XLA runs them.

python in_jax.py <test_pytorch.so>

ATEN_BRIDGE_OPERATORS in the environment is the library of operators by name.
"""

import contextlib
import os
import sys

import counting
import jax
import jax.numpy as jnp
import torch

from aten_bridge.jax import kernel, operator

LIBRARY = sys.argv[1]
jax.config.update("jax_enable_x64", True)  # indices are int64
x = jnp.linspace(-2, 2, 12, dtype=jnp.float32).reshape(3, 4)


def program(name, *arguments, **options):
    """A call of a jitted program that does nothing but call the kernel."""
    function = kernel(f"{LIBRARY}:{name}", **options)
    return LIBRARY, compiled(function, *arguments)


def by_name(name, *arguments, **attributes):
    return os.environ["ATEN_BRIDGE_OPERATORS"], compiled(operator(name, **attributes), *arguments)


def compiled(function, *arguments):
    program = jax.jit(function).lower(*arguments).compile()
    return lambda: program(*arguments)


def throw():
    with contextlib.suppress(jax.errors.JaxRuntimeError):
        jax.block_until_ready(THROWS())


_, THROWS = program("Throws", x, how=5, out=jax.ShapeDtypeStruct(x.shape, x.dtype))
CALLS = {
    "LeakyRelu": program("LeakyRelu", x, negative_slope=0.25),
    "LeakyReluGrad": program("LeakyReluGrad", x, x, negative_slope=0.25),
    "TopK": program("TopK", x, k=2),
    "Cat": program("Cat", [x, x], dim=1),
    "LayerNorm without weight": program("LayerNorm", x, None, None),
    "Count, with a state": program("Count", x),
    "aten::leaky_relu": by_name("aten::leaky_relu", x, negative_slope=0.25),
    "aten::topk": by_name("aten::topk", x, k=2),
    "aten::cat": by_name("aten::cat", x, x, dim=0),
    "Throws": (LIBRARY, throw),
}


def main():
    torch.set_num_threads(1)
    wait = jax.block_until_ready
    counting.show({name: counting.count(*call, wait) for name, call in CALLS.items()})


main()

"""A kernel and its gradient in the JAX of this environment: what each version must do.

    python smoke_jax.py <test_pytorch.so>

Prints JAX's version; an assertion, or what JAX raises, says what is wrong.
"""

import sys

import jax
import jax.numpy as jnp
import numpy as np

from aten_bridge.jax import kernel

SLOPE = 0.25  # exact, so that results are
X = np.array([[0.0, -0.5, 2.0], [-2.0, 1.0, -4.0]], np.float32)
Y = np.where(X > 0, X, X * np.float32(SLOPE))
GRADIENT = np.where(X > 0, np.float32(1), np.float32(SLOPE))


def main(library):
    jax.config.update("jax_enable_x64", True)  # indices are int64
    leaky_relu = kernel(f"{library}:LeakyRelu", negative_slope=SLOPE, grad="LeakyReluGrad")
    x = jnp.asarray(X)
    for function in (leaky_relu, jax.jit(leaky_relu), jax.vmap(leaky_relu)):
        np.testing.assert_array_equal(function(x), Y)
    gradient = jax.grad(lambda x: leaky_relu(x).sum())
    for function in (gradient, jax.jit(gradient)):
        np.testing.assert_array_equal(function(x), GRADIENT)
    values, indices = kernel(f"{library}:TopK", k=2)(x)
    np.testing.assert_array_equal(indices, [[2, 0], [1, 0]])
    np.testing.assert_array_equal(values, np.take_along_axis(X, np.asarray(indices), 1))
    np.testing.assert_array_equal(kernel(f"{library}:Cat", dim=1)([x, x]), np.hstack([X, X]))
    text = ""
    try:
        kernel(f"{library}:Square")(x)
    except ValueError as error:
        text = str(error)
    assert text.startswith("Square: input 0 'x': expected float64"), text
    print(jax.__version__)


if __name__ == "__main__":
    main(*sys.argv[1:])

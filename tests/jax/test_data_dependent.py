"""Kernels with `data_dependent()`: the sizes of their results are known once they are computed."""

import copy
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from aten_bridge.jax import kernel

VALUES = np.array([1, -2, 3, -4, 5], np.float32)
DEPENDS = (
    "expected an operator whose results have sizes that follow from those of its inputs, got one "
    "whose sizes depend on values; call it outside of jax.jit, jax.vmap and jax.checkpoint, or "
    "give out, the largest that its results can be"
)
LARGEST = jax.ShapeDtypeStruct((5,), jnp.float32)


@pytest.fixture
def x():
    return jnp.asarray(VALUES)


@pytest.fixture
def unsized(library):
    return lambda name, **more: kernel(
        library.with_name("test_unsized.so").as_posix() + f":{name}", **more
    )


def said(run):
    with pytest.raises((TypeError, ValueError, jax.errors.JaxRuntimeError)) as error:
        run()
    return str(error.value)


def test_results_have_the_sizes_that_their_values_say(unsized, x):
    positives, negatives = unsized("Positives"), unsized("Negatives")  # kernels of one type
    for function in (positives, copy.deepcopy(positives), pickle.loads(pickle.dumps(positives))):
        assert function(x).tolist() == [1, 3, 5]
        assert function(-x).tolist() == [2, 4]
        assert function(-jnp.abs(x)).shape == (0,)
    assert negatives(x).tolist() == [-2, -4]
    assert unsized("Shifted", shift=2.5)(x).tolist() == [3.5, 0.5, 5.5, 7.5]
    assert unsized("Shifted", shift=-3.0)(x).tolist() == [2]
    assert unsized("PositivesOfAll")((x, -x), 2).tolist() == [1, 3, 5, 2, 4] * 2
    assert unsized("First")(jnp.asarray([3.0, 1, 2, 4])).tolist() == [3, 1, 2]


def test_several_results_and_an_attribute(unsized, x, wide):
    values, places = unsized("Above", threshold=2.0)(x)
    assert (values.tolist(), places.tolist()) == ([3, 5], [[2], [4]])
    assert unsized("Above")(x)[0].tolist() == [1, 3, 5]  # the default


def test_errors(unsized, x):
    first = unsized("First")
    assert said(lambda: first(jnp.ones((2, 2)))) == (
        "First: input 0 'x': expected rank 1, got float32 [2, 2]"
    )
    assert said(lambda: first(jnp.asarray([2.0, 1]))) == (
        "INVALID_ARGUMENT: First: output 0 'begin': expected sizes [3], got float32 [2]"
    )
    assert said(lambda: unsized("Above")(x)) == (
        "Above: expected outputs of dtypes that JAX has, got 'int64'; set jax_enable_x64, as in "
        'jax.config.update("jax_enable_x64", True)'
    )
    assert said(lambda: unsized("Growing")(x)) == (
        "Growing: expected results that are the same when they are computed twice, once for their "
        "sizes, got those of a call with an effect; give out, the largest that its results can be"
    )


def test_gradients_outside_of_jit(unsized, x, wide):
    positives = unsized("Positives", grad=("PositivesGrad", "PositivesGradGrad"))
    above = unsized("Above", threshold=2.0, grad="AboveGrad")

    def total(x):
        return (positives(x) ** 2).sum()

    assert jax.grad(total)(x).tolist() == [2, 0, 6, 0, 10]
    assert jax.grad(total)(-x).tolist() == [0, 4, 0, 8, 0]
    assert jax.grad(lambda x: jax.grad(total)(x).sum())(x).tolist() == [2, 0, 2, 0, 2]
    assert jax.grad(lambda x: (above(x)[0] * 3).sum())(x).tolist() == [0, 0, 3, 0, 3]
    assert jax.jacrev(positives)(x).tolist() == np.eye(5)[::2].tolist()
    assert said(lambda: jax.jit(jax.grad(total))(x)) == f"Positives: {DEPENDS}"
    assert said(lambda: jax.grad(jax.jit(total))(x)) == f"Positives: {DEPENDS}"
    assert said(lambda: jax.grad(lambda x: unsized("Negatives")(x).sum())(x)) == (
        "Negatives: expected an operator with a gradient kernel where a network is "
        'differentiated, got one without; name one with grad="...", as in '
        'kernel("./a.so:Cube", grad="CubeGrad")'
    )
    assert said(lambda: jax.jvp(positives, (x,), (x,))) == (
        "Positives: expected reverse mode, as of jax.grad, jax.vjp and jax.jacrev, since gradient "
        "kernels go backward, got forward mode, as of jax.jvp, jax.jacfwd and jax.hessian; second "
        "derivatives are jax.jacrev(jax.jacrev(f))"
    )


def test_in_a_program_the_largest_is_told(unsized, x, wide):
    largest = unsized("Positives", out=LARGEST, grad="PositivesGrad")
    for function in (largest, jax.jit(largest), pickle.loads(pickle.dumps(largest))):
        values, sizes = function(x)
        assert (values.tolist(), sizes.tolist()) == ([1, 3, 5, 0, 0], [3])
    growing = jax.jit(unsized("Growing", out=LARGEST))
    assert [growing(x)[1].tolist() for _ in range(2)] == [[1], [2]]
    assert said(lambda: jax.jit(unsized("Positives"))(x)) == f"Positives: {DEPENDS}"
    assert said(lambda: jax.grad(lambda x: largest(x)[0].sum())(x)) == (
        "Positives: expected an operator whose results are as large as their values say where a "
        "network is differentiated, got one that was told the largest; leave that out, outside of "
        "jax.jit"
    )


def test_examples_have_sizes_of_their_own(unsized, x, wide):
    positives = unsized("Positives", grad="PositivesGrad")
    assert said(lambda: jax.vmap(positives)(jnp.stack([x, -x]))) == f"Positives: {DEPENDS}"
    total = jax.checkpoint(lambda x: positives(x).sum())
    assert said(lambda: jax.grad(total)(x)) == f"Positives: {DEPENDS}"
    values, sizes = jax.vmap(unsized("Positives", out=LARGEST))(jnp.stack([x, -x]))
    assert values.tolist() == [[1, 3, 5, 0, 0], [2, 4, 0, 0, 0]]
    assert sizes.tolist() == [[3], [2]]


def test_donated(unsized, wide):
    """The first result is written to the memory of the input, of which the second one is a part."""
    out = (jax.ShapeDtypeStruct((4,), jnp.float32), jax.ShapeDtypeStruct((4,), jnp.float32))
    with_rest = unsized("WithRest", out=out, input_output_aliases={0: 0})
    donated = jnp.asarray([-1, 2, 3, -4], jnp.float32)
    values, rest, *_ = jax.jit(with_rest, donate_argnums=0)(donated)
    assert values.tolist() == [2, 3, 0, 0]
    assert rest.tolist() == [2, 3, -4, 0]


def test_a_constant_of_a_program(unsized, x):
    positives = unsized("Positives")
    assert said(lambda: jax.jit(lambda y: y + positives(x).sum())(1.0)) == f"Positives: {DEPENDS}"

"""Modules whose results have sizes that depend on values, as functions of JAX."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from module_cases import assert_near
from module_size_cases import (
    COUNTS,
    ROWS,
    Chosen,
    Draws,
    DrawsInside,
    Joined,
    Padded,
    Pairs,
    Positive,
    loss_of,
    rows_above_zero,
    slope_penalty,
)

from aten_bridge.jax import module


def to_jax(tensor):
    return jnp.asarray(tensor.detach().numpy())


def loss_with(apply, variables, trains=False, rng=None):
    """A function of the weights and of `x`, with the buffers behind its loss."""

    def loss(params, x):
        results = apply({**variables, "params": params}, x, train=trains, rng=rng)
        results, buffers = results if trains else (results, variables["buffers"])
        return loss_of(results), buffers

    return loss


@pytest.mark.parametrize("make", [Positive, Chosen, Joined, Pairs])
@pytest.mark.parametrize("trains", [True, False], ids=["training", "evaluation"])
def test_gradients_are_pytorchs(make, trains):
    network = make().train(trains)
    (parameter,) = network.parameters()
    apply, variables = module(network, ROWS, gradient_order=2)
    loss = loss_with(apply, variables, trains)

    def penalty(params, x):
        slope, _ = jax.grad(loss, 1, has_aux=True)(params, x)
        return (slope**2).sum()

    for count in COUNTS:
        x = rows_above_zero(count).requires_grad_()
        network.zero_grad()
        known = loss_of(network(x))
        known.backward()
        step = jax.value_and_grad(loss, (0, 1), has_aux=True)
        (value, _), (of_weights, of_x) = step(variables["params"], to_jax(x))
        assert_near(value, known, 1e-5)
        assert_near(of_x, x.grad, 1e-5)
        assert_near(*of_weights.values(), parameter.grad, 1e-5)
        network.zero_grad()
        x.grad = None
        slope_penalty(network, x)
        of_weights, of_x = jax.grad(penalty, (0, 1))(variables["params"], to_jax(x))
        assert_near(of_x, x.grad, 1e-4)
        assert_near(*of_weights.values(), parameter.grad, 1e-4)


@pytest.mark.parametrize("trains", [True, False], ids=["training", "evaluation"])
@pytest.mark.parametrize("make", [Draws, DrawsInside])
def test_random_numbers_are_drawn_again(make, trains):
    network = make().train(trains)
    apply, variables = module(network, ROWS)
    step = jax.value_and_grad(loss_with(apply, variables, trains, jax.random.key(5)), (0, 1), True)
    step = jax.jit(step) if make is DrawsInside else step
    for count in COUNTS:
        x = rows_above_zero(count).requires_grad_()
        network.zero_grad()
        network.norm.reset_running_stats()
        torch.manual_seed(5)
        known = loss_of(network(x))
        known.backward()
        (value, buffers), (of_weights, of_x) = step(variables["params"], to_jax(x))
        assert_near(value, known, 1e-5)
        assert_near(of_x, x.grad, 1e-4)
        for name, weight in network.named_parameters():
            assert_near(of_weights[name], weight.grad, 1e-4)
        for name, buffer in network.named_buffers():
            assert_near(buffers[name], buffer, 1e-5)


def test_a_gradient_that_draws_again_needs_a_key():
    apply, variables = module(Draws().train(), ROWS)
    assert apply(variables, to_jax(rows_above_zero(3)), train=True, rng=jax.random.key(0))
    with pytest.raises(ValueError, match="apply: ") as error:
        jax.grad(loss_with(apply, variables, True), has_aux=True)(
            variables["params"], to_jax(rows_above_zero(3))
        )
    assert str(error.value) == (
        "apply: expected a key for a gradient that draws the module's random numbers again, got "
        "none; give rng=jax.random.key(0)"
    )


@pytest.mark.parametrize("transform", [jax.jit, jax.checkpoint, jax.vmap])
def test_a_program_is_refused(transform):
    apply, variables = module(Positive(), ROWS)

    def gradient(x):
        return jax.grad(lambda x: apply(variables, x).sum())(x)

    def total(x):
        return transform(lambda x: apply(variables, x).sum())(x).sum()

    x = jnp.ones((2, 6, 4)) if transform is jax.vmap else jnp.ones((6, 4))
    for function in (transform(gradient), jax.grad(total)):
        with pytest.raises(ValueError, match="AtenProgram: ") as error:
            function(x)
        assert str(error.value) == (
            "AtenProgram: expected a module whose results have sizes that follow from those of its "
            "inputs, got one whose sizes depend on values; call it outside of jax.jit, jax.vmap "
            "and jax.checkpoint, or pad the results inside of it, by torch.nn.functional.pad, to "
            "the largest size that they can have"
        )


def test_what_is_as_large_as_can_be_works_in_programs():
    network = Padded(4)
    apply, variables = module(network, ROWS)
    loss = loss_with(apply, variables)
    counts = (3, 0, 4)
    xs = [rows_above_zero(count).requires_grad_() for count in counts]
    for x in xs:
        loss_of(network(x)).backward()
    given = jnp.stack(list(map(to_jax, xs)))
    of_weights, of_xs = jax.jit(
        jax.vmap(jax.grad(lambda params, x: loss(params, x)[0], (0, 1)), (None, 0))
    )(variables["params"], given)
    assert_near(of_weights["weight"].sum(0), network.weight.grad, 1e-5)
    for of_x, x in zip(of_xs, xs, strict=True):
        assert_near(of_x, x.grad, 1e-5)
    rows, found = jax.lax.map(lambda x: apply(variables, x), given)
    assert (rows.shape, found.tolist()) == ((3, 4, 4), list(counts))
    with pytest.raises(jax.errors.JaxRuntimeError, match="for which the module was exported"):
        np.asarray(jax.jit(apply)(variables, to_jax(rows_above_zero(5)))[0])

"""Modules that do one thing or another, by torch.cond."""

import sys

import mindspore as ms
import numpy as np
import pytest
import torch
from modes import GRAPHS_IN_FULL
from module_cases import Sides, assert_near
from torch import nn
from torch.export import Dim

from aten_bridge.mindspore import module
from aten_bridge.program import NotExportable

CONDITIONS = [
    lambda n: n > 4,
    lambda n: n >= 4,
    lambda n: n < 4,
    lambda n: n <= 4,
    lambda n: n == 4,
    lambda n: n != 4,
    lambda n: (n > 3) & (n * n < 36),
    lambda n: (n < 3) | (n // 2 == 3),
]


class OfSizes(nn.Module):
    """Each condition that holds adds a power of two."""

    def forward(self, x):
        y = x
        for place, holds in enumerate(CONDITIONS):
            y = y + torch.cond(
                holds(x.shape[0]), lambda x, i=place: x * 2**i, torch.zeros_like, (x,)
            )
        return y


class Numbers(nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda x: x + torch.tensor([1.0, 2.0]), torch.sin, (x,))


class Drops(nn.Module):
    def forward(self, x):
        return torch.cond(
            x.sum() > 0, lambda x: nn.functional.dropout(x, 0.5, self.training), torch.sin, (x,)
        )


class ChecksASide(nn.Module):
    def forward(self, x):
        def check(x):
            y = x.log()
            torch._assert_async(y.isfinite().all())
            return y + 1

        return torch.cond(x.sum() > 0, check, torch.sin, (x,))


def to_mindspore(tensor):
    return ms.Tensor(tensor.detach().numpy().copy())


def gradients_of(network, x):
    """PyTorch's: results, and gradients by the input and by all weights."""
    x = x.clone().requires_grad_()
    network.zero_grad()
    y, z = network(x)
    ((y**2).sum() + (z**3).sum()).backward()
    weights = [
        torch.zeros_like(one) if one.grad is None else one.grad for one in network.parameters()
    ]
    return [y, z, x.grad, *weights]


@GRAPHS_IN_FULL
@pytest.mark.parametrize("trains", [pytest.param(False, marks=pytest.mark.full), True])
def test_each_side_gives_pytorchs_results_and_gradients(mode, trains):
    torch.manual_seed(3)
    network = Sides().train(trains)
    with torch.no_grad():
        network.near.bias.copy_(torch.tensor([2.0, 1.0, -1.0, 0.5]))
    cell = module(network, (torch.randn(5, 4),), dynamic_shapes=({0: Dim("batch")},))
    cell.set_train(trains)

    def loss_of(x):
        y, z = cell(x)
        return (y**2).sum() + (z**3).sum()

    gradient = ms.grad(loss_of, 0, cell.trainable_params())
    for rows, shift in [(5, 1.0), (3, -1.0), (2, 4.0), (6, 0.5)]:
        x = torch.randn(rows, 4) + shift
        of_input, of_weights = gradient(to_mindspore(x))
        found = [*cell(to_mindspore(x)), of_input, *of_weights]
        for one, expected in zip(found, gradients_of(network, x), strict=True):
            assert_near(one, expected, 1e-5)


def test_a_condition_on_sizes(pynative):
    cell = module(OfSizes(), (torch.ones(5, 2),), dynamic_shapes=({0: Dim("rows")},))

    def total(x):
        return cell(x).sum()

    gradient = ms.grad(total)
    for rows in (2, 3, 4, 5, 6, 7):
        factor = 1 + sum(2**place for place, holds in enumerate(CONDITIONS) if holds(rows))
        x = ms.mint.ones((rows, 2))
        assert np.array_equal(cell(x).asnumpy(), np.full((rows, 2), factor, np.float32))
        assert np.array_equal(gradient(x).asnumpy(), np.full((rows, 2), factor, np.float32))


class Masks(nn.Module):
    """One side has sizes that depend on values, which it checks."""

    def forward(self, x):
        def kept(x):
            some = x[x > 0]
            torch._check(some.shape[0] < 4)
            return x * some.sum()

        return torch.cond(x.mean() > 0, kept, lambda x: x.cos(), (x,))


def test_a_side_with_sizes_that_depend_on_values(pynative):
    network = Masks()
    cell = module(network, (torch.ones(5),))

    def loss_of(x):
        return (cell(x) ** 2).sum()

    for values in ([3.0, 1, 2, -1, -1], [3.0, 1, 2, 4, -20], [-1.0, -2, -3, -4, -5]):
        for trains in (False, True):
            cell.set_train(trains)
            x = torch.tensor(values, requires_grad=True)
            # PyTorch's own torch.cond asks for it before 2.10.
            with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
                expected = network(x)
                (expected**2).sum().backward()
            assert_near(cell(to_mindspore(x)), expected, 1e-5)
            assert_near(ms.grad(loss_of)(to_mindspore(x)), x.grad, 1e-5)
    with pytest.raises(RuntimeError, match=r"expected sizes with u\d+ <= 3, for which"):
        cell(ms.Tensor([1.0, 2.0, 3.0, 4.0, 5.0])).asnumpy()


class Selects(nn.Module):
    """Results whose size depends on values; the training program has checks of its own."""

    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda x: x[x > 0].sin(), lambda x: x[x < 0].cos(), (x,))


class Multiplies(Selects):
    def forward(self, x):
        return super().forward(x).sum() * x


@pytest.mark.parametrize("made", [Selects, Multiplies])
def test_results_of_sizes_that_depend_on_values(pynative, made):
    network = made()
    cell = module(network, (torch.ones(4),))

    def loss_of(x):
        return (cell(x) ** 2).sum()

    gradient = ms.grad(loss_of)
    for values in ([1.0, 2, -3, 4], [-1.0, 2, -3, -4], [1.0, 2, 3, 4]):
        x = torch.tensor(values, requires_grad=True)
        with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
            expected = network(x)
            (expected**2).sum().backward()
        assert_near(cell(to_mindspore(x)), expected, 1e-5)
        assert_near(gradient(to_mindspore(x)), x.grad, 1e-5)


class Places(nn.Module):
    """Results with gradients beside those without, which PyTorch 2.11 does not differentiate."""

    def __init__(self, cond):
        super().__init__()
        self.cond, self.linear = cond, nn.Linear(3, 3)

    def forward(self, x):
        def inner(x):
            return self.cond(
                x.mean() > 1,
                lambda x: (x * 3, x.argmax(), x.sum()),
                lambda x: (x.sin(), x.argmin(), x.mean()),
                (x,),
            )

        def other(x):
            return self.linear(x), x.argmin(), x.mean()

        y, place, scale = self.cond(x.sum() > 0, inner, other, (x,))
        return y * x + scale, place


def test_results_with_and_without_gradients(pynative):
    network = Places(lambda holds, one, other, given: (one if holds else other)(*given))
    cell = module(Places(torch.cond), (torch.ones(2, 3),))
    cell.load_state_dict(network.state_dict())

    def loss_of(x):
        return (cell(x)[0] ** 2).sum()

    gradient = ms.grad(loss_of, 0, cell.trainable_params())
    for scale in (1.0, -1.0, 0.2):
        x = (torch.tensor([[1.0, 2, 3], [3, 4, 5]]) * scale).requires_grad_()
        y, place = network(x)
        network.zero_grad()
        (y**2).sum().backward()
        found, found_place = cell(to_mindspore(x))
        of_x, of_weights = gradient(to_mindspore(x))
        assert_near(found, y, 1e-5)
        assert found_place.item() == place.item()
        assert_near(of_x, x.grad, 1e-5)
        for one, weight in zip(of_weights, network.parameters(), strict=True):
            expected = torch.zeros_like(weight) if weight.grad is None else weight.grad
            assert_near(one, expected, 1e-5)


class Sums(nn.Module):
    """Gradients of its sides have other strides, and another place in their memory."""

    def __init__(self, cond):
        super().__init__()
        self.cond, self.weight = cond, nn.Parameter(torch.ones(3))

    def forward(self, x):
        def row(x):
            y = x.cos()
            y[1] += self.weight
            return y

        scale = self.cond(x.sum() > 0, lambda x: x.sin().sum(), lambda x: x.sum() * 2, (x,))
        return self.cond(x.sum() > 1, row, lambda x: x * self.weight.sin(), (x,)) * scale


def test_gradients_of_sides_are_of_any_strides(pynative):
    network = Sums(lambda holds, one, other, given: (one if holds else other)(*given))
    cell = module(Sums(torch.cond), (torch.ones(2, 3),))

    def loss_of(x):
        return (cell(x) ** 2).sum()

    gradient = ms.grad(loss_of, 0, cell.trainable_params())
    for shift in (-1.0, 0.1, 1.0):
        x = (torch.linspace(-0.5, 0.5, 6).reshape(2, 3) + shift).requires_grad_()
        network.zero_grad()
        (network(x) ** 2).sum().backward()
        of_x, (of_weight,) = gradient(to_mindspore(x))
        assert_near(of_x, x.grad, 1e-5)
        assert_near(of_weight, network.weight.grad, 1e-5)


def test_gradients_of_gradients_are_refused(pynative):
    with pytest.raises(NotExportable) as error:
        module(Sides(), (torch.ones(5, 4),), gradient_order=2)
    assert str(error.value) == (
        "gradient_order: expected a module without torch.cond, whose gradients PyTorch does not "
        "differentiate, got one with it; leave out gradient_order"
    )


def test_random_numbers_of_a_side_in_training_are_refused(pynative):
    with pytest.raises(NotExportable) as error:
        module(Drops(), (torch.ones(3, 2),))
    assert str(error.value) == (
        "expected a module that draws no random numbers in a side of torch.cond while it is "
        "trained, got aten::native_dropout in test_module_branches.py, line "
        f"{Drops.forward.__code__.co_firstlineno + 1}; draw them before torch.cond"
    )


@pytest.mark.skipif(sys.version_info < (3, 11), reason="errors have notes since Python 3.11")
def test_a_tensor_of_numbers_in_a_side_has_advice(pynative):
    with pytest.raises(RuntimeError) as error:
        module(Numbers(), (torch.ones(3, 2),))
    assert error.value.__notes__ == [
        "aten_bridge: expected sides of torch.cond that make no tensors of numbers, as "
        "torch.tensor(2) and x[0] = 2 do, got the error above; call torch.full() and fill_(), "
        "or make such a tensor a buffer of the module, or before torch.cond"
    ]


@pytest.mark.parametrize("trains", [False, True], ids=["evaluation", "training"])
def test_checks_of_a_side_are_made_where_it_runs(pynative, trains):
    cell = module(ChecksASide().train(trains), (torch.ones(2),))
    for good in (torch.ones(2), torch.tensor([-2.0, -1.0])):
        assert_near(cell(to_mindspore(good)), ChecksASide()(good), 1e-6)
    for call in (cell, ms.grad(lambda x: cell(x).sum())):
        with pytest.raises(RuntimeError, match="AtenProgram: Expected Tensor with single nonzero"):
            call(ms.Tensor([-1.0, 2.0])).asnumpy()

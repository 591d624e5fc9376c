"""Modules that do one thing or another, by torch.cond."""

import mindspore as ms
import numpy as np
import pytest
import torch
from module_cases import Sides, assert_near
from torch import cond, nn
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


class Fixes(nn.Module):
    def forward(self, x):
        with torch.no_grad():
            scale = torch.cond(x.sum() > 0, lambda x: x.mean(0), lambda x: x.amax(0), (x,))
        return x * scale


class Numbers(nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda x: x + torch.tensor([1.0, 2.0]), torch.sin, (x,))


class Drops(nn.Module):
    def forward(self, x):
        return torch.cond(
            x.sum() > 0, lambda x: nn.functional.dropout(x, 0.5, self.training), torch.sin, (x,)
        )


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
            (network(x) ** 2).sum().backward()
            assert_near(cell(to_mindspore(x)), network(x), 1e-5)
            assert_near(ms.grad(loss_of)(to_mindspore(x)), x.grad, 1e-5)
    with pytest.raises(RuntimeError, match=r"expected sizes with u\d+ <= 3, for which"):
        cell(ms.Tensor([1.0, 2.0, 3.0, 4.0, 5.0])).asnumpy()


def test_gradients_of_gradients_are_refused(pynative):
    with pytest.raises(NotExportable) as error:
        module(Sides(), (torch.ones(5, 4),), gradient_order=2)
    assert str(error.value) == (
        "gradient_order: expected a module without torch.cond, whose gradients PyTorch does not "
        "differentiate, got one with it; leave out gradient_order"
    )


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (
            Drops,
            "expected a module that draws no random numbers in a side of torch.cond while it is "
            "trained, got aten::native_dropout in test_module_branches.py, line "
            f"{Drops.forward.__code__.co_firstlineno + 1}; draw them before torch.cond",
        ),
        (
            Fixes,
            "expected torch.cond where gradients are recorded, got it under torch.no_grad(), which "
            "torch.export forgets there; call detach() of what it takes and returns",
        ),
    ],
)
def test_what_a_side_cannot_do_is_refused(pynative, made, text):
    with pytest.raises(NotExportable) as error:
        module(made(), (torch.ones(3, 2),))
    assert str(error.value) == text
    assert torch.cond is cond


def test_a_tensor_of_numbers_in_a_side_has_advice(pynative):
    with pytest.raises(RuntimeError) as error:
        module(Numbers(), (torch.ones(3, 2),))
    if hasattr(error.value, "__notes__"):  # Python 3.11
        assert error.value.__notes__ == [
            "aten_bridge: expected sides of torch.cond that make no tensors of numbers, got the "
            "error above; make such a tensor a buffer of the module, or make it before torch.cond"
        ]

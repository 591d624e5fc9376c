"""Operators by name where MindSpore changes a network: computed again, and mixed precision."""

import mindspore as ms
import numpy as np
import pytest
import torch
from mindspore import amp, nn, ops

from aten_bridge.mindspore import operator

# ===--- Cell.recompute() ---===


class Masked(nn.Cell):
    """Half of the numbers."""

    def __init__(self):
        super().__init__()
        self.draw = operator("aten::bernoulli.p", p=0.5)

    def construct(self, x):
        return x * self.draw(ops.stop_gradient(x))


class MaskedBy(nn.Cell):
    """The same with a mask that was drawn outside."""

    def construct(self, x, mask):
        return x * mask


class Squared(nn.Cell):
    """Squares of half of the numbers, which are computed again for the gradient."""

    def __init__(self, is_drawn_outside=False, **how):
        super().__init__()
        self.is_drawn_outside = is_drawn_outside
        self.draw = operator("aten::bernoulli.p", p=0.5)
        self.masked = MaskedBy() if is_drawn_outside else Masked()
        self.masked.recompute(**how)
        self.square = operator("aten::square")

    def construct(self, x):
        if self.is_drawn_outside:
            return self.square(self.masked(x, self.draw(ops.stop_gradient(x))))
        return self.square(self.masked(x))


class WithSum(nn.Cell):
    """A network's result and its sum."""

    def __init__(self, network):
        super().__init__()
        self.network = network

    def construct(self, x):
        y = self.network(x)
        return y.sum(), y


def has_mask_of_its_result(network):
    """Whether the gradient belongs to the mask that was drawn for the result."""
    torch.manual_seed(1)
    x = ms.Tensor(np.ones(1000, np.float32))
    (_, y), gradient = ms.value_and_grad(WithSum(network), 0, None, has_aux=True)(x)
    y, gradient = y.asnumpy(), gradient.asnumpy()
    assert 300 < np.count_nonzero(y) < 700
    return bool(((y != 0) == (gradient != 0)).all())


def test_what_a_graph_drew_is_not_computed_again(cpu):
    ms.set_context(mode=ms.GRAPH_MODE)
    try:
        assert has_mask_of_its_result(Squared())
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)


def test_what_is_drawn_outside_of_the_cell_is_not_computed_again(mode):
    assert has_mask_of_its_result(Squared(is_drawn_outside=True))


@pytest.mark.parametrize("use_reentrant", [True, False])
def test_pynative_mode_draws_again(use_reentrant, cpu):
    """docs/operators.md says so; MindSpore 2.10 restores its own generator alone."""
    ms.set_context(mode=ms.PYNATIVE_MODE)
    assert not has_mask_of_its_result(Squared(use_reentrant=use_reentrant))


# ===--- mixed precision ---===


class Linear(nn.Cell):
    """A product in which float16 rounds the weights."""

    def __init__(self):
        super().__init__()
        self.linear = operator("aten::linear")
        self.weight = ms.Parameter(ms.Tensor(np.full((2, 4), 1 + 2**-12, np.float32)))

    def construct(self, x):
        return self.linear(x, self.weight)


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    """MindSpore writes the networks that it rewrites into the current one."""
    monkeypatch.chdir(tmp_path)


def result_of(network):
    result = network(ms.Tensor(np.ones((2, 4), np.float32)))
    assert result.dtype == ms.float32
    return float(result.asnumpy()[0, 0])


@pytest.mark.parametrize("level", ["O0", "O1", "auto"])
def test_levels_that_leave_operators_by_name_as_they_are(level, mode):
    assert result_of(amp.auto_mixed_precision(Linear(), level, ms.float16)) == 4 + 2**-10


@pytest.mark.parametrize("level", ["O2", "O3"])
def test_levels_that_cast_the_cells_that_have_them(level, mode):
    assert result_of(amp.auto_mixed_precision(Linear(), level, ms.float16)) == 4


def test_a_white_list_that_has_them(mode):
    network = Linear()
    lists = [*amp.get_white_list(), type(network.linear)]
    assert result_of(amp.custom_mixed_precision(network, white_list=lists, dtype=ms.float16)) == 4

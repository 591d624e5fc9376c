"""Random numbers in kernels: of a seed that they are given, and of PyTorch's default generator."""

import mindspore as ms
import numpy as np
import pytest
import torch
from host import MINDSPORE, Net, assert_same, custom
from mindspore import nn, ops

from aten_bridge.mindspore import kernel, operator

both_modes = pytest.mark.usefixtures("mode")

ONES = ms.Tensor(np.ones(16, np.float32))


def dropout(**attributes):
    return kernel(f"{MINDSPORE}:SeededDropout", grad="SeededDropoutGrad", **attributes)


def dropped(step, seed, p=0.5):
    """What a generator of PyTorch's leaves of ONES."""
    golden = 0x9E3779B97F4A7C15
    generator = torch.Generator().manual_seed((seed + step * golden) % 2**64)
    return torch.empty(16).bernoulli_(1 - p, generator=generator) * (1 / (1 - p))


def different(results):
    """How many of the results differ."""
    return len({result.asnumpy().tobytes() for result in results})


# ===--- seeds that are given ---===


@both_modes
def test_seed_and_step_decide_in_both_modes():
    net = Net(dropout(p=0.25, seed=7))
    results = [net(ONES, ms.Tensor(step)) for step in (0, 1, 2, 0)]
    for result, step in zip(results, (0, 1, 2, 0), strict=True):
        assert_same(result, dropped(step, seed=7, p=0.25))
    assert different(results) == 3
    assert_same(Net(dropout(seed=8))(ONES, ms.Tensor(0)), dropped(0, seed=8))


# [random]
class Dropout(nn.Cell):
    """Drops other elements in each call. The parameter counts the calls."""

    def __init__(self, library, p, seed):
        super().__init__()
        self.dropout = kernel(f"{library}:SeededDropout", grad="SeededDropoutGrad", p=p, seed=seed)
        self.step = ms.Parameter(ms.Tensor(0, ms.int64), name="step", requires_grad=False)

    def construct(self, x):
        step = self.step + 1
        ops.assign(self.step, step)
        return self.dropout(x, step)


# [/random]


class SumOfTwo(nn.Cell):
    """A layer that is called twice: its parameter changes before the gradient is computed.

    In PyNative mode the gradient of a kernel that took the parameter itself would read the new one.
    """

    def __init__(self, dropout):
        super().__init__()
        self.dropout = dropout

    def construct(self, x):
        y = self.dropout(x) + 10 * self.dropout(x)
        return y.sum(), y


@both_modes
def test_gradient_is_of_the_elements_that_were_kept():
    layer = Dropout(MINDSPORE, p=0.5, seed=3)
    step = ms.value_and_grad(SumOfTwo(layer), has_aux=True)
    for count in (1, 3, 5):
        expected = dropped(count, seed=3) + 10 * dropped(count + 1, seed=3)
        (_, value), gradient = step(ONES)
        assert_same(value, expected)
        assert_same(gradient, expected)
    assert layer.step.asnumpy() == 6


# ===--- PyTorch's default generator ---===


def uniform_like():
    return kernel(f"{MINDSPORE}:UniformLike")


@both_modes
@pytest.mark.parametrize("seed", [ms.set_seed, ms.manual_seed])
def test_default_generator_does_not_know_of_mindspores_seeds(seed):
    net = Net(uniform_like())
    torch.manual_seed(1)
    expected = [torch.rand(3) for _ in range(2)]
    torch.manual_seed(1)
    for values in expected:
        seed(5)
        assert_same(net(ONES[:3]), values)


class Twice(nn.Cell):
    def __init__(self, operator):
        super().__init__()
        self.operator = operator

    def construct(self, x):
        return self.operator(x), self.operator(x)


@both_modes
def test_calls_of_an_operator_made_by_kernel_draw_numbers_of_their_own():
    assert different(Twice(uniform_like())(ONES)) == 2


@pytest.mark.parametrize(("mode", "calls"), [("graph", 1), ("pynative", 2)], indirect=["mode"])
def test_graph_mode_makes_one_call_of_two_equal_ones_of_a_plain_custom(mode, calls):
    assert different(Twice(custom("UniformLike", MINDSPORE))(ONES)) == calls


# ===--- side effects: each call is made ---===


class Unused(nn.Cell):
    """Calls an operator twice, and uses no result."""

    def __init__(self, operator):
        super().__init__()
        self.operator = operator

    def construct(self, x):
        self.operator(x)
        self.operator(x)
        return x * 2


class InALoop(nn.Cell):
    """Calls an operator as often as a tensor says."""

    def __init__(self, operator):
        super().__init__()
        self.operator = operator

    def construct(self, x, times):
        i = ms.Tensor(0, ms.int64)
        while i < times:
            self.operator(x)
            i = i + 1
        return x * 2


@both_modes
@pytest.mark.parametrize(
    ("net", "more", "draws"), [(Unused, (), 2), (InALoop, (ms.Tensor(3, ms.int64),), 3)]
)
@pytest.mark.parametrize("by_name", [False, True])
def test_calls_whose_results_nobody_uses_are_made(net, more, draws, by_name):
    if by_name:
        draw = operator("aten::rand_like")
    else:
        draw = kernel(f"{MINDSPORE}:UniformLike", has_side_effect=True)
    torch.manual_seed(1)
    expected = [torch.rand(16) for _ in range(draws + 1)][-1]
    torch.manual_seed(1)
    assert_same(net(draw)(ONES, *more), torch.full((16,), 2.0))
    assert torch.equal(torch.rand(16), expected)


def test_has_side_effect_is_a_bool():
    with pytest.raises(TypeError) as error:
        kernel(f"{MINDSPORE}:UniformLike", has_side_effect="yes")
    assert str(error.value) == (
        "UniformLike: expected has_side_effect to be True or False, got 'yes'"
    )

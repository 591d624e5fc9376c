"""Kernels that are called for their effect alone, in both modes."""

import mindspore as ms
import numpy as np
from host import BUILD, assert_same, bridge_error
from mindspore import nn

from aten_bridge.mindspore import kernel

LIBRARY = BUILD / "tests/test_pytorch.so"
X = np.arange(4, dtype=np.float32)


def effect(name, **options):
    return kernel(f"{LIBRARY}:{name}", **options)


class Then(nn.Cell):
    """Calls an operator, and returns something else."""

    def __init__(self, operator):
        super().__init__()
        self.operator = operator

    def construct(self, x, *more):
        self.operator(x, *more)
        return x + 1


def test_a_call_gives_true_once_it_is_made(mode):
    check = effect("CheckFinite")
    for _ in range(2):
        assert_same(check(ms.Tensor(X)), np.array(True))
        assert_same(Then(check)(ms.Tensor(X)), X + 1)


def test_each_call_is_made(mode):
    count, counted = effect("CountCalls"), effect("CountedCalls")

    class Twice(nn.Cell):
        def construct(self, x):
            count(x)
            count(x)
            return x

    x, network = ms.Tensor(X), Twice()
    before = int(counted(x))
    for calls in (2, 4):
        assert_same(network(x), X)
        assert int(counted(x)) - before == calls


def test_an_input_that_is_written(mode):
    step, weight = effect("Step", rate=2.0), ms.Parameter(ms.Tensor(X + 0))
    for times in (1, 2):
        step(weight, (ms.Tensor(X), ms.Tensor(X * 3)))
        ms.runtime.synchronize()
        assert_same(weight, X - 8 * X * times)


def test_beside_a_gradient(mode):
    check = effect("CheckFinite")
    gradient = ms.grad(Then(check))
    assert_same(gradient(ms.Tensor(X)), np.ones_like(X))


def test_errors(pynative):
    check = effect("CheckFinite")
    nothing = ms.Tensor(np.float32([1, np.nan]))
    assert bridge_error(lambda: check(nothing).asnumpy(), LIBRARY) == (
        "CheckFinite: expected finite numbers, got others (input 0 'x': float32 [2]; "
        "output 0: bool [])"
    )

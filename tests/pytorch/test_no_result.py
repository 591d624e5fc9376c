"""Kernels that are called for their effect alone."""

import pytest
import torch

INDUCTOR = pytest.param("inductor", marks=pytest.mark.full)  # starts a C++ compiler


def test_a_call_gives_true_once_it_is_made(my):
    assert torch.equal(my.check_finite(torch.ones(3)), torch.tensor(True))
    with pytest.raises(ValueError, match=r"^CheckFinite: expected finite numbers, got others \("):
        my.check_finite(torch.tensor([1.0, torch.inf]))
    torch.library.opcheck(torch.ops.bridge_test.check_finite.default, (torch.ones(3),))


@pytest.mark.parametrize("backend", ["aot_eager", INDUCTOR])
def test_each_call_is_made(my, backend):
    def program(x):
        my.count_calls(x)
        my.count_calls(x)
        return x + 1

    x = torch.ones(3)
    before = my.counted_calls(x).item()
    compiled = torch.compile(program, backend=backend, fullgraph=True)
    for calls in (2, 4):
        assert torch.equal(compiled(x), x + 1)
        assert my.counted_calls(x).item() - before == calls


def test_an_input_that_is_written(my):
    weight, gradient = torch.ones(3), torch.arange(3.0)
    my.step(weight, [gradient, gradient], rate=0.25)
    assert weight.tolist() == [1, 0.5, 0]
    my.step(weight.requires_grad_(), [])  # as a kernel that writes an input, unseen by autograd
    assert weight.grad_fn is None


def test_beside_a_gradient(my):
    x = torch.ones(3, requires_grad=True)
    my.check_finite(x)
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2, 2, 2]
    assert not my.check_finite(x).requires_grad

"""Gradients of products and quotients of complex numbers."""

import mindspore as ms
import numpy as np
import pytest
import torch
from checks import assert_equal

pytestmark = pytest.mark.full

generator = np.random.default_rng(7)
X, Y, Z = (
    (generator.normal(size=shape) + 1j * generator.normal(size=shape)).astype(np.complex64)
    for shape in ((3, 4), (3, 4), (4,))
)
REAL = generator.normal(size=(3, 4)).astype(np.float32)


def in_place(a, b, name):
    a = a + 0
    return getattr(a, name)(b)


def total(framework, y):
    """Real, of real and imaginary parts."""
    return (2 * framework.real(y)).sum() + (3 * framework.imag(y)).sum()


@pytest.mark.parametrize(
    "arrays", [(X, Y), (X, Z), (Z, X), (X, REAL), (REAL, X), (X.astype(np.complex128), Y[:1])]
)
@pytest.mark.parametrize(
    "function",
    [
        lambda framework, a, b: a * b,
        lambda framework, a, b: a / b,
        lambda framework, a, b: a.mul(b),
        lambda framework, a, b: a.div(b),
        lambda framework, a, b: framework.mul(a, b),
        lambda framework, a, b: framework.div(a, b),
        lambda framework, a, b: a * 2.5 + 2.5 * b,
        lambda framework, a, b: a / 2.5 + 2.5 / b,
        lambda framework, a, b: a * a * b / a,
        lambda framework, a, b: in_place(a * b, b, "mul_"),
        lambda framework, a, b: in_place(a * b, b, "div_"),
        lambda framework, a, b: in_place(a * b, b, "__imul__"),
        lambda framework, a, b: in_place(a * b, b, "__itruediv__"),
    ],
)
def test_products_and_quotients(function, arrays):
    tensors = [torch.tensor(array, requires_grad=True) for array in arrays]
    expected = function(torch, *tensors)
    total(torch, expected).backward()
    inputs = [ms.Tensor(array) for array in arrays]
    assert_equal(function(ms.mint, *inputs), expected, 1e-5)
    gradients = ms.grad(lambda *inputs: total(ms.ops, function(ms.mint, *inputs)), (0, 1))(*inputs)
    for gradient, tensor in zip(gradients, tensors, strict=True):
        assert_equal(gradient, tensor.grad.resolve_conj(), 1e-4)


def test_gradients_of_gradients():
    def of_mindspore(x):
        gradient = ms.grad(lambda x: total(ms.ops, x * ms.Tensor(Y) * x / ms.Tensor(Z)))(x)
        return total(ms.ops, gradient)

    x = torch.tensor(X, requires_grad=True)
    value = total(torch, x * torch.tensor(Y) * x / torch.tensor(Z))
    (gradient,) = torch.autograd.grad(value, x, create_graph=True)
    total(torch, gradient).backward()
    assert_equal(ms.grad(of_mindspore)(ms.Tensor(X)), x.grad.resolve_conj(), 1e-4)


def test_an_operand_that_is_written_is_an_error():
    def write(x):
        y = x * 1.0
        product = y * ms.Tensor(Y)
        y.add_(1)
        return total(ms.ops, product)

    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        ms.grad(write)(ms.Tensor(X))


def test_products_in_graph_mode():
    @ms.jit
    def compute(x, y):
        return ms.mint.mul(x, y), ms.mint.div(x, y), x * y

    expected = torch.tensor(X * Y), torch.tensor(X / Y), torch.tensor(X * Y)
    assert_equal(compute(ms.Tensor(X), ms.Tensor(Y)), expected, 1e-5)


@pytest.mark.parametrize(
    "name",
    [
        *("acos", "acosh", "asin", "asinh", "atan"),
        *("arccos", "arccosh", "arcsin", "arcsinh", "arctan"),
    ],
)
def test_inverse_functions_have_gradients(name):
    """MindSpore has no gradient of those that PyTorch has, which it takes beside the library."""

    @ms.jit
    def compute(x):
        return getattr(ms.mint, name)(x), getattr(x, name)()

    tensor = torch.tensor(X, requires_grad=True)
    expected = getattr(torch, name)(tensor)
    total(torch, expected).backward()
    assert_equal(compute(ms.Tensor(X)), (expected, expected), 1e-5)
    for call in (getattr(ms.mint, name), lambda x: getattr(x, name)()):
        assert_equal(call(ms.Tensor(X)), expected, 1e-5)
        gradient = ms.grad(lambda x, call=call: total(ms.ops, call(x)))(ms.Tensor(X))
        assert_equal(gradient, tensor.grad.resolve_conj(), 1e-4)

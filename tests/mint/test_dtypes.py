"""Dtypes that MindSpore's own kernels take, and ATen's do not, work with the library too."""

import mindspore as ms
import numpy as np
import pytest
import torch
from mindspore import mint

A = np.array([[1, 200, 3], [40, 5, 60]])
B = np.array([[7, 2, 3], [4, 50, 6]])
PLACES = np.array([[2, 0, 1], [0, 0, 2]])

FUNCTIONS = {
    "add": (lambda m, a, b: m.add(a, b), lambda a, b: a + b),
    "sub": (lambda m, a, b: m.sub(a, b), lambda a, b: a - b),
    "square": (lambda m, a, b: m.square(b), lambda a, b: b * b),
    "less": (lambda m, a, b: m.less(a, b), lambda a, b: a < b),
    "logical_and": (lambda m, a, b: m.logical_and(a, b), np.logical_and),
    "maximum": (lambda m, a, b: m.maximum(a, b), np.maximum),
    "where": (lambda m, a, b: m.where(m.eq(a, b), a, b), lambda a, b: np.where(a == b, a, b)),
    "amax": (lambda m, a, b: m.amax(a, 1), lambda a, b: a.max(1)),
    "max": (lambda m, a, b: m.max(a, 1)[1], lambda a, b: a.argmax(1)),
    "gather": (
        lambda m, a, b: m.gather(a, 1, ms.Tensor(PLACES)),
        lambda a, b: np.take_along_axis(a, PLACES, 1),
    ),
    "triu": (lambda m, a, b: m.triu(a), lambda a, b: np.triu(a)),
}


@pytest.mark.parametrize("dtype", ["uint16", "uint32", "uint64"])
@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_unsigned_numbers(function, dtype):
    of_mint, of_numpy = function
    a, b = A.astype(dtype), B.astype(dtype)
    expected = of_numpy(a, b)
    result = of_mint(mint, ms.Tensor(a), ms.Tensor(b)).asnumpy()
    np.testing.assert_array_equal(result, expected)
    # Transposed, and the result of a view.
    views = [mint.transpose(ms.Tensor(x.T.copy()), 0, 1) for x in (a, b)]
    np.testing.assert_array_equal(of_mint(mint, *views).asnumpy(), expected)


def test_truth_values():
    mask = np.array([True, False, True])
    x, y = ms.Tensor(mask), ms.Tensor([True, True, False])
    for function in (mint.abs, mint.trunc, mint.nn.functional.relu):
        np.testing.assert_array_equal(function(x).asnumpy(), mask)
    assert mint.sub(x, y).asnumpy().tolist() == [False, True, True]


def test_numbers_of_other_kinds():
    z = np.array([3 + 4j, -2j, 0], np.complex64)
    np.testing.assert_allclose(mint.sign(ms.Tensor(z)).asnumpy(), [0.6 + 0.8j, -1j, 0], rtol=1e-6)
    assert mint.mean(ms.Tensor(np.array([1, 2, 6], np.int32))).item() == 3
    half = ms.Tensor(np.array([[0, 0], [3, 4]], np.float16))
    assert mint.cdist(half, half).asnumpy().tolist() == [[0, 5], [5, 0]]


def test_complex_xlogy():
    x, y = np.array([2j, 0, 1], np.complex64), np.array([1 + 1j, 0, 2j], np.complex64)
    expected = [2j * np.log(1 + 1j), 0, np.log(2j)]
    np.testing.assert_allclose(
        mint.xlogy(ms.Tensor(x), ms.Tensor(y)).asnumpy(), expected, rtol=1e-6
    )


@pytest.mark.parametrize("name", ["exp", "log", "reciprocal", "rsqrt", "sigmoid", "sqrt", "tanh"])
def test_gradients_of_complex_numbers(name):
    z = np.array([3 + 4j, -2j, 0.5 - 1j], np.complex64)
    x = torch.tensor(z, requires_grad=True)
    torch.view_as_real(getattr(torch, name)(x)).sum().backward()

    def total(x):
        y = getattr(mint, name)(x)
        return (ms.ops.real(y) + ms.ops.imag(y)).sum()

    gradient = ms.grad(total)(ms.Tensor(z))
    np.testing.assert_allclose(gradient.asnumpy(), x.grad.resolve_conj().numpy(), rtol=1e-4)


def test_what_no_dtype_helps_is_refused_by_its_own_error():
    with pytest.raises(RuntimeError, match=r'^Erf: "erf_vml_cpu" not implemented'):
        mint.erf(ms.Tensor(np.array([1j], np.complex64))).asnumpy()

"""Indices that count from the end, where MindSpore takes them and PyTorch does not."""

import mindspore as ms
import numpy as np
import pytest
from mindspore import mint, ops

X = np.arange(12, dtype=np.float32).reshape(3, 4) ** 2
INDEX = np.array([[-1, 0], [1, -4], [-2, 3]])
PLACES = INDEX % 4


def gather(x, index):
    return mint.gather(x, 1, index)


def scatter(x, index, source):
    return mint.scatter(x, 1, index, source)


def scatter_number(x, index):
    return mint.scatter(x, 1, index, 5.0)


def gradient_of_gather(x, index):
    return ms.grad(gather)(x, index)


@pytest.fixture(params=["pynative", "graph"])
def mode(request):
    return ms.jit if request.param == "graph" else lambda function: function


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_gather(mode, dtype):
    result = mode(gather)(ms.Tensor(X), ms.Tensor(INDEX.astype(dtype)))
    np.testing.assert_array_equal(result.asnumpy(), np.take_along_axis(X, PLACES, 1))


def test_gather_does_not_write_its_index():
    index = ms.Tensor(INDEX)
    gather(ms.Tensor(X), index)
    np.testing.assert_array_equal(index.asnumpy(), INDEX)


def test_gradient_of_gather(mode):
    result = mode(gradient_of_gather)(ms.Tensor(X), ms.Tensor(INDEX))
    expected = np.zeros_like(X)
    np.add.at(expected, (np.arange(3)[:, None], PLACES), 1)
    np.testing.assert_array_equal(result.asnumpy(), expected)


def test_scatter(mode):
    source = -np.ones_like(X)
    expected = X.copy()
    np.put_along_axis(expected, PLACES, -1, 1)
    result = mode(scatter)(ms.Tensor(X), ms.Tensor(INDEX), ms.Tensor(source))
    np.testing.assert_array_equal(result.asnumpy(), expected)
    np.put_along_axis(expected, PLACES, 5, 1)
    result = mode(scatter_number)(ms.Tensor(X), ms.Tensor(INDEX))
    np.testing.assert_array_equal(result.asnumpy(), expected)


def select(x, index):
    return x.index_select(0, index)


def embed(x, index):
    return mint.nn.functional.embedding(index, x)


@pytest.mark.parametrize("function", [select, embed])
def test_rows(mode, function):
    rows = np.array([-1, 0, 1, -3])
    result = mode(function)(ms.Tensor(X), ms.Tensor(rows))
    np.testing.assert_array_equal(result.asnumpy(), X[rows])
    with pytest.raises(RuntimeError, match=r"index .*out of (range|bounds)"):
        mode(function)(ms.Tensor(X), ms.Tensor(rows - 1)).asnumpy()


def fftshift(x):
    return ops.fftshift(x), ops.ifftshift(x)


def test_a_number_is_shifted_to_itself(mode):
    for result in mode(fftshift)(ms.Tensor(3.0)):
        assert (result.shape, result.item()) == ((), 3.0)


def test_trapz_counts_from_the_end():
    np.testing.assert_allclose(ops.trapz(ms.Tensor(X)).asnumpy(), np.trapz(X), rtol=1e-6)


def test_an_index_out_of_bounds_is_refused():
    with pytest.raises(
        RuntimeError, match="index -5 is out of bounds for dimension 1 with size 4 "
    ):
        gather(ms.Tensor(X), ms.Tensor(INDEX - 4 * (INDEX == -1))).asnumpy()

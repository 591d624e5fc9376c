"""Kernels with `strided()`, which take inputs as they lie in memory where MindSpore has them so."""

import copy
import os

import mindspore as ms
import numpy as np
import pytest
from host import BUILD, Net, assert_same
from mindspore import mint, ops

from aten_bridge.mindspore import kernel

STRIDED = BUILD / "tests/test_strided.so"
IS_ON = os.environ.get("ATEN_BRIDGE_NATIVE_CALLER") != "0"
needs_caller = pytest.mark.skipif(not IS_ON, reason="the native caller is turned off")


def strided(name, **options):
    return kernel(f"{STRIDED}:{name}", **options)


def numbers(*shape):
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape) - 7


def views(x):
    """Tensors of MindSpore's and arrays of NumPy's that are the same parts of a 4x6 matrix."""
    y = ms.Tensor(x)
    return (
        (y, x),
        (y.T, x.T),
        (mint.transpose(y + 0, 0, 1), x.T),
        (y[1:3], x[1:3]),
        (y[1:3, 2:5], x[1:3, 2:5]),
        (y[:, ::2], x[:, ::2]),
        (y.T[2:4], x.T[2:4]),
        (mint.broadcast_to(y[1:2], (3, 6)), x[[1, 1, 1]]),
        (mint.broadcast_to(y[:, 1:2], (4, 5)), x[:, [1] * 5]),
        (mint.narrow(y, 1, 3, 0), x[:, 3:3]),
        (y[2:3, 4:5], x[2:3, 4:5]),
    )


def place(operator, x):
    """Where a kernel finds its input, and the strides."""
    address, *strides = operator(x).asnumpy().tolist()
    return address, strides


def test_the_sample_of_the_guide(mode):
    library, x = STRIDED, ms.Tensor(numbers(4, 6))
    # [call]
    row_sums = kernel(f"{library}:RowSums")
    sums = row_sums(x.T)  # in PyNative mode x.T is not copied
    # [/call]
    assert_same(sums, numbers(4, 6).sum(0))


def test_results_are_the_same_for_all_strides(mode):
    row_sums, scaled = strided("RowSums"), strided("Scaled")
    for _ in range(2):  # the second is like the first
        for x, expected in views(numbers(4, 6)):
            assert_same(row_sums(x), expected.sum(1))
            assert_same(scaled(x), np.ascontiguousarray(expected * 2 * expected))


def test_results_are_row_major(pynative):
    x = ms.Tensor(numbers(4, 6))
    for name in ("Scaled", "Positive", "Same"):
        result = strided(name)(x.T)
        assert result.is_contiguous(), name
        assert_same(strided("RowSums")(result), result.asnumpy().sum(1))


@needs_caller
def test_views_are_not_copied(pynative):
    operator, x = strided("Place"), mint.ones((4, 6))
    base, strides = place(operator, x)
    assert strides == [6, 1]
    assert base == x.data_ptr()
    for _ in range(2):
        assert place(operator, x.T) == (base, [1, 6])
        assert place(operator, x[1:3]) == (base + 6 * 4, [6, 1])
        assert place(operator, x[1:3, 2:5]) == (base + 8 * 4, [6, 1])
        assert place(operator, x[:, ::2]) == (base, [6, 2])
        assert place(operator, x.T[2:4]) == (base + 2 * 4, [1, 6])
        assert place(operator, mint.broadcast_to(x[1:2], (3, 6))) == (base + 6 * 4, [0, 1])
        assert place(operator, x.astype(ms.float64).T)[1] == [1, 6]
    assert place(strided("PlaceByState"), x.T) == (base, [1, 6])


@needs_caller
def test_elements_of_any_size(pynative):
    operator = strided("Place")
    for dtype in (ms.int8, ms.float16, ms.bfloat16, ms.float64, ms.complex64, ms.complex128):
        x = ms.Tensor(np.ones((3, 4)), dtype)
        base, _ = place(operator, x)
        assert place(operator, x.T[2:]) == (base + 2 * x.itemsize, [1, 4])


def test_others_get_row_major_inputs(mode):
    """Kernels without the option; and all of them in graphs, and through ops.Custom."""
    x = mint.ones((4, 6))
    assert place(strided("PlaceOfRowMajor"), x.T)[1] == [4, 1]
    for operator in (strided("Place"), Net(strided("Place"))):
        expected = [1, 6] if IS_ON and mode == "pynative" else [4, 1]
        assert place(operator, x.T)[1] == expected
    assert place(ms.jit(Net(strided("Place"))), x.T)[1] == [4, 1]
    custom = ops.Custom(f"{STRIDED}:Place", (3,), ms.int64, func_type="aot")
    assert place(custom, x.T)[1] == [4, 1]


@needs_caller
def test_operands_in_their_places(pynative):
    operator, x = strided("Places"), mint.ones((4, 6))
    base = x.data_ptr()
    for _ in range(2):
        first, second = operator(x.T, 2.0, (x, x[:, 1:]))
        assert first.asnumpy().tolist() == [base, 1, 6]
        assert second.asnumpy().tolist() == [base + 4, 6, 1]
        first, second = operator(None, 2.0, (x[:, 1:], x.T))
        assert first.shape == (0,)
        assert second.asnumpy().tolist() == [base, 1, 6]


def test_inputs_that_mindspore_computes_meanwhile(pynative):
    row_sums = strided("RowSums")
    x = ms.Tensor(numbers(300, 200))
    for _ in range(20):
        y = mint.matmul(x, x.T) * 0 + 2
        results = [row_sums(y[:, 100:].T), row_sums(y.T[:50])]
        y.add_(1)  # behind the calls
        assert_same(results[0], np.full(200, 600, np.float32))
        assert_same(results[1], np.full(50, 600, np.float32))


def test_sizes_that_depend_on_values(mode):
    if mode == "graph":
        return  # where the largest is told
    above = strided("Above")
    for _ in range(2):
        for x, expected in views(numbers(4, 6)):
            assert_same(above(x), expected[expected > 0])


def test_gradients(mode):
    scaled = strided("Scaled", factor=3.0, grad=("ScaledGrad", "ScaledGradGrad"))
    weights = ms.Tensor(numbers(6, 4) * 2)
    x, expected = ms.Tensor(numbers(4, 6)), numbers(4, 6)

    def of_transposed(x):
        return (scaled(x.T) * weights).sum()

    def of_expanded(x):
        return scaled(mint.broadcast_to(x[1:2], (3, 6))).sum()

    def of_transposed_result(x):
        return (scaled(x).T * weights).sum()  # the gradient has strides

    def gradient_sum(x):
        return ms.grad(of_transposed)(x).sum()

    for _ in range(2):  # the second by C++ alone
        wanted = 6 * expected * weights.asnumpy().T
        assert_same(ms.grad(of_transposed)(x), wanted)
        assert_same(ms.grad(of_transposed_result)(x), wanted)
        only_one = np.zeros_like(expected)
        only_one[1] = 18 * expected[1]
        assert_same(ms.grad(of_expanded)(x), only_one)
    assert_same(ms.grad(gradient_sum)(x), 6 * weights.asnumpy().T)


def test_copies_of_the_operator(pynative):
    x = mint.ones((4, 6))
    operator = copy.deepcopy(strided("Place"))
    assert place(operator, x.T)[1] == ([1, 6] if IS_ON else [4, 1])
    assert "factor" in strided("Scaled").add_prim_attr("factor", 4.0).attrs

"""Tensors of several dtypes, and results of others, in PyNative mode and in graphs."""

import mindspore as ms
import numpy as np
import pytest
import torch
from checks import MODES, assert_equal, in_mode

pytestmark = pytest.mark.full


WHOLE, DOUBLE = np.int32([[1, -2, 3], [4, 5, -6]]), np.float64([[0.3, 2.5, -1], [1.1, 0.7, 2]])


@MODES
@pytest.mark.parametrize(
    "call",
    [
        "mint.cat((x, y))",
        "mint.concat([x, y], 1)",
        "mint.stack((x, y))",
        "mint.hstack((x, y))",
        "mint.dstack((x, y))",
        "mint.cat((x > 0, x, y))",
        "mint.diff(x, prepend=x > 0)",
        "mint.addcmul(x, tensor1=y, tensor2=y, value=2)",
        "mint.atan2(x, other=y)",
        "(y * 1).addcdiv(tensor1=x, tensor2=y)",
        "mint.div(y, x[0, 0], rounding_mode='floor')",
        "mint.div(x, y[0, 0], rounding_mode='trunc')",
        "mint.div((x * 1.5).float(), y[0, 0], rounding_mode='floor')",
    ],
)
def test_tensors_of_several_dtypes_have_the_common_one(compiled, call, mode):
    (ours, theirs), _, _ = compiled(f"return {call}", "x, y")
    expected = theirs(torch.tensor(WHOLE), torch.tensor(DOUBLE))
    result = in_mode(ours, mode)(ms.Tensor(WHOLE), ms.Tensor(DOUBLE))
    assert str(result.dtype).lower() == str(expected.dtype).removeprefix("torch.")
    assert_equal(result, expected, 1e-6)


@MODES
@pytest.mark.parametrize(
    "call",
    [
        "mint.nansum(x, dtype=dtype)",
        "x.nansum(1, dtype=dtype)",
        "mint.norm(x, 2, dim=1, dtype=dtype)",
        "mint.linalg.vector_norm(x, dtype=dtype)",
        "mint.linalg.matrix_norm(x, dtype=dtype)",
        "mint.linalg.norm(x, dtype=dtype)",
    ],
)
def test_the_gradient_has_the_inputs_dtype_where_the_result_has_another(compiled, call, mode):
    (_, theirs), _, _ = compiled(f"return ({call}).sum()", "x, dtype")
    (ours, _), _, _ = compiled(f"return ({call}).sum()".replace("=dtype", "=ms.float64"), "x")
    leaf = torch.tensor(DOUBLE.astype(np.float32), requires_grad=True)
    theirs(leaf, torch.float64).backward()
    gradient = ms.grad(in_mode(ours, mode))(ms.Tensor(DOUBLE.astype(np.float32)))
    assert gradient.dtype == ms.float32
    assert_equal(gradient, leaf.grad, 1e-6)


@MODES
@pytest.mark.parametrize("name", ["all", "any"])
@pytest.mark.parametrize("arguments", ["", "0"])
def test_truth_of_uint8_is_0_or_1(compiled, name, arguments, mode):
    array = np.uint8([[0, 3, 2], [0, 0, 5]])
    calls = f"return x.{name}({arguments}), mint.{name}(x{', ' * bool(arguments)}{arguments})"
    (ours, theirs), _, _ = compiled(calls, "x")
    for given in (array, array[1, 2:].reshape(())):
        expected = theirs(torch.tensor(given))
        for result, one in zip(in_mode(ours, mode)(ms.Tensor(given)), expected, strict=True):
            assert result.dtype == ms.uint8
            assert_equal(result, one)


def test_a_copy_of_a_number_and_shifts_of_two_dtypes():
    assert_equal(ms.Tensor(DOUBLE).copy_(2.5), torch.tensor(DOUBLE).copy_(2.5))
    ours, theirs = ms.Tensor(np.uint8([1, 200])), torch.tensor(np.uint8([1, 200]))
    other = np.int64([9, 2])
    for name in ("bitwise_left_shift", "bitwise_right_shift"):
        result = getattr(ours, name)(ms.Tensor(other))
        assert result.dtype == ms.int64
        assert_equal(result, getattr(theirs, name)(torch.tensor(other)))


@MODES
@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_the_place_of_the_largest_with_all_dimensions(compiled, name, mode):
    body = f"return mint.{name}(x, keepdim=True), mint.{name}(x), mint.{name}(x, 1, True)"
    (ours, theirs), _, _ = compiled(body, "x")
    results = in_mode(ours, mode)(ms.Tensor(DOUBLE))
    for result, expected in zip(results, theirs(torch.tensor(DOUBLE)), strict=True):
        assert_equal(result, expected)


def test_views_whose_elements_share_memory(compiled):
    (ours, theirs), _, _ = compiled("return x.zero_()", "x")
    given, expected = ms.Tensor(DOUBLE[:1].copy()), torch.tensor(DOUBLE[:1].copy())
    result = ms.jit(ours)(given.expand((2, 3)))
    assert_equal(result, theirs(expected.expand(2, 3)))
    assert_equal(given, expected)

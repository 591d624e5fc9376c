"""Inputs and outputs of every shape, number and origin."""

import mindspore as ms
import numpy as np
import pytest
import torch
from host import KERNELS_RETURN, Chain, Net, assert_same, call, custom, pair
from mindspore import mint, ops

pytestmark = pytest.mark.usefixtures("mode")

X = np.array([[1, -2, 3], [-4, 5, -6]], np.float32)


def tensor(values):
    return ms.Tensor(values, ms.float32)


# ===--- shapes ---===


def test_zero_dim_tensor_stays_one():
    expected = torch.nn.functional.leaky_relu(torch.tensor(-2.0))
    assert_same(call("LeakyReluResult", tensor(-2)), expected)


def test_zero_dim_output_of_a_fixed_shape(mode):
    result = call("FortyTwo", out_shape=(), out_dtype=ms.int32)
    # Graph mode makes a Python number of it, unless out_dtype hands on the dtype of an input.
    assert isinstance(result, int if mode == "graph" else ms.Tensor)
    assert int(result) == 42


@pytest.mark.parametrize(("value", "dtype"), [(2.5, ms.float32), (7, ms.int64), (True, ms.bool_)])
def test_python_number_is_a_zero_dim_tensor(value, dtype):
    assert float(call("Copy", value, out_shape=(), out_dtype=dtype)) == value


@pytest.mark.parametrize("shape", [(0,), (2, 0, 3)])
def test_empty_tensor(shape):
    x = np.zeros(shape, np.float32)
    assert_same(call("LeakyReluResult", ms.Tensor(x)), x)


def test_empty_output():
    result = call("FortyTwo", out_shape=(2, 0, 3), out_dtype=ms.float32)
    assert_same(result, np.zeros((2, 0, 3), np.float32))


def test_rank_8():
    x = np.arange(256, dtype=np.float32).reshape(2, 2, 2, 2, 2, 2, 2, 2)
    assert_same(call("Negate", ms.Tensor(x)), -x)


# ===--- memory ---===


def transposed(x):
    return ops.transpose(x, (1, 0))


def every_second_column(x):
    return x[:, ::2]


def second_row(x):
    return x[1]


def narrowed(x):
    return mint.narrow(x, 1, 1, 2)


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        (transposed, [[1, -4], [-2, 5], [3, -6]]),
        (every_second_column, [[1, 3], [-4, -6]]),
        (second_row, [-4, 5, -6]),
        (narrowed, [[-2, 3], [5, -6]]),
    ],
)
def test_view_arrives_row_major(mode, view, expected):
    x = ms.Tensor(X)
    expected = np.array(expected, np.float32)
    if mode == "pynative" and view is not second_row:
        assert not view(x).is_contiguous()
    assert_same(call("Copy", view(x)), expected)
    assert_same(Chain(view, custom("Copy"))(x), expected)


@pytest.mark.parametrize("make", [ms.Tensor, ms.Tensor.from_numpy])
@pytest.mark.parametrize("array", [X.T, X[:, ::2], X[1]], ids=["transposed", "columns", "row"])
def test_numpy_view_arrives_row_major(make, array):
    assert_same(call("Negate", make(array)), -np.ascontiguousarray(array))


def test_input_is_seen_in_place_at_an_odd_address():
    array = np.frombuffer(bytearray(9), np.uint8)[1:].view(np.float32)
    array[:] = [1, -2]
    assert array.ctypes.data % 2 == 1
    x = ms.Tensor.from_numpy(array)
    described = call("Describe", x, out_shape=(7,), out_dtype=ms.int64).asnumpy()
    address, rank, numel = described[:3]
    assert (address, rank, numel) == (array.ctypes.data, 1, 2)
    assert_same(call("Negate", x), np.array([-1, 2], np.float32))


def test_complex128_is_read_and_written_at_half_its_size():
    memory = np.zeros(10, np.float64)
    array = memory[memory.ctypes.data // 8 % 2 ^ 1 :][:8].view(np.complex128)
    assert array.ctypes.data % 16 == 8
    array[:] = [1 + 2j, 3 - 1j, 4 + 4j, -5 + 7j]
    x = ms.Tensor.from_numpy(array)
    expected = np.negative(array)
    for kernel_name in ("Negate", "WriteInput"):
        assert_same(call(kernel_name, x), expected)
    assert_same(x, expected)
    np.testing.assert_array_equal(array, expected)


def test_input_written_by_the_kernel_changes_in_python():
    x = tensor([1, -2])
    assert_same(call("WriteInput", x), np.array([-1, 2], np.float32))
    assert_same(x, np.array([-1, 2], np.float32))


def test_input_reshaped_by_the_kernel_arrives_unchanged_at_the_next_call():
    net = Net(custom("ReshapeInput", out_shape=(2,), out_dtype=ms.int64))
    x = ms.Tensor(X)
    for _ in range(2):
        assert_same(net(x), np.array([2, 3]))
    assert x.shape == (2, 3)


# ===--- numbers of inputs and outputs ---===


def two_scalars(x):
    return (), ()


def twice(x):
    return x, x


def test_two_outputs():
    a, b = torch.tensor([0.1, 0.2]), torch.tensor([0.3, 0.4])
    total, difference = call(
        "AddSubtract", tensor([0.1, 0.2]), tensor([0.3, 0.4]), out_shape=pair, out_dtype=pair
    )
    assert_same(total, a + b)
    assert_same(difference, a - b)


def test_two_results_of_rank_zero():
    low, high = call("MinMax", ms.Tensor(X), out_shape=two_scalars, out_dtype=twice)
    assert_same(low, np.float32(-6))
    assert_same(high, np.float32(5))


def test_no_input():
    assert_same(call("FortyTwo", out_shape=(2,), out_dtype=ms.int8), np.array([42, 42], np.int8))


def test_functional_result():
    expected = torch.nn.functional.leaky_relu(torch.from_numpy(X))
    assert_same(call("LeakyReluResult", ms.Tensor(X)), expected)
    assert_same(call("LeakyReluResult", ms.Tensor(X), library=KERNELS_RETURN), expected)


def test_optional_input():
    x, bias = tensor([1, 2]), tensor([10, 20])
    assert_same(call("AddIfGiven", x, bias), np.array([11, 22], np.float32))
    assert_same(call("AddIfGiven", x, None), np.array([1, 2], np.float32))


def test_optional_input_before_another():
    assert_same(
        call("AddIfFirstGiven", None, tensor([1, 2]), out_shape=(2,), out_dtype=ms.float32),
        np.array([1, 2], np.float32),
    )


def test_same_tensor_twice():
    x = tensor([1, 2])
    total, difference = call("AddSubtract", x, x, out_shape=pair, out_dtype=pair)
    assert_same(total, np.array([2, 4], np.float32))
    assert_same(difference, np.array([0, 0], np.float32))


@pytest.mark.parametrize(("name", "count", "total"), [("Sum19", 19, 190), ("SumSlots", 59, 1770)])
def test_many_inputs(name, count, total):
    inputs = [tensor([i, -i]) for i in range(1, count + 1)]
    assert_same(call(name, *inputs), np.array([total, -total], np.float32))


def test_tuple_of_tensors_arrives_as_one_input_each():
    result = call(
        "SumSlots", (tensor([1, 2]), tensor([3, 4])), out_shape=(2,), out_dtype=ms.float32
    )
    assert_same(result, np.array([4, 6], np.float32))

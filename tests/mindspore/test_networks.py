"""Kernels together: in one network, in several, for many shapes and from several libraries."""

import mindspore as ms
import numpy as np
import pytest
import torch
from host import KERNELS_RETURN, TUTORIAL, Chain, Net, assert_same, custom

pytestmark = pytest.mark.usefixtures("mode")

SHAPES = [(2,), (3, 1), (), (2,)]


def ones(shape):
    return ms.Tensor(np.ones(shape, np.float32))


@pytest.mark.parametrize("library", [KERNELS_RETURN, TUTORIAL], ids=lambda path: path.stem)
def test_kernels_of_two_libraries_in_one_network(library):
    name = "LeakyRelu" if library is TUTORIAL else "LeakyReluResult"
    net = Chain(custom("Negate"), custom(name, library=library))
    expected = torch.nn.functional.leaky_relu(torch.tensor([-1.0, 0.1]))
    assert_same(net(ms.Tensor([1, -0.1], ms.float32)), expected)


def test_two_kernels_of_one_library_in_one_network():
    net = Chain(custom("Negate"), custom("Halve"))
    assert_same(net(ms.Tensor([1, -3], ms.float32)), np.array([-0.5, 1.5], np.float32))


def test_one_kernel_twice_in_one_network():
    net = Chain(custom("Halve"), custom("Halve"))
    assert_same(net(ms.Tensor([4, -2], ms.float32)), np.array([1, -0.5], np.float32))


def test_one_network_for_several_shapes():
    # out_shape is a function of the input's shape here, which MindSpore calls for each shape.
    net = Net(custom("Negate"))
    for shape in SHAPES:
        assert_same(net(ones(shape)), -np.ones(shape, np.float32))


def test_one_operator_in_several_networks_of_several_shapes():
    operator = custom("Negate")
    for shape in SHAPES:
        assert_same(Net(operator)(ones(shape)), -np.ones(shape, np.float32))


def test_one_kernel_with_several_fixed_shapes():
    for shape in SHAPES:
        net = Net(custom("FortyTwo", out_shape=(5, *shape), out_dtype=ms.float32))
        assert_same(net(), np.full((5, *shape), 42, np.float32))


def test_one_kernel_with_several_dtypes():
    net = Net(custom("Negate"))
    for dtype in (np.int8, np.float64, np.float32):
        assert_same(net(ms.Tensor(np.array([1, -2], dtype))), np.array([-1, 2], dtype))


def test_values_of_later_calls_are_new():
    net = Net(custom("Negate"))
    for value in (1, 2, 3):
        assert_same(net(ms.Tensor([value], ms.float32)), np.array([-value], np.float32))

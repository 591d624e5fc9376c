"""MindSpore's tutorial on ATen operators: its example, and source written in its manner."""

import mindspore as ms
import numpy as np
import pytest
import torch
from host import DTYPES, LEAKY_RELU, TUTORIAL, assert_same, bridge_error, call
from modes import GRAPHS_IN_FULL

pytestmark = pytest.mark.usefixtures("mode")


@pytest.mark.parametrize("library", [LEAKY_RELU, TUTORIAL], ids=lambda path: path.stem)
def test_leaky_relu(library):
    x = np.array([[0.0, -0.1], [-0.2, 1.0]], np.float32)
    y = call("LeakyRelu", ms.Tensor(x), library=library)
    assert_same(y, np.array([[0, -0.001], [-0.002, 1]], np.float32))
    assert_same(y, torch.nn.functional.leaky_relu(torch.from_numpy(x)))


def test_result_that_is_not_contiguous_is_copied_row_major():
    x = ms.Tensor([[1, 2, 3], [4, 5, 6]], ms.float32)
    y = call("Transpose", x, library=TUTORIAL, out_shape=(3, 2))
    assert_same(y, np.array([[1, 4], [2, 5], [3, 6]], np.float32))


def test_autograd_inside_a_kernel():
    y = call("SquareGrad", ms.Tensor([1.5, -2], ms.float32), library=TUTORIAL)
    assert_same(y, np.array([3, -4], np.float32))


def test_lazy_conjugate_is_resolved():
    y = call("Conjugate", ms.Tensor([1 + 2j], ms.complex64), library=TUTORIAL)
    assert_same(y, np.array([1 - 2j], np.complex64))


def test_input_written_by_the_kernel_changes_in_python():
    x = ms.Tensor([1, -2], ms.float32)
    assert_same(call("NegateInPlace", x, library=TUTORIAL), np.array([-1, 2], np.float32))
    assert_same(x, np.array([-1, 2], np.float32))


@GRAPHS_IN_FULL
def test_wrong_slots_are_refused():
    def run():
        call("LeakyRelu", "x", library=TUTORIAL, out_shape=(2,), out_dtype=ms.hifloat8).asnumpy()

    assert bridge_error(run, library=TUTORIAL) == (
        'get_torch_tensors: slot 0: expected a tensor, got "string", a str\n'
        f'get_torch_tensors: slot 1: expected {DTYPES}, got "hifloat8" with shape [2]'
    )

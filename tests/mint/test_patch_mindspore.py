"""MindSpore's own kernels get whole tensors beside the library: cmake/package/patch_mindspore.cpp.

survey_views.py tries all functions; here is how it is done.
"""

import ctypes
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import mindspore as ms
import numpy as np
import pytest
from mindspore import mint, nn, ops

SOURCE = Path(__file__).parents[2] / "cmake/package/patch_mindspore.cpp"
X = np.arange(24, dtype=np.float32).reshape(4, 6) / 7 - 1

# What PyPI's wheel of MindSpore 2.10.0 is compiled with, by mindspore.ops.CustomOpBuilder.
INCLUDES = (
    *("", "third_party", "third_party/robin_hood_hashing", "mindspore/include"),
    *("mindspore/core/include", "mindspore/core/mindrt/include", "mindspore/core/mindrt"),
    *("mindspore/ops", "mindspore/ops/include", "mindspore/ops/kernel/include"),
    *("mindspore/ccsrc", "mindspore/ccsrc/include"),
)


def contiguous_copies() -> int:
    count = ctypes.CDLL(os.environ["MS_OP_PLUGIN_PATH"]).aten_bridge_contiguous_copies
    count.restype = ctypes.c_int64
    return count()


def views_of(x: np.ndarray) -> dict[str, ms.Tensor]:
    """The same values, as a whole tensor and as parts of others."""
    larger = np.zeros((x.shape[0] + 2, x.shape[1] + 3), x.dtype)
    larger[1:-1, 2:-1] = x
    stepped = np.zeros((2 * x.shape[0], 2 * x.shape[1]), x.dtype)
    stepped[::2, ::2] = x
    return {
        "whole": ms.Tensor(x),
        "transposed": mint.transpose(ms.Tensor(np.ascontiguousarray(x.T)), 0, 1),
        "part": ms.Tensor(larger)[1:-1, 2:-1],
        "stepped": ms.Tensor(stepped)[::2, ::2],
    }


@pytest.mark.parametrize("compiler", [os.environ.get("CXX", "c++"), "aarch64-linux-gnu-g++"])
def test_the_layout_of_mindspores_classes_is_that_of_its_headers(tmp_path, compiler):
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    known = dict(re.findall(r"constexpr std::size_t k(\w+) = (.*);", SOURCE.read_text()))
    assert set(known) == {
        *("SizeOfKernelTensor", "SizeOfDeviceAddress", "DeviceAddress", "TypeId", "StorageInfo")
    }
    checks = {
        "sizeof(Tensor)": known["SizeOfKernelTensor"],
        "sizeof(mindspore::device::DeviceAddress)": known["SizeOfDeviceAddress"],
        "offsetof(Tensor, device_address_)": known["DeviceAddress"],
        "offsetof(Tensor, dtype_id_)": known["TypeId"],
        "offsetof(Tensor, tensor_storage_info_)": known["StorageInfo"],
        "offsetof(Info, shape)": 0,
        "offsetof(Info, strides)": 24,
        "offsetof(Info, storage_offset)": 48,
        "sizeof(Info)": 112,
        "static_cast<int>(mindspore::kNumberTypeFloat32)": 43,
        "static_cast<int>(mindspore::device::DeviceType::kCPU)": 1,
    }
    source = tmp_path / "layout.cpp"
    source.write_text(
        "#include <mutex>\n"
        '#include "include/runtime/hardware_abstract/kernel_base/kernel_tensor.h"\n'
        "using Tensor = mindspore::kernel::KernelTensor;\n"
        "using Info = mindspore::TensorStorageInfo;\n"
        + "\n".join(f'static_assert({left} == {right}, "");' for left, right in checks.items())
    )
    root = Path(ms.__file__).parent
    compiled = subprocess.run(
        [
            *(compiler, "-std=c++17", "-fsyntax-only", "-fno-access-control", "-w"),
            *("-D_GLIBCXX_USE_CXX11_ABI=0", "-DENABLE_FAST_HASH_TABLE=1", f"-I{root}"),
            *(f"-I{root / 'include' / folder}" for folder in INCLUDES),
            str(source),
        ],
        capture_output=True,
        text=True,
    )
    assert (compiled.returncode, compiled.stderr) == (0, "")


# They have MindSpore's own kernels, and none in the library. No lambdas: graph mode reads source.


def gelu(x):
    return ops.gelu(x, approximate="tanh")


def largest(x):
    return ops.max(x, 1)[0]


def arg_min_with_value(x):
    return ops.ArgMinWithValue(1)(x)[1]


def bitwise_left_shift(x):
    return ops.bitwise_left_shift(x.astype(ms.int32), 1)


def nonzero(x):
    return ops.nonzero(x > 0)


def masked_select(x):
    return ops.masked_select(x, x > 0)


def masked_scatter(x):
    mask = mint.unsqueeze(ms.Tensor([True, False, True, True]), -1).expand_as(x)
    return x.masked_scatter(mask, ms.Tensor(X))


def real_transform(x):
    return ops.FFTWithSize(1, False, True)(x).abs()  # a kernel that is launched in a way of its own


def shape(x):
    return ops.TensorShape()(x)  # MindSpore keeps no memory of its input


FUNCTIONS = (
    *(gelu, ops.log_softmax, largest, arg_min_with_value, bitwise_left_shift, nn.GELU()),
    *(nonzero, masked_select, mint.unique_consecutive, masked_scatter, real_transform, shape),
)


class Net(nn.Cell):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def construct(self, x):
        return self.function(x)


class OfTransposed(Net):
    def construct(self, x):
        return self.function(mint.transpose(mint.neg(x), 0, 1))


@pytest.mark.parametrize("function", FUNCTIONS)
def test_values_of_views_are_those_of_whole_tensors(function, mode):
    net = Net(function)
    views = views_of(X)
    expected = net(views.pop("whole")).asnumpy()
    for part, view in views.items():
        np.testing.assert_array_equal(net(view).asnumpy(), expected, err_msg=part)
    of_transposed = OfTransposed(function)(ms.Tensor(np.ascontiguousarray(-X.T)))
    np.testing.assert_array_equal(of_transposed.asnumpy(), expected)


@pytest.mark.parametrize("part", ["transposed", "part", "stepped"])
def test_gradients_that_are_views(part):
    weights = views_of(X)

    def gradient(weight):
        # The gradient that comes to gelu is a view: of the product's other side.
        return ms.grad(lambda x: (ops.gelu(x, approximate="tanh") * weight).sum())(ms.Tensor(X))

    np.testing.assert_allclose(
        gradient(weights[part]).asnumpy(), gradient(weights["whole"]).asnumpy(), rtol=1e-6
    )


@pytest.mark.parametrize(
    "optimizer",
    [
        lambda p: nn.SGD(p, 0.1),
        lambda p: nn.Momentum(p, 0.1, 0.9),
        lambda p: nn.Adam(p, 0.1),
        lambda p: nn.AdamWeightDecay(p, 0.1),
        lambda p: nn.RMSProp(p, 0.1),
        lambda p: nn.Adagrad(p, learning_rate=0.1),
    ],
    ids=["SGD", "Momentum", "Adam", "AdamWeightDecay", "RMSProp", "Adagrad"],
)
def test_optimizers_take_gradients_that_are_views(optimizer):
    def stepped(gradient):
        weight = ms.Parameter(ms.Tensor(X), name="weight")
        optimizer([weight])((gradient,))
        return weight.asnumpy()

    views = views_of(np.cos(X * 3))
    expected = stepped(views.pop("whole"))
    for name, view in views.items():
        np.testing.assert_array_equal(stepped(view), expected, err_msg=name)


def test_what_is_no_view_and_what_the_library_has_is_not_copied():
    views = views_of(X)
    ops.gelu(views["whole"], approximate="tanh").asnumpy()
    before = contiguous_copies()
    ops.gelu(views["whole"], approximate="tanh").asnumpy()
    ops.gelu(views["whole"][1:], approximate="tanh").asnumpy()  # whole, but for where it begins
    for view in views.values():
        mint.exp(view).asnumpy()
        mint.sum(mint.mm(view, view.T)).asnumpy()
    assert contiguous_copies() == before
    ops.gelu(views["stepped"], approximate="tanh").asnumpy()
    assert contiguous_copies() == before + 1


PROGRAM = """
import ctypes, os
{before}
import mindspore as ms
{after}
x = ms.mint.transpose(ms.Tensor([[0.0, 1.0], [2.0, 3.0]]), 0, 1)
print(ms.ops.neg(x).asnumpy().tolist(), ms.mint.gather(x, 1, ms.Tensor([[0, 0], [1, 1]])).asnumpy())
"""


@pytest.mark.parametrize("left", ["", "Neg,GatherD"])
@pytest.mark.parametrize("place", ["before", "after"])
def test_the_library_may_be_opened_by_somebody_else_first(tmp_path, place, left):
    opened = "ctypes.CDLL(os.environ['MS_OP_PLUGIN_PATH'])"
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.format(**{"before": "", "after": "", place: opened}))
    done = subprocess.run(
        [sys.executable, str(program)],
        capture_output=True,
        text=True,
        env={**os.environ, "ATEN_BRIDGE_LEAVE_TO_MINDSPORE": left},
    )
    assert done.stdout == "[[-0.0, -2.0], [-1.0, -3.0]] [[0. 0.]\n [3. 3.]]\n", done.stderr


LEFT_ALONE = """
import os
import mindspore as ms
ms.set_device("CPU")
import aten_bridge.mint
aten_bridge.mint.install()
x = ms.mint.transpose(ms.Tensor([[0.0, 1.0], [2.0, 3.0]]), 0, 1)
print(ms.ops.gelu(x, approximate="tanh").asnumpy().argsort(None).tolist())
print(ms.mint.exp(x).asnumpy().argsort(None).tolist())
"""


def test_mindspore_is_left_alone_with_a_warning(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(LEFT_ALONE)

    def run(**more):
        return subprocess.run(
            [sys.executable, str(program)],
            capture_output=True,
            text=True,
            env={**os.environ, **more},
        )

    warning = (
        "aten_bridge: WARNING: MindSpore is not patched, since ATEN_BRIDGE_PATCH_MINDSPORE is 0. "
        "Beside a library of kernels (MS_OP_PLUGIN_PATH) its own kernels take views (transposed, "
        "sliced) for whole tensors, and give wrong results: unset the variable, or give "
        "x.contiguous() to functions that the library has no kernel for.\n"
    )
    right = "[0, 2, 1, 3]\n"
    done = run()
    assert (done.stdout, "WARNING: MindSpore is" in done.stderr) == (right + right, False)
    done = run(ATEN_BRIDGE_PATCH_MINDSPORE="0")
    assert done.stdout == "[0, 1, 2, 3]\n" + right, done.stderr
    assert done.stderr.count(warning) == 1


@pytest.mark.parametrize("shape", [(4, 6), (5, 7), (5, 1)])
def test_fftshift_of_views_in_a_graph_does_not_shift_once_more_with_each_call(shape):
    # MindSpore resizes a kernel at each call with a view, with which its own FFTShift shifts twice.
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    view = ms.mint.permute(ms.Tensor(x.T.copy()), (1, 0))
    for shift, expected in (
        (fftshift_in_graph, np.fft.fftshift(x)),
        (ifftshift_in_graph, np.fft.ifftshift(x)),
    ):
        for _ in range(3):
            np.testing.assert_array_equal(shift(view).asnumpy(), expected)


@ms.jit
def fftshift_in_graph(x):
    return ms.ops.fftshift(x)


@ms.jit
def ifftshift_in_graph(x):
    return ms.ops.ifftshift(x)

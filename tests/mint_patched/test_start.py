"""Programs start as they do without the library, and go on after an error."""

import contextlib
import subprocess

import mindspore as ms
import numpy as np
import pytest
from checks import run
from mindspore import mint, nn

# What MindSpore wants before its first operator, and refuses after it.
SETTINGS = """
import mindspore as ms
ms.set_device("CPU")
ms.runtime.launch_blocking()
ms.runtime.set_memory(max_size="2GB")
ms.runtime.dispatch_threads_num(2)
ms.runtime.set_cpu_affinity(False)
print(ms.mint.acos(ms.Tensor(1.0)).item())
"""

INSTALL = """
{before}
from aten_bridge.mint import install
install()
"""

LATE_ERROR = """
import mindspore as ms
import numpy as np
singular = ms.Tensor(np.zeros((2, 2), np.float32))
try:
    inverse = ms.mint.inverse(singular)
    print("later")
    inverse.asnumpy()
except RuntimeError as error:
    print(error)
"""

TEXT = (
    "MatrixInverseExt: linalg.inv: The diagonal element 1 is zero, the inversion could not be"
    " completed because the input matrix is singular. (input 0: float32 [2, 2]; output 0: float32"
    " [2, 2])"
)
ADVICE = (
    "; for the line that it belongs to, run the program with `python -m aten_bridge.mint`"
    ", or call mindspore.runtime.launch_blocking() before the first operator"
)


@pytest.fixture
def program(tmp_path):
    def write(text):
        path = tmp_path / "program.py"
        path.write_text(text)
        return str(path)

    return write


@pytest.mark.parametrize("before", ["", "import mindspore"])
def test_settings_may_come_after_install(program, before):
    done = run(program(INSTALL.format(before=before) + SETTINGS))
    assert done.stdout == "0.0\n", done.stderr


@pytest.mark.parametrize("options", [(), ("--queues",)])
def test_settings_of_a_program_that_the_module_runs(program, options):
    done = run("-m", "aten_bridge.mint", *options, program(SETTINGS))
    assert done.stdout == "0.0\n", done.stderr


def test_an_error_is_raised_later_and_says_how_to_see_its_line(program):
    done = run("-m", "aten_bridge.mint", "--queues", program(LATE_ERROR))
    assert done.stdout == f"later\n{TEXT}{ADVICE}\n", done.stderr


def test_an_error_is_raised_by_its_line_in_a_program_that_the_module_runs(program):
    done = run("-m", "aten_bridge.mint", program(LATE_ERROR))
    assert done.stdout == f"{TEXT}\n", done.stderr


def test_queues_want_a_program():
    done = run("-m", "aten_bridge.mint", "--queues")
    assert (done.returncode, done.stderr) == (
        1,
        "aten_bridge: --queues: expected a program after it.\n",
    )


def test_what_is_no_program(tmp_path):
    done = run("-m", "aten_bridge.mint", "--queue", "train.py")
    text = "--queue: expected a program or --queues, got an unknown option"
    assert (done.returncode, done.stderr) == (1, f"aten_bridge: {text}.\n")
    done = run("-m", "aten_bridge.mint", str(tmp_path))
    text = f"{tmp_path}: expected a program, got a folder"
    assert (done.returncode, done.stderr) == (1, f"aten_bridge: {text}.\n")


def test_a_library_that_cannot_be_opened_is_refused_with_a_message(tmp_path, program):
    library = tmp_path / "text.so"
    library.write_text("no library")
    done = run(program(INSTALL.format(before="")), MS_OP_PLUGIN_PATH=str(library))
    assert done.stderr.splitlines()[-1] == (
        f"RuntimeError: the library of kernels cannot be opened: {library}: file too short; build"
        " it for the PyTorch and the MindSpore of this environment"
    )


def test_another_library_is_refused_with_a_message(tmp_path, program):
    (tmp_path / "other.c").write_text("int Answer() { return 42; }\n")
    other = tmp_path / "other.so"
    subprocess.run(["cc", "-shared", "-fPIC", tmp_path / "other.c", "-o", other], check=True)
    refused = (
        f"{other}: expected the library of kernels, aten_bridge_mint.so, got a library without "
        "kernels of MindSpore's operators; correct the variable "
    )
    done = run("-m", "aten_bridge.mint", program("print(1)"), MS_OP_PLUGIN_PATH=str(other))
    assert (done.stdout, done.stderr) == ("", f"aten_bridge: {refused}MS_OP_PLUGIN_PATH.\n")
    done = run("-m", "aten_bridge.mint", ATEN_BRIDGE_MINT=str(other))
    assert (done.stdout, done.stderr) == ("", f"aten_bridge: {refused}ATEN_BRIDGE_MINT.\n")

    # One with kernels of MindSpore's operators, but not of mint's.
    (tmp_path / "other.c").write_text("int GetRegisteredOpCount() { return 0; }\n")
    subprocess.run(["cc", "-shared", "-fPIC", tmp_path / "other.c", "-o", other], check=True)
    done = run("-m", "aten_bridge.mint", ATEN_BRIDGE_MINT=str(other))
    assert done.stdout == f"{other}\n"
    assert (
        f"UserWarning: {other}: expected the library of kernels, aten_bridge_mint.so, got one with "
        "other kernels, beside which functions of mint do not work or are MindSpore's own; correct "
        "the variable ATEN_BRIDGE_MINT\n"
    ) in done.stderr


# ===--- after an exception in a gradient ---===


def stops(x):
    raise ValueError("stops")


class Stops(nn.Cell):
    def __init__(self):
        super().__init__()
        self.dense = nn.Dense(4, 4)

    def construct(self, x):
        return stops(self.dense(x))


def fails_in_a_kernel(x):
    return mint.inverse(mint.mm(x * 0, x.T)).sum()


def of_weights(x):
    net = Stops()
    return ms.value_and_grad(net, None, net.trainable_params())(x)


def of_set_grad(x):
    net = Stops()
    net.set_grad()
    return net(x)


FAILING = {
    "grad": lambda x: ms.grad(stops)(x),
    "value_and_grad": lambda x: ms.value_and_grad(stops)(x),
    "gradient of a gradient": lambda x: ms.grad(lambda y: ms.grad(stops)(y).sum())(x),
    "vjp": lambda x: ms.vjp(stops, x),
    "jvp": lambda x: ms.jvp(stops, x, x),
    "weights": of_weights,
    "set_grad": of_set_grad,
    "kernel": lambda x: ms.grad(fails_in_a_kernel)(x).asnumpy(),
}


@pytest.mark.parametrize("failing", FAILING.values(), ids=FAILING)
def test_after_an_exception_in_a_gradient_tensors_are_as_before(failing):
    x = ms.Tensor(np.arange(12, dtype=np.float32).reshape(3, 4))
    with pytest.raises((ValueError, RuntimeError)):
        failing(x)
    x.add_(1)
    x[0].add_(1)
    np.testing.assert_array_equal(x[-1].asnumpy(), [9, 10, 11, 12])
    np.testing.assert_array_equal(x[0].asnumpy(), [2, 3, 4, 5])
    x[..., -1] = 0
    assert mint.sum(x, -1).asnumpy().tolist() == [9, 18, 30]
    gradient = ms.grad(lambda y: (y * y).sum())(x)
    np.testing.assert_array_equal(gradient.asnumpy(), 2 * x.asnumpy())


def test_an_exception_that_a_function_catches_while_it_is_differentiated():
    """Its gradient is lost to MindSpore, which says so; what follows is not."""

    def function(x):
        with contextlib.suppress(ValueError):
            ms.grad(stops)(x)
        return (x * x).sum()

    x = ms.Tensor([1.0, 2.0])
    with pytest.raises(RuntimeError, match="Can not find top cell for backward"):
        ms.grad(function)(x)
    x.add_(1)
    assert x.asnumpy().tolist() == [2, 3]
    assert ms.grad(lambda x: (x * x).sum())(x).asnumpy().tolist() == [4, 6]


class Halves(nn.Cell):
    """Computes in float16, and stops."""

    def __init__(self):
        super().__init__()
        self.to_float(ms.float16)

    def construct(self, x):
        return stops(x)


class Doubles(nn.Cell):
    def construct(self, differentiated):
        return 2 * differentiated


def test_an_exception_beside_a_recording_leaves_it_alone():
    x = ms.Tensor([1.0, 2.0])
    _, gradient = ms.vjp(lambda x: (x * x).sum(), x)
    with pytest.raises(ValueError, match="stops"):
        Halves()(x)
    assert gradient(ms.Tensor(3.0))[0].asnumpy().tolist() == [6, 12]


def test_an_exception_ends_the_precision_of_its_cell():
    def function(x):
        with contextlib.suppress(ValueError):
            Halves()(x)
        return ms.ops.matmul(x, x)

    net = Doubles().set_grad()
    x = ms.Tensor(np.eye(2, dtype=np.float32))
    assert function(net(differentiated=x)).dtype == ms.float32
    assert ms.grad(function)(x).dtype == ms.float32

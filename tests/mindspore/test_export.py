"""Networks of kernels in MindIR files: ms.export writes them, ms.load and nn.GraphCell run them."""

import os
import shutil
import subprocess
import sys

import mindspore as ms
import numpy as np
import pytest
from host import MINDSPORE, STACK, Net, assert_same, bridge_error, custom, error_text
from mindspore import nn, ops

from aten_bridge.mindspore import kernel

both_modes = pytest.mark.usefixtures("mode")

X = ms.Tensor([-1, 2, -4], ms.float32)
ROWS = ms.Tensor([[-1, 2, -4], [4, -5, 6]], ms.float32)


def typed(name, library=MINDSPORE, **options):
    return kernel(f"{library}:{name}", **options)


def leaky_relu(library=MINDSPORE):
    return typed("LeakyRelu", library, negative_slope=0.5)


def floats(*values):
    return np.array(values, np.float32)


# [export]
def export(net, inputs, file):
    ms.export(net, *inputs, file_name=str(file), file_format="MINDIR")


def load(file):
    return nn.GraphCell(ms.load(str(file)))


# [/export]


def exported(net, *inputs, folder):
    """The network, written to a file and read again."""
    file = folder / "net.mindir"
    export(net, inputs, file)
    return load(file)


# ===--- what a file keeps ---===


class Everything(nn.Cell):
    """None, numbers, lists, attributes, several outputs, 0-dim results and a workspace."""

    def __init__(self):
        super().__init__()
        self.sum_of_given = typed("SumOfGiven")
        self.number_inputs = typed("NumberInputs")
        self.join = typed("Join")
        self.string = typed("EchoString", value="abc")
        self.lists = typed("EchoFloatLists", value=[[0.1], [0.2, 3.0]])
        self.optional = typed("EchoOptional")
        self.to_complex = typed("ToComplex")
        self.top_k = typed("TopK", k=2)
        self.total = typed("Total")
        self.reverse = typed("Reverse", copies=2)

    def construct(self, x):
        doubled = self.sum_of_given(None, x, x)
        values, indices = self.top_k(x)
        return (
            self.number_inputs(x, 0.1, 2, True, None),
            self.join(x, (x, doubled), x),
            self.string(),
            self.lists(),
            self.optional(),
            self.to_complex(x),
            values,
            indices,
            self.total(x),
            self.reverse(x),
        )


@both_modes
def test_operands_and_attributes_of_every_kind(tmp_path):
    net = Everything()
    results = exported(net, X, folder=tmp_path)(X)
    for result, expected in zip(results, net(X), strict=True):
        assert isinstance(result, ms.Tensor)
        assert_same(result, expected.asnumpy())


@both_modes
def test_state_begins_again(tmp_path):
    net = Net(typed("Counter", start=5))
    assert_same(net(X), floats(5, 5, 5))
    loaded = exported(net, X, folder=tmp_path)
    assert_same(loaded(X), floats(5, 5, 5))
    assert_same(loaded(X), floats(6, 6, 6))


class Loss(nn.Cell):
    def __init__(self):
        super().__init__()
        self.weight = ms.Parameter(ms.Tensor([2, 3, 4], ms.float32), name="weight")
        self.multiply_add = typed("MultiplyAdd", grad="MultiplyAddGrad")

    def construct(self, x):
        product, total = self.multiply_add(x, self.weight)
        return (product * 2 + total).sum()


def training_step():
    loss = Loss()
    return nn.TrainOneStepCell(loss, nn.SGD(loss.trainable_params(), learning_rate=0.25))


@both_modes
def test_training_goes_on_in_a_file(tmp_path):
    step, expected = training_step(), [float(loss) for loss in map(training_step(), [X] * 3)]
    loaded = exported(step, X, folder=tmp_path)
    assert [float(loaded(X)) for _ in range(3)] == expected
    # 2 x + 1 is the gradient of the weight.
    (weight,) = (p for p in loaded.get_parameters() if p.name == "weight")
    assert_same(weight, floats(2, 3, 4) - 0.75 * (2 * X.asnumpy() + 1))


@both_modes
def test_numbers_and_none_are_those_of_the_export(tmp_path):
    loaded = exported(Net(typed("NumberInputs")), X, 0.5, 2, True, None, folder=tmp_path)
    assert_same(loaded(X), floats(-1.5, -3, -0.0))


@both_modes
def test_error_of_a_kernel_is_the_bridges(tmp_path):
    loaded = exported(Net(custom("ThrowRuntimeError")), X, folder=tmp_path)
    assert bridge_error(lambda: loaded(X)) == (
        "ThrowRuntimeError: thrown by the kernel (input 0: float32 [3]; output 0: float32 [3])"
    )


# ===--- the path of the library ---===


def missing(library):
    return f"For 'Custom' on CPU, couldn't find the AOT binary file: {library}" + STACK


def call_error(loaded):
    return error_text(RuntimeError, lambda: loaded(X))


@both_modes
def test_absolute_path_is_kept_and_the_library_is_not(tmp_path, monkeypatch):
    (tmp_path / "built").mkdir()
    library = tmp_path / "built/kernels.so"
    shutil.copy(MINDSPORE, library)
    monkeypatch.chdir(tmp_path)
    export(Net(leaky_relu("built/kernels.so")), [X], tmp_path / "net.mindir")
    moved = library.rename(tmp_path / "kernels.so")
    assert call_error(load("net.mindir")).startswith(missing(library))
    library.symlink_to(moved)
    assert_same(load("net.mindir")(X), floats(-0.5, 2, -2))


@both_modes
def test_relative_path_of_a_plain_custom_is_kept_as_it_was_written(tmp_path, monkeypatch):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
    shutil.copy(MINDSPORE, tmp_path / "a/kernels.so")
    monkeypatch.chdir(tmp_path / "a")
    operator = custom("LeakyRelu", "./kernels.so").add_prim_attr("negative_slope", 0.5)
    export(Net(operator), [X], tmp_path / "net.mindir")
    monkeypatch.chdir(tmp_path / "b")
    assert call_error(load("../net.mindir")).startswith(missing("./kernels.so"))
    (tmp_path / "a/kernels.so").rename(tmp_path / "b/kernels.so")
    assert_same(load("../net.mindir")(X), floats(-0.5, 2, -2))


LOAD = """
import sys

sys.modules["torch"] = sys.modules["aten_bridge"] = None  # makes their import fail

import mindspore as ms
from mindspore import nn

print(nn.GraphCell(ms.load(sys.argv[1]))(ms.Tensor([-1, 2, -4], ms.float32)))
"""


def test_file_needs_neither_the_python_module_nor_pytorchs(cpu, tmp_path):
    export(Net(leaky_relu()), [X], tmp_path / "net.mindir")
    process = subprocess.run(
        [sys.executable, "-c", LOAD, tmp_path / "net.mindir"],
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    assert process.stdout == "[-0.5  2.  -2. ]\n"


# ===--- what MindSpore refuses ---===

NO_PYTHON = "The prim is not a PrimitivePy. Prim name: Custom"  # "prim": the operator


def unknown(*shape):
    return ms.Tensor(shape=shape, dtype=ms.float32)


@both_modes
def test_other_sizes_than_those_of_the_export_are_an_error(tmp_path):
    loaded = exported(Net(leaky_relu()), ROWS, folder=tmp_path)
    assert_same(loaded(ROWS), np.array([[-0.5, 2, -2], [4, -2.5, 6]], np.float32))
    assert NO_PYTHON in error_text(RuntimeError, lambda: load(tmp_path / "net.mindir")(ROWS[:1]))


@both_modes
def test_unknown_sizes_are_an_error_of_the_loaded_network(tmp_path):
    loaded = exported(Net(leaky_relu()), unknown(None, 3), folder=tmp_path)
    assert NO_PYTHON in error_text(RuntimeError, lambda: loaded(ROWS))


# [hooks]
def leaky_relu_of_any_sizes(library):
    """A plain ops.Custom, for which the library's hooks infer, also in a loaded network."""
    operator = ops.Custom(f"{library}:LeakyRelu", None, None, func_type="aot")
    return operator.add_prim_attr("reg_op_name", "LeakyRelu").add_prim_attr("negative_slope", 0.5)


# [/hooks]


@both_modes
def test_unknown_sizes_with_the_hooks_of_the_library(tmp_path):
    net = Net(leaky_relu_of_any_sizes(MINDSPORE))
    loaded = exported(net, unknown(None, 3), folder=tmp_path)
    expected = np.array([[-0.5, 2, -2], [4, -2.5, 6]], np.float32)
    assert_same(loaded(ROWS), expected)
    assert_same(loaded(ROWS[:1]), expected[:1])


@pytest.mark.parametrize("mode", ["graph"], indirect=True)
def test_loaded_network_cannot_be_differentiated(mode, tmp_path):
    loaded = exported(Loss(), X, folder=tmp_path)
    assert NO_PYTHON in error_text(RuntimeError, lambda: ms.grad(loaded)(X))


@both_modes
def test_onnx_is_an_error(tmp_path):
    text = error_text(
        RuntimeError,
        lambda: ms.export(
            Net(leaky_relu()), X, file_name=str(tmp_path / "net.onnx"), file_format="ONNX"
        ),
    )
    assert text.startswith("The pointer[value] is null.\n")
    assert not (tmp_path / "net.onnx").exists()

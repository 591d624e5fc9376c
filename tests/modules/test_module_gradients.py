"""Modules that can be differentiated more than once."""

import os
import re
import subprocess
import sys

import mindspore as ms
import numpy as np
import pytest
import torch
from mindspore.common.api import _pynative_executor
from modes import GRAPHS_IN_FULL
from module_cases import assert_near
from torch import nn
from torch.export import Dim
from torch.nn.attention import SDPBackend, sdpa_kernel

from aten_bridge.mindspore import module, native_caller, operator
from aten_bridge.program import NotExportable, save
from aten_bridge.program._export import export_module

TOO_HIGH = (
    "AtenProgram: expected gradients of the order that the module was made with, got one of a "
    "higher order; make it with gradient_order=2, or more; 1 is the highest where gradients read "
    "buffers that a call changes, as in batch normalization in training mode, and where gradients "
    "are constants"
)


class Attends(nn.Module):
    def __init__(self):
        super().__init__()
        self.into = nn.Linear(3, 6)
        self.out = nn.Linear(2, 1)

    def forward(self, x):
        q, k, v = self.into(x)[None, None].chunk(3, -1)
        return self.out(nn.functional.scaled_dot_product_attention(q, k, v)[0, 0])


class Embeds(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(7, 3)
        self.register_buffer("indices", torch.tensor([0, 3, 6, 3]))

    def forward(self, x):
        return (x @ self.embedding(self.indices).T).softmax(-1).log()


def fields():
    """A network of coordinates, as for differential equations."""
    return nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.LayerNorm(8), nn.Linear(8, 1))


def critic():
    return nn.Sequential(
        nn.Unflatten(1, (1, 3)),
        nn.Conv1d(1, 4, 3, padding=1),
        nn.GroupNorm(2, 4),
        nn.SiLU(),
        nn.MaxPool1d(2),
        nn.Flatten(),
        nn.Linear(4, 2),
    )


# The last three are in `full`: PyTorch traces and MindSpore compiles each for seconds.
NETWORKS = [
    fields,
    *(pytest.param(one, marks=pytest.mark.full) for one in (critic, Attends, Embeds)),
]


def made(network):
    # PyTorch (2.11) cannot trace the gradient of these layers' gradients with sizes that change,
    # nor those of LayerNorm before 2.11.
    fixed = [nn.Conv1d, nn.BatchNorm1d]
    if torch.__version__ < (2, 11):
        fixed.append(nn.LayerNorm)
    is_fixed = any(isinstance(one, tuple(fixed)) for one in network.modules())
    shapes = None if is_fixed else ({0: Dim("batch")},)
    with sdpa_kernel(SDPBackend.MATH):
        return module(network, (torch.randn(5, 3),), dynamic_shapes=shapes, gradient_order=2)


def penalty_of(network, x):
    """PyTorch's: how far the gradients of the rows are from a length of one."""
    with sdpa_kernel(SDPBackend.MATH):
        (gradient,) = torch.autograd.grad(network(x).sum(), x, create_graph=True)
    return ((gradient.square().sum(-1) - 1) ** 2).mean()


def mindspore_penalty(cell):
    def total(x):
        return cell(x).sum()

    differentiate = ms.grad(total)

    def penalty(x):
        gradient = differentiate(x)
        return ((gradient.square().sum(-1) - 1) ** 2).mean()

    return penalty


def to_mindspore(tensor):
    return ms.Tensor(tensor.detach().numpy().copy())


def test_an_error_leaves_mindspore_recording(pynative):
    """Gradients in graphs are then taken for one order higher (2.10)."""
    penalty, x = mindspore_penalty(made(fields())), to_mindspore(torch.ones(5, 3))

    def fails(x):
        raise OSError("of the function")

    with pytest.raises(OSError, match="of the function"):
        ms.grad(fails)(x)
    ms.set_context(mode=ms.GRAPH_MODE)
    try:
        with pytest.raises(ValueError, match="AtenProgram") as error:
            ms.grad(penalty)(x)
        assert str(error.value).partition("\n")[0] == TOO_HIGH
    finally:
        _pynative_executor.set_grad_flag(False)
    assert ms.grad(penalty)(x).shape == (5, 3)


def assert_weights_near(function, cell, given, network):
    """Compares the gradients of a function by the weights with PyTorch's."""
    if ms.get_context("mode") == ms.PYNATIVE_MODE and not native_caller():
        return  # MindSpore's own gradient is wrong: see test_mindspore_leaves_weights_out
    gradients = ms.grad(function, None, cell.trainable_params())(given)
    for gradient, parameter in zip(gradients, network.parameters(), strict=True):
        if parameter.grad is None:
            assert_zero(gradient)
        else:
            assert_near(gradient, parameter.grad, 1e-4)


def assert_zero(gradient):
    assert not np.any(gradient.asnumpy())


@GRAPHS_IN_FULL
@pytest.mark.parametrize("trains", [False, True])
@pytest.mark.parametrize("make", NETWORKS)
def test_a_gradient_of_a_gradient(mode, make, trains):
    torch.manual_seed(3)
    network = make().train(trains)
    cell = made(network).set_train(trains)
    x = torch.randn(5, 3, requires_grad=True)
    expected = penalty_of(network, x)
    expected.backward()
    given = ms.Tensor(x.detach().numpy())
    penalty = mindspore_penalty(cell)
    assert_near(penalty(given), expected, 1e-5)
    assert_near(ms.grad(penalty)(given), x.grad, 1e-4)
    assert_weights_near(penalty, cell, given, network)


def slope_squared_by_weight(function):
    """The gradient, by a weight of ones, of the squared gradient of its product with a row."""
    x = ms.Tensor(np.ones((1, 2), np.float32))
    weight = ms.Parameter(ms.Tensor(np.ones((2, 1), np.float32)), name="weight")

    def total(x):
        return function(x, weight).sum()

    differentiate = ms.grad(total)

    def length(x):
        return (differentiate(x) ** 2).sum()

    (gradient,) = ms.grad(length, None, [weight])(x)
    return gradient.asnumpy().ravel().tolist()


def test_mindspore_leaves_weights_out(mode):
    """MindSpore 2.10 in PyNative mode, of its own operators and of ops.Custom."""
    is_graph = ms.get_context("mode") == ms.GRAPH_MODE
    assert slope_squared_by_weight(ms.mint.matmul) == ([2, 2] if is_graph else [0, 0])
    assert slope_squared_by_weight(ms.ops.MatMul()) == [2, 2]
    is_right = is_graph or native_caller()
    assert slope_squared_by_weight(operator("aten::mm")) == ([2, 2] if is_right else [0, 0])


@GRAPHS_IN_FULL
def test_third_derivatives(mode):
    torch.manual_seed(3)
    network = fields()
    cell = module(network, (torch.randn(4, 3),), gradient_order=3)
    x = torch.randn(4, 3)
    function = lambda x: network(x).sum()  # noqa: E731

    def first(x):
        return cell(x).sum()

    of_mindspore = first
    for _ in range(3):
        function, of_mindspore = summed(function), summed_gradient(of_mindspore)
    given = x.requires_grad_()
    assert_near(of_mindspore(ms.Tensor(x.detach().numpy())), function(given), 1e-4)

    def once_more(x):
        return of_mindspore(x)

    with pytest.raises(ValueError, match="AtenProgram: ") as error:
        ms.grad(once_more)(ms.Tensor(x.detach().numpy())).asnumpy()
    assert str(error.value).partition("\n\n")[0] == TOO_HIGH


def summed(function):
    def total(x):
        (gradient,) = torch.autograd.grad(function(x), x, create_graph=True)
        return (gradient**2).sum()

    return total


def summed_gradient(function):
    differentiate = ms.grad(function)

    def total(x):
        gradient = differentiate(x)
        return (gradient**2).sum()

    return total


@pytest.mark.usefixtures("pynative")
def test_a_mode_whose_gradients_read_what_changes_has_one_alone():
    given = ms.Tensor(np.ones((5, 3), np.float32))
    network = nn.Sequential(nn.BatchNorm1d(3), *fields())
    penalty = mindspore_penalty(made(network.train()))
    with pytest.raises(ValueError, match="AtenProgram: ") as error:
        ms.grad(penalty)(given).asnumpy()
    assert str(error.value).partition("\n\n")[0] == TOO_HIGH
    x = torch.ones(5, 3, requires_grad=True)
    penalty_of(network.eval(), x).backward()
    assert_near(ms.grad(mindspore_penalty(made(network)))(given), x.grad, 1e-4)


class Counts(nn.Module):
    """A buffer that no gradient reads changes with each call."""

    def __init__(self):
        super().__init__()
        self.layers = fields()
        self.register_buffer("calls", torch.tensor(0))

    def forward(self, x):
        self.calls += 1
        return self.layers(x)


@GRAPHS_IN_FULL
def test_a_mode_that_changes_what_no_gradient_reads_has_more(mode):
    torch.manual_seed(6)
    network = Counts()
    cell = made(network)
    network.calls.zero_()
    x = torch.randn(5, 3, requires_grad=True)
    penalty_of(network, x).backward()
    assert_near(ms.grad(mindspore_penalty(cell))(to_mindspore(x)), x.grad, 1e-4)
    assert cell.buffers_of_module[0].asnumpy() == 1


class Noisy(nn.Module):
    """Numbers of which gradients read some alone; those between them have to be drawn too."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(3, 8), nn.Linear(8, 2)

    def forward(self, x):
        shift = torch.rand(2)
        y = x + torch.randn_like(x)
        y = nn.functional.dropout(torch.tanh(self.first(y)), 0.5, self.training)
        y = self.second(y) + shift
        return y + nn.functional.dropout(x[:, :2], 0.3, self.training) ** 3


@pytest.mark.parametrize("is_file", [False, True], ids=["module", "file"])
@pytest.mark.parametrize("trains", [False, True], ids=["evaluation", "training"])
def test_gradients_of_gradients_draw_again(pynative, trains, is_file, tmp_path):
    torch.manual_seed(6)
    network = Noisy().train(trains)
    if is_file:
        save(network, tmp_path / "noisy", (torch.randn(5, 3),), gradient_order=2)
        cell = module(tmp_path / "noisy")
    else:
        cell = made(network)
    penalty = mindspore_penalty(cell)
    step = ms.value_and_grad(penalty, 0, cell.trainable_params())
    for seed in (5, 6):
        x = torch.randn(5, 3, requires_grad=True)
        network.zero_grad()
        torch.manual_seed(seed)
        ms.manual_seed(seed)
        expected = penalty_of(network, x)
        expected.backward()
        loss, (of_x, _) = step(to_mindspore(x))
        assert_near(loss, expected, 1e-5)
        assert_near(of_x, x.grad, 1e-4)
        ms.manual_seed(seed)
        assert_weights_near(penalty, cell, to_mindspore(x), network)

        network.zero_grad()
        torch.manual_seed(seed)
        network(x).sum().backward()
        ms.manual_seed(seed)
        assert_weights_near(lambda x: cell(x).sum(), cell, to_mindspore(x), network)


def test_third_derivatives_draw_again(pynative):
    network = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Dropout(0.5), nn.Linear(4, 1))
    cell = module(network, (torch.randn(4, 3),), gradient_order=3)
    x = torch.randn(4, 3, requires_grad=True)
    function = lambda x: network(x).sum()  # noqa: E731

    def of_mindspore(x):
        return cell(x).sum()

    for _ in range(3):
        function, of_mindspore = summed(function), summed_gradient(of_mindspore)
    torch.manual_seed(8)
    ms.manual_seed(8)
    assert_near(of_mindspore(to_mindspore(x)), function(x), 1e-4)


class Drops(nn.Module):
    def forward(self, x):
        return nn.functional.dropout(x, 0.5, self.training) ** 3


def test_a_mask_is_that_of_all_gradients(mode):
    """In graphs too, whose numbers are others than PyTorch's."""
    cell = module(Drops(), (torch.randn(300),), gradient_order=2)

    def total(x):
        return cell(x).sum()

    differentiate = ms.value_and_grad(total)

    def gradients(x):
        result, gradient = differentiate(x)
        return gradient.sum(), (result, gradient)

    x = np.linspace(1, 2, 300, dtype=np.float32)
    (_, (result, slopes)), second = ms.value_and_grad(gradients, has_aux=True)(ms.Tensor(x))
    cubes = slopes.asnumpy() / (3 * x**2)  # those of the mask
    assert set(np.round(cubes, 3).tolist()) == {0.0, 8.0}
    assert_near(second, torch.from_numpy(6 * x * cubes), 1e-5)
    assert_near(result, torch.from_numpy(cubes * x**3).sum(), 1e-5)


def test_gradients_of_weights_alone(mode):
    """The inner gradient by weights alone, for which the native caller computes no others."""
    torch.manual_seed(4)
    network = fields()
    cell = made(network)
    x = torch.randn(5, 3, requires_grad=True)
    inner = torch.autograd.grad(network(x).sum(), list(network.parameters()), create_graph=True)
    total = sum((one**2).sum() for one in inner)
    total.backward()

    def forward(x):
        return cell(x).sum()

    differentiate = ms.grad(forward, None, cell.trainable_params())

    def squares(x):
        result = 0
        for one in differentiate(x):
            result = result + (one**2).sum()
        return result

    given = ms.Tensor(x.detach().numpy())
    assert_near(squares(given), total, 1e-5)
    assert_near(ms.grad(squares)(given), x.grad, 1e-4)
    assert_weights_near(squares, cell, given, network)


def steps(x, w):
    """Its gradient by x is zero."""
    return torch.sign(x) * 2 + w**3


def slopes(x, w):
    """Its gradient has none by x."""
    return nn.functional.leaky_relu(x, 0.2) * w.round() + torch.sign(x)


def powers(x, w):
    return (x * w) ** 3


def flat(x, w):
    return torch.sign(x) + torch.round(w)


def combined(differentiate):
    def total_of(x, w):
        of_x, of_w = differentiate(x, w)
        return (of_x * x + of_w**2 * w).sum()

    return total_of


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x, w):
        return self.function(x, w)


@pytest.mark.parametrize(
    "function", [steps, *(pytest.param(one, marks=pytest.mark.full) for one in (slopes, powers))]
)
def test_gradients_that_are_constants(mode, function, tmp_path):
    """PyTorch differentiates none of these further, and its numbers are those of the others."""
    example = (torch.randn(3),) * 2
    save(Function(function), tmp_path / "function", example, gradient_order=4)
    cell = module(tmp_path / "function")
    x, w = (torch.tensor(values, requires_grad=True) for values in ([1.5, -2, 3], [0.7, 1.2, -2]))
    given = to_mindspore(x), to_mindspore(w)

    def total(x, w):
        return cell(x, w).sum()

    of_pytorch, of_mindspore = function(x, w).sum(), total
    for _ in range(3):
        expected = torch.autograd.grad(
            of_pytorch, [x, w], create_graph=True, allow_unused=True, materialize_grads=True
        )
        differentiate = ms.grad(of_mindspore, (0, 1))
        for gradient, one in zip(differentiate(*given), expected, strict=True):
            assert_near(gradient, one, 1e-5)
        of_mindspore = combined(differentiate)
        of_pytorch = (expected[0] * x + expected[1] ** 2 * w).sum()


def test_gradients_that_are_constants_alone(mode):
    example = (torch.randn(3),) * 2
    cell = module(Function(flat), example, gradient_order=3)

    def total(x, w):
        return cell(x, w).sum()

    differentiate = ms.grad(total, (0, 1))
    for gradient in differentiate(*map(to_mindspore, example)):
        assert_zero(gradient)

    def once_more(x, w):
        of_x, _ = differentiate(x, w)
        return of_x.sum()

    if ms.get_context("mode") == ms.GRAPH_MODE or not native_caller():  # MindSpore knows: zeros
        assert_zero(ms.grad(once_more)(*map(to_mindspore, example)))
        return
    with pytest.raises(ValueError, match="AtenProgram: ") as error:
        ms.grad(once_more)(*map(to_mindspore, example)).asnumpy()
    assert str(error.value).partition("\n\n")[0] == TOO_HIGH


def test_without_the_native_caller_it_warns():
    program = (
        "import warnings, torch\n"
        "from aten_bridge.mindspore import module\n"
        "with warnings.catch_warnings(record=True) as caught:\n"
        "    warnings.simplefilter('always')\n"
        "    module(torch.nn.Linear(2, 1), (torch.ones(1, 2),))\n"
        "    assert not [one for one in caught if 'native caller' in str(one.message)]\n"
        "    module(torch.nn.Linear(2, 1), (torch.ones(1, 2),), gradient_order=2)\n"
        "print([str(one.message) for one in caught if 'native caller' in str(one.message)])\n"
    )
    answer = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env=os.environ | {"ATEN_BRIDGE_NATIVE_CALLER": "0"},
        check=True,
    )
    text = (
        "Module: expected the native caller for gradients of gradients in PyNative mode, got none "
        "(the variable ATEN_BRIDGE_NATIVE_CALLER turns it off); without it MindSpore leaves out "
        "the part by weights; make the native caller, or use graphs"
    )
    assert answer.stdout.splitlines()[-1] == str([text])


def test_a_file_has_them(mode, tmp_path):
    torch.manual_seed(5)
    network = fields()
    save(network, tmp_path / "fields", (torch.randn(4, 3),), gradient_order=2)
    cell = module(tmp_path / "fields")
    x = torch.randn(4, 3, requires_grad=True)
    penalty_of(network, x).backward()
    given = ms.Tensor(x.detach().numpy())
    assert_near(ms.grad(mindspore_penalty(cell))(given), x.grad, 1e-4)


def test_what_is_refused(tmp_path):
    example = (torch.randn(4, 3),)
    with pytest.raises(ValueError, match="gradient_order") as error:
        module(fields(), example, gradient_order=0)
    assert str(error.value) == (
        "gradient_order: expected how often the module can be differentiated, 1 or more, got 0"
    )
    save(fields(), tmp_path / "fields", example)
    with pytest.raises(TypeError) as error:
        module(tmp_path / "fields", gradient_order=2)
    assert str(error.value) == (
        "expected no gradient_order with a file, got one; give it to aten_bridge.program.save"
    )


def test_sizes_that_pytorch_fixes():
    network = nn.Sequential(nn.BatchNorm1d(3), *fields()).eval()
    with pytest.raises(NotExportable) as error:
        module(network, (torch.randn(5, 3),), dynamic_shapes=({0: Dim("n")},), gradient_order=2)
    assert re.fullmatch(
        "expected sizes that may change in gradients of gradients too, got some that PyTorch fixes "
        r"in an operator's, which it calls \['s\d+'\]; leave out dynamic_shapes for these, or "
        "gradient_order",
        str(error.value),
    )


ADVICE = (
    "aten_bridge: expected a module whose gradient PyTorch can record, got the error above; leave "
    "out gradient_order or dynamic_shapes if one was given, or replace the operator that it names"
)


def test_pytorch_says_which_operator_has_no_second_gradient():
    with pytest.raises(RuntimeError) as error:
        module(Attends(), (torch.randn(4, 3),), gradient_order=2)
    assert str(error.value).startswith(
        "derivative for aten::_scaled_dot_product_flash_attention_for_cpu_backward is not "
        "implemented"
    )
    assert getattr(error.value, "__notes__", [ADVICE]) == [ADVICE]  # Python 3.10 has no notes


def test_a_program_has_the_inputs_that_its_derivative_reads():
    """A sum's gradient reads no weight, and that of its square does."""
    training = export_module(nn.Linear(3, 1), (torch.randn(4, 3),), None, 2).training.training
    assert training.inputs == [0, 2]
    (derivative,) = training.derivatives
    assert derivative.gradients == [0, 1, 2]

"""Modules among what is MindSpore's own: state dicts, optimizers, compiled steps, inputs."""

import copy
import os
from pathlib import Path

import mindspore as ms
import numpy as np
import pytest
import torch
from mindspore.nn.cell import _pynative_executor
from module_cases import WithOwnKernels, assert_near
from torch import nn
from torch.export import Dim

from aten_bridge.mindspore import module
from aten_bridge.torch import load


class Layers(nn.Module):
    """Statistics, and dtypes with and without a NumPy dtype."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
        self.scale = nn.Parameter(torch.randn(4).bfloat16())
        self.register_buffer("turn", torch.randn(4, dtype=torch.complex64))
        self.register_buffer("mask", torch.tensor([True, False, True, True]))

    def forward(self, x):
        return self.layers(x) * self.scale * self.mask + self.turn.real


class WithHead(ms.nn.Cell):
    """A network of MindSpore's around a module."""

    def __init__(self, encoder):
        super().__init__()
        self.encoder, self.head = encoder, ms.nn.Dense(4, 2)

    def construct(self, x):
        return self.head(self.encoder(x))


X = torch.linspace(-1, 1, 18).reshape(6, 3)


@pytest.fixture(scope="module")
def cell():
    return module(Layers().eval(), (X,))


@pytest.fixture
def cells(cell):
    """Two with weights of their own, which are not the same."""
    return [alike(cell, Layers()) for _ in range(2)]


def alike(cell, network):
    copied = copy.deepcopy(cell)
    assert copied.load_state_dict(network.state_dict()) == ([], [])
    return copied


def call(cell):
    return cell(ms.Tensor(X.numpy())).asnumpy()


def to_torch(tensor):
    is_bfloat16 = tensor.dtype == ms.bfloat16  # which NumPy does not have
    return torch.from_numpy((tensor.float() if is_bfloat16 else tensor).asnumpy())


# ===--- state dicts ---===


@pytest.mark.parametrize("is_inside", [False, True], ids=["alone", "in a bigger cell"])
def test_a_state_dict_goes_from_cell_to_cell(mode, cells, is_inside):
    first, second = map(WithHead, cells) if is_inside else cells
    assert not np.array_equal(call(first), call(second))
    state = first.state_dict()
    names = sorted(Layers().state_dict())
    if is_inside:
        names = [*(f"encoder.{name}" for name in names), "head.bias", "head.weight"]
    assert sorted(state) == names
    assert second.load_state_dict(state) == ([], [])
    assert np.array_equal(call(first), call(second))
    for name, value in second.state_dict().items():
        assert value.dtype == state[name].dtype
        assert torch.equal(to_torch(value), to_torch(state[name]))


@pytest.mark.parametrize("is_inside", [False, True], ids=["alone", "in a bigger cell"])
def test_state_dicts_of_pytorch_go_both_ways(mode, cells, is_inside):
    network, cell = Layers().eval(), cells[0]
    if is_inside:
        outer = WithHead(cell)
        state = {f"encoder.{name}": value for name, value in network.state_dict().items()}
        assert outer.load_state_dict({**outer.state_dict(), **state}) == ([], [])
        state = outer.encoder.state_dict()
    else:
        assert cell.load_state_dict(network.state_dict()) == ([], [])
        state = cell.state_dict()
    assert np.array_equal(call(cell), network(X).detach().numpy())
    other = Layers()
    other.load_state_dict({name: to_torch(value) for name, value in state.items()})
    for name, value in other.state_dict().items():
        assert torch.equal(value, network.state_dict()[name]), name


ERROR = "Error(s) in loading state_dict for Module:\n\t"


@pytest.mark.parametrize(
    ("change", "text", "found"),
    [
        (
            lambda state: state.pop("layers.0.bias"),
            'Missing key(s) in state_dict: "layers.0.bias". ',
            (["layers.0.bias"], []),
        ),
        (
            lambda state: state.update({"layers.7.bias": torch.ones(4), "bias": torch.ones(4)}),
            'Unexpected key(s) in state_dict: "layers.7.bias", "bias". ',
            ([], ["layers.7.bias", "bias"]),
        ),
        (
            lambda state: state.update({"layers.0.bias": torch.ones(5)}),
            "size mismatch for layers.0.bias: copying a param with shape (5,) from checkpoint, "
            "the shape in current model is (4,).",
            None,
        ),
        (
            lambda state: state.update({"layers.1.running_var": 3}),
            'While copying the parameter named "layers.1.running_var", expected Tensor or '
            "Tensor-like object from checkpoint but received <class 'int'>",
            None,
        ),
    ],
    ids=["missing", "unexpected", "shape", "no tensor"],
)
def test_what_does_not_fit_is_named(cells, change, text, found):
    state = Layers().state_dict()
    change(state)
    with pytest.raises(RuntimeError) as error:
        cells[0].load_state_dict(state)
    assert str(error.value) == ERROR + text
    if found:
        assert cells[0].load_state_dict(state, strict=False) == found
        return
    with pytest.raises(RuntimeError) as error:
        cells[0].load_state_dict(state, strict=False)
    assert str(error.value) == ERROR + text


def test_weights_that_are_assigned_between_steps_are_trained(pynative):
    """Other memory, as from set_data(), would be unknown to the optimizer (MindSpore 2.10)."""
    cell = module(nn.Linear(3, 1), (torch.ones(2, 3),))
    weights = cell.trainable_params()
    optimizer = ms.nn.SGD(weights, 0.5)
    gradient = ms.grad(lambda x: cell(x).sum(), None, weights)
    x = ms.mint.ones((2, 3))
    optimizer(gradient(x))
    ms.ops.assign(weights[0], ms.Tensor([[4.0, 4.0, 4.0]]))
    optimizer(gradient(x))
    assert cell.weight.asnumpy().tolist() == [[3, 3, 3]]


def test_a_checkpoint_of_a_state_dict(cpu, tmp_path):
    cell = module(nn.Sequential(nn.Linear(3, 3)), (X,))
    state, path = cell.state_dict(), str(tmp_path / "cell.ckpt")
    ms.save_checkpoint(state, path)
    other = module(nn.Sequential(nn.Linear(3, 3)), (X,))
    assert other.load_state_dict(ms.load_checkpoint(path)) == ([], [])
    for name, value in other.state_dict().items():
        assert np.array_equal(value.asnumpy(), state[name].asnumpy())
    assert ms.load_param_into_net(other, ms.load_checkpoint(path)) == ([], [])


class Shares(nn.Module):
    """A weight that stands twice, and a buffer that is not in PyTorch's state dict."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 3, bias=False)
        self.second = nn.Linear(3, 3, bias=False)
        self.second.weight = self.first.weight
        self.register_buffer("scale", torch.ones(3), persistent=False)

    def forward(self, x):
        return self.second(self.first(x)) * self.scale


def test_names_that_one_side_has_alone(cpu):
    cell = module(Shares(), (X,))
    network = Shares()
    state = network.state_dict()
    with pytest.raises(RuntimeError) as error:
        cell.load_state_dict(state)
    assert str(error.value) == (
        'Error(s) in loading state_dict for Module:\n\tMissing key(s) in state_dict: "scale". \n'
        '\tUnexpected key(s) in state_dict: "second.weight". '
    )
    assert cell.load_state_dict(state, strict=False) == (["scale"], ["second.weight"])
    assert np.array_equal(call(cell), network(X).detach().numpy())


# ===--- training ---===


def small():
    torch.manual_seed(4)
    return nn.Sequential(nn.Linear(3, 8, bias=False), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 2))


@pytest.fixture(scope="module")
def small_cell():
    return module(small(), (X,), dynamic_shapes=({0: Dim("batch")},))


@pytest.fixture
def trained(small_cell):
    """A cell and PyTorch's module, with the same weights."""
    network = small()
    return alike(small_cell, network), network


def batches(count):
    generator = torch.Generator().manual_seed(9)
    return [torch.randn(6, 3, generator=generator) for _ in range(count)]


def loss_of(network):
    return lambda x: (network(x) ** 2).mean()


def step_of_pytorch(network, optimizer, *parts):
    """One step on the mean of parts; the losses of these."""
    optimizer.zero_grad()
    losses = [loss_of(network)(x) / len(parts) for x in parts]
    for loss in losses:
        loss.backward()
    optimizer.step()
    return losses


def assert_trained_alike(cell, network):
    for name, value in network.state_dict().items():
        assert_near(cell.state_dict()[name], value, 1e-4)


OPTIMIZERS = {
    "nn.Adam": (
        lambda weights: ms.nn.Adam(weights, 0.01),
        lambda weights: torch.optim.Adam(weights, 0.01),
    ),
    "nn.Momentum": (
        lambda weights: ms.nn.Momentum(weights, 0.05, 0.9),
        lambda weights: torch.optim.SGD(weights, 0.05, 0.9),
    ),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers_do_pytorchs_steps(mode, trained, name):
    cell, network = trained
    of_mindspore, of_pytorch = OPTIMIZERS[name]
    weights = cell.trainable_params()
    optimizer, other = of_mindspore(weights), of_pytorch(network.parameters())
    step = ms.value_and_grad(loss_of(cell), None, weights)
    for x in batches(5):
        loss, gradients = step(ms.Tensor(x.numpy()))
        optimizer(gradients)
        (known,) = step_of_pytorch(network, other, x)
        assert_near(loss, known, 1e-4)
    assert_trained_alike(cell, network)


def test_a_step_in_ms_jit(mode, trained):
    cell, network = trained
    weights = cell.trainable_params()
    optimizer = ms.nn.Momentum(weights, 0.05, 0.9)
    differentiate = ms.value_and_grad(loss_of(cell), None, weights)

    @ms.jit
    def step(x):
        loss, gradients = differentiate(x)
        optimizer(gradients)
        return loss

    other = torch.optim.SGD(network.parameters(), 0.05, 0.9)
    for x in batches(5):
        (known,) = step_of_pytorch(network, other, x)
        assert_near(step(ms.Tensor(x.numpy())), known, 1e-4)
    assert_trained_alike(cell, network)


def test_gradients_are_accumulated(mode, trained):
    cell, network = trained
    weights = cell.trainable_params()
    sums = ms.ParameterTuple(weights).clone("sums", "zeros")
    optimizer = ms.nn.Momentum(weights, 0.05, 0.9)

    def half_of_loss(x):
        return (cell(x) ** 2).mean() / 2

    differentiate = ms.value_and_grad(half_of_loss, None, weights)
    other = torch.optim.SGD(network.parameters(), 0.05, 0.9)
    for _ in range(2):
        parts = batches(2)
        for x, known in zip(parts, step_of_pytorch(network, other, *parts), strict=True):
            loss, gradients = differentiate(ms.Tensor(x.numpy()))
            assert_near(loss, known, 1e-4)
            for one, gradient in zip(sums, gradients, strict=True):
                ms.ops.assign_add(one, gradient)
        optimizer(tuple(one.value() for one in sums))
        for one in sums:
            ms.ops.assign_sub(one, one.value())
    assert_trained_alike(cell, network)


@pytest.mark.parametrize("is_inside", [False, True], ids=["alone", "in a bigger cell"])
def test_sizes_that_are_not_known_are_compiled_once(mode, trained, is_inside):
    cell, network = trained
    cell.set_train(False)
    outer = ms.nn.SequentialCell([cell]) if is_inside else cell
    outer.set_inputs(ms.Tensor(shape=[None, 3], dtype=ms.float32))
    for size in (6, 2, 9):
        x = torch.randn(size, 3)
        assert_near(outer(ms.Tensor(x.numpy())), network.eval()(x), 1e-5)
    compiled = outer.compile_cache if is_inside else cell._flat[0].compile_cache
    assert len(compiled) == (mode == "graph")


@pytest.mark.parametrize("mode", ["graph", "pynative"], indirect=True)
def test_a_frozen_weight_stays_frozen(mode):
    network = nn.Linear(3, 2)
    network.weight.requires_grad_(False)
    cell = module(network, (torch.ones(4, 3),))
    x = ms.Tensor(np.ones((4, 3), np.float32))
    weight, bias = cell.weights
    assert [one.name for one in cell.trainable_params()] == ["bias"]
    bias.requires_grad = False  # which any weight may become
    assert_near(cell(x), network(torch.ones(4, 3)), 1e-6)
    weight.requires_grad = True
    with pytest.raises(ValueError, match="Module: ") as error:
        cell(x)
    assert str(error.value) == THAWED.format("weight")


THAWED = (
    "Module: '{}': expected a weight that stays frozen, as it was where the module was made, got "
    "requires_grad=True; set it in PyTorch, and make the module again"
)


@pytest.mark.parametrize("is_copied", [False, True], ids=["made", "copied"])
@pytest.mark.parametrize("trains", [False, True], ids=["evaluation", "training"])
def test_a_graph_that_is_compiled_asks_whether_weights_are_frozen(mode, trains, is_copied):
    network = nn.Linear(3, 2)
    network.weight.requires_grad_(False)
    first = WithHead(module(nn.Sequential(network, nn.Linear(2, 4)).train(trains), (X,)))
    outer = copy.deepcopy(first) if is_copied else first
    differentiate = ms.value_and_grad(loss_of(outer), None, outer.trainable_params())

    def step(x):
        return differentiate(x)

    x = ms.Tensor(X.numpy())
    loss, _ = ms.jit(step)(x)
    weight = outer.encoder.weights[0]
    weight.requires_grad = True
    for function in (ms.jit(step), step, outer):
        if function is outer and mode == "graph":
            outer = function = WithHead(outer.encoder)  # the other one may be compiled
            weight.name = "0.weight"
        with pytest.raises(ValueError, match="Module: ") as error:
            function(x)
        _pynative_executor.set_grad_flag(False)  # an error leaves MindSpore recording (2.10)
        assert str(error.value).splitlines()[0] == THAWED.format(weight.name)
    if is_copied:
        assert_near(loss_of(first)(x), torch.tensor(float(loss)), 1e-6)


def test_a_graph_asks_each_module_whether_weights_are_frozen(mode):
    cells = []
    for _ in range(2):
        network = nn.Linear(3, 3)
        network.weight.requires_grad_(False)
        cells.append(module(network, (X,)))
    first, second = cells
    second.weights[0].requires_grad = True

    def both(x):
        return second(first(x))

    for call in (ms.jit(both), ms.nn.SequentialCell(cells)):
        with pytest.raises(ValueError, match="Module: ") as error:
            call(ms.Tensor(X.numpy()))
        assert str(error.value).splitlines()[0] == THAWED.format(second.weights[0].name)


@pytest.mark.parametrize("context", [torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize("is_exported", [False, True], ids=["module", "exported"])
def test_where_a_module_is_made_is_no_affair_of_its_gradients(pynative, context, is_exported):
    network = nn.Linear(3, 2)
    exported = torch.export.export(network, (torch.ones(4, 3),))
    with context():
        made = module(exported) if is_exported else module(network, (torch.ones(4, 3),))
        of_weight, of_bias = ms.grad(lambda x: made(x).sum(), None, made.trainable_params())(
            ms.Tensor(np.ones((4, 3), np.float32))
        )
    assert of_weight.asnumpy().tolist() == [[4, 4, 4]] * 2
    assert of_bias.asnumpy().tolist() == [4, 4]


def test_weights_of_inference_mode_have_no_gradient(pynative):
    with torch.inference_mode():
        network = nn.Linear(3, 2)
        cell = module(network, (torch.ones(4, 3),))
    x = ms.Tensor(np.ones((4, 3), np.float32))
    assert_near(cell(x), network(torch.ones(4, 3)), 1e-6)
    with pytest.raises(ValueError, match="AtenProgram") as error:
        ms.grad(lambda x: cell(x).sum())(x)
    assert str(error.value) == (
        "AtenProgram: expected a module with gradients, got one that PyTorch does not "
        "differentiate; keep it out of what is differentiated"
    )


def test_tensors_of_other_libraries_are_told_by_their_classes(pynative):
    cell = module(nn.Linear(3, 2), (torch.ones(4, 3),))
    for given, name in ((torch.ones(4, 3), "torch.Tensor"), (np.ones((4, 3)), "numpy.ndarray")):
        with pytest.raises(TypeError) as error:
            cell(given)
        assert str(error.value) == (
            f"Module: input 0: expected a tensor, got a {name}, which the host does not take; "
            "convert it, by way of NumPy"
        )


class Sum(torch.nn.Module):
    def forward(self, x, others):
        return x.sum(1) + others["b"]


@pytest.mark.parametrize("trains", [True, pytest.param(False, marks=pytest.mark.full)])
@pytest.mark.parametrize("mode", ["graph"], indirect=True)
def test_sizes_that_are_left_open_and_were_not_exported_so_are_named(mode, trains):
    example = torch.ones(4, 3), {"b": torch.ones(4)}
    cell = module(Sum().train(trains), example)
    shapes = ({0: Dim("n"), 1: None}, {"b": {0: Dim("n")}})
    free = module(Sum().train(trains), example, dynamic_shapes=shapes)

    class Outer(ms.nn.Cell):
        def __init__(self, cell):
            super().__init__()
            self.cell = cell

        def construct(self, x, b):
            return self.cell(x, {"b": b}) * 2

    given = [ms.Tensor(np.ones(size, np.float32)) for size in ((4, 3), 4)]
    begin, cure = "AtenProgram: %", "make the module with dynamic_shapes="
    got = "for which the module was exported, got one that the graph leaves open"
    for made, of_x, of_b, texts in (
        (cell, [None, None], [4], [
            f"{begin}x: expected a size of 4 in dimension 0, {got}; {cure}, {{0: Dim(...)}} for "
            "this input, or give set_inputs the size",
            f"{begin}x: expected a size of 3 in dimension 1, {got}; {cure}, {{1: Dim(...)}} for "
            "this input, or give set_inputs the size",
        ]),
        (cell, [4, 3], [None], [
            f"{begin}others_b: expected a size of 4 in dimension 0, {got}; {cure}, {{0: Dim(...)}} "
            "for this input, or give set_inputs the size",
        ]),
        (free, [None, None], [None], [
            f"{begin}x: expected a size of 3 in dimension 1, {got}; {cure}, {{1: Dim(...)}} for "
            "this input, or give set_inputs the size",
        ]),
        (free, None, [None], [
            f"{begin}x: expected 2 dimensions, got a number of them that the graph leaves open; "
            "give set_inputs a shape with None for each size that may change",
        ]),
    ):  # fmt: skip
        outer = Outer(made)
        outer.set_inputs(*(ms.Tensor(shape=one, dtype=ms.float32) for one in (of_x, of_b)))
        with pytest.raises(ValueError, match="AtenProgram") as error:
            outer(*given)
        lines = str(error.value).splitlines()
        assert lines[: len(texts)] == texts
        assert not any("AtenProgram" in line for line in lines[len(texts) :])


def test_mindspore_has_the_list_of_cells_that_amp_leaves_alone(cpu):
    """A private one of MindSpore 2.7 to 2.10, which another version may have elsewhere."""
    from mindspore.rewrite.common import namespace

    from aten_bridge.mindspore._module import Module

    assert hasattr(namespace, "_subtree_black_list"), "MindSpore has no _subtree_black_list"
    assert Module in namespace._subtree_black_list


# ===--- our own kernels ---===


def test_kernels_of_our_own(mode):
    load(Path(os.environ["ATEN_BRIDGE_BUILD_DIR"]) / "tests/test_pytorch.so")
    network = WithOwnKernels()
    cell = module(copy.deepcopy(network), (X,))
    x = X.clone().requires_grad_()
    expected = loss_of(network)(x)
    expected.backward()
    step = ms.value_and_grad(loss_of(cell), 0, cell.trainable_params())
    loss, (of_x, of_weights) = step(ms.Tensor(X.numpy()))
    assert_near(loss, expected, 1e-5)
    assert_near(of_x, x.grad, 1e-4)
    for gradient, parameter in zip(of_weights, network.parameters(), strict=True):
        assert_near(gradient, parameter.grad, 1e-4)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (torch.empty(1, device="meta"), "Cannot copy out of meta tensor; no data!"),
        (torch.tensor([1j]), "Float32 has no complex numbers"),
    ],
    ids=["meta", "complex"],
)
def test_weights_that_cannot_be_loaded(value, said):
    cell = module(nn.Linear(2, 1), (torch.zeros(3, 2),))
    state = {**cell.state_dict(), "bias": value}
    with pytest.raises(RuntimeError) as error:
        cell.load_state_dict(state)
    assert (
        'While copying the parameter named "bias", expected a tensor with values of the dtype '
        f"Float32, got one with the error: {said}" in str(error.value)
    )
    assert "issing" not in str(error.value)

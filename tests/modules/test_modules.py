"""Whole PyTorch modules as cells: values, gradients and steps as PyTorch has them."""

import copy
import gc
import pickle
import re
import threading
import typing

import mindspore as ms
import numpy as np
import pytest
import torch
from mindspore import mint
from modes import GRAPHS_IN_FULL
from module_cases import REFUSED, Checks, Network, assert_near, check_large_results, total
from torch import nn
from torch._higher_order_ops.while_loop import while_loop
from torch.export import Dim

from aten_bridge.mindspore import module
from aten_bridge.mindspore._gradient import run_source
from aten_bridge.program import NotExportable, save
from aten_bridge.program._guards import guard_text
from aten_bridge.program._trees import fits_source, input_fault


@pytest.fixture(scope="module")
def network():
    torch.manual_seed(3)
    return Network()


@pytest.fixture(scope="module")
def inputs():
    return torch.randn(6, 3, 10), {"bias": torch.randn(4)}


@pytest.fixture(scope="module")
def cell(network, inputs):
    return module(
        copy.deepcopy(network), inputs, dynamic_shapes=({0: Dim("batch")}, {"bias": None})
    )


def to_mindspore(tree):
    return torch.utils._pytree.tree_map(lambda x: ms.Tensor(x.detach().numpy().copy()), tree)


@pytest.mark.parametrize("batch", [6, 20, 1])
@pytest.mark.parametrize("trains", [True, False], ids=["training", "evaluation"])
def test_values_gradients_and_buffers_are_pytorchs(mode, network, cell, batch, trains):
    network = copy.deepcopy(network).train(trains)
    cell.set_train(trains)
    for buffer, known in zip(cell.buffers_of_module, network.buffers(), strict=True):
        buffer.set_data(ms.Tensor(known.numpy()))
    x = torch.randn(batch, 3, 10, requires_grad=True)
    others = {"bias": torch.randn(4, requires_grad=True)}
    expected = network(x, others)
    total(expected).backward()

    def loss_of(x, bias):
        return total(cell(x, {"bias": bias}))

    step = ms.value_and_grad(loss_of, (0, 1), cell.trainable_params())
    given = to_mindspore((x, others["bias"]))
    loss, (of_inputs, of_weights) = step(*given)
    assert_near(loss, total(expected), 1e-5)
    assert_near(of_inputs[0], x.grad, 1e-4)
    assert_near(of_inputs[1], others["bias"].grad, 1e-4)
    names = [name for name, _ in network.named_parameters()]
    assert [parameter.name for parameter in cell.trainable_params()] == names
    for gradient, parameter in zip(of_weights, network.parameters(), strict=True):
        assert_near(gradient, parameter.grad, 1e-4)
    for buffer, known in zip(cell.buffers_of_module, network.buffers(), strict=True):
        assert_near(buffer, known, 1e-6)


def test_results_have_the_trees_of_the_module(mode, network, cell, inputs):
    cell.set_train(False)
    results = cell(*to_mindspore(inputs))
    expected = network.eval()(*inputs)
    assert list(results) == ["logits", "rest"]
    assert np.array_equal(results["logits"].asnumpy(), expected["logits"].detach().numpy())
    assert np.array_equal(results["rest"][1][0].asnumpy(), expected["rest"][1][0].detach().numpy())


def test_steps_of_an_optimizer_are_pytorchs(mode):
    torch.manual_seed(4)
    network = nn.Sequential(nn.Linear(5, 16), nn.GELU(), nn.BatchNorm1d(16), nn.Linear(16, 2))
    network[0].bias.requires_grad_(False)
    cell = module(copy.deepcopy(network), (torch.randn(8, 5),))
    of_pytorch = torch.optim.SGD([p for p in network.parameters() if p.requires_grad], lr=0.05)
    of_mindspore = ms.nn.SGD(cell.trainable_params(), learning_rate=0.05)

    def loss_of(x):
        return (cell(x) ** 2).mean()

    step = ms.value_and_grad(loss_of, None, cell.trainable_params())
    for _ in range(20):
        x = torch.randn(8, 5)
        of_pytorch.zero_grad()
        loss = (network(x) ** 2).mean()
        loss.backward()
        of_pytorch.step()
        actual, gradients = step(ms.Tensor(x.numpy()))
        of_mindspore(gradients)
        assert_near(actual, loss, 1e-4)


class WithHead(ms.nn.Cell):
    """A network of MindSpore's around a module."""

    def __init__(self, encoder):
        super().__init__()
        self.encoder, self.head = encoder, ms.nn.Dense(3, 2)

    def construct(self, x):
        return self.head(self.encoder(x))


class Scale(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("factor", torch.tensor(3.0), persistent=False)

    def forward(self, x):
        return x * self.factor


class WithConstants(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = Scale()
        self.weight = nn.Parameter(torch.ones(2))
        self.register_buffer("offset", torch.tensor(13.0))

    def forward(self, x):
        return self.scale(x) * self.weight + torch.tensor(5.0) - self.offset


@GRAPHS_IN_FULL
def test_buffers_that_are_not_persistent_are_no_constants(mode, tmp_path):
    """torch.export has those of modules inside behind constants."""
    x = torch.tensor([1.0, 2.0])
    path = tmp_path / "module.safetensors"
    save(WithConstants(), path, (x,))
    for cell in (module(WithConstants(), (x,)), module(path)):
        assert cell(ms.Tensor([1.0, 2.0])).asnumpy().tolist() == [-5, -2]
        buffers = {buffer.name: float(buffer) for buffer in cell.buffers_of_module}
        assert buffers == {"offset": 13, "scale.factor": 3}


class Affine(nn.Module):
    """Real results: of complex numbers their squares."""

    def __init__(self, dtype):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3, 4, dtype=dtype))
        self.bias = nn.Parameter(torch.randn(4, dtype=dtype))

    def forward(self, x):
        y = x @ self.weight + self.bias
        return (y * y.conj()).real if y.is_complex() else y


@GRAPHS_IN_FULL
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "complex64", "complex128"])
def test_modules_of_other_dtypes(mode, dtype):
    of_pytorch, of_mindspore = getattr(torch, dtype), getattr(ms, dtype)
    network, x = Affine(of_pytorch), torch.randn(5, 3, dtype=of_pytorch, requires_grad=True)
    cell = module(network, (x.detach(),))
    y = network(x)
    y.float().sum().backward()
    plain = x.detach().float() if dtype == "bfloat16" else x.detach()  # as NumPy has it
    given = ms.Tensor(plain.numpy().copy()).astype(of_mindspore)

    def loss(x):
        return cell(x).astype(ms.float32).sum()

    for trains in (True, False):
        cell.set_train(trains)
        of_x, of_weights = ms.grad(loss, 0, cell.trainable_params())(given)
        found = (cell(given), of_x, *of_weights)
        known = (y, x.grad, network.weight.grad, network.bias.grad)
        for one, other in zip(found, known, strict=True):
            assert str(one.dtype).lower() == str(other.dtype).removeprefix("torch.")
            if dtype == "bfloat16":
                one, other = one.astype(ms.float32), other.float()
            np.testing.assert_array_equal(one.asnumpy(), other.detach().numpy())


@GRAPHS_IN_FULL
def test_weights_that_are_not_copied_are_the_modules_own(mode):
    network = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Linear(3, 3, bias=False))
    network[2].weight = network[0].weight
    cell = module(network, (torch.randn(5, 3),), copy=False)
    x = torch.randn(5, 3)
    (given,) = to_mindspore((x,))

    def loss(x):
        y = cell(x)
        return (y * y).mean()

    weights, before = cell.trainable_params(), network[0].weight.detach().clone()
    optimizer = ms.nn.AdamWeightDecay(weights, 0.1)
    optimizer(ms.grad(loss, None, weights)(given))
    for weight in weights:
        weight.asnumpy()  # waits
    assert (network[0].weight - before).abs().min() > 0.05
    for name, value in network.state_dict().items():
        if name != "2.weight":  # the same
            np.testing.assert_array_equal(
                cell.parameters_dict()[name].asnumpy(), value.numpy(), strict=True
            )
    assert network[1].num_batches_tracked == 1

    with torch.no_grad():
        network[0].weight.mul_(2)
    network.eval()
    cell.set_train(False)
    np.testing.assert_array_equal(cell(given).asnumpy(), network(x).detach().numpy())


def test_an_operator_that_is_registered_again():
    def register(name, factor):
        library = torch.library.Library("bridge_again", "DEF")
        library.define(f"{name}(Tensor x) -> Tensor")
        library.impl(name, lambda x: x * factor, "CompositeExplicitAutograd")
        return library

    class Scaled(nn.Module):
        def forward(self, x):
            return torch.ops.bridge_again.scaled(x) + 1

    library, x = register("scaled", 2), torch.ones(3)
    cell, (given,) = module(Scaled().eval(), (x,)), to_mindspore((x,))
    assert cell(given).asnumpy().tolist() == [3, 3, 3]
    library._destroy()
    library = register("other", 1000)
    with pytest.raises(RuntimeError, match="bridge_again") as error:
        cell(given).asnumpy()
    assert (
        "bridge_again::scaled: expected the operator that was registered with PyTorch when this "
        "one was made, got none any more; make the operator, or the module that calls it, again"
    ) in str(error.value)
    library._destroy()
    library = register("scaled", 5)
    assert cell(given).asnumpy().tolist() == [6, 6, 6]
    library._destroy()
    library = torch.library.Library("bridge_again", "DEF")
    library.define("scaled(Tensor x, int n=7) -> Tensor")
    library.impl("scaled", lambda x, n=7: x * n, "CompositeExplicitAutograd")
    assert module(Scaled().eval(), (x,))(given).asnumpy().tolist() == [8, 8, 8]
    library._destroy()


def test_a_module_whose_weights_are_shared_can_be_saved(tmp_path):
    network = nn.BatchNorm1d(3)
    module(network, (torch.randn(5, 3),), copy=False)
    torch.save(network, tmp_path / "network.pt")
    loaded = torch.load(tmp_path / "network.pt", weights_only=False)
    assert loaded.state_dict().keys() == network.state_dict().keys()


def test_weights_without_dimensions():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.tensor(1.5, dtype=torch.bfloat16))
            self.register_buffer("is_on", torch.tensor(True))

        def forward(self, x):
            return x * self.scale.float() + self.is_on

    x = torch.randn(3)
    cell = module(Scaled(), (x,))
    np.testing.assert_array_equal(cell(to_mindspore((x,))[0]).asnumpy(), (x * 1.5 + 1).numpy())


def test_weights_that_cannot_be_shared_are_refused(tmp_path):
    x = torch.randn(2, 3)
    network = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3).bfloat16())
    network[0].register_forward_hook(lambda module, inputs, y: y.bfloat16())
    before = network[0].weight.data_ptr()
    with pytest.raises(ValueError, match="copy=False") as error:
        module(network, (x,), copy=False)
    assert str(error.value) == (
        "copy=False: expected weights whose memory NumPy can have, got '1.weight' of BFloat16; "
        "leave out copy=False"
    )
    assert network[0].weight.data_ptr() == before
    with pytest.raises(TypeError, match="copy=False") as error:
        module("file.safetensors", copy=False)
    assert str(error.value) == (
        "copy=False: expected a torch.nn.Module, whose weights can move, got 'file.safetensors'"
    )
    network = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    network[1].weight.data = network[0].weight.data
    with pytest.raises(ValueError, match="copy=False") as error:
        module(network, (x,), copy=False)
    assert str(error.value) == (
        "copy=False: expected weights that have memory of their own, got '1.weight' in that of "
        "'0.weight'; leave out copy=False"
    )
    network = nn.Linear(3, 3)
    network.register_buffer("none", torch.zeros(0, 3))
    cell = module(network, (x,), copy=False)
    with pytest.raises(ValueError, match="copy=False") as error:
        module(network, (x,), copy=False)
    assert str(error.value) == (
        "copy=False: expected weights that no other cell shares, got 'weight', which one does; "
        "make one cell of the module"
    )
    del cell
    gc.collect()
    cell = module(network, (x,), copy=False)
    cell.load_state_dict(network.state_dict())  # which gives the parameters other memory
    module(network, (x,), copy=False)


@GRAPHS_IN_FULL
def test_amp_of_level_o1_leaves_a_module_as_it_is(mode, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # MindSpore writes the network's new source there
    network = WithHead(module(nn.Linear(4, 3), (torch.ones(2, 4),)))
    x = ms.Tensor(np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4))
    expected = network(x).asnumpy()
    mixed = ms.amp.auto_mixed_precision(network, "O1")
    assert np.allclose(mixed(x).asnumpy(), expected, atol=1e-2)  # the head is in float16


@GRAPHS_IN_FULL
def test_a_module_in_half_precision_takes_what_to_float_casts(mode):
    cell = module(nn.Linear(4, 3).half(), (torch.ones(2, 4).half(),)).to_float(ms.float16)
    x = ms.Tensor(np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4))
    expected = cell(x.half()).asnumpy()
    assert expected.dtype == np.float16
    assert np.array_equal(cell(x).asnumpy(), expected)
    gradient = ms.grad(cell)(x)
    assert gradient.dtype == ms.float32
    assert np.array_equal(gradient.asnumpy(), ms.grad(cell)(x.half()).asnumpy().astype(np.float32))


class Pair(typing.NamedTuple):
    one: typing.Any
    other: typing.Any


def test_nested_inputs_are_cast_too(pynative):
    class Sums(nn.Module):
        def forward(self, pair, ids):
            return pair[0] + pair[1][0] * ids

    half, ids = torch.ones(2).half(), torch.tensor([1, 2])
    cell = module(Sums(), ((half, [half]), ids)).to_float(ms.float16)
    x = mint.ones(2)
    assert cell((x, [x]), ms.Tensor([1, 2])).asnumpy().tolist() == [2, 3]
    assert cell(Pair(x, [x]), ms.Tensor([1, 2])).asnumpy().tolist() == [2, 3]


def test_inputs_have_no_names(pynative):
    cell = module(nn.Linear(4, 3), (torch.ones(2, 4),))
    with pytest.raises(TypeError) as error:
        cell(input=mint.ones((2, 4)))
    assert str(error.value) == ("Module: expected all inputs by their positions, got input by name")


class Tied(nn.Module):
    """An embedding whose weight is that of the last layer, of which one result is returned."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(11, 6)
        self.last = nn.Linear(6, 11, bias=False)
        self.last.weight = self.embedding.weight

    def forward(self, ids):
        return self.last(self.embedding(ids))


@pytest.mark.parametrize("trains", [True, False], ids=["training", "evaluation"])
def test_a_weight_that_stands_twice_is_one_parameter(mode, trains):
    network = Tied().train(trains)
    ids = torch.randint(0, 11, (2, 5))
    cell = module(network, (ids,))
    assert [parameter.name for parameter in cell.trainable_params()] == ["embedding.weight"]
    network(ids).square().mean().backward()

    def loss_of(ids):
        return (cell(ids) ** 2).mean()

    step = ms.value_and_grad(loss_of, None, cell.trainable_params())
    _, (gradient,) = step(ms.Tensor(ids.numpy()))
    assert_near(gradient, network.embedding.weight.grad, 1e-5)


def test_random_numbers_come_from_mindspores_seed(mode):
    network = nn.Sequential(nn.Linear(4, 64), nn.Dropout(0.5), nn.Linear(64, 8), nn.Dropout(0.25))
    x = torch.randn(16, 4)
    cell = module(network, (x,))

    def draw():
        return cell(ms.Tensor(x.numpy())).asnumpy()

    def draw_of_pytorch():
        torch.manual_seed(7)
        return network(x).detach().numpy()

    of_pytorch = draw_of_pytorch()
    ms.manual_seed(7)
    torch.manual_seed(8)
    first, second = draw(), draw()
    rest = torch.rand(3)
    ms.manual_seed(7)
    if mode == "pynative":  # MindSpore's graphs know no seed without aten_bridge.mint (2.10)
        assert np.array_equal(first, of_pytorch)
    assert not np.array_equal(second, first)
    assert [np.array_equal(draw(), known) for known in (first, second)] == [True, True]
    torch.manual_seed(8)
    assert torch.equal(torch.rand(3), rest)  # PyTorch's generator stays as it is


def test_a_seeds_dropout_is_no_other_threads_affair(mode):
    cell = module(nn.Dropout(0.5).train(), (torch.ones(20000),))
    x = mint.ones(20000)
    drawn, is_over = [], threading.Event()

    def draw():
        while not is_over.is_set():
            drawn.append(float(torch.rand((), dtype=torch.float64)))

    def masks():
        ms.manual_seed(7)
        return [cell(x).asnumpy() for _ in range(20)]

    alone = masks()
    thread = threading.Thread(target=draw)
    thread.start()
    beside = masks()
    is_over.set()
    thread.join()
    assert np.array_equal(beside, alone)
    assert len(set(drawn)) == len(drawn)  # it has no number twice


def test_dropout_has_one_mask_forward_and_backward(mode):
    cell = module(nn.Dropout(0.5).train(), (torch.ones(1000),))

    def run(x):
        y = cell(x)
        return y.sum(), y

    gradient, (y,) = ms.grad(run, has_aux=True)(mint.ones(1000))
    assert np.array_equal(gradient.asnumpy(), y.asnumpy())
    assert 300 < int((gradient.asnumpy() == 0).sum()) < 700
    cell.set_train(False)
    assert cell(mint.ones(1000)).asnumpy().all()


class WithoutGradient(nn.Module):
    def __init__(self):
        super().__init__()
        self.key, self.value = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        y = self.value(x)
        with torch.no_grad():
            z = self.key(y).softmax(-1)
        return z * y


class Counts(nn.Module):
    """Buffers that are replaced, in both modes, and read before."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4))
        self.register_buffer("calls", torch.full((4,), 2.0))

    def forward(self, x):
        y = x * self.weight * self.calls
        self.calls = self.calls + 100
        return y


class OtherConstants(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x):
        one = torch.tensor([1.0, 2.0, 3.0])
        return self.layer(x) * (one if self.training else one * torch.tensor([10.0]))


class Slices(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        out = torch.zeros(x.shape[0], 8)
        out[:, :4] = self.layer(x)
        return out * 2


class ReturnsTwice(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        y = torch.tanh(self.layer(x))
        return y, (y,)


class ChannelsLast(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Conv2d(1, 3, 2).to(memory_format=torch.channels_last)

    def forward(self, x):
        return self.layer(x.reshape(-1, 1, 2, 2)).permute(0, 2, 3, 1).reshape(x.shape[0], -1)


class LastStates(nn.Module):
    """A namedtuple of PyTorch's, and the states of an LSTM."""

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(2, 5, num_layers=2, batch_first=True)

    def forward(self, x):
        _, (last, cells) = self.lstm(x.reshape(3, 2, 2))
        return last[-1], cells, x.max(1)


class Averages(nn.Module):
    """A part that assigns its buffer, and in the end another one by the dict of buffers."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.full((4,), 2.0))
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        old = self.mean
        self.mean = 0.9 * self.mean + 0.1 * x.detach().mean(0)
        y = x * old + self.mean
        self._buffers["calls"] = self.calls + 1
        return y * self.calls


class TwoNames(nn.Module):
    """A batch norm that it calls by both of its names."""

    def __init__(self):
        super().__init__()
        self.first = self.second = nn.BatchNorm1d(4)
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        return self.second(self.linear(self.first(x)))


class Assigns(nn.Module):
    """Buffers that are assigned each other's values, parts of these, and values with gradients."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.linspace(0.5, 2, 4))
        for name, start in (("last", 1.0), ("before", 2.0), ("square", 3.0)):
            self.register_buffer(name, torch.arange(start, start + 4))

    def forward(self, x):
        y = x * self.weight + self.before
        self.square = y.mean(0)
        self.last, self.before = self.before, self.last
        return y * self.square


class Delays(nn.Module):
    """Gives the rows of the call before, and part of a table that it rolls."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4))
        self.register_buffer("row", torch.zeros(4))
        self.register_buffer("rolled", torch.arange(8.0).view(2, 4))
        self.register_buffer("oldest", torch.zeros(4))

    def forward(self, x):
        row = self.row
        self.row = x.detach()[0]
        self.oldest = self.rolled[0]
        self.rolled = torch.cat([self.rolled[1:], x.detach()[:1]])
        return x * self.weight + self.oldest, row


class Grouped(nn.Module):
    """Group norms of one example, of channels that are last, and with a result of another order.

    PyTorch's own gradient (2.11) crashes where the channels are last, and only weights have one.
    """

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4))
        self.norms = nn.ModuleList([nn.GroupNorm(2, 4), nn.GroupNorm(1, 2), nn.GroupNorm(1, 3)])
        for norm in self.norms:
            nn.init.normal_(norm.weight)
            nn.init.normal_(norm.bias)

    def forward(self, x):
        x = x * self.weight
        one = self.norms[0](x.view(1, 3, 4).transpose(1, 2).reshape(1, 4, 3, 1))
        several = torch.stack([x, x.sin()]).view(2, 3, 2, 2)
        last = self.norms[1](several.permute(0, 3, 1, 2))
        turned = self.norms[2](several).permute(0, 2, 3, 1)
        return torch.cat([one.reshape(-1), last.reshape(-1), turned.reshape(-1)])


class GroupedLast(Grouped):
    def forward(self, x):
        x = x * self.weight
        several = torch.stack([x, x.sin()]).view(2, 3, 2, 2)
        return self.norms[1](several.permute(0, 3, 1, 2))


class GroupedAndTurned(Grouped):
    def forward(self, x):
        x = x * self.weight
        several = torch.stack([x, x.sin()]).view(2, 3, 2, 2)
        return self.norms[2](several).permute(0, 2, 3, 1)


class Complex(nn.Module):
    """Complex numbers of Python's, and writes to complex tensors."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([0.5 + 1j, 2 - 1j]))

    def forward(self, x):
        spectrum = torch.fft.rfft(x)
        written = torch.zeros_like(spectrum)
        written[:, :2] = spectrum[:, :2] * self.weight
        written[1] = spectrum[1].conj()
        written[..., -1:] = torch.exp(x[:, :1] * (0.5 - 1j))
        return torch.fft.irfft(written * 1j, n=4)


def deep():
    return nn.Sequential(*(layer for _ in range(150) for layer in (nn.Linear(4, 4), nn.Tanh())))


def partly_frozen():
    network = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)).train()
    network[1].eval()
    return network


MODULES = {
    "no_grad": WithoutGradient,
    "replaced buffers": Counts,
    "other constants": OtherConstants,
    "written slices": Slices,
    "a result twice": ReturnsTwice,
    "channels last": ChannelsLast,
    "states of an LSTM": LastStates,
    "buffers of parts": lambda: nn.Sequential(nn.Linear(4, 4), nn.Sequential(Averages())),
    "buffers that change places": lambda: nn.Sequential(Assigns()),
    "buffers with two names": TwoNames,
    "delays": Delays,
    "delays of parts": lambda: nn.Sequential(Delays()),
    "grouped": Grouped,
    "grouped, channels last": GroupedLast,
    "grouped, and turned": GroupedAndTurned,
    "complex numbers": Complex,
    "deep": deep,
    "writes its input": lambda: nn.Sequential(nn.ReLU(inplace=True), nn.Linear(4, 3)),
    "partly in evaluation mode": partly_frozen,
}


@GRAPHS_IN_FULL
@pytest.mark.parametrize(
    "changes_mode",
    [False, pytest.param(True, marks=pytest.mark.full)],
    ids=["own mode", "other mode"],
)
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.full) if name == "deep" else name for name in MODULES],
)
def test_what_modules_do_is_what_pytorch_does(mode, name, changes_mode):
    torch.manual_seed(6)
    network = MODULES[name]()
    cell = module(copy.deepcopy(network), (torch.randn(3, 4),))
    if changes_mode:
        network.train(not network.training)
        cell.set_train(network.training)
    x = torch.randn(3, 4)
    for _ in range(2):  # with the buffers of the first call
        network.zero_grad()
        expected = network(x.clone())
        first = expected[0] if isinstance(expected, tuple) else expected
        first.square().sum().backward()

        def loss_of(x):
            results = cell(x)
            first = results[0] if isinstance(results, tuple) else results
            return (first**2).sum(), results

        step = ms.value_and_grad(loss_of, None, cell.trainable_params(), has_aux=True)
        (_, results), gradients = step(ms.Tensor(x.numpy()))
        assert_near(results[0] if isinstance(results, tuple) else results, first, 1e-5)
        for gradient, parameter in zip(gradients, network.parameters(), strict=True):
            known = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
            assert_near(gradient, known, 1e-4)
        for buffer, known in zip(cell.buffers_of_module, network.buffers(), strict=True):
            assert_near(buffer, known, 1e-6)


def test_large_results_are_pytorchs(mode):
    def step(network):
        cell = module(network, (torch.randn(network.SHAPE),))

        def loss_of(x):
            results = cell(x)
            return sum((result**2).mean() for result in results), results

        of_both = ms.value_and_grad(loss_of, 0, cell.trainable_params(), has_aux=True)

        def run(x):
            (loss, results), (of_x, (of_weight,)) = of_both(ms.Tensor(x))
            return loss, results, of_weight, of_x

        return run

    check_large_results(step)


class Constants(nn.Module):
    def forward(self, x):
        return x * 2, {"rest": [3, float("-inf"), "text", None]}


def test_results_that_are_no_tensors_are_constants():
    ms.set_context(mode=ms.PYNATIVE_MODE)
    result, rest = module(Constants(), (torch.ones(2),))(mint.ones(2))
    assert (result.asnumpy() == 2).all()
    assert rest == {"rest": (3, float("-inf"), "text", None)}


class Sign(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.sign()

    @staticmethod
    def backward(ctx, dy):
        return dy


class Straight(nn.Module):
    def forward(self, x):
        return Sign.apply(x)


class Hooked(nn.Module):
    def forward(self, x):
        y = x * 2
        y.register_hook(lambda gradient: gradient * 3)
        return y


class Clamps(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4))

    def forward(self, x):
        with torch.no_grad():
            self.weight.clamp_(max=1)
        return x * self.weight


class Loops(nn.Module):
    def forward(self, x):
        (y,) = while_loop(lambda x: x.sum() < 8, lambda x: (x * 2,), (x,))
        return y


class Grows(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(1, 4))

    def forward(self, x):
        self.seen = torch.cat([self.seen, x[:3] * 2])
        return x + self.seen.sum(0)


class Fills(nn.Module):
    def __init__(self, kept):
        super().__init__()
        self.register_buffer("kept", kept, persistent=False)

    def forward(self, x):
        self.kept = x.detach().mean()
        return x * 2


@GRAPHS_IN_FULL
@pytest.mark.parametrize("trains", [False, True], ids=["evaluation", "training"])
def test_checks_of_values_are_part_of_a_program(mode, trains):
    cell = module(Checks().train(trains), (torch.eye(3),))

    def loss_of(x):
        return cell(x).sum()

    x = torch.eye(3) * 2
    assert_near(cell(ms.Tensor(x.numpy())), Checks()(x), 1e-6)
    if mode == "graph":  # MindSpore's (2.10) run no more after an error
        return
    for text, wrong in REFUSED.items():
        with pytest.raises(RuntimeError) as of_pytorch:
            Checks()(wrong)
        assert text in str(of_pytorch.value)
        for call in (cell, ms.grad(loss_of)):
            with pytest.raises(RuntimeError, match=f"AtenProgram: {text}"):
                call(ms.Tensor(wrong.numpy())).asnumpy()


class Registers(nn.Module):
    """Has a buffer from its first call on."""

    def forward(self, x):
        if not hasattr(self, "kept"):
            self.register_buffer("kept", torch.arange(4.0), persistent=False)
        return x * self.kept


class MakesParts(nn.Module):
    """Has weights, two buffers and a part from its first call on."""

    def forward(self, x):
        if not hasattr(self, "norm"):
            self.register_buffer("one", torch.ones(4))
            self.register_buffer("two", torch.full((4,), 2.0))
            self.norm = nn.BatchNorm1d(4, affine=False).eval()
            self.weight = nn.Parameter(torch.linspace(0, 1, 4))
        return self.norm(x * self.weight) * self.two - self.one


class AssignsShared(nn.Module):
    """Gives one of two names of a buffer another value."""

    def __init__(self):
        super().__init__()
        self.register_buffer("one", torch.zeros(4))
        self.register_buffer("other", self.one)

    def forward(self, x):
        self.one = self.one + 1
        return x + self.other


class SharesBuffers(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.other = Fills(torch.zeros(())), Fills(torch.zeros(()))
        self.other.kept = self.one.kept

    def forward(self, x):
        return self.one(x) + self.other(x)


class AssignsData(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(4))

    def forward(self, x):
        self.mean.data = x[0] * 2
        return x + self.mean


class Sizes(nn.Module):
    def forward(self, x):
        return x * 2, x.shape[0]


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (
            Straight,
            "expected a module whose gradient is that of its operators, got one with the "
            "torch.autograd.Function Sign, which torch.export does not record; leave that part out "
            "of the module, or make it an operator with a gradient by torch.library.custom_op",
        ),
        (
            Hooked,
            "expected a module whose gradient is that of its operators, got one with "
            "Tensor.register_hook(), which torch.export does not record; leave that part out of "
            "the module, or make it an operator with a gradient by torch.library.custom_op",
        ),
        (
            Clamps,
            "expected a module that changes buffers alone, got one that writes the parameter "
            "'weight'; make it a buffer, or change it outside of the module",
        ),
        (
            Loops,
            "expected operators of PyTorch's dispatcher, and sizes that follow from those of the "
            "inputs, got Python's while_loop() in test_modules.py, line "
            f"{Loops.forward.__code__.co_firstlineno + 1}; make modules of the parts around it",
        ),
        (Sizes, "expected results that are tensors, got a size; leave it out"),
        (
            lambda: nn.Sequential(Grows()),
            "expected a module whose buffers keep their shapes and dtypes, got one that replaces "
            "'seen' of Grows, float32 [1, 4], by float32 [4, 4]; pass it as an input and a result",
        ),
        (
            lambda: nn.Sequential(Fills(torch.zeros((), dtype=torch.int64))),
            "expected a module whose buffers keep their shapes and dtypes, got one that replaces "
            "'kept' of Fills, int64 [], by float32 []; pass it as an input and a result",
        ),
        (
            lambda: Fills(None),
            "expected a module whose buffers keep their shapes and dtypes, got one that replaces "
            "'kept' of Fills, None, by float32 []; pass it as an input and a result",
        ),
        (
            Registers,
            "expected a module with all of its weights, buffers and parts, got one that registers "
            "'kept' of Registers when it is called; call it once in PyTorch first",
        ),
        (
            AssignsShared,
            "expected a module that assigns to buffers with memory of their own, got buffers that "
            "share it; write to them in place",
        ),
        (
            SharesBuffers,
            "expected a module that assigns to buffers with memory of their own, got buffers that "
            "share it; write to them in place",
        ),
        (
            AssignsData,
            "expected a module that writes to tensors in place, got one that assigns to .data in "
            f"test_modules.py, line {AssignsData.forward.__code__.co_firstlineno + 1}; call "
            "copy_() under torch.no_grad()",
        ),
    ],
)
def test_what_a_program_would_get_wrong_is_refused(made, text):
    with pytest.raises(NotExportable) as error:
        module(made(), (torch.randn(3, 4),), dynamic_shapes=({0: Dim("n")},))
    assert str(error.value) == text
    assert not hasattr(error.value, "__notes__")


@pytest.mark.parametrize("made", [Registers, lambda: nn.Sequential(Registers()), MakesParts])
def test_a_module_that_registers_a_buffer_can_be_taken_over_after_a_call(made):
    taken = made()
    x = torch.randn(3, 4)
    with pytest.raises(NotExportable):
        module(taken, (x,))
    assert not [*taken.buffers(), *taken.parameters()]
    expected = taken(x).detach().numpy()
    np.testing.assert_allclose(module(taken, (x,))(ms.Tensor(x.numpy())).asnumpy(), expected)


class Table(nn.Module):
    """Makes a table again where it does not fit, in a buffer that is not persistent."""

    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.zeros(1), persistent=False)

    def forward(self, x):
        if len(self.table) != x.shape[1]:
            self.table = torch.arange(x.shape[1]) * 0.5
        return x * self.table


def test_a_table_that_is_made_again_is_no_state(mode):
    network = nn.Sequential(Table())
    x = torch.randn(3, 4)
    cell = module(network, (x,))
    assert network[0].table.shape == (1,)
    for _ in range(2):
        assert (cell(ms.Tensor(x.numpy())).asnumpy() == copy.deepcopy(network)(x).numpy()).all()


def test_the_mode_that_cannot_be_recorded_is_named():
    network = nn.BatchNorm1d(4, momentum=None).eval()
    with pytest.raises(Exception, match="data-dependent expression u0") as error:
        module(network, (torch.randn(3, 4),))
    advice = (
        "aten_bridge: the error is one of the training mode, which the module is not in; for the "
        "mode that it is in alone, give torch.export.export(module, example_inputs)"
    )
    assert getattr(error.value, "__notes__", [advice])[-1] == advice  # Python 3.10 has no notes
    x = torch.randn(3, 4)
    cell = module(torch.export.export(network, (x,)))
    assert_near(cell(ms.Tensor(x.numpy())), network(x), 1e-6)


class BranchesOnValues(nn.Module):
    def forward(self, x):
        return x * 2 if x.sum() > 0 else x


class Calls(nn.Module):
    def forward(self, x):
        return torch.from_numpy(x.numpy() * 2)


@pytest.mark.parametrize(
    ("network", "shapes", "text"),
    [
        (BranchesOnValues(), None, "Could not guard on data-dependent expression"),
        (Calls(), None, ".numpy() is not supported for tensor subclasses."),
        (nn.Linear(4, 4), ({1: Dim("n")},), "Constraints violated (n)!"),
        (nn.Linear(5, 4), None, "a and b must have same reduction dim, but got [3, 4] X [5, 4]."),
    ],
    ids=["branch", "numpy", "fixed size", "wrong example"],
)
def test_what_torch_export_cannot_record_is_its_error_with_advice(network, shapes, text):
    with pytest.raises(Exception, match=f"^{re.escape(text)}") as error:
        module(network, (torch.randn(3, 4),), dynamic_shapes=shapes)
    advice = (
        "aten_bridge: expected a module that torch.export records as a whole, got the error above; "
        "change what it names, or make modules of the parts around that and leave it to MindSpore "
        "or JAX"
    )
    assert getattr(error.value, "__notes__", [advice]) == [advice]  # Python 3.10 has no notes


def test_an_example_of_one_is_no_example_of_a_size_that_may_change():
    with pytest.raises(Exception, match=r"^Constraints violated \(n\)!") as error:
        module(nn.Linear(4, 4), (torch.randn(1, 4),), dynamic_shapes=({0: Dim("n")},))
    advice = (
        "aten_bridge: expected example inputs with sizes of 2 or more where dynamic_shapes lets "
        "them change, got one of 0 or 1, which torch.export takes for a constant; give a larger "
        "example"
    )
    assert getattr(error.value, "__notes__", [advice]) == [advice]  # Python 3.10 has no notes


@pytest.mark.parametrize(
    ("example", "text"),
    [
        (
            torch.ones(3, 4),
            "example_inputs: expected a tuple of the module's arguments, got a tensor; give "
            "(tensor,)",
        ),
        ("x", "example_inputs: expected a tuple of the module's arguments, got 'x'"),
        (
            (np.ones((3, 4), np.float32),),
            "example_inputs[0]: expected a tensor of PyTorch's, got a numpy.ndarray; convert it, "
            "by way of torch.from_numpy",
        ),
    ],
    ids=["tensor", "text", "array"],
)
def test_examples_are_a_tuple_of_tensors(example, text):
    with pytest.raises(TypeError) as error:
        module(nn.Linear(4, 2), example)
    assert str(error.value) == text


def test_an_example_may_be_a_list(pynative):
    cell = module(nn.Linear(4, 2), [torch.ones(3, 4)])
    assert cell(mint.ones((3, 4))).shape == (3, 2)


WRONG_INPUTS = [
    (
        lambda: (mint.ones((6, 3, 9)), {"bias": mint.ones(4)}),
        ValueError,
        "AtenProgram: %x: expected float32 [6, 3, 10], got float32 [6, 3, 9]; make the module with "
        "dynamic_shapes=, {2: Dim(...)} for this input, if its sizes may change",
    ),
    (
        lambda: (mint.ones((6, 3, 10), dtype=ms.float16), {"bias": mint.ones(4)}),
        ValueError,
        "AtenProgram: %x: expected float32 [6, 3, 10], got float16 [6, 3, 10]; convert it, or make "
        "the module with tensors of that dtype",
    ),
    (
        lambda: (mint.ones((6, 3, 10)),),
        TypeError,
        "Module: expected 2 inputs of the module, got 1",
    ),
    (
        lambda: (mint.ones((6, 3, 10)), mint.ones(4)),
        TypeError,
        "Module: input 1: expected a dict, got a tensor",
    ),
    (
        lambda: (mint.ones((6, 3, 10)), {"biases": mint.ones(4)}),
        TypeError,
        "Module: input 1: expected a dict with the keys ['bias'], got ['biases']",
    ),
    (
        lambda: (mint.ones((6, 3, 10)), {"bias": 4.0}),
        TypeError,
        "Module: input 1['bias']: expected a tensor, got 4.0",
    ),
    (
        lambda: (None, {"bias": mint.ones(4)}),
        TypeError,
        "Module: input 0: expected a tensor, got None",
    ),
]


@pytest.mark.parametrize(("given", "kind", "text"), WRONG_INPUTS)
def test_wrong_inputs_are_an_error_in_words(mode, cell, given, kind, text):
    cell.set_train(False)
    with pytest.raises(kind) as error:
        cell(*given())
    assert str(error.value).splitlines()[0] == text


def test_a_tuple_of_another_length_is_refused(cpu):
    class Adds(nn.Module):
        def forward(self, pair):
            return pair[0] + pair[1]

    cell = module(Adds(), ([torch.ones(2), torch.ones(2)],))
    assert (cell((mint.ones(2), mint.ones(2))).asnumpy() == 2).all()
    with pytest.raises(TypeError) as error:
        cell([mint.ones(2)] * 3)
    assert str(error.value) == "Module: input 0: expected 2 in a tuple or a list, got 3"
    with pytest.raises(TypeError) as error:
        cell(mint.ones((2, 2)))
    assert str(error.value) == "Module: input 0: expected a tuple or a list, got a tensor"


TREES = [
    ["sequence", []],
    ["sequence", [["tensor"]]],
    ["sequence", [["sequence", [["tensor"], ["sequence", []]]]]],
    ["sequence", [["dict", [["a", ["tensor"]], [0, ["sequence", [["tensor"]]]]]], ["tensor"]]],
    ["sequence", [["constant", None]]],
]
VALUES = [
    (),
    (1,),
    (1, 1),
    ((1, ()),),
    ([1, []],),
    ((1,),),
    (("x", ()),),
    ({"a": 1, 0: [1]}, 1),
    ({"a": 1, 0: 1}, 1),
    ({"a": 1, "b": [1]}, 1),
    ({"a": 1, 0: [1], "b": 1}, 1),
    ((1, [1]), 1),
    (None,),
]


@pytest.mark.parametrize("tree", TREES)
def test_the_quick_check_of_inputs_says_what_the_other_one_says(tree):
    """Ints stand for tensors."""
    fits = run_source(fits_source(tree))["fits"]
    found = [fits(int, value) for value in VALUES]
    faults = [input_fault(tree, value, lambda one: isinstance(one, int)) for value in VALUES]
    assert found == [fault is None for fault in faults]
    assert sum(found) == {0: 1, 1: 1, 2: 2, 3: 1, 4: 0}[TREES.index(tree)]


def test_a_module_stays_in_its_process(cpu, cell):
    outer = ms.nn.SequentialCell([cell])
    for take, one in ((pickle.dumps, cell), (pickle.dumps, outer), (copy.copy, cell)):
        with pytest.raises(TypeError, match="Module: ") as error:
            take(one)
        assert str(error.value) == (
            "Module: expected a module that stays in its process and is copied with "
            "copy.deepcopy, got pickle or copy.copy; save parameters with "
            "mindspore.save_checkpoint, and PyTorch's module with aten_bridge.program.save"
        )


@GRAPHS_IN_FULL
@pytest.mark.parametrize("is_inside", [False, True], ids=["alone", "in a bigger cell"])
def test_a_copy_has_weights_and_a_mode_of_its_own(mode, is_inside):
    torch.manual_seed(4)
    network = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Tanh()).eval()
    x = torch.randn(5, 3)
    cell = module(network, (x,))
    outer = ms.nn.SequentialCell([cell]) if is_inside else cell
    given = ms.Tensor(x.numpy())
    assert_near(outer(given), network(x), 1e-5)  # in a graph it has one now
    copied = copy.deepcopy(outer)
    inner = copied[0] if is_inside else copied
    for one, own in zip(inner.get_parameters(), cell.get_parameters(), strict=True):
        assert one is not own
        assert one.name == own.name
    assert inner.trainable_params() == list(inner.weights)
    copied.set_train()
    assert not cell.training

    other = copy.deepcopy(network).train()
    optimizer = ms.nn.SGD(copied.trainable_params(), 0.1)

    def loss_of(x):
        return (copied(x) ** 2).sum()

    _, gradients = ms.value_and_grad(loss_of, None, copied.trainable_params())(given)
    optimizer(gradients)
    (other(x) ** 2).sum().backward()
    torch.optim.SGD(other.parameters(), 0.1).step()
    for one, own in zip(inner.weights, other.parameters(), strict=True):
        assert_near(one, own, 1e-4)
    assert_near(copied(given), other(x), 1e-4)  # which changes the buffers of both
    copied.set_train(False)
    assert_near(copied(given), other.eval()(x), 1e-4)
    assert_near(outer(given), network(x), 1e-5)


def test_a_weight_of_another_shape_is_refused(network, inputs):
    ms.set_context(mode=ms.PYNATIVE_MODE)
    cell = module(copy.deepcopy(network).eval(), inputs)
    cell.weights[-1].set_data(mint.ones(5), slice_shape=True)
    with pytest.raises(ValueError, match="AtenProgram: ") as error:
        cell(*to_mindspore(inputs))
    assert str(error.value).splitlines()[0] == (
        "AtenProgram: %p_head_bias: expected float32 [4], got float32 [5]"
    )


class Even(nn.Module):
    def forward(self, x, *others):
        even = x.shape[0] % 2 == 0 and x.shape[0] + others[0]["y"].shape[0] > 8
        return x * 2 if even else x * 3


@GRAPHS_IN_FULL
@pytest.mark.parametrize("is_file", [False, True], ids=["module", "pt2"])
def test_sizes_for_which_a_module_does_something_else_are_refused(mode, is_file, tmp_path):
    source, given = Even(), (torch.ones(4), {"y": torch.ones(5)})
    shapes = {"x": {0: Dim.DYNAMIC}, "others": ({"y": {0: Dim.DYNAMIC}},)}
    if is_file:
        torch.export.save(
            torch.export.export(source, given, dynamic_shapes=shapes), tmp_path / "even.pt2"
        )
        cell = module(tmp_path / "even.pt2")
    else:
        cell = module(source, given, dynamic_shapes=shapes)
    assert (cell(mint.ones(4), {"y": mint.ones(5)}).asnumpy() == 2).all()
    for x, y, guard in ((5, 7, "mod(s77, 2) == 0"), (4, 3, "add(s64, s77) > 8")):
        with pytest.raises((ValueError, RuntimeError)) as error:
            cell(mint.ones(x), {"y": mint.ones(y)}).asnumpy()
        assert (
            f"AtenProgram: expected sizes with {guard}, for which the module was exported, got "
            in str(error.value)
        )
        assert f"s77 = {x}" in str(error.value)


def test_sizes_that_depend_on_values_do_not_guard():
    with pytest.raises(NotExportable) as error:
        guard_text("L['x'].item() == 3", lambda source, dim: "s0")
    assert str(error.value) == (
        "expected conditions on sizes that compare sums, products and quotients of sizes, got "
        "L['x'].item() == 3; give the sizes that the module asks for as static ones"
    )


def test_what_no_program_can_say_is_refused():
    class Doubles(nn.Module):
        def forward(self, x, factor):
            return x * factor

    with pytest.raises(NotExportable) as error:
        module(Doubles(), (torch.ones(2), 3))
    assert str(error.value) == (
        "expected tensors as inputs of the module, got 3 as 'factor'; wrap it in a module that "
        "passes that value"
    )


def test_a_buffer_that_is_changed_in_secret_is_refused():
    network = nn.InstanceNorm1d(3, track_running_stats=True)
    with pytest.raises(NotExportable) as error:
        module(network, (torch.ones(2, 3, 5),))
    assert str(error.value) == (
        "expected a module whose graph has the buffers that it changes, got one with "
        "aten::instance_norm in training mode, whose running statistics torch.export does not "
        "record; make the layer with track_running_stats=False"
    )


def test_one_tensor_as_two_examples(mode):
    """torch.export has one input for both uses of a tensor (2.11)."""

    class Difference(nn.Module):
        def forward(self, x, pair):
            return x - 2 * pair["y"] + 3 * pair["z"]

    example = torch.ones(3)
    cell = module(Difference(), (example, {"y": example, "z": example}))
    x, y, z = (ms.Tensor(np.full(3, value, np.float32)) for value in (1, 10, 100))
    assert cell(x, {"y": y, "z": z}).asnumpy().tolist() == [281] * 3


def test_sizes_that_are_multiples_are_refused():
    class Halves(nn.Module):
        def forward(self, x):
            first, second = x.chunk(2, 1)
            return first * second

    with pytest.raises(NotExportable, match="expected sizes that follow from those of the inputs"):
        module(Halves(), (torch.ones(2, 8),), dynamic_shapes=({1: 2 * Dim("half", min=2)},))

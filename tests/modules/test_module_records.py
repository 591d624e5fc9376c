"""What PyTorch records of modules wrongly, or not at all."""

import collections
import copy
import dataclasses
import re
import threading

import mindspore as ms
import pytest
import torch
from modes import GRAPHS_IN_FULL
from module_cases import assert_near
from torch import nn
from torch.export import Dim
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from aten_bridge.mindspore import module
from aten_bridge.program import NotExportable

NAMESPACE = "bridge_module_records"


def to_mindspore(tensor):
    return ms.Tensor(tensor.detach().numpy().copy())


def assert_pytorchs(network, cell, inputs, trains):
    """Results, and gradients by the first input and by all weights."""
    network = copy.deepcopy(network).train(trains)
    cell.set_train(trains)
    x, *others = inputs
    x = x.detach().clone().requires_grad_()
    expected = network(x, *others)
    (expected**2).sum().backward()
    rest = [to_mindspore(one) for one in others]

    def loss_of(x):
        return (cell(x, *rest) ** 2).sum()

    assert_near(cell(to_mindspore(x), *rest), expected, 1e-5)
    weights = cell.trainable_params() or None
    gradients = ms.grad(loss_of, 0, weights)(to_mindspore(x))
    (of_input, of_weights) = gradients if weights else (gradients, ())
    assert_near(of_input, x.grad, 1e-4)
    for gradient, weight in zip(of_weights, network.parameters(), strict=True):
        assert_near(gradient, weight.grad, 1e-4)


class Repeats(nn.Module):
    """A part of its results has a gradient."""

    def __init__(self, is_reentrant):
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)
        self.is_reentrant = is_reentrant

    def forward(self, x):
        y = self.first(x)
        z = self.second(x)
        return z * checkpoint(torch.tanh, y, use_reentrant=self.is_reentrant) + y


def test_a_reentrant_checkpoint_is_refused(mode):
    torch.manual_seed(5)
    x = torch.randn(3, 4)
    with pytest.raises(NotExportable) as error:
        module(Repeats(is_reentrant=True), (x,))
    assert str(error.value) == (
        "expected a module whose gradient is that of its operators, got one with "
        "torch.utils.checkpoint that is reentrant, which torch.export does not record; give it "
        "use_reentrant=False"
    )
    network = Repeats(is_reentrant=False)
    assert_pytorchs(network, module(network, (x,)), (x,), trains=True)


def hook_module(network):
    network[1].register_full_backward_hook(lambda layer, given, gradients: (given[0] * 2,))


def hook_results(network):
    network[1].register_full_backward_pre_hook(lambda layer, gradients: (gradients[0] * 2,))


def hook_weight(network):
    network[1].weight.register_hook(lambda gradient: gradient * 2)


def hook_accumulated(network):
    network[1].weight.register_post_accumulate_grad_hook(lambda weight: None)


def hook_whole(network):
    network.register_full_backward_hook(lambda layer, given, gradients: None)


@pytest.mark.parametrize(
    ("add_hook", "name"),
    [
        (hook_module, "1"),
        (hook_results, "1"),
        (hook_weight, "1.weight"),
        (hook_accumulated, "1.weight"),
        (hook_whole, "Sequential"),
    ],
)
def test_hooks_on_gradients_are_refused(add_hook, name):
    network = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))
    add_hook(network)
    with pytest.raises(NotExportable) as error:
        module(network, (torch.randn(3, 4),))
    assert str(error.value) == (
        "expected a module whose gradient is that of its operators, got one with a hook on the "
        f"gradient of {name!r}, which torch.export does not record; remove it"
    )


def test_a_hook_on_the_gradients_of_all_modules_is_refused():
    hooks = nn.modules.module
    handle = hooks.register_module_full_backward_hook(lambda layer, given, gradients: None)
    try:
        with pytest.raises(NotExportable, match="a hook on the gradient of 'Linear', which"):
            module(nn.Linear(4, 2), (torch.randn(3, 4),))
    finally:
        handle.remove()


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        return x * 2

    @staticmethod
    def backward(context, gradient):
        return gradient * 3


def test_another_thread_differentiates_while_a_module_is_made(pynative):
    gradients = []

    def train():
        x = torch.ones(2, requires_grad=True)
        y = Doubled.apply(x)
        y.register_hook(lambda gradient: gradient * 5)
        gradients.append(torch.autograd.grad(y.sum(), x)[0].tolist())

    class Waits(nn.Module):
        def forward(self, x):
            thread = threading.Thread(target=train)
            thread.start()
            thread.join()
            return x + 1

    module(Waits(), (torch.randn(3),))
    assert gradients
    assert all(gradient == [15, 15] for gradient in gradients)


def test_an_operator_that_draws_and_can_train_is_not_run_again(mine, pynative):
    """PyTorch's own are known by such an argument to draw nothing."""
    draws = iter(range(1, 100))
    mine.define(
        "noise(Tensor x, bool train=False) -> Tensor", tags=torch.Tag.nondeterministic_seeded
    )
    mine.impl("noise", lambda x, train=False: torch.full_like(x, next(draws)), "CPU")
    torch.library.register_fake(
        f"{NAMESPACE}::noise", lambda x, train=False: torch.empty_like(x), lib=mine
    )

    class Noisy(nn.Module):
        def forward(self, x):
            return x * getattr(torch.ops, NAMESPACE).noise(x.detach())

    cell = module(Noisy(), (torch.randn(3),)).set_train()
    result, gradient = ms.value_and_grad(lambda x: cell(x).sum())(ms.mint.ones(3))
    assert gradient.asnumpy().tolist() == [result.asnumpy() / 3] * 3


LABELS = torch.tensor([[3, 0, -1, 1], [1, 2, -1, 0], [0, 1, 2, 3]])


@GRAPHS_IN_FULL
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("labels", [LABELS, LABELS[0]], ids=["rows", "one row"])
def test_a_loss_of_several_labels_leaves_out_what_is_behind_them(mode, reduction, labels):
    torch.manual_seed(5)
    x = torch.randn(labels.shape)
    network = nn.MultiLabelMarginLoss(reduction=reduction)
    cell = module(network, (x, labels))
    for trains in (True, False):
        assert_pytorchs(network, cell, (x, labels), trains)


def test_such_a_loss_of_other_sizes(pynative):
    torch.manual_seed(5)
    count = Dim("count")
    network = nn.MultiLabelMarginLoss()
    cell = module(network, (torch.randn(3, 4), LABELS), dynamic_shapes=({0: count}, {0: count}))
    assert_pytorchs(network, cell, (torch.randn(2, 4), LABELS[:2]), trains=True)


class Sums(nn.Module):
    def __init__(self):
        super().__init__()
        self.all = nn.EmbeddingBag(6, 3, mode="sum", sparse=True)
        self.each = nn.Embedding(6, 3, sparse=True)

    def forward(self, x, places):
        return x * self.all(places) + self.each(places).mean(1)


@GRAPHS_IN_FULL
def test_embeddings_have_gradients_with_all_rows(mode):
    torch.manual_seed(5)
    network, places = Sums(), torch.tensor([[1, 2], [2, 4]])
    cell = module(network, (torch.randn(2, 3), places))
    dense = copy.deepcopy(network)
    dense.all.sparse = dense.each.sparse = False
    for trains in (True, False):
        assert_pytorchs(dense, cell, (torch.randn(2, 3), places), trains)


class Sparse(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 3))

    def forward(self, x):
        return torch.sparse.mm(x.to_sparse(), self.weight)


@GRAPHS_IN_FULL
def test_sparse_values_inside_of_a_module(mode):
    torch.manual_seed(5)
    network, x = Sparse(), torch.randn(2, 4)
    cell = module(network, (x,))
    for trains in (True, False):
        assert_pytorchs(network, cell, (x,), trains)


class HasSparse(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("edges", torch.eye(4).to_sparse())

    def forward(self, x):
        return torch.sparse.mm(self.edges, x)


class GivesSparse(nn.Module):
    def forward(self, x):
        return x.detach().to_sparse()


@pytest.mark.parametrize(
    ("network", "text"),
    [
        (
            HasSparse(),
            "expected weights and buffers that are dense, got 'edges' with the layout "
            "torch.sparse_coo; make it dense",
        ),
        (
            GivesSparse(),
            "expected inputs and results that are dense, got 'to_sparse' with the layout "
            "torch.sparse_coo; make it dense",
        ),
    ],
    ids=["buffer", "result"],
)
def test_sparse_buffers_and_results_are_refused(network, text):
    with pytest.raises(NotExportable) as error:
        module(network, (torch.randn(4, 4),))
    assert str(error.value) == text


class Weighted(nn.Module):
    def __init__(self, detaches):
        super().__init__()
        self.detaches = detaches

    def forward(self, x, labels, weight):
        weight = weight.detach() if self.detaches else weight
        return functional.cross_entropy(x, labels, weight)


def test_an_argument_without_a_gradient_is_named(pynative):
    inputs = torch.randn(3, 4), torch.tensor([1, 0, 3]), torch.rand(4)
    text = "The function 'nll_loss_forward' is not differentiable with respect to argument 'weight'"
    with pytest.raises(RuntimeError, match=f"^{re.escape(text)}") as error:
        module(Weighted(detaches=False), inputs)
    advice = (
        "aten_bridge: expected a module with gradients by all of its inputs that are numbers with "
        "fractions, got the error above; in the module, call what it names with the detach() of "
        "its argument 'weight'"
    )
    assert getattr(error.value, "__notes__", [advice]) == [advice]  # Python 3.10 has no notes
    network = Weighted(detaches=True)
    assert_pytorchs(network, module(network, inputs), inputs, trains=True)


class Strides(nn.Module):
    def forward(self, x):
        return x.as_strided((2, 2), (1, 2), 0)


def test_an_example_that_is_a_part_of_another_tensor(mode):
    torch.manual_seed(5)
    network = Strides()
    cell = module(network, (torch.randn(30)[5:15],))
    assert_pytorchs(network, cell, (torch.randn(10),), trains=True)


class Silent(nn.Module):
    def forward(self, x):
        return None


def test_a_module_without_results_is_refused():
    with pytest.raises(NotExportable) as error:
        module(Silent(), (torch.randn(3),))
    assert str(error.value) == (
        "expected a module with results that are tensors, got one with none"
    )


class Determinants(nn.Module):
    def forward(self, x):
        return torch.linalg.det(x)


def test_results_whose_gradient_pytorch_leaves_out(pynative):
    assert module(Determinants(), (torch.randn(0, 2, 2),))(ms.mint.ones((0, 2, 2))).shape == (0,)


@dataclasses.dataclass
class Pair:
    first: torch.Tensor
    second: torch.Tensor


class Pairs(nn.Module):
    def forward(self, pair):
        return Pair(pair.first * 2, pair.second * 3)


def test_a_dataclass_is_a_dict(pynative):
    torch.export.register_dataclass(Pair)
    cell = module(Pairs(), (Pair(torch.ones(2), torch.ones(3)),))
    results = cell({"first": ms.mint.ones(2), "second": ms.mint.ones(3)})
    assert list(results) == ["first", "second"]
    assert results["first"].asnumpy().tolist() == [2, 2]
    assert results["second"].asnumpy().tolist() == [3, 3, 3]


@dataclasses.dataclass
class Output(collections.OrderedDict):
    """As transformers' ModelOutput: a dataclass that is a dict, registered with its keys alone."""

    first: torch.Tensor

    def __post_init__(self):
        self["first"] = self.first


class Outputs(nn.Module):
    def forward(self, x):
        return Output(x * 2)


def test_a_dataclass_that_is_a_dict_is_one(pynative):
    torch.utils._pytree.register_pytree_node(
        Output,
        lambda one: (list(one.values()), list(one.keys())),
        lambda values, _: Output(*values),
        serialized_type_name="bridge_test.Output",
    )
    results = module(Outputs(), (torch.ones(2),))(ms.mint.ones(2))
    assert list(results) == ["first"]
    assert results["first"].asnumpy().tolist() == [2, 2]

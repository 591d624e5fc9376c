"""Modules that compute something under torch.no_grad()."""

import mindspore as ms
import pytest
import torch
from module_cases import assert_near
from torch import cond, nn
from torch.nn.utils import parametrizations

from aten_bridge.mindspore import module
from aten_bridge.program import NotExportable


class Parts(nn.Module):
    """Several results, with dtypes that have no gradients, and views."""

    def forward(self, x):
        with torch.no_grad():
            left, right = x.split(2, 1)
            largest, places = x.max(1)
            rows = x.view(-1).shape[0]
        return left[:, :1] * x + largest[:, None] + right * places[:, None] * rows


class Nested(nn.Module):
    def forward(self, x):
        with torch.no_grad():
            with torch.autocast("cpu", enabled=False):
                outer = x.sin()
            with torch.enable_grad():
                inner = outer * x
            last = inner * x
        return inner + last * x


class Averages(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.ones(3))

    def forward(self, x):
        with torch.no_grad():
            self.mean.mul_(0.5).add_(x.mean(0))
        return (x - self.mean) * x


class Writes(nn.Module):
    """Copies, and values without gradients, are written to."""

    def forward(self, x):
        with torch.no_grad():
            copied = x.detach() * 2
            copied[0] = 3
        made = torch.zeros(2, 3)
        made[1] = x[0]
        return copied * x + made, copied


class ReadsByConversions(nn.Module):
    """They give the tensor itself, which keeps its gradient, where there is nothing to convert."""

    def __init__(self):
        super().__init__()
        self.dropout = nn.Dropout(0.1).eval()

    def train(self, mode=True):
        return self

    def forward(self, x):
        y = x * 2
        with torch.no_grad():
            mask = y.float() > 0
            same = self.dropout(y.cpu())
        return y * mask + same * x


class WritesByViews(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("rows", torch.zeros(2, 3))
        self.register_buffer("mean", torch.zeros(3))

    def forward(self, x):
        with torch.no_grad():
            one, other = torch.zeros(2, 3), torch.zeros(2, 3)
            row = other.view(-1)
            one[0] = x[0]
            other.copy_(x)
            self.rows[0].mul_(0.9).add_(x.mean(0))
            torch._foreach_lerp_([self.mean], [x.mean(0)], 0.1)
        return (one + row.view(2, 3) + self.rows[0] + self.mean) * x


class WritesCopies(nn.Module):
    """Copies of a variable, what a frozen parameter gives, and what takes a shape alone."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3), requires_grad=False)

    def forward(self, x):
        y, frozen = x.sin(), self.weight * 2
        with torch.no_grad():
            double = y.double()
            double.mul_(2)
            turned = y.t().contiguous()
            turned /= turned.sum()
            flat = y.t().reshape(-1)
            flat += 1
            frozen.mul_(2)
            out = torch.zeros_like(x)
        out[:, 0] = x[:, 0] * 2
        return y * (double.float() + turned.t() + flat.sum()) + frozen * x + out


class Mapped(nn.Module):
    """Around, before and inside torch.vmap."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3, bias=False)
        self.linear.weight = nn.Parameter(torch.linspace(0.1, 0.9, 9).view(3, 3))

    def of_row(self, row):
        doubled, plain = self.linear(row), self.linear(row)
        with torch.no_grad():
            kept = self.linear(row).exp()
            same = plain.float()
        doubled.view(3, 1).mul_(2)
        return kept.view(3, 1).t().reshape(3) * doubled + same * row

    def forward(self, x):
        with torch.no_grad():
            scale = self.linear.weight.cos().sum()
            kept = torch.vmap(lambda row: self.linear(row).sin())(x)
        return torch.vmap(self.of_row)(x) * kept * scale


class InAutocast(nn.Module):
    @torch.autocast("cpu", enabled=False)
    @torch.no_grad()
    def scale(self, x):
        return x.softmax(-1)

    def forward(self, x):
        with torch.autocast("cpu", enabled=False):
            with torch.no_grad():
                y = x.sin()
            z = y * x
        return z + self.scale(x) * x


class Infers(nn.Module):
    def forward(self, x):
        with torch.inference_mode():
            y = x.sin()
        return y.clone() * x


class AroundSides(nn.Module):
    """Twice, by a name that was imported."""

    def forward(self, x):
        with torch.no_grad():
            first = cond(x.sum() > 0, torch.exp, torch.sin, (x,))
        with torch.no_grad():
            second = cond(x.mean() > 1, lambda x: x * 2, torch.cos, (first,))
        return x * second + first, second


class InASide(nn.Module):
    def forward(self, x):
        def inner(x):
            with torch.no_grad():
                scale = torch.cond(x.mean() > 1, torch.exp, torch.cos, (x,))
            return scale * x

        return torch.cond(x.sum() > 0, inner, torch.sin, (x,))


class WritesByName(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("sums", torch.zeros(3))

    def forward(self, x):
        with torch.no_grad():
            torch.mul(x.sum(0), 2, out=self.sums)
            kept = self.sums.clone()
        return x * kept + self.sums


def total(results):
    return sum(one.sum() for one in results) if isinstance(results, tuple) else results.sum()


def check(network, cell):
    """One example in each of three ranges."""

    def loss_of(x):
        return total(cell(x))

    gradient = ms.value_and_grad(loss_of)
    for shift in (-3.0, 0.2, 3.0):
        x = (torch.linspace(-0.5, 0.5, 6).reshape(2, 3) + shift).requires_grad_()
        loss = total(network(x))
        loss.backward()
        found, of_x = gradient(ms.Tensor(x.detach().numpy()))
        assert_near(found, loss, 1e-5)
        assert_near(of_x, x.grad, 1e-5)


X = torch.arange(6.0).reshape(2, 3)
EXPORTED = [
    *(Parts, Nested, Averages, Writes, ReadsByConversions, WritesByViews, WritesCopies),
    WritesByName,
]
ALL = [*EXPORTED, Mapped, InAutocast, Infers, AroundSides, InASide]


@pytest.mark.parametrize("made", ALL)
def test_what_is_computed_without_gradients_has_none(pynative, made):
    check(made(), module(made(), (X,)))


def test_in_graphs(mode):
    check(AroundSides(), module(AroundSides(), (X,)))


@pytest.mark.parametrize("made", EXPORTED)
def test_in_exported_programs(pynative, made):
    exported = torch.export.export(made(), (X,))
    graph = exported.graph_module.print_readable(print_output=False)
    check(made(), module(exported))
    assert exported.graph_module.print_readable(print_output=False) == graph


@pytest.mark.parametrize("normed", [nn.utils.spectral_norm, parametrizations.spectral_norm])
def test_spectral_norm(pynative, normed):
    """Its buffers, which a call changes by `out=`, are no part of the gradient."""
    network = normed(nn.Linear(3, 4))
    for buffer in network.buffers():
        buffer.copy_(nn.functional.normalize(torch.arange(1.0, len(buffer) + 1), dim=0))
    cell = module(network, (X,))
    gradient = ms.value_and_grad(lambda x: cell(x).sum(), None, cell.trainable_params())
    for _ in range(2):
        network.zero_grad()
        loss = network(X).sum()
        loss.backward()
        found, gradients = gradient(ms.Tensor(X.numpy()))
        assert_near(found, loss, 1e-5)
        expected = dict(network.named_parameters())
        for parameter, one in zip(cell.trainable_params(), gradients, strict=True):
            assert_near(one, expected[parameter.name].grad, 1e-5)


class WritesVariable(nn.Module):
    def forward(self, x):
        y = x.sin()
        with torch.no_grad():
            y.mul_(2)
        return y * x


class WritesViewOfVariable(nn.Module):
    def forward(self, x):
        y = x.sin()
        with torch.no_grad():
            part = y[1:]
            part += 1
        return y * x


class WritesDetached(nn.Module):
    def forward(self, x):
        y = x.sin()
        part = y.detach()
        part.mul_(5)
        return y * x


class WritesVariableTo(nn.Module):
    def forward(self, x):
        with torch.no_grad():
            y = x.clone()
        y[0] = x[0] * 2
        return y * x


class AddsVariableTo(nn.Module):
    def forward(self, x):
        with torch.no_grad():
            y = x.sin()
        y.add_(x)
        return y * x


@pytest.mark.parametrize("export", [False, True])
@pytest.mark.parametrize(
    ("made", "line", "of", "operator", "by"),
    [
        (WritesVariable, 3, "with", "aten::mul_.Tensor", "without"),
        (WritesViewOfVariable, 4, "with", "aten::add_.Tensor", "without"),
        (WritesDetached, 3, "with", "aten::mul_.Tensor", "without"),
        (WritesVariableTo, 3, "without", "aten::copy_", "with"),
        (AddsVariableTo, 3, "without", "aten::add_.Tensor", "with"),
    ],
)
def test_writes_across_the_boundary_are_refused(pynative, export, made, line, of, operator, by):
    source = (torch.export.export(made(), (X,)),) if export else (made(), (X,))
    with pytest.raises(NotExportable) as error:
        module(*source)
    line += made.forward.__code__.co_firstlineno
    assert str(error.value) == (
        f"expected values that are computed {of} gradients to be written so too, got {operator} in "
        f"test_module_no_grad.py, line {line}, which writes to one {by} them, by torch.no_grad(); "
        "write to its clone()"
    )


def test_a_dropout_that_drops_nothing_is_its_input(pynative):
    class Drops(nn.Module):
        def forward(self, x):
            y = x * 2
            z = nn.functional.dropout(y, 0.5, self.training)
            z = torch.ops.aten.dropout(z, p=0.0, train=True)
            y += 1
            return z * x

    found = module(Drops().eval(), (X,))(ms.Tensor(X.numpy()))
    assert_near(found, Drops().eval()(X), 0)


def test_what_is_read_without_gradients_after_a_write_is_no_matter(pynative):
    class Own(nn.Module):
        @torch.no_grad()
        def forward(self, x):
            x = x * 2
            x += 1
            x[0] = 4
            return x

    found = module(Own(), (X,))(ms.Tensor(X.numpy()))
    assert_near(found, Own()(X), 0)

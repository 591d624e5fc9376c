"""Modules whose results have sizes that depend on values, for the tests of all hosts."""

import torch
from torch import nn

ROWS = (torch.ones(6, 4),)
COUNTS = (3, 0, 6, 1)  # rows that are chosen


class Positive(nn.Module):
    """One result."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(1.5))

    def forward(self, x):
        return x[x > 0] * self.scale


class Chosen(nn.Module):
    """Several results, some of which have a gradient, or sizes that are known."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.linspace(-1, 1, 8).reshape(4, 2))

    def forward(self, x):
        (rows,) = torch.where(x[:, 0] > 0)
        return (x[rows] @ self.weight).tanh(), rows, x.sum(0)


class Joined(nn.Module):
    """A size is a sum of others."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.linspace(-1, 1, 4))

    def forward(self, x):
        rows = (x[x[:, 0] > 0] * self.weight).sin()
        return torch.cat([x[x > 0.3] ** 2, rows.flatten(), x[0]])


class Pairs(nn.Module):
    """Sizes are multiples of another, and that of a slice."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.linspace(-1, 1, 4))

    def forward(self, x):
        kept = (x[x[:, 0] > 0] * self.weight).sin()
        return (kept.reshape(-1, 2) ** 2).sum(1), kept.flatten()[1:] ** 3


class Draws(nn.Module):
    """Random numbers and buffers that change, beside such results and of such sizes."""

    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(4)
        self.weight = nn.Parameter(torch.linspace(-1, 1, 4))

    def forward(self, x):
        x = nn.functional.dropout(self.norm(x) + x, 0.4, self.training)
        kept = x[x[:, 0] > 0]
        noise = torch.rand(3)  # the gradient of no weight needs it
        rows = nn.functional.dropout(kept * self.weight, 0.5, self.training).sin()
        return rows + torch.rand(kept.shape[0])[:, None] + noise.mean(), x * 2


class DrawsInside(Draws):
    """The same with results of known sizes."""

    def forward(self, x):
        rows, doubled = super().forward(x)
        return rows.sum(), doubled


class Padded(nn.Module):
    """Results as large as they can be, and how many rows of them count."""

    def __init__(self, most):
        super().__init__()
        self.most = most
        self.weight = nn.Parameter(torch.linspace(-1, 1, 4))

    def forward(self, x):
        kept = (x[x[:, 0] > 0] * self.weight).sin()
        count = kept.shape[0]
        torch._check(count <= self.most)
        return nn.functional.pad(kept, (0, 0, 0, self.most - count)), torch.full((), count)


def rows_above_zero(count):
    """Six rows, so many of which begin with a number above zero."""
    torch.manual_seed(11)
    x = torch.randn(6, 4)
    x[:, 0] = x[:, 0].abs() * torch.tensor([1.0] * count + [-1.0] * (6 - count))
    return x


def loss_of(results):
    """Squares of what has a gradient, in any host."""
    results = results if isinstance(results, tuple) else (results,)
    return sum((one**2).sum() for one in results if "loat" in str(one.dtype))


def slope_penalty(network, x):
    """Computes PyTorch's gradients of the square of a gradient: of `x` and of the weights."""
    (slope,) = torch.autograd.grad(loss_of(network(x)), x, create_graph=True)
    (slope**2).sum().backward()

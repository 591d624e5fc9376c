"""What the tests of modules share, whatever the host."""

import copy

import numpy as np
import torch
from torch import nn


class Network(nn.Module):
    """A convolution with statistics, attention, and trees of inputs and results."""

    def __init__(self):
        super().__init__()
        self.convolution = nn.Conv1d(3, 8, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm1d(8)
        self.attention = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.head = nn.Linear(8, 4)
        self.register_buffer("scale", torch.tensor(0.5))

    def forward(self, x, others):
        y = self.norm(self.convolution(x)).relu().transpose(1, 2)
        y = self.attention(y) * self.scale
        return {"logits": self.head(y.mean(1)), "rest": (others["bias"] * x.shape[0], [y.amax(1)])}


class Sides(nn.Module):
    """torch.cond: each side has weights, views and results of its own; one has another in it."""

    def __init__(self):
        super().__init__()
        self.near, self.far = nn.Linear(4, 4), nn.Linear(4, 4, bias=False)

    def forward(self, x):
        def grow(x):
            y = self.near(x)
            z = torch.cond(y.sum() > 3, lambda y: y.tanh(), lambda y: y.sigmoid(), (y,))
            return z.view(-1, 2, 2).transpose(1, 2).reshape(-1, 4) * y, y.mean(0)

        def shrink(x):
            return self.far(x).exp(), x.amax(0) * 2

        y, z = torch.cond(x.sum() > 0, grow, shrink, (x,))
        return (y + x).sin(), z


class WithOwnKernels(nn.Module):
    """Its operators are those of test_pytorch.so, which has to be loaded."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 4)

    def forward(self, x):
        y = torch.ops.bridge_test.leaky_relu(self.layer(x), 0.25)
        return torch.ops.bridge_test.swish(y, 1.5)


class LargeResults(nn.Module):
    """Results of 128 KiB: one is read again, one stands twice, some are views, and an input."""

    SHAPE = (256, 128)

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(self.SHAPE))

    def forward(self, x):
        read, twice, viewed = x * self.weight, x.exp() * self.weight, (x + self.weight).tanh()
        return read, read.exp() + 1, twice, twice, viewed, viewed.T, viewed[1:], x


def check_large_results(step):
    """A host's steps against PyTorch's.

    `step(network)` returns a function of an array. That returns a loss, results, and the gradients
    by the weight and by the input.
    """
    torch.manual_seed(4)
    network = LargeResults()
    run = step(copy.deepcopy(network))
    for _ in range(2):
        network.zero_grad()
        x = torch.randn(network.SHAPE, requires_grad=True)
        expected = network(x)
        loss = sum((result**2).mean() for result in expected)
        loss.backward()
        found, results, of_weight, of_x = run(x.detach().numpy())
        assert_near(found, loss, 1e-5)
        for result, known in zip(results, expected, strict=True):
            assert_near(result, known, 1e-6)
        assert_near(of_weight, network.weight.grad, 1e-5)
        assert_near(of_x, x.grad, 1e-5)


def total(results):
    loss = (results["logits"] ** 2).sum() + results["rest"][0].sum()
    return loss + (results["rest"][1][0] ** 2).sum()


def assert_near(actual, expected, limit):
    expected, actual = expected.detach().numpy(), np.asarray(actual)
    assert actual.shape == expected.shape
    worst = np.abs(actual - expected).max() / max(np.abs(expected).max(), 1e-6)
    assert worst <= limit, worst


class ChecksAlone(nn.Module):
    """Its gradient reads nothing that it computes."""

    def forward(self, x):
        torch._assert_async(x.sum() < 100, 'expected a sum below "100"\n')
        return x * x


# Inputs of the next module, by what PyTorch says of them.
REFUSED = {
    "linalg.inv: The diagonal element 1 is zero": torch.zeros(3, 3),
    "linalg.cholesky: The factorization could not be completed": -torch.eye(3),
    "Expected Tensor with single nonzero value, but got zero": torch.eye(3) * 99,
}


class Checks(nn.Module):
    """Has operators of which PyTorch makes two: one that computes, and one that checks."""

    def forward(self, x):
        torch._assert_async(x.sum() < 100)
        return torch.linalg.inv(x) + torch.linalg.cholesky(x)

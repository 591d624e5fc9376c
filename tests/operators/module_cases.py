"""What the tests of modules share, whatever the host."""

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


class WithOwnKernels(nn.Module):
    """Its operators are those of test_pytorch.so, which has to be loaded."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 4)

    def forward(self, x):
        y = torch.ops.bridge_test.leaky_relu(self.layer(x), 0.25)
        return torch.ops.bridge_test.swish(y, 1.5)


def total(results):
    loss = (results["logits"] ** 2).sum() + results["rest"][0].sum()
    return loss + (results["rest"][1][0] ** 2).sum()


def assert_near(actual, expected, limit):
    expected, actual = expected.detach().numpy(), np.asarray(actual)
    assert actual.shape == expected.shape
    worst = np.abs(actual - expected).max() / max(np.abs(expected).max(), 1e-6)
    assert worst <= limit, worst

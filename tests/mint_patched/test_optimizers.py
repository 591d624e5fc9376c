"""Optimizers of mint after install() take PyTorch's steps."""

import mindspore as ms
import numpy as np
import pytest
import torch
from checks import assert_equal
from mindspore import mint

pytestmark = pytest.mark.full

X = np.arange(24, dtype=np.float32).reshape(4, 6) / 7 - 1
GRADIENTS = [np.sin(X * i) for i in range(1, 6)]
KEYWORDS = [
    {},
    {"weight_decay": 0.1},
    {"amsgrad": True},
    {"maximize": True, "weight_decay": 0.1},
    {"lr": 0.5, "betas": (0.7, 0.8), "eps": 1e-3},
]


@pytest.mark.parametrize("keywords", KEYWORDS, ids=str)
@pytest.mark.parametrize("name", ["Adam", "AdamW"])
def test_steps_are_pytorchs_to_the_last_bit(name, keywords):
    weights = [ms.Parameter(ms.Tensor(x), name=f"w{i}") for i, x in enumerate((X, X.T.copy()))]
    same = [torch.nn.Parameter(torch.tensor(x)) for x in (X, X.T.copy())]
    of_mint = getattr(mint.optim, name)(weights, **keywords)
    of_torch = getattr(torch.optim, name)(same, **keywords)
    for x in GRADIENTS:
        # The second gradient is a view.
        of_mint((ms.Tensor(x), mint.transpose(ms.Tensor(x), 0, 1)))
        for weight, gradient in zip(same, (x, x.T.copy()), strict=True):
            weight.grad = torch.tensor(gradient)
        of_torch.step()
        assert_equal(weights, same)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("lr", [1e-3, 3e-4, 0.02])
def test_rates_are_not_rounded(lr, dtype):
    x = np.sin(np.arange(4096)).astype(dtype)
    weight, same = ms.Parameter(ms.Tensor(x), name="w"), torch.nn.Parameter(torch.tensor(x))
    of_mint, of_torch = mint.optim.AdamW([weight], lr=lr), torch.optim.AdamW([same], lr=lr)
    same.grad = torch.cos(torch.tensor(x))
    for _ in range(3):
        of_mint((ms.Tensor(same.grad.numpy()),))
        of_torch.step()
    assert_equal(weight, same)


@pytest.mark.parametrize("name", ["Adam", "AdamW"])
@pytest.mark.parametrize("dtype", [ms.float16, ms.bfloat16, ms.int32])
def test_gradients_of_another_dtype(dtype, name):
    weight, same = (ms.Parameter(ms.Tensor(X), name=name) for name in ("w", "same"))
    gradient = ms.Tensor(GRADIENTS[0]).astype(dtype)
    getattr(mint.optim, name)([weight])((gradient,))
    getattr(mint.optim, name)([same])((gradient.astype(ms.float32),))
    np.testing.assert_allclose(weight.asnumpy(), same.asnumpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["Adam", "AdamW"])
def test_groups_have_settings_of_their_own(name):
    weights = [ms.Parameter(ms.Tensor(X), name=f"w{i}") for i in range(3)]
    same = [torch.nn.Parameter(torch.tensor(X)) for _ in range(3)]

    def groups(weights):
        return [
            {"params": weights[:1], "lr": 0.1, "amsgrad": True},
            {"params": weights[1:], "weight_decay": 0.2},
        ]

    of_mint = getattr(mint.optim, name)(groups(weights))
    of_torch = getattr(torch.optim, name)(groups(same))
    for x in GRADIENTS:
        of_mint((ms.Tensor(x), ms.Tensor(x), ms.Tensor(-x)))
        for weight, gradient in zip(same, (x, x, -x), strict=True):
            weight.grad = torch.tensor(gradient)
        of_torch.step()
    assert_equal(weights, same)


@pytest.mark.parametrize("name", ["Adam", "AdamW"])
def test_steps_in_a_graph(name):
    weight, same = ms.Parameter(ms.Tensor(X), name="w"), torch.nn.Parameter(torch.tensor(X))
    of_mint = getattr(mint.optim, name)([weight], weight_decay=0.1)
    of_torch = getattr(torch.optim, name)([same], weight_decay=0.1)

    @ms.jit
    def step(gradient):
        of_mint((gradient,))
        return gradient

    for x in GRADIENTS:
        step(ms.Tensor(x))
        same.grad = torch.tensor(x)
        of_torch.step()
    assert_equal(weight, same)

"""The installed package, in each framework that is there."""

import numpy as np
import pytest

X = np.array([-1.0, 0.0, 2.0], np.float32)
SIGMOID = 1 / (1 + np.exp(-X))
SWISH, GRADIENT = X * SIGMOID, SIGMOID * (1 + X * (1 - SIGMOID))


def test_pytorch():
    torch = pytest.importorskip("torch")
    from my_ops.torch import swish

    x = torch.tensor(X, requires_grad=True)
    y = swish(x)
    y.sum().backward()
    np.testing.assert_allclose(y.detach().numpy(), SWISH, rtol=1e-6)
    np.testing.assert_allclose(x.grad.numpy(), GRADIENT, rtol=1e-6)
    torch.library.opcheck(torch.ops.my_ops.swish.default, (x,))


def test_mindspore():
    ms = pytest.importorskip("mindspore")
    from my_ops.mindspore import swish

    x = ms.Tensor(X)
    np.testing.assert_allclose(swish(x).asnumpy(), SWISH, rtol=1e-6)
    np.testing.assert_allclose(ms.grad(swish)(x).asnumpy(), GRADIENT, rtol=1e-6)

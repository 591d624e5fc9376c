"""`x[i] = y` in PyNative mode, beside other names of the memory: values and gradients."""

import mindspore as ms
import numpy as np
import pytest
import torch
from mindspore import mint  # noqa: F401  (the library's functions)

X = np.arange(12, dtype=np.float32).reshape(3, 4) / 4
Y = -X[::-1].copy()

# Each writes to x, or to a tensor that shares its memory, and keeps the result in x.
WRITES = [
    "x[1:] = 2.0",
    "x[0] = y[:1]",
    "x[...] = y",
    "x[None, 1:] = y[1:]",
    "x[x > 1] = 0.5",
    "x[[1, 0]] = x[[0, 1]]",
    "x[:, 0] = y[:, 1]; x[:, 1] = x[:, 0] * 2",
    "v = x.T; v[1:] = y.T[1:]",
    "v = x.T; v[[0, 2]] = y.T[[0, 2]]",
    "v = x.T; v[v > 1] = 2.0",
    "x.T[1:] = 2.0",
    "v = x[1:].T; v[1] = y[1:, 0]",
    "v = x[1:2]; v[0, 1:] = y[0, 1:]",
    "v = x.view(4, 3); v[1:] = 2.0",
    "v = x.view(4, 3); v[1:] = y.view(4, 3)[1:]",
    "v = x.view(4, 3); v[1:] += 2.0",
    "v = x.view(4, 3); v[1:] *= y.view(4, 3)[1:]",
    "v = x.view(4, 3)[1:]; v[0] = y[0, :3]",
    "v = x.view(4, 3); v[[0, 2]] = y.view(4, 3)[[0, 2]]",
    "v = x.view(-1); v[v > 1] = 0.5",
    "v = x.view(-1); v[::2] = y.view(-1)[1::2]",
    "v = x.reshape(4, 3); v[1:] = 2.0",
    "v = x.flatten(); v[3:5] = y.flatten()[3:5]",
    "v = x.unsqueeze(0); v[0, 1] = y[1]",
    "v = x.narrow(0, 1, 2); v[0] = y[1]",
    "v = x; x = x.view(4, 3); v[1:] = y[1:]",
    "v = x; x = x.view(4, 3); v[v > 1] = 0.5",
    "v = y * 0; w = v.view(4, 3); w[1:] = x.view(4, 3)[1:]; x = v",
]


def written(statements, x, y):
    names = {"x": x * 1.5, "y": y * 1.0}
    exec(statements, {}, names)
    return names["x"].reshape(3, 4)


def tensors(dtype):
    yield [ms.Tensor(array).astype(getattr(ms, dtype)) for array in (X, Y)]
    yield [torch.tensor(array).to(getattr(torch, dtype)).requires_grad_() for array in (X, Y)]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("statements", WRITES)
def test_what_is_written_and_its_gradients(statements, dtype):
    def loss(x, y):
        z = written(statements, x, y)
        return (z * z).sum()

    ours, theirs = tensors(dtype)
    expected = written(statements, *theirs)
    loss(*theirs).backward()
    close = {"rtol": 1e-5 if dtype == "float32" else 2e-2}
    array = written(statements, *ours).astype(ms.float32).asnumpy()
    np.testing.assert_allclose(array, expected.detach().float(), **close)
    gradients = ms.grad(loss, (0, 1))(*ours)
    for gradient, tensor in zip(gradients, theirs, strict=True):
        wanted = np.zeros((3, 4)) if tensor.grad is None else tensor.grad.float().numpy()
        np.testing.assert_allclose(gradient.astype(ms.float32).asnumpy(), wanted, **close)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("index", ["1:", "x > 1", "[0, 2]", "(slice(1, None), 0)"])
def test_writes_to_a_view_of_the_input_of_a_gradient_make_a_new_tensor(index, dtype):
    """So it is in MindSpore. PyTorch refuses them."""

    def loss(x):
        x = x.view(3, 4)
        exec(f"x[{index}] = 0.5", {}, {"x": x})
        return (x * x).sum()

    ours, theirs = tensors(dtype)
    loss(theirs[0] * 1.0).backward()
    gradient = ms.grad(loss)(ours[0]).astype(ms.float32).asnumpy()
    np.testing.assert_allclose(gradient, theirs[0].grad.float(), rtol=1e-5)
    np.testing.assert_array_equal(ours[0].astype(ms.float32).asnumpy(), X)

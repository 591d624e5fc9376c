"""What MindSpore's own functions refuse in bfloat16: parts of tensors, layers, full."""

import mindspore as ms
import numpy as np
import pytest
import torch

pytestmark = pytest.mark.full

A = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
PARTS = {
    "1": 1,
    "-1": -1,
    "1:": slice(1, None),
    ":": slice(None),
    "0:0": slice(0, 0),
    "...": ...,
    "None": None,
    "0, 1:": (0, slice(1, None)),
    "1, 1, 1": (1, 1, 1),
    ":, :2, 1:": (slice(None), slice(0, 2), slice(1, None)),
    ":, 1": (slice(None), 1),
    ":, ::2": (slice(None), slice(None, None, 2)),
    "..., 2:": (..., slice(2, None)),
    "..., 1": (..., 1),
    "0, ...": (0, ...),
    "None, :1": (None, slice(0, 1)),
    "-5:9": slice(-5, 9),
}


def ours(array):
    return ms.Tensor(array, ms.bfloat16)


def theirs(array):
    return torch.tensor(array, dtype=torch.bfloat16)


def assert_equal(result, expected, tolerance=0.0):
    assert str(result.dtype).lower() == str(expected.dtype).removeprefix("torch.")
    result, expected = result.astype(ms.float32).asnumpy(), expected.detach().float().numpy()
    assert result.shape == expected.shape
    np.testing.assert_allclose(result, expected, rtol=tolerance, atol=tolerance)


# ===--- parts ---===


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
def test_parts_and_their_gradients(part):
    x = theirs(A).requires_grad_()
    expected = x[part]
    (expected.float() * 3).sum().backward()
    assert_equal(ours(A)[part], expected)
    gradient = ms.grad(lambda x: (x[part].float() * 3).sum())(ours(A))
    assert_equal(gradient, x.grad)


@pytest.mark.parametrize("kind", ["number", "tensor", "row", "float32"])
@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
def test_parts_are_written(part, kind):
    shape = A[part].shape
    array = {"row": np.float32(7), "number": 7.5}.get(kind, -np.ones(shape, np.float32))

    def write(x, tensor):
        x[part] = array if kind == "number" else tensor(array)
        return x

    is_wide = kind == "float32"
    assert_equal(
        write(ours(A), ms.Tensor if is_wide else ours),
        write(theirs(A), torch.tensor if is_wide else theirs),
    )


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
def test_what_is_written_has_a_gradient(part):
    value = -np.ones(A[part].shape, np.float32)

    def total(x, value):
        y = x * 2
        y[part] = value
        return (y.float() * 3).sum()

    of_x, of_value = ms.grad(total, (0, 1))(ours(A), ours(value))
    expected = 6 * np.ones_like(A)
    expected[part] = 0
    assert_equal(of_x, theirs(expected))
    # MindSpore leaves dimensions of size 1 before, in float32 too.
    assert_equal(of_value.reshape(value.shape), theirs(3 * np.ones_like(value)))


def test_parts_of_parts_are_written():
    def write(x):
        x[0][1:] = 100
        x[1:][0, ..., 2] += 10
        part = x[:, ::2]
        part[1] = -1
        x[x.shape[0] - 1].mul_(2)
        return x

    assert_equal(write(ours(A)), write(theirs(A)))

    def total(x):
        y = x * 1
        y[0][1:] = 100
        return (y.float() * 3).sum()

    expected = 3 * np.ones_like(A)
    expected[0][1:] = 0
    assert_equal(ms.grad(total)(ours(A)), theirs(expected))


def test_parts_that_are_none_are_refused():
    for part in (2, -3, (0, 0, 4), (0, 0, 0, 0)):
        with pytest.raises(IndexError):
            ours(A)[part]


# ===--- layers, full ---===


@pytest.mark.parametrize("axes", [(-1, -1), (1, 1), (1, 2), (2, 1)])
def test_layer_normalisation(axes):
    x = np.sin(A)
    weight, bias = np.cos(x[0]), x[1]
    if axes[1] in (-1, 2):
        weight, bias = weight[0], bias[0]
    of_norm = (-1,) if axes[0] in (-1, 2) else (-2, -1)
    x, weight, bias = (theirs(array).requires_grad_() for array in (x, weight, bias))
    mean = x.float().mean(of_norm, keepdim=True)
    variance = x.float().var(of_norm, correction=0, keepdim=True)
    expected = (x.float() - mean) * (variance + 1e-5).rsqrt() * weight.float() + bias.float()
    (expected.bfloat16().float() ** 2).sum().backward()
    inputs = [ours(tensor.detach().float().numpy()) for tensor in (x, weight, bias)]
    normalise = ms.ops.LayerNorm(*axes, 1e-5)
    output, of_mean, of_variance = normalise(*inputs)
    assert_equal(output, expected.bfloat16(), 1e-2)
    assert_equal(of_mean, mean, 1e-5)
    assert_equal(of_variance, variance, 1e-5)
    gradients = ms.grad(lambda *inputs: (normalise(*inputs)[0].float() ** 2).sum(), (0, 1, 2))
    for gradient, tensor in zip(gradients(*inputs), (x, weight, bias), strict=True):
        assert_equal(gradient, tensor.grad, 5e-2)


def test_layer_of_layer_normalisation():
    x = np.sin(A)
    layer = ms.nn.LayerNorm([4], dtype=ms.bfloat16)
    expected = torch.nn.functional.layer_norm(theirs(x), (4,), eps=1e-7)
    assert_equal(layer(ours(x)), expected, 1e-2)


@pytest.mark.parametrize("kind", ["classes", "probabilities"])
def test_layer_of_cross_entropy(kind):
    logits = np.sin(A[0])
    labels = np.array([3, 0, 1], np.int32) if kind == "classes" else np.abs(np.cos(A[1]))
    loss = ms.nn.CrossEntropyLoss()
    x = theirs(logits).requires_grad_()
    target = torch.tensor(labels).long() if kind == "classes" else theirs(labels)
    expected = torch.nn.functional.cross_entropy(x, target)
    expected.backward()
    label = ms.Tensor(labels) if kind == "classes" else ours(labels)
    assert_equal(loss(ours(logits), label), expected, 1e-2)
    assert_equal(ms.grad(loss)(ours(logits), label), x.grad, 1e-2)


@pytest.mark.parametrize("full", [ms.mint.full, ms.ops.full])
def test_full_of_a_tensor(full):
    value = torch.finfo(torch.bfloat16).min
    result = full((2, 3), ours(value), dtype=ms.bfloat16)
    assert_equal(result, torch.full((2, 3), value, dtype=torch.bfloat16))


@pytest.mark.parametrize("whole", [..., ()], ids=["...", "()"])
def test_a_part_that_is_the_whole_is_written_in_a_gradient(whole):
    def total(x):
        y = x * 1
        part = y[whole]
        part[0] = 5
        return y.float().sum()

    gradient = ms.grad(total)(ours(np.array([1.0, 2.0], np.float32)))
    np.testing.assert_array_equal(gradient.float().asnumpy(), [0, 1])

"""Gradients of Parameters that a graph takes of a network which writes to parts of tensors."""

import mindspore as ms
import numpy as np
import pytest
import torch
from mindspore import mint, nn, ops

from aten_bridge.mint import _graph_writes

pytestmark = pytest.mark.full

W = np.arange(6, dtype=np.float32).reshape(2, 3) + 1
X = np.arange(8, dtype=np.float32).reshape(4, 2) / 4
ROWS = np.array([2, 0])
RATE = 0.25


@pytest.fixture(autouse=True)
def _graph_mode():
    before = ms.get_context("mode")
    ms.set_context(mode=ms.GRAPH_MODE)
    yield
    ms.set_context(mode=before)


def augmented(x, i):
    x[:, 1:] *= 2
    return x


def assigned(x, i):
    x[0] = x[1] * 3
    x[1:3, 0] = 5.0
    return x


def by_tensor(x, i):
    x[i] *= 3.0
    x[i] = x[1:3] * 2
    return x


def in_a_loop(x, i):
    for k in range(3):
        x[k] += x[k + 1]
    return x


def in_a_branch(x, i):
    if x[0, 0] > -100:
        x[1:] -= 0.5
    return x


def of_another_size(x, i):
    x.view(3, 4)[1:] *= 2.0
    return x


def in_a_list(x, i):
    x[:, 1:] *= 2
    parts = [x, i]
    parts[0] *= 3.0
    return x


WRITES = (augmented, assigned, by_tensor, in_a_loop, in_a_branch, of_another_size, in_a_list)


class Network(nn.Cell):
    def __init__(self, write):
        super().__init__()
        self.write = write
        self.w = ms.Parameter(ms.Tensor(W), name="w")
        self.runs = ms.Parameter(ms.Tensor(np.zeros(1, np.float32)), "runs", requires_grad=False)
        self.rows = ms.Tensor(ROWS)

    def construct(self, x):
        self.runs += 1
        x = self.write(mint.matmul(x, self.w), self.rows)
        return (x * x).sum()


def expected(write):
    """The loss, and its gradients by the input and the weight."""
    x, w = torch.tensor(X, requires_grad=True), torch.tensor(W, requires_grad=True)
    y = write(x @ w, torch.tensor(ROWS))
    loss = (y * y).sum()
    loss.backward()
    return loss.item(), x.grad.numpy(), w.grad.numpy()


def by_value_and_grad(network):
    return ms.value_and_grad(network, None, [network.w])(ms.Tensor(X))[1]


def by_grad_in_jit(network):
    return ms.jit(ms.grad(network, None, [network.w]))(ms.Tensor(X))


def by_grad_operation(network):
    weights = ms.ParameterTuple([network.w])
    return ops.GradOperation(get_by_list=True)(network, weights)(ms.Tensor(X))


def by_a_step(network):
    step = nn.TrainOneStepCell(network, nn.SGD([network.w], RATE))
    step(ms.Tensor(X))
    return [ms.Tensor((W - network.w.asnumpy()) / RATE)]


WAYS = (by_value_and_grad, by_grad_in_jit, by_grad_operation, by_a_step)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("write", WRITES)
def test_gradients_of_parameters(write, way):
    network = Network(write)
    for count in (1, 2) if way is not by_a_step else (1,):
        (gradient,) = way(network)
        np.testing.assert_allclose(gradient.asnumpy(), expected(write)[2], rtol=1e-5)
        assert network.runs.asnumpy() == count


@pytest.mark.parametrize("write", WRITES)
def test_gradients_of_inputs_beside_parameters(write):
    network, (loss, of_input, of_weight) = Network(write), expected(write)
    value, gradients = ms.value_and_grad(network, 0, [network.w])(ms.Tensor(X))
    np.testing.assert_allclose(value.asnumpy(), loss, rtol=1e-6)
    np.testing.assert_allclose(gradients[0].asnumpy(), of_input, rtol=1e-5)
    np.testing.assert_allclose(gradients[1][0].asnumpy(), of_weight, rtol=1e-5)
    np.testing.assert_allclose(
        ms.grad(network, 0)(ms.Tensor(X)).asnumpy(), of_input, rtol=1e-5, atol=1e-6
    )


def test_what_mindspore_says_where_its_compiler_breaks_off(monkeypatch):
    """It is the phrase by which breaks_off() knows the error."""
    found = []
    monkeypatch.setattr(_graph_writes, "breaks_off", found.append)  # whose None is no: it is raised
    with pytest.raises(RuntimeError):
        by_a_step(Network(by_tensor))
    monkeypatch.undo()
    (error,) = found
    assert _graph_writes.breaks_off(error), str(error)
    assert not _graph_writes.breaks_off(RuntimeError(str(error).partition("\n")[0]))


def test_steps_of_an_optimizer():
    network = Network(augmented)
    step = nn.TrainOneStepCell(network, nn.SGD([network.w], 0.001))
    w = torch.tensor(W, requires_grad=True)
    optimizer = torch.optim.SGD([w], 0.001)
    for count in (1, 2, 3):
        y = augmented(torch.tensor(X) @ w, None)
        loss = (y * y).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        np.testing.assert_allclose(step(ms.Tensor(X)).asnumpy(), loss.item(), rtol=1e-5)
        np.testing.assert_allclose(network.w.asnumpy(), w.detach().numpy(), rtol=1e-5)
        assert network.runs.asnumpy() == count


class Outer(nn.Cell):
    """Calls another cell in a loop."""

    def __init__(self):
        super().__init__()
        self.inner = Network(augmented)

    def construct(self, x):
        loss = self.inner(x)
        for k in range(2):
            loss = loss + self.inner(x * k)
        return loss


@pytest.mark.parametrize("recompute", [False, True])
def test_cells_in_cells(recompute):
    network = Outer()
    if recompute:
        network.inner.recompute()
    weight = network.inner.w
    _, (gradient,) = ms.value_and_grad(network, None, [weight])(ms.Tensor(X))
    w = torch.tensor(W, requires_grad=True)
    for k in (1, 0, 1):
        y = augmented((torch.tensor(X) * k) @ w, None)
        (y * y).sum().backward()
    np.testing.assert_allclose(gradient.asnumpy(), w.grad.numpy(), rtol=1e-5)
    assert network.inner.runs.asnumpy() == 3


# ===--- refused ---===

BESIDE_VIEWS = (
    "{place}: expected a tensor without views, got a view, or a tensor that has one, in a function "
    "that reads Parameters and that a graph differentiates, of which MindSpore has wrong "
    "gradients; write parts by `x[1:] = x[1:] + 1`, use `x.clone()` for another tensor, or take "
    "the gradients in PyNative mode, of the graph (`ms.jit`)"
)


def transposed(x, i):
    x.T.mul_(2.0)
    return x


def beside_a_view(x, i):
    v = x.T
    x.mul_(2.0)
    return v


def of_a_part(x, i):
    x[1:].mul_(2.0)
    return x


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("write", "line", "text"),
    [
        (transposed, "x.T.mul_(2.0)", BESIDE_VIEWS),
        (beside_a_view, "x.mul_(2.0)", BESIDE_VIEWS),
        (of_a_part, "x[1:].mul_(2.0)", BESIDE_VIEWS),
    ],
)
def test_what_would_have_wrong_gradients_is_refused(write, line, text, way):
    start = write.__code__.co_firstlineno
    number = start + (2 if write is beside_a_view else 1)
    place = f"{__file__}:{number}: `{line}`"
    with pytest.raises(RuntimeError) as error:
        way(Network(write))
    assert str(error.value) == text.format(place=place)


@pytest.mark.parametrize("write", [*WRITES, transposed, beside_a_view, of_a_part])
def test_the_gradients_of_a_graph_need_no_copies(write):
    ms.set_context(mode=ms.PYNATIVE_MODE)
    network = Network(write)
    graph = ms.jit(network)
    _, (gradient,) = ms.value_and_grad(lambda x: graph(x), None, [network.w])(ms.Tensor(X))
    np.testing.assert_allclose(gradient.asnumpy(), expected(write)[2], rtol=1e-5)


# ===--- functions in functions, whose gradients were by tensors of the outer one ---===


@ms.jit
def augmented_in_a_closure(x, y):
    def inner(a):
        b = a * 1.5
        b[1:] *= y[1:]
        return (b * b).sum()

    return ms.grad(inner)(x)


@ms.jit
def columns_in_a_closure(x, y):
    def inner(a):
        b = a * 1.5
        b[:, 1:] *= y[:, 1:]
        return (b * b).sum()

    return ms.grad(inner)(x)


@ms.jit
def assigned_in_a_closure(x, y):
    def inner(a):
        b = a * 1.5
        b[1:] = a[1:] * y[1:]
        return (b * b).sum()

    return ms.grad(inner)(x)


@ms.jit
def augmented_with_inputs(x, y):
    def inner(a, y):
        b = a * 1.5
        b[1:] *= y[1:]
        return (b * b).sum()

    return ms.grad(inner)(x, y)


@pytest.mark.parametrize(
    ("function", "factor"),
    [(augmented_in_a_closure, 1.5), (assigned_in_a_closure, 1.0), (augmented_with_inputs, 1.5)],
)
def test_functions_in_functions(function, factor):
    y = 10 * X
    expected = 2 * X * np.concatenate([np.full_like(X[:1], 1.5), factor * y[1:]]) ** 2
    gradient = function(ms.Tensor(X), ms.Tensor(y))
    np.testing.assert_allclose(gradient.asnumpy(), expected, rtol=1e-5)


def test_a_write_to_a_view_in_a_closure_is_refused_for_each_shape():
    line = columns_in_a_closure.__wrapped__.__code__.co_firstlineno + 4
    for rows in (X, X[:2]):
        with pytest.raises(RuntimeError) as error:
            columns_in_a_closure(ms.Tensor(rows), ms.Tensor(rows))
        assert str(error.value) == (
            f"{__file__}:{line}: `b[:, 1:] *= y[:, 1:]`: expected a tensor without views, got a "
            "view, or a tensor that has one, in a function that reads tensors of the function "
            "around it and that a graph differentiates, of which MindSpore has wrong gradients; "
            "pass them as inputs, write parts by `x[1:] = x[1:] + 1`, use `x.clone()` for another "
            "tensor, or take the gradients in PyNative mode, of the graph (`ms.jit`)"
        )

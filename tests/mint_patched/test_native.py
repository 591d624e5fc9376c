"""What PyNative mode does in one call of the native caller, with PyTorch's results."""

from functools import partial

import mindspore as ms
import numpy as np
import pytest
import torch
from checks import assert_equal
from mindspore import mint

from aten_bridge.mindspore import native_caller, operator
from aten_bridge.mint import _einsum, _indexing, _native

pytestmark = pytest.mark.skipif(not native_caller(), reason=native_caller().reason)

X = np.random.default_rng(0).standard_normal((3, 4, 5, 6)).astype(np.float32)
OPERANDS = {
    "one": np.array([0, 2]),
    "two": np.array([[0, 1], [2, -1]]),
    "narrow": np.array([2, 0], np.int32),
    "zero": np.array(1),
    "none": np.array([], np.int64),
    "mask": X[0, :, :, 0] > 0,
    "row": X[:, 0, 0, 0] > 0,
}
INDICES = [
    *("two", "one, one", "one, one, one, one", "narrow", "zero", "none", "row", "two, ..."),
    *(":, two", "..., two", ":, zero", "..., zero, one", "one, ..., one", "one, :, one"),
    *("0, two", "0, :, two", "1, ..., one", "-1, one", "two, 0", "one, 0, one"),
    *(":, mask", "0, mask"),
    *("None, two", "two, None", "None, ..., one, None", "1:, one", "::2, one, 1:3", ":0, one"),
]


def operands(framework):
    make = ms.Tensor if framework is ms else torch.tensor
    return {name: make(value) for name, value in OPERANDS.items()}


def taking(framework, index):
    """A function of a tensor: what the index names in it."""
    return eval(f"lambda x: x[{index}]", operands(framework))


def putting(framework, index):
    """A function of a tensor and of what is written into twice the tensor."""
    names = operands(framework)
    exec(f"def write(x, value):\n    y = x * 2\n    y[{index}] = value\n    return y\n", names)
    return names["write"]


def assert_like_pytorch(of_mint, of_torch, *arrays):
    """The same result, and gradients of each tensor, to the last bit."""
    tensors = [torch.tensor(array, requires_grad=True) for array in arrays]
    result = of_torch(*tensors)
    weights = torch.arange(result.numel(), dtype=torch.float32).reshape(result.shape)
    (result * weights).sum().backward()
    inputs, factor = [ms.Tensor(array) for array in arrays], ms.Tensor(weights.numpy())
    assert_equal(of_mint(*inputs), result)
    for place, tensor in enumerate(tensors):
        gradient = ms.grad(lambda *x: (of_mint(*x) * factor).sum(), place)(*inputs)
        assert_equal(gradient, tensor.grad)


def is_one_call(function, monkeypatch):
    """Whether the function calls an operator by name."""
    calls = []
    by_name = _native.by_name
    for module in (_indexing, _einsum):
        monkeypatch.setattr(module, "by_name", lambda *a, **k: calls.append(a) or by_name(*a, **k))
    function()
    return len(calls) == 1


@pytest.mark.parametrize("index", INDICES)
def test_what_tensors_name(index, monkeypatch):
    assert_like_pytorch(taking(ms, index), taking(torch, index), X)
    assert is_one_call(lambda: taking(ms, index)(ms.Tensor(X)), monkeypatch)


@pytest.mark.parametrize("index", INDICES)
def test_what_is_written_to_what_tensors_name(index, monkeypatch):
    shape = taking(torch, index)(torch.tensor(X)).shape
    values = np.sin(np.arange(np.prod(shape), dtype=np.float32)).reshape(shape)
    of_mint, of_torch = putting(ms, index), putting(torch, index)
    assert_like_pytorch(of_mint, of_torch, X, values)
    if 0 not in shape:
        assert_like_pytorch(of_mint, of_torch, X, values.reshape(1, 1, *shape))
        assert_like_pytorch(of_mint, of_torch, X, values.reshape(-1)[0])
        assert is_one_call(lambda: of_mint(ms.Tensor(X), ms.Tensor(values)), monkeypatch)
    for number in (2, 0.5):
        functions = (partial(function, value=number) for function in (of_mint, of_torch))
        assert_like_pytorch(*functions, X)


def test_values_of_another_dtype_are_converted():
    x, same = ms.Tensor(X), torch.tensor(X)
    x[ms.Tensor([0, 2])] = ms.Tensor(np.arange(6))
    same[[0, 2]] = torch.arange(6, dtype=torch.float32)
    assert_equal(x, same)


def test_what_is_taken_from_and_what_is_written_may_change_afterwards():
    def sums(x, value, index):
        y, v = x * 1, value * 1
        taken = y[index]
        y[index] = v
        y += 1
        v += 1
        return (y * y).sum() + (taken * taken).sum() + v.sum()

    arrays = X[0, 0], X[0, 0, :2] + 1
    tensors = [torch.tensor(array, requires_grad=True) for array in arrays]
    sums(*tensors, torch.tensor([0, 2])).backward()
    for place, tensor in enumerate(tensors):
        inputs = [ms.Tensor(array) for array in arrays]
        gradient = ms.grad(lambda *x: sums(*x, ms.Tensor([0, 2])), place)(*inputs)
        assert_equal(gradient, tensor.grad, 1e-6)


def test_gradients_of_gradients():
    index = OPERANDS["two"]

    def slope(grad, index):
        def cubes(x):
            y = x * 1
            y[index] = x[:1] * x[:1]
            return (y * y * y).sum() + (x[index] ** 3).sum()

        return lambda x: (grad(cubes)(x) ** 2).sum()

    x, same = X[0, :, :2, :2].copy(), torch.tensor(X[0, :, :2, :2], requires_grad=True)

    def of_torch(function):
        return lambda x: torch.autograd.grad(function(x), x, create_graph=True)[0]

    slope(of_torch, torch.tensor(index))(same).backward()
    gradient = ms.grad(slope(ms.grad, ms.Tensor(index)))(ms.Tensor(x))
    assert_equal(gradient, same.grad, 1e-4)


def test_a_view_is_written_by_way_of_tensors():
    x, same = ms.Tensor(X), torch.tensor(X)
    x[1][:, ms.Tensor([0, 2])] = 0
    same[1][:, [0, 2]] = 0
    assert_equal(x, same)


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk->ik", [(3, 4), (4, 5)]),
        ("bij,bkj", [(2, 3, 4), (2, 5, 4)]),
        ("...ij,jk->...ki", [(2, 2, 3, 4), (4, 5)]),
        ("i,j,k->kij", [(2,), (3,), (4,)]),
        ("bij,bjk->bik", [(1, 3, 4), (5, 4, 2)]),
    ],
)
def test_sums_of_products(equation, shapes, monkeypatch):
    arrays = [
        np.sin(np.arange(np.prod(shape), dtype=np.float32).reshape(shape)) for shape in shapes
    ]

    def of_mint(*x):
        return mint.einsum(equation, *x)

    assert_like_pytorch(of_mint, lambda *x: torch.einsum(equation, *x), *arrays)
    assert is_one_call(lambda: of_mint(*map(ms.Tensor, arrays)), monkeypatch)


@pytest.mark.parametrize("equation", ["ij,k->k", "ij,k->ik", "ij,j->"])
def test_an_operand_that_the_gradient_does_not_need_may_change(equation):
    def sums(einsum, x, y):
        z = x * 1
        product = einsum(equation, z, y)
        z += 1
        return product.sum()

    x, y = X[0, 0, :2, :5], X[0, 0, 0, :5]
    same = torch.tensor(x, requires_grad=True)
    sums(torch.einsum, same, torch.tensor(y)).backward()
    gradient = ms.grad(lambda x: sums(mint.einsum, x, ms.Tensor(y)))(ms.Tensor(x))
    assert_equal(gradient, same.grad, 1e-6)


class Product(ms.nn.Cell):
    def construct(self, x):
        return mint.einsum("ij,kj->ik", x, x)


def test_automatic_mixed_precision_reads_what_calls_operators(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # MindSpore writes its source there
    cell = ms.amp.auto_mixed_precision(Product(), "O1", ms.float16)
    assert_equal(cell(ms.Tensor(X[0, 0])), torch.tensor(X[0, 0] @ X[0, 0].T), 1e-2)


def test_tensors_of_rank_0_beside_others_are_numbers():
    zero, one = ms.Tensor(1), ms.Tensor(OPERANDS["one"])
    x, same = ms.Tensor(X), torch.tensor(X)
    expected = same[torch.tensor(1), :, torch.tensor([0, 2])]
    assert_equal(x[zero, :, one], expected)
    x[zero, :, one] = ms.Tensor(expected.numpy() + 1)
    same[torch.tensor(1), :, torch.tensor([0, 2])] = expected + 1
    assert_equal(x, same)


def test_a_queued_call_ends_before_its_tensors_get_other_values():
    step = mint.optim.Adam([ms.Parameter(ms.Tensor(np.zeros(1000, np.float32)), name="p")], lr=0.1)
    gradients, seven = (ms.Tensor(np.ones(1000, np.float32)),), np.full(1000, 7, np.float32)
    for _ in range(100):
        step(gradients)
        step.parameters[0].set_data(ms.Tensor(seven))
        assert_equal(step.parameters[0], torch.tensor(seven))


def test_a_short_kernel_says_what_failed_before_it():
    relu, places = operator("aten::relu"), ms.Tensor([0, 9])
    x = ms.Tensor(X[0, 0])
    for _ in range(20):
        with pytest.raises(RuntimeError, match="index 9 is out of bounds"):
            relu(relu(mint.mul(x[places], 2))).asnumpy()


def test_graphs_have_mindspores_way(monkeypatch):
    @ms.jit
    def product(x, y):
        return mint.einsum("ij,jk->ik", x, y)

    x = ms.Tensor(X[0, 0])
    assert not is_one_call(lambda: product(x, x.T), monkeypatch)
    assert_equal(product(x, x.T), torch.tensor(X[0, 0]) @ torch.tensor(X[0, 0]).T, 1e-6)


def test_views_are_copied_before_a_short_kernel_runs():
    """MindSpore queues the copy where mint has kernels, and the caller calls short ones at once."""
    relu = operator("aten::relu")
    for number in range(300):
        x = ms.Tensor(X[0, 0] + number).T
        ms.runtime.synchronize()
        assert_equal(relu(x), torch.tensor(X[0, 0] + number).relu().T)

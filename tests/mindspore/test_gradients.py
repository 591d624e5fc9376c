"""Gradient kernels of ATEN_BRIDGE_EXPORT_GRAD in MindSpore, against PyTorch's autograd."""

import functools
from collections.abc import Callable
from types import MappingProxyType
from typing import NamedTuple

import mindspore as ms
import numpy as np
import pytest
import torch
from host import BUILD, Net, assert_same, custom, error_text
from mindspore import nn, ops
from torch.nn import functional

from aten_bridge.mindspore import kernel

GRADIENTS = BUILD / "tests/test_gradients.so"

both_modes = pytest.mark.usefixtures("mode")


def graded(name, grad=None, **attributes):
    return kernel(f"{GRADIENTS}:{name}", grad=grad or f"{name}Grad", **attributes)


# ===--- values ---===


def real(*shape):
    """Stands for random numbers of this shape and of the dtype that is tested."""
    return shape


def random_values(shape, dtype, seed):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def made(inputs, dtype):
    """The inputs of a case: arrays, or None."""
    arrays = []
    for i, given in enumerate(inputs):
        if isinstance(given, tuple):
            given = random_values(given, dtype, i)
        elif given is not None and given.dtype.kind == "f":
            given = given.astype(dtype)
        arrays.append(given)
    return arrays


class Case(NamedTuple):
    name: str
    reference: Callable  # takes torch tensors and the attributes
    inputs: tuple
    attributes: dict = MappingProxyType({})


def layer_norm(x, weight, bias, eps):
    return functional.layer_norm(x, x.shape[-1:], weight, bias, eps)


def avg_pool2d(x, kernel_size, count_include_pad):
    return functional.avg_pool2d(x, kernel_size, 2, 1, count_include_pad=count_include_pad)


def cross_entropy(x, labels, weight, **options):
    # PyTorch has no derivative for the weight; the kernel says that it is zero.
    return functional.cross_entropy(
        x, labels, None if weight is None else weight.detach(), **options
    )


def upsample(x, size, align_corners):
    return functional.interpolate(x, size, mode="bilinear", align_corners=align_corners)


def embedding(weight, index, padding_index=None, sparse=False):
    return functional.embedding(index, weight, padding_index)


INDEX = np.array([[0, 1], [3, 0]])
LABELS = np.array([0, 2, -100, 1])

# All are exactly what PyTorch gives in the same process: it is the same library, with the same
# operators in the same order.
CASES = [
    Case("LeakyRelu", functional.leaky_relu, (real(3, 4),), {"negative_slope": 0.2}),
    Case("Elu", functional.elu, (real(7),), {"alpha": 1.5}),
    Case("Gelu", functional.gelu, (real(2, 3, 4),)),
    Case("Gelu", functional.gelu, (real(5, 9),), {"approximate": "tanh"}),
    Case("Softplus", functional.softplus, (real(4, 5),), {"beta": 2, "threshold": 1.5}),
    Case("Softmax", functional.softmax, (real(3, 2),), {"dim": 0}),
    Case(
        "Conv2d",
        functional.conv2d,
        (real(2, 4, 5, 4), real(6, 2, 3, 2), real(6)),
        {"stride": [2, 1], "groups": 2},
    ),
    Case(
        "Conv2d",
        functional.conv2d,
        (real(1, 2, 4, 6), real(3, 2, 3, 3), None),
        {"padding": [1, 1]},
    ),
    Case("LayerNorm", layer_norm, (real(3, 2, 5), real(5), real(5)), {"eps": 0.01}),
    Case("LayerNorm", layer_norm, (real(3, 5), None, real(5)), {"eps": 0.01}),
    Case("LayerNorm", layer_norm, (real(3, 5), None, None), {"eps": 0.01}),
    Case(
        "GroupNorm",
        lambda x, weight, bias, groups: functional.group_norm(x, groups, weight, bias),
        (real(2, 4, 3), real(4), real(4)),
        {"groups": 2},
    ),
    Case(
        "AvgPool2d",
        avg_pool2d,
        (real(1, 2, 5, 6),),
        {"kernel_size": [3, 2], "count_include_pad": False},
    ),
    Case("MaxPool2d", functional.max_pool2d, (real(2, 2, 4, 6),), {"kernel_size": [2, 3]}),
    Case(
        "AdaptiveAvgPool2d",
        lambda x, size: functional.adaptive_avg_pool2d(x, size),
        (real(1, 2, 5, 5),),
        {"size": [2, 3]},
    ),
    Case("HuberLoss", functional.huber_loss, (real(3, 4), real(3, 4)), {"delta": 0.5}),
    Case("CrossEntropy", cross_entropy, (real(4, 3), LABELS, None), {"label_smoothing": 0.1}),
    Case(
        "CrossEntropy",
        cross_entropy,
        (real(4, 3), LABELS[[0, 1, 3, 3]], np.array([0.5, 2.0, 3.0])),
        {"ignore_index": 2},
    ),
    Case("Upsample", upsample, (real(1, 2, 3, 2),), {"size": [5, 3], "align_corners": True}),
    Case(
        "GridSample",
        functional.grid_sample,
        (real(1, 2, 4, 4), real(1, 3, 2, 2)),
        {"align_corners": True},
    ),
    Case("Matmul", torch.matmul, (real(2, 3, 4), real(4, 5))),
    Case(
        "Addmm",
        torch.addmm,
        (real(2, 3), real(2, 4), real(4, 3)),
        {"beta": 0.5, "alpha": 3.0},
    ),
    Case("Embedding", embedding, (real(4, 3), INDEX), {"padding_index": 1}),
    Case("Embedding", embedding, (real(4, 3), INDEX.astype(np.int32)), {"sparse": True}),
    Case(
        "IndexSelect",
        lambda x, index, dim: torch.index_select(x, dim, index),
        (real(2, 4), np.array([0, 0, 2], np.int32)),
        {"dim": 1},
    ),
    Case("Cumsum", torch.cumsum, (real(2, 5),), {"dim": 1}),
    Case("Topk", lambda x, k: torch.topk(x, k).values, (real(3, 5),), {"k": 2}),
    Case(
        "Cat",
        lambda *tensors, dim: torch.cat(tensors, dim),
        (real(2, 1), real(2, 3), real(2, 2)),
        {"dim": 1},
    ),
    Case("Cube", lambda x: x * x * x, (real(2, 3),)),
]


class Weighed(nn.Cell):
    """The weighted sum of an operator's first output, and the output."""

    def __init__(self, operator, weights):
        super().__init__()
        self.operator = operator
        self.weights = weights

    def construct(self, *inputs):
        y = self.operator(*inputs)
        if isinstance(y, tuple):
            y = y[0]
        return (y * self.weights).sum(), y


def as_tuple(value):
    return value if isinstance(value, tuple) else (value,)


def as_tensor(array):
    return None if array is None else ms.Tensor(array)


@both_modes
@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("case", CASES, ids=[f"{i}-{case.name}" for i, case in enumerate(CASES)])
def test_value_and_gradients_are_pytorchs(case, dtype):
    inputs = made(case.inputs, dtype)
    tensors = [None if x is None else torch.tensor(x) for x in inputs]
    places = [i for i, x in enumerate(inputs) if x is not None and x.dtype == dtype]
    leaves = [tensors[i].requires_grad_() for i in places]
    y = case.reference(*tensors, **case.attributes)
    weights = random_values(y.shape, dtype, 100)
    loss = (y * torch.from_numpy(weights)).sum()
    expected = torch.autograd.grad(loss, leaves, materialize_grads=True)

    net = Weighed(graded(case.name, **case.attributes), ms.Tensor(weights))
    step = ms.value_and_grad(net, tuple(places), has_aux=True)
    (_, value), found = step(*map(as_tensor, inputs))
    assert_same(value, y.detach())
    for gradient, wanted in zip(as_tuple(found), expected, strict=True):
        assert_same(gradient, wanted)


# ===--- inputs, outputs and ways to ask ---===

X = ms.Tensor([-1, 2, -4], ms.float32)
Y = ms.Tensor([10, 20, 30], ms.float32)
Z = ms.Tensor([0.5, -3, 0.25], ms.float32)
ROWS = ms.Tensor([[-1, 2, -4], [4, -5, 6]], ms.float32)


def floats(*values):
    return np.array(values, np.float32)


class Combined(nn.Cell):
    """A network of one operator: what `combine` makes of the operator and the inputs."""

    def __init__(self, operator, combine):
        super().__init__()
        self.operator = operator
        self.combine = combine

    def construct(self, *inputs):
        return self.combine(self.operator, *inputs)


def torch_gradients(function, *inputs):
    """PyTorch's, of the sum of what the function returns."""
    leaves = [torch.from_numpy(x.asnumpy()).requires_grad_() for x in inputs]
    return torch.autograd.grad(function(*leaves).sum(), leaves, materialize_grads=True)


def assert_gradients(operator, reference, combine, *inputs):
    """The gradients of what `combine` makes of the operator, and of a function of PyTorch's.

    Both may have 0.0 for -0.0: of an output that is not used MindSpore gives the kernel zeros, and
    PyTorch nothing.
    """
    found = ms.grad(Combined(operator, combine), tuple(range(len(inputs))))(*inputs)
    expected = torch_gradients(functools.partial(combine, reference), *inputs)
    for gradient, wanted in zip(as_tuple(found), expected, strict=True):
        np.testing.assert_array_equal(gradient.asnumpy(), wanted.numpy(), strict=True)


def everything(x, mask, *rest):
    """In PyTorch what the kernel Everything does."""
    *arguments, bias, factor = rest
    if isinstance(factor, torch.Tensor):
        factor = factor.detach()  # numbers have no gradient
    result = torch.where(mask, x, -x) * factor
    for argument in arguments:
        for tensor in argument if isinstance(argument, tuple) else (argument,):
            result = result + tensor * tensor
    return (result if bias is None else result + bias), x * 2


def both_outputs(everything, x, y, z):
    total, doubled = everything(x, x > 0, y, z, x, 3.0)
    return total * total - 3 * doubled


def first_output(everything, x, y, z):
    return everything(x, y > z, y, z, x, 3.0)[0]


def second_output(everything, x, y, z):
    return everything(x, y > z, y, z, x, 3.0)[1]


def no_bias(everything, x, y, z):
    total, doubled = everything(x, y > z, (y, z), None, 3)
    return total * doubled


def no_list(everything, x, y, z):
    return everything(x, x > 0, y, -2.0)[0] * z


def tuple_of_one(everything, x, y, z):
    return everything(x, x > 0, (y,), z, 3.0)[0]


def number_of_a_tensor(everything, x, y, z):
    return everything(x, x > 0, y, z, x[1])[0]


@both_modes
@pytest.mark.parametrize(
    "combine",
    [
        both_outputs,
        first_output,
        second_output,
        no_bias,
        no_list,
        tuple_of_one,
        number_of_a_tensor,
    ],
)
def test_gradients_of_every_kind_of_input_and_output(combine):
    assert_gradients(graded("Everything"), everything, combine, X, Y, Z)


def torch_cat(*arguments):
    return torch.cat(arguments[0] if isinstance(arguments[0], tuple) else arguments)


def cat_of_one(cat, x, y):
    return cat(x) * y


def cat_of_a_tuple_of_one(cat, x, y):
    return cat((x,)) * y


def cat_of_several(cat, x, y):
    return cat(x, y) * cat((y, x)) + cat(x, y, x)[3:] - cat((y, y, x))[:6]


@both_modes
@pytest.mark.parametrize("combine", [cat_of_one, cat_of_a_tuple_of_one, cat_of_several])
def test_gradients_of_a_list(combine):
    assert_gradients(graded("Cat"), torch_cat, combine, X, Y)


# [list]
class Joined(nn.Cell):
    """The columns of x, of a parameter and of y."""

    def __init__(self, library):
        super().__init__()
        self.cat = kernel(f"{library}:Cat", grad="CatGrad", dim=1)
        self.between = ms.Parameter(ms.Tensor([[0], [0]], ms.float32), name="between")

    def construct(self, x, y):
        return self.cat((x, self.between, y))


# [/list]


@both_modes
def test_gradients_of_a_list_with_a_parameter():
    joined = Joined(GRADIENTS)
    x, y = ms.Tensor([[1], [2]], ms.float32), ms.Tensor([[3, 4], [5, 6]], ms.float32)
    weights = ms.Tensor([[1, 2, 3, 4], [5, 6, 7, 8]], ms.float32)
    step = ms.value_and_grad(
        Weighed(joined, weights), (0, 1), joined.trainable_params(), has_aux=True
    )
    (_, value), ((of_x, of_y), (of_between,)) = step(x, y)
    assert_same(value, np.array([[1, 0, 3, 4], [2, 0, 5, 6]], np.float32))
    assert_same(of_x, np.array([[1], [5]], np.float32))
    assert_same(of_between, np.array([[2], [6]], np.float32))
    assert_same(of_y, np.array([[3, 4], [7, 8]], np.float32))


@both_modes
@pytest.mark.parametrize("parts", [(0, 2), (0, 1), (1, 3), (0, 3), (2, 3)], ids=str)
def test_gradients_of_a_tuple_beside_other_arguments(parts):
    class Nested(nn.Cell):
        def __init__(self):
            super().__init__()
            self.cat = kernel(f"{GRADIENTS}:Cat", grad="CatGrad", dim=1)

        def construct(self, x, y, z):
            if parts == (0, 2):
                return self.cat((x, y), z)
            if parts == (0, 1):
                return self.cat((x,), y, z)
            if parts == (1, 3):
                return self.cat(x, (y, z))
            if parts == (2, 3):
                return self.cat((x, y), (z,))
            return self.cat((x, y, z))

    inputs = [ms.Tensor([[1], [2]], ms.float32), ms.Tensor([[3, 4], [5, 6]], ms.float32)]
    inputs.append(inputs[1] * 2)
    weights = np.arange(10, dtype=np.float32).reshape(2, 5)
    step = ms.grad(Weighed(Nested(), ms.Tensor(weights)), (0, 1, 2), has_aux=True)
    gradients, _ = step(*inputs)
    for gradient, expected in zip(gradients, np.split(weights, [1, 3], 1), strict=True):
        assert_same(gradient, expected)


def largest(topk, x):
    values, index = topk(x)
    return values * values + index


def torch_topk(x):
    return torch.topk(x, 2)


@both_modes
def test_gradient_beside_an_output_of_integers():
    assert_gradients(graded("Topk", k=2), torch_topk, largest, ROWS)


@both_modes
def test_gradients_by_position():
    net = Net(graded("HuberLoss", delta=2.0))
    assert_same(ms.grad(net)(X, Z), floats(-0.5, 2 / 3, -2 / 3))
    assert_same(ms.grad(net, 1)(X, Z), floats(0.5, -2 / 3, 2 / 3))
    (only,) = as_tuple(ms.grad(net, (1,))(X, Z))
    assert_same(only, floats(0.5, -2 / 3, 2 / 3))
    value, (of_z, of_x) = ms.value_and_grad(net, (1, 0))(X, Z)
    assert_same(value, net(X, Z).asnumpy())
    assert_same(of_z, floats(0.5, -2 / 3, 2 / 3))
    assert_same(of_x, floats(-0.5, 2 / 3, -2 / 3))


def random_parameter(*shape, seed, name):
    return ms.Parameter(ms.Tensor(random_values(shape, np.float32, seed)), name=name)


class Block(nn.Cell):
    """A linear layer, layer norm and leaky ReLU of kernels, then another linear layer."""

    def __init__(self):
        super().__init__()
        self.matmul = graded("Matmul")
        self.layer_norm = graded("LayerNorm", eps=0.01)
        self.leaky_relu = graded("LeakyRelu", negative_slope=0.2)
        self.inner = random_parameter(3, 8, seed=1, name="inner")
        self.scale = random_parameter(8, seed=2, name="scale")
        self.shift = random_parameter(8, seed=3, name="shift")
        self.outer = random_parameter(8, 2, seed=4, name="outer")

    def construct(self, x):
        x = self.layer_norm(self.matmul(x, self.inner), self.scale, self.shift)
        return self.matmul(self.leaky_relu(x), self.outer)


def torch_block(x, inner, scale, shift, outer):
    x = layer_norm(x @ inner, scale, shift, eps=0.01)
    return functional.leaky_relu(x, 0.2) @ outer


def torch_parameters(block):
    return [torch.tensor(p.asnumpy(), requires_grad=True) for p in block.trainable_params()]


@both_modes
def test_gradients_of_parameters_in_a_compiled_function_and_outside():
    block = Block()
    step = ms.value_and_grad(block, 0, block.trainable_params())

    @ms.jit
    def compiled(x):
        return step(x)

    leaves = [torch.tensor(ROWS.asnumpy(), requires_grad=True), *torch_parameters(block)]
    value = torch_block(*leaves)
    expected = torch.autograd.grad(value.sum(), leaves)
    for found_value, (of_input, of_parameters) in (step(ROWS), compiled(ROWS)):
        assert_same(found_value, value.detach())
        for found, wanted in zip((of_input, *of_parameters), expected, strict=True):
            assert_same(found, wanted)


# ===--- graphs that ms.jit records ---===


def recorded(operator, combine):
    """A function whose graph is recorded while it is called, not compiled from its source."""

    @ms.jit(capture_mode="trace")
    def function(*inputs):
        return combine(operator, *inputs)

    return function


_functions = []


@pytest.fixture
def functions(cpu, monkeypatch):
    """Keeps recorded functions: MindSpore (2.10) knows them by their id()."""
    # It wants the source of each frame on the stack, which those of `python -m pytest` lack.
    jit_trace = pytest.importorskip("mindspore.graph.jit_trace")
    monkeypatch.setattr(jit_trace, "_get_caller_lines", lambda: ([__file__], [1]))
    return _functions


@pytest.mark.parametrize("combine", [both_outputs, first_output, no_bias, no_list, tuple_of_one])
def test_gradients_of_a_recorded_call(combine, functions):
    operator = graded("Everything")
    functions.append(recorded(operator, combine))
    assert_same(functions[-1](X, Y, Z), Combined(operator, combine)(X, Y, Z).asnumpy())
    for _ in range(2):
        found = ms.grad(lambda *inputs: functions[-1](*inputs).sum(), (0, 1, 2))(X, Y, Z)
        expected = torch_gradients(functools.partial(combine, everything), X, Y, Z)
        for gradient, wanted in zip(found, expected, strict=True):
            np.testing.assert_array_equal(gradient.asnumpy(), wanted.numpy(), strict=True)


def test_gradients_of_several_recorded_calls_of_one_operator(functions):
    functions.append(recorded(graded("Cat"), cat_of_several))
    functions[-1](X, Y)
    found = ms.grad(lambda *inputs: functions[-1](*inputs).sum(), (0, 1))(X, Y)
    expected = torch_gradients(functools.partial(cat_of_several, torch_cat), X, Y)
    for gradient, wanted in zip(found, expected, strict=True):
        np.testing.assert_array_equal(gradient.asnumpy(), wanted.numpy(), strict=True)


def test_gradients_of_gradients_of_a_recorded_call(functions):
    names = ("CubeGrad", "CubeGradGrad", "CubeGradGradGrad")
    function = recorded(graded("Cube", names), lambda cube, x: cube(x))
    functions.append(function)
    assert_same(function(X), floats(-1, 8, -64))
    for expected in (floats(3, 12, 48), floats(-6, 12, -24), floats(6, 6, 6)):
        function = ms.grad(function)
        assert_same(function(X), expected)


def test_gradients_of_a_recorded_cell(functions):
    class Scaled(nn.Cell):
        def __init__(self):
            super().__init__()
            self.leaky_relu = graded("LeakyRelu", negative_slope=0.5)
            self.scale = ms.Parameter(ms.Tensor([1, 2, 3], ms.float32), name="scale")

        @ms.jit(capture_mode="trace")
        def construct(self, x):
            return self.leaky_relu(x * self.scale)

    net = Scaled()
    assert_same(net(X), floats(-0.5, 4, -6))
    step = ms.value_and_grad(lambda x: net(x).sum(), 0, net.trainable_params())
    for _ in range(2):
        value, (of_x, (of_scale,)) = step(X)
        assert_same(value, np.array(-2.5, np.float32))
        assert_same(of_x, floats(0.5, 2, 1.5))
        assert_same(of_scale, floats(-0.5, 2, -2))


def test_mindspore_keeps_the_operator_of_the_first_network_for_bytecode(cpu):
    """A fault of MindSpore's (2.10), with its own operators too; docs/mindspore.md tells of it."""

    class Read(nn.Cell):
        def __init__(self, operator):
            super().__init__()
            self.operator = operator

        @ms.jit(capture_mode="bytecode")
        def construct(self, x):
            return self.operator(x)

    first, second = Read(ops.Softmax(0)), Read(ops.Softmax(1))
    assert_same(first(ROWS), ops.Softmax(0)(ROWS).asnumpy())
    assert_same(second(ROWS), ops.Softmax(0)(ROWS).asnumpy())


# ===--- gradients of gradients ---===


class Gradient(nn.Cell):
    """The gradient of a network of one input."""

    def __init__(self, net):
        super().__init__()
        self.net = net
        self.grad = ops.GradOperation()

    def construct(self, x):
        return self.grad(self.net)(x)


@both_modes
@pytest.mark.parametrize("differentiate", [Gradient, ms.grad])
def test_gradients_of_gradients(differentiate):
    names = ("CubeGrad", "CubeGradGrad", "CubeGradGradGrad")
    function = Net(graded("Cube", names))
    for expected in (floats(3, 12, 48), floats(-6, 12, -24), floats(6, 6, 6)):
        function = differentiate(function)
        assert_same(function(X), expected)


def times_itself(leaky_relu, x):
    return leaky_relu(x) * x


@both_modes
def test_second_gradient_has_the_attributes_too():
    names = ("LeakyReluGrad", "LeakyReluGradGrad")
    net = Combined(graded("LeakyRelu", names, negative_slope=0.5), times_itself)
    assert_same(ms.grad(ms.grad(net))(X), floats(1, 2, 1))


FIRST = 'name one with grad="...", as in kernel("./a.so:Cube", grad="CubeGrad")'
ONE_MORE = 'name one more, as in kernel("./a.so:Cube", grad=("CubeGrad", "CubeGradGrad"))'


@both_modes
@pytest.mark.parametrize(
    ("grad", "name", "cure"),
    [(None, "Cube", FIRST), ("CubeGrad", "CubeGrad", ONE_MORE)],
    ids=["first", "second"],
)
def test_gradient_kernel_that_is_missing(grad, name, cure):
    function = ms.grad(Net(kernel(f"{GRADIENTS}:Cube", grad=grad)))
    function = function if grad is None else ms.grad(function)
    text = error_text(ValueError, lambda: function(X))
    assert text.partition("\n\n")[0] == (
        f"{name}: expected an operator with a gradient kernel where a network is differentiated, "
        f"got one without; {cure}"
    )


def stopped(cube, x):
    return ops.stop_gradient(cube(x)) * x


def of_a_constant(cube, x):
    return cube(Y) * x


@both_modes
@pytest.mark.parametrize(("combine", "cubed"), [(stopped, X), (of_a_constant, Y)])
def test_gradient_kernel_that_is_not_needed(combine, cubed):
    net = Combined(kernel(f"{GRADIENTS}:Cube"), combine)
    assert_same(ms.grad(net)(X), cubed.asnumpy() ** 3)


# ===--- sizes that change ---===


def changing(net, *shapes):
    """The network with inputs of these shapes, None for a size that changes."""
    net.set_inputs(*(ms.Tensor(shape=shape, dtype=ms.float32) for shape in shapes))
    return net


class Step(nn.Cell):
    """The gradients of a network, for its inputs and its parameters.

    MindSpore 2.10 looks at `set_inputs` of the cell that is called: at this one's, but not at that
    of a network under `ms.grad`.
    """

    def __init__(self, net):
        super().__init__()
        self.net = net
        self.grad = ops.GradOperation(get_all=True, get_by_list=True)
        self.weights = ms.ParameterTuple(net.trainable_params())

    def construct(self, *inputs):
        return self.grad(self.net, self.weights)(*inputs)


@both_modes
def test_gradients_of_sizes_that_change():
    block = Block()
    step = changing(Step(block), [None, 3])
    for size in (2, 1, 5):
        x = random_values((size, 3), np.float32, 5)
        leaves = [torch.tensor(x, requires_grad=True), *torch_parameters(block)]
        expected = torch.autograd.grad(torch_block(*leaves).sum(), leaves)
        of_inputs, of_parameters = step(ms.Tensor(x))
        for found, wanted in zip((*of_inputs, *of_parameters), expected, strict=True):
            assert_same(found, wanted)


@both_modes
def test_gradient_in_a_compiled_function_of_sizes_that_change():
    step = ms.grad(Net(graded("LeakyRelu", negative_slope=0.5)))

    @ms.jit(dynamic=1)  # sizes are unknown from the third size on
    def compiled(x):
        return step(x)

    for size in (1, 2, 3, 4, 5):
        x = random_values(size, np.float32, size)
        assert_same(compiled(ms.Tensor(x)), np.where(x > 0, 1, 0.5).astype(np.float32))


@both_modes
@pytest.mark.parametrize("combine", [both_outputs, no_bias, no_list, tuple_of_one])
def test_gradients_of_every_kind_of_input_of_sizes_that_change(combine):
    step = changing(Step(Combined(graded("Everything"), combine)), [None], [None], [None])
    for size in (3, 1):
        inputs = [x[:size] for x in (X, Y, Z)]
        expected = torch_gradients(functools.partial(combine, everything), *inputs)
        of_inputs, _ = step(*inputs)
        for found, wanted in zip(of_inputs, expected, strict=True):
            assert_same(found, wanted)


@both_modes
def test_second_gradient_of_sizes_that_change():
    names = ("CubeGrad", "CubeGradGrad")
    net = changing(Gradient(Gradient(Net(graded("Cube", names)))), [None])
    assert_same(net(X), floats(-6, 12, -24))
    assert_same(net(X[:2]), floats(-6, 12))


NOTHING = ms.Tensor(np.empty(0, np.float32))


def cat_of_one_and_nothing(cat, x):
    return cat(x, NOTHING) * x


@both_modes
def test_gradient_of_a_list_of_sizes_that_change():
    step = changing(Step(Combined(graded("Cat"), cat_of_one_and_nothing)), [None])
    for x in (X, X[:2]):
        ((found,), _) = step(x)
        assert_same(found, 2 * x.asnumpy())


@pytest.mark.parametrize("mode", ["graph"], indirect=True)
def test_gradient_of_a_list_of_one_tensor_of_unknown_size(mode):
    step = changing(Step(Net(graded("Cat"))), [None])
    assert error_text(ValueError, lambda: step(X)).partition("\n\n")[0] == (
        "CatGrad: expected a tuple of two tensors or more where sizes are not known when the graph "
        "is compiled, got one tensor; call the operator with tensors of known sizes, or add an "
        "empty one"
    )


# ===--- plain ops.Custom ---===


def leaky_relu_with_bprop():
    gradient = custom("LeakyReluGrad", GRADIENTS, lambda x, _: x, lambda x, _: x)
    gradient.add_prim_attr("negative_slope", 0.5)

    def bprop(x, out, dout):
        return (gradient(x, dout),)

    leaky_relu = ops.Custom(
        f"{GRADIENTS}:LeakyRelu", lambda x: x, lambda x: x, func_type="aot", bprop=bprop
    )
    return leaky_relu.add_prim_attr("negative_slope", 0.5)


@both_modes
def test_gradient_of_a_plain_custom_with_bprop():
    net = Net(leaky_relu_with_bprop())
    assert_same(net(X), floats(-0.5, 2, -2))
    assert_same(ms.grad(net)(X), floats(0.5, 1, 0.5))
    assert_same(net(ROWS), np.array([[-0.5, 2, -2], [4, -2.5, 6]], np.float32))
    assert_same(ms.grad(net)(ROWS), np.array([[0.5, 1, 0.5], [1, 0.5, 1]], np.float32))


def registered_cube():
    """Without a gradient: examples/registration has one."""
    info = ops.CustomRegOp("Cube").input(0, "x").output(0, "y")
    info.dtype_format(ops.DataType.F32_Default, ops.DataType.F32_Default).target("CPU")
    return ops.Custom(f"{GRADIENTS}:Cube", func_type="aot", reg_info=info.get_op_info())


@both_modes
def test_registration_says_which_dtypes_a_kernel_takes():
    net = Net(registered_cube())
    assert_same(net(X), floats(-1, 8, -64))
    # MindSpore makes float32 of a float16, and a float16 of the result.
    assert_same(net(ms.Tensor([-1, 2], ms.float16)), np.array([-1, 8], np.float16))
    assert (
        "The supported data types are input[Float32], output[Float32]; , but get input[Int32 ]"
        in error_text(TypeError, lambda: net(ms.Tensor([-1, 2], ms.int32)))
    )


# ===--- training ---===


class SquaredError(nn.Cell):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def construct(self, x, target):
        difference = self.net(x) - target
        return (difference * difference).mean()


@both_modes
def test_training_gives_the_losses_of_pytorch():
    """In float32: both sum up in an order of their own, and steps carry it on."""
    x = random_values((16, 3), np.float32, 6)
    target = np.stack([x[:, 0] * x[:, 1], np.sin(x[:, 2])], axis=1)
    block = Block()
    loss_of = SquaredError(block)
    optimizer = nn.SGD(block.trainable_params(), learning_rate=0.05)
    step = ms.value_and_grad(loss_of, None, optimizer.parameters)
    leaves = torch_parameters(block)
    torch_optimizer = torch.optim.SGD(leaves, lr=0.05)

    losses, expected = [], []
    for _ in range(20):
        loss, gradients = step(ms.Tensor(x), ms.Tensor(target))
        optimizer(gradients)
        losses.append(float(loss))
        difference = torch_block(torch.from_numpy(x), *leaves) - torch.from_numpy(target)
        torch_loss = (difference * difference).mean()
        torch_optimizer.zero_grad()
        torch_loss.backward()
        torch_optimizer.step()
        expected.append(torch_loss.item())
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    assert losses[-1] < losses[0] / 4, "it learns"

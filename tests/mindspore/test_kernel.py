"""aten_bridge.mindspore.kernel: operators of kernels, and plain ops.Custom with the infer hooks."""

import copy
import ctypes
import functools
import os
import pathlib
import pickle
import shutil
import struct
import subprocess
import sys

import mindspore as ms
import numpy as np
import pytest
import torch
from host import (
    BUILD,
    DTYPES,
    KERNELS,
    LEAKY_RELU,
    MINDSPORE,
    Net,
    assert_same,
    custom,
    error_text,
)
from mindspore import nn, ops
from modes import GRAPHS_IN_FULL

from aten_bridge._check import check
from aten_bridge._library import exported_functions, open_library, open_newest
from aten_bridge.mindspore import kernel

both_modes = pytest.mark.usefixtures("mode")

PLUGIN = BUILD / "tests/test_plugin.so"
X = ms.Tensor([-1, 2, -4], ms.float32)
Y = ms.Tensor([10, 20, 30], ms.float32)
ROWS = ms.Tensor([[-1, 2, -4], [4, -5, 6]], ms.float32)


def floats(*values):
    return np.array(values, np.float32)


def typed(name, library=MINDSPORE, **options):
    return kernel(f"{library}:{name}", **options)


def dynamic(net, *shapes):
    """The network with inputs of these shapes: None for a size, or for a shape, that changes."""
    net.set_inputs(*(shape if shape is ... else unknown(shape) for shape in shapes))
    return net


def unknown(shape):
    return ms.Tensor(shape=shape, dtype=ms.float32)


# ===--- shapes and dtypes ---===


@both_modes
def test_shape_and_dtype_are_those_of_the_meta_function():
    expected = np.array([[-0.5, 2, -2], [4, -2.5, 6]], np.float32)
    assert_same(Net(typed("LeakyRelu", negative_slope=0.5))(ROWS), expected)


@both_modes
@pytest.mark.parametrize("k", [1, 3])
def test_two_outputs_whose_shapes_an_attribute_decides(k):
    values, indices = Net(typed("TopK", k=k))(X)
    assert_same(values, floats(2, -1, -4)[:k])
    assert_same(indices, np.array([1, 0, 2])[:k])


@both_modes
def test_zero_dim_result_is_a_tensor():
    total = Net(typed("Total"))(X)
    assert isinstance(total, ms.Tensor)
    assert_same(total, np.float32(-3))
    assert_same(nn.SequentialCell(Net(typed("Total")), nn.ReLU())(X), np.float32(0))
    given = Net(typed("FortyTwo", KERNELS, out_shape=(), out_dtype=ms.int8))()
    assert isinstance(given, ms.Tensor)
    assert_same(given, np.int8(42))


REAL = ["bool", "uint8", "int8", "int16", "int32", "int64"]
REAL += ["float16", "bfloat16", "float32", "float64"]


@both_modes
@pytest.mark.parametrize("dtype", [*REAL, "complex64", "complex128"])
def test_dtype_of_the_result(dtype):
    result = Net(typed("EchoDtype", value=dtype))()
    assert (result.shape, result.dtype) == ((2,), getattr(ms, dtype.replace("bool", "bool_")))
    assert_same(result, np.ones(2, result.asnumpy().dtype))


@both_modes
def test_complex_result_of_a_real_input():
    assert_same(Net(typed("ToComplex"))(X), np.array([-1, 2, -4], np.complex64))


@both_modes
def test_given_shape_and_dtype_of_a_kernel_without_a_meta_function():
    first = {"out_shape": lambda x: x, "out_dtype": lambda x: x}
    assert_same(Net(typed("Copy", **first))(X), floats(-1, 2, -4))
    assert_same(Net(typed("Copy", out_shape=[3], out_dtype=ms.int64))(X), np.array([-1, 2, -4]))
    assert_same(Net(typed("AddOneByHand", **first))(X), floats(0, 3, -3))
    assert_same(Net(typed("SumSlots", KERNELS, **first | {"out_shape": (3,)}))(X), X)


def same_pair(a, b):
    return a, b


@both_modes
def test_given_shapes_and_dtypes_of_two_outputs():
    operator = typed("AddSubtract", KERNELS, out_shape=same_pair, out_dtype=same_pair)
    total, difference = Net(operator)(X, Y)
    assert_same(total, floats(9, 22, 26))
    assert_same(difference, floats(-11, -18, -34))


# ===--- dynamic shapes ---===


@both_modes
def test_sizes_that_change():
    net = dynamic(Net(typed("LeakyRelu", negative_slope=0.5)), [None])
    for values in ([-1, 2], [-4], [1, 2, -3]):
        expected = [v if v > 0 else v / 2 for v in values]
        assert_same(net(ms.Tensor(values, ms.float32)), floats(*expected))


@both_modes
def test_rank_that_changes():
    net = dynamic(Net(typed("LeakyRelu", negative_slope=0.5)), None)
    assert_same(net(X), floats(-0.5, 2, -2))
    assert_same(net(ROWS), np.array([[-0.5, 2, -2], [4, -2.5, 6]], np.float32))


@both_modes
def test_two_outputs_of_sizes_that_change():
    net = dynamic(Net(typed("TopK", k=1)), [None, 3])
    for count in (2, 1):
        values, indices = net(ROWS[:count])
        assert_same(values, np.array([[2], [6]], np.float32)[:count])
        assert_same(indices, np.array([[1], [2]])[:count])


@both_modes
def test_zero_dim_result_of_sizes_that_change_is_a_tensor():
    net = dynamic(Net(typed("Total")), [None])
    total = net(X)
    assert isinstance(total, ms.Tensor)
    assert_same(total, np.float32(-3))
    assert_same(net(X[:2]), np.float32(1))


class Between(nn.Cell):
    """Constants and lists among the inputs."""

    def __init__(self, total, repeat, join):
        super().__init__()
        self.total = total
        self.repeat = repeat
        self.join = join

    def construct(self, x):
        doubled = self.total(None, x, x)
        return self.repeat(doubled, 2), self.join(x, (x, doubled), x)


@both_modes
def test_none_numbers_and_lists_beside_sizes_that_change():
    net = dynamic(Between(typed("SumOfGiven"), typed("Repeat"), typed("Join")), [None])
    for values in (floats(3), floats(1, -2)):
        repeated, joined = net(ms.Tensor(values))
        assert_same(repeated, np.tile(2 * values, 2))
        assert_same(joined, np.concatenate([values**2, 2 * values**2, values]))


@both_modes
def test_dynamic_and_static_networks_of_one_operator():
    operator = typed("LeakyRelu", negative_slope=0.5)
    changing = dynamic(Net(operator), [None])
    expected = np.array([[-0.5, 2, -2], [4, -2.5, 6]], np.float32)
    assert_same(changing(X), expected[0])
    assert_same(Net(operator)(ROWS), expected)
    assert_same(changing(X[:2]), expected[0, :2])
    assert_same(Net(operator)(X), expected[0])
    assert_same(operator(ROWS), expected)


class Aliased(nn.Cell):
    """One operator with different numbers of inputs, under a name of its own and of the cell's."""

    def __init__(self, join):
        super().__init__()
        self.join = join

    def construct(self, a, b):
        join = self.join
        return join(a, b, b, b, b), join(a, b), self.join(a, b, b), self.join(a, b)


@both_modes
def test_different_numbers_of_inputs_of_sizes_that_change():
    operator = typed("Join")
    for _ in range(2):
        net = dynamic(Aliased(operator), [None], [None])
        product = floats(-10, 40, -120)
        for result, count in zip(net(X, Y), (3, 0, 1, 0), strict=True):
            assert_same(result, np.concatenate([product] * count + [floats(10, 20, 30)]))


def test_sizes_that_change_need_a_meta_function(cpu):
    ms.set_context(mode=ms.GRAPH_MODE)
    net = dynamic(Net(typed("Copy", out_shape=lambda x: x, out_dtype=lambda x: x)), [None, 3])
    assert error_text(ValueError, lambda: net(ROWS)) == (
        "Copy: expected inputs of known sizes, or a kernel with a meta function, got input 0: "
        "float32 [-1, 3]; export the kernel with aten_bridge::meta() or aten_bridge::meta(function)"
    )


# ===--- errors of calls ---===


@both_modes
def test_error_of_the_meta_function_is_raised_where_the_operator_is_called():
    assert error_text(ValueError, lambda: Net(typed("TopK", k=4))(X)) == (
        "TopK: expected k to be at most 3, got 4 (inferring from input 0: float32 [3])"
    )


TOUCHED = (
    "Touch: expected shapes and dtypes to be all that is needed to infer those of the outputs, got "
    "a kernel or meta function that touches a tensor's data (inferring from input 0: float32 [3]); "
    "give the kernel a meta function that does not: aten_bridge::meta(function)"
)


@both_modes
def test_meta_function_that_touches_data_is_an_error():
    assert error_text(ValueError, lambda: Net(typed("Touch"))(X)) == TOUCHED
    assert Net(typed("TouchWithMeta"))(X).asnumpy()[0] == -1


@both_modes
def test_errors_of_one_call_are_reported_together():
    x, y = ms.Tensor([1, 2, 3], ms.int32), ms.Tensor([[1]], ms.float32)
    assert error_text(ValueError, lambda: Net(typed("Checked"))(x, y)) == (
        "Checked: input 0 'a': expected float16|bfloat16|float32|float64, got \"int32\" with shape "
        "[3]\n"
        "Checked: input 1 'b': expected sizes [N], got float32 [1, 1]"
    )


@both_modes
def test_dtype_that_pytorch_has_not():
    x = ms.Tensor([1, 2], ms.hifloat8)
    assert error_text(TypeError, lambda: Net(typed("Total"))(x)) == (
        f'Total: input 0: expected {DTYPES}, got "hifloat8" with shape [2]'
    )


@both_modes
def test_error_of_a_meta_function_in_python_has_no_traceback():
    # For some operators PyTorch has another meta function as soon as it is imported.
    text = error_text(ValueError, lambda: Net(typed("TopKUnchecked", k=4))(X))
    assert text == (
        "TopKUnchecked: RuntimeError: k not in range for dimension (inferring from input 0: "
        "float32 [3])"
    )


@GRAPHS_IN_FULL
@both_modes
def test_given_shape_or_dtype_that_is_none():
    operator = typed("Copy", out_shape=lambda x: x, out_dtype="float32")
    assert error_text(TypeError, lambda: Net(operator)(X)) == (
        "Copy: expected out_dtype to be a dtype, such as mindspore.float32, got 'float32'"
    )
    operator = typed("Copy", out_shape=3, out_dtype=ms.float32)
    assert error_text(TypeError, lambda: Net(operator)(X)) == (
        "Copy: expected out_shape to be a shape, got 3"
    )
    for shape in ((-1,), (2.0,), ("3",), (2**63,), (None,)):
        operator = typed("Copy", out_shape=shape, out_dtype=ms.float32)
        assert error_text(TypeError, functools.partial(Net(operator), X)) == (
            f"Copy: expected out_shape to be a shape, got {shape}"
        )
    operator = typed("Copy", out_shape=((3,), 4), out_dtype=ms.float32)
    assert error_text(TypeError, lambda: Net(operator)(X)) == (
        "Copy: expected out_shape to be a shape, got 4"
    )
    for dtype in (np.float32, ms.list_, ms.number):
        operator = typed("Copy", out_shape=(3,), out_dtype=dtype)
        assert error_text(TypeError, functools.partial(Net(operator), X)) == (
            f"Copy: expected out_dtype to be a dtype, such as mindspore.float32, got {dtype!r}"
        )
    operator = typed("Copy", out_shape=((3,), (3,)), out_dtype=ms.float32)
    assert error_text(ValueError, lambda: Net(operator)(X)) == (
        "Copy: expected as many shapes as dtypes, got 2 from out_shape and 1 from out_dtype"
    )


@pytest.mark.parametrize("mode", ["pynative"], indirect=True)
def test_error_of_one_operator_leaves_the_state_of_others_alone(mode):
    counter = typed("Counter")
    assert_same(counter(X), floats(0, 0, 0))
    with pytest.raises(ValueError, match="at most 3"):
        typed("TopK", k=4)(X)
    assert_same(counter(X), floats(1, 1, 1))
    with pytest.raises(TypeError, match="to be a shape"):
        typed("Copy", out_shape=3, out_dtype=ms.float32)(X)
    assert_same(counter(X), floats(2, 2, 2))


# ===--- operators ---===


@both_modes
def test_operator_in_functions():
    operator = typed("LeakyRelu", negative_slope=0.5)

    def function(x):
        return operator(x)

    expected = np.array([[-0.5, 2, -2], [4, -2.5, 6]], np.float32)
    # MindSpore 2.10 refuses "bytecode" on Python 3.12.
    for capture_mode in ("ast", "bytecode") if sys.version_info < (3, 12) else ("ast",):
        assert_same(ms.jit(function, capture_mode=capture_mode)(X), expected[0])
    assert_same(ms.vmap(function)(ROWS), expected)


class Twice(nn.Cell):
    def __init__(self, operator):
        super().__init__()
        self.operator = operator

    def construct(self, a, b):
        return self.operator(a), self.operator(self.operator(b))


@both_modes
def test_operator_in_several_places_and_networks():
    operator = typed("LeakyRelu", negative_slope=0.5)
    one, other = Twice(operator)(X, ROWS[:, :2])
    assert_same(one, floats(-0.5, 2, -2))
    assert_same(other, np.array([[-0.25, 2], [4, -1.25]], np.float32))
    assert_same(Net(operator)(ROWS[0]), floats(-0.5, 2, -2))


@both_modes
def test_copies_have_the_attributes_and_a_state_of_their_own():
    net = Net(typed("Counter", start=5))
    assert_same(net(X), floats(5, 5, 5))
    for copied in (copy.deepcopy(net), Net(copy.deepcopy(net.operator))):
        assert_same(copied(X), floats(5, 5, 5))
        assert_same(copied(X), floats(6, 6, 6))
    assert_same(net(X), floats(6, 6, 6))


@pytest.mark.parametrize("mode", ["pynative"], indirect=True)
def test_an_operator_alone_is_not_differentiated(mode):
    operator = kernel(f"{LEAKY_RELU}:LeakyRelu")
    assert error_text(AttributeError, lambda: ms.grad(operator)(X)) == (
        "LeakyRelu: expected a function or a cell, got an operator; write lambda x: operator(x), "
        "with a parameter for each input"
    )


def test_a_kernel_of_an_operator_of_mindspores(cpu):
    """With what MindSpore passes to an ops.Custom it would end the process."""
    out = {"out_shape": (3,), "out_dtype": ms.float32}
    for arguments in ({}, out):
        assert error_text(
            ValueError, lambda a=arguments: kernel(f"{PLUGIN}:InplaceNegate", **a)
        ) == (
            f"{PLUGIN}:InplaceNegate: expected a kernel for ops.Custom, got one that HOST "
            "MINDSPORE_PLUGIN makes of MindSpore's own operator; let MS_OP_PLUGIN_PATH name the "
            "library and call that operator, or build the kernel with HOST MINDSPORE"
        )


def test_a_kernel_of_a_host_that_its_source_defines(cpu):
    library = BUILD / "tests/test_sole_toy.so"
    assert error_text(ValueError, lambda: kernel(f"{library}:SoleLeakyReluOfSlope", slope=0.5)) == (
        f"{library}:SoleLeakyReluOfSlope: expected a kernel for ops.Custom, got one for a host "
        "that its source defines; build it without ATEN_BRIDGE_HOST"
    )


def test_a_kernel_for_other_hosts_alone(cpu):
    library = BUILD / "tests/test_without_mindspore.so"
    assert error_text(ValueError, lambda: kernel(f"{library}:LeakyRelu")) == (
        f"{library}:LeakyRelu: expected a kernel for MindSpore, got one that was built for other "
        "hosts; add MINDSPORE to the HOSTS of its aten_bridge_add_kernel"
    )


def test_the_name_of_an_operator_of_pytorchs(cpu):
    assert error_text(ValueError, lambda: kernel("aten::gelu")) == (
        "'aten::gelu': expected the path of a library, a colon and the name of a kernel, such as "
        '"./leaky_relu.so:LeakyRelu", got the name of an operator of PyTorch\'s; make it with '
        "operator('aten::gelu')"
    )


@pytest.mark.parametrize("dump", [pickle.dumps, copy.copy])
def test_an_operator_is_not_pickled(cpu, dump):
    operator = kernel(f"{LEAKY_RELU}:LeakyRelu", negative_slope=0.5)
    expected = (
        "LeakyRelu: expected an operator that stays in its process and is copied with "
        "copy.deepcopy, got pickle or copy.copy; save parameters with mindspore.save_checkpoint, "
        "and make the operator where it is called, as in "
        f"kernel('{LEAKY_RELU}:LeakyRelu', negative_slope=0.5)"
    )
    assert error_text(TypeError, lambda: dump(operator)) == expected
    # So is a network with one.
    assert error_text(TypeError, lambda: pickle.dumps(Net(operator))) == expected


@pytest.mark.parametrize("mode", ["pynative"], indirect=True)
def test_operators_of_one_function_keep_their_own_shapes_and_dtypes(mode):
    # MindSpore would give the later ones the shapes and dtypes of the first.
    for shape, dtype in [((2,), np.float32), ((3, 1), np.float32), ((2,), np.int8)]:
        operator = typed("FortyTwo", KERNELS, out_shape=shape, out_dtype=ms.Tensor(dtype()).dtype)
        assert_same(operator(), np.full(shape, 42, dtype))
    sizes = iter([1, 3, 2])
    operator = typed("FortyTwo", KERNELS, out_shape=lambda: (next(sizes),), out_dtype=ms.float32)
    assert [operator().shape for _ in range(3)] == [(1,), (3,), (2,)]


def test_text_of_an_operator(cpu):
    operator = typed("LeakyRelu", negative_slope=0.5, grad="LeakyReluGrad")
    assert repr(operator) == (
        f"kernel('{MINDSPORE}:LeakyRelu', negative_slope=0.5, grad='LeakyReluGrad')"
    )


# ===--- state and workspaces ---===


@both_modes
def test_each_operator_has_a_state_of_its_own():
    one, other = Net(typed("Counter", start=5)), Net(typed("Counter", start=5))
    assert [int(net(X)[0]) for net in (one, one, one, other, one)] == [5, 6, 7, 5, 8]


@both_modes
def test_shapes_that_change_share_a_state():
    net = dynamic(Net(typed("Counter")), [None])
    for count in range(3):
        assert_same(net(X[: count + 1]), np.full(count + 1, count, np.float32))


@pytest.mark.parametrize("mode", ["pynative"], indirect=True)
def test_each_shape_and_dtype_has_a_state_of_its_own_in_pynative_mode(mode):
    counter = typed("Counter")
    y = X.astype(ms.float16)
    assert [int(counter(x)[0]) for x in (X, X, X[:2], X, X[:2])] == [0, 1, 0, 2, 1]
    assert [int(counter(x)[0]) for x in (y, X, y)] == [0, 3, 1]


class Places(nn.Cell):
    """Four calls of one operator, the first and the last of them equal."""

    def __init__(self, operator):
        super().__init__()
        self.operator = operator

    def construct(self, x):
        one = self.operator(x)
        return one, self.operator(self.operator(x + 5)), self.operator(x)


@both_modes
def test_each_place_of_a_graph_has_a_state_of_its_own(mode):
    operator = typed("Counter")
    runs = [Places(operator), Places(operator)]
    counts = [[int(y[0]) for y in net(X)] for net in (runs[0], runs[0], runs[1])]
    graph = [[0, 0, 0], [1, 1, 1], [0, 0, 0]]  # each place counts for itself
    pynative = [[0, 2, 3], [4, 6, 7], [8, 10, 11]]
    assert counts == (graph if mode == "graph" else pynative)


@pytest.mark.parametrize("mode", ["graph"], indirect=True)
def test_new_shape_of_a_network_that_is_compiled_anew_begins_a_state(mode):
    net = Net(typed("Counter"))
    assert [int(net(x)[0]) for x in (X, X, X[:2], X)] == [0, 1, 0, 2]


@both_modes
def test_workspace():
    net = Net(typed("Reverse", copies=2))
    assert_same(net(X), floats(-4, 2, -1, -4, 2, -1))
    assert_same(net(X[:2]), floats(2, -1, 2, -1))
    assert_same(dynamic(Net(typed("Reverse")), [None])(X), floats(-4, 2, -1))


# ===--- plain ops.Custom with the hooks ---===


def hooked(name, multi_output=False, **attributes):
    operator = ops.Custom(f"{MINDSPORE}:{name}", out_shape=None, out_dtype=None, func_type="aot")
    operator.add_prim_attr("reg_op_name", name)
    operator.add_prim_attr("multi_output", multi_output)
    for attribute, value in attributes.items():
        operator.add_prim_attr(attribute, value)
    return operator


@both_modes
def test_hooks_of_a_plain_custom():
    assert_same(Net(hooked("LeakyRelu", negative_slope=0.5))(X), floats(-0.5, 2, -2))
    values, indices = Net(hooked("TopK", multi_output=True, k=2))(X)
    assert_same(values, floats(2, -1))
    assert_same(indices, np.array([1, 0]))


@both_modes
def test_hooks_of_a_plain_custom_with_sizes_that_change():
    net = dynamic(Net(hooked("LeakyRelu", negative_slope=0.5)), [None])
    assert_same(net(X), floats(-0.5, 2, -2))
    assert_same(net(X[1:]), floats(2, -2))
    net = dynamic(Net(hooked("TopK", multi_output=True, k=1)), [None, 3])
    assert_same(net(ROWS)[1], np.array([[1], [2]]))


@both_modes
def test_hook_reports_a_meta_function_that_touches_data():
    with pytest.raises(RuntimeError) as error:
        Net(hooked("Touch"))(X)
    touched = TOUCHED.replace("float32", "any dtype")  # the hook for shapes is asked first
    assert str(error.value).startswith(
        f"For Touch, operator failed when executing user defined file {MINDSPORE}! "
        f"Error message is {touched}\n"
    )


# ===--- gradients ---===


def gradients(net, *inputs):
    found = ms.grad(net, grad_position=tuple(range(len(inputs))))(*inputs)
    return found if isinstance(found, tuple) else (found,)


def torch_gradients(function, *inputs):
    """PyTorch's, of the sum of what the function returns."""
    leaves = [torch.from_numpy(x.asnumpy()).requires_grad_() for x in inputs]
    function(*leaves).sum().backward()
    return [leaf.grad for leaf in leaves]


def assert_gradients(net, function, *inputs):
    expected = torch_gradients(function, *inputs)
    for found, wanted in zip(gradients(net, *inputs), expected, strict=True):
        assert_same(found, wanted)


class OfTwo(nn.Cell):
    """A network of one operator: what `combine` makes of two tensors and the operator."""

    def __init__(self, operator, combine):
        super().__init__()
        self.operator = operator
        self.combine = combine

    def construct(self, a, b):
        return self.combine(self.operator, a, b)


leaky = functools.partial(torch.nn.functional.leaky_relu, negative_slope=0.5)


@both_modes
@pytest.mark.parametrize("grad", ["LeakyReluGrad", "LeakyReluGradWithoutMeta"])
def test_gradient_kernel_gets_the_attributes(grad):
    net = Net(typed("LeakyRelu", negative_slope=0.5, grad=grad))
    assert_gradients(net, leaky, X)
    assert_gradients(copy.deepcopy(net), leaky, X)


def linear_in_both(multiply_add, a, b):
    product, total = multiply_add(a, b)
    return product + 3 * total


def second_only(multiply_add, a, b):
    return multiply_add(a, b)[1]


def multiply_add(a, b):
    return a * b, a + b


@both_modes
@pytest.mark.parametrize("combine", [linear_in_both, second_only])
@pytest.mark.parametrize("grad", ["MultiplyAddGrad", "MultiplyAddGradWithoutMeta"])
def test_gradients_of_two_inputs_and_two_outputs(combine, grad):
    net = OfTwo(typed("MultiplyAdd", grad=grad), combine)
    assert_gradients(net, functools.partial(combine, multiply_add), X, Y)


def none_in_every_place(total, a, b):
    return total(a, None, b) + total(None, b, None) + total(a, b, a)


def total_2_3_4(a, b, c):
    return sum(factor * x for factor, x in [(2, a), (3, b), (4, c)] if x is not None)


@both_modes
def test_gradients_beside_none():
    net = OfTwo(typed("SumOfGiven", grad="SumOfGivenGrad"), none_in_every_place)
    assert_gradients(net, functools.partial(none_in_every_place, total_2_3_4), X, Y)


def number_inputs(operator, a, b):
    return operator(a, 2.0, 3, True, None) + b


@both_modes
def test_gradient_beside_numbers():
    net = OfTwo(typed("NumberInputs", grad="NumberInputsGrad"), number_inputs)
    assert_gradients(net, lambda a, b: -(2 * a + 3) + b, X, Y)


def torch_join(first, *rest):
    tensors = [y for x in rest[:-1] for y in (x if isinstance(x, tuple) else (x,))]
    return torch.cat([*(y * first for y in tensors), rest[-1]])


def listed(join, a, b):
    return join(a, b, a, b)


def in_a_tuple(join, a, b):
    return join(a, (b, a), b)


def alone_in_a_tuple(join, a, b):
    return join(a, (b,), b)


@both_modes
@pytest.mark.parametrize("combine", [listed, in_a_tuple, alone_in_a_tuple])
def test_gradients_of_a_list(combine):
    net = OfTwo(typed("Join", grad="JoinGrad"), combine)
    assert_gradients(net, functools.partial(combine, torch_join), X, Y)


def by_hand(x, out, dout):
    return (dout * 7,)


def several(join, a, b):
    return join(a, b, a, b) * join(a, (b, a), b) + join(a, a, a, a, b)[3:] + join(a, (a, b), b)


@both_modes
def test_gradients_of_lists_of_several_lengths_in_one_network():
    net = OfTwo(typed("Join", grad="JoinGrad"), several)
    assert_gradients(net, functools.partial(several, torch_join), X, Y)


@both_modes
def test_gradient_has_the_attribute_that_was_set_later():
    operator = typed("LeakyRelu", negative_slope=0.25, grad="LeakyReluGrad")
    assert_gradients(Net(operator.add_prim_attr("negative_slope", 0.5)), leaky, X)


@both_modes
def test_gradient_by_an_operator_or_a_function():
    options = {"negative_slope": 0.5}
    plain = custom("LeakyReluGradWithoutMeta", MINDSPORE, lambda x, _: x, lambda x, _: x)
    plain.add_prim_attr("negative_slope", 0.5)
    for grad in (typed("LeakyReluGrad", **options), plain, f"{MINDSPORE}:LeakyReluGrad"):
        assert_gradients(Net(typed("LeakyRelu", grad=grad, **options)), leaky, X)
    (found,) = gradients(Net(typed("LeakyRelu", grad=by_hand)), X)
    assert_same(found, floats(7, 7, 7))


class Weighted(nn.Cell):
    def __init__(self, operator):
        super().__init__()
        self.operator = operator
        self.weight = ms.Parameter(ms.Tensor([1, -2, 3], ms.float32))

    def construct(self, x):
        return self.operator(self.weight * x)


@both_modes
def test_gradient_of_a_parameter_in_a_compiled_function():
    net = Weighted(typed("LeakyRelu", negative_slope=0.5, grad="LeakyReluGrad"))
    step = ms.value_and_grad(net, None, net.trainable_params())

    def run(x):
        return step(x)

    for value, (found,) in (step(X), ms.jit(run)(X)):
        assert_same(value, floats(-0.5, -2, -6))
        assert_same(found, floats(-0.5, 1, -2))


@both_modes
def test_gradient_kernel_of_another_number_of_outputs():
    net = Net(typed("LeakyRelu", grad="MultiplyAddGrad"))
    assert error_text(ValueError, lambda: gradients(net, X)) == (
        "MultiplyAddGrad: expected as many outputs as LeakyRelu has tensors among its inputs, 1, "
        "got 2"
    )


# ===--- what cannot be made ---===


def test_name_that_the_library_does_not_have(cpu, tmp_path):
    assert error_text(AttributeError, lambda: typed("LeakyRelo")) == (
        f"{MINDSPORE}: expected the kernel 'LeakyRelo', got a library with 'Checked', "
        "'Copy', 'Counter', 'EchoBool', 'EchoBools', 'EchoDtype', 'EchoFloat', 'EchoFloatLists', "
        "'EchoFloats', 'EchoInt' and 32 more; did you mean 'LeakyRelu'?"
    )
    assert error_text(
        AttributeError, lambda: typed("LeakyRelu", grad="LeakyReluGradient")
    ).endswith("; did you mean 'LeakyReluGrad'?")
    source = (
        '#include <cstdio>\nextern "C" int add() { return puts(""); } int hidden() { return 1; }'
    )
    library = compiled(tmp_path, source)
    assert error_text(AttributeError, lambda: typed("Add", library)) == (
        f"{library}: expected the kernel 'Add', got a library with 'add'; did you mean 'add'?"
    )


ORIGIN = '"pytorch": "", "cxx11_abi": true, "fault": ""'
TABLE = pathlib.Path(__file__).parents[1] / "kernels/any_table.h"
OF_OP = ("OpInit", "OpJax", "aten_bridge_own")
KERNEL = (
    '{"name": "Op", "hosts": ["MINDSPORE"], "entry_points": ["Op"], "device": "cpu", '
    '"inputs": [["", 0, false]], '
    '"outputs": 1, "meta": true, "gradient": false, "side_effect": false'
)


def table(description):
    """A library whose table has this description, a text of C."""
    return f"""
#define DESCRIPTION {description}
#include "{TABLE}"
extern "C" int Op() {{ return 0; }}
"""


def described(kernel):
    """The same with one kernel."""
    return table(f'R"({{{ORIGIN}, "kernels": [{kernel}]}})"')


@pytest.mark.parametrize("name", ["CopyInit", "LeakyReluInferShape", "LeakyReluInferType"])
def test_function_that_serves_a_kernel_is_none(cpu, name):
    # To call it as a kernel would end the process.
    text = error_text(AttributeError, lambda: typed(name, out_shape=(3,), out_dtype=ms.float32))
    assert text.startswith(f"{MINDSPORE}: expected the kernel {name!r}, got a library with ")
    served = name.partition("I")[0]
    assert text.endswith(f" and 32 more; did you mean {served!r}?")


def test_a_function_is_a_hook_only_where_the_library_says_so(cpu, tmp_path):
    """A kernel for MindSpore alone has no OpJax: one of that name is the user's own."""
    kernel_of_op = KERNEL.replace('["Op"]', '["Op", "OpInit"]')
    functions = "".join(f'extern "C" int {name}() {{ return 0; }}\n' for name in OF_OP)
    library = compiled(tmp_path, described(f'{kernel_of_op}, "attributes": []}}') + functions)
    told = {"out_shape": (3,), "out_dtype": ms.float32}
    assert repr(typed("OpJax", library, **told)) == f"kernel('{library}:OpJax')"
    for name in ("OpInit", "aten_bridge_own"):
        text = error_text(AttributeError, functools.partial(typed, name, library, **told))
        hint = "; did you mean 'Op'?" if name == "OpInit" else ""
        assert text == f"{library}: expected the kernel {name!r}, got a library with 'Op'{hint}"


def test_shape_and_dtype_that_nobody_tells(cpu):
    for name in ("Copy", "AddOneByHand"):
        assert error_text(ValueError, functools.partial(typed, name)) == (
            f"{name}: expected out_shape and out_dtype, or a kernel with a meta function, got "
            "neither; give both to kernel(), or export the kernel with aten_bridge::meta() or "
            "aten_bridge::meta(function)"
        )
    assert error_text(ValueError, lambda: typed("Copy", out_dtype=ms.float32)) == (
        "Copy: expected out_shape and out_dtype together, got out_dtype alone; give out_shape too, "
        "or neither for a kernel with a meta function"
    )


def test_attribute_whose_name_is_taken(cpu, tmp_path):
    attributes = ", ".join(
        f'["{name}", 2, "a float", false]'
        for name in ("func_type", "alpha", "data_format", "grad", "aten_bridge_x", "alpha")
    )
    library = compiled(tmp_path, described(f'{KERNEL}, "attributes": [{attributes}]}}'))
    taken = (
        "expected a name of the kernel's own, got one that MindSpore or kernel() uses itself; "
        "rename it in the kernel's export"
    )
    assert error_text(ValueError, lambda: typed("Op", library)) == (
        f"Op: attribute 'func_type': {taken}\n"
        "Op: attribute 'alpha': expected one attribute of this name, got several; rename them in "
        "the kernel's export\n"
        f"Op: attribute 'data_format': {taken}\n"
        f"Op: attribute 'grad': {taken}\n"
        f"Op: attribute 'aten_bridge_x': {taken}"
    )


def test_texts_of_a_library_that_are_not_utf8(cpu, tmp_path):
    answer = '#define ANSWER "Op: m\\xfc" "ller"\n'
    library = compiled(tmp_path, answer + described(f'{KERNEL}, "attributes": []}}'))
    assert error_text(ValueError, lambda: typed("Op", library)(X)) == "Op: m\\xfcller"
    source = described(f'{KERNEL}, "attributes": [["grOE", 2, "a float", false]]}}')
    library = compiled(tmp_path, source.replace("OE", ')" "\\xf6" R"('), "with_attribute")
    assert error_text(ValueError, lambda: typed("Op", library)) == (
        "Op: attribute 'gr\\udcf6': expected a name in UTF-8; rename it"
    )


def test_attribute_of_a_c_function_whose_name_is_taken(cpu):
    out = {"out_shape": (3,), "out_dtype": ms.float32}
    faults = {"func_type": 1, "aten_bridge_inputs": "", "\udcff": 1}
    taken = (
        "expected a name of the kernel's own, got one that MindSpore or kernel() uses itself; "
        "rename it"
    )
    assert error_text(TypeError, lambda: typed("AddOneByHand", **out, **faults)) == (
        f"AddOneByHand: attribute 'func_type': {taken}\n"
        f"AddOneByHand: attribute 'aten_bridge_inputs': {taken}\n"
        "AddOneByHand: attribute '\\udcff': expected a name in UTF-8; rename it"
    )


WITHOUT_ATTRIBUTES = f'{{{ORIGIN}, "kernels": [{KERNEL}'


@pytest.mark.parametrize(
    "description",
    [
        "none",
        WITHOUT_ATTRIBUTES + "}]}",
        WITHOUT_ATTRIBUTES + ', "attributes": [["a"]]}]}',
        WITHOUT_ATTRIBUTES.replace("MINDSPORE", "") + ', "attributes": [["a", 99, "b", true]]}]}',
        WITHOUT_ATTRIBUTES.replace("0, false", "4, false") + ', "attributes": []}]}',
        WITHOUT_ATTRIBUTES.replace('["Op"]', "[3]") + ', "attributes": []}]}',
        WITHOUT_ATTRIBUTES.replace("true, ", "1, ", 1) + ', "attributes": []}]}',
        "{}",
        "\xff",
        None,
    ],
    ids=[
        "no JSON",
        "no attributes",
        "rows",
        "type",
        "kind",
        "names",
        "ABI",
        "no kernels",
        "not UTF-8",
        "null",
    ],
)
def test_library_that_does_not_describe_itself(cpu, tmp_path, description):
    shown = None if description is None else description.encode("latin1")
    text = "nullptr" if shown is None else "".join(f"\\{byte:03o}" for byte in shown)
    library = compiled(tmp_path, table(text if shown is None else f'"{text}"'))
    assert error_text(ImportError, lambda: typed("Op", library)) == (
        f"{library}: expected a library that describes its kernels, got the description "
        f"{shown}; build it again with the aten_bridge.h that this Python module came with"
    )


OLDER = 'extern "C" { int Op() { return 0; } const char* aten_bridge_last_error() { return ""; }'


@pytest.mark.parametrize(
    ("source", "got"),
    [
        (OLDER + ' const char* OpDescribe() { return ""; } }', "an older one"),
        ("#define INTERFACE 2\n#define DESCRIPTION nullptr", "2 of aten_bridge 0.0.9"),
        ("#define INTERFACE 99\n#define DESCRIPTION nullptr", "99 of aten_bridge 0.0.9"),
        ('extern "C" void* aten_bridge_library() { return nullptr; }', "None"),
    ],
    ids=["without a table", "older", "newer", "null"],
)
def test_library_of_another_interface(cpu, tmp_path, source, got):
    if "DESCRIPTION" in source:
        source += f'\n#include "{TABLE}"\nextern "C" int Op() {{ return 0; }}'
    library = compiled(tmp_path, source)
    assert error_text(ImportError, lambda: typed("Op", library)) == (
        f"{library}: expected a library of interface 8, got {got}; build it again with the "
        "aten_bridge.h that this Python module came with, or use the module that came with the "
        "library's"
    )


def test_c_functions_of_a_library_with_an_older_header(cpu, tmp_path):
    library = compiled(tmp_path, OLDER + " }")
    typed("Op", library, out_shape=(1,), out_dtype=ms.float32)


def test_gradient_that_is_none(cpu):
    assert error_text(TypeError, lambda: typed("LeakyRelu", grad=3)) == (
        "LeakyRelu: expected grad to be the name of a gradient kernel, a tuple of such names, an "
        "operator or a function, "
        "got 3"
    )


SUCH_AS = 'such as "./leaky_relu.so:LeakyRelu"'


def test_argument_that_is_no_path_and_name():
    assert error_text(TypeError, lambda: kernel(3)) == (
        f"expected the path of a library and the name of a kernel, {SUCH_AS}, got 3"
    )
    assert error_text(ValueError, lambda: kernel(MINDSPORE)) == (
        f"'{MINDSPORE}': expected the path of a library, a colon and the name of a kernel, "
        f"{SUCH_AS}"
    )
    for text in ("leaky_relu.so", "leaky_relu.so:", ":LeakyRelu"):
        assert error_text(ValueError, functools.partial(kernel, text)) == (
            f"{text!r}: expected the path of a library, a colon and the name of a kernel, {SUCH_AS}"
        )
    assert error_text(ValueError, lambda: kernel("/a:b/c.so:D")) == (
        "'/a:b/c.so:D': expected one colon, between path and name, got the path '/a:b/c.so', "
        "which MindSpore would divide at its colon; move or link the library elsewhere"
    )


@pytest.mark.parametrize(
    "text",
    ["/a\0b.so:D", "~\0/a.so:D", "~\ud800/a.so:D", "/a.so:D\0", "/a\udcff.so:D", "/a.so:\ud800"],
)
def test_path_that_no_c_function_takes(text):
    assert error_text(ValueError, lambda: kernel(text)) == (
        f"{text!r}: expected a path and a name in UTF-8 without NUL; rename or link the library"
    )


def test_name_of_a_file_that_mindspore_takes_for_source_code():
    assert error_text(ValueError, lambda: kernel("/a/kernel.cpp:Kernel")) == (
        "/a/kernel.cpp: expected a compiled library whose name ends in .so, got a name in cu, cc "
        "or cpp, which MindSpore takes for source code; compile it with aten_bridge_add_kernel, or "
        "rename the library"
    )


def test_relative_path_is_of_the_folder_in_which_the_operator_is_made(cpu, tmp_path, monkeypatch):
    monkeypatch.chdir(MINDSPORE.parent)
    monkeypatch.setenv("HOME", str(MINDSPORE.parent))
    operators = [kernel(f"{path}:Total") for path in (MINDSPORE.name, f"~/{MINDSPORE.name}")]
    monkeypatch.chdir(tmp_path)
    for operator in operators:
        assert_same(operator(X), np.float32(-3))


def compiled(folder, source, name="library", *options):
    """A library made of a C++ source."""
    source_file = folder / f"{name}.cpp"
    library = folder / f"{name}.so"
    source_file.write_text(source)
    command = [os.environ.get("CXX", "c++"), "-shared", "-fPIC", str(source_file), *options]
    subprocess.run([*command, "-o", str(library)], check=True)
    return library


def changed(folder, content):
    library = folder / "changed.so"
    library.write_bytes(content)
    return library


def test_file_that_is_missing(tmp_path):
    library = tmp_path / "missing.so"
    assert error_text(FileNotFoundError, lambda: typed("Copy", library)) == (
        f"{library}: expected a kernel library, got no such file; build it, or correct the path"
    )
    assert error_text(IsADirectoryError, lambda: typed("Copy", tmp_path)) == (
        f"{tmp_path}: expected a kernel library, got a folder"
    )
    os.mkfifo(library)
    assert error_text(OSError, lambda: typed("Copy", library)) == (
        f"{library}: expected a kernel library, got a pipe, a socket or a device"
    )
    circle = tmp_path / "circle.so"
    circle.symlink_to(circle)
    for path, fault in [
        (circle, "Too many levels of symbolic links"),
        (MINDSPORE / "a.so", "Not a directory"),
        (tmp_path / ("a" * 300 + ".so"), "File name too long"),
    ]:
        assert error_text(OSError, functools.partial(typed, "Copy", path)) == (
            f"{path}: expected a kernel library, got the error: {fault}; correct the path"
        )


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"", "an empty file; build it again"),
        (
            b"def leaky_relu(x): ...",
            "a file that is no ELF library; give the path of what was built",
        ),
    ],
    ids=["empty", "text"],
)
def test_file_that_is_no_library(tmp_path, content, fault):
    library = changed(tmp_path, content)
    assert error_text(OSError, lambda: typed("Copy", library)) == (
        f"{library}: expected a kernel library, got {fault}"
    )


def test_library_that_is_cut_off(tmp_path):
    whole = MINDSPORE.read_bytes()
    # Without a table of sections, the segments tell.
    stripped = whole[:40] + bytes(8) + whole[48:60] + bytes(2) + whole[62:]
    for content in (whole[:4], whole[:40], whole[:3000], whole[:-1], stripped[:3000]):
        library = changed(tmp_path, content)
        text = error_text(OSError, functools.partial(typed, "Copy", library))
        assert text.startswith(
            f"{library}: expected a whole ELF library, got one that is cut off at {len(content)} "
            "bytes of "
        )
        assert text.endswith(" or more; copy or build it again")


def test_library_whose_headers_contradict_each_other(tmp_path):
    whole = LEAKY_RELU.read_bytes()
    (sections,) = struct.unpack_from("<Q", whole, 40)
    symbols = sections + 64 * next(
        i
        for i in range(struct.unpack_from("<H", whole, 60)[0])
        if whole[sections + 64 * i + 4] == 11
    )
    # Where the names of its kernels are read.
    for place, value in [
        (58, struct.pack("<HH", 1, len(whole) - sections & 0xFFFF)),
        (symbols + 32, struct.pack("<Q", len(whole) * 24)),  # more symbols than bytes
        (symbols + 40, struct.pack("<I", 0xFFFF)),  # names in a section that does not exist
        (symbols + 24, struct.pack("<Q", 2**63)),
    ]:
        content = bytearray(whole)
        content[place : place + len(value)] = value
        # Each in a file of its own: to write to one that is open would end the process.
        library = tmp_path / f"at_{place}_{value.hex()}.so"
        library.write_bytes(content)
        assert error_text(OSError, functools.partial(exported_functions, str(library))) == (
            f"{library}: expected a kernel library, got an ELF file whose headers "
            "contradict each other; copy or build it again"
        )


def test_library_that_needs_one_whose_name_is_not_utf8(tmp_path):
    library = changed(
        tmp_path, LEAKY_RELU.read_bytes().replace(b"\0libtorch_cpu.so\0", b"\0\xffibtorch_cpu.so\0")
    )
    expected = (
        "expected to find \\xffibtorch_cpu.so, which the library needs, got no such file; link the "
        "library with -Wl,-rpath,<folder of \\xffibtorch_cpu.so>"
    )
    with pytest.raises((OSError, UnicodeDecodeError)) as of_ctypes:
        ctypes.CDLL(str(library))
    if str(of_ctypes.value) == "":  # Python 3.10 and 3.11.2 lose what the dynamic linker says
        expected = "expected a library that can be loaded, got the error: a text that is not UTF-8"
    assert error_text(OSError, lambda: typed("LeakyRelu", library)) == f"{library}: {expected}"


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the text names x86-64")
def test_library_of_another_machine(tmp_path):
    content = bytearray(MINDSPORE.read_bytes())
    content[18:20] = (183).to_bytes(2, "little")
    library = changed(tmp_path, content)
    assert error_text(OSError, lambda: typed("Copy", library)) == (
        f"{library}: expected a kernel library for x86-64, got one for AArch64; build it on this "
        "machine or with a compiler for it"
    )


def test_library_that_needs_a_missing_one(tmp_path):
    libraries = {name: f"<folder of {name}>" for name in ("libgone.so", "libtorchgone.so")}
    torch_folder = os.path.join(os.path.dirname(torch.__file__), "lib")
    libraries["libtorch_gone.so"] = torch_folder
    for name, folder in libraries.items():
        needed = compiled(tmp_path, "int f() { return 1; }", name.removesuffix(".so"))
        source = "int f(); int g() { return f(); }"
        library = compiled(
            tmp_path, source, "needs_" + name[3:-3], f"-L{tmp_path}", f"-l{name[3:-3]}"
        )
        needed.unlink()
        text = error_text(OSError, functools.partial(typed, "Copy", library))
        assert text == (
            f"{library}: expected to find {name}, which the library needs, got no such file; link "
            f"the library with -Wl,-rpath,{folder}"
        ) + (" or with aten_bridge_add_kernel, which does so" if "torch_" in name else "")


def test_library_that_needs_a_missing_symbol(tmp_path):
    library = compiled(tmp_path, 'extern "C" int f(); extern "C" int g() { return f(); }')
    got = error_text(OSError, lambda: typed("g", library))
    # Where the process has an older file of this name, a copy is opened.
    again = compiled(tmp_path, "", "again")
    folder = tmp_path / "link"
    folder.symlink_to(tmp_path)
    opened = open_library(str(folder / again.name))
    content = again.read_bytes()
    again.unlink()
    again.write_bytes(content)
    # It is the same, though another file, and by whichever name.
    assert open_library(str(again)) is opened
    assert open_library(str(folder / again.name)) is opened
    again.unlink()
    shutil.copy(library, again)
    assert error_text(OSError, lambda: typed("g", again)) == (
        f"{again}: expected the library that the process has open, got a file that was built "
        "since; start a new process"
    )
    text = error_text(OSError, lambda: open_newest(str(again)))
    assert text.replace(str(again), str(library)) == got
    assert got == (
        f"{library}: expected the symbol f, which the library needs, got PyTorch "
        f"{torch.__version__} loaded and no library that has it; build with the PyTorch that the "
        "program imports, and link all libraries that the kernel uses"
    )


def test_library_of_another_pytorch(cpu, plain):
    library = BUILD / "tests/test_other_pytorch.so"
    version = torch.__version__.partition("+")[0]
    name = "FromAnotherSource"
    assert error_text(
        ImportError, lambda: typed(name, library, out_shape=(3,), out_dtype=ms.float32)
    ) == (
        f"{library}:{name}: expected PyTorch 1.99.x, with which this library was built, got "
        f"{version}, which the process had loaded before; build the library with the PyTorch that "
        "the program imports"
    )
    report = check(str(library))
    assert not report.is_usable
    assert plain(report.lines[-1]) == (
        f"  cannot be called: {name}: expected PyTorch 1.99.x, with which this library was built, "
        f"got {version}, which the process had loaded before; build the library with the PyTorch "
        "that the program imports"
    )
    assert check(str(BUILD / "tests/test_typed.so")).is_usable


def run_without_pytorch(script, folder, *arguments):
    """What a Python script prints, in a process that has not imported PyTorch."""
    file = folder / "script.py"  # graph mode reads the sources of networks
    file.write_text(script)
    command = [sys.executable, str(file), *map(str, arguments)]
    return subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE, text=True).stdout


def test_module_does_not_import_pytorch(tmp_path):
    script = (
        "import sys\n"
        "from aten_bridge.mindspore import kernel\n"
        "kernel(f'{sys.argv[1]}:LeakyRelu')\n"
        "assert 'torch' not in sys.modules\n"
    )
    run_without_pytorch(script, tmp_path, MINDSPORE)


# PyTorch is imported where its Python part alone has a meta function: of conv2d.
WITHOUT_PYTORCH = """
import sys

import mindspore as ms
from mindspore import nn

from aten_bridge.mindspore import kernel

library, mode = sys.argv[1:]
ms.set_device("CPU")
ms.set_context(mode=int(mode))


class Net(nn.Cell):
    def __init__(self, operator):
        super().__init__()
        self.operator = operator

    def construct(self, *inputs):
        return self.operator(*inputs)


x = ms.Tensor([-1, 2], ms.float32)
assert Net(kernel(f"{library}:LeakyRelu", negative_slope=0.5))(x).asnumpy().tolist() == [-0.5, 2]
assert "torch" not in sys.modules

conv2d = Net(kernel(library.replace("leaky_relu", "options") + ":Conv2d"))
x = ms.Tensor([[[[1, 2], [3, 4]]]], ms.float32)
weight = ms.Tensor([[[[10]]]], ms.float32)
assert conv2d(x, weight, None).asnumpy().tolist() == [[[[10, 20], [30, 40]]]]
assert "torch" in sys.modules
"""


@pytest.mark.parametrize("mode", [ms.GRAPH_MODE, ms.PYNATIVE_MODE], ids=["graph", "pynative"])
def test_pytorch_is_imported_where_its_python_part_is_needed(mode, tmp_path):
    run_without_pytorch(WITHOUT_PYTORCH, tmp_path, LEAKY_RELU, mode)


def test_another_pytorch_is_not_imported(tmp_path):
    folder = tmp_path / "torch"
    (folder / "lib").mkdir(parents=True)
    (folder / "lib/libtorch_cpu.so").touch()
    (folder / "__init__.py").touch()
    # The script's folder is the first in which Python looks for modules.
    script = WITHOUT_PYTORCH.partition("assert conv2d")[0] + (
        "try:\n"
        "    conv2d(x, weight, None)\n"
        "except ValueError as error:\n"
        "    print(error)\n"
        "else:\n"
        "    raise AssertionError\n"
        "assert 'torch' not in sys.modules\n"
    )
    assert "; import torch" in run_without_pytorch(script, tmp_path, LEAKY_RELU, ms.PYNATIVE_MODE)

"""PyTorch's operators by name in MindSpore, compared with PyTorch, in both modes."""

import copy
import ctypes
import fractions
import json
import math
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import mindspore as ms
import numpy as np
import pytest
import torch
from mindspore import nn, ops
from mindspore.graph import jit_context, jit_trace
from modes import GRAPHS_IN_FULL
from networks import Call

from aten_bridge._function import Task
from aten_bridge._operators import find_overload, open_operator, operators_library
from aten_bridge.faults import Fault, Status
from aten_bridge.mindspore import operator
from aten_bridge.mindspore._host import HOST
from aten_bridge.program._kernel import check_program

NAMESPACE = "bridge_tests"
GENERATOR = np.random.default_rng(20261123)


def array(*shape, dtype=np.float32):
    return GENERATOR.standard_normal(shape).astype(dtype)


def check(one, reference, *inputs):
    """Compares a call with PyTorch's, bit for bit."""
    got = Call(one)(*(None if x is None else ms.Tensor(x) for x in inputs))
    expected = reference(*(None if x is None else torch.from_numpy(x) for x in inputs))
    got = got if isinstance(got, tuple) else (got,)
    expected = expected if isinstance(expected, tuple) else (expected,)
    assert len(got) == len(expected)
    for ours, theirs in zip(got, expected, strict=True):
        assert ours.asnumpy().dtype == theirs.numpy().dtype
        np.testing.assert_array_equal(ours.asnumpy(), theirs.numpy(), strict=True)


# ===--- calls ---===


def test_values_are_those_of_pytorch(mode):
    check(
        operator("aten::gelu", approximate="tanh"),
        lambda x: torch.nn.functional.gelu(x, approximate="tanh"),
        array(4, 5),
    )
    check(
        operator("aten::leaky_relu", negative_slope=0.2),
        lambda x: torch.nn.functional.leaky_relu(x, 0.2),
        array(4, 5),
    )


@GRAPHS_IN_FULL
def test_operators_with_equal_inputs_are_not_mixed_up(mode):
    cases = [
        (operator("aten::leaky_relu", negative_slope=slope), torch.nn.functional.leaky_relu, slope)
        for slope in (0.25, 0.5)
    ]
    cases += [(operator("aten::topk", k=k), torch.topk, k) for k in (2, 3)]
    cases += [(operator("aten::sum.dim_IntList", dim=[dim]), torch.sum, dim) for dim in (0, 1)]
    x = array(4, 4)
    for in_turn in (cases, cases[::-1], cases):
        for one, reference, argument in in_turn:
            check(one, lambda x, f=reference, argument=argument: f(x, argument), x)


def test_several_results_are_a_tuple(mode):
    check(operator("aten::topk", k=3), lambda x: torch.topk(x, 3), array(4, 5))


def test_none_stands_for_a_tensor_that_is_left_out(mode):
    x, w = array(2, 3, 8), array(4, 3, 3)
    check(
        operator("aten::conv1d", padding=[1]),
        lambda x, w, b: torch.conv1d(x, w, b, padding=1),
        x,
        w,
        None,
    )


def test_the_last_tensors_may_be_left_out(mode):
    check(operator("aten::linear"), torch.nn.functional.linear, array(2, 3), array(4, 3))
    check(
        operator("aten::bincount", minlength=3),
        lambda x: torch.bincount(x, minlength=3),
        np.array([1, 2, 2]),
    ) if mode == "pynative" else None


def test_numbers_stand_for_tensors_of_rank_0(mode):
    got = Call(operator("aten::add"))(ms.Tensor(np.array([1, 2], np.float16)), 2.5)
    assert got.dtype == ms.float16
    assert got.asnumpy().tolist() == [3.5, 4.5]


def test_a_list_takes_the_tensors_that_are_left(mode):
    cat = operator("aten::cat", dim=1)
    check(cat, lambda *x: torch.cat(x, dim=1), array(2, 3), array(2, 4), array(2, 1))
    check(operator("aten::index"), lambda x, _, i: x[:, i], array(3, 4), None, np.array([2, 0]))


def test_lists_before_the_last_have_a_length():
    lstm = operator(
        "aten::lstm.input",
        hx=2,
        has_biases=False,
        num_layers=1,
        dropout=0.0,
        train=False,
        bidirectional=False,
        batch_first=False,
    )
    x, h, c, w, u = array(5, 2, 3), array(1, 2, 4), array(1, 2, 4), array(16, 3), array(16, 4)
    check(
        lstm,
        lambda x, h, c, w, u: torch.lstm(x, (h, c), (w, u), False, 1, 0.0, False, False, False),
        x,
        h,
        c,
        w,
        u,
    )


@GRAPHS_IN_FULL
def test_attributes_of_every_kind(mode):
    x = array(2, 3, 4)
    check(
        operator("aten::sum", dim=[0, 2], keepdim=True, dtype="float64"),
        lambda x: x.sum((0, 2), keepdim=True, dtype=torch.float64),
        x,
    )
    check(operator("aten::sum", dtype=ms.float16), lambda x: x.sum(dtype=torch.float16), x)
    check(operator("aten::sum", dtype=torch.float16), lambda x: x.sum(dtype=torch.float16), x)
    check(operator("aten::sum", dim=1), lambda x: x.sum(1), x)  # an int instead of a list
    check(
        operator("aten::div", rounding_mode="floor"),
        lambda a, b: torch.div(a, b, rounding_mode="floor"),
        x,
        array(2, 3, 4),
    )
    check(operator("aten::clamp", min=-0.5, max=1), lambda x: x.clamp(-0.5, 1), x)
    check(
        operator("aten::upsample_nearest2d", output_size=None, scale_factors=[2.0, 1.5]),
        lambda x: torch.nn.functional.interpolate(x, scale_factor=(2.0, 1.5)),
        array(1, 2, 4, 6),
    )
    check(operator("aten::flip", dims=np.array([0, 2])), lambda x: x.flip(0, 2), x)


def test_floats_are_read_in_any_locale(tmp_path):
    program = """
import ctypes, locale
import numpy as np, mindspore as ms
from aten_bridge.mindspore import operator

class Names(ctypes.Structure):
    _fields_ = [("decimal_point", ctypes.c_char_p)]

libc = ctypes.CDLL(None)
libc.localeconv.restype = ctypes.POINTER(Names)
assert libc.setlocale(1, b"de_DE.UTF-8"), "no locale"
assert libc.localeconv().contents.decimal_point == b","
got = operator("aten::leaky_relu", negative_slope=0.25)(ms.Tensor(np.array([-2.0], np.float32)))
assert got.asnumpy().tolist() == [-0.5], got
"""
    made = subprocess.run(
        ["localedef", "-i", "de_DE", "-f", "UTF-8", str(tmp_path / "de_DE.UTF-8")],
        capture_output=True,
    )
    if made.returncode != 0:
        pytest.skip("localedef has no sources of locales here")
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "LOCPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_floats_are_not_rounded_to_float32():
    third = 1 / 3
    got = operator("aten::mul.Scalar", other=third)(ms.Tensor(np.array([3.0])))
    assert got.asnumpy()[0] == 3.0 * third
    assert np.float32(third) * 3.0 != 3.0 * third
    assert operator("aten::full_like", fill_value=math.inf)(ms.Tensor(1.0)).asnumpy() == math.inf


@GRAPHS_IN_FULL
def test_results_that_are_conjugated_when_they_are_read(mode):
    """aten::linalg_lu_solve.out leaves its output so, from the right."""
    for dtype in (np.complex64, np.complex128):
        a = (array(3, 3) + 1j * array(3, 3)).astype(dtype)
        b = (array(4, 3) + 1j * array(4, 3)).astype(dtype)
        lu, pivots = (t.numpy() for t in torch.linalg.lu_factor(torch.from_numpy(a)))
        for adjoint in (False, True):
            check(
                operator("aten::linalg_lu_solve", left=False, adjoint=adjoint),
                lambda lu, p, b, adjoint=adjoint: torch.linalg.lu_solve(
                    lu, p, b, left=False, adjoint=adjoint
                ).resolve_conj(),
                lu,
                pivots,
                b,
            )
        check(operator("aten::conj"), lambda x: x.conj().resolve_conj(), a)
        check(operator("aten::_neg_view"), lambda x: -x, a)


@pytest.mark.parametrize("dtype", [ms.float16, ms.bfloat16, ms.float32])
@pytest.mark.parametrize("rows", [0, 2])
def test_dtypes_of_statistics(dtype, rows, mode):
    """PyTorch's Python part tells float32 of float16 and bfloat16, as GPUs have them."""
    x, w = ms.Tensor(array(rows, 3), dtype), ms.Tensor(array(3), dtype)
    norm = operator("aten::native_layer_norm", normalized_shape=[3], eps=1e-5)
    assert {one.dtype for one in Call(norm)(x, w, w)} == {dtype}
    if rows > 0:
        norm = operator("aten::native_batch_norm", training=True, momentum=0.1, eps=1e-5)
        assert {one.dtype for one in Call(norm)(x, w, w, w, w)} == {dtype}


def test_views_are_copied(mode):
    check(
        operator("aten::transpose.int", dim0=0, dim1=1), lambda x: x.t().contiguous(), array(2, 3)
    )
    check(operator("aten::expand", size=[3, 2]), lambda x: x.expand(3, 2).contiguous(), array(1, 2))


def test_inputs_are_never_written(mode):
    norm = operator("aten::batch_norm", training=True, momentum=0.5, eps=1e-5, cudnn_enabled=False)
    mean, variance = ms.Tensor(np.zeros(3, np.float32)), ms.Tensor(np.ones(3, np.float32))
    x = ms.Tensor(array(4, 3, 5))
    Call(norm)(x, None, None, mean, variance).asnumpy()
    assert mean.asnumpy().tolist() == [0, 0, 0]
    assert variance.asnumpy().tolist() == [1, 1, 1]


@GRAPHS_IN_FULL
def test_an_overload_is_chosen_by_the_attributes(mode):
    x = array(3, 4)
    check(operator("aten::max"), lambda x: x.max(), x)
    check(operator("aten::max", dim=1), lambda x: tuple(x.max(1)), x)
    check(operator("aten::max.other"), torch.maximum, x, array(3, 4))
    check(operator("aten::max.default"), lambda x: x.max(), x)


@GRAPHS_IN_FULL
def test_an_overload_is_chosen_by_the_types_of_attributes(mode):
    x = array(1, 3, 1)
    check(operator("aten::squeeze", dim=[0, 2]), lambda x: x.squeeze((0, 2)), x)
    check(operator("aten::squeeze", dim=0), lambda x: x.squeeze(0), x)
    y = array(3, 3)
    check(operator("aten::linalg_norm", ord="nuc"), lambda x: torch.linalg.norm(x, "nuc"), y)
    check(operator("aten::linalg_norm", ord=1), lambda x: torch.linalg.norm(x, 1), y)


def test_an_attribute_called_out_dtype():
    x = array(2, 2, dtype=np.float32)
    got = operator("aten::mm.dtype", out_dtype=ms.float32)
    assert got._model.attributes == {"out_dtype": "float32"}
    assert x.shape == (2, 2)


@GRAPHS_IN_FULL
def test_calls_with_other_shapes_and_dtypes(mode):
    softmax = operator("aten::softmax.int", dim=-1)
    for shape in ((2, 3), (4, 5, 6), (7,), (2, 3)):
        check(softmax, lambda x: x.softmax(-1), array(*shape))
    check(softmax, lambda x: x.softmax(-1), array(3, 3, dtype=np.float64))


def test_empty_and_zero_dimensional_tensors(mode):
    check(operator("aten::exp"), torch.exp, array(0, 3))
    check(operator("aten::exp"), torch.exp, np.array(2.0, np.float32))


# ===--- gradients ---===


def test_gradients_are_those_of_autograd(mode):
    x = array(4, 5)
    gelu = operator("aten::gelu", approximate="tanh")
    got = ms.grad(Call(gelu))(ms.Tensor(x))
    leaf = torch.from_numpy(x).requires_grad_()
    torch.nn.functional.gelu(leaf, approximate="tanh").sum().backward()
    np.testing.assert_array_equal(got.asnumpy(), leaf.grad.numpy())


def test_gradients_of_lists_and_several_inputs(mode):
    first, second = array(2, 3), array(2, 1)
    cat = operator("aten::cat", dim=1)
    square = operator("aten::square")

    class Network(nn.Cell):
        def construct(self, a, b):
            return square(cat(a, b)).sum()

    got = ms.grad(Network(), grad_position=(0, 1))(ms.Tensor(first), ms.Tensor(second))
    np.testing.assert_allclose(got[0].asnumpy(), 2 * first, rtol=1e-6)
    np.testing.assert_allclose(got[1].asnumpy(), 2 * second, rtol=1e-6)


class Gradient(nn.Cell):
    """The gradient of the sum of a network's result."""

    def __init__(self, network):
        super().__init__()
        self.network = network

    def construct(self, x):
        return ms.grad(self.network)(x)


def test_gradients_of_higher_order(mode):
    tanh = Call(operator("aten::tanh"))
    x = np.array([0.3, -0.7], np.float64)
    t = np.tanh(x)
    first = Gradient(tanh)
    np.testing.assert_allclose(first(ms.Tensor(x)).asnumpy(), 1 - t**2, rtol=1e-12)
    second = Gradient(first)
    np.testing.assert_allclose(second(ms.Tensor(x)).asnumpy(), -2 * t * (1 - t**2), rtol=1e-12)


@pytest.mark.parametrize(
    ("name", "attributes", "shapes"),
    [
        ("aten::cat", {"dim": 0}, [(2, 3), (1, 3)]),
        ("aten::einsum", {"equation": "ij,jk->ik", "path": None}, [(2, 3), (3, 2)]),
        ("aten::linear", {}, [(2, 3), (4, 3)]),
        ("aten::conv1d", {}, [(1, 2, 5), (3, 2, 2)]),
        ("aten::layer_norm", {"normalized_shape": [3]}, [(2, 3)]),
    ],
)
def test_second_gradients_of_lists_and_of_tensors_left_out(name, attributes, shapes, cpu):
    ms.set_context(mode=ms.PYNATIVE_MODE)
    one = operator(name, **attributes)
    inputs = [array(*shape, dtype=np.float64) for shape in shapes]
    tensors = [ms.Tensor(x) for x in inputs]

    def first(x, *others):
        return ms.grad(lambda a: (one(a, *others) ** 2).sum())(x)

    def second(x, *others):
        return ms.grad(lambda a: (first(a, *others) ** 2).sum())(x)

    leaves = [torch.from_numpy(x).requires_grad_() for x in inputs]
    plain = {key: value for key, value in attributes.items() if value is not None}
    if name == "aten::cat":
        result = torch.cat(leaves, **plain)
    elif name == "aten::einsum":
        result = torch.einsum(plain["equation"], leaves)
    else:
        packet = getattr(torch.ops.aten, name.removeprefix("aten::"))
        result = packet(*leaves, **plain)
    (once,) = torch.autograd.grad((result**2).sum(), leaves[0], create_graph=True)
    (twice,) = torch.autograd.grad((once**2).sum(), leaves[0])
    np.testing.assert_allclose(first(*tensors).asnumpy(), once.detach().numpy(), rtol=1e-9)
    np.testing.assert_allclose(second(*tensors).asnumpy(), twice.numpy(), rtol=1e-9, atol=1e-12)


def test_what_has_no_gradient_is_a_constant(cpu):
    ms.set_context(mode=ms.PYNATIVE_MODE)
    detach, ones_like = operator("aten::detach"), operator("aten::ones_like")
    x = array(3)
    got = ms.grad(lambda x: (x * x + detach(x) + ones_like(x)).sum())(ms.Tensor(x))
    np.testing.assert_allclose(got.asnumpy(), 2 * x, rtol=1e-6)


def test_results_that_were_told_larger_have_no_gradient(cpu):
    ms.set_context(mode=ms.PYNATIVE_MODE)
    select = operator("aten::masked_select", out_shape=(4,), out_dtype=ms.float32)
    mask = ms.Tensor(np.array([True, False, True, True]))
    assert said(
        ValueError, lambda: ms.grad(lambda x: select(x, mask)[0].sum())(ms.Tensor(array(4)))
    ) == (
        "aten::masked_select: expected an operator whose results are as large as their values say "
        "where a network is differentiated, got one that was told the largest; leave that out, "
        "outside of a graph"
    )


def test_integers_have_zeros_for_gradients():
    take = operator("aten::index_select", dim=0)
    index = np.array([1, 1, 0])
    got = ms.grad(lambda x, i: take(x, i).sum(), grad_position=(0, 1))(
        ms.Tensor(array(3, 2)), ms.Tensor(index)
    )
    np.testing.assert_array_equal(got[0].asnumpy(), [[1, 1], [2, 2], [0, 0]])
    np.testing.assert_array_equal(got[1].asnumpy(), [0, 0, 0])


def test_an_input_that_pytorch_does_not_record_has_zeros():
    pool = operator("aten::fractional_max_pool2d", kernel_size=2, output_size=2)
    x, samples = array(1, 1, 4, 4), np.full((1, 1, 2), 0.5, np.float32)
    got = ms.grad(lambda x, s: pool(x, s)[0].sum(), grad_position=(0, 1))(
        ms.Tensor(x), ms.Tensor(samples)
    )
    assert got[0].asnumpy().sum() == 4
    np.testing.assert_array_equal(got[1].asnumpy(), np.zeros_like(samples))


def test_a_network_is_trained():
    linear, relu = operator("aten::linear"), operator("aten::relu")
    w, x, y = ms.Parameter(ms.Tensor(array(1, 4))), ms.Tensor(array(16, 4)), ms.Tensor(array(16, 1))

    def loss(x, y):
        return ops.square(relu(linear(x, w, None)) - y).mean()

    step = ms.value_and_grad(loss, None, [w])
    optimizer = nn.SGD([w], 0.1)
    losses = []
    for _ in range(5):
        value, gradients = step(x, y)
        optimizer(gradients)
        losses.append(float(value.asnumpy()))
    assert losses[-1] < losses[0]


# ===--- graphs ---===


def test_sizes_that_are_not_known_when_a_graph_is_compiled(cpu):
    softmax, topk = operator("aten::softmax.int", dim=-1), operator("aten::topk", k=2)

    class Network(nn.Cell):
        def construct(self, x):
            values, indices = topk(softmax(x))
            return values, indices

    before = ms.get_context("mode")
    ms.set_context(mode=ms.GRAPH_MODE)
    try:
        network = Network()
        network.set_inputs(ms.Tensor(shape=[None, None], dtype=ms.float32))
        for shape in ((2, 3), (4, 6), (2, 3)):
            x = array(*shape)
            values, indices = network(ms.Tensor(x))
            expected = torch.from_numpy(x).softmax(-1).topk(2)
            np.testing.assert_array_equal(values.asnumpy(), expected[0].numpy())
            np.testing.assert_array_equal(indices.asnumpy(), expected[1].numpy())
    finally:
        ms.set_context(mode=before)


def test_jit(cpu):
    gelu = operator("aten::gelu")

    @ms.jit
    def function(x):
        return gelu(gelu(x)) * 2

    x = array(3, 3)
    expected = torch.nn.functional.gelu(torch.nn.functional.gelu(torch.from_numpy(x))) * 2
    np.testing.assert_allclose(function(ms.Tensor(x)).asnumpy(), expected.numpy(), rtol=1e-6)


# ===--- sizes that depend on values ---===


def test_a_graph_that_jit_records(cpu, monkeypatch):
    # MindSpore (2.10) wants the source of each frame on the stack, which pytest's do not have.
    monkeypatch.setattr(jit_trace, "_get_caller_lines", lambda: ([__file__], [1]))
    topk, softmax = operator("aten::topk", k=2), operator("aten::softmax.int", dim=0)
    nonzero = operator("aten::nonzero")
    ms.set_context(mode=ms.PYNATIVE_MODE)

    @ms.jit(capture_mode="trace")
    def function(x):
        values, index = topk(softmax(x) * x)
        return values * values + index

    def reference(t):
        values, index = torch.topk(torch.softmax(t, 0) * t, 2)
        return values * values + index

    x = array(4)
    t = torch.from_numpy(x).requires_grad_()
    expected = reference(t)
    np.testing.assert_array_equal(function(ms.Tensor(x)).asnumpy(), expected.detach().numpy())
    (first,) = torch.autograd.grad(expected.sum(), t, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), t)
    for gradient, wanted in ((ms.grad(function), first), (ms.grad(ms.grad(function)), second)):
        np.testing.assert_allclose(
            gradient(ms.Tensor(x)).asnumpy(), wanted.detach().numpy(), rtol=1e-6
        )

    nonzero(ms.Tensor(x))  # whose sizes are known outside
    jit_context.set_jit_context(jit_context.JitContext())  # as while a graph is recorded
    try:
        with pytest.raises(ValueError, match="aten::nonzero: expected an operator whose results"):
            nonzero(ms.Tensor(x))
    finally:
        jit_context.set_jit_context(None)


def test_results_whose_sizes_depend_on_values(cpu):
    ms.set_context(mode=ms.PYNATIVE_MODE)
    nonzero, select = operator("aten::nonzero"), operator("aten::masked_select")
    unique = operator("aten::_unique2", return_counts=True)
    for threshold in (-10.0, 0.0, 0.5, 10.0):
        x = array(4, 5)
        t = torch.from_numpy(x)
        mask = ms.Tensor(x) > threshold
        np.testing.assert_array_equal(nonzero(mask).asnumpy(), (t > threshold).nonzero().numpy())
        np.testing.assert_array_equal(select(ms.Tensor(x), mask).asnumpy(), x[x > threshold])
        for ours, theirs in zip(
            unique(mask), torch._unique2(t > threshold, return_counts=True), strict=True
        ):
            np.testing.assert_array_equal(ours.asnumpy(), theirs.numpy())
    # PyTorch has no word for it of this one.
    labels = ms.Tensor(np.array([1, 4, 2]))
    assert operator("aten::one_hot")(labels).shape == (3, 5)


def test_their_gradient(cpu):
    ms.set_context(mode=ms.PYNATIVE_MODE)
    select = operator("aten::masked_select")
    x = array(3, 4)
    got = ms.grad(lambda x: (select(x, x > 0) * 3).sum())(ms.Tensor(x))
    np.testing.assert_array_equal(got.asnumpy(), 3.0 * (x > 0))


def test_larger_outputs_and_a_count(mode):
    nonzero = operator("aten::nonzero", out_shape=(12, 2), out_dtype=ms.int64)
    x = array(3, 4)
    result, sizes = Call(nonzero)(ms.Tensor(x > 0))
    expected = np.argwhere(x > 0)
    np.testing.assert_array_equal(sizes.asnumpy(), expected.shape)
    np.testing.assert_array_equal(result.asnumpy()[: len(expected)], expected)
    np.testing.assert_array_equal(result.asnumpy()[len(expected) :], 0)


def test_they_are_refused_in_a_graph(cpu):
    nonzero = operator("aten::nonzero")
    ms.set_context(mode=ms.GRAPH_MODE)
    try:
        with pytest.raises(ValueError, match="aten::nonzero") as error:
            Call(nonzero)(ms.Tensor(array(2, 2)))
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)
    assert str(error.value).splitlines()[0] == (
        "aten::nonzero: expected an operator whose results have sizes that follow from those of "
        "its inputs, got one whose sizes depend on values; call it outside of a graph, or give "
        "out_shape, the largest shapes of its results, and out_dtype"
    )


def test_an_operator_without_a_meta_kernel_is_run_for_its_shapes(cpu):
    # In a process without PyTorch's Python part, where fewer operators have one.
    program = """
import sys
import numpy as np, mindspore as ms
from aten_bridge.mindspore import operator
got = operator("aten::histc", bins=4, min=0.0, max=4.0)(ms.Tensor(np.arange(4, dtype=np.float32)))
assert got.asnumpy().tolist() == [1, 1, 1, 1], got
got = operator("aten::bincount")(ms.Tensor(np.array([0, 3])))
assert got.asnumpy().tolist() == [1, 0, 0, 1], got
assert "torch" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


# ===--- operators of other libraries ---===


def test_operators_that_are_registered_by_others(mine, cpu):
    ms.set_context(mode=ms.PYNATIVE_MODE)
    mine.define("twice(Tensor x) -> Tensor")
    mine.impl("twice", lambda x: x * 2, "CompositeImplicitAutograd")
    check(operator("bridge_tests::twice"), lambda x: x * 2, array(2, 3))


def test_lists_of_other_lengths_are_other_kernels(mine, cpu):
    ms.set_context(mode=ms.PYNATIVE_MODE)
    mine.define("three(Tensor[] a, Tensor[] b, Tensor[] c) -> Tensor")

    def three(a, b, c):
        return sum(a) * 100 + sum(b) * 10 + sum(c)

    mine.impl("three", three, "CompositeImplicitAutograd")
    x = [np.array([float(i)], np.float32) for i in (1, 2, 3, 4)]
    check(operator("bridge_tests::three", a=1, b=2), lambda a, b, c, d: three([a], [b, c], [d]), *x)
    check(operator("bridge_tests::three", a=2, b=1), lambda a, b, c, d: three([a, b], [c], [d]), *x)


def test_an_operator_that_is_registered_again_with_another_schema(cpu):
    ms.set_context(mode=ms.PYNATIVE_MODE)
    x = ms.Tensor(np.ones(2, np.float32))
    first = torch.library.Library("bridge_again", "DEF")
    first.define("f(Tensor x) -> Tensor")
    first.impl("f", lambda x: x * 2, "CompositeImplicitAutograd")
    old = operator("bridge_again::f")
    assert old(x).asnumpy().tolist() == [2, 2]
    first._destroy()
    second = torch.library.Library("bridge_again", "DEF")
    second.define("f(Tensor x, float by=3.0) -> Tensor")
    second.impl("f", lambda x, by: x * by, "CompositeImplicitAutograd")
    try:
        assert operator("bridge_again::f", by=4.0)(x).asnumpy().tolist() == [4, 4]
        with pytest.raises(RuntimeError) as error:
            old(x).asnumpy()
        assert (
            "bridge_again::f: expected the operator that was registered with PyTorch when this one "
            "was made, got one of another schema; make the operator, or the module that "
            "calls it, again"
        ) in str(error.value)
    finally:
        second._destroy()


def test_sizes_that_only_the_values_tell(mine, cpu):
    # Zeros and ones give the same shape: nobody is asked for that of others' operators.
    ms.set_context(mode=ms.PYNATIVE_MODE)
    mine.define("keep(Tensor x) -> Tensor")
    mine.impl("keep", lambda x: x[x >= 0], "CPU")
    keep = operator("bridge_tests::keep")
    for values in ([1.0, -2.0, 3.0], [-1.0, -2.0, -3.0], [1.0, 2.0, 3.0]):
        x = np.array(values, np.float32)
        np.testing.assert_array_equal(keep(ms.Tensor(x)).asnumpy(), x[x >= 0])


@pytest.mark.parametrize(
    ("result", "meta", "told", "printed"),
    [
        ("x * 2", "torch.empty_like(x)", "", "[2. 2.]"),
        ("x[:1]", "None", ", out_shape=(2,), out_dtype=ms.float32", "[1. 0.] [1]"),
        ("1 / 0", "torch.empty_like(x)", "", "ends::f: ZeroDivisionError: division by zero"),
    ],
    ids=["results", "the largest", "an error"],
)
def test_a_program_with_an_operator_in_python_ends(result, meta, told, printed, tmp_path):
    program = f"""
import numpy as np, mindspore as ms, torch
from mindspore import nn
from aten_bridge.mindspore import operator
library = torch.library.Library("ends", "DEF")
library.define("f(Tensor x) -> Tensor")
library.impl("f", lambda x: {result}, "CPU")
if {meta!r} != "None":
    library.impl("f", lambda x: {meta}, "Meta")
class Network(nn.Cell):
    def __init__(self):
        super().__init__()
        self.f = operator("ends::f"{told})
    def construct(self, x):
        return self.f(x)
ms.set_context(mode=ms.GRAPH_MODE)
try:
    results = Network()(ms.Tensor(np.ones(2, np.float32)))
    results = results if isinstance(results, tuple) else (results,)
    print(*(one.asnumpy() for one in results))
except RuntimeError as error:
    print(error)
"""
    file = tmp_path / "program.py"  # graph mode reads the source
    file.write_text(program)
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    said = re.search(r"ends::f.*?(?= \(|\n)", done.stdout)  # without the operands
    assert (said[0] if said else done.stdout.removesuffix("\n")) == printed


# ===--- objects ---===


def test_a_list_of_the_callers_may_change():
    dims = [0]
    flip = operator("aten::flip", dims=dims)
    dims[0] = 1
    x, weights = array(2, 3), array(2, 3)
    gradient = ms.grad(lambda x: (flip(x) * ms.Tensor(weights)).sum())(ms.Tensor(x))
    np.testing.assert_array_equal(flip(ms.Tensor(x)).asnumpy(), x[::-1])
    np.testing.assert_array_equal(gradient.asnumpy(), weights[::-1])


def test_threads_wait_for_the_import_of_pytorch():
    done = subprocess.run(
        [
            *(sys.executable, "-c"),
            """
import sys, threading
import mindspore as ms, numpy as np
from aten_bridge.mindspore import operator
convolution = operator("aten::convolution", stride=[1], padding=[0], dilation=[1], groups=1,
    transposed=False, output_padding=[0])
x, w = (ms.Tensor(np.ones((1, 1, n), np.float32)) for n in (8, 3))
print("torch" in sys.modules)
start = threading.Barrier(4)
def call():
    start.wait()
    sys.stdout.write(f"{convolution(x, w, None).shape}\\n")
threads = [threading.Thread(target=call) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
""",
        ],
        # By ops.Custom MindSpore may end the process where all threads call for the first time.
        env={**os.environ, "ATEN_BRIDGE_NATIVE_CALLER": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert sorted(done.stdout.split("\n")) == ["", *4 * ["(1, 1, 6)"], "False"]


def test_another_number_of_tensors_in_a_list():
    attributes = {"has_biases": True, "num_layers": 1, "dropout": 0.0, "train": False}
    attributes |= {"bidirectional": False, "batch_first": False}
    lstm = operator("aten::lstm.input", hx=2, **attributes)
    assert len(lstm._model.description.inputs) == 4
    assert len(lstm.add_prim_attr("hx", 3)._model.description.inputs) == 5


def test_copies_and_what_is_printed():
    topk = operator("aten::topk", k=3, largest=False)
    assert repr(topk) == "operator('aten::topk', k=3, largest=False)"
    copied = copy.deepcopy(topk)
    x = array(4, 5)
    check(copied, lambda x: torch.topk(x, 3, largest=False), x)
    topk.add_prim_attr("k", 2)
    check(topk, lambda x: torch.topk(x, 2, largest=False), x)
    check(copied, lambda x: torch.topk(x, 3, largest=False), x)


def test_threads(cpu):
    ms.set_context(mode=ms.PYNATIVE_MODE)
    lock = threading.Lock()
    operators = [operator("aten::mul.Scalar", other=float(i)) for i in range(4)]
    faults = []

    def run(i):
        for _ in range(20):
            with lock:  # MindSpore's own PyNative mode is for one thread at a time
                got = operators[i](ms.Tensor(np.ones(3, np.float32))).asnumpy()
            if not (got == i).all():
                faults.append((i, got))

    threads = [threading.Thread(target=run, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults


# ===--- what is said of mistakes ---===


def said(expected, function):
    with pytest.raises(expected) as error:
        function()
    return str(error.value)


def test_a_missing_library(monkeypatch, tmp_path):
    path = tmp_path / "none.so"
    monkeypatch.setenv("ATEN_BRIDGE_OPERATORS", str(path))
    assert said(FileNotFoundError, lambda: operator("aten::relu")) == (
        f"{path}: there is no such file; correct the variable ATEN_BRIDGE_OPERATORS"
    )
    other = Path(torch.__file__).with_name("lib") / "libc10.so"
    monkeypatch.setenv("ATEN_BRIDGE_OPERATORS", str(other))
    assert said(ImportError, lambda: operator("aten::relu")) == (
        f"{other}: expected the library of PyTorch's operators by name, aten_bridge_operators.so, "
        "got another; correct the variable ATEN_BRIDGE_OPERATORS"
    )


def test_faults_as_data(faults):
    """Those that Python finds, and those of the library."""
    x = ms.Tensor([[1.0, 2.0]])
    others = "'aten::max.other' takes 2"
    assert faults(lambda: operator("aten::max")(x, x)) == (
        Fault("1 input", "2", others, Status.COUNT, "call"),
    )
    assert faults(lambda: operator("aten::topk", k=1.5)) == (
        Fault("an int", "the float 1.5", "", Status.ATTRIBUTE, "attribute", -1, "k"),
    )
    assert faults(lambda: operator("aten::relu")(None)) == (
        Fault("a tensor", "None", "", Status.DTYPE, "input", 0, "self"),
    )


def test_an_older_library(monkeypatch, tmp_path):
    table = Path(__file__).parents[1] / "kernels/any_table.h"
    (tmp_path / "older.cpp").write_text(
        f'#define INTERFACE 5\n#define DESCRIPTION nullptr\n#include "{table}"\n'
        'extern "C" const char* aten_bridge_operator_names() { return ""; }\n'
    )
    older = tmp_path / "older.so"
    subprocess.run(["c++", "-shared", "-fPIC", tmp_path / "older.cpp", "-o", older], check=True)
    monkeypatch.setenv("ATEN_BRIDGE_OPERATORS", str(older))
    assert said(ImportError, lambda: operator("aten::nonzero")) == (
        f"{older}: expected a library of interface 8, got 5 of aten_bridge 0.0.9; build it again "
        "with the aten_bridge.h that this Python module came with, or use the module that came "
        "with the library's"
    )


ANSWERS = """
extern "C" const char* aten_bridge_operator_names() { return "[]"; }
extern "C" const char* aten_bridge_operator_overloads(const char* name, int* status) {
  *status = STATUS;
  return "aten::relu: expected this, got that; do so";
}
extern "C" const char* aten_bridge_program_add(const char*, const char*, const char*, int* status) {
  *status = STATUS;
  return "AtenProgram: expected this, got that; do so";
}
"""


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (Status.ATTRIBUTE, ValueError),
        (Status.SHAPE, ValueError),
        (Status.ATEN, ValueError),
        (Status.PYTORCH, ImportError),
    ],
    ids=lambda one: getattr(one, "name", ""),
)
def test_errors_are_those_of_the_status(monkeypatch, tmp_path, status, kind):
    """Only where the process has another PyTorch the library cannot be imported."""
    description = json.dumps({"kernels": [], "pytorch": "2.11", "cxx11_abi": True, "fault": ""})
    table = Path(__file__).parents[1] / "kernels/any_table.h"
    source, library = tmp_path / "answers.cpp", tmp_path / "answers.so"
    source.write_text(
        f'#define DESCRIPTION {json.dumps(description)}\n#include "{table}"\n'
        f"#define STATUS {int(status)}\n{ANSWERS}"
    )
    subprocess.run(["c++", "-shared", "-fPIC", source, "-o", library], check=True)
    monkeypatch.setenv("ATEN_BRIDGE_OPERATORS", str(library))
    for call, text in (
        (lambda: operator("aten::relu"), "aten::relu: expected this, got that; do so"),
        (lambda: check_program("input"), "AtenProgram: expected this, got that; do so"),
    ):
        with pytest.raises(kind) as error:
            call()
        assert type(error.value) is kind
        assert str(error.value) == text


def test_an_operator_that_has_no_such_kernel_is_a_value_error():
    library = operators_library()
    overload = find_overload(library, "aten::cat", {}, HOST)
    with pytest.raises(ValueError, match="cat") as error:
        open_operator(library, overload, HOST, {}, Task(order=1, input_count=0))
    assert str(error.value) == (
        'aten::cat: expected a gradient of one input or more, got the task "1" for 0 inputs'
    )


def test_unknown_names():
    assert said(AttributeError, lambda: operator("aten::topkk")) == (
        "aten::topkk: expected an operator that is registered with PyTorch, got an unknown name; "
        "did you mean 'aten::topk'?"
    )
    for name in ("topk", "aten:topk", "aten.topk", "torch.topk", "torch.ops.aten.topk"):
        assert said(AttributeError, lambda name=name: operator(name)) == (
            'expected the name of an operator, such as "aten::topk" or "aten::max.dim", got '
            f"{name!r}; did you mean 'aten::topk'?"
        )
    # Names of PyTorch's modules, and of the other hosts' functions.
    for name, close in {
        "aten::ReLU": "aten::relu",
        "aten::LogSoftmax": "aten::log_softmax",
        "aten::MaxPool2d": "aten::max_pool2d",
        "aten::Softmax": "aten::softmax",
        "aten::BatchNorm": "aten::batch_norm",
        "aten::matMul": "aten::matmul",
    }.items():
        assert said(AttributeError, lambda name=name: operator(name)) == (
            f"{name}: expected an operator that is registered with PyTorch, got an unknown name; "
            f"did you mean {close!r}?"
        )
    assert said(AttributeError, lambda: operator("mylib::no_such_operator")) == (
        "mylib::no_such_operator: expected an operator that is registered with PyTorch, got an "
        "unknown name; import the library that registers it"
    )
    assert said(AttributeError, lambda: operator("aten::max.dimm")) == (
        "aten::max.dimm: expected one of 'aten::max', 'aten::max.dim', 'aten::max.dim_max', "
        "'aten::max.names_dim', 'aten::max.names_dim_max', 'aten::max.other', 'aten::max.out', "
        "'aten::max.unary_out', got an unknown overload; did you mean 'aten::max.dim'?"
    )


def test_operators_that_do_not_make_tensors_of_tensors():
    assert said(AttributeError, lambda: operator("aten::relu_")) == (
        "aten::relu_: expected an operator from tensors to new tensors, got one that is not: it "
        "writes its argument 'self'; use an overload that returns its results"
    )
    assert said(AttributeError, lambda: operator("aten::chunk")) == (
        "aten::chunk: expected an operator from tensors to new tensors, got one that is not: it "
        "returns a value of type Tensor[]"
    )
    assert said(AttributeError, lambda: operator("aten::is_nonzero")) == (
        "aten::is_nonzero: expected an operator from tensors to new tensors, got one that is not: "
        "it returns a value of type bool"
    )


def test_factories():
    expected = (
        "expected an operator from tensors to new tensors, got a factory, which takes no tensor"
    )
    cure = "make its result with mindspore.ops, mindspore.mint or NumPy"
    for name, attributes in {
        "aten::arange": {"end": 3},
        "aten::eye": {"n": 3},
        "aten::scalar_tensor": {"s": 3},
    }.items():
        assert said(AttributeError, lambda n=name, a=attributes: operator(n, **a)) == (
            f"{name}: {expected}; {cure}"
        )
    for name, attributes in {
        "aten::randn": {"size": [2]},
        "aten::full": {"size": [2], "fill_value": 1.0},
        "aten::zeros": {"size": [2]},
    }.items():
        assert said(AttributeError, lambda n=name, a=attributes: operator(n, **a)) == (
            f"{name}: {expected}; {cure}, or call '{name}_like'"
        )
    # Overloads of these take tensors, with other attributes than are given.
    for name in ("aten::linspace", "aten::logspace"):
        assert said(AttributeError, lambda n=name: operator(n, start=0.0, end=1.0, steps=5)) == (
            f"{name}: {expected}; {cure}, or call '{name}.Scalar_Tensor', '{name}.Tensor_Scalar', "
            f"'{name}.Tensor_Tensor'"
        )
    ends = [ms.Tensor(np.float32(0)), ms.Tensor(np.float32(4))]
    got = operator("aten::linspace", steps=3)(*ends)
    assert got.asnumpy().tolist() == [0, 2, 4]


def test_the_name_of_a_gradient_without_its_library():
    for grad in ("ReluGrad", ("ReluGrad", "ReluGradGrad")):
        assert said(ValueError, lambda g=grad: operator("aten::relu", grad=g)) == (
            "aten::relu: expected grad to name a library and a gradient kernel, as in "
            "\"./a.so:CubeGrad\", got 'ReluGrad', and the library of operators has none; leave "
            "grad out for the gradient by PyTorch's autograd"
        )


def test_wrong_attributes():
    assert said(TypeError, lambda: operator("aten::topk")) == (
        "aten::topk: attribute 'k': expected an int, got nothing; give it where the operator is "
        "made, as in operator('aten::topk', k=...)"
    )
    assert said(TypeError, lambda: operator("aten::topk", k=3.5)) == (
        "aten::topk: attribute 'k': expected an int, got the float 3.5"
    )
    # Which no float can hold.
    for number in (fractions.Fraction(10**400), np.longdouble(2) ** 2000):
        assert said(TypeError, lambda n=number: operator("aten::elu", alpha=n)).startswith(
            "aten::elu: attribute 'alpha': expected a number, got "
        )
    assert said(TypeError, lambda: operator("aten::topk", k=3, dimm=1)) == (
        "aten::topk: attribute 'dimm': expected one of 'k', 'dim', 'largest', 'sorted', got an "
        "unknown name; did you mean 'dim'?"
    )
    for value in ([True, False], ["a"], 1j, object(), [1, "a"]):
        assert said(TypeError, lambda v=value: operator("aten::topk", k=3, larges=v)) == (
            "aten::topk: attribute 'larges': expected one of 'k', 'dim', 'largest', 'sorted', got "
            "an unknown name; did you mean 'largest'?"
        )
    deep = 1
    for _ in range(sys.getrecursionlimit()):
        deep = [deep]
    assert said(TypeError, lambda: operator("aten::sum", dim=deep)).startswith(
        "aten::sum.dim_IntList: attribute 'dim': expected a list of ints, got "
    )
    # The error is that of the overload that has these names, not of the one without attributes.
    assert said(TypeError, lambda: operator("aten::max", dim="x")) == (
        "aten::max.dim: attribute 'dim': expected an int, got the str \"x\""
    )
    assert said(TypeError, lambda: operator("aten::gelu", approximate=object)) == (
        "aten::gelu: attribute 'approximate': expected a str, got <class 'object'>"
    )
    assert said(TypeError, lambda: operator("aten::sum", dtype="float31")) == (
        "aten::sum: attribute 'dtype': expected the name of a dtype, such as \"float32\", got the "
        'str "float31"'
    )


@pytest.mark.parametrize("task", ["1/0", "2/0"])
def test_a_gradient_for_no_inputs_is_refused(task, plain):
    """It has no outputs, of which MindSpore's hooks would take the first."""
    library = ctypes.CDLL(os.environ["ATEN_BRIDGE_OPERATORS"])
    library.aten_bridge_operator_describe.restype = ctypes.c_char_p
    status = ctypes.c_int()
    text = library.aten_bridge_operator_describe(
        f"9:aten::cat3:{task}".encode(), ctypes.byref(status)
    )
    assert plain(text.decode()) == (
        "aten::cat: expected a gradient of one input or more, got the task "
        f'"{task.partition("/")[0]}" for 0 inputs'
    )
    assert status.value == 6  # Status::kAttribute


def test_wrong_calls(cpu):
    ms.set_context(mode=ms.PYNATIVE_MODE)
    x = ms.Tensor(array(4, 5))
    assert said(TypeError, lambda: operator("aten::gelu")(x, x)) == (
        "aten::gelu: expected 1 input, got 2"
    )
    assert said(TypeError, lambda: operator("aten::max")(x, x)) == (
        "aten::max: expected 1 input, got 2; 'aten::max.other' takes 2"
    )
    assert said(ValueError, lambda: operator("aten::mm")(x, x)) == (
        "aten::mm: mat1 and mat2 shapes cannot be multiplied (4x5 and 4x5) "
        "(inferring from input 0: float32 [4, 5]; input 1: float32 [4, 5])"
    )
    assert said(TypeError, lambda: operator("aten::gelu")(np.ones(3))) == (
        "aten::gelu: input 0: expected a tensor, got a NumPy array; give it as "
        "mindspore.Tensor(array)"
    )


def test_shapes_are_refused_as_the_kernel_does_it(cpu):
    # Meta functions in Python say "not enough values to unpack", "tuple index out of range" ...
    ms.set_context(mode=ms.PYNATIVE_MODE)
    x = ms.Tensor(np.ones(3, np.float32))
    told = "input 0: float32 [3]; input 1: float32 [3]"
    grid = operator(
        "aten::grid_sampler_2d", interpolation_mode=0, padding_mode=0, align_corners=False
    )
    assert said(ValueError, lambda: grid(x, x)) == (
        "aten::grid_sampler_2d: grid_sampler(): expected grid to have size -1 in last dimension, "
        f"but got grid with sizes [3] (inferring from {told})"
    )
    assert said(ValueError, lambda: operator("aten::max_pool2d", kernel_size=2)(x)) == (
        "aten::max_pool2d: non-empty 3D or 4D (batch mode) tensor expected for input "
        "(inferring from input 0: float32 [3])"
    )
    assert said(ValueError, lambda: operator("aten::addmm")(x, x, x)) == (
        "aten::addmm: mat1 must be a matrix, got 1-D tensor "
        f"(inferring from {told}; input 2: float32 [3])"
    )


def test_a_large_call_is_not_run_for_its_error(cpu):
    # Neither by its inputs nor by attributes that may be sizes: the meta function's words stay.
    ms.set_context(mode=ms.PYNATIVE_MODE)
    x = ms.Tensor(np.ones((2, 1024, 1024), np.float32))
    assert said(ValueError, lambda: operator("aten::mm")(x, x)) == (
        "aten::mm: RuntimeError: a must be 2D "
        "(inferring from input 0: float32 [2, 1024, 1024]; input 1: float32 [2, 1024, 1024])"
    )
    small = ms.Tensor(np.ones(3, np.float32))
    pool = operator("aten::max_pool2d", kernel_size=[2000, 2000])
    assert said(ValueError, lambda: pool(small)) == (
        "aten::max_pool2d: IndexError: Dimension out of range (expected to be in range of "
        "[-1, 0], but got -3) (inferring from input 0: float32 [3])"
    )


def test_errors_of_a_run_name_the_operands(cpu):
    ms.set_context(mode=ms.PYNATIVE_MODE)
    take = operator("aten::index_select", dim=0)
    text = said(RuntimeError, lambda: take(ms.Tensor(array(3, 2)), ms.Tensor([7])).asnumpy())
    assert "aten::index_select: " in text
    assert "(input 0 'self': float32 [3, 2]; input 1 'index': int64 [1]; output 0: " in text


@pytest.mark.parametrize("name", ["aten::lift", "aten::lift_fresh", "aten::alias", "aten::view_as"])
def test_gradients_of_operators_that_return_their_argument(name):
    function = operator(name)
    x = ms.Tensor(np.array([1.5, -2.0], np.float32))
    more = (x,) if name.endswith("_as") else ()
    for _ in range(2):
        gradient = ms.grad(lambda x: (function(x, *more) * x).sum())(x)
        assert gradient.asnumpy().tolist() == [3, -4]


def test_a_list_whose_tensors_may_be_none_is_not_left_out():
    ms.set_context(mode=ms.PYNATIVE_MODE)
    with pytest.raises(ValueError, match="aten::index") as error:
        operator("aten::index")(False)
    assert str(error.value).startswith(
        "aten::index.Tensor: at least one index must be provided (inferring from input 0: bool "
    )

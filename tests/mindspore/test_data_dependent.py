"""Kernels with `data_dependent()`: the sizes of their results are known once they are computed."""

import copy
import os

import mindspore as ms
import numpy as np
import pytest
from host import BUILD, Net, assert_same, bridge_error
from mindspore import nn, ops

from aten_bridge.mindspore import kernel

UNSIZED = BUILD / "tests/test_unsized.so"
X = np.array([1, -2, 3, -4, 5], np.float32)
WITHOUT_CALLER = os.environ.get("ATEN_BRIDGE_NATIVE_CALLER") == "0"
DEPENDS = (
    "expected an operator whose results have sizes that follow from those of its inputs, got one "
    "whose sizes depend on values; call it outside of a graph, or give out_shape, the largest "
    "shapes of its results, and out_dtype"
)
EFFECT = (
    "expected results that are the same when they are computed twice, once for their sizes, got "
    "those of a call with an effect; give out_shape, the largest shapes of its results, and "
    "out_dtype"
)


def unsized(name, **options):
    return kernel(f"{UNSIZED}:{name}", **options)


def floats(*values):
    return np.array(values, np.float32)


def said(run):
    """What an error begins with; graphs add lines."""
    with pytest.raises((TypeError, ValueError)) as error:
        run()
    return str(error.value).splitlines()[0]


def test_the_sample_of_the_guide(pynative):
    library, x = UNSIZED, ms.Tensor(X)
    # [call]
    positives = kernel(f"{library}:Positives", grad="PositivesGrad")
    y = positives(x)  # as many elements as x has above 0
    dx = ms.grad(lambda x: positives(x).sum())(x)

    largest = kernel(f"{library}:Positives", out_shape=(5,), out_dtype=ms.float32)
    padded, sizes = largest(x)  # padded[: sizes[0]], with zeros after them; also in a graph
    # [/call]
    assert_same(y, floats(1, 3, 5))
    assert_same(dx, floats(1, 0, 1, 0, 1))
    assert_same(padded, floats(1, 3, 5, 0, 0))
    assert sizes.asnumpy().tolist() == [3]


def test_results_have_the_sizes_that_their_values_say(mode):
    positives, negatives = unsized("Positives"), unsized("Negatives")  # kernels of one type
    x = ms.Tensor(X)
    for _ in range(3):
        assert_same(positives(x), floats(1, 3, 5))
        assert_same(negatives(x), floats(-2, -4))
        assert_same(positives(-x), floats(2, 4))
        assert_same(positives(ms.Tensor(-np.abs(X))), floats())
    assert_same(positives(ms.Tensor(X.astype(np.int32))), np.array([1, 3, 5], np.int32))
    assert_same(copy.deepcopy(positives)(x), floats(1, 3, 5))


def test_several_results_and_an_attribute(mode):
    values, places = unsized("Above", threshold=2.0)(ms.Tensor(X))
    assert_same(values, floats(3, 5))
    assert_same(places, np.array([[2], [4]]))
    values, places = unsized("Above")(ms.Tensor(X))  # the default
    assert_same(values, floats(1, 3, 5))


def test_lists_and_numbers(mode):
    x = ms.Tensor(X)
    positives = unsized("PositivesOfAll")
    for _ in range(2):
        assert_same(positives((x, -x), 1), floats(1, 3, 5, 2, 4))
        assert_same(positives((x,), 2), floats(1, 3, 5, 1, 3, 5))


def test_a_state(mode):
    shifted, other = unsized("Shifted", shift=2.5), unsized("Shifted", shift=-3.0)
    for _ in range(2):
        assert_same(shifted(ms.Tensor(X)), floats(3.5, 0.5, 5.5, 7.5))
        assert_same(other(ms.Tensor(X)), floats(2))


def test_a_result_in_the_memory_of_an_input(mode):
    x = floats(3, 1, 2, 4)
    first = unsized("First")
    for _ in range(2):
        given = ms.Tensor(x)
        result = first(given)
        given += 1
        assert_same(result, floats(3, 1, 2))


def test_results_in_memory_that_ends_with_the_call(mode):
    x = floats(3, -1, 2, 4)
    lent = unsized("Lent")
    for _ in range(2):
        copied, begin = lent(ms.Tensor(x))
        assert_same(copied, floats(3, 2, 4))
        assert_same(begin, x[:3])


# MindSpore (2.10) adds to later errors where a graph could not be compiled: these come first.


def test_where_the_largest_is_too_small(pynative):
    small = unsized("Positives", out_shape=(2,), out_dtype=ms.float32)
    assert bridge_error(lambda: small(ms.Tensor(X))[0].asnumpy(), UNSIZED) == (
        "Positives: output 0: expected float32 [2] or less of it, as out_shape and out_dtype say, "
        "got float32 [3]"
    )


def test_a_plain_custom_operator_says_what_is_missing(pynative):
    """Without the Python module nobody asks for sizes: those that are told must be right."""
    told = ops.Custom(f"{UNSIZED}:Positives", (3,), ms.float32, func_type="aot")
    assert_same(told(ms.Tensor(X)), floats(1, 3, 5))
    assert bridge_error(lambda: told(ms.Tensor(-X)).asnumpy(), UNSIZED) == (
        "Positives: output 0: expected float32 [3] as out_shape and out_dtype or the run for the "
        "sizes say, got float32 [2] from the kernel"
    )


def test_checks_see_inputs_and_results(pynative):
    first = unsized("First")
    assert (
        said(lambda: first(ms.Tensor(np.ones((2, 2), np.float32))))
        == "First: input 0 'x': expected rank 1, got float32 [2, 2]"
    )
    assert (
        bridge_error(lambda: first(ms.Tensor(floats(2, 1))).asnumpy(), UNSIZED)
        == "First: output 0 'begin': expected sizes [3], got float32 [2]"
    )
    assert (
        said(lambda: unsized("Positives")(ms.Tensor(X), 2)) == "Positives: expected 1 input, got 2"
    )


def test_gradients(mode):
    positives = unsized("Positives", grad=("PositivesGrad", "PositivesGradGrad"))
    above = unsized("Above", threshold=2.0, grad="AboveGrad")
    x = ms.Tensor(X)

    def square_sum(x):
        return (positives(x) ** 2).sum()

    def first_sum(x):
        return (above(x)[0] * 3).sum()

    if mode == "graph":
        assert said(lambda: ms.grad(square_sum)(x)) == f"Positives: {DEPENDS}"
        return
    for _ in range(2):  # the second by C++ alone
        assert_same(ms.grad(square_sum)(x), floats(2, 0, 6, 0, 10))
        assert_same(ms.grad(square_sum)(-x), floats(0, 4, 0, 8, 0))
        assert_same(ms.grad(first_sum)(x), floats(0, 0, 3, 0, 3))
    second = ms.grad(lambda x: ms.grad(square_sum)(x).sum())
    assert_same(second(x), floats(2, 0, 2, 0, 2))


def test_a_missing_gradient(pynative):
    negatives = unsized("Negatives")
    assert said(lambda: ms.grad(lambda x: negatives(x).sum())(ms.Tensor(X))) == (
        "Negatives: expected an operator with a gradient kernel where a network is "
        'differentiated, got one without; name one with grad="...", as in '
        'kernel("./a.so:Cube", grad="CubeGrad")'
    )


class Sum(nn.Cell):
    def __init__(self, operator):
        super().__init__()
        self.operator = operator

    def construct(self, x):
        return self.operator(x).sum()


def test_in_a_graph_the_largest_is_told(mode):
    x = ms.Tensor(X)
    largest = unsized(
        "Above", threshold=2.0, out_shape=((5,), (5, 1)), out_dtype=(ms.float32, ms.int64)
    )
    like_input = unsized("Positives", out_shape=lambda x: x, out_dtype=lambda x: x)
    for operator in (largest, Net(largest), copy.deepcopy(largest)):
        values, places, size, sizes = operator(x)
        assert_same(values, floats(3, 5, 0, 0, 0))
        assert_same(places, np.array([[2], [4], [0], [0], [0]]))
        assert (size.asnumpy().tolist(), sizes.asnumpy().tolist()) == ([2], [2, 1])
    for operator in (like_input, Net(like_input), ms.jit(Net(like_input))):
        values, size = operator(x)
        assert_same(values, floats(1, 3, 5, 0, 0))
        assert size.asnumpy().tolist() == [3]
    positives = unsized("Positives")
    if mode == "graph":
        assert said(lambda: Sum(positives)(x)) == f"Positives: {DEPENDS}"
    assert said(lambda: ms.jit(Sum(positives))(x)) == f"Positives: {DEPENDS}"
    assert_same(positives(x), floats(1, 3, 5))


def test_the_largest_has_no_gradient(pynative):
    padded = unsized("Positives", grad="PositivesGrad", out_shape=(5,), out_dtype=ms.float32)
    assert said(lambda: ms.grad(lambda x: padded(x)[0].sum())(ms.Tensor(X))) == (
        "Positives: expected an operator whose results are as large as their values say where a "
        "network is differentiated, got one that was told the largest; leave that out, outside of "
        "a graph"
    )


def test_a_state_that_changes(mode):
    x = ms.Tensor(X)
    assert said(lambda: unsized("Growing")(x)) == f"Growing: {EFFECT}"
    growing = unsized("Growing", out_shape=(5,), out_dtype=ms.float32)
    assert [growing(x)[1].asnumpy().tolist() for _ in range(3)] == [[1], [2], [3]]


def test_one_call_computes_results_once(pynative):
    """Without the native caller it computes them once more, which a call with an effect shows."""
    drawn = unsized("Positives", has_side_effect=True)
    if WITHOUT_CALLER:
        assert said(lambda: drawn(ms.Tensor(X))) == f"Positives: {EFFECT}"
    else:
        assert_same(drawn(ms.Tensor(X)), floats(1, 3, 5))


@pytest.mark.parametrize("sizes", [(2, 3), (0, 4), (3, 0)])
def test_a_kernel_may_return_its_input(pynative, sizes):
    x = np.ones(sizes, np.float32)
    assert_same(unsized("Itself")(ms.Tensor(x)), x)

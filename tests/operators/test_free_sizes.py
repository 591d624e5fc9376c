"""Operators by name in PyNative mode whose results have the sizes that the values give.

The suite runs with the native caller and, with ATEN_BRIDGE_NATIVE_CALLER=0, without: what is here
holds for both.
"""

import gc
import os
import resource
from pathlib import Path

import mindspore as ms
import numpy as np
import pytest
import torch
from mindspore import mint

from aten_bridge.mindspore import operator

IS_ON = os.environ.get("ATEN_BRIDGE_NATIVE_CALLER") != "0"
LIBRARY = Path(os.environ["ATEN_BRIDGE_OPERATORS"])
needs_caller = pytest.mark.skipif(not IS_ON, reason="it is turned off")
NAMESPACE = "bridge_free_sizes"
VALUES = np.array([[1, 0, -3], [3, 0, 3]], np.float32)
MASK = VALUES > 0


@pytest.fixture(autouse=True, params=["queues", "at once"])
def setting(request, pynative):
    """Whether MindSpore runs operators in threads of its own."""
    before = ms.get_context("pynative_synchronize")
    ms.set_context(pynative_synchronize=request.param == "at once")
    yield
    ms.set_context(pynative_synchronize=before)


def assert_as_pytorch(results, expected):
    results = results if isinstance(results, tuple) else (results,)
    expected = expected if isinstance(expected, tuple) else (expected,)
    for result, wanted in zip(results, expected, strict=True):
        assert result.shape == tuple(wanted.shape)
        assert result.asnumpy().dtype == wanted.numpy().dtype
        np.testing.assert_array_equal(result.asnumpy(), wanted.numpy())


CALLS = [
    ("nonzero", {}, [VALUES]),
    ("nonzero", {}, [np.zeros((2, 3), np.float32)]),
    ("nonzero", {}, [np.zeros((0, 3), np.float32)]),
    ("nonzero", {}, [np.array(True)]),
    ("argwhere", {}, [MASK]),
    ("masked_select", {}, [VALUES, MASK]),
    ("masked_select", {}, [VALUES.astype(np.complex64) * 1j, MASK[:1]]),
    ("masked_select", {}, [VALUES, MASK & ~MASK]),
    ("index", {}, [VALUES, MASK]),
    ("index", {}, [VALUES, None, np.array([True, False, True])]),
    ("unique_consecutive", {"return_inverse": True, "return_counts": True}, [VALUES]),
    ("_unique2", {"return_inverse": True, "return_counts": True}, [VALUES.astype(np.int32)]),
    ("unique_dim", {"dim": 1, "return_inverse": True}, [VALUES]),
    ("repeat_interleave", {}, [np.array([2, 0, 1])]),
]


@pytest.mark.parametrize(("name", "attributes", "inputs"), CALLS)
def test_results_are_those_of_pytorch(name, attributes, inputs):
    one = operator(f"aten::{name}", **attributes)
    tensors = [None if x is None else torch.from_numpy(x) for x in inputs]
    if name == "index":
        expected = torch.ops.aten.index(tensors[0], tensors[1:])
    else:
        expected = getattr(torch.ops.aten, name)(*tensors, **attributes)
    for _ in range(3):
        arguments = [None if x is None else ms.Tensor(x) for x in inputs]
        assert_as_pytorch(one(*arguments), expected)
    assert (one._function is not None) == IS_ON


def test_sizes_that_change_with_the_values():
    nonzero = operator("aten::nonzero")
    for count in (3, 0, 7, 1, 0, 8):
        x = np.arange(8) < count
        assert_as_pytorch(nonzero(ms.Tensor(x)), torch.from_numpy(x).nonzero())


def test_numbers_and_none_among_the_inputs(mine):
    def more(x, least, scale=None):
        return x[x > least] * (1 if scale is None else scale)

    mine.define("above(Tensor x, Tensor least, Tensor? scale=None) -> Tensor")
    mine.impl("above", more, "CPU")
    above = operator("bridge_free_sizes::above")
    for _ in range(2):
        assert above(ms.Tensor(VALUES), 0.5).asnumpy().tolist() == [1, 3, 3]
        assert above(ms.Tensor(VALUES), 2.0, None).asnumpy().tolist() == [3, 3]
        assert above(ms.Tensor(VALUES), 2.0, ms.Tensor(2.0)).asnumpy().tolist() == [6, 6]


def test_nms_of_torchvision():
    torchvision = pytest.importorskip("torchvision")
    boxes = np.float32([[0, 0, 4, 4], [0, 0, 4, 5], [9, 9, 12, 12], [0, 0, 5, 4]])
    scores = np.float32([0.5, 0.9, 0.1, 0.3])
    nms = operator("torchvision::nms", iou_threshold=0.5)
    expected = torchvision.ops.nms(torch.from_numpy(boxes), torch.from_numpy(scores), 0.5)
    assert expected.tolist() == [1, 2]
    for _ in range(2):
        assert_as_pytorch(nms(ms.Tensor(boxes), ms.Tensor(scores)), expected)


@needs_caller
def test_an_operator_runs_once(mine):
    """ops.Custom has to run it for the sizes first."""
    runs = []

    def draw(x):
        runs.append(x.tolist())
        return x[: len(runs)] * 2, x.sum()

    mine.define("draw(Tensor x) -> (Tensor, Tensor)")
    mine.impl("draw", draw, "CPU")
    one = operator("bridge_free_sizes::draw")
    x = ms.Tensor(np.float32([1, 2, 3]))
    for count in (1, 2, 3):
        some, total = one(x)
        assert some.asnumpy().tolist() == [2, 4, 6][:count]
        assert total.asnumpy().tolist() == 6
        assert len(runs) == count


def test_results_in_the_memory_of_an_input(mine):
    mine.define("rows(Tensor x) -> (Tensor, Tensor)")
    mine.impl("rows", lambda x: (x[: int(x[0, 0])], x.T), "CPU")
    one = operator("bridge_free_sizes::rows")
    x = ms.Parameter(ms.Tensor(VALUES))
    for _ in range(2):
        row, transposed = one(x)
        ms.ops.assign(x, ms.Tensor(VALUES * 0))
        assert_as_pytorch((row, transposed), (torch.tensor(VALUES[:1]), torch.tensor(VALUES.T)))
        ms.ops.assign(x, ms.Tensor(VALUES))


def test_among_mindspores_own_operators():
    """They run in other threads: a call must come neither before them nor behind."""
    select = operator("aten::masked_select")
    x = np.random.default_rng(0).standard_normal((200, 200)).astype(np.float32)
    y = ms.Tensor(x)
    for _ in range(3):
        product = mint.matmul(y, y)
        result = select(mint.transpose(product, 0, 1), mint.transpose(product, 0, 1) > 0) + 1
        wanted = (x @ x).T
        kept = wanted[product.asnumpy().T > 0] + 1
        np.testing.assert_allclose(result.asnumpy(), kept, rtol=1e-3, atol=1e-3)
        strided = select(y[:, ::2], y[:, ::2] > 0)
        np.testing.assert_array_equal(strided.asnumpy(), x[:, ::2][x[:, ::2] > 0])


# ===--- gradients ---===


@pytest.mark.parametrize("name", ["masked_select", "index"])
def test_gradients(name):
    select, mask = operator(f"aten::{name}"), ms.Tensor(MASK)

    def cubes(x):
        return (select(x * 2, mask) ** 3).sum()

    first = ms.grad(cubes)
    wanted = np.where(MASK, 24 * VALUES**2, 0)
    for _ in range(3):
        np.testing.assert_array_equal(first(ms.Tensor(VALUES)).asnumpy(), wanted)
    second = ms.grad(lambda x: first(x).sum())
    for _ in range(2):
        np.testing.assert_array_equal(
            second(ms.Tensor(VALUES)).asnumpy(), np.where(MASK, 48 * VALUES, 0)
        )
    value, gradient = ms.value_and_grad(cubes)(ms.Tensor(VALUES * 0))
    assert value.asnumpy() == 0
    assert not gradient.asnumpy().any()


def test_gradients_of_no_elements_and_of_numbers_of_elements_that_change():
    select = operator("aten::masked_select")
    step = ms.grad(lambda x: select(x, x > 0).sum())
    for x in (VALUES, -VALUES, VALUES * 0, VALUES):
        np.testing.assert_array_equal(step(ms.Tensor(x)).asnumpy(), (x > 0).astype(np.float32))


def test_the_gradient_of_one_result_of_several():
    @torch.library.custom_op("bridge_free_sizes_custom::halves", mutates_args=())
    def halves(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x[x > 0], (x > 0).nonzero()

    halves.register_autograd(
        lambda ctx, kept, _: torch.zeros_like(ctx.x).masked_scatter(ctx.x > 0, kept),
        setup_context=lambda ctx, inputs, output: setattr(ctx, "x", inputs[0]),
    )
    one = operator("bridge_free_sizes_custom::halves")
    x = ms.Tensor(VALUES[0])
    kept, places = one(x)
    assert (kept.asnumpy().tolist(), places.asnumpy().tolist()) == ([1], [[0]])
    step = ms.grad(lambda a: (one(a)[0] * 5).sum())
    for _ in range(2):
        assert step(x).asnumpy().tolist() == [5, 0, 0]


# ===--- errors, threads, memory ---===


def test_errors_of_an_operator():
    select = operator("aten::masked_select")
    good = ms.Tensor(np.float32([1, 2, 3])), ms.Tensor(np.array([True, False, True]))
    for _ in range(2):
        with pytest.raises(RuntimeError) as error:
            select(good[0], ms.Tensor(np.zeros(4, bool)))
        assert str(error.value).splitlines()[0] == (
            "For 'Custom' on CPU, operator failed when executing user defined file "
            f"{LIBRARY}! Error message is aten::masked_select: The size of tensor a (4) must match "
            "the size of tensor b (3) at non-singleton dimension 0 (input 0 'self': float32 [3]; "
            "input 1 'mask': bool [4])"
        )
        assert select(*good).asnumpy().tolist() == [1, 3]
    with pytest.raises(TypeError) as error:
        select(*good, good[0])
    assert str(error.value) == "aten::masked_select: expected 2 inputs, got 3"


def test_a_graph_in_the_same_program():
    nonzero, x = operator("aten::nonzero"), ms.Tensor(VALUES)
    expected = torch.from_numpy(VALUES).nonzero()

    @ms.jit
    def compiled(a):
        return nonzero(a)

    assert_as_pytorch(nonzero(x), expected)
    with pytest.raises(ValueError, match="aten::nonzero") as error:
        compiled(x)
    assert str(error.value).splitlines()[0] == (
        "aten::nonzero: expected an operator whose results have sizes that follow from those of "
        "its inputs, got one whose sizes depend on values; call it outside of a graph, or give "
        "out_shape, the largest shapes of its results, and out_dtype"
    )
    assert_as_pytorch(nonzero(x), expected)


def test_several_threads(in_threads):
    select, faults = operator("aten::masked_select"), []

    def work(number):
        x = np.arange(40, dtype=np.float32)
        for _ in range(20):
            mask = x % (number + 2) == 0
            got = select(ms.Tensor(x), ms.Tensor(mask)).asnumpy()
            if not np.array_equal(got, x[mask]):
                faults.append(number)

    in_threads(work)
    assert not faults


@needs_caller
def test_calls_keep_no_memory():
    select = operator("aten::masked_select")
    x, mask = ms.Tensor(np.ones((64, 64), np.float32)), ms.Tensor(np.ones((64, 64), bool))
    step = ms.grad(lambda a: select(a, mask))

    def calls(forward, backward):
        for _ in range(forward):
            select(x, mask)
        for _ in range(backward):
            step(x).asnumpy()
        gc.collect()
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    before = calls(2000, 50)
    # 16 KiB a result: what one in ten kept would be 32 MiB.
    assert calls(20_000, 100) - before < 8 * 1024

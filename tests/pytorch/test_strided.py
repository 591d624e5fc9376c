"""Kernels with `strided()`, which take inputs as they lie in memory."""

import pytest
import torch

from aten_bridge.torch import load


@pytest.fixture(scope="module")
def strided(build):
    return load(build / "tests/test_strided.so")


@pytest.fixture
def x():
    return torch.arange(24.0).reshape(4, 6) - 7


def views(x):
    return (
        x,
        x.T,
        x[1:3, 2:5],
        x[:, ::2],
        x[1:2].expand(3, 6),
        x[:, 1:2].expand(4, 5),
        x.T[2:4],
        x[:, 3:3],
        x.as_strided((3, 4), (1, 2), 5),  # overlapping
    )


def test_inputs_are_not_copied(strided, x):
    for view in views(x):
        if view.numel() > 0:
            expected = [view.data_ptr(), *view.stride()]
            assert strided.place(view).tolist() == expected
            assert strided.place_by_state(view).tolist() == expected
    first, second = strided.places(x.T, 2.0, [x, x[:, 1:]])
    assert first.tolist() == [x.data_ptr(), 1, 6]
    assert second.tolist() == [x.data_ptr() + 4, 6, 1]
    assert strided.place_of_row_major(x.T).tolist()[1:] == [4, 1]


def test_results_are_row_major(strided, x):
    for view in views(x):
        for result, expected in (
            (strided.row_sums(view), view.sum(1)),
            (strided.scaled(view), view * 2 * view),
            (strided.positive(view), view.relu()),
            (strided.same(view), view),
            (strided.above(view), view[view > 0]),
        ):
            assert result.is_contiguous()
            assert torch.equal(result, expected)
            assert result.untyped_storage().data_ptr() != x.untyped_storage().data_ptr()


def test_values_that_pytorch_has_yet_to_compute(strided):
    x = torch.tensor([[1 + 2j, 3 - 4j], [5j, 6]])
    assert torch.equal(strided.scaled(x.mH), x.mH.resolve_conj() ** 2 * 2)
    assert strided.place(x.mH).tolist()[1:] == [1, 2]
    negative = torch._neg_view(torch.ones(2, 3).T)
    assert torch.equal(strided.row_sums(negative), torch.full((3,), -2.0))


def test_tensors_to_write(strided, x):
    operators = torch.ops.bridge_strided
    operators.row_sums.out(x.T, out=(sums := torch.empty(6)))
    assert torch.equal(sums, x.sum(0))
    out = torch.empty(4, 6).T
    operators.positive.out(x.T, out=out)
    assert torch.equal(out, x.T.relu())
    assert out.stride() == (1, 6)  # the caller's
    square = torch.arange(9.0).reshape(3, 3) - 4
    expected = square.T.relu()
    operators.positive.out(square.T, out=square)  # the input's memory
    assert torch.equal(square, expected)


def test_gradients(strided, x):
    x.requires_grad_()
    weights = torch.arange(24.0).reshape(6, 4)
    for scaled in (strided.scaled, lambda x: x * 2 * x):
        total = (scaled(x.T) * weights).sum() + scaled(x[1:2].expand(3, 6)).sum()
        (gradient,) = torch.autograd.grad(total, x, create_graph=True)
        second = torch.autograd.grad(gradient.sum(), x)[0]
        if scaled is strided.scaled:
            found = gradient, second
    assert torch.equal(found[0], gradient)
    assert torch.equal(found[1], second)


def test_strides_that_aten_chooses_are_not_those_of_results(strided):
    x = torch.eye(3) * 4
    assert torch.equal(strided.lower(x), torch.eye(3) * 2)
    assert strided.lower(x).stride() == (3, 1)
    assert strided.lower(x.to("meta")).stride() == (3, 1)


def test_meta_tensors_and_compiled_programs(strided, x):
    for name in ("scaled", "positive", "same"):
        operator = getattr(strided, name)
        told = operator(x.T.to("meta"))
        assert (told.shape, told.is_contiguous()) == ((6, 4), True), name
        torch.library.opcheck(getattr(torch.ops.bridge_strided, name).default, (x.T,))

        def program(x, operator=operator):
            return operator(x.T + 0) * 2

        for dynamic in (False, True):
            torch.compiler.reset()
            compiled = torch.compile(program, backend="aot_eager", dynamic=dynamic)
            assert torch.equal(compiled(x), program(x))
            assert compiled(x).stride() == program(x).stride()

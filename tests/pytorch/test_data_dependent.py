"""Kernels with `data_dependent()`: the sizes of their results depend on values."""

import pytest
import torch

from aten_bridge.torch import load


@pytest.fixture(scope="module")
def unsized(build):
    return load(build / "tests/test_unsized.so")


@pytest.fixture
def x():
    return torch.tensor([1.0, -2, 3, -4, 5])


def test_results_have_the_sizes_that_their_values_say(unsized, x):
    assert unsized.positives(x).tolist() == [1, 3, 5]
    assert unsized.positives(-x.abs()).shape == (0,)
    assert unsized.negatives(x).tolist() == [-2, -4]
    values, places = unsized.above(x, threshold=2.0)
    assert (values.tolist(), places.tolist()) == ([3, 5], [[2], [4]])
    assert unsized.positives_of_all([x, -x], 2).tolist() == [1, 3, 5, 2, 4] * 2
    assert unsized.shifted(x, shift=-3.0).tolist() == [2]
    assert unsized.first(torch.tensor([3.0, 1, 2, 4])).tolist() == [3, 1, 2]
    with pytest.raises(RuntimeError) as error:
        unsized.first(torch.tensor([2.0, 1]))
    assert str(error.value).splitlines()[0] == (
        "First: output 0 'begin': expected sizes [3], got float32 [2]"
    )
    with pytest.raises(RuntimeError) as error:
        unsized.rows(torch.tensor([[1.0, -2], [3, 4]]))
    assert str(error.value).splitlines()[0] == (
        "Rows: output 0 'y': expected sizes [-1, C] with C = 2 as in input 0 'x', got float32 "
        "[3, 1]"
    )


def test_results_in_memory_that_ends_with_the_call_are_copied(unsized, x):
    """Their kernel returns them in a workspace, and in an input that it knows by its address."""
    results = unsized.lent(x)
    assert [result.tolist() for result in results] == [[1, 3, 5], [1, -2, 3]]
    assert [result.untyped_storage().resizable() for result in results] == [True, True]
    results[1].zero_()
    assert x.tolist() == [1, -2, 3, -4, 5]


def test_gradients(unsized, x):
    x.requires_grad_()
    (gradient,) = torch.autograd.grad((unsized.positives(x) ** 2).sum(), x, create_graph=True)
    assert gradient.tolist() == [2, 0, 6, 0, 10]
    assert torch.autograd.grad(gradient.sum(), x)[0].tolist() == [2, 0, 2, 0, 2]
    values, _ = unsized.above(x, threshold=2.0)
    assert torch.autograd.grad((values * 3).sum(), x)[0].tolist() == [0, 0, 3, 0, 3]


def test_pytorch_knows_that_they_do(unsized, x):
    """A compiled function calls it between two graphs; torch.export needs sizes of PyTorch's."""
    assert torch.Tag.dynamic_output_shape in torch.ops.bridge_unsized.positives.default.tags
    compiled = torch.compile(lambda x: unsized.positives(x * 2) + 1, backend="eager")
    assert compiled(x).tolist() == [3, 7, 11]
    assert compiled(-x).tolist() == [5, 9]

    class Positives(torch.nn.Module):
        def forward(self, x):
            return unsized.negatives(x)

    with pytest.raises(torch._subclasses.fake_tensor.DynamicOutputShapeException):
        torch.export.export(Positives(), (x,))

    # [fake]
    @torch.library.register_fake("bridge_unsized::negatives")
    def _(x):
        return x.new_empty([torch.library.get_ctx().new_dynamic_size()])

    # [/fake]

    exported = torch.export.export(Positives(), (x,)).module()
    assert exported(x).tolist() == [-2, -4]
    assert exported(-x).tolist() == [-1, -3, -5]

"""Results beside what a meta function tells, and meta functions that ask for sizes."""

import pytest
import torch


def error_of(call):
    with pytest.raises(RuntimeError) as raised:
        call()
    return str(raised.value).splitlines()[0]


@pytest.fixture
def x():
    return torch.linspace(-2, 2, 12).reshape(3, 4)


OTHER_DTYPE = (
    "Lie: output 0 'exp': expected float32 [3, 4] as the meta function says, got float64 [3, 4] "
    "from the kernel; let the two agree"
)
OTHER_SIZES = (
    "Lie: output 1: expected float32 [3, 4] as the meta function says, got float32 [1, 4] "
    "from the kernel; let the two agree"
)


def test_results_that_are_not_what_is_told_are_refused(my, x):
    for _ in range(2):
        assert torch.equal(my.lie(x)[1], -x)
        assert error_of(lambda: my.lie(x, how=1)) == OTHER_DTYPE
        assert error_of(lambda: my.lie(x, how=2)) == OTHER_SIZES
        assert torch.equal(my.lie(x[:1], how=2)[1], x[:1]), "where both agree"


def test_they_are_refused_in_compiled_code(my, x):
    function = torch.compile(lambda x, how: my.lie(x, how)[0] + 1, backend="aot_eager")
    assert torch.equal(function(x, 0), x.exp() + 1)
    assert error_of(lambda: function(x, 1)) == OTHER_DTYPE


def test_they_are_refused_for_each_number(my, x):
    assert my.lie_of_number(x, 1.0).shape == (2, 4)
    text = (
        "LieOfNumber: output 0: expected float32 [2, 4] as the meta function says, got "
        "float32 [1, 4] from the kernel; let the two agree"
    )
    assert error_of(lambda: my.lie_of_number(x, 2.0)) == text
    assert my.lie_of_number(x, 0.5).shape == (2, 4)


def test_they_are_refused_of_lists(my, x):
    assert my.lie_of_list([x.double()]).shape == (3, 4)
    assert error_of(lambda: my.lie_of_list([x, x])) == (
        "LieOfList: output 0: expected float32 [6, 4] as the meta function says, got "
        "float64 [6, 4] from the kernel; let the two agree"
    )


def test_a_gradient_is_like_its_input(my, x):
    leaf = x.clone().requires_grad_()
    assert error_of(lambda: my.told(leaf).sum().backward()) == (
        "ToldGrad: output 0: expected float32 [3, 4] as the input whose gradient it is, got "
        "float32 [] from the kernel; let the two agree"
    )


@pytest.mark.parametrize("name", ["size_in_meta", "sizes_in_meta", "strides_in_meta"])
def test_a_meta_function_may_ask_for_sizes(my, name):
    """PyTorch compiles once for each, and says so where a program is to be for all of them."""
    kernel = getattr(my, name)
    for dynamic in (None, True):
        torch._dynamo.reset()
        graphs = []

        def count(graph, _inputs, graphs=graphs):
            graphs.append(graph)
            return graph

        function = torch.compile(
            lambda x: kernel(x) + 1, backend=count, fullgraph=True, dynamic=dynamic
        )
        for rows in (3, 5, 7, 5):
            x = torch.rand(rows, 4)
            assert torch.equal(function(x), x + 1)
        assert len(graphs) == 3

    class Module(torch.nn.Module):
        def forward(self, x):
            return kernel(x)

    n = torch.export.Dim("n")
    with pytest.raises(Exception, match="Constraints violated") as raised:
        torch.export.export(Module(), (torch.rand(3, 4),), dynamic_shapes=({0: n},))
    assert "INTERNAL ASSERT" not in str(raised.value)


def test_a_meta_function_of_a_list_may_ask_for_sizes(my):
    torch._dynamo.reset()
    function = torch.compile(
        lambda a, b: my.numel_in_meta([a, b]) * 2, backend="eager", fullgraph=True, dynamic=True
    )
    for rows in (3, 5):
        a = torch.rand(rows, 4)
        assert torch.equal(function(a, a), a.flatten() * 4)


def test_results_in_inference_mode_are_inference_tensors(my, x):
    with torch.inference_mode():
        results = [
            my.leaky_relu(x),  # writes its output
            my.told(x),
            my.told(x.t()),  # is copied first
            *my.swap(x, x + 1),  # are clones
            *my.parts(x),
            my.cat([x, x]),
            my.double_it(x),
            my.scale(x, 3.0),
        ]
        assert all(result.is_inference() for result in results)
        assert torch.equal(results[1], x.exp())
        assert torch.equal(results[2], x.t().exp())
        assert torch.equal(my.told(my.told(x)), x.exp().exp())
        results[1].add_(1)
    assert not my.told(x).is_inference()
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor"):
        results[1].add_(1)
    leaf = x.clone().requires_grad_()
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        (leaf * results[1]).sum()

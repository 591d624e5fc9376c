"""What PyTorch does with operators: checks, gradients, functorch, compilers, files."""

import pickle
import warnings

import pytest
import torch
import torch._dynamo.testing
from torch._dynamo.backends.common import aot_autograd

from aten_bridge.torch import load

# It compiles C++, for seconds.
INDUCTOR = pytest.param("inductor", marks=pytest.mark.full)

pytestmark = pytest.mark.filterwarnings("ignore")


def real(*sizes):
    return torch.randn(*sizes, dtype=torch.double, requires_grad=True)


CASES = {
    "leaky_relu": lambda: ((real(3, 4),), {"negative_slope": 0.2}),
    "leaky_relu_grad": lambda: ((real(3, 4), real(3, 4)), {"negative_slope": 0.2}),
    "square": lambda: ((real(3, 4),), {}),
    "square of a transposed tensor": lambda: ((real(3, 4).t(),), {}),
    "top_k": lambda: ((torch.randperm(12).double().reshape(3, 4).requires_grad_(), 2), {}),
    "powers": lambda: ((real(3, 4),), {}),
    "cat": lambda: (([real(3, 4), real(1, 4)],), {}),
    "layer_norm": lambda: ((real(3, 4), real(4), real(4)), {}),
    "layer_norm with None": lambda: ((real(3, 4), None, real(4)), {}),
    "scale": lambda: ((real(3, 4), 2.0, 3), {}),
    "swish": lambda: ((real(3, 4), 1.5), {}),
    "sum_of_rows": lambda: ((real(3, 4).detach(),), {}),
    "same": lambda: ((real(3, 4).detach(),), {}),
}


@pytest.mark.parametrize("case", CASES)
def test_opcheck(my, case):
    arguments, attributes = CASES[case]()
    operator = getattr(torch.ops.bridge_test, case.split()[0]).default
    done = torch.library.opcheck(operator, arguments, attributes)
    assert set(done.values()) == {"SUCCESS"}


@pytest.mark.parametrize("name", ["leaky_relu", "square"])
def test_opcheck_of_out(my, name):
    operator = getattr(torch.ops.bridge_test, name).out
    x = real(3, 4).detach()
    done = torch.library.opcheck(operator, (x,), {"out": torch.empty_like(x)})
    assert set(done.values()) == {"SUCCESS"}


def test_compiled_out_that_is_an_input_of_another_size(my):
    def totals(x):
        y = x * 1
        torch.ops.bridge_test.sum_of_rows.out(y, out=y)
        return y + 0, y.numel()

    x = real(3, 4).detach()
    (result, count), (expected, _) = torch.compile(totals, backend="aot_eager")(x), totals(x)
    assert torch.equal(result, expected)
    assert count == 3


@pytest.mark.parametrize("dynamic", [None, True])
def test_compiled_numbers_of_any_type(my, dynamic):
    """After the first float or int that an at::Scalar gets PyTorch makes it a symbol."""
    x = torch.ones(1)
    call = torch.compile(lambda v: my.describe(x, any=v), backend="aot_eager", dynamic=dynamic)
    for value in (0.5, 0.75, 2, 3, 5, True):
        assert torch.equal(call(value), my.describe(x, any=value))


def test_compiled_out_whose_sizes_are_symbols(my):
    def copied(x, out):
        torch.ops.bridge_test.sizes_in_meta.out(x, out=out)
        return out + 1

    call = torch.compile(copied, backend="aot_eager", dynamic=True)
    for out in (torch.empty(3, 4), torch.empty(5), torch.empty(0), torch.empty(4, 3).t()):
        x = real(3, 4).detach().float()
        assert torch.equal(call(x, out), x + 1)
        assert torch.equal(out, x)


@pytest.mark.parametrize("case", [case for case in CASES if case not in ("sum_of_rows", "same")])
def test_gradcheck(my, case):
    arguments, attributes = CASES[case]()
    operator = getattr(my, case.split()[0])
    flat = [t for a in arguments for t in (a if isinstance(a, list) else [a])]
    tensors = [t for t in flat if isinstance(t, torch.Tensor)]

    def call(*tensors):
        given = iter(tensors)
        take = [
            [next(given) for _ in a]
            if isinstance(a, list)
            else next(given)
            if isinstance(a, torch.Tensor)
            else a
            for a in arguments
        ]
        result = operator(*take, **attributes)
        return result[0] if isinstance(result, tuple) else result

    assert torch.autograd.gradcheck(call, tensors, check_forward_ad=case == "swish")


def complex_(*sizes):
    return torch.randn(*sizes, dtype=torch.cdouble, requires_grad=True)


def permuted():
    return torch.randperm(12).double().reshape(3, 4).requires_grad_()


TWICE = {
    "leaky_relu": lambda: real(3, 4),
    "swish": lambda: real(3, 4),
    "square": lambda: real(3, 4),  # whose gradients are all written by hand
    "square of a transposed tensor": lambda: real(3, 4).t(),
    "top_k": lambda: (permuted(), 2),
    "layer_norm": lambda: (real(3, 4), real(4), real(4)),
    "layer_norm with None": lambda: (real(3, 4), real(4)),
    "times": lambda: (real(3), real(3)),
    "times of complex numbers": lambda: (complex_(3), complex_(3)),
    "times of both": lambda: (real(3), complex_(3)),
}


@pytest.mark.parametrize("case", TWICE)
def test_gradgradcheck(my, case):
    operator, arguments = getattr(my, case.split()[0]), TWICE[case]()

    def call(*arguments):
        result = operator(*arguments)
        return result[0] if isinstance(result, tuple) else result

    assert torch.autograd.gradcheck(call, arguments)
    assert torch.autograd.gradgradcheck(call, arguments)


def test_gradients_of_examples(build):
    add_custom = load(build / "examples/add_custom/add_custom.so").add_custom
    lltm = load(build / "examples/lltm/lltm.so").lltm
    sizes = ((3, 2), (6, 4), (6,), (3, 2), (3, 2))
    for operator, kernel, inputs in (
        (add_custom, "AddCustomGrad", [real(3, 2), real(3, 2)]),
        (lltm, "LltmGrad", [real(*size) for size in sizes]),
    ):
        assert torch.autograd.gradcheck(operator, inputs)
        # Written by hand, they have none themselves.
        with pytest.raises(RuntimeError) as raised:
            torch.autograd.gradgradcheck(operator, inputs)
        assert str(raised.value) == (
            f"{kernel}: expected a gradient kernel in the library, got none; add "
            f"ATEN_BRIDGE_EXPORT_GRAD({kernel}Grad, function, options...), write one by hand under "
            "that name, or give the kernel aten_bridge::composite() if PyTorch's operators are all "
            "of its body"
        )


def test_only_gradients_that_are_asked_for(my):
    x, weight = real(3, 4), real(4)
    (gradient,) = torch.autograd.grad(my.layer_norm(x, weight).sum(), weight)
    assert gradient.shape == weight.shape
    values, indices = my.top_k(x, 2)
    assert (values.requires_grad, indices.requires_grad) == (True, False)


def test_functorch(my):
    x = real(3, 4).detach()
    leaky_relu = torch.nn.functional.leaky_relu
    torch.testing.assert_close(torch.vmap(my.leaky_relu)(x), leaky_relu(x))
    torch.testing.assert_close(torch.vmap(my.square)(x), x * x)
    torch.testing.assert_close(torch.vmap(my.swish)(x), x * x.sigmoid())
    gradient = torch.func.grad(lambda t: my.leaky_relu(t).sum())
    torch.testing.assert_close(gradient(x), torch.where(x > 0, 1.0, 0.01).double())
    torch.testing.assert_close(torch.vmap(gradient)(x), torch.where(x > 0, 1.0, 0.01).double())
    torch.testing.assert_close(torch.func.jacrev(my.square)(x[0]), torch.diag(2 * x[0]))
    _, tangent = torch.func.jvp(my.swish, (x,), (torch.ones_like(x),))
    assert tangent.shape == x.shape


FUNCTORCH = {
    "grad": lambda f, x: torch.func.grad(lambda t: f(t).sum())(x),
    "vmap of grad": lambda f, x: torch.vmap(torch.func.grad(lambda t: f(t).sum()))(x),
    "vjp": lambda f, x: torch.func.vjp(f, x)[1](x)[0],
    "jvp": lambda f, x: torch.func.jvp(f, (x,), (2 * x,))[1],
    "jacrev": lambda f, x: torch.func.jacrev(f)(x),
    "jacfwd": lambda f, x: torch.func.jacfwd(f)(x),
    "hessian": lambda f, x: torch.func.hessian(lambda t: f(t).sum())(x),
    "jacrev of jacrev": lambda f, x: torch.func.jacrev(torch.func.jacrev(f))(x),
}


@pytest.mark.parametrize("transformation", FUNCTORCH)
def test_functorch_of_a_composite_kernel(my, transformation):
    x = real(4).detach()
    transform = FUNCTORCH[transformation]
    torch.testing.assert_close(
        transform(lambda t: my.swish(t, 1.5), x),
        transform(lambda t: t * (t * 1.5).sigmoid(), x),
    )


class Network(torch.nn.Module):
    def __init__(self, my):
        super().__init__()
        self.leaky_relu = my.leaky_relu
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x):
        return torch.ops.bridge_test.top_k(self.leaky_relu(self.linear(x)), 2)[0]


@pytest.mark.parametrize("backend", ["aot_eager", INDUCTOR])
def test_compile(my, backend):
    torch._dynamo.reset()
    counter = torch._dynamo.testing.CompileCounterWithBackend(backend)

    def loss(x):
        return (my.leaky_relu(x, negative_slope=0.2) * 2 + my.swish(x)).sum()

    compiled = torch.compile(loss, backend=counter, dynamic=True, fullgraph=True)
    for size in (3, 5, 7):
        x = torch.randn(size, 4, requires_grad=True)
        expected = torch.autograd.grad(loss(x), x)[0]
        compiled(x).backward()
        torch.testing.assert_close(x.grad, expected)
    assert counter.frame_count == 1


def test_a_compiled_graph_goes_through_composite_kernels_alone(my):
    def operators(call):
        """What stands in the graphs of forward and backward."""
        torch._dynamo.reset()
        graphs = []

        def keep(graph, _):
            nodes = [node for node in graph.graph.nodes if node.op == "call_function"]
            graphs.append([str(node.target) for node in nodes])
            return graph

        backend = aot_autograd(fw_compiler=keep, bw_compiler=keep)
        compiled = torch.compile(call, backend=backend, fullgraph=True)
        compiled(torch.randn(3, requires_grad=True)).sum().backward()
        return graphs

    assert operators(my.leaky_relu) == [
        ["bridge_test.leaky_relu.default"],
        ["bridge_test.leaky_relu_grad.default"],
    ]
    forward, backward = operators(my.swish)
    assert [name for name in forward if "detach" not in name] == [
        *["aten.mul.Scalar", "aten.sigmoid.default", "aten.mul.Tensor"]
    ]
    assert "aten.sigmoid_backward.default" in backward
    assert all(name.startswith("aten.") for name in backward)


@pytest.mark.parametrize("inside", [False, True], ids=["around", "in the function"])
def test_compile_with_autocast(my, inside):
    torch._dynamo.reset()

    def call(x):
        with torch.autocast(
            "cpu", torch.bfloat16, enabled=inside or torch.is_autocast_enabled("cpu")
        ):
            return my.lowered(x), my.raised(x.bfloat16()), my.leaky_relu(x)

    def run(call):
        x = torch.tensor([1 / 3, 1], requires_grad=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=not inside):
            results = call(x)
        return results, torch.autograd.grad(sum(y.float().sum() for y in results), x)[0]

    results, gradient = run(torch.compile(call, backend="aot_eager", fullgraph=True))
    expected, expected_gradient = run(call)
    dtypes = [torch.bfloat16, torch.float32, torch.float32]
    assert [y.dtype for y in results] == [y.dtype for y in expected] == dtypes
    assert all(torch.equal(y, other) for y, other in zip(results, expected, strict=True))
    assert torch.equal(gradient, expected_gradient)
    assert gradient.tolist() == [5, 5]


STRIDED = {
    "turned": lambda: torch.randn(3, 4),
    "conjugate": lambda: torch.randn(3, 4, dtype=torch.cfloat),
    "turned_sigmoid": lambda: torch.randn(3, 4),
}


@pytest.mark.parametrize("name", STRIDED)
def test_results_lie_as_their_meta_function_says(my, name):
    operator, x = getattr(my, name), STRIDED[name]()
    result, of_meta = operator(x), operator(x.to("meta"))
    assert (result.shape, result.stride()) == (of_meta.shape, of_meta.stride())
    assert result.is_conj() == of_meta.is_conj()


@pytest.mark.full
@pytest.mark.parametrize("name", ["turned", "turned_sigmoid"])
def test_inductor_trains_what_returns_transposed_memory(my, name):
    torch._dynamo.reset()
    operator = getattr(my, name)
    x = torch.randn(3, 4, requires_grad=True)
    ones = torch.rand(4, 3)
    (expected,) = torch.autograd.grad(operator(x), x, ones)
    compiled = torch.compile(lambda t: operator(t) * 1.0, backend="inductor", fullgraph=True)
    (gradient,) = torch.autograd.grad(compiled(x), x, ones)
    torch.testing.assert_close(gradient, expected)


def test_sizes_that_depend_on_values(my):
    torch._dynamo.reset()

    def call(x):
        few = x[x > 0]
        return my.times(few.unsqueeze(1) * torch.ones(3), few.unsqueeze(0).expand(3, -1).t())

    x = torch.randn(3, 4)
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        compiled = torch.compile(call, backend="aot_eager", fullgraph=True)
        torch.testing.assert_close(compiled(x), call(x))


@pytest.mark.full
def test_inductor_trains_the_tutorials_cell(build):
    torch._dynamo.reset()
    lltm = load(build / "examples/lltm/lltm.so").lltm
    sizes = ((3, 2), (6, 4), (6,), (3, 2), (3, 2))
    inputs = [torch.randn(size, requires_grad=True) for size in sizes]

    def total(*tensors):
        h, cell = lltm(*tensors)
        return (h * 2 + cell).sum()

    compiled = torch.compile(total, backend="inductor", fullgraph=True)
    expected = torch.autograd.grad(total(*inputs), inputs)
    for gradient, other in zip(
        torch.autograd.grad(compiled(*inputs), inputs), expected, strict=True
    ):
        torch.testing.assert_close(gradient, other)


def test_compile_with_out(my):
    torch._dynamo.reset()

    def doubled(x):
        out = torch.empty_like(x)
        torch.ops.bridge_test.leaky_relu.out(x, out=out)
        return out * 2

    x = torch.randn(3, 4)
    compiled = torch.compile(doubled, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(x), doubled(x))


def test_export(my, tmp_path):
    network = Network(my)
    x = torch.randn(3, 4)
    program = torch.export.export(
        network, (x,), dynamic_shapes=({0: torch.export.Dim("n")},), strict=True
    )
    torch.export.save(program, tmp_path / "network.pt2")
    other = torch.randn(8, 4)
    loaded = torch.export.load(tmp_path / "network.pt2").module()
    torch.testing.assert_close(loaded(other), network(other))


@pytest.mark.full
def test_export_to_machine_code(my, tmp_path):
    network = Network(my).eval()
    program = torch.export.export(
        network, (torch.randn(3, 4),), dynamic_shapes=({0: torch.export.Dim("n")},)
    )
    file = torch._inductor.aoti_compile_and_package(
        program, package_path=str(tmp_path / "network.pt2")
    )
    x = torch.randn(8, 4)
    torch.testing.assert_close(torch._inductor.aoti_load_package(file)(x), network(x))


def test_script(my):
    class Scripted(torch.nn.Module):
        def forward(self, x):
            return torch.ops.bridge_test.leaky_relu(x, 0.2)

    x = torch.randn(3, 4)
    scripted = torch.jit.script(Scripted())
    torch.testing.assert_close(scripted(x), torch.nn.functional.leaky_relu(x, 0.2))


def test_pickle(my):
    network = Network(my)
    x = torch.randn(3, 4)
    torch.testing.assert_close(pickle.loads(pickle.dumps(network))(x), network(x))


class Samples(torch.utils.data.Dataset):
    def __init__(self, my):
        self.leaky_relu = my.leaky_relu

    def __len__(self):
        return 8

    def __getitem__(self, index):
        return self.leaky_relu(torch.tensor([-1.0, float(index)]))


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_workers(my, start):
    loader = torch.utils.data.DataLoader(
        Samples(my), batch_size=4, num_workers=2, multiprocessing_context=start
    )
    batches = torch.cat(list(loader))
    assert batches[:, 1].tolist() == list(range(8))
    torch.testing.assert_close(batches[:, 0], torch.full((8,), -0.01))


def test_warnings(my):
    """Forward, backward and gradients of gradients without one."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x = real(3)
        (gradient,) = torch.autograd.grad(my.leaky_relu(x).sum(), x, create_graph=True)
        gradient.sum().backward()


# ===--- side effects: each call is made ---===


@pytest.mark.parametrize("backend", ["aot_eager_decomp_partition", INDUCTOR])
def test_a_side_effect_is_had_by_each_call_of_a_compiled_program(my, backend):
    def differences(x):
        first = my.noise(x)
        return [(first - my.noise(x)) * x for _ in range(2)]

    def unused(x):
        my.tick(x)
        my.tick(x + 1)
        return x * 2

    with torch._inductor.config.patch(force_disable_caches=True):
        x = torch.ones(4, requires_grad=True)
        one, other = torch.compile(differences, backend=backend, fullgraph=True)(x)
        (one + other).sum().backward()
        assert len({tuple(t.tolist()) for t in (one, other, torch.zeros(4))}) == 3
        before = my.tick(torch.ones(1)).item()
        torch.compile(unused, backend=backend, fullgraph=True)(torch.ones(4))
        assert my.tick(torch.ones(1)).item() == before + 3


def test_the_operator_of_a_kernel_with_a_side_effect_has_a_tag(my):
    tag = torch.Tag.nondeterministic_seeded
    ops = torch.ops.bridge_test
    with_effects = [ops.noise, ops.noise_grad, ops.tick, ops.count]
    assert all(tag in operator.default.tags for operator in with_effects)
    assert tag not in ops.leaky_relu.default.tags
    assert tag not in ops.untold_noise.default.tags

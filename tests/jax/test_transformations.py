"""Kernels under JAX's transformations."""

import functools
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import Mesh, PartitionSpec

X = jnp.asarray(np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4))


@pytest.fixture
def leaky_relu(my):
    return my("LeakyRelu", negative_slope=0.25, grad=("LeakyReluGrad", "LeakyReluGradGrad"))


def of_jax(x):
    return jax.nn.leaky_relu(x, 0.25)


def loss(f, x):
    return (f(x) ** 2).sum()


def equal(a, b):
    return jax.tree.all(jax.tree.map(lambda x, y: x.dtype == y.dtype and (x == y).all(), a, b))


TRANSFORMED = {
    "jit": jax.jit,
    "grad": lambda f: jax.grad(functools.partial(loss, f)),
    "jit of grad": lambda f: jax.jit(jax.grad(functools.partial(loss, f))),
    "value_and_grad": lambda f: jax.value_and_grad(functools.partial(loss, f)),
    "vjp": lambda f: lambda x: jax.vjp(f, x)[1](X),
    "grad of grad": lambda f: jax.grad(
        lambda x: (jax.grad(functools.partial(loss, f))(x) ** 2).sum()
    ),
    "jacrev": lambda f: lambda x: jax.jacrev(f)(x[0]),
    "jacrev of jacrev": lambda f: lambda x: jax.jacrev(jax.jacrev(lambda v: f(v) ** 2))(x[0]),
    "vmap": jax.vmap,
    "vmap of an inner dimension": lambda f: jax.vmap(f, in_axes=1, out_axes=1),
    "vmap of vmap": lambda f: jax.vmap(jax.vmap(f)),
    "jit of vmap of grad": lambda f: jax.jit(jax.vmap(jax.grad(functools.partial(loss, f)))),
    "grad of vmap": lambda f: jax.grad(lambda x: (jax.vmap(f)(x) ** 2).sum()),
    "scan": lambda f: lambda x: lax.scan(lambda sum_, row: (sum_ + f(row), f(row)), x[0], x),
    "grad of scan": lambda f: jax.grad(
        lambda x: lax.scan(lambda c, row: (c + (f(row) ** 2).sum(), None), 0.0, x)[0]
    ),
    "fori_loop": lambda f: lambda x: lax.fori_loop(0, 5, lambda _, v: f(v), x),
    "while_loop": lambda f: lambda x: lax.while_loop(lambda v: v.min() < -0.01, f, x),
    "cond": lambda f: lambda x: lax.cond(x[0, 0] < 0, f, lambda v: v, x),
    "checkpoint": lambda f: jax.grad(functools.partial(loss, jax.checkpoint(f))),
    "map": lambda f: lambda x: lax.map(f, x),
}


@pytest.mark.parametrize("name", TRANSFORMED)
def test_is_as_jaxs_own(leaky_relu, name):
    transform = TRANSFORMED[name]
    assert equal(transform(leaky_relu)(X), transform(of_jax)(X))


@pytest.mark.parametrize(
    "method", ["sequential", "sequential_unrolled", "expand_dims", "broadcast_all"]
)
def test_vmap_methods(my, method):
    f = my("LeakyRelu", negative_slope=0.25, grad="LeakyReluGrad", vmap_method=method)
    assert equal(jax.vmap(f)(X), of_jax(X))
    gradient = jax.vmap(jax.grad(functools.partial(loss, f)))
    assert equal(gradient(X), jax.grad(functools.partial(loss, of_jax))(X))
    # The cotangent of a sum is one for all examples.
    assert equal(jax.vmap(jax.grad(lambda x: f(x).sum()))(X), jnp.where(X > 0, 1, 0.25))
    multiply = my("Times", vmap_method=method)
    assert equal(jax.vmap(multiply, in_axes=(0, None))(X, X[0]), X * X[0])
    # How often the kernel is called.
    count = my("Count", first=3000, vmap_method=method)
    assert len(set(jax.vmap(count)(X)[:, 0].tolist())) == (3 if "sequential" in method else 1)


def test_several_inputs(my):
    multiply = my("Times", grad=("TimesGrad", "TimesGradGrad"))
    y = X[::-1]
    assert equal(jax.grad(lambda x, y: multiply(x, y).sum(), (0, 1))(X, y), (y, X))
    second = jax.grad(lambda x: (jax.grad(lambda y: multiply(x, y).sum())(y) * y).sum())
    assert equal(second(X), y)


def test_lists_nones_and_several_results(my, wide):
    cat = my("Cat", dim=1, grad="CatGrad")
    gradients = jax.grad(lambda a, b: (cat((a, b)) ** 2).sum(), (0, 1))(X, X[:, :1])
    assert equal(gradients, (2 * X, 2 * X[:, :1]))
    assert equal(jax.vmap(lambda a: my("Cat")((a, a)))(X), jnp.concatenate([X, X], 1))

    norm = my("LayerNorm", grad="LayerNormGrad")

    def of_bias(bias):
        return (norm(X, None, bias) * X).sum()

    np.testing.assert_allclose(jax.grad(of_bias)(jnp.ones(4, X.dtype)), X.sum(0), rtol=1e-6)

    topk = my("TopK", k=1, grad="TopKGrad")
    assert equal(jax.grad(lambda x: topk(x)[0].sum())(X), jnp.zeros_like(X).at[:, -1].set(1))
    loud = my("Loud", grad="LoudGrad")  # written by hand, and wants zeros for its ints
    assert equal(jax.grad(lambda x: loud(x)[0].sum())(X), jnp.full_like(X, 2))


def test_gradients_of_ints_and_numbers(my, wide):
    multiply = my("Times", grad="TimesGrad")
    x, n = jnp.array([1.5, 2]), jnp.array([3, 4])
    y, vjp = jax.vjp(multiply, x, n)
    of_x, of_n = vjp(jnp.ones_like(y))
    assert equal(of_x, jnp.array([3.0, 4.0]))
    assert (of_n.dtype, of_n.shape) == (jax.dtypes.float0, (2,))
    scale = my("Scale", grad="ScaleGrad")
    assert equal(jax.grad(lambda x: scale(x, 3.0, 2).sum())(x), jnp.array([6.0, 6.0]))
    # A number has no gradient.
    assert jax.grad(lambda factor: scale(x, factor, None).sum())(2.0) == 0


def test_a_gradient_without_a_meta_function(my, wide):
    square = my("Square", grad="SquareGrad")
    x = X.astype(jnp.float64)
    assert equal(jax.grad(lambda x: square(x).sum())(x), 2 * x)


def test_complex_gradients_are_jaxs(my):
    multiply = my("Times", grad="TimesGrad")
    z = jnp.array([1 + 2j, -0.5j, 3 - 1j])
    w = jnp.array([2 - 1j, 1j, 0.5 + 0.25j])

    def real(f):
        return jax.grad(lambda z, w: jnp.real(f(f(z, w), z)).sum(), (0, 1))

    assert equal(real(multiply)(z, w), real(lambda a, b: a * b)(z, w))
    holomorphic = jax.grad(lambda z: multiply(z, w).sum(), holomorphic=True)
    assert equal(holomorphic(z), w)


def shard_map(f, in_specs, out_specs):
    """Over two devices, whose axis is "rows"."""
    of_jax = getattr(jax, "shard_map", None)
    if of_jax is None:  # before 0.7
        from jax.experimental.shard_map import shard_map as of_jax
    mesh = Mesh(np.array(jax.devices()[:2]), ("rows",))
    return jax.jit(of_jax(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs))


ROWS, WHOLE = PartitionSpec("rows"), PartitionSpec()


def test_shard_map(leaky_relu):
    x = jnp.arange(-8.0, 8.0).reshape(4, 4)
    sharded = shard_map(leaky_relu, ROWS, ROWS)
    result = sharded(x)
    assert len(result.sharding.device_set) == 2
    assert equal(result, of_jax(x))
    gradient = jax.jit(jax.grad(lambda x: (sharded(x) ** 2).sum()))(x)
    assert equal(gradient, jax.grad(functools.partial(loss, of_jax))(x))


def test_gradients_inside_of_shard_map(my):
    """A weight is whole on each device: its gradient is the sum of those of the devices."""
    multiply = my("Times", grad=("TimesGrad", "TimesGradGrad"))
    x, w = jnp.arange(8.0).reshape(4, 2), jnp.array([2.0, -3.0])

    def step(f, x, w):
        def loss(x, w):
            return (f(x, w) ** 2).sum()

        return loss(x, w)[None], *jax.grad(loss, (0, 1))(x, w)

    specs = {"in_specs": (ROWS, WHOLE), "out_specs": (ROWS, ROWS, WHOLE)}
    results = shard_map(functools.partial(step, multiply), **specs)(x, w)
    assert equal(results, shard_map(functools.partial(step, jnp.multiply), **specs)(x, w))
    assert equal(results[2], 2 * (x**2).sum(0) * w)

    def of_second_order(f, x, w):
        return jax.grad(lambda w: (step(f, x, w)[2] ** 2).sum())(w)

    specs = {"in_specs": (ROWS, WHOLE), "out_specs": WHOLE}
    results = shard_map(functools.partial(of_second_order, multiply), **specs)(x, w)
    assert equal(
        results, shard_map(functools.partial(of_second_order, jnp.multiply), **specs)(x, w)
    )
    # Where inputs are whole on each device the results are too.
    whole = shard_map(multiply, WHOLE, WHOLE)(w, w)
    assert equal(whole, w * w)


def test_ints_numbers_and_none_inside_of_shard_map(my, wide):
    scale, norm = my("Scale", grad="ScaleGrad"), my("LayerNorm", grad="LayerNormGrad")
    x, bias = jnp.arange(8.0).reshape(4, 2), jnp.ones(2)
    scaled = shard_map(jax.grad(lambda x: scale(x, 3.0, jnp.int64(2)).sum()), ROWS, ROWS)
    assert equal(scaled(x), jnp.full_like(x, 6))
    of_bias = jax.grad(lambda bias, x: (norm(x, None, bias) * x).sum())
    summed = shard_map(of_bias, (WHOLE, ROWS), WHOLE)(bias, x)
    np.testing.assert_allclose(summed, x.sum(0), rtol=1e-12)
    multiply = my("Times", grad="TimesGrad")
    of_x = jax.grad(lambda x, n: multiply(x, n).sum())
    n = jnp.array([3, 4])
    assert equal(shard_map(of_x, (ROWS, WHOLE), ROWS)(x, n), jnp.broadcast_to(n * 1.0, x.shape))


def test_export(leaky_relu, run_python, tmp_path):
    from jax import export

    checks = [export.DisabledSafetyCheck.custom_call(name) for name in leaky_relu.targets]
    exported = export.export(jax.jit(leaky_relu), disabled_checks=checks)(X)
    assert equal(exported.call(X), of_jax(X))
    file = tmp_path / "exported"
    file.write_bytes(exported.serialize(vjp_order=1))
    # In another process, which has to know the library.
    text = run_python(
        f"""
import jax, jax.numpy as jnp
from jax import export
from aten_bridge.jax import kernel
kernel(library + ":LeakyRelu", negative_slope=0.75, grad="LeakyReluGrad")
f = export.deserialize(bytearray(open({str(file)!r}, "rb").read())).call
x = jnp.asarray({X.tolist()!r})
print(f(x).tolist() == {of_jax(X).tolist()!r})
print(jax.grad(lambda x: f(x).sum())(x)[0].tolist())
"""
    )
    assert text.splitlines() == ["True", "[0.25, 0.25, 0.25, 0.25]"]


def test_a_donated_input_becomes_the_output(my):
    f = my("LeakyRelu", negative_slope=0.5, input_output_aliases={0: 0})
    x = jnp.arange(-4.0, 4.0)
    expected = jax.nn.leaky_relu(x, 0.5)
    at = x.unsafe_buffer_pointer()
    result = jax.jit(f, donate_argnums=0)(x)
    assert equal(result, expected)
    assert x.is_deleted()
    assert result.unsafe_buffer_pointer() == at
    # XLA makes a copy of one that is not donated.
    x = jnp.arange(-4.0, 4.0)
    assert equal(jax.jit(f)(x), expected)
    assert x[0] == -4
    # None before it: inputs count as the kernel has them. Any mapping will do.
    norm = my("LayerNorm", input_output_aliases=types.MappingProxyType({0: 0}))
    np.testing.assert_array_equal(jax.jit(norm)(X, None, None), my("LayerNorm")(X, None, None))


def test_results_are_written_to_the_memory_of_each_others_inputs(my):
    f = my("Swap", input_output_aliases={0: 0, 1: 1})
    x, y = jnp.arange(4.0), jnp.arange(4.0) + 10
    at = x.unsafe_buffer_pointer()
    first, second = jax.jit(f, donate_argnums=(0, 1))(x, y)
    assert first.unsafe_buffer_pointer() == at
    assert equal(first, jnp.arange(4.0) + 10)
    assert equal(second, jnp.arange(4.0))


def test_a_state_that_keeps_its_input_is_refused(my):
    f = jax.jit(my("Difference"))
    for _ in range(2):
        with pytest.raises(jax.errors.JaxRuntimeError) as raised:
            jax.block_until_ready(f(jnp.ones(4)))
        assert str(raised.value) in (
            "INVALID_ARGUMENT: Difference: input 0: expected no reference to this tensor after the "
            "call, because its memory belongs to the host, got one that the kernel keeps (the "
            "tensor or a view of it); keep a clone() instead",
            # The second call reads what the first one kept.
            "INVALID_ARGUMENT: Difference: expected a tensor of this call, got one that the kernel "
            "kept from an earlier call, whose memory belongs to the host; keep a clone() instead "
            "(input 0: float32 [4]; output 0: float32 [4])",
        )


def test_threads(my, in_threads):
    kernels = [my("LeakyRelu", negative_slope=slope, grad="LeakyReluGrad") for slope in (0.25, 0.5)]
    faults = []

    def work(number):
        f = kernels[number % 2]
        slope = (0.25, 0.5)[number % 2]
        program = jax.jit(lambda x: (f(x), jax.grad(lambda x: f(x).sum())(x)))
        for size in [1, 7, 1000, 3] * 25:
            x = jnp.arange(size) - 2.0
            y, gradient = program(x)
            if not (
                equal(y, jax.nn.leaky_relu(x, slope))
                and equal(gradient, jnp.where(x > 0, 1.0, slope).astype(x.dtype))
            ):
                faults.append((number, size))

    in_threads(work)
    assert faults == []


def test_threads_while_programs_make_room(my, monkeypatch, in_threads):
    from aten_bridge.jax import _programs

    monkeypatch.setattr(_programs, "MOST_PROGRAMS", 5)
    f = my("LeakyRelu", negative_slope=0.0625, grad="LeakyReluGrad")
    faults = []

    def work(number):
        for i in range(14):
            x = jnp.full((5 * i + number) % 7 + 1, -1.0)
            if not (equal(f(x), x / 16) and equal(jax.grad(lambda x: f(x).sum())(x), -x / 16)):
                faults.append(x.shape)

    in_threads(work)
    assert faults == []


def test_shapes_without_data(leaky_relu):
    assert jax.eval_shape(leaky_relu, X) == jax.ShapeDtypeStruct((3, 4), jnp.float32)


# ===--- side effects: each call is made ---===


def different(results):
    """How many of the results differ."""
    return len({np.asarray(result).tobytes() for result in results})


# Programs that call f five times with the same x.
FIVE_CALLS = {
    "one after another": lambda f, x: [f(x) for _ in range(5)],
    "in jits of their own": lambda f, x: [jax.jit(f)(x) for _ in range(5)],
    "scan": lambda f, x: lax.scan(lambda carry, _: (carry, f(x)), 0, None, length=5)[1],
    "fori_loop": lambda f, x: lax.fori_loop(
        0, 5, lambda i, kept: kept.at[i].set(f(x)), jnp.zeros((5, *x.shape))
    ),
    "while_loop": lambda f, x: lax.while_loop(
        lambda carry: carry[0] < 5,
        lambda carry: (carry[0] + 1, carry[1].at[carry[0]].set(f(x))),
        (0, jnp.zeros((5, *x.shape))),
    )[1],
    "map": lambda f, x: lax.map(lambda _: f(x), jnp.arange(5)),
    "cond": lambda f, x: [lax.cond(x[0, 0] < 0, f, jnp.abs, x) for _ in range(5)],
    "vmap": lambda f, x: jax.vmap(f)(jnp.broadcast_to(x, (5, *x.shape))),
    "value_and_grad": lambda f, x: jax.value_and_grad(
        lambda v: (lambda y: (sum(y).sum(), y))([f(v) for _ in range(5)]), has_aux=True
    )(x)[0][1],
    "gradients": lambda f, x: [jax.grad(lambda v: f(v).sum())(x) for _ in range(5)],
    "differentiated scan": lambda f, x: jax.grad(
        lambda v: (lambda carry, y: (carry.sum(), y))(
            *lax.scan(lambda c, _: (lambda y: (c + y, y))(f(c * 0 + v)), v, None, length=5)
        ),
        has_aux=True,
    )(x)[1],
}


@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        (kernel, name)
        for kernel in ("Noise", "UntoldNoise", "Count")
        for name in FIVE_CALLS
        # Count has no gradient.
        if kernel != "Count" or not ("grad" in name or "differentiated" in name)
    ],
)
def test_a_side_effect_is_had_by_each_call(my, kernel, name):
    if kernel == "Count":
        f = my(kernel, first=100_000 + list(FIVE_CALLS).index(name) * 1000)
    else:
        f = my(kernel, grad=kernel + "Grad", has_side_effect=kernel == "UntoldNoise" or None)
    calls = functools.partial(FIVE_CALLS[name], f)
    assert different(jax.jit(calls)(X)) == 5
    assert different(calls(X)) == 5


def test_a_call_whose_results_nobody_uses_is_made(my):
    tick = my("Tick")
    before = tick(X)[0, 0]
    assert (jax.jit(lambda x: [tick(x), tick(x), x][2])(X) == X).all()
    jax.effects_barrier()
    assert tick(X)[0, 0] == before + 3


def test_a_kernel_without_results_gives_true_once_it_is_called(my):
    check, count, counted = my("CheckFinite"), my("CountCalls"), my("CountedCalls")

    def program(x):
        check(x)
        count(x)
        count(x)
        return (x * x).sum()

    before = int(counted(X))
    assert (check(X).shape, check(X).dtype, bool(check(X))) == ((), bool, True)
    for run in (lambda f: f, jax.jit):
        run(program)(X)
        assert (run(jax.grad(program))(X) == 2 * X).all()
    jax.effects_barrier()
    assert int(counted(X)) - before == 8
    with pytest.raises(jax.errors.JaxRuntimeError, match="CheckFinite: expected finite numbers"):
        check(X * jnp.nan).block_until_ready()


def test_who_says_that_there_is_none_gets_one_call(my):
    f = my("Noise", has_side_effect=False)
    assert different(jax.jit(FIVE_CALLS["scan"], static_argnums=0)(f, X)) == 1
    with pytest.raises(TypeError) as error:
        my("Noise", has_side_effect=1)
    assert str(error.value) == "Noise: expected has_side_effect to be True or False, got 1"


def test_a_side_effect_is_not_had_twice_by_checkpoint(my):
    f = my("Noise")

    def loss(x):
        y = jax.checkpoint(lambda x: f(lax.stop_gradient(x)) * x)(x)
        return y.sum(), y

    gradient = jax.jit(jax.grad(loss, has_aux=True))
    if jax.__version_info__ < (0, 11):
        with pytest.raises(NotImplementedError, match="Effects not supported in partial-eval"):
            gradient(X)
    else:
        of_x, y = gradient(X)
        np.testing.assert_allclose(of_x * X, y, rtol=1e-6)


# ===--- a mesh with explicit axes ---===


@pytest.fixture
def mesh():
    if not hasattr(jax.sharding, "reshard"):
        pytest.skip("JAX 0.6 does not tell gradients how they are spread")
    explicit = jax.sharding.AxisType.Explicit
    with jax.set_mesh(jax.make_mesh((2,), ("a",), axis_types=(explicit,))) as mesh:
        yield mesh


def spread(x, *axes):
    return jax.sharding.reshard(x, PartitionSpec(*axes))


def spec_of(x):
    return jax.typeof(x).sharding.spec


GATHERS = "expected arrays that are whole on each device, got "


@pytest.mark.filterwarnings(f"ignore:.*{GATHERS}")
@pytest.mark.parametrize("axes", [(None, "a"), (None, None)])
@pytest.mark.parametrize("compiled", [lambda f: f, jax.jit])
def test_explicit_mesh(my, mesh, axes, compiled):
    from aten_bridge.jax import operator

    by_name = operator("aten::leaky_relu", negative_slope=0.25)
    f = my("LeakyRelu", negative_slope=0.25, grad=("LeakyReluGrad", "LeakyReluGradGrad"))
    x = spread(X, *axes)
    for function in (f, by_name):
        for name in ("jit", "grad", "grad of grad", "fori_loop", "checkpoint"):
            result = compiled(TRANSFORMED[name](function))(x)
            assert spec_of(result) == PartitionSpec(*axes), name
            assert equal(np.asarray(result), np.asarray(TRANSFORMED[name](of_jax)(X))), name


@pytest.mark.filterwarnings(f"ignore:.*{GATHERS}")
def test_explicit_mesh_with_several_inputs(mesh):
    from aten_bridge.jax import operator

    linear = operator("aten::linear")
    w = jnp.asarray(np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4))

    def of(function, x, w):
        return (function(x, w) ** 2).sum()

    for x_axes, w_axes in (((None, "a"), ()), ((), ("a",)), ((None, "a"), ("a",))):
        x, weight = spread(X, *x_axes), spread(w, *w_axes)
        assert spec_of(linear(x, weight)) == PartitionSpec(None, None)
        got = jax.jit(jax.grad(functools.partial(of, linear), (0, 1)))(x, weight)
        assert [*map(spec_of, got)] == [spec_of(x), spec_of(weight)]
        wanted = jax.grad(functools.partial(of, lambda x, w: x @ w.T), (0, 1))(X, w)
        for a, b in zip(got, wanted, strict=True):
            np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-5)


def test_explicit_mesh_says_that_arrays_are_gathered(my, mesh):
    f = my("LeakyRelu", negative_slope=0.25)
    with pytest.warns(UserWarning, match=GATHERS) as warned:
        jax.jit(f)(spread(X, None, "a"))
    assert [str(one.message) for one in warned] == [
        "LeakyRelu: expected arrays that are whole on each device, got float32[3,4@a], which each "
        "device gathers, to compute the whole result; call the function inside of jax.shard_map "
        "to compute parts of it, or gather them yourself, as in "
        "jax.sharding.reshard(x, jax.sharding.PartitionSpec())"
    ]
    assert (f(spread(X)) == of_jax(X)).all()
    split = PartitionSpec(None, "a")
    in_parts = jax.jit(jax.shard_map(f, in_specs=split, out_specs=split))
    assert equal(np.asarray(in_parts(spread(X, None, "a"))), np.asarray(of_jax(X)))

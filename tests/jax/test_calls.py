"""Kernels as functions of JAX: values, attributes, state."""

import gc
import math
import struct

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from aten_bridge.jax import kernel

X = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)


def same(result, expected):
    """Whether an array has the dtype, the shape and the bits of a tensor."""
    return (
        str(result.dtype) == str(expected.dtype).removeprefix("torch.")
        and result.shape == tuple(expected.shape)
        and np.asarray(result).tobytes() == expected.reshape(-1).view(torch.uint8).numpy().tobytes()
    )


def test_kernels_that_take_strides_get_row_major_inputs(library):
    """XLA makes them so."""
    path, x = library.with_name("test_strided.so"), jnp.asarray(X)
    for run in (lambda f: f, jax.jit):
        row_sums = run(lambda x: kernel(f"{path}:RowSums")(x.T))
        assert row_sums(x).tolist() == X.sum(0).tolist()
        scaled = run(jax.grad(lambda x: kernel(f"{path}:Scaled", grad="ScaledGrad")(x.T).sum()))
        assert np.array_equal(scaled(x), 4 * X)


def test_values_are_those_of_pytorch(my):
    x, t = jnp.asarray(X), torch.from_numpy(X)
    assert same(my("LeakyRelu")(x), torch.nn.functional.leaky_relu(t))
    assert same(my("LeakyRelu", negative_slope=0.25)(x), torch.nn.functional.leaky_relu(t, 0.25))
    assert same(my("Cat", dim=1)((x, x)), torch.cat([t, t], 1))
    assert same(my("Cat")(x), t)
    weight = jnp.arange(4.0)
    norm = my("LayerNorm")
    w = torch.arange(4.0)
    assert same(norm(x, None, None), torch.layer_norm(t, [4]))
    assert same(norm(x, weight, None), torch.layer_norm(t, [4], w))
    assert same(norm(x, None, weight), torch.layer_norm(t, [4], None, w))
    assert same(my("Swish", beta=2.0)(x), t * torch.sigmoid(t * 2))
    assert same(my("TwoSteps")(x), t * 3)
    # XLA makes an input row-major.
    assert same(jax.jit(lambda x: my("LeakyRelu")(x.T))(x), torch.nn.functional.leaky_relu(t.T))


def test_several_results(my, wide):
    x, t = jnp.asarray(X), torch.from_numpy(X)
    values, indices = my("TopK", k=2, dim=0, largest=False)(x)
    expected = t.topk(2, 0, False)
    assert same(values, expected.values)
    assert same(indices, expected.indices)


def test_workspaces(my, wide):
    x = jnp.asarray(X, jnp.float64)
    assert same(my("SumOfRows")(x), torch.from_numpy(X).double().sum(1))


DTYPES = [
    *("bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"),
    *("float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
    *("float8_e4m3fn", "float8_e5m2"),
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (2, 0, 3), (2, 3)])
def test_dtypes(my, wide, dtype, shape):
    count = math.prod(shape)
    x = jnp.asarray(np.arange(count).reshape(shape) % 2, dtype)
    t = (torch.arange(count).reshape(shape) % 2).to(getattr(torch, dtype))
    assert same(my("MetaSaid")(x), t)


def test_numbers(my, wide):
    x, t = jnp.asarray(X), torch.from_numpy(X)
    scale = my("Scale")
    assert same(scale(x, 2.5, None), t * 2.5)
    assert same(scale(x, 3, 2), t * 6)
    assert same(scale(x, True, np.int64(2)), t * 2)
    assert same(jax.jit(lambda x, factor: scale(x, factor, 2))(x, 2.5), t * 5)
    # As JAX has them where 64 bits are not asked for.
    jax.config.update("jax_enable_x64", False)
    assert same(scale(x, 0.1, 2), t * float(np.float32(0.1)) * 2)


WORDS = "{} {} {:.6f} {:.6f} {} {} 1 2 0.250000 {} {} row of 2 row of 1 and {}"


def test_what_says_that_it_is_an_array_is_one(my):
    class Parameter:
        def __init__(self, value):
            self.value = value

        def __jax_array__(self):
            return self.value

    x = jnp.asarray(X)
    assert same(my("LeakyRelu")(Parameter(x)), torch.nn.functional.leaky_relu(torch.from_numpy(X)))
    assert my("Cat", dim=1)((Parameter(x), x)).shape == (3, 8)
    gradient = jax.grad(lambda x: my("LeakyRelu", grad="LeakyReluGrad")(Parameter(x)).sum())(x)
    assert gradient.shape == (3, 4)


def test_a_number_is_a_program_only_where_shapes_may_depend_on_it(my):
    x = jnp.asarray(X)
    scale, times, fill = my("Scale"), my("Times"), my("Fill", out=lambda x: x)
    for number in (0.5, 1.5, 2.5):
        assert same(scale(x, number, 2), torch.from_numpy(X) * (2 * number))
        assert same(times(x, number), torch.from_numpy(X) * number)
    # Its meta function may look at the number, and says the same each time.
    assert len(last_keys(scale)) == 3
    assert len({id(scale._programs.get(key)) for _, key in last_keys(scale)}) == 1
    assert len(last_keys(times)) == 1
    assert fill(x).shape == (3, 4)


def test_64_bits_may_be_asked_for_at_any_time(my):
    """What was told with them is not what is told without, and the reverse."""
    x = jnp.asarray(X)
    topk, told = my("TopK", k=1), my("TopK", k=1, out=told_wide)
    try:
        for is_wide in (True, False, True, False):
            jax.config.update("jax_enable_x64", is_wide)
            for f in (topk, told):
                if is_wide:
                    assert f(x)[1].dtype == jnp.int64
                    continue
                with pytest.raises(TypeError) as raised:
                    f(x)
                assert str(raised.value) == (
                    "TopK: expected outputs of dtypes that JAX has, got 'int64'; set "
                    'jax_enable_x64, as in jax.config.update("jax_enable_x64", True)'
                )
    finally:
        jax.config.update("jax_enable_x64", False)


def told_wide(x):
    return tuple(jax.ShapeDtypeStruct((3, 1), np.dtype(dtype)) for dtype in ("float32", "int64"))


def test_attributes_of_every_kind(my):
    def check(expected, **attributes):
        out = jax.ShapeDtypeStruct((len(expected.encode()),), jnp.uint8)
        described = my("Describe", out=out, **attributes)(jnp.ones(1))
        assert bytes(described).decode() == expected

    plain = WORDS.format(1, 3, 0.5, 2, "word", "Half", "yes no", "a b", None)
    check(plain)
    check(plain, maybe=None)
    text = 'Wörter, \t und "mehr"'
    check(
        WORDS.format(0, -(2**63), 1000, 0.25, text, "Float", "no", " x y", 2**63 - 1),
        flag=False,
        number=-(2**63),
        real=1e3,
        any=0.25,
        text=text,
        type=jnp.float32,
        flags=[False],
        texts=["", "x y"],
        rows=[[5, 6], [7]],
        maybe=2**63 - 1,
    )
    check(plain.replace("Half", "Char"), type=np.dtype("int8"), number=np.int32(3))
    check(
        "1 3 0.500000 2.000000 word Half and None",
        ints=(),
        reals=np.array([]),
        flags=[],
        texts=[],
        rows=[],
    )


@pytest.mark.parametrize("x64", [False, True])
def test_floats_are_exact(my, x64):
    floats = [0.1, 1 / 3, math.pi, 1e-320, 5e-324, -0.0, 1.7976931348623157e308, 2.0**-1074]
    floats += [math.inf, -math.inf, np.float64(2) / 3, float(np.float32(0.1))]
    generator = np.random.default_rng(0)
    floats += np.frombuffer(generator.bytes(8 * 200), np.float64).tolist()
    jax.config.update("jax_enable_x64", True)
    ones = jnp.ones(1, jnp.float64)
    for value in floats:
        if math.isnan(value):
            continue
        for attributes in ({"first": value}, {"list": [value]}, {"rows": [[], [value]]}):
            if value == 0 and "first" not in attributes:
                continue  # 0.0 + -0.0
            jax.config.update("jax_enable_x64", x64)
            sum_of = my("SumOf", **attributes)
            jax.config.update("jax_enable_x64", True)
            assert struct.pack("d", sum_of(ones)[0]) == struct.pack("d", value), attributes
    jax.config.update("jax_enable_x64", False)


def test_shapes_by_exact_floats(my):
    """A float32 of 0.7 is more than 0.7: of 10 elements it makes 7, of a double 6 or 7."""
    assert my("Widened", factor=2.0)(jnp.ones(3)).shape == (6,)
    factor = math.nextafter(0.7, 0)
    assert int(10 * factor) == 6
    assert my("Widened", factor=factor)(jnp.ones(10)).shape == (6,)


def test_a_state_is_made_once_for_each_set_of_attributes(my):
    x = jnp.zeros(2)
    count = my("Count", first=1000)
    assert [count(x)[0] for _ in range(3)] == [1000, 1001, 1002]
    assert my("Count", first=1000)(x)[0] == 1003
    assert my("Count", first=2000)(x)[0] == 2000
    assert jax.jit(count)(jnp.zeros(3))[0] == 1004


def test_denormal_numbers_are_no_zeros(my, wide):
    """XLA's own threads take them for zeros."""
    x = jnp.array([-1e-310, 5e-324])
    assert my("LeakyRelu", negative_slope=0.5)(x).tolist() == [-5e-311, 5e-324]
    assert jax.jit(lambda x: x * 0.5)(x)[0] == 0


def test_out(my):
    x = jnp.asarray(X)
    struct = jax.ShapeDtypeStruct((2,), jnp.float32)
    assert my("Fill", out=struct)(x).shape == (2,)
    assert my("Fill", out=lambda x: x)(x).shape == (3, 4)
    assert my("Fill", out=lambda x: jax.ShapeDtypeStruct(x.shape[:1], x.dtype))(x).shape == (3,)


def test_many_shapes(my):
    leaky_relu = my("LeakyRelu", negative_slope=0.5)
    for count in range(200):
        x = jnp.arange(count) - 3.0
        assert leaky_relu(x).tolist() == [v if v > 0 else v / 2 for v in x.tolist()]


def alive(kind):
    gc.collect()
    return sum(type(one) is kind for one in gc.get_objects())


def test_what_is_kept_of_calls_is_bounded(my):
    """Functions for ever new shapes: as many are alive as are kept, whatever JAX's caches hold."""
    from aten_bridge.jax._programs import MOST_PROGRAMS

    leaky_relu = my("LeakyRelu", negative_slope=0.125)
    assert MOST_PROGRAMS < 3000
    others = alive(jax.custom_vjp)
    for count in range(3000):
        shape = jax.ShapeDtypeStruct((count,), jnp.float32)
        # What is traced is another function each time: JAX keeps the traces of one that lives.
        assert jax.eval_shape(lambda x: leaky_relu(x), shape).shape == (count,)
    assert alive(jax.custom_vjp) <= others + MOST_PROGRAMS
    # The last are there: nothing is made again.
    programs = {count: leaky_relu._programs.get(key) for count, key in last_keys(leaky_relu)}
    assert len(programs) == MOST_PROGRAMS
    assert min(programs) == 3000 - MOST_PROGRAMS


def last_keys(function):
    return [(key[1][0][0], key) for key in list(function._programs._programs)]


def test_equal_functions_share_what_is_compiled(my):
    x = jnp.ones(5)
    first, second = (my("LeakyRelu", negative_slope=0.375, grad="LeakyReluGrad") for _ in range(2))
    programs = []
    for f in (first, second, my("LeakyRelu", negative_slope=0.375), my("LeakyRelu")):
        f(x)
        ((_, key),) = last_keys(f)
        programs.append(f._programs.get(key))
    assert programs[0] is programs[1]
    assert len({id(program) for program in programs}) == 3


def test_an_alias_of_none_is_none(my):
    x = jnp.arange(12, dtype=jnp.float32).reshape(3, 4)
    norm = my("LayerNorm", input_output_aliases={1: 0})
    np.testing.assert_array_equal(norm(x, None, None), my("LayerNorm")(x, None, None))

"""PyTorch's operators by name in JAX, compared with PyTorch."""

import contextlib
import copy
import logging
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export, lax

from aten_bridge.jax import operator

torch = pytest.importorskip("torch")

NAMESPACE = "bridge_jax_sizes"  # for operators in Python
GENERATOR = np.random.default_rng(20261123)


def array(*shape, dtype=np.float32):
    return GENERATOR.standard_normal(shape).astype(dtype)


def check(one, reference, *inputs):
    """Compares a call with PyTorch's, bit for bit, as it is and compiled."""
    expected = reference(*(None if x is None else torch.from_numpy(x) for x in inputs))
    expected = expected if isinstance(expected, tuple) else (expected,)
    given = [None if x is None else jnp.asarray(x) for x in inputs]
    for function in (one, jax.jit(one)):
        got = function(*given)
        got = got if isinstance(got, tuple) else (got,)
        for ours, theirs in zip(got, expected, strict=True):
            np.testing.assert_array_equal(np.asarray(ours), theirs.numpy(), strict=True)


def test_values_are_those_of_pytorch(wide):
    check(
        operator("aten::gelu", approximate="tanh"),
        lambda x: torch.nn.functional.gelu(x, approximate="tanh"),
        array(4, 5),
    )
    check(operator("aten::topk", k=3), lambda x: tuple(torch.topk(x, 3)), array(4, 5))
    check(operator("aten::sum", dim=1, dtype=jnp.float64), lambda x: x.double().sum(1), array(2, 3))
    check(operator("aten::cat", dim=1), lambda *x: torch.cat(x, 1), array(2, 3), array(2, 1))


def test_the_last_tensors_may_be_left_out():
    linear = torch.nn.functional.linear
    check(operator("aten::linear"), linear, array(2, 3), array(4, 3))
    check(operator("aten::linear"), linear, array(2, 3), array(4, 3), None)


def test_floats_are_exact(wide):
    third = 1 / 3
    got = operator("aten::mul.Scalar", other=third)(jnp.asarray([3.0], jnp.float64))
    assert got[0] == 3.0 * third


def test_gradients_of_any_order(wide):
    tanh = operator("aten::tanh")
    x = jnp.asarray([0.3, -0.7], jnp.float64)
    t = jnp.tanh(x)
    first = jax.grad(lambda a: tanh(a).sum())
    np.testing.assert_allclose(first(x), 1 - t**2, rtol=1e-12)
    second = jax.jit(jax.grad(lambda a: first(a).sum()))
    np.testing.assert_allclose(second(x), -2 * t * (1 - t**2), rtol=1e-12)
    linear = operator("aten::linear")
    a, w = jnp.ones((2, 3)), jnp.ones((4, 3))
    got = jax.grad(lambda a, w: linear(a, w).sum(), argnums=(0, 1))(a, w)
    np.testing.assert_array_equal(got[0], np.full((2, 3), 4.0))
    np.testing.assert_array_equal(got[1], np.full((4, 3), 2.0))


def test_vmap_and_scan():
    softmax = operator("aten::softmax.int", dim=0)
    x = jnp.asarray(array(3, 5))
    np.testing.assert_allclose(jax.vmap(softmax)(x), jax.nn.softmax(x), rtol=1e-6)
    relu = operator("aten::relu")
    last, _ = jax.lax.scan(lambda carry, _: (relu(carry) * 0.5, None), x, None, length=3)
    np.testing.assert_array_equal(last, np.maximum(x, 0) / 8)


def test_results_whose_sizes_depend_on_values(wide):
    x = array(3, 4)
    expected = np.argwhere(x > 0)
    np.testing.assert_array_equal(operator("aten::nonzero")(jnp.asarray(x > 0)), expected)
    larger = operator("aten::nonzero", out=jax.ShapeDtypeStruct((12, 2), jnp.int64))
    result, sizes = jax.jit(larger)(jnp.asarray(x > 0))
    assert sizes.tolist() == [*expected.shape]
    np.testing.assert_array_equal(result[: len(expected)], expected)
    with pytest.raises(ValueError, match="aten::nonzero") as error:
        jax.jit(operator("aten::nonzero"))(jnp.asarray(x > 0))
    assert str(error.value) == (
        "aten::nonzero: expected an operator whose results have sizes that follow from those of "
        "its inputs, got one whose sizes depend on values; call it outside of jax.jit, jax.vmap "
        "and jax.checkpoint, or give out, the largest that its results can be"
    )
    select = operator("aten::masked_select")
    gradient = jax.grad(lambda a: (select(a, jnp.asarray(x > 0)) ** 2).sum())(jnp.asarray(x))
    np.testing.assert_array_equal(gradient, 2 * np.maximum(x, 0))
    mask = jnp.asarray(x > 0)  # a constant of the program
    with pytest.raises(ValueError, match="aten::nonzero") as of_constant:
        jax.jit(lambda y: y + operator("aten::nonzero")(mask).sum())(1.0)
    assert str(of_constant.value) == str(error.value)


def keep(x):
    return x[x >= 0]


@pytest.mark.parametrize("kind", ["no meta function", "made of others", "a size that is made up"])
def test_the_largest_of_an_operator_of_another_library(kind, mine, wide):
    mine.define("keep(Tensor x) -> Tensor")
    mine.impl("keep", keep, "CompositeImplicitAutograd" if kind == "made of others" else "CPU")
    if kind == "a size that is made up":
        torch.library.register_fake(
            "bridge_jax_sizes::keep",
            lambda x: x.new_empty(torch.library.get_ctx().new_dynamic_size()),
            lib=mine,
        )
    x = jnp.asarray([1.0, -2.0, 3.0], jnp.float32)
    assert operator("bridge_jax_sizes::keep")(x).tolist() == [1, 3]
    assert said(ValueError, lambda: jax.jit(operator("bridge_jax_sizes::keep"))(x)) == (
        "bridge_jax_sizes::keep: expected an operator whose results have sizes that follow from "
        "those of its inputs, got one whose sizes depend on values; call it outside of jax.jit, "
        "jax.vmap and jax.checkpoint, or give out, the largest that its results can be"
    )
    larger = operator("bridge_jax_sizes::keep", out=jax.ShapeDtypeStruct((3,), jnp.float32))
    for one in (larger, jax.jit(larger), copy.deepcopy(larger)):
        result, sizes = one(x)
        assert (result.tolist(), sizes.tolist()) == ([1, 3, 0], [2])
    result, sizes = jax.vmap(larger)(jnp.stack([x, -x]))
    assert (result.tolist(), sizes.tolist()) == ([[1, 3, 0], [2, 0, 0]], [[2], [1]])
    assert said(ValueError, lambda: jax.grad(lambda x: larger(x)[0].sum())(x)) == (
        "bridge_jax_sizes::keep: expected an operator whose results are as large as their values "
        "say where a network is differentiated, got one that was told the largest; leave that "
        "out, outside of jax.jit"
    )
    checks = [export.DisabledSafetyCheck.custom_call(name) for name in larger.targets]
    result, sizes = export.export(jax.jit(larger), disabled_checks=checks)(x).call(x)
    assert (result.tolist(), sizes.tolist()) == ([1, 3, 0], [2])


def test_sizes_that_are_known_are_those_that_were_told(mine, wide):
    mine.define("twice(Tensor x) -> Tensor")
    mine.impl("twice", lambda x: x * 2, "CPU")
    torch.library.register_fake("bridge_jax_sizes::twice", torch.empty_like, lib=mine)
    x = jnp.asarray([1.0, -2.0, 3.0], jnp.float32)
    for name in ("bridge_jax_sizes::twice", "aten::relu"):
        one = operator(name, out=jax.ShapeDtypeStruct((3,), jnp.float32))
        assert one(x).shape == jax.jit(one)(x).shape == (3,)
    hot = operator("aten::one_hot", out=jax.ShapeDtypeStruct((2, 4), jnp.int64))
    result, sizes = jax.jit(hot)(jnp.asarray([1, 0]))
    assert (result.tolist(), sizes.tolist()) == ([[0, 1, 0, 0], [1, 0, 0, 0]], [2, 2])


def test_nms_of_torchvision(wide):
    pytest.importorskip("torchvision")
    boxes = jnp.asarray([[0, 0, 2, 2], [0.1, 0, 2, 2], [5, 5, 6, 6]], jnp.float32)
    scores = jnp.asarray([0.9, 0.8, 0.7], jnp.float32)
    nms = operator("torchvision::nms", iou_threshold=0.5, out=jax.ShapeDtypeStruct((3,), jnp.int64))
    result, sizes = jax.jit(nms)(boxes, scores)
    assert (result.tolist(), sizes.tolist()) == ([0, 2, 0], [2])


def test_results_that_are_conjugated_when_they_are_read():
    """aten::linalg_lu_solve.out leaves its output so, from the right."""
    a = (array(3, 3) + 1j * array(3, 3)).astype(np.complex64)
    b = (array(4, 3) + 1j * array(4, 3)).astype(np.complex64)
    lu, pivots = (t.numpy() for t in torch.linalg.lu_factor(torch.from_numpy(a)))
    check(
        operator("aten::linalg_lu_solve", left=False),
        lambda lu, p, b: torch.linalg.lu_solve(lu, p, b, left=False).resolve_conj(),
        lu,
        pivots,
        b,
    )


def test_factories():
    assert said(AttributeError, lambda: operator("aten::randn", size=[2])) == (
        "aten::randn: expected an operator from tensors to new tensors, got a factory, which takes "
        "no tensor; make its result with jax.numpy or jax.random, or call 'aten::randn_like'"
    )


def test_a_measured_call_is_compiled_once(wide):
    nonzero = operator("aten::nonzero")
    mask = jnp.asarray([True, False, True, False, False])  # no other test has this shape
    compiled = []
    with jax.log_compiles(), catch_logs(compiled):
        for _ in range(50):
            assert nonzero(mask).tolist() == [[0], [2]]
    finished = [text for text in compiled if "Finished XLA compilation of jit(aten::" in text]
    assert 1 <= len(finished) <= 2, finished  # the sizes, and the results


@contextlib.contextmanager
def catch_logs(texts):
    class Handler(logging.Handler):
        def emit(self, record):
            texts.append(record.getMessage())

    handler = Handler()
    logger = logging.getLogger("jax")
    logger.addHandler(handler)
    yield
    logger.removeHandler(handler)


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda f: pickle.loads(pickle.dumps(f))]
)
def test_copies_of_one_that_was_told_the_largest(wide, again):
    mask = jnp.asarray([True, False, True])
    nonzero = operator("aten::nonzero", out=jax.ShapeDtypeStruct((3, 1), jnp.int64))
    copied = again(again(nonzero))
    for one in (nonzero, copied):
        result, sizes = jax.jit(one)(mask)
        assert (result.tolist(), sizes.tolist()) == ([[0], [2], [0]], [2, 1])
    assert repr(copied) == repr(nonzero)


def test_random_numbers_are_drawn_at_each_call():
    """XLA neither makes two of them one nor takes them out of a loop."""
    x = jnp.ones(64)
    draw, drop = operator("aten::rand_like"), operator("aten::dropout", p=0.5, train=True)

    def count(rows):
        return len({np.asarray(row).tobytes() for row in rows})

    assert count(jax.jit(lambda x: (draw(x), draw(x), draw(x)))(x)) == 3
    assert (
        count(jax.jit(lambda x: lax.scan(lambda c, _: (c, draw(x)), 0, None, length=4)[1])(x)) == 4
    )
    assert count(jax.jit(jax.vmap(draw))(jnp.ones((3, 64)))) == 3

    # Also in what is differentiated, where they depend on what the loop or the map brings.
    def loss(w):
        def step(total, x):
            mask = draw(lax.stop_gradient(x))
            return total + (w * x * mask).sum(), mask

        return lax.scan(step, 0.0, jnp.ones((4, 64)))

    (_, masks), _ = jax.jit(jax.value_and_grad(loss, has_aux=True))(1.0)
    assert count(masks) == 4
    of_examples = jax.vmap(lambda x: x * draw(lax.stop_gradient(x)))(jnp.ones((3, 64)))
    assert count(of_examples) == 3
    assert count(jax.jit(lambda x: (drop(x), drop(x)))(x)) == 2

    def loss(x):
        return lax.scan(lambda sum_, _: (sum_ + drop(x).sum(), None), 0.0, None, length=4)[0]

    gradient = jax.jit(jax.grad(loss))(x)  # four draws of 0 or 2
    assert set(gradient.tolist()) > {2.0, 4.0, 6.0}
    with pytest.raises(NotImplementedError, match="Effects not supported"):
        jax.grad(jax.checkpoint(lambda x: drop(x).sum()))(x)
    # A mask of its own is the same in the gradient.
    draw_mask = operator("aten::bernoulli.p", p=0.5)

    def masked(x):
        mask = draw_mask(jnp.zeros_like(x))
        return (mask * x).sum(), mask

    of_x, mask = jax.jit(jax.grad(masked, has_aux=True))(x)
    np.testing.assert_array_equal(of_x, mask)
    # As any other operator: the same where the generator is.
    torch.manual_seed(5)
    first = draw(x)
    torch.manual_seed(5)
    np.testing.assert_array_equal(first, draw(x))
    np.testing.assert_array_equal(torch.manual_seed(5) and torch.rand(64), first)


def test_a_gradient_is_exported(run_python, tmp_path):
    """The gradient of one result and that of several are other targets; either may be missing."""
    relu, topk = operator("aten::relu"), operator("aten::max", dim=1)
    for number, one in enumerate((relu, operator("aten::linear"))):
        inputs = [jnp.ones((2, 3))] * (number + 1)
        gradient = jax.jit(jax.grad(lambda *x, one=one: (one(*x) ** 2).sum()))
        checks = [export.DisabledSafetyCheck.custom_call(name) for name in one.targets]
        exported = export.export(gradient, disabled_checks=checks)(*inputs)
        np.testing.assert_array_equal(exported.call(*inputs), gradient(*inputs))
    assert len(relu.targets) == len(topk.targets) == 2
    assert set(relu.targets) == set(topk.targets)
    file = tmp_path / "exported"
    file.write_bytes(exported.serialize())
    text = run_python(
        f"""
import jax.numpy as jnp
from jax import export
from aten_bridge.jax import operator
operator("aten::linear")
f = export.deserialize(bytearray(open({str(file)!r}, "rb").read())).call
print(f(jnp.ones((2, 3)), jnp.ones((2, 3))).tolist())
"""
    )
    assert text == "[[12.0, 12.0, 12.0], [12.0, 12.0, 12.0]]\n"


def test_they_can_be_pickled_and_printed():
    gelu = operator("aten::gelu", approximate="tanh")
    assert repr(gelu) == "operator('aten::gelu', approximate='tanh')"
    x = jnp.asarray(array(3))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(gelu))(x), gelu(x))


def said(expected, function):
    with pytest.raises(expected) as error:
        function()
    return str(error.value)


def test_what_is_said_of_mistakes(wide):
    assert said(AttributeError, lambda: operator("aten::topkk")) == (
        "aten::topkk: expected an operator that is registered with PyTorch, got an unknown name; "
        "did you mean 'aten::topk'?"
    )
    assert said(TypeError, lambda: operator("aten::topk")) == (
        "aten::topk: attribute 'k': expected an int, got nothing; give it where the operator is "
        "made, as in operator('aten::topk', k=...)"
    )
    # The error is that of the overload that has these names, not of the one without attributes.
    assert said(TypeError, lambda: operator("aten::max", dim="x")) == (
        "aten::max.dim: attribute 'dim': expected an int, got the str \"x\""
    )
    assert said(TypeError, lambda: operator("aten::sum", dim="x", keepdim=True)) == (
        "aten::sum.dim_IntList: attribute 'dim': expected a list of ints, got the str \"x\""
    )
    x = jnp.asarray(array(3, 2))
    assert said(TypeError, lambda: operator("aten::gelu")(x, x)) == (
        "aten::gelu: expected 1 input, got 2"
    )
    take = operator("aten::index_select", dim=0)
    assert said(jax.errors.JaxRuntimeError, lambda: take(x, jnp.asarray([7]))) == (
        "INVALID_ARGUMENT: aten::index_select: index out of range in self (input 0 'self': float32 "
        "[3, 2]; input 1 'index': int64 [1]; output 0: float32 [1, 2])"
    )


def test_advice_is_about_jax(wide, my):
    x = jnp.asarray([1.0, 2.0, 3.0])
    few = operator("aten::masked_select", out=jax.ShapeDtypeStruct((2,), jnp.float32))
    x32 = x.astype(jnp.float32)
    assert said(jax.errors.JaxRuntimeError, lambda: few(x32, x > 0)) == (
        "INVALID_ARGUMENT: aten::masked_select: output 0: expected float32 [2] or less of it, as "
        "out say, got float32 [3]"
    )
    assert said(ValueError, lambda: jax.grad(lambda x: few(x, x > 2)[0].sum())(x32)) == (
        "aten::masked_select: expected an operator whose results are as large as their values say "
        "where a network is differentiated, got one that was told the largest; leave that out, "
        "outside of jax.jit"
    )
    # A number that is not known before the call.
    assert my("FirstOf")(x, 2).tolist() == [1, 2]
    assert my("FirstOf")(x, 1).tolist() == [1]
    assert said(ValueError, lambda: jax.jit(my("FirstOf"))(x, 2)) == (
        "FirstOf: expected the numbers on which the shape of the output depends to be known before "
        "the call, got a tensor (inferring from input 0: float64 [3]; input 1: int64 []); pass a "
        "Python number, make it an attribute, or give out"
    )


def test_a_shape_that_nobody_tells(run_python):
    """Where PyTorch's Python part is not there."""
    text = run_python(
        """
import sys
sys.modules["torch"] = None
import jax.numpy as jnp
from aten_bridge.jax import operator
try:
    operator("aten::histc", bins=-1)(jnp.ones(3))
except ValueError as error:
    print(error)
"""
    )
    assert text == (
        "aten::histc: expected shapes that PyTorch tells without data, or with zeros or ones in "
        "the inputs, got the error: torch.histogram(): bins must be > 0, but got -1 for dimension "
        "0; import torch, whose Python part knows the shapes of more operators, or give out\n"
    )


NO_OPERATOR = (
    "INVALID_ARGUMENT: AtenOperator: expected the attribute 'aten_bridge_operator' as operator() "
    "of aten_bridge.mindspore and of aten_bridge.jax writes it, got {}; make the operator with it"
)
NO_SLOPE = (
    "INVALID_ARGUMENT: aten::leaky_relu: attribute 'negative_slope': expected a number, got "
    "something that is none of bool, int, float, str, and lists of ints or of floats"
)


@pytest.mark.parametrize(
    ("text", "said_of_it"),
    [
        (
            "11:aten::reluu1:0",
            "INVALID_ARGUMENT: aten::reluu: expected an operator that is registered with PyTorch, "
            "got an unknown name; import the library that has it",
        ),
        ("10:aten::relu", NO_OPERATOR.format("'10:aten::relu'")),
        ("10:aten::relu13:1/99999999999", NO_OPERATOR.format("'10:aten::relu13:1/99999999999'")),
        ("10:aten::relu4:1/-1", NO_OPERATOR.format("'10:aten::relu4:1/-1'")),
        ("10:aten::relu4:1/2x", NO_OPERATOR.format("'10:aten::relu4:1/2x'")),
        ("16:aten::leaky_relu1:014:negative_slope0:", NO_SLOPE),
        ("16:aten::leaky_relu1:014:negative_slope3:f1x", NO_SLOPE),
    ],
)
def test_texts_that_xla_brings_and_operator_did_not_write(text, said_of_it):
    call = operator("aten::relu")
    call._for_xla = {"aten_bridge_operator": text}
    assert said(jax.errors.JaxRuntimeError, lambda: call(jnp.ones(2))) == said_of_it


def test_an_operator_that_is_registered_again_with_another_schema():
    import torch

    x = jnp.ones(2)
    for schema, implementation, result in (
        ("f(Tensor x) -> Tensor", lambda x: x * 2, 2),
        ("f(Tensor x, float by=3.0) -> Tensor", lambda x, by=3.0: x * by, 3),
    ):
        registered = torch.library.Library("bridge_again", "DEF")
        registered.define(schema)
        registered.impl("f", implementation, "CompositeImplicitAutograd")
        try:
            np.testing.assert_array_equal(operator("bridge_again::f")(x), [result, result])
        finally:
            registered._destroy()


@pytest.mark.parametrize(
    ("name", "attributes"),
    [
        ("aten::batch_norm", {"training": True, "cudnn_enabled": False}),
        ("aten::native_batch_norm", {"training": True}),
        ("aten::instance_norm", {"use_input_stats": True, "cudnn_enabled": False}),
    ],
)
def test_inputs_are_never_written(name, attributes):
    norm = operator(name, momentum=0.5, eps=1e-5, **attributes)
    x, weight, bias = (jnp.asarray(array(*shape)) for shape in ((4, 3, 5), (3,), (3,)))
    mean, variance = jnp.zeros(3), jnp.ones(3)

    def loss(x, weight):
        results = norm(x, weight, bias, mean, variance)
        return ((results[0] if isinstance(results, tuple) else results) ** 2).sum()

    for function in (loss, jax.jit(loss), jax.grad(loss), jax.jit(jax.grad(loss))):
        jax.block_until_ready(function(x, weight))
        assert mean.tolist() == [0, 0, 0]
        assert variance.tolist() == [1, 1, 1]
    t = torch.from_numpy(np.array(x)).requires_grad_()
    w, b = (torch.from_numpy(np.array(one)) for one in (weight, bias))
    arguments = (w, b, torch.zeros(3), torch.ones(3), True, 0.5, 1e-5)
    results = getattr(torch, name.removeprefix("aten::"))(
        t, *arguments, *([] if "native" in name else [False])
    )
    expected = results[0] if isinstance(results, tuple) else results
    (expected**2).sum().backward()
    np.testing.assert_allclose(jax.grad(loss)(x, weight), t.grad, rtol=1e-5, atol=1e-5)
    # Outside of training they are what is used.
    given = jnp.asarray([0.5, -1.0, 2.0]), jnp.asarray([1.0, 4.0, 0.25])
    attributes = {"training": False, "momentum": 0.5, "eps": 0.0, "cudnn_enabled": False}
    got = operator("aten::batch_norm", **attributes)(x, None, None, *given)
    expected = (x - given[0][:, None]) / jnp.sqrt(given[1][:, None])
    np.testing.assert_allclose(got, expected, rtol=1e-6)


def test_sizes_that_nothing_can_have():
    expand = operator("aten::expand", size=[2**62])
    assert said(ValueError, lambda: expand(jnp.ones(1, jnp.float32))) == (
        "aten::expand: output 0: expected less than 2^63 bytes, got float32 [4611686018427387904]; "
        "correct what the sizes come from"
    )

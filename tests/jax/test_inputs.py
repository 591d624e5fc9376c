"""How inputs are given: by position, by name, and not at all; functions that are equal."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from aten_bridge.jax import operator

# ===--- inputs by name, and those that are left out ---===

X = jnp.asarray(np.linspace(-2, 2, 6, dtype=np.float32).reshape(2, 3))
WEIGHT = jnp.asarray([1.0, 2.0, 4.0])


def test_last_optional_inputs_may_be_left_out(my):
    f = my("LayerNorm", grad="LayerNormGrad")
    assert (f(X) == f(X, None, None)).all()
    assert (f(X, WEIGHT) == f(X, WEIGHT, None)).all()
    assert (jax.jit(f)(X) == f(X)).all()
    wanted = jax.grad(lambda x: (f(x, WEIGHT, None) ** 2).sum())(X)
    assert (jax.grad(lambda x: (f(x, WEIGHT) ** 2).sum())(X) == wanted).all()
    linear = operator("aten::linear")
    assert (linear(X, X) == linear(X, X, None)).all()
    assert (my("Scale")(X, 2.0) == my("Scale")(X, 2.0, None)).all()


def test_inputs_by_name(my):
    f = my("LayerNorm", grad="LayerNormGrad")
    assert (f(X, bias=WEIGHT) == f(X, None, WEIGHT)).all()
    assert (f(bias=WEIGHT, x=X) == f(X, None, WEIGHT)).all()
    assert (jax.jit(f)(X, bias=WEIGHT) == f(X, None, WEIGHT)).all()
    gradient = jax.grad(lambda bias: f(X, bias=bias).sum())(WEIGHT)
    assert (gradient == 2).all()
    linear, gelu = operator("aten::linear"), operator("aten::gelu")
    assert (linear(X, weight=X, bias=None) == linear(X, X, None)).all()
    assert (gelu(self=X) == gelu(X)).all()
    assert (my("Cat")(tensors=(X, X)) == my("Cat")(X, X)).all()
    assert (my("Count")(input0=X) >= 0).all()  # as PyTorch calls one without a name


NAMES = "expected one of 'x', 'weight', 'bias' as the name of an input"


@pytest.mark.parametrize(
    ("args", "named", "text"),
    [
        ((), {"bias": X}, "LayerNorm: input 0 'x': expected a tensor, got nothing; give one"),
        ((X,), {"bais": X}, f"LayerNorm: {NAMES}, got 'bais'; did you mean 'bias'?"),
        (
            (X,),
            {"eps": 0.1},
            f"LayerNorm: {NAMES}, got 'eps', an attribute; give it to kernel()",
        ),
        (
            (X,),
            {"x": X},
            "LayerNorm: input 0 'x': expected one value, got one by position and one by name; "
            "leave one out",
        ),
        (
            (X, X, X, X),
            {"bias": X},
            "LayerNorm: expected 3 inputs, where some are given by name, got 4 by position and "
            "'bias'; give several tensors as one tuple",
        ),
        ((), {}, "LayerNorm: expected 1 to 3 inputs, got 0"),
        ((X,) * 4, {}, "LayerNorm: expected 1 to 3 inputs, got 4"),
    ],
)
def test_wrong_names(my, args, named, text):
    with pytest.raises(TypeError) as error:
        my("LayerNorm")(*args, **named)
    assert str(error.value) == text


def test_an_empty_list_beside_other_arrays(my):
    f = my("Join", grad="JoinGrad")
    one = X[:1]
    for others, last in (((), None), ([], one), ((one,), None), ((one, one), one)):
        wanted = jnp.concatenate([X, *others, *([] if last is None else [last])])
        assert (f(X, others, last) == wanted).all()
        assert (f(X, last=last, others=others) == wanted).all()
        assert (jax.jit(f)(X, others, last) == wanted).all()
        gradient = jax.grad(lambda x, o=others, last=last: (f(x, o, last) ** 2).sum())(X)
        assert (gradient == 2 * X).all()
    assert (f(X, ()) == X).all()
    assert (operator("aten::index")(X, (jnp.asarray([0]),)) == X[:1]).all()
    nothing = "expected a tuple of one array or more, got ()"
    cure = "; give numbers to kernel() as an attribute, and None as an argument of its own"
    for call, text in (
        (
            lambda: f((), (), None),
            f"Join: input 0: {nothing}{cure}\nJoin: input 1: {nothing}{cure}",
        ),
        (
            lambda: f(X, (X, X), X, X),
            "Join: expected 2 to 3 inputs, one of them the list of tensors, got 4",
        ),
        (
            lambda: f((X, X)),
            "Join: input 0: expected a tensor, None or a number, got a tuple; give the list of "
            "tensors in its place, as one argument",
        ),
        (lambda: f(X, None, None), "Join: input 1 'others': expected a tensor, got None"),
        (lambda: my("Cat")(()), f"Cat: input 0: {nothing}{cure}"),
        (lambda: my("LayerNorm")(X, (), X), f"LayerNorm: input 1: {nothing}{cure}"),
    ):
        with pytest.raises((TypeError, ValueError)) as error:
            call()
        assert str(error.value).startswith(text), str(error.value)


# ===--- equal functions ---===


def test_functions_of_the_same_kernel_and_options_are_equal(my):
    def made(**more):
        return my("LeakyRelu", grad="LeakyReluGrad", **more)

    assert made() == made()
    assert hash(made()) == hash(made())
    assert made(out=X) == made(out=jax.ShapeDtypeStruct(X.shape, X.dtype))
    others = [
        made(negative_slope=0.5),
        made(vmap_method=None),
        made(out=X),
        made(has_side_effect=True),
        made(input_output_aliases={0: 0}),
        my("LeakyRelu"),
        my("Cat"),
        operator("aten::gelu"),
        "LeakyRelu",
    ]
    assert all(made() != other for other in others)
    assert my("TopK", k=1, dim=0) == my("TopK", dim=0, k=1)
    assert operator("aten::topk", k=1) == operator("aten::topk", k=1)
    assert operator("aten::topk", k=1) != operator("aten::topk", k=2)

    traces = []

    def call(f, x):
        traces.append(f)
        return f(x)

    compiled = jax.jit(call, static_argnums=0)
    assert (compiled(made(), X) == compiled(made(), X)).all()
    assert len(traces) == 1

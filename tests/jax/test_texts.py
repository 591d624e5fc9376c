"""Errors, as whole texts."""

import functools
import pickle
import re
import sys
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from aten_bridge.faults import Fault, Status

X = jnp.asarray(np.linspace(-2, 2, 4, dtype=np.float32).reshape(2, 2))


def text_of(error, call):
    with pytest.raises(error) as raised:
        jax.block_until_ready(call())
    return str(raised.value)


def test_libraries(my, library, tmp_path):
    from aten_bridge.jax import kernel

    nothing = tmp_path / "nothing.so"
    assert text_of(FileNotFoundError, lambda: kernel(f"{nothing}:LeakyRelu")) == (
        f"{nothing}: expected a kernel library, got no such file; build it, or correct the path"
    )
    assert re.fullmatch(
        rf"{library}: expected the kernel 'LeakyRely', got a library with 'Assigns', .* and \d+ "
        "more; did you mean 'LeakyRelu'\\?",
        text_of(AttributeError, lambda: my("LeakyRely")),
    )
    assert "did you mean 'LeakyRelu'?" in text_of(AttributeError, lambda: my("LeakyReluJax"))
    assert text_of(ValueError, lambda: kernel("LeakyRelu")) == (
        "'LeakyRelu': expected the path of a library, a colon and the name of a kernel, such as "
        '"./leaky_relu.so:LeakyRelu"'
    )


def test_a_path_that_no_library_has():
    from aten_bridge.jax import kernel

    assert text_of(ValueError, lambda: kernel("a\0.so:LeakyRelu")) == (
        "'a\\x00.so:LeakyRelu': expected a path and a name in UTF-8 without NUL; rename or link "
        "the library"
    )


def test_a_library_for_other_hosts():
    from aten_bridge.jax import _targets

    def other(handler, description):
        return types.SimpleNamespace(
            library=types.SimpleNamespace(function=lambda name: handler),
            **{"path": "a.so", "symbol": "LeakyRelu", "description": description},
        )

    neighbour = print  # a function of the author's own that is called LeakyReluJax
    for function in (
        other(None, None),
        other(neighbour, types.SimpleNamespace(hosts=["MINDSPORE"])),
    ):
        assert text_of(ValueError, lambda function=function: _targets.target_of(function)) == (
            "a.so: expected a library for JAX, got one that was built for other hosts; build it "
            "with aten_bridge_add_kernel(... HOSTS MINDSPORE JAX)"
        )


def test_attributes(my):
    assert text_of(TypeError, lambda: my("LeakyRelu", slope=0.1, negative_slope=1)) == (
        "LeakyRelu: attribute 'negative_slope': expected a float, such as 1.0, got the int 1\n"
        "LeakyRelu: attribute 'slope': expected one of 'negative_slope', got an unknown name; did "
        "you mean 'negative_slope'?"
    )
    for value in ([True, False], ["a"], 1j, object(), [1, 2.0], 2**70, None):
        assert text_of(TypeError, lambda v=value: my("LeakyRelu", negative_slop=v)) == (
            "LeakyRelu: attribute 'negative_slop': expected one of 'negative_slope', got an "
            "unknown name; did you mean 'negative_slope'?"
        )
    assert re.fullmatch(
        r"TopK: attribute 'k': expected an int, got nothing; give it where the operator is made, "
        r"as in kernel\('.*:TopK', k=...\)",
        text_of(TypeError, lambda: my("TopK")),
    )
    out = jax.ShapeDtypeStruct((1,), jnp.uint8)
    assert text_of(
        TypeError, lambda: my("Describe", out=out, ints=[1, 2.0], number=2**63, text=X)
    ) == (
        "Describe: attribute 'ints': expected ints or floats, got both in [1, 2.0]; write 1.0 for "
        "1\n"
        "Describe: attribute 'number': expected an int from -2^63 to 2^63 - 1, got "
        "9223372036854775808\n"
        "Describe: attribute 'text': expected a bool, an int, a float, a str, a dtype, or a list "
        f"of ints or floats or of lists of these, got {X!r} of type ArrayImpl"
    )


def test_kernel(my):
    assert text_of(ValueError, lambda: my("Fill")) == (
        "Fill: expected out, or a kernel with a meta function, got neither; give kernel() out=, a "
        "jax.ShapeDtypeStruct or a function that returns one, or export the kernel with "
        "aten_bridge::meta() or aten_bridge::meta(function)"
    )
    assert text_of(TypeError, lambda: my("Fill", out=(2, 2))(X)) == (
        "Fill: expected out to be a jax.ShapeDtypeStruct, a tuple of these, or a function that "
        "returns such, got 2"
    )
    assert text_of(ValueError, lambda: my("LeakyRelu", vmap_method="all")) == (
        "LeakyRelu: expected vmap_method to be one of 'sequential', 'sequential_unrolled', "
        "'expand_dims', 'broadcast_all', or None, got 'all'"
    )
    assert text_of(ValueError, lambda: my("Swap", input_output_aliases={0: 0, 1: 0})) == (
        "Swap: expected input_output_aliases to give each output to one input, got {0: 0, 1: 0}"
    )
    times = my("Raised", grad="TimesGrad")  # whose last input may be left out, though not here
    assert text_of(TypeError, lambda: jax.grad(lambda x: times(x).sum())(X)) == (
        "TimesGrad: expected 3 inputs, got 2"
    )
    assert text_of(TypeError, lambda: my("LeakyRelu", grad=5)) == (
        "LeakyRelu: expected grad to be the name of a gradient kernel or a tuple of such names, "
        "got 5"
    )


def test_sizes_that_nothing_can_have(my, wide):
    def told(*shape, dtype=jnp.float32):
        return lambda: my("Fill", out=jax.ShapeDtypeStruct(shape, dtype))(X)

    assert text_of(ValueError, told(2**62, 4)) == (
        "Fill: output 0: expected less than 2^63 bytes, got float32 [4611686018427387904, 4]; "
        "correct out"
    )
    assert text_of(ValueError, told(0, 2**62, 2**62)) == (
        "Fill: output 0: expected less than 2^63 bytes, got float32 [0, 4611686018427387904, "
        "4611686018427387904]; correct out"
    )
    assert text_of(ValueError, told(2, -1)) == (
        "Fill: output 0: expected sizes of 0 or more, got float32 [2, -1]; correct out"
    )
    assert text_of(ValueError, told(2, dtype=jnp.int4)) == (
        "Fill: output 0: expected bool|uint8|int8|uint16|int16|uint32|int32|uint64|int64|float16|"
        'bfloat16|float32|float64|complex64|complex128|float8e4m3fn|float8e5m2, got "int4" with '
        "shape [2]; correct out"
    )


def test_inputs(my):
    f = my("LeakyRelu")
    assert text_of(TypeError, lambda: f(X, X)) == "LeakyRelu: expected 1 input, got 2"
    assert text_of(TypeError, lambda: f(np.ones(2))) == (
        "LeakyRelu: input 0: expected an array of JAX's, got one of NumPy's; give it as "
        "jax.numpy.asarray(array), which makes float64 and int64 32 bits wide unless "
        "jax_enable_x64 is set"
    )
    assert text_of(TypeError, lambda: f(torch.ones(2))) == (
        "LeakyRelu: input 0: expected an array of JAX's, got a tensor of PyTorch's; give it as "
        "jax.numpy.asarray(tensor.detach().numpy())"
    )
    assert text_of(TypeError, lambda: f("x")) == (
        "LeakyRelu: input 0: expected an array, None or a number, got 'x'; give it to kernel() as "
        "an attribute"
    )
    assert text_of(TypeError, lambda: my("Cat")((X, None))) == (
        "Cat: input 0: expected a tuple of one array or more, got (Array, None); give numbers to "
        "kernel() as an attribute, and None as an argument of its own"
    )
    assert text_of(TypeError, lambda: f(jnp.ones(2, jnp.int4))) == (
        "LeakyRelu: input 0: expected bool|uint8|int8|uint16|int16|uint32|int32|uint64|int64|"
        "float16|bfloat16|float32|float64|complex64|complex128|float8e4m3fn|float8e5m2, got "
        '"int4" with shape [2]'
    )
    assert text_of(ValueError, lambda: f(None)) == (
        "LeakyRelu: input 0 'x': expected a tensor, got None"
    )
    assert text_of(TypeError, lambda: my("Scale")(X, 2**31, 1e-50)) == (
        "Scale: input 1: expected an int from -2^31 to 2^31 - 1, got 2147483648; set "
        "jax_enable_x64 for larger ones\n"
        "Scale: input 2: expected a float that a float32 can hold, as which JAX has it, got 1e-50; "
        "set jax_enable_x64 for others"
    )


def test_a_tensor_of_mindspores(my, monkeypatch):
    class Tensor:
        pass

    monkeypatch.setitem(sys.modules, "mindspore", types.SimpleNamespace(Tensor=Tensor))
    assert text_of(TypeError, lambda: my("LeakyRelu")(Tensor())) == (
        "LeakyRelu: input 0: expected an array of JAX's, got a tensor of MindSpore's; give it as "
        "jax.numpy.asarray(tensor.asnumpy())"
    )


def test_dtypes_and_shapes(my):
    checked = my("Checked")
    assert text_of(ValueError, lambda: checked(jnp.ones((2, 2), jnp.int32), jnp.ones(3))) == (
        "Checked: input 0 'x': expected float16|bfloat16|float32|float64, got \"int32\" with shape "
        "[2, 2]\n"
        "Checked: input 0 'x': expected sizes [N, 3], got int32 [2, 2]\n"
        "Checked: input 1 'y': expected sizes [N] with N = 2 as in input 0 'x', got float32 [3]"
    )
    assert text_of(TypeError, lambda: my("TopK", k=1)(X)) == (
        "TopK: expected outputs of dtypes that JAX has, got 'int64'; set jax_enable_x64, as in "
        'jax.config.update("jax_enable_x64", True)'
    )


def test_faults_as_data(my, faults):
    """Where Python, the library before a call, and the library in a call find them."""
    checked = my("Checked")
    of_shape = {"status": Status.SHAPE, "subject": "input"}
    of_x = Fault("sizes [N, 3]", "float32 [2, 2]", index=0, name="x", **of_shape)
    hint = "give it to kernel() as an attribute"
    assert faults(lambda: checked(X, "x", X)) == (
        Fault("2 inputs", "3", "", Status.COUNT, "call"),
        Fault("an array, None or a number", "'x'", hint, index=1),
    )
    assert faults(lambda: checked(X, jnp.ones(2))) == (of_x,)
    assert faults(lambda: jax.jit(checked)(X, jnp.ones(2))) == (of_x,)
    assert faults(lambda: my("LeakyRelu", negative_slope="1")(X)) == (
        Fault(
            *("a float, such as 1.0", 'the str "1"', ""),
            *(Status.ATTRIBUTE, "attribute", -1, "negative_slope"),
        ),
    )
    assert faults(lambda: jax.block_until_ready(jax.jit(my("Resizes"))(X))) == (
        Fault(
            "float32 [2, 2] as out or the meta function say",
            "float32 [5] because the kernel resized it",
            "let out tell the shape of the result",
            *(Status.OUTPUT, "output", 0),
        ),
    )


def test_gradients(my):
    def gradient(f, x=X):
        return jax.grad(lambda x: f(x).sum())(x)

    assert text_of(ValueError, lambda: gradient(my("NoGradient"))) == (
        "NoGradient: expected an operator with a gradient kernel where a network is "
        'differentiated, got one without; name one with grad="...", as in kernel("./a.so:Cube", '
        'grad="CubeGrad")'
    )
    f = my("LeakyRelu", grad="LeakyReluGrad")
    assert text_of(ValueError, lambda: jax.grad(lambda x: gradient(f, x).sum())(X)) == (
        "LeakyReluGrad: expected an operator with a gradient kernel where a network is "
        'differentiated, got one without; name one more, as in kernel("./a.so:Cube", '
        'grad=("CubeGrad", "CubeGradGrad"))'
    )
    assert text_of(ValueError, lambda: my("LeakyRelu", grad="TopKGrad")) == (
        "TopKGrad: expected the attributes of LeakyRelu, got a gradient kernel without "
        "'negative_slope'; give ATEN_BRIDGE_EXPORT_GRAD the attr options of ATEN_BRIDGE_EXPORT"
    )
    assert text_of(ValueError, lambda: gradient(my("Swish", grad="SobelGrad"))) == (
        "SobelGrad: expected as many outputs as Swish has tensors among its inputs, 1, got 2"
    )


def test_what_a_body_does(my):
    raised = getattr(jax.errors, "JaxRuntimeError", RuntimeError)
    assert text_of(raised, lambda: jax.jit(my("Resizes"))(X)) == (
        "INVALID_ARGUMENT: Resizes: output 0: expected float32 [2, 2] as out or the meta function "
        "say, got float32 [5] because the kernel resized it; let out tell the shape of the result"
    )
    for how, text in {
        0: "index",
        4: "the kernel threw an object of type int, which is not a std::exception",
        5: "runtime",
    }.items():
        assert text_of(raised, lambda how=how: jax.jit(my("Throws", how=how, out=X))(X)) == (
            f"INVALID_ARGUMENT: Throws: {text} (input 0: float32 [2, 2]; output 0: float32 [2, 2])"
        )
    dtype = my("LeakyRelu", out=lambda x: jax.ShapeDtypeStruct(x.shape, jnp.int32))
    assert text_of(raised, lambda: dtype(X)) == (
        "INVALID_ARGUMENT: LeakyRelu: Found dtype Int but expected Float (input 0 'x': float32 [2, "
        "2]; output 0 'y': int32 [2, 2])"
    )


def test_texts_that_are_not_utf8(my):
    said = r"cannot read m\xfcller.bin ({}input 0: float32 [2, 2]{})"
    for where in ("body", "check"):
        assert text_of(Exception, lambda where=where: jax.jit(my("Latin1", where=where))(X)) == (
            "INVALID_ARGUMENT: Latin1: " + said.format("", "; output 0: float32 [2, 2]")
        )
    assert text_of(Exception, lambda: jax.jit(my("Latin1State"))(X)) == (
        "INVALID_ARGUMENT: Latin1State: " + said.format("", "; output 0: float32 [2, 2]")
    )
    assert text_of(ValueError, lambda: my("Latin1", where="meta")(X)) == (
        "Latin1: " + said.format("inferring from ", "")
    )


def test_says_what_it_is(my, library):
    f = my("LeakyRelu", negative_slope=0.5, grad="LeakyReluGrad")
    text = f"kernel('{library}:LeakyRelu', negative_slope=0.5, grad='LeakyReluGrad')"
    assert repr(f) == text
    again = pickle.loads(pickle.dumps(f))
    assert repr(again) == text
    assert again(X).tolist() == f(X).tolist()
    assert all(
        re.fullmatch(r"aten_bridge\.LeakyRelu(Grad)?\.[0-9a-f]{16}", name) for name in f.targets
    )


@pytest.mark.parametrize(
    "call",
    [
        lambda f: jax.jvp(f, (X,), (X,)),
        lambda f: jax.jacfwd(f)(X),
        lambda f: jax.jit(jax.jacfwd(f))(X),
        lambda f: jax.hessian(lambda x: f(x).sum())(X),
    ],
)
def test_forward_mode(my, call):
    from aten_bridge.jax import operator

    for f in (my("LeakyRelu", grad="LeakyReluGrad"), my("LeakyRelu"), operator("aten::gelu")):
        assert text_of(TypeError, functools.partial(call, f)) == (
            f"{f.__name__}: expected reverse mode, as of jax.grad, jax.vjp and jax.jacrev, since "
            "gradient kernels go backward, got forward mode, as of jax.jvp, jax.jacfwd and "
            "jax.hessian; second derivatives are jax.jacrev(jax.jacrev(f))"
        )


def test_what_jax_says_of_forward_mode():
    """It is the phrase by which is_forward_mode() knows the error."""
    from aten_bridge.jax._operator import is_forward_mode

    f = jax.custom_vjp(lambda x: x)
    f.defvjp(lambda x: (x, None), lambda _, cotangent: (cotangent,))
    for call in (f, jax.jit(f)):
        with pytest.raises(TypeError) as error:
            jax.jvp(call, (X,), (X,))
        assert is_forward_mode(error.value), str(error.value)
    with pytest.raises(TypeError) as error:
        jax.grad(lambda x: jnp.sum(x))(1)
    assert not is_forward_mode(error.value)

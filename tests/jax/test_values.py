"""Values of every Python type wherever a function of a kernel's takes one.

Each in another process: one that ends it is told by name. What becomes of it is a result, or an
error of a documented type, with a message.
"""

import subprocess
import sys

import numpy as np

PROGRAM = """
import fractions, decimal, itertools, random, sys
import jax, jax.numpy as jnp, numpy as np, torch
from aten_bridge.jax import kernel

class Raises:
    __hash__ = __eq__ = None
    def __repr__(self):
        raise ArithmeticError("no text")

def nested(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value

cyclic = []
cyclic.append(cyclic)
X = jnp.ones((2, 2))
OUT = jax.ShapeDtypeStruct((2,), jnp.float32)
VALUES = [
    None, True, 0, 1, -1, 2**31, 2**63, 2**64, 10**5000, -(10**400),
    0.5, float("nan"), float("inf"), 1e-46, 3.5e38, 1j, fractions.Fraction(10**400),
    decimal.Decimal("1.5"), "", "a", "a\\0b", "\\udcff", "a" * 6000, ":", "./a.so:", b"a", b"\\xff",
    [], (), [1], [1, 2.0], [[1], [2, 3]], [[1], 2], ["a", "\\udcff"], [None], {}, {0: 0}, {"a": 1},
    {5: 5}, {-1: 0}, {0: -1}, {"a": "b"}, {2**70: 0}, {0: 1.5}, {1}, ..., NotImplemented, object(),
    Raises(), [Raises()], nested(3), nested(5000), cyclic, range(3), object, int, len, lambda *a: 3,
    lambda *a: OUT,
    np.float32(1), np.bool_(True), np.longdouble(2) ** 2000, np.datetime64("NaT"), np.array(1),
    np.array([1, "a", None], object), np.array([[1], [2, 3]], object), np.zeros((2, 0)),
    np.array(["a"]), np.float32, np.generic, np.number, np.dtype("f4"), np.dtype("U3"),
    np.dtype([("a", "f4")]), jnp.float32, jnp.bfloat16, X, jnp.zeros(0), jnp.ones(3, jnp.int4),
    jax.random.key(0), torch.ones(2), OUT, (OUT, OUT), [OUT], jax.ShapeDtypeStruct((-1,), "f4"),
    jax.ShapeDtypeStruct((2**62, 4), jnp.float32), jax.ShapeDtypeStruct((2,), jnp.int4),
]
KINDS = (OSError, ImportError, AttributeError, TypeError, ValueError)

def text(value):
    try:
        return repr(value)[:60]
    except Exception:
        return f"a {type(value).__name__}"

count = 0

def attempt(what, value, call, *beginnings):
    global count
    count += 1
    sys.stderr.write(f"{what} {text(value)}\\n".encode(errors="replace").decode()[:200])
    sys.stderr.flush()
    try:
        jax.block_until_ready(call(value))
    except BaseException as error:
        kind = f"{'a documented' if isinstance(error, KINDS) else 'another'} {type(error).__name__}"
        parts = "\\t".join((what, text(value), kind, " or ".join(beginnings), str(error)))
        print(parts.encode(errors="backslashreplace").decode(), end="\\0")

def of(name, **more):
    return kernel(f"{library}:{name}", **more)
"""

PLACES = """
for value in VALUES:
    attempt("path", value, kernel, "expected the path of a library", "'", '"', "/")
    for option in ("grad", "vmap_method", "input_output_aliases", "out"):
        def make_and_call(value):
            made = of("LeakyRelu", **{option: value})
            repr(made)
            return made(X)
        attempt(option, value, make_and_call, "LeakyRelu: ", "'", '"', "/")
    for name, attribute in (("LeakyRelu", "negative_slope"), ("TopK", "k"), ("Describe", "ints"),
                            ("Describe", "text"), ("Describe", "rows"), ("Describe", "flags"),
                            ("Describe", "texts"), ("Describe", "type"), ("Describe", "any")):
        more = {"out": jax.ShapeDtypeStruct((1,), jnp.uint8)} if name == "Describe" else {}
        attempt(attribute, value, lambda value: of(name, **more, **{attribute: value}), name + ": ")
    if isinstance(value, str):
        attempt("name", value, lambda value: of(value), "'", '"', "/", library)
        attempt("attribute", value, lambda value: of("LeakyRelu", **{value: 1.0}), "LeakyRelu: ")
    for name, before, behind in (
        ("LeakyRelu", (), ()), ("LayerNorm", (), (None, None)), ("Scale", (X,), (None,))
    ):
        f = of(name)
        for what, call in (
            ("input", lambda value: f(*before, value, *behind)),
            ("list", lambda value: f(*before, [value, X], *behind)),
            ("jit", lambda value: jax.jit(lambda: f(*before, value, *behind))()),
        ):
            attempt(f"{what} of {name}", value, call, name + ": ")
    attempt("Cat", value, lambda value: of("Cat")((X, value)), "Cat: ")
print("alive", count)
"""


# What a kernel and its meta function say, and JAX of an alias that no input or output has.
OTHERS = ("INVALID_ARGUMENT: ", "input_output_aliases contains the mapping ")


def is_expected(error):
    _what, _value, kind, beginnings, text = error.split("\t", maxsplit=4)
    has_words = "expected " in text or "(inferring " in text
    has_words = has_words and text.startswith(tuple(beginnings.split(" or ")))
    return (kind.startswith("a documented ") and has_words) or text.startswith(OTHERS)


def test_every_value_in_every_place(library):
    done = subprocess.run(
        [sys.executable, "-c", f"library = {str(library)!r}\n{PROGRAM}{PLACES}"],
        capture_output=True,
        text=True,
        errors="replace",
    )
    assert done.returncode == 0, done.stderr[-2000:]
    *errors, last = done.stdout.split("\0")
    assert [error for error in errors if not is_expected(error)] == []
    assert last.startswith("alive "), last


def test_texts(library):
    """Whole, of what was found so."""
    text = """
def said(call):
    try:
        jax.block_until_ready(call())
    except (TypeError, ValueError) as error:
        print(type(error).__name__, error)

said(lambda: of("LeakyRelu", input_output_aliases={-1: 0}))
said(lambda: of("LeakyRelu", input_output_aliases=3))
said(lambda: of("LeakyRelu", vmap_method=np.array([1, 2])))
said(lambda: of("LeakyRelu", out=())(X))
said(lambda: of("LeakyRelu", out=np.float32)(X))
said(lambda: of("LeakyRelu")(fractions.Fraction(10**400)))
said(lambda: of("LeakyRelu")(np.longdouble(2) ** 2000))
"""
    done = subprocess.run(
        [sys.executable, "-c", f"library = {str(library)!r}\n{PROGRAM}{text}"],
        capture_output=True,
        text=True,
    )
    aliases = (
        "TypeError LeakyRelu: expected input_output_aliases to be a dict from numbers of inputs to "
        "numbers of outputs, such as {0: 0}, got "
    )
    out = (
        "TypeError LeakyRelu: expected out to be a jax.ShapeDtypeStruct, a tuple of these, or a "
        "function that returns such, got "
    )
    number = (
        "TypeError LeakyRelu: input 0: expected a float that a float32 can hold, as which JAX has "
        "it, got {}; set jax_enable_x64 for others"
    )
    assert done.stdout.splitlines() == [
        aliases + "{-1: 0}",
        aliases + "3",
        "ValueError LeakyRelu: expected vmap_method to be one of 'sequential', "
        "'sequential_unrolled', 'expand_dims', 'broadcast_all', or None, got array([1, 2])",
        out + "()",
        out + "<class 'numpy.float32'>",
        number.format(f"Fraction({10**400}, 1)"),
        number.format(repr(np.longdouble(2) ** 2000)),
    ]

"""Libraries for PyTorch: opening them, and calls of their operators."""

import os

import elf
import inputs
import numpy as np
import pytest
from host import BUILD, KERNELS
from hypothesis import given
from hypothesis import strategies as st
from outcomes import LOADING, assert_message
from worker import Array

LIBRARY = BUILD / "tests/test_pytorch.so"
WHOLE = elf.Whole(LIBRARY)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = WHOLE.kinds(tmp_path_factory.mktemp("kinds"))
    (folder / "other.so").symlink_to(KERNELS)  # another host's
    (folder / "python.so").symlink_to(np.random.mtrand.__file__)
    return folder


# ===--- the path ---===


@inputs.examples(200)
@given(
    path=st.one_of(st.sampled_from([*elf.KINDS, "other.so", "python.so"]), inputs.texts),
    behind=st.one_of(st.just(""), st.just(""), inputs.texts),
    in_folder=st.booleans(),
    as_bytes=st.booleans(),
)
def test_path(pytorch, folder, path, behind, in_folder, as_bytes):
    path = f"{folder}/{path}{behind}" if in_folder else path + behind
    is_encoded = as_bytes and inputs.is_of_bytes(path)
    outcome = pytorch.run("load_in_pytorch", os.fsencode(path) if is_encoded else path, {})
    assert_message(outcome, "/", f"{path!r}: expected a path in UTF-8 ", documented=LOADING)
    is_library = "\0" not in path and os.path.realpath(path) == str(LIBRARY.resolve())
    assert bool(outcome.error) != is_library


@inputs.examples(100)
@given(path=inputs.values)
def test_value_that_is_no_path(pytorch, path):
    outcome = pytorch.run("load_in_pytorch", path, {})
    if isinstance(path, str | bytes):
        assert_message(outcome, "/", "'", '"', documented=LOADING)
    else:
        assert outcome.error == "builtins.TypeError"
        assert outcome.text.startswith("expected the path of a library, such as "), outcome


@inputs.examples(100)
@given(replace=inputs.values)
def test_value_for_replace(pytorch, replace):
    outcome = pytorch.run("load_in_pytorch", str(LIBRARY), {"replace": replace})
    beginning = f"{LIBRARY.resolve()}: expected replace to be True or False, got "
    assert_message(outcome, beginning, documented=LOADING)
    assert bool(outcome.error) != isinstance(replace, bool | np.bool_)


# ===--- ELF files ---===


@inputs.examples(100)
@given(end=WHOLE.ends())
def test_library_that_is_cut_off(linker, folder, end):
    with WHOLE.in_file(folder, [], end) as library:
        outcome = linker.run("load_in_pytorch", str(library), {})
    # The operators of one that can be opened all the same are those of the first.
    assert_message(outcome, f"{library}: ", "expected operators that ", documented=LOADING)
    assert end in (None, len(WHOLE.content)) or outcome.error


# ===--- calls ---===

tensors = st.builds(Array, st.just("torch"), inputs.tensors.map(lambda tensor: tensor.values))
ints, reals = st.integers(-3, 4), st.floats(width=32)
# Right ones for each, of which a call may have another value in one place.
CALLED = {
    "cat": [st.lists(tensors, max_size=3), ints],
    "checked": [tensors, tensors],
    "count": [tensors, ints],
    "describe": [
        *(tensors, st.booleans(), ints, reals, st.one_of(ints, reals, st.booleans())),
        *(st.text(max_size=3), ints, st.lists(ints), st.lists(reals), st.lists(st.booleans())),
        *(st.lists(st.text(max_size=3)), st.lists(st.lists(ints)), st.one_of(st.none(), ints)),
    ],
    "first_of": [tensors, ints],
    "fill": [tensors],
    "layer_norm": [tensors, *2 * [st.one_of(st.none(), tensors)], reals],
    "leaky_relu": [tensors, reals],
    "loud": [tensors],
    "muladd": [tensors, tensors, reals],
    "scale": [tensors, reals, st.one_of(st.none(), ints)],
    "sum_of": [tensors, reals, st.lists(reals), st.lists(st.lists(reals))],
    "table_of": [tensors, ints],
    "throws": [tensors, ints],
    "top_k": [tensors, ints, ints, st.booleans()],
}
anything = st.one_of(inputs.values, inputs.numbers, tensors)


def with_another(arguments):
    """The arguments, or with another value in one place, or other many."""
    places = st.integers(0, len(arguments) - 1)
    right = st.tuples(*arguments)
    other = st.builds(
        lambda given, place, value: (*given[:place], value, *given[place + 1 :]),
        *(right, places, anything),
    )
    fewer = st.builds(lambda given, count: given[:count], right, places)
    more = st.builds(lambda given, value: (*given, value), right, anything)
    return st.one_of(right, other, other, other, fewer, more)


calls = st.sampled_from([*CALLED]).flatmap(
    lambda name: st.tuples(st.just(name), with_another(CALLED[name]))
)
named = st.one_of(
    st.just({}),
    st.dictionaries(st.sampled_from(["out", "negative_slope", "self", ""]), anything, max_size=1),
    st.fixed_dictionaries({"out": st.one_of(tensors, st.tuples(tensors, tensors))}),
)


# PyTorch's own, of an empty list of tensors and of ints that Python does not print.
WITHOUT_A_NAME = ("There were no tensor arguments to this function", "Exceeds the limit (4300 ")


def kernel_of(name):
    return "".join(map(str.capitalize, name.split("_")))


@inputs.examples(400)
@given(call=calls, named=named)
def test_call_with_anything(pytorch, call, named):
    name, arguments = call
    outcome = pytorch.run("call_in_pytorch", str(LIBRARY), name, arguments, named)
    if outcome.error:
        kinds = ("TypeError", "RuntimeError", "ValueError", "IndexError", "NotImplementedError")
        assert outcome.error in [f"builtins.{kind}" for kind in kinds], outcome
        is_own = outcome.text.startswith((f"{name}: expected ", f"{kernel_of(name)}: "))
        is_pytorchs = f"bridge_test::{name}" in outcome.text
        assert is_own or is_pytorchs or outcome.text.startswith(WITHOUT_A_NAME), outcome


@inputs.examples(100)
@given(x=inputs.tensors_of(["float32", "float64"]), slope=st.floats(width=32))
def test_leaky_relu_is_that_of_numpy(pytorch, x, slope):
    arguments = (Array("torch", x.values), slope)
    outcome = pytorch.run("call_in_pytorch", str(LIBRARY), "leaky_relu", arguments, {})
    ((shape, dtype, values),) = outcome.value
    with np.errstate(all="ignore"):
        expected = np.where(x.values > 0, x.values, x.values * x.values.dtype.type(slope))
    assert (shape, dtype) == (expected.shape, f"torch.{expected.dtype}")
    np.testing.assert_array_equal(np.array(values, expected.dtype).reshape(shape), expected)

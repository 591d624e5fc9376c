"""Operators of operator(): names, attributes and calls."""

import os

import inputs
import numpy as np
from host import BUILD
from hypothesis import given
from hypothesis import strategies as st
from outcomes import KERNEL, assert_message

os.environ["ATEN_BRIDGE_OPERATORS"] = str(BUILD / "plugin/operators/aten_bridge_operators.so")

# The last is an AttributeError.
DOCUMENTED = {*KERNEL, "aten_bridge._operators.UnknownOperator"}

# What they need to be made, and what else they take.
NEEDED = {
    "aten::leaky_relu": {},
    "aten::topk": {"k": 1},
    "aten::gelu": {},
    "aten::sum": {},
    "aten::cat": {},
    "aten::index": {},
    "aten::add": {},
    "aten::where": {},
    "aten::nonzero": {},
    "aten::lstm.input": {
        **{"hx": 2, "has_biases": True, "num_layers": 1, "dropout": 0.0, "train": False},
        **{"bidirectional": False, "batch_first": False},
    },
}
TAKEN = ["negative_slope", "k", "dim", "largest", "approximate", "keepdim", "dtype", "alpha", "hx"]


def made(worker, name, **options):
    outcome = worker.run("make_by_name", name, options)
    assert_message(outcome, f"{name}: ", f"{name}.", documented=DOCUMENTED)  # or of one overload
    return outcome


def changed(text):
    """A text with a letter changed, left out or added."""
    places = st.integers(0, len(text) - 1)
    letters = st.one_of(st.sampled_from("abz_:. \0"), st.characters(exclude_categories=()))
    return st.builds(
        lambda place, letter, length: text[:place] + letter + text[place + length :],
        places,
        st.one_of(st.just(""), letters),
        st.integers(0, 1),
    )


@inputs.examples(300)
@given(
    name=st.one_of(
        inputs.values,
        inputs.texts,
        inputs.texts.map("aten::{}".format),
        st.sampled_from([*NEEDED]).flatmap(changed),
    )
)
def test_name(worker, name):
    outcome = worker.run("make_by_name", name, {})
    assert outcome.error in ("", *DOCUMENTED), outcome
    assert not outcome.error or "expected " in outcome.text, outcome
    worker.run("forget")


@inputs.examples(400)
@given(
    name=st.sampled_from([*NEEDED]),
    attributes=st.dictionaries(
        st.one_of(st.sampled_from(TAKEN), inputs.texts).filter(
            lambda name: name not in ("grad", "out_shape", "out_dtype")
        ),
        inputs.values,
        min_size=1,
        max_size=2,
    ),
)
def test_attributes_of_any_name_and_type(worker, name, attributes):
    made(worker, name, **{**NEEDED[name], **attributes})
    worker.run("forget")


@inputs.examples(400)
@given(name=st.sampled_from([*NEEDED]), arguments=inputs.arguments)
def test_call_with_anything(worker, name, arguments):
    number = made(worker, name, **NEEDED[name]).value
    outcome = worker.run("call", number, arguments)
    if outcome.error == "builtins.RuntimeError":  # PyTorch's own, found in the call
        assert f"Error message is {name}" in outcome.text, outcome
    else:
        assert_message(outcome, name, documented=DOCUMENTED)
    worker.run("forget")


@inputs.examples(100)
@given(
    x=inputs.tensors_of(["float32", "float64"]), slope=st.floats(-1e3, 1e3, allow_subnormal=False)
)
def test_leaky_relu_is_that_of_numpy(worker, x, slope):
    number = made(worker, "aten::leaky_relu", negative_slope=slope).value
    *_, result = worker.run("call", number, (x,)).value
    with np.errstate(all="ignore"):
        expected = np.where(x.values > 0, x.values, x.values * x.values.dtype.type(slope))
    np.testing.assert_array_equal(result, expected, strict=True)
    worker.run("forget")

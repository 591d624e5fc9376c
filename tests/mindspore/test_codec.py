"""Attributes of operators by name as texts, and what an operator's kernel computes."""

import copy
import pickle
from fractions import Fraction

import numpy as np
import pytest
import torch

from aten_bridge._codec import AttributeType, Strings, attribute_type, operator_text
from aten_bridge._function import CALL, PADDED, SIZES


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "b1"),
        (-3, "i-3"),
        (np.int8(7), "i7"),
        (1.0, "f4607182418800017408"),
        (Fraction(1, 2), "f4602678819172646912"),
        ("text", "stext"),
        (torch.float8_e5m2, "sfloat8e5m2"),
        ([True, False], "B1,0"),
        ((2, 3), "I2,3"),
        ([], "I"),
        ([0.0, 1], "F0,4607182418800017408"),
        (["ab", ""], "S2:ab0:"),
        (["ä"], "S2:ä"),
    ],
)
def test_each_type_is_a_letter_and_its_value(value, text):
    assert operator_text(value) == text


@pytest.mark.parametrize(
    "value", [2**63, "a\0", "\udcff", [True, 1], ["a", 1], [[1]], [None], None, {}, 0.5j]
)
def test_what_is_no_attribute_has_no_text(value):
    assert operator_text(value) is None


def test_an_empty_list_is_of_what_the_kernel_expects():
    assert attribute_type([]) is AttributeType.INTS
    assert attribute_type([], AttributeType.FLOATS) is AttributeType.FLOATS
    assert attribute_type([], AttributeType.INT_LISTS) is AttributeType.INT_LISTS
    assert attribute_type([[], [1.0]], AttributeType.INT_LISTS) is AttributeType.FLOAT_LISTS


def test_a_copy_of_strings_has_the_same():
    strings = Strings(["ab", "é"])
    for made in (copy.copy(strings), copy.deepcopy(strings), pickle.loads(pickle.dumps(strings))):
        assert type(made) is Strings
        assert (str.__str__(made), made.given()) == ("2:ab2:é", ["ab", "é"])


def test_tasks_are_those_of_the_library():
    assert [one.text() for one in (CALL, SIZES, PADDED)] == ["0", "sizes", "padded"]
    first = CALL.gradient(3)
    assert first.text() == "1/3"
    assert first.gradient(4).text() == "2/3"  # the operator's inputs, whatever its own
    assert SIZES.gradient(1) is PADDED.gradient(1) is None

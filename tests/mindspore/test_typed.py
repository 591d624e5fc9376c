"""Attributes and numbers: what a kernel gets of what Python gives."""

import copy
import functools
import inspect
import threading
from fractions import Fraction
from pathlib import Path

import mindspore as ms
import numpy as np
import pytest
import torch
from host import BUILD, MINDSPORE, Net, assert_same, bridge_error, custom, error_text
from mindspore import nn
from modes import GRAPHS_IN_FULL

from aten_bridge.mindspore import _operator, kernel, operator
from aten_bridge.mindspore._gradient import bprop_maker

both_modes = pytest.mark.usefixtures("mode")

X = ms.Tensor([1, -2, 3], ms.float32)
NESTED = functools.reduce(lambda inner, _: [inner], range(5000), [])


class NoText:
    __hash__ = None

    def __repr__(self):
        raise ArithmeticError


def typed(name, **options):
    return kernel(f"{MINDSPORE}:{name}", **options)


def ints(*values):
    return np.array(values, np.int64)


def reals(*values):
    return np.array(values, np.float64)


# ===--- values of attributes ---===

# The kernel, the attribute's value, and the kernel's output: what it got.
CARRIED = [
    ("EchoBool", True, ints(1)),
    ("EchoBool", False, ints(0)),
    ("EchoInt", 0, ints(0)),
    ("EchoInt", 2**62, ints(2**62)),
    ("EchoInt", 2**63 - 1, ints(2**63 - 1)),
    ("EchoInt", -(2**63), ints(-(2**63))),
    ("EchoInt", np.int64(7), ints(7)),
    ("EchoFloat", 0.01, reals(0.01)),  # on the way, a float32 as in MindSpore
    ("EchoFloat", 123456.75, reals(123456.75)),
    ("EchoFloat", float("-inf"), reals(-np.inf)),
    ("EchoFloat", np.float64(0.3), reals(0.3)),
    ("EchoFloat", np.float32(0.1), reals(0.1)),
    ("EchoString", "", np.array([], np.uint8)),
    ("EchoString", "größe ✓", np.frombuffer("größe ✓".encode(), np.uint8)),
    ("EchoString", 1000 * "a", np.full(1000, ord("a"), np.uint8)),
    ("EchoInts", [], ints()),
    ("EchoInts", (2**62, -1), ints(2**62, -1)),
    ("EchoFloats", [], reals()),
    ("EchoFloats", [0.1, 2.0], reals(0.1, 2.0)),
    ("EchoIntLists", [], ints(-1)),
    ("EchoIntLists", [[]], ints(0, -1)),
    ("EchoIntLists", [[1, 2], [], (3,)], ints(2, 0, 1, -1, 1, 2, 3)),
    ("EchoFloatLists", [], reals(-1)),
    ("EchoFloatLists", [[]], reals(0, -1)),
    ("EchoFloatLists", [[], [0.1, 0.5]], reals(0, 2, -1, 0.1, 0.5)),
    ("EchoDtype", "float64", reals(1, 1)),
    ("EchoNumber", True, np.array(True)),
    ("EchoNumber", 3, np.array(3)),
    ("EchoNumber", 0.1, np.array(0.1)),
    ("EchoOptional", 5, ints(5)),
]

# What MindSpore alone does not carry.
CONVERTED = [
    ("EchoBool", np.bool_(True), ints(1)),
    ("EchoInt", np.int32(7), ints(7)),
    ("EchoInt", np.array(7), ints(7)),
    ("EchoFloat", np.float16(0.5), reals(0.5)),
    ("EchoInts", np.array([1, 2], np.int32), ints(1, 2)),
    ("EchoFloats", np.array([0.5, 2], np.float32), reals(0.5, 2)),
    ("EchoFloats", np.array([]), reals()),
    ("EchoIntLists", np.array([[1, 2], [3, 4]]), ints(2, 2, -1, 1, 2, 3, 4)),
    ("EchoIntLists", [np.array([1]), [np.int8(2)]], ints(1, 1, -1, 1, 2)),
    ("EchoDtype", np.float64, reals(1, 1)),
    ("EchoDtype", np.dtype("int64"), ints(1, 1)),
    ("EchoDtype", ms.int64, ints(1, 1)),
    ("EchoOptional", None, ints(-1)),
    ("EchoBools", [True, False, np.True_], ints(1, 0, 1)),
    ("EchoBools", np.array([False, True]), ints(0, 1)),
    ("EchoBools", [], ints()),
    ("EchoBools", None, ints(1, 0)),
    (
        "EchoStrings",
        ["ab", "", "1:c", "\u00e4"],
        np.frombuffer(b"ab\0\x001:c\0\xc3\xa4\0", np.uint8),
    ),
    ("EchoStrings", ("a",), np.frombuffer(b"a\0", np.uint8)),
    ("EchoStrings", [], np.array([], np.uint8)),
    ("EchoStrings", None, np.frombuffer(b"one\0two\0", np.uint8)),
]


@both_modes
@pytest.mark.parametrize(("name", "value", "expected"), CARRIED + CONVERTED)
def test_attribute_arrives_exactly(name, value, expected):
    assert_same(Net(typed(name, value=value))(), expected)


@both_modes
@pytest.mark.parametrize(("name", "value", "expected"), CARRIED)
def test_attribute_of_a_plain_custom_arrives_exactly(name, value, expected):
    dtype = ms.Tensor(expected).dtype
    operator = custom(name, MINDSPORE, out_shape=expected.shape, out_dtype=dtype)
    operator.add_prim_attr("value", value)
    result = Net(operator)()
    # Graph mode makes a Python number of a 0-dim result where out_dtype is a dtype.
    assert_same(result if expected.shape else ms.Tensor(result, dtype), expected)


@both_modes
def test_attribute_that_is_not_set_has_its_default():
    x = ms.Tensor([-2], ms.float64)
    assert_same(Net(typed("LeakyRelu"))(x), reals(-0.02))
    assert_same(Net(typed("LeakyRelu", negative_slope=None))(x), reals(-0.02))
    assert_same(Net(custom("LeakyRelu", MINDSPORE))(x), reals(-0.02))


@both_modes
def test_attribute_set_after_the_operator_was_made():
    operator = typed("LeakyRelu", negative_slope=0.5).add_prim_attr("negative_slope", 0.25)
    assert operator.negative_slope == 0.25
    assert_same(Net(operator)(X), np.array([1, -0.5, 3], np.float32))
    operator.add_prim_attr("negative_slope", None)
    assert_same(Net(operator)(X), np.array([1, -0.02, 3], np.float32))


# ===--- errors of attributes ---===


@GRAPHS_IN_FULL
def test_wrong_attributes_of_a_plain_custom_are_reported_together(mode):
    operator = custom("ScaleAndShift", MINDSPORE)
    operator.add_prim_attr("scale", 1)
    assert bridge_error(lambda: Net(operator)(X).asnumpy(), MINDSPORE) == (
        "ScaleAndShift: attribute 'scale': expected a float, such as 1.0, got the int 1\n"
        "ScaleAndShift: attribute 'shift': expected an int, got nothing; set it where the operator "
        'is made, as in add_prim_attr("shift", ...)'
    )


def test_wrong_attributes_are_reported_together_when_the_operator_is_made():
    assert error_text(TypeError, lambda: typed("ScaleAndShift", scale=1, schift=2)) == (
        "ScaleAndShift: attribute 'scale': expected a float, such as 1.0, got the int 1\n"
        "ScaleAndShift: attribute 'shift': expected an int, got nothing; give it where the "
        f"operator is made, as in kernel('{MINDSPORE}:ScaleAndShift', shift=...)\n"
        "ScaleAndShift: attribute 'schift': expected one of 'scale', 'shift', got an unknown name; "
        "did you mean 'shift'?"
    )


@pytest.mark.parametrize(
    "value", [1, [True, False], ["a"], 1j, object(), [1, 2.0], "a\udcff", 2**70, None]
)
def test_a_wrong_name_is_told_whatever_the_value_is(value):
    assert error_text(TypeError, lambda: typed("LeakyRelu", negative_slop=value)) == (
        "LeakyRelu: attribute 'negative_slop': expected one of 'negative_slope', got an unknown "
        "name; did you mean 'negative_slope'?"
    )


def test_attribute_of_a_kernel_that_has_none():
    assert error_text(TypeError, lambda: typed("Total", axis=None)) == (
        "Total: attribute 'axis': expected no attributes, got an unknown name"
    )


ANY = (
    "a bool, an int, a float, a str, a dtype, or a list of ints or floats or of lists of these, got"
)
LIST = "a list of ints, of floats, or of lists of these, got"
FLOAT32 = "a float that a float32 can hold, as which MindSpore carries it, got"


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("EchoBool", 1, "a bool, got the int 1"),
        ("EchoInt", True, "an int, got the bool True"),
        ("EchoInt", 1.0, "an int, got the float 1"),
        ("EchoFloat", 1, "a float, such as 1.0, got the int 1"),
        ("EchoFloat", "1", 'a float, such as 1.0, got the str "1"'),
        ("EchoString", 1, "a str, got the int 1"),
        ("EchoInts", 1, "a list of ints, got the int 1"),
        ("EchoInts", [1.5], "a list of ints, got the list of floats [1.5]"),
        ("EchoFloats", [1, 2], "a list of floats, such as [1.0, 2.0], got the list of ints [1, 2]"),
        ("EchoIntLists", [1], "a list of lists of ints, got the list of ints [1]"),
        (
            "EchoDtype",
            "float31",
            'the name of a dtype, such as "float32", got the str "float31"',
        ),
        ("EchoNumber", "x", 'a number, got the str "x"'),
        ("EchoOptional", 0.5, "an int, got the float 0.5"),
        ("EchoInt", 2**63, "an int from -2^63 to 2^63 - 1, got 9223372036854775808"),
        ("EchoInts", [2**63], "an int from -2^63 to 2^63 - 1, got 9223372036854775808"),
        (
            "EchoFloat",
            1e300,
            "a float that a float32 can hold, as which MindSpore carries it, got 1e+300",
        ),
        (
            "EchoFloats",
            [1e-300],
            "a float that a float32 can hold, as which MindSpore carries it, got 1e-300",
        ),
        ("EchoFloats", [1, 2.5], "ints or floats, got both in [1, 2.5]; write 1.0 for 1"),
        (
            "EchoFloatLists",
            [[1], [2.5]],
            "ints or floats, got both in [[1], [2.5]]; write 1.0 for 1",
        ),
        ("EchoBools", [1.5], "a list of bools, got [1.5]"),
        ("EchoBools", [True, 2], "a list of bools, got [True, 2]"),
        ("EchoBools", [1, 0], "a list of bools, got [1, 0]"),
        ("EchoStrings", "2:ab", 'a list of strs, got the str "2:ab"'),
        ("EchoStrings", "", 'a list of strs, got the str ""'),
        ("EchoBools", True, "a list of bools, got the bool True"),
        ("EchoStrings", ["a", 1], "a list of strs, got ['a', 1]"),
        ("EchoStrings", "abc", 'a list of strs, got the str "abc"'),
        ("EchoInts", [True], f"{LIST} [True]"),
        ("EchoInts", ["a"], f"{LIST} ['a']"),
        ("EchoIntLists", [[1], 2], f"{LIST} [[1], 2]"),
        ("EchoIntLists", [[[1]]], f"{LIST} [[[1]]]"),
        ("EchoInt", 1j, f"{ANY} 1j of type complex"),
        ("EchoInts", range(2), f"{ANY} range(0, 2) of type range"),
        ("EchoDtype", float, f"{ANY} <class 'float'> of type type"),
        ("EchoString", "a\udcff", "a str in UTF-8, got 'a\\udcff'"),
        ("EchoStrings", ["a", "\ud800"], "a str in UTF-8, got '\\ud800'"),
        ("EchoInt", 10**5000, "an int from -2^63 to 2^63 - 1, got an int of 16610 bits"),
        ("EchoFloat", Fraction(10**50), f"{FLOAT32} Fraction({10**50}, 1)"),
        ("EchoFloat", Fraction(10**400), f"{FLOAT32} Fraction({10**400}, 1)"),
        ("EchoFloat", Fraction(1, 10**400), f"{FLOAT32} Fraction(1, {10**400})"),
        ("EchoFloat", np.longdouble(2) ** 2000, f"{FLOAT32} {np.longdouble(2) ** 2000!r}"),
        ("EchoInts", NESTED, f"{LIST} {1000 * '['}…"),
        ("EchoInts", ["ab" * 1000], f"{LIST} ['{'ab' * 499}…"),
        ("EchoInt", NoText(), f"{ANY} a value of type NoText of type NoText"),
    ],
    ids=lambda value: None if isinstance(value, str) else type(value).__name__,
)
def test_attribute_of_another_type(name, value, expected):
    assert error_text(TypeError, lambda: typed(name, value=value)) == (
        f"{name}: attribute 'value': expected {expected}"
    )


def test_lists_that_mindspore_does_not_carry_are_set_later_too():
    operator = typed("EchoStrings", value=["a"])
    operator.add_prim_attr("value", ["b", "cd"])
    assert operator().asnumpy().tobytes() == b"b\0cd\0"
    flags = typed("EchoBools", value=[True]).add_prim_attr("value", [False, True])
    np.testing.assert_array_equal(flags().asnumpy(), [0, 1])
    assert "value=['b', 'cd']" in repr(operator)
    assert "value=[False, True]" in repr(flags)


def test_attribute_set_later_is_checked_too():
    operator = typed("LeakyRelu", negative_slope=0.5)
    assert error_text(TypeError, lambda: operator.add_prim_attr("negative_slope", 1)) == (
        "LeakyRelu: attribute 'negative_slope': expected a float, such as 1.0, got the int 1"
    )
    assert operator.negative_slope == 0.5


OWN = (
    "expected a name of the kernel's own, got one that MindSpore or kernel() uses itself; leave it "
    "as it is"
)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (3, "expected the name of an attribute as a str, got 3"),
        ([1], "expected the name of an attribute as a str, got [1]"),
        ("\udcff", "attribute '\\udcff': expected a name in UTF-8; rename it"),
        ("func_type", f"attribute 'func_type': {OWN}"),
        ("aten_bridge_inputs", f"attribute 'aten_bridge_inputs': {OWN}"),
    ],
)
def test_name_of_an_attribute_that_cannot_be_set_later(cpu, name, expected):
    operator = typed("LeakyRelu")
    assert (
        error_text(TypeError, lambda: operator.add_prim_attr(name, 1)) == f"LeakyRelu: {expected}"
    )


def test_an_attribute_is_not_assigned(cpu):
    operator = typed("LeakyRelu", negative_slope=0.5)
    with pytest.raises(AttributeError) as error:
        operator.negative_slope = 0.25
    assert str(error.value) == (
        "LeakyRelu: attribute 'negative_slope': expected add_prim_attr('negative_slope', ...), got "
        "an assignment, of which the kernel learns nothing"
    )


@pytest.mark.parametrize("mode", ["pynative"], indirect=True)
def test_attribute_of_mindspores_is_no_attribute_of_the_python_object(mode):
    # MindSpore writes to __dict__, and so to what the operator consists of.
    operator = typed("LeakyRelu", negative_slope=0.5).add_prim_attr("_function", 3)
    assert_same(operator(X), np.array([1, -1, 3], np.float32))
    assert_same(copy.deepcopy(operator)(X), np.array([1, -1, 3], np.float32))


@both_modes
def test_attribute_that_mindspore_refuses_is_not_in_copies():
    operator = typed("LeakyRelu", negative_slope=0.5)
    assert error_text(RuntimeError, lambda: operator.add_prim_attr("further", 2**64)).startswith(
        "Unable to cast Python instance of type <class 'int'> to C++ type 'long'"
    )
    assert_same(Net(copy.deepcopy(operator))(X), np.array([1, -1, 3], np.float32))


# ===--- numbers among the inputs ---===

TUPLE = "give numbers to kernel() as an attribute, and None as an argument of its own"


class NumberNet(nn.Cell):
    """The numbers are constants of the network."""

    def __init__(self, operator, *numbers):
        super().__init__()
        self.operator = operator
        self.numbers = numbers

    def construct(self, x):
        factor, shift, negate, limit = self.numbers
        return self.operator(x, factor, shift, negate, limit)


@both_modes
@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ((2.0, 3, False, None), [5, -1, 9]),
        ((2.0, 3, True, 0.0), [-5, 0, -9]),  # negated, then at most 0
        ((2, True, 0, 1), [1, -3, 1]),
    ],
)
def test_python_numbers_are_converted(numbers, expected):
    expected = np.array(expected, np.float32)
    assert_same(NumberNet(typed("NumberInputs"), *numbers)(X), expected)
    assert_same(Net(typed("NumberInputs"))(X, *numbers), expected)
    assert_same(Net(custom("NumberInputs", MINDSPORE))(X, *numbers), expected)


@both_modes
@pytest.mark.parametrize("out", [{}, {"out_shape": (3,), "out_dtype": ms.float32}])
def test_tensor_of_one_element_is_a_number(out):
    net = Net(typed("NumberInputs", **out))
    inputs = ms.Tensor([3]), ms.Tensor(False), ms.Tensor(4, ms.float64)
    for factor, expected in ((2.0, [4, -1, 4]), (0.5, [3.5, 2, 4])):
        assert_same(net(X, ms.Tensor(factor), *inputs), np.array(expected, np.float32))


@both_modes
def test_shape_that_a_number_decides():
    net = Net(typed("Repeat"))
    for times in (2, 3, 1):
        assert_same(net(X, times), np.tile(np.array([1, -2, 3], np.float32), times))


@both_modes
def test_tensor_that_decides_a_shape():
    assert error_text(ValueError, lambda: Net(typed("Repeat"))(X, ms.Tensor(2))) == (
        "Repeat: expected the numbers on which the shape of the output depends to be known before "
        "the call, got a tensor (inferring from input 0: float32 [3]; input 1: int64 []); pass a "
        "Python number, make it an attribute, or give out_shape and out_dtype"
    )


@pytest.mark.parametrize("mode", ["pynative"], indirect=True)
@pytest.mark.parametrize("out", [{}, {"out_shape": (3,), "out_dtype": ms.float32}])
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (2**63, "an int from -2^63 to 2^63 - 1, got 9223372036854775808"),
        (-(2**63) - 1, "an int from -2^63 to 2^63 - 1, got -9223372036854775809"),
        (np.uint64(2**63), "an int from -2^63 to 2^63 - 1, got 9223372036854775808"),
        (1e300, "a float that a float32 can hold, as which MindSpore carries it, got 1e+300"),
        (1e-300, "a float that a float32 can hold, as which MindSpore carries it, got 1e-300"),
        (10**5000, "an int from -2^63 to 2^63 - 1, got an int of 16610 bits"),
        (Fraction(10**50), f"{FLOAT32} Fraction({10**50}, 1)"),
        ((NESTED,), f"a tuple of one tensor or more, got ((((…),),),); {TUPLE}"),
        ([NoText()], f"a tuple of one tensor or more, got (a value of type NoText,); {TUPLE}"),
    ],
    ids=lambda value: None if isinstance(value, str) else type(value).__name__,
)
def test_number_that_mindspore_does_not_carry(mode, out, value, expected):
    assert error_text(TypeError, lambda: typed("Repeat", **out)(X, value)) == (
        f"Repeat: input 1: expected {expected}"
    )


@pytest.mark.parametrize("mode", ["pynative"], indirect=True)
def test_number_that_is_none_of_pythons(mode):
    counter = typed("Counter")
    assert_same(counter(X), np.zeros(3, np.float32))
    for factor in (Fraction(5, 2), np.longdouble(2.5)):
        result = typed("NumberInputs")(X, factor, np.int8(2), np.True_, None)
        assert_same(result, np.array([-4.5, 3, -9.5], np.float32))
    # An error inside MindSpore would have ended the state of all operators.
    assert_same(counter(X), np.ones(3, np.float32))


@pytest.mark.parametrize("mode", ["graph"], indirect=True)
def test_number_that_mindspore_does_not_carry_in_graph_mode(mode):
    # The bridge is not asked about the int, and gets the float as a float32.
    assert error_text(RuntimeError, lambda: Net(typed("Repeat"))(X, 2**63)).startswith(
        "Unable to cast Python instance of type <class 'int'> to C++ type 'long'"
    )
    assert error_text(ValueError, lambda: Net(typed("Repeat"))(X, 1e300)) == (
        "Repeat: input 1: expected an integer that an int64 can hold, got the float32 inf"
    )


@both_modes
def test_number_that_the_kernel_cannot_have():
    assert error_text(ValueError, lambda: Net(typed("Repeat"))(X, 2.5)) == (
        "Repeat: input 1: expected an integer that an int64 can hold, got the float32 2.5"
    )


# ===--- None and lists ---===


@both_modes
@pytest.mark.parametrize(
    "given", [(1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 0), (0, 1, 1), (1, 0, 1)]
)
def test_none_in_every_position(given):
    inputs = [ms.Tensor([10.0**i], ms.float32) if there else None for i, there in enumerate(given)]
    expected = np.array([sum(10.0**i for i in range(3) if given[i])], np.float32)
    assert_same(Net(typed("SumOfGiven"))(*inputs), expected)
    plain = custom("SumOfGiven", MINDSPORE, out_shape=(1,), out_dtype=ms.float32)
    assert_same(Net(plain)(*inputs), expected)


@both_modes
@pytest.mark.parametrize("count", [0, 1, 3])
def test_list_between_fixed_inputs(count):
    first, last = ms.Tensor([2], ms.float32), ms.Tensor([7, 8], ms.float32)
    tensors = [ms.Tensor([i + 1], ms.float32) for i in range(count)]
    expected = np.array([*range(2, 2 * count + 1, 2), 7, 8], np.float32)
    assert_same(Net(typed("Join"))(first, *tensors, last), expected)
    if tensors:
        assert_same(Net(typed("Join"))(first, tensors, last), expected)
        assert_same(Net(typed("Join"))(first, tuple(tensors), last), expected)
    plain = custom("Join", MINDSPORE, out_shape=(count + 2,), out_dtype=ms.float32)
    assert_same(Net(plain)(first, *tensors, last), expected)


CURE = "give it to kernel() as an attribute"
TUPLE = "give numbers to kernel() as an attribute, and None as an argument of its own"


@both_modes
@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ("text", f"a tensor, None or a number, got 'text'; {CURE}"),
        (ms.float32, f"a tensor, None or a number, got mindspore.float32; {CURE}"),
        ((1, 2), f"a tuple of one tensor or more, got (1, 2); {TUPLE}"),
        ((X, None), f"a tuple of one tensor or more, got (Tensor, None); {TUPLE}"),
        (((X,), X), f"a tuple of one tensor or more, got ((Tensor,), Tensor); {TUPLE}"),
    ],
    ids=["str", "dtype", "numbers", "tensor and None", "nested tuple"],
)
def test_argument_that_no_kernel_can_have(value, fault):
    assert error_text(TypeError, lambda: Net(typed("Join"))(X, value, X)) == (
        f"Join: input 1: expected {fault}"
    )


@both_modes
@pytest.mark.parametrize(
    ("make", "fault"),
    [
        (np.asarray, ", got a NumPy array; give it as mindspore.Tensor(array)"),
        (
            torch.tensor,
            " of MindSpore's, got one of PyTorch's; give it as"
            " mindspore.Tensor(tensor.detach().cpu().numpy())",
        ),
    ],
    ids=["NumPy", "PyTorch"],
)
def test_an_array_of_another_library(make, fault):
    array = make([1.0])
    assert error_text(TypeError, lambda: Net(typed("SumOfGiven"))(X, array, X)) == (
        f"SumOfGiven: input 1: expected a tensor{fault}"
    )
    assert error_text(TypeError, lambda: Net(typed("Join"))(X, (X, array), X)) == (
        f"Join: input 1: element 1 of the tuple: expected a tensor{fault}"
    )


@both_modes
def test_inputs_of_the_wrong_number():
    assert error_text(TypeError, lambda: Net(typed("Repeat"))(X, X, "text")) == (
        "Repeat: expected 2 inputs, got 3\n"
        f"Repeat: input 2: expected a tensor, None or a number, got 'text'; {CURE}"
    )
    assert error_text(TypeError, lambda: Net(typed("Join"))(X)) == (
        "Join: expected at least 2 inputs, got 1"
    )


# ===--- inputs that are left out, or given by name ---===


class First(nn.Cell):
    def __init__(self, operator):
        super().__init__()
        self.operator = operator

    def construct(self, x, y):
        return self.operator(x)


class Third(First):
    def construct(self, x, y):
        return self.operator(x, input2=y)


class AllByName(First):
    def construct(self, x, y):
        return self.operator(x, y, input2=x)


@both_modes
def test_last_optional_inputs_may_be_left_out():
    assert_same(First(typed("SumOfGiven"))(X, X), X)
    norm = operator("aten::layer_norm", normalized_shape=[3])
    assert_same(First(norm)(X, X), Net(norm)(X, None, None))
    total = typed("SumOfGiven", grad="SumOfGivenGrad")
    assert_same(ms.grad(First(total))(X, X), ms.grad(Net(total))(X, None, None))


def test_inputs_by_name(mode):
    assert_same(Third(typed("SumOfGiven"))(X, X), X + X)
    by_name = AllByName(typed("SumOfGiven"))
    if mode == "pynative":
        assert_same(by_name(X, X), X + X + X)
        assert_same(operator("aten::linear")(X, weight=X), operator("aten::linear")(X, X, None))
        assert_same(typed("Join")(X, input2=X, input1=()), X)
        assert_same(typed("Join")(X, (), X), X)
    else:
        text = error_text(TypeError, lambda: by_name(X, X))
        assert text.startswith("SumOfGiven: input 2: expected it by position, got it by name, as ")
        assert text.endswith(
            "; MindSpore's graphs know names only where a last input is left out, and no input is "
            "a list of tensors: give all by position"
        )
        assert error_text(TypeError, lambda: Net(typed("Join"))(X, (), X)) == (
            "Join: input 1: expected a tuple of one tensor or more, since MindSpore runs no graph "
            "with an empty one, got (); call the operator outside of the graph"
        )


def test_inputs_beside_a_list(mode):
    """The list would begin or end elsewhere."""
    join = kernel(f"{BUILD / 'tests/test_pytorch.so'}:Join")
    assert_same(Net(join)(X, (X, X), None), np.concatenate([X.asnumpy()] * 3))
    assert_same(Net(join)(X, X, X, X), np.concatenate([X.asnumpy()] * 4))
    numbers = "2 to 3" if mode == "pynative" else "3"
    assert error_text(TypeError, lambda: Net(join)(X, (X, X), X, X)) == (
        f"Join: expected {numbers} inputs, one of them the list of tensors, got 4"
    )
    for i, inputs in ((0, ((X, X),)), (2, (X, (X, X), (X, X)))):
        assert error_text(TypeError, lambda inputs=inputs: Net(join)(*inputs)) == (
            f"Join: input {i}: expected a tensor, None or a number, got a tuple; give the list of "
            "tensors in its place, as one argument"
        )
    if mode == "pynative":
        assert_same(Net(join)(X, (X, X)), np.concatenate([X.asnumpy()] * 3))
    else:
        assert error_text(TypeError, lambda: Net(join)(X, (X, X))) == (
            "Join: expected 3 inputs, one of them the list of tensors, got 2; give None in a graph "
            "for what is left out"
        )
    assert error_text(TypeError, lambda: Net(typed("Join"))(X, (X, X))) == (
        "Join: expected 3 inputs, one of them the list of tensors, got 2"
    )


def test_an_empty_list(pynative):
    options = {"out_shape": (3,), "out_dtype": ms.float32}
    for join in (
        kernel(f"{BUILD / 'tests/test_pytorch.so'}:Join", grad="JoinGrad"),
        kernel(f"{BUILD / 'tests/test_pytorch.so'}:Join", grad="JoinGrad", **options),
    ):
        for _ in range(2):
            assert_same(join(X, (), None), X)
            assert_same(ms.grad(lambda x, f=join: (f(x, (), None) ** 2).sum())(X), 2 * X)


def test_floats_that_differ_by_little(pynative, monkeypatch):
    """MindSpore takes them for equal where the native caller makes no call."""
    monkeypatch.setattr(_operator, "make_caller", lambda *_: None)
    numbers, slope = typed("NumberInputs"), typed("LeakyRelu", negative_slope=0.0)
    x = ms.Tensor([-1.0], ms.float64)
    for value in (0.0, 1e-30, 2e-30, -0.0, 1e-40):
        expected = -np.float32([value])
        assert_same(numbers(x, value, 0, False, None).astype(ms.float32), expected + 0)
        slope.add_prim_attr("negative_slope", value)
        assert_same(slope(x).astype(ms.float32), expected)


def test_a_tuple_of_several_dtypes(mode):
    """A graph casts them to the dtype of the first, and says nothing."""
    cat, whole = operator("aten::cat"), ms.Tensor(X.asnumpy().astype("int32"))
    expected = np.concatenate([whole.asnumpy(), X.asnumpy()]).astype("float32")
    assert_same(Net(cat)(whole, X), expected)
    if mode == "pynative":
        assert_same(cat((whole, X)), expected)
    else:
        shape = list(X.shape)
        assert error_text(TypeError, lambda: Net(cat)((whole, X))) == (
            "aten::cat: input 0: expected a tuple of tensors of one dtype, since MindSpore's "
            f"graphs cast all of them to that of the first, got (int32 {shape}, float32 {shape}); "
            "give the tensors one by one"
        )


def test_names_that_are_wrong(cpu):
    names = "'input0', 'input1', 'input2'"
    empty = f"expected a tuple of one tensor or more, got (); {TUPLE}"
    for call, text in (
        (lambda: typed("SumOfGiven")(X, (), X), f"SumOfGiven: input 1: {empty}"),
        (
            lambda: typed("Join")(None, (), None),
            f"Join: input 1: {empty}",
        ),
        (
            lambda: typed("SumOfGiven")(X, y=X),
            f"SumOfGiven: expected one of {names} as the name of an input, got 'y'",
        ),
        (
            lambda: typed("Join")(X, input2=X),
            "Join: input 1 'input1': expected a tuple of tensors, got nothing; give one",
        ),
    ):
        assert error_text(TypeError, call) == text


def test_a_tuple_of_any_length():
    class Joined(nn.Cell):
        def construct(self, x, others):
            return self.join(x, others, x)

    net = Joined()
    net.join = typed("Join")
    ms.set_context(mode=ms.GRAPH_MODE)
    try:
        text = error_text(TypeError, lambda: net(X, ms.mutable((X, X), dynamic_len=True)))
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)
    assert text.partition("\n")[0] == (  # MindSpore adds where it was
        "Join: input 1: expected a tuple of a length that is known when the graph is compiled, got "
        "one of any length; leave out mutable()'s dynamic_len"
    )


# ===--- making an operator ---===


def test_making_an_operator_runs_no_body():
    weigh = typed("Weigh", weights=[2.0])  # whose body reads the first tensor of a list
    assert_same(Net(weigh)((X, X)), 2 * X.asnumpy())
    assert error_text(TypeError, lambda: typed("Weigh", weights=[2])) == (
        "Weigh: attribute 'weights': expected a list of floats, such as [1.0, 2.0], got the list "
        "of ints [2]"
    )


def test_what_is_inferred_from_is_said_where_pytorchs_python_part_refuses():
    """`torch` is imported; its meta function of nonzero() has advice that makes shapes wrong."""
    nonzero = kernel(f"{BUILD}/tests/test_typed.so:MetaNonzero")
    text = error_text(ValueError, lambda: nonzero(ms.Tensor([1.0, 0.0])))
    assert text == (
        "MetaNonzero: expected shapes and dtypes to be all that is needed to infer those of the "
        "outputs, got a kernel or meta function that touches a tensor's data (inferring from "
        "input 0: float32 [2]); give the kernel a meta function that does not: "
        "aten_bridge::meta(function)"
    )


def test_the_library_may_be_a_path():
    leaky_relu = kernel(Path(f"{MINDSPORE}:LeakyRelu"), negative_slope=0.5)
    assert_same(leaky_relu(X), np.array([1, -1, 3], np.float32))


def test_threads_do_not_share_the_file_of_a_bprop():
    barrier = threading.Barrier(8)
    makers = {}

    def make(n):
        barrier.wait()
        for m in range(20):
            names = f"a{n}_{m}"
            makers[names] = bprop_maker(f"{names}, ", names, "gradients, ")

    threads = [threading.Thread(target=make, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for names, maker in makers.items():
        assert f"def bprop({names}, out, dout)" in inspect.getsource(maker)

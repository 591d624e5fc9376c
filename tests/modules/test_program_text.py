"""The text of a program: each fault is told with its line."""

import random

import mindspore as ms
import numpy as np
import pytest
import torch
from mindspore import mint

from aten_bridge._introspection import text_function
from aten_bridge._operators import operators_library
from aten_bridge.mindspore._host import HOST
from aten_bridge.mindspore._operator import Kernel
from aten_bridge.program._kernel import program_kernel

SUM_AND_SPLIT = """aten_bridge program 1
symbol n 2 64
guard mod(n, 3) != 1
input %x float32 [n, 6]
input %y float32 [mul(n, 2), 1]
%z = aten::mul.Tensor(%x, 2.5)
(%a, %b) = aten::split.Tensor(%z, floordiv(6, 2), 1)
%sum = aten::sum.dim_IntList(%a, [0, -1], True, dtype=float64)
%values, _ = aten::max.dim(%b, 0)
%both = aten::cat([%x, %z], dim=1)
%scaled = aten::div.Tensor(%y, n)
output %sum float64 [1, 1]
output %values float32 [3]
output %both float32 [n, 12]
output %scaled float32 [mul(2, n), 1]
"""


def kernel_of(text):
    return Kernel(program_kernel(HOST, text))


DRAWS = """aten_bridge program 1
seed %key int64
seed %step int32
%drawn = aten::rand([4])
%normal = aten::randn([4])
output %drawn float32 [4]
output %normal float32 [4]
"""


def test_a_seed_gives_the_random_numbers(mode):
    draw = kernel_of(DRAWS)

    def numbers(key, step):
        drawn, normal = draw(ms.Tensor(key, ms.int64), ms.Tensor(step, ms.int32))
        return *drawn.asnumpy(), *normal.asnumpy()

    torch.manual_seed(11)
    assert numbers(11, 0) == (*torch.rand(4).numpy(), *torch.randn(4).numpy())
    assert numbers(11, [0, 0]) == numbers(11, 0)
    different = {numbers(*seeds) for seeds in [(11, 0), (11, 1), (12, 0), (0, 11), (11, [0, 1])]}
    assert len(different) == 4  # the last is (11, 1): zeros do not count
    with pytest.raises(ValueError, match="AtenProgram: ") as error:
        draw(ms.Tensor(1.0), ms.Tensor(2, ms.int32))
    assert str(error.value).startswith(
        "AtenProgram: %key: expected a seed of int64, got float32 []"
    )


def test_a_program_does_what_its_lines_say(mode):
    x = np.arange(30, dtype=np.float32).reshape(5, 6)
    y = np.arange(10, dtype=np.float32).reshape(10, 1)
    total, values, both, scaled = kernel_of(SUM_AND_SPLIT)(ms.Tensor(x), ms.Tensor(y))
    assert total.dtype == ms.float64
    assert total.asnumpy() == (x * 2.5)[:, :3].sum()
    assert np.array_equal(values.asnumpy(), (x * 2.5)[:, 3:].max(0))
    assert np.array_equal(both.asnumpy(), np.concatenate([x, x * 2.5], 1))
    assert np.array_equal(scaled.asnumpy(), y / 5)


POWERS = """aten_bridge program 1
input %x float32 [2]
%y = aten::mul.Tensor(%x, add(pow(-1, 9223372036854775807), mul(10, pow(-1, 9223372036854775806))))
%z = aten::add.Scalar(%y, add(pow(0, 9223372036854775807), mul(100, pow(1, 9223372036854775807))))
%u = aten::add.Scalar(%z, add(mul(1000, pow(0, 0)), pow(-2, 3)))
output %u float32 [2]
"""


def test_large_powers_of_small_numbers(mode):
    u = kernel_of(POWERS)(ms.Tensor([1.0, 2.0]))
    assert u.asnumpy().tolist() == [1101, 1110]


COMPLEX = """aten_bridge program 1
input %x float32 [2]
%y = aten::mul.Tensor(%x, complex(0.5, -1e-1))
%z = aten::add.Scalar(%y, complex(2, inf))
output %y complex64 [2]
output %z complex64 [2]
"""


def test_complex_numbers(mode):
    y, z = kernel_of(COMPLEX)(ms.Tensor([1.0, 2.0]))
    assert np.array_equal(y.asnumpy(), np.array([0.5 - 0.1j, 1 - 0.2j], np.complex64))
    known = torch.tensor([0.5 - 0.1j, 1 - 0.2j]) + complex(2, np.inf)
    np.testing.assert_array_equal(z.asnumpy(), known.numpy())


@pytest.mark.parametrize(
    ("number", "text"),
    [
        ("complex(1)", "expected ',', got '))'"),
        ("complex(one, 1)", "expected a number, got 'one, 1))'"),
        ("complex(1, %x)", "expected a number, got '%x))'"),
        ("complex(1, 2", "expected ')', got the end of the line"),
    ],
)
def test_a_faulty_complex_number_is_named(number, text):
    with pytest.raises(ValueError, match="AtenProgram: ") as error:
        kernel_of(COMPLEX.replace("complex(2, inf)", number))(ms.Tensor([1.0, 2.0]))
    assert f"line 4 of the program: {text}" in str(error.value)


BRANCHES = """aten_bridge program 1
symbol u 0 -
input %x float32 [3]
input %is bool []
input %also bool []
when %is, %y = aten::mul.Tensor(%x, 2)
when %is, when %also, %exp = aten::exp(%y)
when %is, unless %also, %kept = aten::masked_select(%y, %also)
size u %kept 0
when %is, unless %also, %sum = aten::sum(%kept)
when %is, unless %also, %less = aten::sub.Tensor(%y, %sum)
when %is, %z = choose(%also, %exp, %less)
unless %is, %neg = aten::neg(%x)
%w = choose(%is, %z, %neg)
output %w float32 [3]
"""


@pytest.mark.parametrize(
    ("flags", "expected"),
    [((True, True), np.exp([2, 4, 6])), ((True, False), [2, 4, 6]), ((False, True), [-1, -2, -3])],
)
def test_lines_run_where_their_conditions_hold(mode, flags, expected):
    result = kernel_of(BRANCHES)(ms.Tensor([1.0, 2.0, 3.0]), *map(ms.Tensor, flags))
    assert np.allclose(result.asnumpy(), expected)


def test_a_line_that_reads_what_was_not_computed_fails_in_words(pynative):
    program = kernel_of(BRANCHES.replace("choose(%is, %z, %neg)", "choose(%also, %z, %neg)"))
    x, on, off = ms.Tensor([1.0, 2.0, 3.0]), ms.Tensor(True), ms.Tensor(False)
    assert program(x, off, off).asnumpy().tolist() == [-1, -2, -3]
    with pytest.raises(RuntimeError, match=r"AtenProgram: .*Expected Tensor but got None"):
        program(x, off, on).asnumpy()


def test_a_check_has_no_results(pynative):
    text = (
        'aten_bridge program 1\ninput %x float32 []\n{} = aten::_assert_async.msg(%x, "no\\n0")\n'
        "output %x float32 []\n"
    )
    check = kernel_of(text.format("_"))
    assert check(ms.Tensor(2.0)).asnumpy() == 2
    with pytest.raises(
        RuntimeError, match=r"AtenProgram: no\n0 \(line 3 of the program, aten::_assert"
    ):
        check(ms.Tensor(0.0)).asnumpy()
    for results, count in (("%y", 1), ("_, _", 2)):
        with pytest.raises(ValueError, match="AtenProgram: ") as error:
            kernel_of(text.format(results))
        assert str(error.value) == (
            "AtenProgram: line 3 of the program: expected the 0 results of "
            f"aten::_assert_async.msg, got {count}"
        )


def test_a_line_that_fails_names_its_operator_and_what_that_was_given(pynative):
    look_up = kernel_of(
        "aten_bridge program 1\ninput %table float32 [3, 2]\ninput %other float32 [1]\n"
        "input %places int64 [4]\n%row = aten::embedding(%table, %places)\n"
        "output %row float32 [4, 2]\n"
    )
    given = ms.Tensor(np.ones((3, 2), np.float32)), ms.Tensor([1.0]), ms.Tensor([0, 1, 2, 3])
    with pytest.raises(RuntimeError, match="AtenProgram: ") as error:
        look_up(*given).asnumpy()
    text = str(error.value).splitlines()[0]
    assert text[text.index("AtenProgram: ") :] == (
        "AtenProgram: index out of range in self (line 5 of the program, aten::embedding; "
        "float32 [3, 2]; int64 [4])"
    )


@pytest.mark.parametrize(
    ("line", "other", "text"),
    [
        ("when %is, %y =", "when %is %y =", "line 6 of the program: expected ',', got "
         "'%y = aten::mul.Tensor(%x, 2)'"),
        ("when %is, %y =", "when %was, %y =",
         "line 6 of the program: expected a value of a line before, got '%was'"),
        ("%w = choose(%is, %z, %neg)", "%w = choose(%is, %z)",
         "line 14 of the program: expected one result of choose, and three values: a condition, "
         "the result if it holds and the result if not"),
        ("%w = choose(%is, %z, %neg)", "%w, _ = choose(%is, %z, %neg)",
         "line 14 of the program: expected one result of choose, and three values: a condition, "
         "the result if it holds and the result if not"),
        ("%w = choose(%is, %z, %neg)", "%w = choose(%is, %z, 2)",
         "line 14 of the program: expected one result of choose, and three values: a condition, "
         "the result if it holds and the result if not"),
        ("unless %is, %neg = aten::neg(%x)", "unless %is, %neg = aten::mul.Tensor(%x, u)",
         "line 13 of the program: expected sizes of lines that run wherever it runs, got one of a "
         "line that need not have run"),
        ("%z = choose(%also, %exp, %less)",
         "%z = choose(%also, %exp, %less)\nwhen %is, when %also, %v = aten::mul.Tensor(%y, u)",
         "line 13 of the program: expected sizes of lines that run wherever it runs, got one of a "
         "line that need not have run"),
    ],
)  # fmt: skip
def test_a_faulty_line_of_conditions_is_named(line, other, text):
    with pytest.raises(ValueError, match="AtenProgram: ") as error:
        kernel_of(BRANCHES.replace(line, other))
    assert str(error.value) == f"AtenProgram: {text}"


@pytest.mark.parametrize(
    ("line", "other", "text"),
    [
        ("aten_bridge program 1", "aten_bridge program 2", None),
        ("symbol n 2 64", "symbol n 2", "line 2 of the program: expected an int, or - where there "
         "is no limit, got the end of the line"),
        ("guard mod(n, 3) != 1", "guard mod(n, 3)",
         "line 3 of the program: expected a relation such as ==, got the end of the line"),
        ("guard mod(n, 3) != 1", "guard mod(n, 3) < m",
         "line 3 of the program: expected a symbol or a function, got 'm'"),
        ("input %x float32 [n, 6]", "input %x float33 [n, 6]",
         "line 4 of the program: expected a dtype, got 'float33'"),
        ("input %x float32 [n, 6]", "input %x float32 [m, 6]",
         "line 4 of the program: expected a symbol or a function, got 'm'"),
        ("input %x float32 [n, 6]", "input %x float32 [add(n), floordiv(n)]",
         "line 4 of the program: floordiv: expected 2 arguments, got 1"),
        ("symbol n 2 64", "symbol n 2 64\nseed %key float32",
         "line 3 of the program: expected a seed of integers, got float32"),
        ("%z = aten::mul.Tensor(%x, 2.5)", "%z = aten::mul.Tensor(%w, 2.5)",
         "line 6 of the program: expected a value of a line before, got '%w'"),
        ("%z = aten::mul.Tensor(%x, 2.5)", "%z = aten::mul.Tenso(%x, 2.5)",
         "line 6 of the program: expected an operator of PyTorch's dispatcher, got "
         "aten::mul.Tenso, which is not there; import or load its library, or export the module "
         "with this PyTorch"),
        ("%z = aten::mul.Tensor(%x, 2.5)", "%z = aten::mul.Tensor(%x)",
         "line 6 of the program: expected the argument 'other' of aten::mul.Tensor, got none"),
        ("%z = aten::mul.Tensor(%x, 2.5)", "%z = aten::mul.Tensor(%x, 2.5, 3)",
         "line 6 of the program: expected at most 2 arguments of aten::mul.Tensor, got 3"),
        ("%z = aten::mul.Tensor(%x, 2.5)", '%z = aten::mul.Tensor(%x, "2.5")',
         "line 6 of the program: argument 'other' of aten::mul.Tensor: expected Tensor, got "
         "another"),
        ("%z = aten::mul.Tensor(%x, 2.5)", "%z = aten::mul_.Tensor(%x, 2.5)",
         "line 6 of the program: expected an operator that writes nothing, got aten::mul_.Tensor, "
         "which writes 'self'"),
        ("%z = aten::mul.Tensor(%x, 2.5)", "%x = aten::mul.Tensor(%x, 2.5)",
         "line 6 of the program: expected a new name, got '%x' again"),
        ("%z = aten::mul.Tensor(%x, 2.5)", "%z = aten::mul.Tensor(%x, 2.5) 3",
         "line 6 of the program: expected the end of the line, got '3'"),
        ("%values, _ = aten::max.dim(%b, 0)", "%values = aten::max.dim(%b, 0)",
         "line 9 of the program: expected the 2 results of aten::max.dim, got 1"),
        ("%both = aten::cat([%x, %z], dim=1)", "%both = aten::cat([%x, %z], dims=1)",
         "line 10 of the program: expected arguments of aten::cat by their names, each once, got "
         "one that it does not have"),
        ("%both = aten::cat([%x, %z], dim=1)", "%both = aten::cat(%x, dim=1)",
         "line 10 of the program: expected a list of tensors, got '%x', which is a tensor"),
    ],
)  # fmt: skip
def test_a_faulty_line_is_named(line, other, text):
    if text is None:
        text = (
            "expected a program of version 1, which begins with 'aten_bridge program 1', got "
            "another; export the module with this aten_bridge"
        )
    with pytest.raises(ValueError, match="AtenProgram: ") as error:
        kernel_of(SUM_AND_SPLIT.replace(line, other))
    assert str(error.value) == f"AtenProgram: {text}"


def test_inputs_that_do_not_fit_are_refused_before_anything_runs():
    ms.set_context(mode=ms.PYNATIVE_MODE)
    program = kernel_of(SUM_AND_SPLIT)
    with pytest.raises(ValueError, match="AtenProgram: ") as error:
        program(ms.mint.ones((5, 6)), ms.mint.ones((9, 1)))
    assert str(error.value) == "AtenProgram: %y: expected float32 [10, 1], got float32 [9, 1]"
    with pytest.raises(ValueError, match="AtenProgram: ") as error:
        program(ms.mint.ones(6), ms.mint.ones((2, 1)))
    assert str(error.value) == "AtenProgram: %x: expected float32 [any, 6], got float32 [6]"
    with pytest.raises(ValueError, match="AtenProgram: ") as error:
        program(ms.mint.ones((1, 6)), ms.mint.ones((2, 1)))
    assert str(error.value) == (
        "AtenProgram: n: expected a size from 2 to 64, for which the module was exported, got 1"
    )
    with pytest.raises(ValueError, match="AtenProgram: ") as error:
        program(ms.mint.ones((4, 6)), ms.mint.ones((8, 1)))
    assert str(error.value) == (
        "AtenProgram: expected sizes with mod(n, 3) != 1, for which the module was exported, got "
        "n = 4"
    )


@pytest.mark.parametrize("relation", ["==", "!=", "<=", ">=", "<", ">"])
def test_guards_compare_as_python_does(relation, cpu):
    ms.set_context(mode=ms.PYNATIVE_MODE)
    lines = ["aten_bridge program 1", "symbol n 0 -", f"guard n {relation} truediv(9, 3)"]
    program = kernel_of("\n".join([*lines, "input %x int64 [n]", "output %x int64 [n]"]))
    for size in (2, 3, 4):
        if eval(f"{size} {relation} 3"):
            assert program(ms.mint.ones(size, dtype=ms.int64)).shape == (size,)
        else:
            with pytest.raises(ValueError, match=f"n = {size}"):
                program(ms.mint.ones(size, dtype=ms.int64))


def test_damaged_texts_are_refused_or_run():
    """None of them ends the process."""
    ms.set_context(mode=ms.PYNATIVE_MODE)
    draws = random.Random(7)
    tokens = ["%x", "%y", "[", "]", "(", ")", ",", "n", "-1", "9223372036854775807", "1e400"]
    tokens += ["None", "True", "float32", "mul(", '"', "=", "aten::", " ", "\n", "pow(n, 99)"]
    x, y = ms.mint.ones((5, 6)), ms.mint.ones((10, 1))
    refused = 0
    for _ in range(400):
        text = SUM_AND_SPLIT
        for _ in range(draws.randint(1, 3)):
            begin = draws.randrange(22, len(text))
            end = min(len(text), begin + draws.choice([0, 0, 1, 2, 5]))
            text = text[:begin] + draws.choice(tokens) + text[end:]
        try:
            results = kernel_of(text)(x, y)
            [result.asnumpy() for result in results]
        except (ValueError, TypeError, RuntimeError):
            refused += 1
    assert refused > 300


def test_results_of_other_sizes_than_the_program_says_are_refused():
    text = SUM_AND_SPLIT.replace("output %sum float64 [1, 1]", "output %sum float64 [1]")
    with pytest.raises(RuntimeError) as error:
        kernel_of(text)(mint.ones((5, 6)), mint.ones((10, 1)))[0].asnumpy()
    assert (
        "AtenProgram: %sum: expected float64 [1] as PyTorch said when the module was exported, got "
        "float64 [1, 1]"
    ) in str(error.value)


def test_a_program_without_outputs_is_refused():
    with pytest.raises(ValueError, match="AtenProgram: ") as error:
        kernel_of("aten_bridge program 1\ninput %x float32 [2]\n")
    assert str(error.value) == "AtenProgram: expected a program with outputs, got none"


def test_a_library_from_before_there_were_programs_is_an_older_one():
    library = operators_library()
    with pytest.raises(ImportError, match="expected a library of interface") as error:
        text_function(library, "aten_bridge_no_such_function")
    assert str(error.value) == (
        f"{library.path}: expected a library of interface 8, got an older one; build it again with "
        "the aten_bridge.h that this Python module came with, or use the module that came with the "
        "library's"
    )

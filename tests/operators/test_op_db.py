"""A part of PyTorch's own samples, and the table of operators."""

import os
import subprocess
import sys
from pathlib import Path

import op_db
import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]


def run(*arguments):
    return subprocess.run(
        [sys.executable, *map(str, arguments)], capture_output=True, text=True, check=False
    )


@pytest.mark.full
def test_a_part_of_the_samples():
    done = run(HERE / "op_db.py", "--part", "17/60")
    assert done.returncode == 0, done.stdout
    assert ", 0 faults" in done.stdout, done.stdout


@pytest.mark.full
def test_samples_of_several_dtypes():
    done = run(
        HERE / "op_db.py",
        *("--only", "^(linalg.lu_solve|dot|angle)$", "--dtypes", "complex64,complex128"),
    )
    assert done.returncode == 0, done.stdout
    of_dtypes = done.stdout.splitlines()
    assert [line.partition(":")[0] for line in of_dtypes] == ["complex64", "complex128"]
    for line in of_dtypes:
        assert ": 3 operators of op_db, " in line
        assert line.endswith("; 3 operators right, 0 faults")


@pytest.mark.full
def test_some_calls_of_each_overload_in_graph_mode():
    done = run(
        HERE / "op_db.py",
        *("--only", "^(dot|nonzero|var_mean)$", "--dtypes", "bfloat16", "--graph", "--calls", "2"),
    )
    assert done.returncode == 0, done.stdout
    assert done.stdout == (
        "bfloat16: 4 operators of op_db, 41 samples, 6 overloads of aten: 11 calls, of 9 also the "
        "gradient; 4 operators right, 0 faults\n"
    )


def test_spread_takes_calls_from_all_over_the_list():
    calls = [("", (overload, number)) for number in range(8) for overload in ("a", "b")]
    assert [call for _, call in op_db.spread(calls, 2)] == [("a", 2), ("a", 6), ("b", 2), ("b", 6)]
    assert list(op_db.spread(calls[:3], 2)) == [calls[0], calls[2], calls[1]]


@pytest.mark.full
def test_a_call_that_pytorch_does_not_record_is_compared_without_gradient(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import sys\n"
        f"sys.path.insert(0, {str(HERE)!r})\n"
        "import op_db, torch\n"
        "x = torch.tensor([[1 + 2j, 3], [1j, 2]])\n"
        "call = op_db.reference('', torch.ops.aten.geqrf.default, (x,), {})\n"
        "print(op_db.check_call(call))\n"
    )
    done = run(program)
    assert (done.returncode, done.stdout) == (0, "forward\n"), done.stderr


@pytest.mark.full
def test_a_wrong_gradient_of_complex_numbers_is_found(tmp_path):
    # The same result, whose gradient is conjugated.
    program = tmp_path / "program.py"
    program.write_text(
        "import sys\n"
        f"sys.path.insert(0, {str(HERE)!r})\n"
        "import op_db, torch\n"
        "x = torch.tensor([1 + 2j, 3 - 1j])\n"
        "call = op_db.reference('', torch.ops.aten.sin.default, (x,), {})\n"
        "(gradient, dtype), = call.gradients\n"
        "assert op_db.check_call(call) == 'both'\n"
        "op_db.check_call(call._replace(gradients=[(gradient.conj(), dtype)]))\n"
    )
    done = run(program)
    assert done.returncode == 1
    assert "AssertionError: \nNot equal to tolerance" in done.stderr


@pytest.mark.full
def test_a_wrong_result_is_found(tmp_path):
    # The same program on an operator whose results are another's.
    program = tmp_path / "program.py"
    program.write_text(
        "import sys\n"
        f"sys.path.insert(0, {str(HERE)!r})\n"
        "import op_db, torch\n"
        "import aten_bridge.mindspore as bridge\n"
        "make = bridge.operator\n"
        "bridge.operator = lambda name, **attributes: make('aten::cos', **attributes)\n"
        "op_db.check_call(op_db.reference('', torch.ops.aten.sin.default, (torch.ones(2),), {}))\n"
    )
    done = run(program)
    assert done.returncode == 1
    assert "AssertionError: \nNot equal to tolerance" in done.stderr


def test_the_table_is_that_of_the_library():
    library = os.environ["ATEN_BRIDGE_OPERATORS"]
    done = run(ROOT / "tools/operators_table.py", library)
    assert done.returncode == 0, done.stderr
    assert done.stdout == (ROOT / "docs/operators-table.md").read_text(), (
        "write it again: python tools/operators_table.py <library> docs/operators-table.md"
    )

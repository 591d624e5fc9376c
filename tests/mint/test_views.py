"""Nothing that is right without the library is wrong with it: a part of survey_views.py."""

import argparse
import subprocess
from pathlib import Path

import numpy as np
import pytest
import survey_views as views

PART = "0/150"  # a part of the names, by their hashes: another one with each commit


def commit() -> str:
    """The checkout's, "" where there is none."""
    git = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
    try:
        return subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return ""


@pytest.mark.full
def test_what_is_right_without_the_library_is_right_with_it():
    results = views.ask_all(views.parse(["--part", PART, "--seed", commit(), "--seconds", "150"]))
    assert results["cases"] != []
    assert views.broken(results) == []


def a_case(**more) -> dict:
    case = {"name": "ops.max", "group": "ops", "make": None, "call": "ops.max(x, 1)"}
    return {**case, "results": [], **more}


def array(*numbers):
    return [np.array(numbers, np.float32)]


def test_a_view_that_is_read_as_if_it_were_whole_is_broken():
    keys = {"forward whole": array(1, 2), "forward transposed": array(1, 2)}
    read_wrongly = {**keys, "forward transposed": array(2, 1)}
    of_setting = {"without": keys, "alone": read_wrongly, "install": keys}
    rows = views.verdicts(a_case(), "pynative", of_setting)
    assert views.broken({"rows": rows}) == [
        "ops.max(x, 1), pynative, alone: forward transposed: float32 [2] 2 1, not float32 [2] 1 2"
    ]


def test_what_is_wrong_without_the_library_is_not_broken():
    wrong = {"forward whole": array(1, 2), "forward transposed": array(2, 1)}
    rows = views.verdicts(a_case(), "graph", {"without": wrong, "alone": wrong, "install": wrong})
    assert views.broken({"rows": rows}) == []


def test_an_error_and_the_end_of_the_process_are_broken():
    keys = {"forward whole": array(1), "forward offset": array(1)}
    faults = {"forward whole": "SIGSEGV ends the process", "forward offset": "no kernel"}
    rows = views.verdicts(a_case(), "graph", {"without": keys, "alone": keys, "install": faults})
    assert views.broken({"rows": rows}) == [
        "ops.max(x, 1), graph, install: forward whole, forward offset: "
        "error: SIGSEGV ends the process, not float32 [1] 1"
    ]


def test_what_pytorch_refuses_may_be_refused():
    keys = {"forward whole": array(1), "forward offset": array(1)}
    faults = dict.fromkeys(keys, "supports types: Float16, Float32, BFloat16. But got Int64.")
    crash = dict.fromkeys(keys, "SIGSEGV ends the process")
    of_setting = {"without": keys, "alone": faults, "install": crash}
    for name, call, expected in (
        ("Tensor.std", "ints.std()", "as PyTorch"),
        ("Tensor.std", "x.std()", "wrong"),
        ("Tensor.std", "ints.std(axis=1, ddof=1)", "wrong"),  # whose names differ
        ("ops.std", "ops.std(ints)", "wrong"),
    ):
        rows = views.verdicts(a_case(name=name, call=call), "pynative", of_setting)
        assert [(row["alone"], row["install"]) for row in rows] == [(expected, "wrong")] * 2


def test_a_gradient_of_pytorchs_results_is_not_compared_with_that_of_others():
    of_rows = [np.array([1.0], np.float32)]
    before = {"forward whole": of_rows, "gradient whole whole": of_rows}
    x = views.values()["x"]
    after = {"forward whole": [np.diag(x), x], "gradient whole whole": "The shape should be {4}"}
    case = a_case(name="Tensor.diag", call="x.diag()")
    rows = views.verdicts(case, "pynative", {"without": before, "alone": after})
    assert [row["alone"] for row in rows] == ["differs", "as PyTorch"]


def test_what_comes_out_otherwise_the_next_time_is_not_broken():
    before = {"forward whole": array(1), "forward offset": array(1)}
    answers = iter([before, {**before, "forward offset": array(2)}, *[before] * views.AGAIN])
    server = argparse.Namespace(run=lambda *_: next(answers))
    wrong = dict.fromkeys(before, array(3))
    rows = views.verdicts(a_case(), "graph", {"without": before, "alone": wrong})
    rows[0]["alone"] = "wrong"  # PyTorch has no say
    views.mark_unsteady(rows, server, a_case(), "graph", before)
    assert [views.is_broken(row) for row in rows] == [True, False]


def test_rounding_is_not_broken():
    assert views.same(array(1, 1000), array(1.00001, 1000.01))
    assert not views.same(array(1, 2), array(1, 2.01))
    assert not views.same(array(1), [np.array([1.0])])


def test_views_have_the_values_of_the_whole_tensor():
    values = views.values()
    for name in ("x", "vector", "image", "ids", "mask"):
        for kind in views.KINDS:
            base, text = views.base_and_view(name, values[name], kind)
            mint = argparse.Namespace(permute=np.transpose, broadcast_to=np.broadcast_to)
            view = eval(text, {"mint": mint, name: base})
            np.testing.assert_array_equal(view, views.as_kind(values[name], kind))

"""The target `matrix`, without what it installs: rows that the machine has no Python for."""

import re
import sys
from datetime import date

import pytest
from conftest import SOURCE

sys.path.append(str(SOURCE / "tests/matrix"))
import matrix
import one_wheel

pytestmark = pytest.mark.core
ROW = matrix.Row("Python 3.99", python="3.99", jax="0.12.0.1")


def write_python(path, program):
    path.write_text(f"#!/bin/sh\n{program}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("program", [None, "echo python3.99: command not found >&2; exit 127"])
def test_a_row_without_its_python_is_skipped(tmp_path, monkeypatch, program):
    if program:
        write_python(tmp_path / "python3.99", program)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert matrix.try_row(ROW, tmp_path, 1) == ("skipped", "needs python3.99 with venv on PATH")


def test_a_row_without_a_wheel_is_skipped(tmp_path, monkeypatch):
    # It makes an environment whose interpreter, instead of installing, says what pip says.
    pip = tmp_path / "pip"
    write_python(pip, "echo 'ERROR: No matching distribution found for jax==0.12.0.1'; exit 1")
    make = f'[ "$2" = venv ] && mkdir -p "$3/bin" && cp {pip} "$3/bin/python"; true'
    write_python(tmp_path / "python3.99", make)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(matrix, "NEEDED_BYTES", 0)
    run = matrix.Run(ROW, tmp_path)
    with pytest.raises(matrix.Skipped, match=r"^no jax==0\.12\.0\.1 for Python 3\.99$"):
        run.install("torch", "jax==0.12.0.1")


def test_each_row_is_in_the_table():
    table = (SOURCE / "docs/compatibility.md").read_text().split(matrix.MARKS[0])[1]
    rows = r"^\| ([^|]+) \| [^|]+ \| 20\d\d-\d\d-\d\d \| "
    names = re.findall(rows, table.split(matrix.MARKS[1])[0], re.MULTILINE)
    assert names == [row.name for row in matrix.ROWS]


def test_the_template_is_a_project_for_several_versions(tmp_path):
    one_wheel.write_project(tmp_path / "my_ops", ["2.9", "2.11"])
    text = (tmp_path / "my_ops/pyproject.toml").read_text()
    assert 'requires = ["scikit-build-core>=1.1", "aten-bridge", "pip"]\n' in text
    assert 'dependencies = ["aten-bridge"]\ndynamic = ["dependencies"]\n' in text
    assert 'provider = "aten_bridge.pytorch" # ' in text
    assert 'PYTORCH_VERSIONS = ["2.9", "2.11"]\n' in text
    text = (tmp_path / "my_ops/CMakeLists.txt").read_text()
    assert "HOSTS MINDSPORE PYTORCH JAX INSTALL_DIR" in text


@pytest.mark.parametrize(
    ("result", "line"),
    [
        (("passes", "in JAX"), "| Python 3.99 | Python 3.99, PyTorch 2.11.0, JAX 0.12.0.1 | {} "),
        (("skipped", "needs python3.99"), "| Python 3.99 | what it was before | 2026-01-01 "),
    ],
    ids=["passes", "skipped"],
)
def test_rows_that_do_not_run_keep_their_lines(tmp_path, monkeypatch, result, line):
    begin, end = matrix.MARKS
    page = tmp_path / "page.md"
    others = "| JAX 0.12 | as it was | 2026-01-02 | passes: in JAX |\n"
    head = "| | with | on | result |\n|---|---|---|---|\n"
    before = "| Python 3.99 | what it was before | 2026-01-01 | passes: in JAX |\n"
    page.write_text(f"A page.\n{begin}{head}{others}{before}{end}Its end.\n")
    monkeypatch.setattr(matrix, "ROWS", (matrix.Row("JAX 0.12"), ROW))
    monkeypatch.setattr(matrix, "torch_in_use", lambda: "2.11.0")
    monkeypatch.setattr(matrix, "try_row", lambda row, folder, jobs: result)
    options = [str(tmp_path / "rows"), "--only", "Python.*", "--page", str(page)]
    monkeypatch.setattr(sys, "argv", ["matrix.py", *options])
    assert not matrix.main()
    line = line.format(date.today()) + "| passes: in JAX |\n"
    assert page.read_text() == f"A page.\n{begin}{head}{others}{line}{end}Its end.\n"


def test_the_first_row_of_a_table(tmp_path, monkeypatch):
    monkeypatch.setattr(matrix, "ROWS", (matrix.Row("JAX 0.12"), ROW))
    monkeypatch.setattr(matrix, "torch_in_use", lambda: "2.11.0")
    monkeypatch.setattr(matrix, "try_row", lambda row, folder, jobs: ("fails", "the build fails"))
    monkeypatch.setattr(sys, "argv", ["matrix.py", str(tmp_path), "--only", "Python.*"])
    assert matrix.main()
    begin, end = matrix.MARKS
    assert (tmp_path / "table.md").read_text() == (
        f"{begin}| | with | on | result |\n|---|---|---|---|\n| Python 3.99 | Python 3.99, PyTorch "
        f"2.11.0, JAX 0.12.0.1 | {date.today()} | fails: the build fails |\n{end}"
    )
    (tmp_path / "table.md").write_text("no table")
    with pytest.raises(SystemExit) as error:
        matrix.main()
    text = f"matrix: expected <!-- matrix --> and <!-- /matrix --> in {tmp_path / 'table.md'}"
    assert str(error.value) == text

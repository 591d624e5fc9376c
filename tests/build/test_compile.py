"""The header under both compilers and standards, and what it says of signatures that cannot work."""

import shutil

import pytest
from conftest import CXX, CXX_STANDARD, SOURCE, compile_only

NEWER_STANDARDS = [standard for standard in ("17", "20") if standard >= CXX_STANDARD]


@pytest.mark.parametrize("optimisation", ["-O0", "-O2"])
@pytest.mark.parametrize("standard", NEWER_STANDARDS)
@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_compiles_without_a_warning(compiler, standard, optimisation, tmp_path):
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    done = compile_only(
        compiler,
        SOURCE / "tests/kernels/kernels.cpp",
        *[f"-std=c++{standard}", optimisation, "-fPIC", "-c", "-o", tmp_path / "kernels.o"],
    )
    assert done.returncode == 0, done.stdout
    assert done.stdout == ""


@pytest.mark.parametrize("source", sorted((SOURCE / "tests/compile_fail").glob("*.cpp")), ids=str)
def test_a_signature_that_cannot_work_is_a_sentence(source):
    marker, _, sentence = source.read_text().splitlines()[0].partition(" expect: ")
    assert marker == "//"
    done = compile_only(CXX, source, f"-std=c++{CXX_STANDARD}", "-fsyntax-only")
    assert done.returncode != 0
    assert any(line.rstrip('"').endswith(sentence) for line in done.stdout.splitlines())

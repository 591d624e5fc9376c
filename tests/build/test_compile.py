"""The header under both compilers and standards, and its words for impossible signatures."""

import functools
import re
import shutil
import sys

import pytest
from conftest import CMAKE, COMPILE_FAIL, CXX_STANDARD, SOURCE, compile_only, expected_texts, run

NEWER_STANDARDS = [standard for standard in ("17", "20") if standard >= CXX_STANDARD]
# The build itself compiles with g++; the second compiler's turn with each source is in `full`.
COMPILERS = ["g++", pytest.param("clang++", marks=pytest.mark.full)]


@pytest.mark.full
@pytest.mark.parametrize("standard", NEWER_STANDARDS)
@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_compiles_without_a_warning(compiler, standard, tmp_path):
    """With and without optimisation, alternately; the target `matrix` has all of it."""
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    is_debug = (compiler == "g++") == (standard == CXX_STANDARD)
    optimisation = ["-O0", "-g"] if is_debug else ["-O3", "-DNDEBUG"]
    flags = [f"-std=c++{standard}", *optimisation, "-fPIC", "-c", "-o", tmp_path / "o"]
    for source in (
        "tests/kernels/kernels.cpp",
        "tests/kernels/typed_kernels.cpp",
        "tests/package/swish_test.cpp",
    ):
        done = compile_only(compiler, SOURCE / source, *flags)
        assert done.returncode == 0, done.stdout
        assert done.stdout == ""


# A source for each way to include the header, and how it is compiled.
WAYS = {
    "MindSpore": ("tests/fuzz/kernels.cpp", "-O1", "-c", "-o/dev/null"),
    "PyTorch and JAX": (
        *("tests/kernels/pytorch_kernels.cpp", "-fsyntax-only", "-DATEN_BRIDGE_PYTORCH"),
        *("-DATEN_BRIDGE_JAX", '-DATEN_BRIDGE_NAMESPACE="warnings"'),
    ),
    "a plugin": (
        *("tests/kernels/plugin_kernels.cpp", "-fsyntax-only", "-DATEN_BRIDGE_MINDSPORE_PLUGIN"),
    ),
    "ms_ext.h": (
        *("tests/fuzz/ms_ext_kernels.cpp", "-fsyntax-only", f"-I{SOURCE / 'tests/fuzz/tutorial'}"),
    ),
    "testing.h": ("tests/package/swish_test.cpp", "-fsyntax-only"),
    "what is compiled once": (
        *("cmake/package/aten_bridge.cpp", "-fsyntax-only", "-DATEN_BRIDGE_PYTORCH"),
        *("-DATEN_BRIDGE_JAX", '-DATEN_BRIDGE_NAMESPACE="warnings"', "-DATEN_BRIDGE_COMPILED=12"),
    ),
}


@pytest.mark.parametrize(
    "way",
    [
        way if way == "PyTorch and JAX" else pytest.param(way, marks=pytest.mark.full)
        for way in WAYS
    ],
)
@pytest.mark.parametrize("compiler", COMPILERS)
def test_compiles_with_the_warnings_that_a_project_may_have(compiler, way):
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    source, *flags = WAYS[way]
    warnings = ["-Wpedantic", "-Wconversion", "-Wsign-conversion", "-Wshadow"]
    done = compile_only(compiler, SOURCE / source, f"-std=c++{CXX_STANDARD}", *warnings, *flags)
    assert done.returncode == 0, done.stdout
    assert done.stdout == ""


@pytest.mark.full
def test_compiles_as_debuggers_want_it():
    """With -Og, g++ does not see which function a pointer calls, and inlines none of these."""
    flags = [f"-std=c++{CXX_STANDARD}", "-Og", "-DATEN_BRIDGE_PYTORCH", "-DATEN_BRIDGE_JAX"]
    flags += ['-DATEN_BRIDGE_NAMESPACE="debugged"', "-c", "-o/dev/null"]
    done = compile_only("g++", SOURCE / "examples/leaky_relu/leaky_relu.cpp", *flags)
    assert done.returncode == 0, done.stdout
    assert done.stdout == ""


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_a_source_has_nothing_of_what_it_does_not_use(compiler, tmp_path):
    """Two of seven seconds of a header-only source once were of gradient kernels that it lacked."""
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    (tmp_path / "source.cpp").write_text("#include <aten_bridge.h>\n")
    flags = [f"-std=c++{CXX_STANDARD}", "-O1", "-c", "-o", tmp_path / "source.o"]
    done = compile_only(compiler, tmp_path / "source.cpp", *flags)
    assert done.returncode == 0, done.stdout
    lines = run("nm", "--demangle", "--defined-only", tmp_path / "source.o").stdout.splitlines()
    functions = [line for line in lines if re.search(" [TtWw] .*aten_bridge::", line)]
    assert [line for line in functions if "last_error_text" not in line] == []


@pytest.fixture(scope="module")
def precompiled(tmp_path_factory):
    """The header as a compiler reads it quickly: flags, by the compiler's name."""
    folder = tmp_path_factory.mktemp("precompiled")

    @functools.cache
    def flags_of(compiler):
        (folder / compiler).mkdir()
        header = folder / compiler / "aten_bridge.h.gch"
        flags = [f"-std=c++{CXX_STANDARD}", "-x", "c++-header", "-o", header]
        done = compile_only(compiler, SOURCE / "include/aten_bridge.h", *flags)
        assert done.returncode == 0, done.stdout
        return {
            "g++": [f"-I{header.parent}", "-include", "aten_bridge.h"],
            "clang++": ["-include-pch", header],
        }[compiler]

    return flags_of


# Each takes three seconds: one of five is a test, the others are in `full`, as is clang.
SIGNATURES = [
    pytest.param(source, id=source.stem, marks=[] if i % 5 == 0 else pytest.mark.full)
    for i, source in enumerate(COMPILE_FAIL)
]


@pytest.mark.parametrize("source", SIGNATURES)
@pytest.mark.parametrize("compiler", COMPILERS)
def test_a_signature_that_cannot_work_is_a_sentence(compiler, source, precompiled):
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    sentence, shown = expected_texts(source)
    flags = [f"-std=c++{CXX_STANDARD}", "-fsyntax-only"]
    if "#define" not in source.read_text():  # ahead of the header, of which it changes something
        flags += precompiled(compiler)
    done = compile_only(compiler, source, *flags)
    assert done.returncode != 0
    lines = done.stdout.replace('\\"', '"').splitlines()  # clang quotes the text
    assert any(line.rstrip('"').endswith(sentence) for line in lines)
    assert shown in done.stdout


@pytest.mark.full
@pytest.mark.parametrize("preset", ["asan", "tsan", "fuzz"])
def test_presets_that_the_other_suites_do_not_build_configure(preset, tmp_path):
    run(
        *[CMAKE, "--preset", preset, "-B", tmp_path, "-DATEN_BRIDGE_MAKE_ENVIRONMENT=OFF"],
        f"-DPython3_EXECUTABLE={sys.executable}",
        cwd=SOURCE,
    )

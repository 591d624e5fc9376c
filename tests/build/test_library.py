"""What a kernel library is for the loader: what it needs, what it shows, how it is opened."""

import re

import pytest
from conftest import TORCH, run

LIBRARIES = {
    "examples/leaky_relu/leaky_relu.so": {
        *["LeakyRelu", "LeakyReluInit", "LeakyReluInferShape", "LeakyReluInferType"],
        *["LeakyReluDescribe", "LeakyReluInfer"],
    },
    "tests/test_tutorial.so": {
        *["LeakyRelu", "Transpose", "SquareGrad", "NegateInPlace", "AddFirst", "Conjugate"],
        *["CopySparse", "CopyUndefined", "CopyToNull", "AskForCuda"],
    },
}


@pytest.fixture(params=LIBRARIES)
def library(request, build):
    return build / request.param, LIBRARIES[request.param]


def dynamic_entries(path, tag):
    text = run("readelf", "--dynamic", "--wide", path).stdout
    return re.findall(rf"\({tag}\)\s+(?:[\w ]+: )?\[?(.*?)\]?$", text, flags=re.MULTILINE)


def test_needs_the_cpu_libraries_of_pytorch_and_neither_cuda_nor_python(library):
    needed = set(dynamic_entries(library[0], "NEEDED"))
    assert {"libc10.so", "libtorch_cpu.so"} <= needed
    system = r"lib(c|m|gcc_s|stdc\+\+|gomp|pthread|dl)\.so\.\d+|ld-linux.*"
    others = {name for name in needed if not re.fullmatch(system, name)}
    assert others == {"libc10.so", "libtorch_cpu.so"}


def test_finds_libtorch_by_its_runpath(library):
    assert dynamic_entries(library[0], "RPATH") == []
    (runpath,) = dynamic_entries(library[0], "RUNPATH")
    assert str(TORCH / "lib") in runpath.split(":")


def test_is_bound_when_opened_and_never_unloaded(library):
    assert "BIND_NOW" in " ".join(dynamic_entries(library[0], "FLAGS"))
    assert {"NOW", "NODELETE"} <= set(" ".join(dynamic_entries(library[0], "FLAGS_1")).split())


def test_shows_its_entry_points_only(library):
    path, entry_points = library
    text = run("nm", "--dynamic", "--defined-only", path).stdout
    assert {line.split()[-1] for line in text.splitlines()} == {
        *entry_points,
        "aten_bridge_last_error",
    }


def test_neither_helpers_nor_variables_are_seen_unless_they_are_marked(build):
    text = run("nm", "--dynamic", "--defined-only", build / "tests/test_kernels.so").stdout
    shown = {line.split()[-1] for line in text.splitlines()}
    assert {"Copy", "FromAnotherSource", "MarkedFunction", "aten_bridge_last_error"} <= shown
    assert {name for name in shown if "unmarked" in name or name.startswith("_Z")} == set()


def test_needs_no_symbol_of_python(library):
    text = run("nm", "--dynamic", "--undefined-only", library[0]).stdout
    assert re.findall(r"\b_?Py\w+", text) == []


def test_examples_are_smaller_than_200_kib(build):
    libraries = list((build / "examples").glob("*/*.so"))
    assert len(libraries) > 8
    assert {
        path.name: path.stat().st_size for path in libraries if path.stat().st_size > 200 << 10
    } == {}

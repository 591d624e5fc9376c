"""The command `aten-bridge`: what it prints, and how it ends."""

import os
import pathlib
import re
import sys

import pytest
import torch
from conftest import SOURCE, run

LEAKY_RELU = SOURCE / "examples/leaky_relu/leaky_relu.cpp"
TABLE = SOURCE / "tests/kernels/any_table.h"
PYTHONPATH = {"PYTHONPATH": str(SOURCE / "python")}
OLDEST_SYSTEM = r"  needs (?:glibc|GLIBCXX|CXXABI) .*, or newer\n"
PYTORCH = ".".join(torch.__version__.split(".")[:2])
ABI = "new" if torch.compiled_with_cxx11_abi() else "old"
LIBRARIES = pathlib.Path(torch.__file__).resolve().parent / "lib"


def command(*arguments, status=0, **options):
    done = run(
        *(sys.executable, "-m", "aten_bridge", *arguments), check=False, env=PYTHONPATH, **options
    )
    assert done.returncode == status, done.stdout
    if arguments[:1] == ("check",):  # what the compiler used of the system differs
        return re.sub(OLDEST_SYSTEM, "", done.stdout)
    return done.stdout


def test_build_and_check(tmp_path):
    options = ["-o", "my_ops.so", "--hosts", "mindspore,pytorch"]
    assert command("build", LEAKY_RELU, *options, cwd=tmp_path) == "my_ops.so\n"
    library = tmp_path / "my_ops.so"
    about = (
        f"{library}\n"
        f"  needs libtorch_cpu.so: {LIBRARIES}/libtorch_cpu.so\n"
        f"  needs libc10.so: {LIBRARIES}/libc10.so\n"
        f"  built with aten_bridge 0.1.0, PyTorch {PYTORCH} and the {ABI} C++ ABI\n"
        "  LeakyRelu, on the CPU, in MindSpore, and PyTorch as torch.ops.my_ops.leaky_relu\n"
        "    C functions LeakyRelu, LeakyReluInit, LeakyReluInferShape, LeakyReluInferType\n"
        "    inputs      tensor\n"
        "    attributes  negative_slope: a float, such as 1.0 (has a default)\n"
        "    outputs     1\n"
        "    gradient    none\n"
    )
    assert command("check", library) == about
    (functions,) = re.findall("C functions (.*)", about)
    exported = run("nm", "--dynamic", "--defined-only", library).stdout.split()[2::3]
    own = {name for name in exported if not name.startswith("aten_bridge_")}
    assert {*functions.split(", ")} == own

    # Without PyTorch where it was.
    moved = tmp_path / "moved.so"
    content = library.read_bytes()
    assert content.count(bytes(LIBRARIES)) == 1
    moved.write_bytes(content.replace(bytes(LIBRARIES), b"/" * len(bytes(LIBRARIES))))
    assert command("check", moved, library, status=1) == (
        f"{moved}\n"
        "  needs libtorch_cpu.so, which is not found\n"
        "  needs libc10.so, which is not found\n"
        "  cannot be opened: expected to find libtorch_cpu.so, which the library needs, got no "
        f"such file; link the library with -Wl,-rpath,{LIBRARIES} or with aten_bridge_add_kernel, "
        "which does so\n" + about
    )


def test_a_library_that_is_open_stays_as_it_is(tmp_path):
    from aten_bridge.build.setuptools import KernelLibrary

    place, built = tmp_path / "my_ops.so", tmp_path / "built"
    place.write_text("old")
    built.write_text("new")
    with place.open() as opened:
        KernelLibrary("my_ops", ["my_ops.cpp"]).put([built], place)
        assert (opened.read(), place.read_text()) == ("old", "new")
    assert {*tmp_path.iterdir()} == {place, built}


def test_check_without_pyelftools(tmp_path):
    (tmp_path / "elftools").mkdir()
    (tmp_path / "elftools/__init__.py").write_text("raise ImportError")
    (tmp_path / "c.cpp").write_text('extern "C" int Answer() { return 42; }\n')
    library = tmp_path / "c.so"
    run("c++", "-shared", "-fPIC", tmp_path / "c.cpp", "-o", library)
    path = {"PYTHONPATH": f"{tmp_path}{os.pathsep}{PYTHONPATH['PYTHONPATH']}"}
    done = run(sys.executable, "-m", "aten_bridge", "check", library, check=False, env=path)
    assert done.returncode == 1
    assert done.stdout == (
        f"aten-bridge: {library}: expected the package pyelftools, which reads the names in a "
        "library, got none; pip install pyelftools\n"
    )


def test_check_of_other_libraries(tmp_path):
    (tmp_path / "c.cpp").write_text('extern "C" int Answer() { return 42; }\n')
    library = tmp_path / "c.so"
    run("c++", "-shared", "-fPIC", tmp_path / "c.cpp", "-o", library)
    assert command("check", library) == (
        f"{library}\n"
        "  no kernel that was exported with ATEN_BRIDGE_EXPORT\n"
        "  C functions: 'Answer'\n"
    )
    # A function of an older version alone, as matherr() of libm, which nobody can ask for.
    (tmp_path / "old.cpp").write_text(
        'extern "C" int old() { return 41; }\n__asm__(".symver old, Old@V1");\n'
        'extern "C" int Answer() { return 42; }\n'
    )
    (tmp_path / "versions").write_text("V1 {};\nV2 { global: Answer; local: *; } V1;\n")
    old = tmp_path / "old.so"
    script = f"-Wl,--version-script={tmp_path / 'versions'}"
    run("c++", "-shared", "-fPIC", script, tmp_path / "old.cpp", "-o", old)
    assert command("check", old) == command("check", library).replace(str(library), str(old))
    about = command("check", library)
    nothing = tmp_path / "nothing.so"
    assert command("check", nothing, library, status=1) == (
        f"aten-bridge: {nothing}: expected a kernel library, got no such file; build it, or "
        "correct the path\n" + about
    )
    prints = tmp_path / "prints.so"
    (tmp_path / "prints.cpp").write_text(
        '#include <cstdio>\nextern "C" int Answer() { return 42; }\n'
        'const int printed = std::puts("a banner");\n'
    )
    run("c++", "-shared", "-fPIC", tmp_path / "prints.cpp", "-o", prints)
    assert command("check", prints) == about.replace(str(library), str(prints))
    newer = tmp_path / "newer.so"
    (tmp_path / "newer.cpp").write_text(
        f'#define INTERFACE 9\n#define DESCRIPTION nullptr\n#include "{TABLE}"\n'
    )
    run("c++", "-shared", "-fPIC", tmp_path / "newer.cpp", "-o", newer)
    assert command("check", newer, status=1) == (
        f"{newer}\n"
        "  cannot be called: expected a library of interface 8, got 9 of aten_bridge 0.0.9; build "
        "it again with the aten_bridge.h that this Python module came with, or use the module that "
        "came with the library's\n"
    )
    (tmp_path / "ends.cpp").write_text("const int ends = (__builtin_trap(), 1);\n")
    ends = tmp_path / "ends.so"
    run("c++", "-shared", "-fPIC", tmp_path / "ends.cpp", "-o", ends)
    assert command("check", ends, status=1) == (
        f"{ends}\n  cannot be opened: the process that opened it was ended by signal 4\n"
    )


KERNEL = (
    '{"name": "Op", "hosts": ["MINDSPORE", "JAX"], "entry_points": ["Op", "OpInit", "OpJax"], '
    '"device": "cpu", "inputs": [], "outputs": 1, "meta": true, "gradient": false, '
    '"side_effect": false, "attributes": []}'
)


def described(folder, fault, kernel=KERNEL):
    """A library with a table, and what the command tells of it."""
    description = '{"pytorch": "2.99", "cxx11_abi": false, '
    description += f'"fault": "{fault}", "kernels": [{kernel}]}}'
    source = f'#define DESCRIPTION R"({description})"\n#include "{TABLE}"\n'
    (folder / "table.cpp").write_text(source + 'extern "C" int Op() { return 0; }\n')
    library = folder / "table.so"
    run("c++", "-shared", "-fPIC", folder / "table.cpp", "-o", library)
    return f"{library}\n", command("check", library, status=int(fault != ""))


BUILT_WITH = "  built with aten_bridge 0.0.9, PyTorch 2.99 and the old C++ ABI\n"


def test_a_library_of_another_version_and_this_interface_can_be_called(tmp_path):
    """What has to fit is the interface; the version is for people."""
    library, shown = described(tmp_path, fault="")
    assert shown == library + BUILT_WITH + (
        "  Op, on the CPU, in MindSpore, and JAX\n"
        "    C functions Op, OpInit, OpJax\n"
        "    inputs      none\n"
        "    outputs     1\n"
        "    gradient    none\n"
    )


@pytest.mark.parametrize(
    ("host", "shown_host"),
    [
        ("MINDSPORE_PLUGIN", "MindSpore, as its own operator Op"),
        ("OTHER", "a host that its source defines"),
        ("JAX", "JAX"),
        ("PYTORCH", "no host"),  # an operator that PyTorch has refused
    ],
)
def test_check_tells_the_host_of_a_kernel(tmp_path, host, shown_host):
    kernel = KERNEL.replace('"MINDSPORE", "JAX"', f'"{host}"')
    _, shown = described(tmp_path, fault="", kernel=kernel)
    assert f"  Op, on the CPU, in {shown_host}\n" in shown
    assert ("\n    outputs     1\n" in shown) == (host in ("JAX", "PYTORCH"))


def test_check_tells_which_results_have_sizes_that_depend_on_values(tmp_path):
    kernel = KERNEL.replace('"meta": true', '"meta": false, "data_dependent": true')
    _, shown = described(tmp_path, fault="", kernel=kernel)
    assert "\n    outputs     1, whose sizes depend on values\n" in shown


def test_what_a_library_was_built_with_is_told_where_it_cannot_be_called(tmp_path):
    library, shown = described(tmp_path, fault="expected PyTorch 2.99.x")
    assert shown == library + BUILT_WITH + "  cannot be called: Op: expected PyTorch 2.99.x\n"


def test_check_of_a_library_of_another_abi_than_pytorch(tmp_path):
    source = tmp_path / "copy.cpp"
    source.write_text(
        "#include <aten_bridge.h>\n"
        "ATEN_BRIDGE_EXPORT(Copy, [](const at::Tensor& x, at::Tensor& y) { y.copy_(x); });\n"
    )
    library = tmp_path / "copy.so"
    include = ["-I", SOURCE / "include", "-isystem", LIBRARIES.parent / "include"]
    run(
        *("c++", "-std=c++17", "-shared", "-fPIC", *include),
        f"-D_GLIBCXX_USE_CXX11_ABI={int(ABI == 'old')}",
        *(source, "-o", library, f"-L{LIBRARIES}", f"-Wl,-rpath,{LIBRARIES}"),
        *("-lc10", "-ltorch_cpu"),
    )
    shown = command("check", library, status=1)
    assert re.sub(r"_ZN3c10\w+", "(a function of c10)", shown) == (
        f"{library}\n"
        f"  needs libc10.so: {LIBRARIES}/libc10.so\n"
        f"  needs libtorch_cpu.so: {LIBRARIES}/libtorch_cpu.so\n"
        "  cannot be opened: expected the symbol (a function of c10), which the library needs, got "
        "no library that has it; build with the PyTorch that the program imports, and link all "
        "libraries that the kernel uses\n"
    )


def test_check_tells_the_oldest_system(tmp_path):
    """As readelf has it."""
    (tmp_path / "text.cpp").write_text(
        "#include <cstdio>\n#include <stdexcept>\n"
        'extern "C" void Raise() { std::puts(""); throw std::runtime_error("x"); }\n'
    )
    library = tmp_path / "text.so"
    run("c++", "-shared", "-fPIC", tmp_path / "text.cpp", "-o", library)
    shown = run(sys.executable, "-m", "aten_bridge", "check", library, env=PYTHONPATH).stdout
    needed = run("readelf", "--wide", "--version-info", library).stdout
    newest = [
        max(
            re.findall(rf"Name: {name}_([0-9.]+)", needed),
            key=lambda one: [*map(int, one.split("."))],
        )
        for name in ("GLIBC", "GLIBCXX", "CXXABI")
    ]
    assert re.findall(OLDEST_SYSTEM, shown) == [
        "  needs glibc {}, GLIBCXX {} and CXXABI {}, or newer\n".format(*newest)
    ]


def test_warnings_of_a_build_are_lines(tmp_path):
    (tmp_path / "nothing.cpp").write_text("int nothing;\n")
    assert command("build", "nothing.cpp", cwd=tmp_path).splitlines() == [
        "aten-bridge: nothing.so exports no function, so that no host finds a kernel in it. Export "
        "one with ATEN_BRIDGE_EXPORT, or mark a C function of your own with ATEN_BRIDGE_PUBLIC.",
        "nothing.so",
    ]


def test_what_fails_is_a_sentence(tmp_path):
    nothing = tmp_path / "nothing.cpp"
    assert command("build", nothing, status=1) == (
        f"aten-bridge: {nothing}: expected a source, got no such file\n"
    )
    assert command("build", LEAKY_RELU, "-o", "leaky_relu", status=1) == (
        "aten-bridge: leaky_relu: expected a name that ends in .so\n"
    )
    assert command("build", LEAKY_RELU, "-o", "leaky-relu.so", status=1) == (
        "aten-bridge: leaky-relu.so: expected a library's name of letters, digits and underscores, "
        "got 'leaky-relu'; say -o <name>.so\n"
    )
    assert command("build", LEAKY_RELU, "-o", tmp_path / "no/a.so", status=1) == (
        f"aten-bridge: {tmp_path / 'no'}: expected a folder, got none; make it first\n"
    )
    # A file system that no user can write to.
    assert command("new", "my_ops", "/proc/my_ops", status=1) == (
        "aten-bridge: /proc/my_ops: expected a place that can be written to, got the error: No "
        "such file or directory; name another\n"
    )
    for arguments in ((), ("bild",), ("build",)):
        assert command(*arguments, status=2).startswith("usage: aten-bridge ")
    assert command("--help").startswith("usage: aten-bridge ")


@pytest.fixture
def prepare(environment, tmp_path):
    """`prepare(script)`: what the command prints where a script, or nothing, is the compiler."""

    def run_with(script=None, status=0):
        compiler = tmp_path / "compiler"
        if script is not None:
            compiler.write_text(f"#!/bin/sh\n{script}\n")
            compiler.chmod(0o700)
        variables = {"CXX": str(compiler), "ATEN_BRIDGE_CACHE_DIR": str(tmp_path / "cache")}
        words = ("-m", "aten_bridge", "prepare-mindspore")
        done = environment.python(*words, check=False, env=variables)
        assert done.returncode == status, done.stdout
        return done.stdout

    return run_with


def test_prepare_mindspore(environment, prepare, tmp_path):
    """A compiler that copies what the build has: it is asked once, and the module is used."""
    (built,) = (pathlib.Path(os.environ["ATEN_BRIDGE_BUILD_DIR"]) / "plugin/caller").glob("*.so")
    calls = tmp_path / "calls"
    script = f"echo >> {calls}\nwhile [ $1 != -o ]; do shift; done\ncp {built} $2"
    path = prepare(script)
    assert prepare(script) == path
    assert len(calls.read_text()) == 2  # compiled and linked
    found = environment.python(
        "-c",
        "from aten_bridge.mindspore import native_caller\nprint(native_caller().path)",
        env={"ATEN_BRIDGE_CACHE_DIR": str(tmp_path / "cache"), "ATEN_BRIDGE_CALLER": ""},
    )
    assert found.stdout == path
    assert pathlib.Path(path.strip()).parent.parent == tmp_path / "cache/caller"


def test_prepare_mindspore_says_what_failed(prepare, tmp_path):
    assert prepare(status=1) == (
        f"aten-bridge: {tmp_path}/compiler: expected a C++ compiler, got none of this name on "
        "PATH; install g++, or name one with the variable CXX\n"
    )
    shown = prepare("echo warning >&2\necho a.h:1: error: no type >&2\nexit 1", status=1)
    shown = re.sub(r"/\S+(/module\.cpp: expected MindSpore) \S+ ", r"\1 … ", shown)
    assert shown == (
        "aten-bridge: /module.cpp: expected MindSpore … to have the extension interface of "
        "MindSpore 2.8 to 2.10, got from the compiler:\na.h:1: error: no type\nkernels are "
        "called through ops.Custom, as before\n"
    )
    assert list(tmp_path.glob("cache/caller/*/*.so")) == []

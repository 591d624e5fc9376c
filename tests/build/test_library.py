"""What a kernel library is for the loader: what it needs, what it shows, how it is opened."""

import json
import os
import re
import shutil
import sys

import pytest
import torch
from conftest import CMAKE, CXX_STANDARD, SOURCE, TORCH, compile_only, python, run

MINDSPORE = ["", "Init", "InferShape", "InferType"]


def entry_points(*kernels, suffixes=MINDSPORE):
    """What is seen of kernels."""
    return {name + suffix for name in kernels for suffix in suffixes}


def exported_in(*sources):
    text = "".join((SOURCE / "tests/kernels" / source).read_text() for source in sources)
    return re.findall(r"ATEN_BRIDGE_EXPORT(?:_GRAD)?\(\s*(\w+),", text)


LIBRARIES = {
    "examples/leaky_relu/leaky_relu.so": entry_points("LeakyRelu"),
    "examples/lltm/lltm.so": entry_points("LeakyRelu", "Lltm", "LltmGrad"),
    "tests/test_pytorch.so": entry_points(
        *exported_in("pytorch_kernels.cpp", "pytorch_types.cpp"), suffixes=[*MINDSPORE, "Jax"]
    ),
    "tests/test_without_mindspore.so": entry_points("LeakyRelu", suffixes=["Jax"]),
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
        *["aten_bridge_last_error", "aten_bridge_library"],
    }


def test_two_kernels_of_one_name_cannot_be_linked_where_no_function_has_it(build):
    (compiled,) = (build / "tests/CMakeFiles/test_without_mindspore.dir").rglob("leaky_relu.cpp.o")
    symbols = run("nm", "--extern-only", "--defined-only", compiled).stdout.splitlines()
    assert "B aten_bridge_only_LeakyRelu" in {line[17:] for line in symbols}


def test_only_a_library_that_asks_for_it_patches_mindspore(build):
    def has_patch(library):
        shown = run("nm", "--dynamic", build / library).stdout
        return "aten_bridge_contiguous_copies" in shown, "U mprotect" in shown

    assert has_patch("plugin/mint/aten_bridge_mint.so") == (True, True)
    assert has_patch("tests/test_plugin.so") == (False, False)


def test_a_library_that_shows_nothing_is_built_with_a_warning(tmp_path):
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(hidden LANGUAGES CXX)\n"
        f"add_subdirectory({SOURCE} bridge)\n"
        "aten_bridge_add_kernel(hidden SOURCES hidden.cpp HEADER_ONLY)\n"
        "aten_bridge_add_kernel(shown SOURCES shown.cpp HEADER_ONLY)\n"
    )
    (tmp_path / "hidden.cpp").write_text('extern "C" int Kernel() { return 0; }\n')
    shown = 'extern "C" __attribute__((visibility("default"))) int Kernel() { return 0; }\n'
    (tmp_path / "shown.cpp").write_text(shown)
    python = f"-DPython3_EXECUTABLE={sys.executable}"
    run(CMAKE, "-S", tmp_path, "-B", tmp_path / "build", python)
    built = run(CMAKE, "--build", tmp_path / "build")
    text = " ".join(built.stdout.split())  # with what comes from stderr
    assert (
        "hidden.so exports no function, so that no host finds a kernel in it. Export one with "
        "ATEN_BRIDGE_EXPORT, or mark a C function of your own with ATEN_BRIDGE_PUBLIC." in text
    )
    assert "shown.so exports" not in text


def test_what_depends_on_no_kernel_is_compiled_once_for_each_device_and_host(build):
    commands = json.loads((build / "compile_commands.json").read_text())
    objects = [
        re.search(r" -o (\S+)", command["command"])[1]
        for command in commands
        if command["file"].endswith("cmake/package/aten_bridge.cpp")
    ]
    made_for = [
        re.search(r"CMakeFiles/_aten_bridge_(\w+)_[0-9a-f]{8}\.dir/", path)[1] for path in objects
    ]
    expected = ["cpu", "cpu_jax", "cpu_jax_pytorch", "cpu_mindspore_plugin", "cpu_pytorch"]
    if os.environ.get("ATEN_BRIDGE_CUDA") == "ON":
        expected += ["cuda", "cuda_jax_pytorch", "cuda_pytorch"]
    assert sorted(made_for) == expected

    # The run of a call is one function of each: a kernel's own object only asks for it.
    (kernel,) = (build / "examples/leaky_relu").glob("**/leaky_relu.cpp.o")
    symbols = run("nm", "--demangle", kernel).stdout
    kinds = set(re.findall(r"^[0-9a-f ]*(\w) .*\brun<", symbols, re.MULTILINE))
    assert kinds == {"U"}


def test_a_library_shows_the_same_where_each_source_has_the_bridge_to_itself(build):
    def shown(name):
        text = run("nm", "--dynamic", "--defined-only", build / f"tests/{name}.so").stdout
        return {line.split()[-1] for line in text.splitlines()}

    # The first has another source too.
    more = {name for name in shown("test_kernels") if name.startswith("FromAnotherSource")}
    assert shown("test_kernels") == {*shown("test_kernels_return"), *more, "MarkedFunction"}


@pytest.mark.parametrize(
    ("defined", "error"),
    [
        (
            "ATEN_BRIDGE_HOST OwnHost",
            "A source for a host of its own is built with aten_bridge_add_kernel(... HEADER_ONLY).",
        ),
        (
            "ATEN_BRIDGE_MINDSPORE_PLUGIN",
            "This source is for another DEVICE or HOST than aten_bridge_add_kernel was told.",
        ),
    ],
)
def test_a_source_that_is_compiled_for_another_host_is_refused(tmp_path, defined, error):
    source = tmp_path / "other.cpp"
    source.write_text(f"#define {defined}\n#include <aten_bridge.h>\n")
    done = compile_only("g++", source, "-std=c++17", "-fsyntax-only", "-DATEN_BRIDGE_COMPILED=0")
    assert error in done.stdout


def test_directories_that_compile_in_another_way_have_an_object_of_their_own(tmp_path):
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(several LANGUAGES CXX)\n"
        f"add_subdirectory({SOURCE} bridge)\n"
        "add_subdirectory(covered)\nadd_subdirectory(plain)\nadd_subdirectory(plain_too)\n"
    )
    for name in ("covered", "plain", "plain_too"):
        (tmp_path / name).mkdir()
        options = "add_compile_options(--coverage)\n" if name == "covered" else ""
        (tmp_path / name / "CMakeLists.txt").write_text(
            f"{options}aten_bridge_add_kernel({name} SOURCES kernel.cpp)\n"
        )
        (tmp_path / name / "kernel.cpp").write_text("")
    run(
        *[CMAKE, "-S", tmp_path, "-B", tmp_path / "build", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON"],
        f"-DPython3_EXECUTABLE={sys.executable}",
    )
    commands = json.loads((tmp_path / "build/compile_commands.json").read_text())
    compiled = [c["command"] for c in commands if c["file"].endswith("package/aten_bridge.cpp")]
    assert sorted("--coverage" in command for command in compiled) == [False, True]


def test_the_version_stands_once(build):
    header = (SOURCE / "include/aten_bridge/core/config.h").read_text()
    numbers = re.findall(r"#define ATEN_BRIDGE_VERSION_\w+ (\d+)", header)
    for project in ("pyproject.toml", "plugin/mint/pyproject.toml"):
        text = (SOURCE / project).read_text()
        assert 'dynamic = ["version"' in text
        assert ".".join(numbers) not in text
    cache = (build / "CMakeCache.txt").read_text()
    assert f"CMAKE_PROJECT_VERSION:STATIC={'.'.join(numbers)}\n" in cache


def test_neither_helpers_nor_variables_are_seen_unless_they_are_marked(build):
    text = run("nm", "--dynamic", "--defined-only", build / "tests/test_kernels.so").stdout
    shown = {line.split()[-1] for line in text.splitlines()}
    assert {"Copy", "FromAnotherSource", "MarkedFunction", "aten_bridge_last_error"} <= shown
    assert {name for name in shown if "unmarked" in name or name.startswith("_Z")} == set()


def test_needs_no_symbol_of_python(library):
    text = run("nm", "--dynamic", "--undefined-only", library[0]).stdout
    assert re.findall(r"\b_?Py\w+", text) == []


def test_examples_are_smaller_than_215_kib_and_for_pytorch_400(build):
    libraries = list((build / "examples").glob("*/*.so"))
    assert len(libraries) > 8
    most = {path: 400 if path.parent.name in ("lltm", "add_custom") else 215 for path in libraries}
    # This one has machine code for GPUs too, for four CUDA kernels.
    most = {path: 500 if path.name == "lltm_cuda.so" else kib for path, kib in most.items()}
    assert {
        path.name: path.stat().st_size
        for path in libraries
        if path.stat().st_size > most[path] << 10
    } == {}


# A process with a libtorch that has none of the functions which the library needs, as one has with
# the older C++ ABI; of a library without -z now that is found out only at the call of the first.
CALL_LATE = """
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <exception>

int main(int, char** paths) {
  void* library = dlopen(paths[1], RTLD_NOW | RTLD_GLOBAL) == nullptr
                      ? nullptr : dlopen(paths[2], RTLD_LAZY);
  if (library == nullptr) {
    return std::puts(dlerror()), 1;
  }
  using Kernel = int (*)(int, void**, int*, int64_t**, const char**, void*, void*);
  try {
    reinterpret_cast<Kernel>(dlsym(library, "Copy"))(0, nullptr, nullptr, nullptr, nullptr, nullptr,
                                                     nullptr);
  } catch (const std::exception& error) {
    std::puts(error.what());
  }
}
"""


@pytest.fixture(scope="module")
def by_hand(tmp_path_factory):
    """A library as g++ alone makes it, and its relocations: names by type and section."""
    folder = tmp_path_factory.mktemp("by_hand")
    source = folder / "copy.cpp"
    source.write_text(
        "#include <aten_bridge.h>\n"
        "ATEN_BRIDGE_EXPORT(Copy, [](const at::Tensor& x, at::Tensor& y) { y.copy_(x); });\n"
    )
    library = folder / "copy.so"
    flags = ["-std=c++17", "-shared", "-fPIC", "-Wl,-z,lazy", "-o", library]
    done = compile_only("c++", source, *flags)
    assert done.returncode == 0, done.stdout
    section, found = "", []
    for line in run("readelf", "--relocs", "--wide", library).stdout.splitlines():
        if line.startswith("Relocation section"):
            section = line.split("'")[1]
        elif len(words := line.split()) > 4 and words[2].startswith("R_"):
            found.append((section, words[2], words[4]))
    return library, found


def test_a_library_of_another_abi_than_the_process_is_an_error_with_a_message(by_hand, tmp_path):
    library, relocations = by_hand
    defined = run("nm", "--dynamic", "--defined-only", library).stdout.split()
    assembly, variables = tmp_path / "libtorch.s", set()
    for section, kind, name in relocations:
        is_pytorch = "3c10" in name
        if section == ".rela.dyn" and is_pytorch and name not in {*defined, *variables}:
            variables.add(name)
            thread = kind.startswith(("R_X86_64_DTP", "R_X86_64_TP", "R_AARCH64_TLS"))
            where, what = (".tdata", "tls_object") if thread else (".data", "object")
            with assembly.open("a") as file:
                file.write(
                    f".section {where}\n.globl {name}\n.type {name}, %{what}\n"
                    f".size {name}, 4096\n{name}: .zero 4096\n"
                )
    host = tmp_path / "host.cpp"
    host.write_text(CALL_LATE)
    run("c++", "-shared", "-nostdlib", assembly, "-o", tmp_path / "libtorch.so")
    run("c++", host, "-ldl", "-o", tmp_path / "host")
    assert run(tmp_path / "host", tmp_path / "libtorch.so", library).stdout == (
        f"Copy: expected PyTorch {'.'.join(torch.__version__.split('.')[:2])}.x, with which this "
        "library was built, got one of another C++ ABI, which the process had loaded before; "
        "build the library with the PyTorch that the program imports\n"
    )


def test_a_library_uses_nothing_that_another_one_may_show(by_hand):
    """Else a library opened with RTLD_GLOBAL before it would answer in its place."""
    library, relocations = by_hand
    shown = {
        line.split()[-1]
        for line in run("nm", "--dynamic", "--defined-only", library).stdout.splitlines()
    }
    ours = {name for name in shown if name.startswith("aten_bridge_")}
    assert ours == {"aten_bridge_last_error", "aten_bridge_library"}
    assert not ours & {name for _, _, name in relocations}


# Opens, calls and closes a library ten times; in each a thread calls it, and ends: as long as one
# that has called it lives, so do the thread-local objects, and the library.
CLOSE = """
import _ctypes, ctypes, os, sys, threading, time

torch, library = sys.argv[1:]
ctypes.CDLL(torch)  # it stays
Kernel = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, *6 * [ctypes.c_void_p])
Floats, Addresses = ctypes.c_float * 2, ctypes.c_void_p * 2


def call(handle, value, operands, found):
    x, y, sizes = Floats(value, 2), Floats(), (ctypes.c_int64 * 1)(2)
    status = Kernel(_ctypes.dlsym(handle, "Copy"))(
        operands,
        Addresses(ctypes.addressof(x), ctypes.addressof(y)),
        (ctypes.c_int * 2)(1, 1),
        Addresses(*2 * [ctypes.addressof(sizes)]),
        (ctypes.c_char_p * 2)(b"float32", b"float32"),
        None,
        None,
    )
    found.append((status == 0, *y))


def tasks():
    return len(os.listdir("/proc/self/task"))


for turn in range(10):
    handle, found, before = _ctypes.dlopen(library, os.RTLD_NOW), [], tasks()
    for operands in (2, 1, 2):  # an error between
        thread = threading.Thread(target=call, args=(handle, turn, operands, found))
        thread.start()
        thread.join()
    while tasks() > before:  # behind join() a thread still destroys what is its own
        time.sleep(0.001)
    assert found == [(True, turn, 2), (False, 0, 0), (True, turn, 2)], found
    assert library in open("/proc/self/maps").read()
    _ctypes.dlclose(handle)
    assert library not in open("/proc/self/maps").read(), turn
"""


def test_a_library_that_may_be_unloaded_can_be_opened_again(tmp_path):
    """Ours never are (-z nodelete), but one that a compiler made alone may be.

    g++ marks variables of the C++ library so that they stay, and with them the library.
    """
    source, library = tmp_path / "copy.cpp", tmp_path / "copy.so"
    source.write_text(
        "#include <aten_bridge.h>\n"
        "ATEN_BRIDGE_EXPORT(Copy, [](const at::Tensor& x, at::Tensor& y) { y.copy_(x); });\n"
    )
    done = compile_only(
        *[
            "g++",
            source,
            f"-std=c++{CXX_STANDARD}",
            "-fno-gnu-unique",
            "-DATEN_BRIDGE_ERRORS_RETURN",
        ],
        *["-fvisibility=hidden", "-shared", "-fPIC", "-o", library, f"-L{TORCH / 'lib'}"],
        *[f"-Wl,-rpath,{TORCH / 'lib'}", "-Wl,-z,now,--no-as-needed", "-ltorch_cpu", "-lc10"],
    )
    assert done.returncode == 0, done.stdout
    python("-c", CLOSE, TORCH / "lib/libtorch_cpu.so", library)


def test_the_line_without_cmake_builds_a_library_that_works(build, tmp_path):
    """With the header that the build has made of all, which is then the only one."""
    (command,) = re.findall(
        r"<!-- run -->\n```bash\n(.*?)```\n", (SOURCE / "docs/packages.md").read_text(), re.DOTALL
    )
    shutil.copytree(SOURCE / "examples/leaky_relu", tmp_path / "examples/leaky_relu")
    header = build / "single/aten_bridge.h"
    assert not re.search("^#include <aten_bridge", header.read_text(), re.M)
    (tmp_path / "include").mkdir()
    shutil.copyfile(header, tmp_path / "include/aten_bridge.h")
    run("bash", "-ec", f'python3() {{ "{sys.executable}" "$@"; }}\n{command}', cwd=tmp_path)
    shown = run("nm", "--dynamic", "--defined-only", tmp_path / "leaky_relu.so").stdout
    assert {" T LeakyRelu", " W aten_bridge_last_error"} <= {
        line[16:] for line in shown.splitlines()
    }
    functions = {name for line in shown.splitlines() if (name := line.split()[-1])[:2] != "_Z"}
    assert functions == {
        *entry_points("LeakyRelu"),
        *["aten_bridge_last_error", "aten_bridge_library"],
    }
    assert "11aten_bridge" not in shown, "names of the bridge are visible"
    output = python(SOURCE / "examples/leaky_relu/leaky_relu.py", tmp_path / "leaky_relu.so").stdout
    assert output.count("[[ 0.    -0.001]\n [-0.002  1.   ]]\n") == 2

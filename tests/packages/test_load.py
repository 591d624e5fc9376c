"""aten_bridge.build.load and load_inline: what is built, found again, and said of what is wrong."""

import contextlib
import ctypes
import fcntl
import os
import pty
import re
import shutil
import subprocess
import sys
from pathlib import Path

import mindspore as ms
import numpy as np
import pytest
import torch

import aten_bridge.build
from aten_bridge._text import as_switch
from aten_bridge.build import BuildError, cache_dir, load, load_inline
from aten_bridge.build import _tools as tools
from aten_bridge.build._keys import hash_of
from aten_bridge.mindspore import kernel

ROOT = Path(__file__).resolve().parents[2]
SOURCE = """
#include <ATen/ops/add.h>
#include <aten_bridge.h>
#include "number.h"

void add_number(const at::Tensor& x, at::Tensor& y) { at::add_out(y, x, x, NUMBER); }
ATEN_BRIDGE_EXPORT(AddNumber, add_number, aten_bridge::meta());
"""
# A C function alone, which compiles at once: for what the cache does with sources.
PLAIN = """
#include "number.h"

extern "C" __attribute__((visibility("default"))) int number() { return NUMBER; }
"""


@pytest.fixture
def source(tmp_path):
    (tmp_path / "number.h").write_text("#define NUMBER 1\n")
    path = tmp_path / "add_number.cpp"
    path.write_text(SOURCE)
    return path


@pytest.fixture
def plain(source):
    source.write_text(PLAIN)
    return source


def number(path):
    return ctypes.CDLL(path).number()


def result(path):
    return kernel(f"{path}:AddNumber")(ms.Tensor([1.0])).asnumpy().tolist()


def text_of(error, call):
    with pytest.raises(error) as raised:
        call()
    return str(raised.value)


def test_a_library_is_built_once_for_what_it_is_made_of(source, monkeypatch):
    path = load("add_number", [source])
    assert Path(path).name == "add_number.so"
    assert result(path) == [2]

    # Another header, and one that is older than what was built from the first.
    header = source.with_name("number.h")
    header.write_text("#define NUMBER 2\n")
    os.utime(header, (0, 0))
    second = load("add_number", source)
    assert second != path
    assert (result(path), result(second)) == ([2], [3])

    # What has been there before needs no compiler.
    monkeypatch.setattr(subprocess, "Popen", None)
    assert load("add_number", [source]) == second
    header.write_text("#define NUMBER 1\n")
    assert load("add_number", [str(source)]) == path


def test_what_the_guide_shows(tmp_path):
    shutil.copy(ROOT / "examples/leaky_relu/leaky_relu.cpp", tmp_path)
    done = subprocess.run(
        [sys.executable, ROOT / "tests/packages/in_one_call.py"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT / "python")},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    assert done.stdout == "[-1.0, 3.0] [-10.0, 6.0]\n"


def test_an_edit_while_it_is_compiled_is_seen(plain, monkeypatch):
    header = plain.with_name("number.h")
    run = aten_bridge.build._build.run

    def run_and_edit(command, *rest):
        done = run(command, *rest)
        if "-C" in command and header.read_text().endswith("1\n"):
            header.write_text("#define NUMBER 2\n")
        return done

    monkeypatch.setattr(aten_bridge.build._build, "run", run_and_edit)
    assert number(load("edited", plain)) == 2
    monkeypatch.undo()
    assert number(load("edited", plain)) == 2


def test_an_edit_while_another_process_builds_is_seen(plain, monkeypatch):
    locked = aten_bridge.build._build.locked

    @contextlib.contextmanager
    def edit_and_lock(path):
        plain.write_text(PLAIN.replace("NUMBER;", "NUMBER + 1;"))
        with locked(path) as lock:
            yield lock

    monkeypatch.setattr(aten_bridge.build._build, "locked", edit_and_lock)
    assert number(load("waited", plain)) == 2
    monkeypatch.undo()
    plain.write_text(PLAIN)
    assert number(load("waited", plain)) == 1


def test_an_older_file_is_seen_where_another_library_had_the_name(plain):
    other = plain.with_name("other.cpp")
    other.write_text(PLAIN.replace("NUMBER;", "NUMBER + 1;"))
    assert number(load("alternate", plain)) == 1
    assert number(load("alternate", other)) == 2
    plain.write_text(PLAIN.replace("NUMBER;", "NUMBER + 2;"))
    os.utime(plain, (0, 0))
    assert number(load("alternate", plain)) == 3


def test_an_interrupt_ends_the_compilers(monkeypatch, tmp_path):
    numbers = []

    def interrupt(line, **_):
        numbers.append(int(line))
        raise KeyboardInterrupt

    monkeypatch.setattr("builtins.print", interrupt)
    with (tmp_path / "lock").open("w") as lock, pytest.raises(KeyboardInterrupt):
        aten_bridge.build._tools.run(
            ["sh", "-c", "echo $$; sleep 1000 & wait"], lock.fileno(), verbose=True
        )
    (number,) = numbers
    with pytest.raises(ProcessLookupError):
        os.kill(number, 0)


def test_a_process_that_was_forked_meanwhile_keeps_no_lock(tmp_path):
    path = tmp_path / "lock"
    reading, writing = os.pipe()
    with aten_bridge.build._cache.locked(path):
        child = os.fork()
        if child == 0:
            os.read(reading, 1)
            os._exit(0)
    try:
        with path.open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        os.write(writing, b".")
        os.waitpid(child, 0)


def test_the_pytorch_of_cmakes_path_is_the_one_of_the_key(monkeypatch):
    folder = Path(torch.__file__).resolve().parent
    monkeypatch.setattr(aten_bridge.build._keys.importlib.util, "find_spec", lambda name: None)
    assert aten_bridge.build._keys.pytorch() == ("", None)
    for path in (folder, folder.parent, f"/nothing:{folder / 'share/cmake'}"):
        monkeypatch.setenv("CMAKE_PREFIX_PATH", str(path))
        assert aten_bridge.build._keys.pytorch()[0] == str(folder)


def test_flags_folders_libraries_and_hosts(source, tmp_path):
    (tmp_path / "more").mkdir()
    source.with_name("number.h").rename(tmp_path / "more/number.h")
    (tmp_path / "more/number.h").write_text(
        "double number();\n#define NUMBER (FACTOR * number())\n"
    )
    (tmp_path / "number.cpp").write_text("double number() { return 3; }\n")
    archive = tmp_path / "libnumber.a"
    subprocess.run(["c++", "-fPIC", "-c", "number.cpp", "-o", "number.o"], cwd=tmp_path, check=True)
    subprocess.run(["ar", "rc", archive, "number.o"], cwd=tmp_path, check=True)
    path = load(
        "add_number",
        [source],
        hosts=["pytorch", "mindspore"],
        namespace="of_numbers",
        # The second is that of the first, as with "-include"; one str is one of them.
        flags=["-D", "FACTOR=2", "-D", 'NAME="a b"'],
        include_dirs=tmp_path / "more",
        libraries=[archive],
    )
    assert result(path) == [7]
    torch.ops.load_library(path)
    assert torch.ops.of_numbers.add_number(torch.ones(1)).item() == 7


def test_c_plus_plus_as_a_text_and_for_a_debugger():
    source = SOURCE.replace('#include "number.h"', "#define NUMBER 4")
    path = load_inline("add_number", source, debug=True)
    assert result(path) == [5]
    sections = subprocess.run(["readelf", "-S", path], capture_output=True, text=True).stdout
    assert ".debug_info" in sections


def test_errors_of_the_compiler_are_shown_as_they_are(plain):
    plain.write_text(PLAIN.replace("NUMBER;", "NUMBRE;"))
    text = text_of(BuildError, lambda: load("add_number", [plain]))
    first, second, *rest = text.splitlines()
    assert first == "add_number: expected sources that can be built, got"
    assert second.startswith(f"{plain}: In function ")
    assert rest[0].startswith(f"{plain}:4:")
    assert "error: 'NUMBRE' was not declared in this scope" in rest[0]
    assert not re.search(r"FAILED|ninja|c\+\+ -", text)
    # Corrected, it is built.
    plain.write_text(PLAIN)
    assert number(load("add_number", [plain])) == 1


KILLED = (
    "killed by signal 9, usually because memory ran out; close other programs, or compile one "
    "source at a time: set CMAKE_BUILD_PARALLEL_LEVEL=1"
)


def test_a_compiler_that_is_killed_is_named(source, tmp_path, monkeypatch):
    compiler = tmp_path / "c++"
    compiler.write_text(
        '#!/bin/sh\ncase "$*" in *add_number.cpp*) kill -9 $$;; *aten_bridge.cpp*) exit 3;; esac\n'
        f'exec {shutil.which(os.environ.get("CXX", "c++"))} "$@"\n'
    )
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    monkeypatch.setenv("CMAKE_BUILD_PARALLEL_LEVEL", "2")
    text = text_of(BuildError, lambda: load("add_number", [source]))
    assert f"the compiler of {source} {KILLED}" in text, text
    assert not re.search(r"FAILED|ninja|\[", text)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("kill -9 $$", f" the compiler of a.cpp {KILLED}\nKilled"),
        (
            # What GCC says where the system has killed the program that it has started.
            "echo 'c++: fatal error: Killed signal terminated program cc1plus'; exit 1",
            f" the compiler of a.cpp {KILLED}\n"
            "c++: fatal error: Killed signal terminated program cc1plus",
        ),
        ("kill -15 $$", " the compiler of a.cpp killed by signal 15; build again\nTerminated"),
        (
            "exit 3",
            " exit status 3 from the compiler of a.cpp, which said nothing; see its command with "
            "verbose=True",
        ),
        ("echo a.cpp:1: error: no; exit 1", "\na.cpp:1: error: no"),
    ],
)
def test_what_a_compiler_says_and_what_it_does_not(tmp_path, command, words):
    (tmp_path / "a.cpp").touch()
    (tmp_path / "compiler").write_text(f"#!/bin/sh\n{command}\n")
    (tmp_path / "compiler").chmod(0o755)
    build = "rule cc\n command = ./compiler -o $out -c $in\nbuild a.o: cc a.cpp\n"
    (tmp_path / "build.ninja").write_text(build)
    with (tmp_path / "lock").open("w") as lock:
        ninja = [tools.tool("ninja"), "-C", tmp_path]
        status, output = tools.run(ninja, lock.fileno(), verbose=False)
        assert tools.message_of_ninja(status, output) == words
        # A file that is not there, which Ninja itself says.
        (tmp_path / "a.cpp").unlink()
        status, output = tools.run(ninja, lock.fileno(), verbose=False)
    assert tools.message_of_ninja(status, output) == (
        "\nninja: error: 'a.cpp', needed by 'a.o', missing and no known rule to make it"
    )
    assert tools.message_of_ninja(-9, "ninja: Entering directory `x'\n") == (
        f" the program ninja {KILLED}"
    )


def test_a_header_whose_name_is_not_utf8(source, tmp_path):
    header = os.fsencode(tmp_path / "m") + b"\xfcller.h"
    Path(os.fsdecode(header)).write_text("")
    made = "CMakeFiles/add_number_kernels.dir/a.o"
    (tmp_path / "deps").write_bytes(made.encode() + b": #deps 1\n    " + header + b"\n\n")
    ninja = tmp_path / "ninja"
    ninja.write_text(f"#!/bin/sh\ncat {tmp_path / 'deps'}\n")
    ninja.chmod(0o755)
    nothing = dict.fromkeys(("flags", "include_dirs", "libraries"), ())
    build = aten_bridge.build.request(
        "add_number", source, hosts="mindspore", namespace=None, debug=False, **nothing
    )
    ((path, content),) = build._contents(str(ninja), tmp_path)[made].items()
    assert (os.fsencode(path), content) == (header, hash_of(b""))


def test_how_many_compilers_run_at_a_time(monkeypatch):
    monkeypatch.delenv("CMAKE_BUILD_PARALLEL_LEVEL", raising=False)
    assert tools.options(verbose=True) == ["-v"]
    monkeypatch.setenv("CMAKE_BUILD_PARALLEL_LEVEL", "1")
    assert tools.options(verbose=False) == ["-j1"]
    monkeypatch.setenv("CMAKE_BUILD_PARALLEL_LEVEL", "many")
    assert text_of(ValueError, lambda: tools.options(verbose=False)) == (
        "CMAKE_BUILD_PARALLEL_LEVEL: expected how many compilers may run at a time, got 'many'; "
        "correct the variable"
    )


def test_what_cannot_be_meant_is_an_error_with_a_message(source, tmp_path, monkeypatch):
    both = ["mindspore_plugin", "pytorch"]
    assert text_of(BuildError, lambda: load("add_number", [source], hosts=both)) == (
        "add_number: MINDSPORE_PLUGIN is a library's only host: its kernels have the parameters of "
        "MindSpore's own operators."
    )
    with monkeypatch.context() as patch:
        patch.setattr(sys, "executable", "/nonexistent")
        assert text_of(BuildError, lambda: load("add_number", [source])) == (
            "add_number: no PyTorch on CMAKE_PREFIX_PATH and none in /nonexistent: activate an "
            "environment that has PyTorch (pip install torch), or point CMAKE_PREFIX_PATH at "
            "libtorch's folder"
        )
    assert text_of(ValueError, lambda: load("add_number", [source], hosts="pytorsh")) == (
        "expected hosts among 'mindspore', 'pytorch', 'jax', 'mindspore_plugin', got 'pytorsh'; "
        "did you mean 'pytorch'?"
    )
    assert text_of(ValueError, lambda: load("add-number", [source])) == (
        "expected a library's name of letters, digits and underscores, got 'add-number'"
    )
    assert text_of(FileNotFoundError, lambda: load("add_number", [tmp_path / "no.cpp"])) == (
        f"{tmp_path / 'no.cpp'}: expected a source, got no such file"
    )
    assert text_of(FileNotFoundError, lambda: load("add_number", tmp_path)) == (
        f"{tmp_path}: expected a source, got a folder"
    )
    assert text_of(ValueError, lambda: load("add_number", [])) == (
        "add_number: expected sources, got none"
    )
    (tmp_path / "c.c").touch()
    assert text_of(ValueError, lambda: load("add_number", tmp_path / "c.c")) == (
        f"{tmp_path / 'c.c'}: expected C++ or CUDA in a file that ends in .cpp, .cc, .cxx or .cu, "
        "got another one"
    )
    assert text_of(ValueError, lambda: load_inline("add_number", "\udcff")) == (
        "add_number: expected a source in UTF-8, got '\\udcff'"
    )
    assert text_of(TypeError, lambda: load_inline("add_number", source)) == (
        f"add_number: expected a source as a str, got {source!r}"
    )
    assert text_of(ValueError, lambda: load("a" * 201, [source])) == (
        f"expected a library's name of 200 letters at most, got {'a' * 201!r}"
    )
    assert text_of(TypeError, lambda: load("add_number", 3)) == (
        "add_number: expected sources to be strs or paths, got 3"
    )
    assert text_of(ValueError, lambda: load("add_number", "\udcff.cpp")) == (
        "add_number: expected sources in UTF-8 without NUL, got '\\udcff.cpp'"
    )
    assert text_of(TypeError, lambda: load("add_number", source, flags=["-g", None])) == (
        "add_number: expected flags to be strs or paths, got ['-g', None]"
    )
    assert text_of(ValueError, lambda: load("add_number", source, include_dirs="a\0")) == (
        "add_number: expected include_dirs in UTF-8 without NUL, got 'a\\x00'"
    )
    assert text_of(ValueError, lambda: load("add_number", source, namespace="a.b")) == (
        "add_number: expected a namespace of letters, digits and underscores, got 'a.b'"
    )
    assert text_of(TypeError, lambda: load("add_number", source, debug=1)) == (
        "add_number: expected debug to be True or False, got 1"
    )
    assert as_switch("add_number", "debug", np.bool_(True)) is True
    assert text_of(TypeError, lambda: load("add_number", source, hosts=3)) == (
        "expected hosts among 'mindspore', 'pytorch', 'jax', 'mindspore_plugin', got 3"
    )
    assert text_of(TypeError, lambda: load("add_number", source, hosts=b"jax")) == (
        "expected hosts among 'mindspore', 'pytorch', 'jax', 'mindspore_plugin', got b'jax'"
    )
    mistaken = (len(one) for one in [1])
    assert text_of(TypeError, lambda: load("add_number", mistaken)) == (
        "object of type 'int' has no len()"
    )
    assert text_of(ValueError, lambda: load("add_number", [source], flags=["-DA=1;2"])) == (
        "'-DA=1;2': expected paths and flags without semicolons, brackets and line breaks"
    )


def test_a_library_without_kernels_is_built_with_a_warning():
    with pytest.warns(UserWarning, match="exports no function") as warned:
        load_inline("nothing", "int hidden() { return 1; }")
    assert [str(one.message) for one in warned] == [
        "nothing.so exports no function, so that no host finds a kernel in it. Export one with "
        "ATEN_BRIDGE_EXPORT, or mark a C function of your own with ATEN_BRIDGE_PUBLIC."
    ]


def test_a_cache_that_others_can_write_to_is_refused(source, tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    folder.mkdir()
    folder.chmod(0o777)
    monkeypatch.setenv("ATEN_BRIDGE_CACHE_DIR", str(folder))
    assert text_of(PermissionError, lambda: load("add_number", [source])) == (
        f"{folder}: expected a folder that nobody else can write to, since the libraries in it are "
        "loaded as code, got one of another user or with write permission for others; chmod -R "
        f"go-w {folder}, or name another with ATEN_BRIDGE_CACHE_DIR"
    )


def test_a_cache_that_cannot_be_made(source, monkeypatch):
    def text_with(folder, error):
        monkeypatch.setenv("ATEN_BRIDGE_CACHE_DIR", str(folder))
        return text_of(error, lambda: load("add_number", source))

    other = "; name another with ATEN_BRIDGE_CACHE_DIR"
    expected = "expected a folder for what is built, got"
    assert text_with(source, OSError) == f"{source}: {expected} what is no folder{other}"
    assert text_with(source / "cache", OSError) == (
        f"{source / 'cache'}: {expected} the error: Not a directory{other}"
    )
    assert text_with("~no such user/cache", FileNotFoundError) == (
        f"'~no such user/cache': {expected} the home of a user who has none{other}"
    )
    assert text_with("/\udcff", ValueError) == (
        f"'/\\udcff': expected a folder in UTF-8 for what is built{other}"
    )


def test_a_pipe_is_no_library(source, tmp_path, monkeypatch):
    """It is not read: nobody writes to it."""
    os.mkfifo(tmp_path / "pipe.a")
    monkeypatch.setattr(aten_bridge.build._build, "run", lambda *_: (1, ""))
    assert text_of(
        BuildError, lambda: load("add_number", source, libraries=tmp_path / "pipe.a")
    ) == ("add_number: expected a project that CMake can configure, got\n")


def test_folders_of_the_cache_are_private_whatever_the_umask(plain, tmp_path, monkeypatch):
    """A group that could write to one of them could replace a library."""
    cache = tmp_path / "cache"
    cache.mkdir(mode=0o755)
    monkeypatch.setenv("ATEN_BRIDGE_CACHE_DIR", str(cache))
    umask = os.umask(0o002)
    try:
        load("add_number", [plain])
        load_inline("one_more", PLAIN.replace('#include "number.h"', "#define NUMBER 1"))
    finally:
        os.umask(umask)
    below = [cache / name for name in ("trees", "headers", "libraries", "sources")]
    folders = [*below, *(one for kind in below for one in kind.iterdir() if one.is_dir())]
    folders += list(cache.glob("trees/*/build"))
    assert {oct(folder.stat().st_mode & 0o777) for folder in folders} == {"0o700"}

    (library,) = cache.glob("libraries/add_number-*")
    for folder in (library, cache / "libraries"):
        folder.chmod(0o770)
        assert text_of(PermissionError, lambda: load("add_number", [plain])) == (
            f"{folder}: expected a folder that nobody else can write to, since the libraries in it "
            "are loaded as code, got one of another user or with write permission for others; "
            f"chmod -R go-w {folder}, or name another with ATEN_BRIDGE_CACHE_DIR"
        )


def test_the_cache_is_the_users(monkeypatch):
    monkeypatch.delenv("ATEN_BRIDGE_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", "/a/cache")
    assert cache_dir() == Path("/a/cache/aten_bridge")
    utf8 = "expected a folder in UTF-8 for what is built; name another with ATEN_BRIDGE_CACHE_DIR"
    monkeypatch.setenv("XDG_CACHE_HOME", "/\udcff")
    assert text_of(ValueError, cache_dir) == f"'/\\udcff/aten_bridge': {utf8}"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/a/home")
    assert cache_dir() == Path("/a/home/.cache/aten_bridge")
    monkeypatch.setenv("HOME", "/\udcff")
    assert text_of(ValueError, cache_dir) == f"'/\\udcff/.cache/aten_bridge': {utf8}"

    def no_home():
        raise RuntimeError

    monkeypatch.setattr(Path, "home", no_home)
    assert text_of(FileNotFoundError, cache_dir) == (
        "expected a home folder for what is built, got none; name a folder with "
        "ATEN_BRIDGE_CACHE_DIR"
    )


def test_a_missing_tool_is_named(source, monkeypatch):
    monkeypatch.setattr(aten_bridge.build._tools.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setenv("PATH", "/nonexistent")
    assert text_of(FileNotFoundError, lambda: load("add_number", [source])) == (
        "ninja: expected the program, which builds kernels, got none on PATH and no package in "
        "this environment; pip install ninja"
    )
    kernels = source.with_suffix(".cu")
    kernels.write_text("")
    monkeypatch.delenv("CUDACXX", raising=False)
    monkeypatch.delenv("CUDA_PATH", raising=False)
    assert text_of(FileNotFoundError, lambda: load("add_number", [kernels])) == (
        f"{kernels}: expected nvcc, which compiles CUDA, got none on PATH; install the CUDA "
        "toolkit, and put nvcc on PATH or name it with the variable CUDACXX"
    )


def test_processes_build_together_and_a_terminal_shows_it(source):
    """One compiles, the other waits; both have the same file."""
    source.write_text(SOURCE.replace("NUMBER)", "NUMBER + 10)"))
    program = "import sys; from aten_bridge.build import load; print(load('both', sys.argv[1:]))"
    screen, terminal = pty.openpty()
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", program, source],
            stdout=subprocess.PIPE,
            stderr=terminal,
            text=True,
        )
        for _ in range(2)
    ]
    paths = {process.communicate()[0] for process in processes}
    assert [process.returncode for process in processes] == [0, 0]
    (path,) = paths
    assert result(path.strip()) == [12]
    shown = os.read(screen, 100_000).decode()
    assert "\raten_bridge: building both, 1 s" in shown
    (log,) = [
        log for log in cache_dir().glob("trees/*/build/.ninja_log") if "both.so" in log.read_text()
    ]
    assert len(re.findall(r"\tboth\.so\t", log.read_text())) == 1

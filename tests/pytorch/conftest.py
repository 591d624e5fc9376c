"""Needs a finished build: PyTorch is the host of its kernel libraries."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from aten_bridge.torch import load


def pytest_configure():
    build = os.environ.get("ATEN_BRIDGE_BUILD_DIR", "")
    if not build or not Path(build, "tests/test_pytorch.so").is_file():
        raise pytest.UsageError(
            "Set ATEN_BRIDGE_BUILD_DIR to the build folder, the one that has "
            f"tests/test_pytorch.so; it is {build!r}."
        )


@pytest.fixture(scope="session")
def build():
    return Path(os.environ["ATEN_BRIDGE_BUILD_DIR"]).resolve()


@pytest.fixture(scope="session")
def library(build):
    return build / "tests/test_pytorch.so"


@pytest.fixture(scope="session")
def my(library):
    return load(library)


@pytest.fixture
def run_python(library):
    """What a program prints that begins with `library`, a path; it has to end with 0."""

    def run(program, **more):
        done = subprocess.run(
            [sys.executable, "-c", f"library = {str(library)!r}\n{program}"],
            env={**os.environ, **more},
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout

    return run

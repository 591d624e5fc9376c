"""Needs a finished build: PyTorch is the host of its kernel libraries."""

import os
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

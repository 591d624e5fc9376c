"""Needs a finished build."""

import os
from pathlib import Path

import pytest


def pytest_configure():
    build = os.environ.get("ATEN_BRIDGE_BUILD_DIR", "")
    if not build or not Path(build, "tests/test_kernels.so").is_file():
        raise pytest.UsageError(
            "Set ATEN_BRIDGE_BUILD_DIR to the build folder, the one that has "
            f"tests/test_kernels.so; it is {build!r}."
        )

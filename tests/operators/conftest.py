"""Needs a finished build."""

import os
from pathlib import Path

import pytest

BUILD = Path(os.environ.get("ATEN_BRIDGE_BUILD_DIR", ""))
LIBRARY = BUILD / "plugin/operators/aten_bridge_operators.so"


def pytest_configure():
    if not LIBRARY.is_file():
        raise pytest.UsageError(
            "Set ATEN_BRIDGE_BUILD_DIR to the build folder, the one that has "
            f"plugin/operators/aten_bridge_operators.so; it is {str(BUILD)!r}."
        )
    os.environ["ATEN_BRIDGE_OPERATORS"] = str(LIBRARY)

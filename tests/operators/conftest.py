"""Needs a finished build, and gives the tests that ask for `mode` both of MindSpore's modes."""

import os
from pathlib import Path

import mindspore as ms
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


@pytest.fixture(scope="session")
def cpu():
    ms.set_device("CPU")


@pytest.fixture(params=["graph", "pynative"])
def mode(request, cpu):
    before = ms.get_context("mode")
    ms.set_context(mode=ms.GRAPH_MODE if request.param == "graph" else ms.PYNATIVE_MODE)
    yield request.param
    ms.set_context(mode=before)

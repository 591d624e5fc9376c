"""Both of MindSpore's modes for the tests that ask for `mode`."""

import mindspore as ms
import pytest


@pytest.fixture(scope="session")
def cpu():
    ms.set_device("CPU")


@pytest.fixture(params=["graph", "pynative"])
def mode(request, cpu):
    before = ms.get_context("mode")
    ms.set_context(mode=ms.GRAPH_MODE if request.param == "graph" else ms.PYNATIVE_MODE)
    yield request.param
    ms.set_context(mode=before)

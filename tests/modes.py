"""Marks for tests in both of MindSpore's modes."""

import pytest

# For what takes seconds in graphs.
GRAPHS_IN_FULL = pytest.mark.parametrize(
    "mode",
    ["pynative", pytest.param("graph", marks=[pytest.mark.full, pytest.mark.graph])],
    indirect=True,
)

"""Needs MS_OP_PLUGIN_PATH, which MindSpore reads when it is imported."""

import os
from pathlib import Path

import mindspore as ms
import pytest


def pytest_configure():
    library = os.environ.get("MS_OP_PLUGIN_PATH", "")
    if not Path(library).is_file():
        raise pytest.UsageError(
            "Set MS_OP_PLUGIN_PATH to the library of kernels for mint, "
            f"plugin/mint/aten_bridge_mint.so of the build folder; it is {library!r}."
        )
    ms.set_device("CPU")

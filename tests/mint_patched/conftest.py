"""With the functions of install(), which stay for the whole process."""

import importlib.util
import sys
import textwrap

import mindspore as ms
import mindspore.mint.nn.functional
import pytest
import torch
import torch.nn.functional
import write_cases as cases
from mindspore import mint

from aten_bridge.mint import install

NAMES = {
    "mindspore": {"mint": mint, "F": mindspore.mint.nn.functional, "ms": ms},
    "torch": {"mint": torch, "F": torch.nn.functional},
}


@pytest.fixture
def compiled(tmp_path, monkeypatch):
    """The function with the body, of both."""

    def load(body, parameters="x, y, z, i, j"):
        path = tmp_path / f"case_{len(list(tmp_path.iterdir()))}.py"
        head = f"{cases.HELPERS}def written({parameters}):\n"
        path.write_text(head + textwrap.indent(body, "    ") + "\n")
        functions = []
        for framework, names in NAMES.items():
            spec = importlib.util.spec_from_file_location(f"{path.stem}_{framework}", path)
            module = importlib.util.module_from_spec(spec)
            vars(module).update(names)
            monkeypatch.setitem(sys.modules, spec.name, module)  # where graphs look names up
            spec.loader.exec_module(module)
            functions.append(module.written)
        return functions, path, head.count("\n")

    return load


def pytest_configure():
    ms.set_device("CPU")
    install()

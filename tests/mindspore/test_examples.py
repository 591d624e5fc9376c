"""The examples that compare themselves with PyTorch, run in this process."""

import importlib.util
import sys
from pathlib import Path

import mindspore as ms
import pytest
from host import BUILD

FOLDER = Path(__file__).parents[2] / "examples"

# How many comparisons each makes, in both modes together.
EXAMPLES = {
    "conv2d": 4,
    "topk": 2,
    "cat": 2,
    "layer_norm": 6,
    "nearest": 2,
    "positional_encoding": 2,
    "median_filter": 2,
    "upsample": 4,
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_gives_what_pytorch_gives(name, cpu, capsys, monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))  # for compare.py
    script = FOLDER / name / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"example_{name}", script)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(
        sys.modules, spec.name, module
    )  # MindSpore asks for the sources of networks
    spec.loader.exec_module(module)
    before = ms.get_context("mode")
    module.main(str(BUILD / f"examples/{name}/{name}.so"))
    ms.set_context(mode=before)
    assert capsys.readouterr().out.count("equal to PyTorch's bit for bit\n") == EXAMPLES[name]

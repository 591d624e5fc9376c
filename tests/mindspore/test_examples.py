"""The examples that compare themselves with PyTorch or MindSpore, run in this process."""

import importlib.util
import sys
from pathlib import Path

import mindspore as ms
import numpy as np
import pytest
from host import BUILD
from pages import not_printed

FOLDER = Path(__file__).parents[2] / "examples"

# How many comparisons each makes, in both modes together.
EXAMPLES = {
    "options": 12,  # conv2d, cat, topk and upsample
    "layer_norm": 6,
    "nearest": 4,
    "positional_encoding": 2,
    "median_filter": 2,
    "registration": 6,
    "saved_values": 4,
    "lltm": 2,
    "add_custom": 2,
}


@pytest.fixture
def load(cpu, monkeypatch):
    """Returns a function: the module of an example, by its name."""

    def load_module(name):
        monkeypatch.syspath_prepend(str(FOLDER))  # for compare.py
        script = FOLDER / name / f"{name}.py"
        spec = importlib.util.spec_from_file_location(f"example_{name}", script)
        module = importlib.util.module_from_spec(spec)
        # MindSpore asks for the sources of networks.
        monkeypatch.setitem(sys.modules, spec.name, module)
        spec.loader.exec_module(module)
        return module

    return load_module


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_gives_what_pytorch_gives(name, load, capsys):
    before = ms.get_context("mode")
    load(name).main(str(BUILD / f"examples/{name}/{name}.so"))
    ms.set_context(mode=before)
    assert capsys.readouterr().out.count("equal to PyTorch's bit for bit\n") == EXAMPLES[name]


@pytest.mark.full
def test_digits_are_learnt_as_with_mindspores_own_operators(load, capsys, tmp_path):
    picture = tmp_path / "digits.png"
    library = str(BUILD / "examples/digits/digits.so")
    kernels, own = load("digits").main(library, picture=picture)
    assert len(kernels.losses) == 220
    # Rounding, measured: 1e-6 in the first steps, which training amplifies to 4e-4.
    np.testing.assert_allclose(kernels.losses[:5], own.losses[:5], rtol=0, atol=2e-5)
    np.testing.assert_allclose(kernels.losses, own.losses, rtol=0, atol=0.01)
    assert kernels.accuracies[-1] > 0.9  # measured: 0.992
    assert own.accuracies[-1] > 0.9
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size < 200 * 1024
    printed = capsys.readouterr().out
    assert f"ATen kernels: {kernels.accuracies[-1]:.2%} of the held-out" in printed
    assert not_printed(FOLDER / "digits", printed) == []

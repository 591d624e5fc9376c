"""The notebook examples/tour.ipynb, from its first cell to its last."""

import nbclient
import nbformat
import pytest
from conftest import SOURCE

NOTEBOOK = SOURCE / "examples/tour.ipynb"


def text_of(cell):
    return "".join(output.get("text", "") for output in cell.outputs)


@pytest.mark.full
def test_the_tour_runs_in_both_frameworks(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(SOURCE / "python"))
    monkeypatch.setenv("GLOG_v", "3")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "outputs are not committed"
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    said = [text_of(cell) for cell in notebook.cells if cell.cell_type == "code"]
    assert said[0] == "PyTorch and MindSpore\n"
    assert "  Swish, on the CPU, in MindSpore, and PyTorch as torch.ops.tour.swish\n" in said[2]
    numbers = (
        "y      [-0.036  -0.1192  0.      0.8808  1.964 ]\n"
        "dy/dx  [-0.0527 -0.0908  0.5     1.0908  1.0527]\n"
    )
    assert said[3] == numbers
    assert said[4].startswith("Swish: input 0 'x': expected float16|bfloat16|float32|float64, got ")
    assert said[5].endswith(numbers)
    (picture,) = [
        output.data["image/png"]
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if output.output_type == "display_data" and "image/png" in output.data
    ]
    assert len(picture) > 10_000

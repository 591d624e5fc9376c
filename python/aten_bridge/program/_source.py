"""What a module is made of: a PyTorch module, an exported program, or a file of either."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aten_bridge._text import format_value
from aten_bridge.program._file import read_module, write_module
from aten_bridge.program._programs import ModuleInModes
from aten_bridge.program._trees import array_class

if TYPE_CHECKING:
    import torch

_ZIP = b"PK\3\4"  # what torch.export.save writes begins with


def open_source(
    source: torch.nn.Module | torch.export.ExportedProgram | str | os.PathLike[str],
    example_inputs: Sequence[Any] | None = None,
    dynamic_shapes: Any = None,
    gradient_order: int = 1,
) -> ModuleInModes:
    """The programs of a source. Only what PyTorch has to read imports it.

    Raises NotExportable, what torch.export raises, OSError, ValueError for a file that cannot be
    read, and TypeError for other sources.
    """
    if type(gradient_order) is not int or gradient_order < 1:
        raise ValueError(
            "gradient_order: expected how often the module can be differentiated, 1 or more, got "
            f"{format_value(gradient_order)}"
        )
    is_path = isinstance(source, (str, os.PathLike))
    if is_path:
        path = Path(source)
        with path.open("rb") as file:
            is_archive = file.read(len(_ZIP)) == _ZIP
        if not is_archive and path.suffix != ".pt2":
            _refuse_examples("a file", example_inputs, dynamic_shapes)
            if gradient_order != 1:
                raise TypeError(
                    "expected no gradient_order with a file, got one; give it to "
                    "aten_bridge.program.save"
                )
            return read_module(path)

    import torch

    from aten_bridge.program._export import export_module, split_exported

    if isinstance(source, torch.nn.Module):
        if example_inputs is None:
            raise TypeError(
                "expected example_inputs, a tuple of the module's arguments, got none; give "
                "tensors of the dtypes and shapes that calls have"
            )
        _check_examples(example_inputs)
        return export_module(source, example_inputs, dynamic_shapes, gradient_order)
    if is_path:
        source = _load(path)
    if not isinstance(source, torch.export.ExportedProgram):
        raise TypeError(
            "expected a torch.nn.Module, a torch.export.ExportedProgram or the path of a file, got "
            f"{format_value(source)}"
        )
    _refuse_examples("an exported program", example_inputs, dynamic_shapes)
    return split_exported(source, gradient_order)


def _check_examples(example_inputs: Any) -> None:
    """Refuses what torch.export takes for other arguments: a tensor for a tuple of its rows."""
    import torch

    begin = "example_inputs: expected a tuple of the module's arguments, got "
    if not isinstance(example_inputs, (tuple, list)):
        what = format_value(example_inputs)
        if isinstance(example_inputs, torch.Tensor):
            what = "a tensor; give (tensor,)"
        raise TypeError(begin + what)
    for i, value in enumerate(example_inputs):
        name = array_class(value)
        if name and not isinstance(value, torch.Tensor):
            raise TypeError(
                f"example_inputs[{i}]: expected a tensor of PyTorch's, got a {name}; convert it, "
                "by way of torch.from_numpy"
            )


def _load(path: Path) -> torch.export.ExportedProgram:
    import torch

    if _is_pickled(path):
        raise ValueError(
            f"{path}: expected a file that torch.export.save or aten_bridge.program.save wrote, "
            "got one of torch.save; load it with torch.load, and give the module"
        )
    try:
        return torch.export.load(path)
    except Exception as error:
        first = str(error).partition("\n")[0]
        raise ValueError(
            f"{path}: expected a file that torch.export.save wrote, got one that PyTorch "
            f"{torch.__version__} does not read ({type(error).__name__}: {first}); export the "
            "module again"
        ) from error


def _is_pickled(path: Path) -> bool:
    """Whether it is what torch.save makes of a module or a state dict."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = {name.partition("/")[2] for name in archive.namelist()}
    except (OSError, zipfile.BadZipFile):
        return False
    # torch.export.save writes the first of the others, torch.jit.save the second.
    return "data.pkl" in names and names.isdisjoint(("archive_format", "constants.pkl"))


def _refuse_examples(what: str, example_inputs: Any, dynamic_shapes: Any) -> None:
    if example_inputs is not None or dynamic_shapes is not None:
        raise TypeError(
            f"expected no example_inputs and no dynamic_shapes with {what}, got some; they were "
            "given when it was made"
        )


def save(
    source: torch.nn.Module | torch.export.ExportedProgram | str | os.PathLike[str],
    path: str | os.PathLike[str],
    example_inputs: Sequence[Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    gradient_order: int = 1,
) -> None:
    """Writes a module, its programs and its weights, to a file.

        aten_bridge.program.save(torch_encoder, "encoder.safetensors", (torch.randn(8, 7, 32),))
        encoder = aten_bridge.mindspore.module("encoder.safetensors")  # without `import torch`

    The file is one of safetensors: its tensors are the weights under PyTorch's names, its metadata
    the programs.

    Args:
        source: The module, what `torch.export.export` made of it, or the path of a file that
            `torch.export.save` wrote.
        path: The file, which is replaced if it is there.
        example_inputs: The module's arguments, as for `aten_bridge.mindspore.module`.
        dynamic_shapes: Which sizes may change from call to call, as in `torch.export.export`.
        gradient_order: How often it can be differentiated, as for `aten_bridge.mindspore.module`.

    Raises:
        aten_bridge.program.NotExportable: A program cannot say what the module does, or safetensors
            does not have the dtype of a weight.
        OSError: The file cannot be written there.
        Exception: What torch.export.export raises.

    """
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path}: expected the name of a file, got a folder")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path.parent}: expected a folder, got none; make it first")
    write_module(open_source(source, example_inputs, dynamic_shapes, gradient_order), path)

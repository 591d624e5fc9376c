"""Modules in files: a safetensors file of the weights, whose metadata has the programs.

The format is as simple to write and read as to depend on a package for: 8 bytes with the length of
a JSON text, the text, and the tensors. Nothing of a file is run but its programs, whose text the
library of operators checks, and functions that are made of trees, which `check_tree` has seen.
"""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from aten_bridge.program._kernel import check_program
from aten_bridge.program._programs import (
    Derivative,
    ModuleInModes,
    ModulePrograms,
    Training,
    Weight,
)
from aten_bridge.program._trees import NotExportable, check_tree

# Those who read the first version alone would take the gradients of a file of the second for its.
_KEY, _VERSIONS = "aten_bridge", ("module 1", "module 2")
_MOST_HEADER = 100_000_000  # bytes, as for the package safetensors
_MODES = ("evaluation", "training")
_CODES = {  # what safetensors calls them
    "bool": "BOOL",
    "bfloat16": "BF16",
    "complex64": "C64",
    **{f"float{bits}": f"F{bits}" for bits in (16, 32, 64)},
    **{f"int{bits}": f"I{bits}" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": f"U{bits}" for bits in (8, 16, 32, 64)},
}
_WORDS = {code: word for word, code in _CODES.items()}


def _array_dtype(word: str) -> np.dtype:
    return np.dtype("uint16" if word == "bfloat16" else word)


class _Fault(ValueError):
    """What is wrong with a file, behind "got one"."""


# ===--- safetensors ---===


def write_tensors(path: Path, tensors: Mapping[str, Weight], metadata: Mapping[str, str]) -> None:
    """Writes a file, or leaves what was there if that fails. Raises NotExportable."""
    header: dict[str, Any] = {"__metadata__": dict(metadata)}
    end = 0
    ordered = sorted(tensors.items(), key=lambda item: -item[1].array.itemsize)  # aligned
    for name, (dtype, array, _) in ordered:
        if dtype not in _CODES:
            raise NotExportable(
                f"expected weights of dtypes that safetensors has, got {dtype} as {name!r}; use "
                "another, or make the module where it runs"
            )
        begin, end = end, end + array.nbytes
        header[name] = {
            "dtype": _CODES[dtype],
            "shape": list(array.shape),
            "data_offsets": [begin, end],
        }
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    descriptor, other = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(len(text).to_bytes(8, "little") + text)
            for _, weight in ordered:
                file.write(np.ascontiguousarray(weight.array).tobytes())
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(other, 0o666 & ~mask)  # mkstemp() has 0o600
        os.replace(other, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(other)
        raise


def read_tensors(data: bytes) -> tuple[dict[str, Weight], dict[str, str]]:
    """The tensors, on the memory of `data`, and the metadata. Raises _Fault."""
    length = int.from_bytes(data[:8], "little")
    if len(data) < 8 or length > min(_MOST_HEADER, len(data) - 8):
        raise _Fault("that is not in the format of safetensors, or is cut off")
    try:
        header = json.loads(data[8 : 8 + length])
        metadata = header.pop("__metadata__", {})
        tensors = {name: _read_tensor(data, 8 + length, entry) for name, entry in header.items()}
        return tensors, dict(metadata)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        raise _Fault("whose header is damaged") from None


def _read_tensor(data: bytes, start: int, entry: Mapping[str, Any]) -> Weight:
    word, shape, (begin, end) = _WORDS[entry["dtype"]], entry["shape"], entry["data_offsets"]
    dtype = _array_dtype(word)
    _expect(all(type(number) is int and number >= 0 for number in [*shape, begin, end]))
    _expect(end <= len(data) - start and end - begin == math.prod(shape) * dtype.itemsize)
    if word == "bool":
        return Weight(word, np.ndarray(shape, np.uint8, data, start + begin) != 0)
    return Weight(word, np.ndarray(shape, dtype, data, start + begin))


def _expect(is_right: bool, fault: str = "whose header is damaged") -> None:
    if not is_right:
        raise _Fault(fault)


# ===--- modules ---===


def write_module(modes: ModuleInModes, path: Path) -> None:
    """Raises NotExportable."""
    tensors = {**modes.training.parameters, **modes.training.buffers}
    for name in tensors:
        if name == "__metadata__" or name.startswith(f"{_KEY}."):
            raise NotExportable(f"expected a weight with another name, got {name!r}, which is ours")
    constants: dict[tuple[str, tuple[int, ...], bytes], str] = {}
    version = _VERSIONS[any(_computes_again(one) for one in (modes.evaluation, modes.training))]
    metadata = {_KEY: version, "format": "pt"}  # PyTorch's weights, for those who read them alone
    described: dict[str, Any] = {
        "is_training": modes.is_training,
        "parameters": {name: one.trains for name, one in modes.training.parameters.items()},
        "buffers": list(modes.training.buffers),
    }
    for mode in _MODES:
        programs = getattr(modes, mode)
        names = []
        for one in programs.constants:  # those of both modes stand once
            key = one.dtype, one.array.shape, one.array.tobytes()
            name = constants.setdefault(key, f"{_KEY}.constants.{len(constants)}")
            tensors[name] = one
            names.append(name)
        training, described_training = programs.training, None
        derivatives: list[list[list[int]]] = []
        metadata[mode] = programs.evaluation
        if training is not None:
            metadata[f"{mode}.forward"] = training.forward
            metadata[f"{mode}.backward"] = training.backward
            described_training = [
                training.inputs, training.outputs, training.tangents, training.gradients
            ]  # fmt: skip
            for order, derivative in enumerate(training.derivatives, start=2):
                metadata[f"{mode}.derivative{order}"] = derivative.program
                derivatives.append([derivative.tangents, derivative.gradients])
        described[mode] = {
            "constants": names,
            "changed_buffers": programs.changed_buffers,
            "is_random": programs.is_random,
            "inputs": programs.inputs,
            "results": programs.results,
            "training": described_training,
            "derivatives": derivatives,
            "draws_again": training is not None and training.draws_again,
        }
    write_tensors(path, tensors, {**metadata, "module": json.dumps(described)})


def _computes_again(programs: ModulePrograms) -> bool:
    """Whether a gradient draws numbers once more, or reads buffers as they were before a call."""
    training = programs.training
    if training is None:
        return False
    changes = programs.has_measured_results and bool(programs.changed_buffers)
    return training.draws_again or changes


@contextmanager
def _naming(path: Path) -> Any:
    try:
        yield
    except _Fault as fault:
        raise ValueError(
            f"{path}: expected a file that aten_bridge.program.save wrote, got one {fault}; save "
            "the module again"
        ) from None


def read_module(path: Path) -> ModuleInModes:
    """Raises OSError, and ValueError with what is wrong with the file."""
    data = path.read_bytes()
    with _naming(path):
        tensors, metadata = read_tensors(data)
        version = metadata.get(_KEY)
        _expect(version is not None, "of another program")
        _expect(version in _VERSIONS, f"of another version, {version!r}")
        try:
            return _read(tensors, metadata)
        except _Fault:
            raise
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise _Fault(f"whose metadata is damaged ({error})") from None


def _names(listed: Iterable[Any], known: Mapping[str, Any]) -> list[str]:
    names = list(listed)
    if missing := [name for name in names if name not in known]:
        raise _Fault(f"without the weight {missing[0]!r}")
    _expect(len(set(names)) == len(names), "that has a weight twice")
    return names


def _read(tensors: Mapping[str, Weight], metadata: Mapping[str, str]) -> ModuleInModes:
    module = json.loads(metadata["module"])
    trains = module["parameters"]
    parameters = {
        name: tensors[name]._replace(trains=trains[name] is True)
        for name in _names(trains, tensors)
    }
    buffers = {name: tensors[name] for name in _names(module["buffers"], tensors)}
    modes = []
    for mode in _MODES:
        described = module[mode]
        check_tree(described["inputs"])
        check_tree(described["results"])
        _expect(described["inputs"][0] == "sequence", "whose inputs are no sequence")
        training = described["training"]
        if training is not None:
            training = Training(
                metadata[f"{mode}.forward"],
                metadata[f"{mode}.backward"],
                *map(_places, training),
                derivatives=tuple(
                    Derivative(metadata[f"{mode}.derivative{order}"], *map(_places, listed))
                    for order, listed in enumerate(described.get("derivatives", []), start=2)
                ),
                draws_again=described.get("draws_again") is True,
            )
        programs = ModulePrograms(
            parameters=parameters,
            buffers=buffers,
            constants=[tensors[name] for name in described["constants"]],
            changed_buffers=_names(described["changed_buffers"], buffers),
            evaluation=metadata[mode],
            training=training,
            is_random=described["is_random"] is True,
            inputs=described["inputs"],
            results=described["results"],
        )
        _check(programs)
        modes.append(programs)
    _expect(modes[0].inputs == modes[1].inputs, "whose modes have other inputs")
    return ModuleInModes(*modes, module["is_training"] is True)


def _places(listed: Sequence[Any]) -> list[int]:
    _expect(all(type(place) is int for place in listed), "whose places are no ints")
    return list(listed)


def _forms(text: str, kind: str) -> list[str]:
    """Dtypes and sizes of the inputs or outputs of a program, such as "float32 [3, n]"."""
    lines = [line.strip(" ") for line in text.split("\n")]
    return [line.split(None, 2)[-1] for line in lines if line.startswith(f"{kind} ")]


def _check(programs: ModulePrograms) -> None:
    """Whether the programs are those of the weights, of the trees, and of one another."""
    fault = "whose programs have other inputs and outputs than the module"
    training = programs.training
    texts = [programs.evaluation]
    if training is not None:
        texts += [
            training.forward,
            training.backward,
            *(one.program for one in training.derivatives),
        ]
    for text in texts:
        _expect("\nseed " not in text, fault)
        try:
            check_program(text)
        except (ValueError, TypeError) as error:
            raise _Fault(f"with a program that is refused ({error})") from None
    inputs, outputs = _forms(programs.evaluation, "input"), _forms(programs.evaluation, "output")
    _expect(len(inputs) == programs.input_count, fault)
    _expect(len(outputs) == programs.result_count, fault)
    places = list(programs.buffers)
    for name, form in zip(programs.changed_buffers, outputs, strict=False):
        _expect(inputs[len(programs.parameters) + places.index(name)] == form, fault)
    if training is None:
        return
    given, results = _forms(training.backward, "input"), _forms(training.backward, "output")
    forward = _forms(training.forward, "output")
    _expect(not (training.outputs and programs.has_measured_results), fault)
    _expect(_forms(training.forward, "input") == inputs, fault)
    _expect(forward[: len(outputs)] == outputs, fault)
    for place, count in (
        *((place, len(inputs)) for place in training.inputs + training.gradients),
        *((place, len(forward)) for place in training.outputs),
        *((place, len(outputs)) for place in training.tangents),
    ):
        _expect(0 <= place < count, fault)
    wanted = [inputs[i] for i in training.inputs] + [forward[i] for i in training.outputs]
    _expect(given[: len(wanted)] == wanted, fault)
    _expect(len(given) == len(wanted) + len(training.tangents), fault)
    _expect(training.gradients == sorted(set(training.gradients)), fault)
    _expect(len(results) == len(training.gradients), fault)
    for place, form in zip(training.gradients, results, strict=True):
        is_weight = place < len(programs.parameters)
        _expect(form == inputs[place] or not is_weight, fault)
    for one in training.gradient_programs():
        derivative = one.derivative
        if derivative is None:
            continue
        for listed, limit in (
            (derivative.tangents, one.output_count),
            (derivative.gradients, len(one.operands)),
        ):
            _expect(listed == sorted(set(listed)), fault)
            _expect(all(0 <= place < limit for place in listed), fault)
        before, after = _forms(one.program, "input"), _forms(one.program, "output")
        wanted = [before[i] for i in one.operands]
        wanted += [after[i] for i in derivative.tangents]
        _expect(_forms(derivative.program, "input") == wanted, fault)
        found = _forms(derivative.program, "output")
        _expect(len(found) == len(derivative.gradients), fault)

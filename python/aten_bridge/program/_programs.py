"""What a host runs of a module: programs, and weights as NumPy's arrays. Needs no PyTorch."""

from __future__ import annotations

import re
from collections.abc import Set
from typing import NamedTuple

import numpy as np

from aten_bridge.program._trees import Tree, tensor_count

_NARROW = {
    "int64": "int32",
    "uint64": "uint32",
    "float64": "float32",
    "complex128": "complex64",
}
_WORDS = {"int64": 2, "uint64": 2, "float64": 2, "complex128": 4}  # how many of 32 bits one has
_WIDE_FORM = re.compile(rf"(input|output) %(\S+) ({'|'.join(_NARROW)}) (.*)")


class Weight(NamedTuple):
    """A parameter, a buffer or a constant."""

    dtype: str  # PyTorch's word
    array: np.ndarray  # for bfloat16 its bits, as uint16
    trains: bool = False

    def as_float32(self) -> np.ndarray:
        """The values of a bfloat16, which NumPy does not have."""
        # NumPy 1 makes a product of no dimension and a number an int64.
        bits = np.left_shift(self.array, 16, dtype=np.uint32)
        return np.asarray(bits).view(np.float32)


class Derivative(NamedTuple):
    """The gradient of a backward program, or of another gradient.

    Its inputs are those of that program, without what a forward program saved, and gradients of
    that program's outputs `tangents`. Its outputs are the gradients of the inputs `gradients`.
    """

    program: str
    tangents: list[int]
    gradients: list[int]


class GradientProgram(NamedTuple):
    """A backward program or a derivative, and how the next derivative stands to it."""

    program: str
    input_count: int
    operands: list[int]  # places of inputs that its derivative has too, before other gradients
    output_count: int
    derivative: Derivative | None

    @property
    def differentiated(self) -> list[int]:
        """Inputs whose gradients the next one gives."""
        return (
            [] if self.derivative is None else [self.operands[i] for i in self.derivative.gradients]
        )


class Training(NamedTuple):
    """The programs of a training step.

    The forward program's outputs are those of the evaluation's and what it saves; the backward
    program's inputs are the forward program's inputs `inputs`, its outputs `outputs`, and gradients
    of its outputs `tangents`. Its outputs are the gradients of the inputs `gradients`. The first of
    `derivatives` is that of the backward program, each other one that of the one before.

    A backward program that `draws_again`, and its derivatives, draw all of the forward one's random
    numbers once more, which take the same seeds.
    """

    forward: str
    backward: str
    inputs: list[int]
    outputs: list[int]
    tangents: list[int]
    gradients: list[int]
    derivatives: tuple[Derivative, ...] = ()
    draws_again: bool = False

    def gradient_programs(self) -> list[GradientProgram]:
        """The backward program and the derivatives, each of which differentiates the one before."""
        first, kept, last = map(len, (self.inputs, self.outputs, self.tangents))
        operands = [*range(first), *range(first + kept, first + kept + last)]
        input_count, found = first + kept + last, []
        text, gradients = self.backward, self.gradients
        for derivative in [*self.derivatives, None]:
            found.append(GradientProgram(text, input_count, operands, len(gradients), derivative))
            if derivative is not None:
                input_count = len(operands) + len(derivative.tangents)
                operands = list(range(input_count))
                text, gradients = derivative.program, derivative.gradients
        return found


class ModulePrograms(NamedTuple):
    """A module as programs.

    Their inputs are the parameters, the buffers, constants, and the module's own inputs; their
    outputs the buffers that a call changes, and the module's own.
    """

    parameters: dict[str, Weight]
    buffers: dict[str, Weight]
    constants: list[Weight]
    changed_buffers: list[str]
    evaluation: str
    training: Training | None
    is_random: bool
    inputs: Tree  # a sequence of the module's arguments
    results: Tree
    seed_count: int = 0  # inputs behind the module's own, which its random numbers follow from

    @property
    def weight_count(self) -> int:
        """Inputs of the evaluation program that are no arguments of the module's."""
        return len(self.parameters) + len(self.buffers) + len(self.constants)

    @property
    def input_count(self) -> int:
        """Inputs of the evaluation program."""
        return self.weight_count + tensor_count(self.inputs) + self.seed_count

    @property
    def result_count(self) -> int:
        """Outputs of the evaluation program: buffers that change, and the module's results."""
        return len(self.changed_buffers) + tensor_count(self.results)

    @property
    def has_measured_results(self) -> bool:
        """Whether sizes of outputs depend on values."""
        measured = set(re.findall(r"^size (\S+) ", self.evaluation, re.M))
        sizes = re.findall(r"^output \S+ \S+ (.*)", self.evaluation, re.M)
        return not measured.isdisjoint(re.findall(r"\w+", " ".join(sizes)))

    def narrowed(self) -> ModulePrograms:
        """The same for a host without dtypes of 64 bits, which passes those of 32.

        What the forward program saves keeps all of its bits.
        """
        training, count = self.training, self.result_count
        if training is not None:
            forward, outputs = _saved_apart(training.forward, training.outputs, count)
            saved = {i for i in outputs if i >= count}
            places = enumerate(outputs, len(training.inputs))
            training = training._replace(
                forward=narrowed(forward, saved_outputs=saved),
                backward=narrowed(training.backward, {i for i, out in places if out in saved}),
                outputs=outputs,
                derivatives=tuple(
                    one._replace(program=narrowed(one.program)) for one in training.derivatives
                ),
            )
        return self._replace(evaluation=narrowed(self.evaluation), training=training)

    def seeded(self, *dtypes: str) -> ModulePrograms:
        """The same with its random numbers from seeds, inputs of such dtypes behind the others.

        Equal calls of these have equal results.
        """
        lines = "".join(f"seed %seed.{i} {dtype}\n" for i, dtype in enumerate(dtypes))
        training = self.training
        if training is not None:
            if training.draws_again:
                end, count, more = self.input_count, len(training.inputs), len(dtypes)
                training = training._replace(
                    backward=_behind_inputs(training.backward, count, lines),
                    inputs=[*training.inputs, *range(end, end + more)],
                    derivatives=tuple(
                        Derivative(
                            _behind_inputs(one.program, count, lines),
                            one.tangents,
                            [i if i < count else i + more for i in one.gradients],
                        )
                        for one in training.derivatives
                    ),
                )
            training = training._replace(forward=training.forward + lines)
        return self._replace(
            evaluation=self.evaluation + lines,
            training=training,
            is_random=False,
            seed_count=len(dtypes),
        )


class ModuleInModes(NamedTuple):
    """A module in both modes, with the same weights."""

    evaluation: ModulePrograms
    training: ModulePrograms
    is_training: bool  # the mode in which it was given


def _behind_inputs(text: str, count: int, lines: str) -> str:
    """A program with such lines behind the first inputs, `count`, or in front of all."""
    begin = [match.start() for match in re.finditer(r"^input ", text, re.M)][count:]
    place = begin[0] if begin else len(text)
    return text[:place] + lines + text[place:]


def _saved_apart(text: str, outputs: list[int], count: int) -> tuple[str, list[int]]:
    """A forward program in which results that lose bits are saved as outputs of their own.

    `outputs` are those that it saves, of which the first `count` are its results; the new ones are
    returned.
    """
    forms = [line for line in text.split("\n") if line.startswith("output ")]
    again = [i for i in outputs if i < count and _WIDE_FORM.fullmatch(forms[i])]
    text += "".join(f"{forms[i]}\n" for i in again)
    return text, [len(forms) + again.index(i) if i in again else i for i in outputs]


def narrowed(
    text: str, saved_inputs: Set[int] = frozenset(), saved_outputs: Set[int] = frozenset()
) -> str:
    """A program whose inputs and outputs have no dtypes of 64 bits.

    Those at the given places pass from one program to another: as int32, of which a number of 64
    bits has two.
    """
    lines: list[str] = []
    outputs: list[str] = []
    input_count = 0
    for line in text.removesuffix("\n").split("\n"):  # texts may have other ends of lines
        is_input, is_output = line.startswith("input "), line.startswith("output ")
        is_saved = (is_input and input_count in saved_inputs) or (
            is_output and len(outputs) in saved_outputs
        )
        input_count += is_input
        form = _WIDE_FORM.fullmatch(line)
        if form is None:
            (outputs if is_output else lines).append(line)
            continue
        _, name, wide, sizes = form.groups()
        narrow = f"{name}_narrow" if is_input else f"{name}_narrow{len(outputs)}"
        dtype = "int32" if is_saved else _NARROW[wide]
        if is_saved:
            sizes = f"{sizes[:-1]}, {_WORDS[wide]}]".replace("[, ", "[")
        if is_input:
            lines.append(f"input %{narrow} {dtype} {sizes}")
            lines += _read(name, narrow, wide) if is_saved else [_converted(name, narrow, wide)]
        else:
            lines += _stored(narrow, name) if is_saved else [_converted(narrow, name, dtype)]
            outputs.append(f"output %{narrow} {dtype} {sizes}")
    return "\n".join([*lines, *outputs]) + "\n"


def _converted(name: str, source: str, dtype: str) -> str:
    return f"%{name} = aten::_to_copy(%{source}, dtype={dtype})"


def _stored(name: str, source: str) -> list[str]:
    """The bits of a value as int32, in a last dimension of its own."""
    return [
        f"%{name}.0 = aten::resolve_conj(%{source})",
        f"%{name}.1 = aten::resolve_neg(%{name}.0)",
        f"%{name}.2 = aten::unsqueeze(%{name}.1, -1)",
        f"%{name} = aten::view.dtype(%{name}.2, int32)",
    ]


def _read(name: str, source: str, dtype: str) -> list[str]:
    return [
        f"%{source}.0 = aten::view.dtype(%{source}, {dtype})",
        f"%{name} = aten::squeeze.dim(%{source}.0, -1)",
    ]

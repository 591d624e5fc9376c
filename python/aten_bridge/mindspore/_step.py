"""A module's training step: the forward program as an operator, with the backward one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mindspore as ms
from mindspore import ops

from aten_bridge._function import Task
from aten_bridge.mindspore import _caller
from aten_bridge.mindspore._gradient import bprop_maker
from aten_bridge.mindspore._host import HOST
from aten_bridge.mindspore._operator import Kernel
from aten_bridge.mindspore._unsized import Unsized
from aten_bridge.program._kernel import evaluation_kernel, program_kernel
from aten_bridge.program._programs import ModulePrograms, Training


class Step(Kernel):
    """The forward program, whose gradient the backward one computes.

    It returns what the module changes and returns, and behind that what the backward program needs.
    In PyNative mode the native caller calls both programs. It leaves what the backward one needs in
    the library, and writes buffers where they are: None stands for them in the results.
    """

    _programs: ModulePrograms | None = None
    _differentiate_again: Callable | None = (
        None  # what the native caller asks for gradients of gradients
    )
    _native_step: Any = None

    def _set_programs(self, programs: ModulePrograms, differentiate_again: Callable | None) -> Step:
        self._programs = programs
        self._differentiate_again = differentiate_again
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Step:
        return super().__deepcopy__(memo)._set_programs(self._programs, self._differentiate_again)

    # ===--- the native caller ---===

    def _caller_of(self, text: str, task: Task) -> Any:
        model = program_kernel(HOST, text, task=task)
        return _caller.make_caller(model, self.attrs | model.carried)

    def _make_caller(self) -> Any:
        if not self._is_native():
            return super()._make_caller()
        training, results = self._programs.training, self._programs.result_count
        kept = " ".join(map(str, training.outputs))
        return self._caller_of(training.forward, Task(f"forward {results} {kept}"))

    def _is_native(self) -> bool:
        """Whether the caller can write new buffers over the old ones, which have no gradients."""
        changed = len(self._programs.changed_buffers)
        return all(i >= changed for i in self._programs.training.tangents)

    def _make_native_step(self) -> Any:
        """How the native caller differentiates calls."""
        programs = self._programs
        training, names = programs.training, list(programs.buffers)
        of_weights = sum(i < programs.weight_count for i in training.gradients)
        wanted = " ".join(map(str, range(of_weights)))
        changed = len(programs.changed_buffers)
        part = f"backward {len(training.inputs)} {len(training.outputs)}"
        all_gradients, some = Task(part), Task(f"{part} {wanted}")
        return _caller.make_step(
            self._model,
            written=[len(programs.parameters) + names.index(n) for n in programs.changed_buffers],
            gives_tuple=self._model.description.has_several_outputs,
            inputs=training.inputs,
            tangents=[i - changed for i in training.tangents],
            gradients=training.gradients,
            weight_count=programs.weight_count,
            differentiate_again=self._differentiate_again,
            no_gradient=self._model.missing_gradient(),
            of_all=self._caller_of(training.backward, all_gradients),
            of_weights=self._caller_of(training.backward, some) if wanted else None,
        )

    def _add_call(self, args: Sequence[Any], dtypes: list[str], shapes: list[list[int]]) -> bool:
        if not self._is_native():
            return super()._add_call(args, dtypes, shapes)
        results = self._programs.result_count
        if self._native_step is None:
            self._native_step = self._make_native_step()
        return self._caller.add_step(args, dtypes[:results], shapes[:results], self._native_step)


def _bprop(
    operator: Kernel, input_count: int, arguments: Sequence[str], gradients: Sequence[int]
) -> Any:
    """A `bprop` for so many inputs, `a0` and so on, that calls an operator with the arguments.

    The operator's results are the gradients of the inputs at `gradients`.
    """
    inputs = [f"a{i}" for i in range(input_count)]
    entries = [f"zeros_like({name})" for name in inputs]
    for entry, i in zip(
        _parts("gradients", range(len(gradients)), len(gradients) > 1), gradients, strict=True
    ):
        entries[i] = entry
    make = bprop_maker(
        "".join(f"{name}, " for name in inputs),
        ", ".join(arguments),
        "".join(f"{entry}, " for entry in entries),
    )
    return make(operator, ops.zeros_like)


def _parts(name: str, places: Sequence[int], has_several: bool) -> list[str]:
    """Some of an operator's outputs, which are a tuple where it has several."""
    return [f"{name}[{i}]" if has_several else name for i in places]


def _gradient_operators(training: Training) -> list[Kernel]:
    """The backward program and its derivatives, each the gradient of the one before."""
    made: list[Kernel] = []
    for one in reversed(training.gradient_programs()):
        bprop = None
        if one.derivative is not None:
            arguments = [f"a{i}" for i in one.operands]
            arguments += _parts("dout", one.derivative.tangents, one.output_count > 1)
            bprop = _bprop(made[0], one.input_count, arguments, one.differentiated)
        made.insert(0, Kernel(program_kernel(HOST, one.program, bprop)))
    return made


def _make_differentiate_again(operators: Sequence[Kernel], training: Training) -> Callable | None:
    """What the native caller asks for gradients of gradients; None: there are none.

    It takes operands of the backward program and gradients of its results, and returns a gradient
    for each of the operands that has one, else None.
    """
    if not training.derivatives:
        return None
    operator, derivative = operators[1], training.derivatives[0]
    operand_count = len(training.gradient_programs()[0].operands)

    def differentiate(operands: Sequence[ms.Tensor]) -> list[Any]:
        tangents = [operands[operand_count + i] for i in derivative.tangents]
        results = operator(*operands[:operand_count], *tangents)
        gradients: list[Any] = [None] * operand_count
        given = results if isinstance(results, tuple) else (results,)
        for i, gradient in zip(derivative.gradients, given, strict=True):
            gradients[i] = gradient
        return gradients

    return differentiate


def _make_bprop(
    backward: Kernel, training: Training, has_several_outputs: bool, input_count: int
) -> Any:
    """What MindSpore differentiates the forward program with, where the native caller does not."""
    arguments = [f"a{i}" for i in training.inputs]
    arguments += _parts("out", training.outputs, has_several_outputs)
    arguments += _parts("dout", training.tangents, has_several_outputs)
    return _bprop(backward, input_count, arguments, training.gradients)


def make_measured(programs: ModulePrograms) -> Unsized:
    """The operator of a module without a gradient, or whose results have to be measured.

    Its backward program has the sizes of results from those of their gradients.
    """
    training, bprop = programs.training, None
    if training is not None:
        backward = _gradient_operators(training)[0]
        bprop = _make_bprop(backward, training, programs.result_count > 1, programs.input_count)
    return Unsized(evaluation_kernel(HOST, programs.evaluation, bprop))


def make_step(programs: ModulePrograms) -> Step:
    """The operator of a module that has a gradient."""
    training = programs.training
    operators = _gradient_operators(training)
    several = program_kernel(HOST, training.forward).description.has_several_outputs
    bprop = _make_bprop(operators[0], training, several, programs.input_count)
    step = Step(program_kernel(HOST, training.forward, bprop))
    return step._set_programs(programs, _make_differentiate_again(operators, training))

"""A module's training step: the forward program as an operator, with the backward one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mindspore import ops

from aten_bridge.mindspore import _caller
from aten_bridge.mindspore._gradient import bprop_maker
from aten_bridge.mindspore._host import HOST
from aten_bridge.mindspore._operator import Kernel
from aten_bridge.program._kernel import program_kernel
from aten_bridge.program._programs import ModulePrograms, Training


class Step(Kernel):
    """The forward program, whose gradient the backward one computes.

    It returns what the module changes and returns, and behind that what the backward program needs.
    In PyNative mode the native caller calls both programs. It leaves what the backward one needs in
    the library, and writes buffers where they are: None stands for them in the results.
    """

    _programs: ModulePrograms | None = None
    _native_step: Any = None

    def _set_programs(self, programs: ModulePrograms) -> Step:
        self._programs = programs
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Step:
        return super().__deepcopy__(memo)._set_programs(self._programs)

    # ===--- the native caller ---===

    def _caller_of(self, text: str, part: str) -> Any:
        model = program_kernel(HOST, text, part=part)
        return _caller.make_caller(model, self.attrs | model.carried)

    def _make_caller(self) -> Any:
        if not self._is_native():
            return super()._make_caller()
        training, results = self._programs.training, self._programs.result_count
        kept = " ".join(map(str, training.outputs))
        return self._caller_of(training.forward, f"forward {results} {kept}")

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
        return _caller.make_step(
            self._model,
            written=[len(programs.parameters) + names.index(n) for n in programs.changed_buffers],
            gives_tuple=self._model.description.has_several_outputs,
            inputs=training.inputs,
            tangents=[i - changed for i in training.tangents],
            gradients=training.gradients,
            weight_count=programs.weight_count,
            no_gradient=self._model.missing_gradient(),
            of_all=self._caller_of(training.backward, part),
            of_weights=self._caller_of(training.backward, f"{part} {wanted}") if wanted else None,
        )

    def _add_call(self, args: Sequence[Any], dtypes: list[str], shapes: list[list[int]]) -> bool:
        if not self._is_native():
            return super()._add_call(args, dtypes, shapes)
        results = self._programs.result_count
        if self._native_step is None:
            self._native_step = self._make_native_step()
        return self._caller.add_step(args, dtypes[:results], shapes[:results], self._native_step)


def _make_bprop(training: Training, has_several_outputs: bool, input_count: int) -> Any:
    """What MindSpore differentiates the forward program with, where the native caller does not."""
    inputs = [f"a{i}" for i in range(input_count)]
    arguments = [inputs[i] for i in training.inputs]
    arguments += [f"out[{i}]" if has_several_outputs else "out" for i in training.outputs]
    arguments += [f"dout[{i}]" if has_several_outputs else "dout" for i in training.tangents]
    gradients = [f"zeros_like({name})" for name in inputs]
    for place, i in enumerate(training.gradients):
        gradients[i] = f"gradients[{place}]" if len(training.gradients) > 1 else "gradients"
    make = bprop_maker(
        "".join(f"{name}, " for name in inputs),
        ", ".join(arguments),
        "".join(f"{gradient}, " for gradient in gradients),
    )
    return make(Kernel(program_kernel(HOST, training.backward)), ops.zeros_like)


def make_step(programs: ModulePrograms) -> Step:
    """The operator of a module that has a gradient."""
    training = programs.training
    model = program_kernel(HOST, training.forward)
    bprop = _make_bprop(training, model.description.has_several_outputs, programs.input_count)
    return Step(program_kernel(HOST, training.forward, bprop))._set_programs(programs)

"""A PyTorch module as a cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import mindspore as ms
import torch
from mindspore import nn, ops

from aten_bridge.mindspore._gradient import bprop_maker, run_source
from aten_bridge.mindspore._host import HOST
from aten_bridge.mindspore._operator import Kernel
from aten_bridge.program import ModulePrograms, Training, export_both
from aten_bridge.program._kernel import program_kernel
from aten_bridge.program._trees import children, flatten_source, unflatten_source


def _to_mindspore(tensor: torch.Tensor) -> ms.Tensor:
    """A copy. NumPy has no bfloat16."""
    tensor = tensor.detach().cpu().contiguous()
    if tensor.dtype == torch.bfloat16:
        return ms.Tensor(tensor.float().numpy()).astype(ms.bfloat16)
    return ms.Tensor(tensor.numpy().copy())


def _parameters(tensors: Mapping[str, torch.Tensor], trains: bool) -> ms.ParameterTuple:
    return ms.ParameterTuple(
        [
            ms.Parameter(
                _to_mindspore(tensor), name=name, requires_grad=trains and tensor.requires_grad
            )
            for name, tensor in tensors.items()
        ]
    )


def _step_kernel(training: Training, input_count: int, is_random: bool) -> Kernel:
    """The forward program of a training step, whose gradient the backward one computes."""
    backward = Kernel(program_kernel(HOST, training.backward))
    inputs = [f"a{i}" for i in range(input_count)]
    arguments = [inputs[i] for i in training.inputs]
    model = program_kernel(HOST, training.forward, None, is_random)
    gives_tuple = model.description.gives_tuple
    arguments += [f"out[{i}]" if gives_tuple else "out" for i in training.outputs]
    arguments += [f"dout[{i}]" if gives_tuple else "dout" for i in training.tangents]
    gradients = [f"zeros_like({name})" for name in inputs]
    for place, i in enumerate(training.gradients):
        gradients[i] = f"gradients[{place}]" if len(training.gradients) > 1 else "gradients"
    make = bprop_maker(
        "".join(f"{name}, " for name in inputs),
        ", ".join(arguments),
        "".join(f"{gradient}, " for gradient in gradients),
    )
    bprop = make(backward, ops.zeros_like)
    return Kernel(program_kernel(HOST, training.forward, bprop, is_random))


class _Mode:
    """What runs in one of the two modes of a module."""

    def __init__(self, programs: ModulePrograms, input_count: int):
        names = list(programs.buffers)
        self.changed = tuple(names.index(name) for name in programs.changed_buffers)
        self.count = programs.result_count
        if programs.training is None:
            self.kernel = Kernel(
                program_kernel(HOST, programs.evaluation, None, programs.is_random)
            )
        else:
            self.kernel = _step_kernel(programs.training, input_count, programs.is_random)
        sources = unflatten_source("unflatten", programs.out_spec, programs.constant_results)
        self.unflatten = run_source(sources)["unflatten"]
        self.constants = tuple(map(_to_mindspore, programs.constants.values()))
        self.gives_tuple = self.kernel._model.description.gives_tuple


class Module(nn.Cell):
    """A PyTorch module. Made by `module`."""

    def __init__(self, evaluation: ModulePrograms, training: ModulePrograms):
        """Use `module`."""
        super().__init__()
        self.weights = _parameters(training.parameters, trains=True)
        self.buffers_of_module = _parameters(training.buffers, trains=False)
        self.flatten = run_source(flatten_source("flatten", training.in_spec))["flatten"]
        kept = len(self.weights) + len(self.buffers_of_module)
        arguments, _ = children(training.in_spec)
        for name, programs in (("evaluation", evaluation), ("training", training)):
            mode = _Mode(programs, kept + len(programs.constants) + arguments.num_leaves)
            setattr(self, f"{name}_constants", mode.constants)
            setattr(self, f"{name}_kernel", mode.kernel)
            setattr(self, f"{name}_changed", mode.changed)
            setattr(self, f"{name}_count", mode.count)
            setattr(self, f"{name}_unflatten", mode.unflatten)
            setattr(self, f"{name}_gives_tuple", mode.gives_tuple)

    def construct(self, *inputs: Any) -> Any:
        flat = self.flatten(*inputs)
        if self.training:
            flat = (*self.weights, *self.buffers_of_module, *self.training_constants, *flat)
            results = self.training_kernel(*flat)
            if not self.training_gives_tuple:
                results = (results,)
            for i, place in enumerate(self.training_changed):
                ops.assign(self.buffers_of_module[place], results[i])
            results = results[len(self.training_changed) : self.training_count]
            return self.training_unflatten(results)
        flat = (*self.weights, *self.buffers_of_module, *self.evaluation_constants, *flat)
        results = self.evaluation_kernel(*flat)
        if not self.evaluation_gives_tuple:
            results = (results,)
        for i, place in enumerate(self.evaluation_changed):
            ops.assign(self.buffers_of_module[place], results[i])
        results = results[len(self.evaluation_changed) : self.evaluation_count]
        return self.evaluation_unflatten(results)


def make_module(source: torch.nn.Module, example_inputs: Sequence[Any], shapes: Any) -> Module:
    made = Module(*export_both(source, example_inputs, shapes))
    made.set_train(source.training)
    return made

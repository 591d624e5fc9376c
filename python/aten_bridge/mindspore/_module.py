"""A PyTorch module as a cell."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import mindspore as ms
import torch
from mindspore import nn, ops

from aten_bridge.mindspore._gradient import run_source
from aten_bridge.mindspore._host import HOST
from aten_bridge.mindspore._operator import Kernel
from aten_bridge.mindspore._step import make_step
from aten_bridge.program import ModulePrograms, export_both
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


def _make_run(programs: ModulePrograms, kept: int) -> Callable:
    """What a call does in one of the two modes; `kept` weights and buffers are given to it."""
    arguments, _ = children(programs.in_spec)
    input_count = kept + len(programs.constants) + arguments.num_leaves
    if programs.training is None:
        kernel = Kernel(program_kernel(HOST, programs.evaluation, None, programs.is_random))
    else:
        kernel = make_step(programs, kept + len(programs.constants), input_count)
    gives_tuple = kernel._model.description.gives_tuple
    constants = tuple(map(_to_mindspore, programs.constants.values()))
    names = list(programs.buffers)
    changed = tuple(names.index(name) for name in programs.changed_buffers)
    first, end = len(changed), programs.result_count
    source = unflatten_source(programs.out_spec, programs.constant_results)
    unflatten = run_source(source)["unflatten"]

    def run(weights, buffers, inputs):
        results = kernel(*weights, *buffers, *constants, *inputs)
        if not gives_tuple:
            results = (results,)
        for i, place in enumerate(changed):
            if results[i] is not None:
                ops.assign(buffers[place], results[i])
        return unflatten(results[first:end])

    return run


class Module(nn.Cell):
    """A PyTorch module. Made by `module`."""

    def __init__(self, evaluation: ModulePrograms, training: ModulePrograms):
        """Use `module`."""
        super().__init__()
        self.weights = _parameters(training.parameters, trains=True)
        self.buffers_of_module = _parameters(training.buffers, trains=False)
        self.flatten = run_source(flatten_source(training.in_spec))["flatten"]
        kept = len(self.weights) + len(self.buffers_of_module)
        self.evaluate = _make_run(evaluation, kept)
        self.train_once = _make_run(training, kept)

    def construct(self, *inputs: Any) -> Any:
        flat = self.flatten(*inputs)
        if self.training:
            return self.train_once(self.weights, self.buffers_of_module, flat)
        return self.evaluate(self.weights, self.buffers_of_module, flat)


def make_module(source: torch.nn.Module, example_inputs: Sequence[Any], shapes: Any) -> Module:
    made = Module(*export_both(source, example_inputs, shapes))
    made.set_train(source.training)
    return made

"""A PyTorch module as a function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import torch

from aten_bridge.jax._host import HOST
from aten_bridge.jax._operator import Kernel, conjugate
from aten_bridge.program import ModulePrograms, export_both
from aten_bridge.program._kernel import program_kernel
from aten_bridge.program._trees import children, flatten_source, unflatten_source


def _to_jax(tensor: torch.Tensor) -> jax.Array:
    """A copy. NumPy has no bfloat16."""
    tensor = tensor.detach().cpu().contiguous()
    if tensor.dtype == torch.bfloat16:
        return jnp.asarray(tensor.float().numpy(), dtype=jnp.bfloat16)
    return jnp.array(tensor.numpy(), copy=True)


def _tuple_of(kernel: Kernel) -> Callable[..., tuple[jax.Array, ...]]:
    if kernel._model.description.gives_tuple:
        return kernel
    return lambda *arrays: (kernel(*arrays),)


def _step(programs: ModulePrograms) -> Callable[..., tuple[jax.Array, ...]]:
    """The forward program, whose gradient the backward one computes."""
    training, is_random = programs.training, programs.is_random
    if training is None:
        return _tuple_of(Kernel(program_kernel(HOST, programs.evaluation, None, is_random)))
    forward = _tuple_of(Kernel(program_kernel(HOST, training.forward, None, is_random)))
    backward = _tuple_of(Kernel(program_kernel(HOST, training.backward)))
    count = programs.result_count

    @jax.custom_vjp
    def step(*arrays: jax.Array) -> tuple[jax.Array, ...]:
        return forward(*arrays)[:count]

    def record(*arrays: jax.Array) -> Any:
        results = forward(*arrays)
        kept = [results[i] for i in training.outputs]
        return results[:count], ([arrays[i] for i in training.inputs], kept, arrays)

    def differentiate(residuals: Any, douts: Sequence[jax.Array]) -> tuple[Any, ...]:
        inputs, kept, arrays = residuals
        # PyTorch's gradients of complex numbers are the conjugates of JAX's.
        given = (conjugate(douts[i]) for i in training.tangents)
        found = map(conjugate, backward(*inputs, *kept, *given))
        gradients: list[Any] = [None] * len(arrays)  # integers and frozen weights have zeros
        for gradient, i in zip(found, training.gradients, strict=True):
            gradients[i] = gradient
        return tuple(gradients)

    step.defvjp(record, differentiate)
    return step


def make_module(
    source: torch.nn.Module, example_inputs: Sequence[Any], shapes: Any
) -> tuple[Callable[..., Any], dict[str, dict[str, jax.Array]]]:
    evaluation, training = export_both(
        source, example_inputs, shapes, narrows=not jax.config.jax_enable_x64
    )
    namespace: dict[str, Any] = {}
    exec(flatten_source(training.in_spec), namespace)
    flatten, steps = namespace["flatten"], {}
    for trains, programs in ((False, evaluation), (True, training)):
        exec(unflatten_source(programs.out_spec, programs.constant_results), namespace)
        constants = tuple(map(_to_jax, programs.constants.values()))
        steps[trains] = programs, constants, _step(programs), namespace["unflatten"]
    input_count = len(children(children(training.in_spec)[0]))

    def apply(
        variables: Mapping[str, Mapping[str, jax.Array]], *inputs: Any, train: bool = False
    ) -> Any:
        if len(inputs) != input_count:
            raise TypeError(
                f"apply: expected {input_count} input{'s' * (input_count != 1)} of the module, got "
                f"{len(inputs)}"
            )
        programs, constants, step, unflatten = steps[train]
        params, buffers = variables["params"], variables["buffers"]
        results = step(
            *(params[name] for name in programs.parameters),
            *(buffers[name] for name in programs.buffers),
            *constants,
            *flatten(*inputs),
        )
        changed = len(programs.changed_buffers)
        returned = unflatten(results[changed:])
        if not train:
            return returned
        new = dict(zip(programs.changed_buffers, results[:changed], strict=True))
        return returned, {**buffers, **new}

    variables = {
        "params": {name: _to_jax(one) for name, one in training.parameters.items()},
        "buffers": {name: _to_jax(one) for name, one in training.buffers.items()},
    }
    return apply, variables

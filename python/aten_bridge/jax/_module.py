"""A PyTorch module as a function."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from aten_bridge._text import did_you_mean, format_value
from aten_bridge.jax._host import HOST
from aten_bridge.jax._operator import Kernel, conjugate, forward_mode_text, is_forward_mode
from aten_bridge.jax._sharding import gather, spread_alike
from aten_bridge.jax._unsized import Unsized
from aten_bridge.jax._varying import make_alike
from aten_bridge.program._kernel import evaluation_kernel, program_kernel
from aten_bridge.program._programs import (
    GradientProgram,
    ModuleInModes,
    ModulePrograms,
    Training,
    Weight,
)
from aten_bridge.program._trees import flatten_source, input_fault, unflatten_source


def _to_jax(weight: Weight, name: str = "a constant") -> jax.Array:
    """A copy. Raises ValueError for numbers of 64 bits that JAX's 32 bits cannot hold."""
    array = weight.array.view(jnp.bfloat16) if weight.dtype == "bfloat16" else weight.array
    dtype = jax.dtypes.canonicalize_dtype(array.dtype)
    if dtype == array.dtype:
        return jnp.array(array, copy=True)
    with np.errstate(over="ignore"):
        copied = array.astype(dtype)
    is_whole = np.issubdtype(dtype, np.integer)
    fits = copied == array if is_whole else np.isfinite(copied) == np.isfinite(array)
    if not fits.all():
        raise ValueError(
            f"module: {name}: expected numbers that JAX's {dtype} can hold, got "
            f"{array[~fits].flat[0]}; set jax_enable_x64 before the module is made"
        )
    return jnp.asarray(copied)


def _tuple_of(kernel: Kernel, targets: list[str]) -> Callable[..., tuple[jax.Array, ...]]:
    targets += kernel.targets
    if kernel._model.description.has_several_outputs:
        return kernel
    return lambda *arrays: (kernel(*arrays),)


def _backward(training: Training, targets: list[str]) -> Callable[..., tuple[jax.Array, ...]]:
    """The backward program, with its derivatives."""
    made = None
    for one in reversed(training.gradient_programs()):
        kernel = _tuple_of(Kernel(program_kernel(HOST, one.program)), targets)
        made = kernel if made is None else _with_derivative(kernel, one, made)
    return made


def _with_derivative(
    kernel: Callable[..., tuple[jax.Array, ...]],
    program: GradientProgram,
    derivative: Callable[..., tuple[jax.Array, ...]],
) -> Callable[..., tuple[jax.Array, ...]]:
    @jax.custom_vjp
    def compute(*arrays: jax.Array) -> tuple[jax.Array, ...]:
        return tuple(kernel(*arrays))

    def record(*arrays: jax.Array) -> Any:
        return compute(*arrays), arrays

    def differentiate(arrays: tuple[jax.Array, ...], douts: Sequence[jax.Array]) -> tuple[Any, ...]:
        given = [arrays[i] for i in program.operands]
        given += [conjugate(douts[i]) for i in program.derivative.tangents]
        gradients: list[Any] = [None] * program.input_count  # None: zeros
        for gradient, i in zip(derivative(*given), program.differentiated, strict=True):
            gradients[i] = conjugate(gradient)
        return tuple(gradients)

    compute.defvjp(record, differentiate)
    return compute


def _step(programs: ModulePrograms, targets: list[str]) -> Callable[..., tuple[jax.Array, ...]]:
    """The forward program, whose gradient the backward one computes; adds what XLA calls."""
    training, is_random = programs.training, programs.is_random
    is_measured = training is None or programs.has_measured_results
    if is_measured:
        kernel = evaluation_kernel(HOST, programs.evaluation, is_random=is_random)
    else:
        kernel = program_kernel(HOST, training.forward, None, is_random)
    forward = _tuple_of((Unsized if is_measured else Kernel)(kernel), targets)
    if training is None:
        return forward
    backward = _backward(training, targets)
    count = programs.result_count

    def differentiate(residuals: Any, douts: Sequence[jax.Array]) -> tuple[Any, ...]:
        inputs, kept = residuals
        # PyTorch's gradients of complex numbers are the conjugates of JAX's.
        given = (conjugate(douts[i]) for i in training.tangents)
        found = map(conjugate, backward(*inputs, *kept, *given))
        gradients: list[Any] = [None] * programs.input_count  # None: zeros
        for gradient, i in zip(found, training.gradients, strict=True):
            gradients[i] = gradient
        return tuple(gradients)

    @jax.custom_vjp
    def run(*arrays: jax.Array) -> tuple[jax.Array, ...]:
        """All outputs, so that the gradient itself can be differentiated."""
        return tuple(forward(*arrays))

    @jax.custom_vjp
    def step(*arrays: jax.Array) -> tuple[jax.Array, ...]:
        return tuple(forward(*arrays))[:count]

    def record(*arrays: jax.Array) -> Any:
        if training.draws_again and not programs.seed_count:
            raise ValueError(
                "apply: expected a key for a gradient that draws the module's random numbers "
                "again, got none; give rng=jax.random.key(0)"
            )
        results = run(*arrays)
        kept = [results[i] for i in training.outputs]
        return results, ([arrays[i] for i in training.inputs], kept)

    def record_step(*arrays: jax.Array) -> Any:
        results, residuals = record(*arrays)
        return results[:count], residuals  # JAX would make zero gradients for what is kept

    run.defvjp(record, differentiate)
    step.defvjp(record_step, differentiate)
    return step


def _is_array(value: Any) -> bool:
    return isinstance(value, (jax.Array, np.ndarray, np.generic))


def _check_call(variables: Any, train: Any) -> None:
    """Raises TypeError where another value is given as `variables` or `train`."""
    if not isinstance(variables, Mapping) or "params" not in variables:
        got = "another value"
        if isinstance(variables, Mapping):
            got = f"one with {', '.join(map(repr, list(variables)[:3])) or 'nothing'}"
        elif _is_array(variables):
            got = "an array"
        raise TypeError(
            "apply: expected the module's variables first, a dict with 'params' and 'buffers', "
            f"got {got}"
        )
    if not isinstance(train, (bool, int, np.bool_)) or train not in (0, 1):
        raise TypeError(
            "apply: train: expected True or False, which a compiled function knows, got another "
            "value; give jax.jit static_argnames='train', or compile lambda variables, x: "
            "apply(variables, x, train=True)"
        )


def _checked(
    variables: Mapping[str, Mapping[str, jax.Array]], kind: str, known: Mapping[str, Weight]
) -> Mapping[str, jax.Array]:
    """The weights of a kind. Raises ValueError where they have other names than the module's."""
    given = variables.get(kind, {})
    if not isinstance(given, Mapping):
        got = "an array" if _is_array(given) else format_value(given)
        raise TypeError(f"apply: {kind}: expected a dict of arrays, got {got}")
    if given.keys() != known.keys():
        faults = [f"none of {name!r}" for name in known if name not in given]
        faults += [
            f"{name!r}, which the module does not have" + did_you_mean(str(name), known)
            for name in given
            if name not in known
        ]
        raise ValueError(f"apply: {kind}: expected the module's weights, got {'; '.join(faults)}")
    for name, one in given.items():
        if type(one).__module__.partition(".")[0] == "torch":
            raise TypeError(
                f"apply: {kind}: {name!r}: expected an array, got a torch.{type(one).__name__}; "
                "convert it, by way of NumPy"
            )
    return {
        # A gradient would be taken of NumPy's arrays as such.
        name: jnp.asarray(one) if _is_array(one) else one
        for name, one in given.items()
    }


def _seed(rng: Any) -> jax.Array:
    """The numbers of a key, the lowest first: jax.random.key(7) begins as torch.manual_seed(7)."""
    if not isinstance(rng, (jax.Array, np.ndarray)):
        raise TypeError(
            f"apply: rng: expected one key of jax.random, such as jax.random.key(7), got {rng!r}"
        )
    is_key = jnp.issubdtype(rng.dtype, jax.dtypes.prng_key)
    data = jax.random.key_data(rng) if is_key else rng
    if data.ndim != 1 or data.dtype != jnp.uint32:
        raise TypeError(
            f"apply: rng: expected one key of jax.random, got {rng.dtype} {[*rng.shape]}"
        )
    return jax.lax.bitcast_convert_type(data[::-1], jnp.int32)


def make_module(
    modes: ModuleInModes,
) -> tuple[Callable[..., Any], dict[str, dict[str, jax.Array]]]:
    narrows = not jax.config.jax_enable_x64
    evaluation, training = (one.narrowed() if narrows else one for one in modes[:2])
    namespace: dict[str, Any] = {}
    exec(flatten_source(training.inputs), namespace)
    flatten, made = namespace["flatten"], {}
    targets: list[str] = []
    for trains, programs in ((False, evaluation), (True, training)):
        exec(unflatten_source(programs.results), namespace)
        constants = tuple(map(_to_jax, programs.constants))
        made[trains] = programs, constants, namespace["unflatten"]

    @functools.cache
    def step_of(trains: bool, has_seed: bool) -> Callable[..., tuple[jax.Array, ...]]:
        programs = made[trains][0]
        return _step(programs.seeded("int32") if has_seed else programs, targets)

    for trains, (programs, *_) in made.items():
        step_of(trains, False)  # what is wrong with a program is an error here
        if programs.is_random:
            step_of(trains, True)  # what another process has exported calls it

    def apply(
        variables: Mapping[str, Mapping[str, jax.Array]],
        *inputs: Any,
        train: bool = False,
        rng: jax.Array | None = None,
    ) -> Any:
        _check_call(variables, train)
        if fault := input_fault(training.inputs, inputs, _is_array):
            raise TypeError(f"apply: {fault}")
        programs, constants, unflatten = made[train]
        seeds = [] if rng is None or not programs.is_random else [_seed(rng)]
        step = step_of(train, bool(seeds))
        params = _checked(variables, "params", programs.parameters)
        buffers = _checked(variables, "buffers", programs.buffers)
        arrays = (
            *(params[name] for name in programs.parameters),
            *(buffers[name] for name in programs.buffers),
            *constants,
            *map(jnp.asarray, flatten(*inputs)),
            *seeds,
        )
        # In front of a step, so that JAX gives cotangents the types of what is given here.
        arrays, shardings = gather("apply", arrays)
        arrays, _ = make_alike(arrays)
        try:
            results = step(*arrays)
        except TypeError as error:
            if not is_forward_mode(error):
                raise
            raise TypeError(forward_mode_text("apply")) from error
        changed = len(programs.changed_buffers)
        returned = unflatten(spread_alike(results[changed:], shardings))
        if not train:
            return returned
        new = dict(zip(programs.changed_buffers, results[:changed], strict=True))
        return returned, {**buffers, **new}

    variables = {
        "params": {name: _to_jax(one, repr(name)) for name, one in training.parameters.items()},
        "buffers": {name: _to_jax(one, repr(name)) for name, one in training.buffers.items()},
    }
    apply.targets = tuple(dict.fromkeys(targets))
    return apply, variables

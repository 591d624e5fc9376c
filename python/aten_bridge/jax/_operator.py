"""The function of a kernel: a call of XLA's, with its shapes and its gradient."""

from __future__ import annotations

import functools
import numbers
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from aten_bridge._function import is_function
from aten_bridge._kernel import KernelModel
from aten_bridge._text import format_value, or_list
from aten_bridge.jax._host import DTYPES, HOST, NONE, for_xla
from aten_bridge.jax._inputs import Inputs, read_call
from aten_bridge.jax._outputs import Output, check_outputs
from aten_bridge.jax._programs import (
    Program,
    Programs,
    allow_effects,
    key_of,
    make_program,
    shared,
)
from aten_bridge.jax._sharding import gather, spread_alike
from aten_bridge.jax._targets import target_of
from aten_bridge.jax._varying import make_alike, struct

# Those of jax.ffi.ffi_call that are not deprecated.
_VMAP_METHODS = ("sequential", "sequential_unrolled", "expand_dims", "broadcast_all")

_FORWARD_MODE = "(jvp) to a custom_vjp"  # in what JAX says of it (0.6 and 0.10)


def is_forward_mode(error: TypeError) -> bool:
    return _FORWARD_MODE in str(error)


def forward_mode_text(name: str) -> str:
    return (
        f"{name}: expected reverse mode, as of jax.grad, jax.vjp and jax.jacrev, since gradient "
        "kernels go backward, got forward mode, as of jax.jvp, jax.jacfwd and jax.hessian"
    )


class Kernel:
    """A function of a kernel's. Made by `kernel`."""

    def __init__(
        self,
        model: KernelModel,
        out: Any = None,
        vmap_method: str | None = "sequential",
        input_output_aliases: Mapping[int, int] | None = None,
    ):
        """Use `kernel`."""
        self._model = model
        self.__name__ = self.__qualname__ = name = model.name
        self._check_kernel(out)
        self._target = target_of(model.function)
        is_method = isinstance(vmap_method, str) and vmap_method in _VMAP_METHODS
        if vmap_method is not None and not is_method:
            raise ValueError(
                f"{name}: expected vmap_method to be one of {or_list(_VMAP_METHODS)}, or None, got "
                + format_value(vmap_method)
            )
        self._out, self._vmap_method = out, vmap_method
        self._aliases = self._checked_aliases(input_output_aliases)
        self._for_xla = for_xla(model.carried, model.function.known_attributes)
        self._programs = Programs()
        self._gradients: dict[KernelModel, Kernel] = {}
        if model.named_gradient is not None:
            self._gradient(model.named_gradient)  # registers its target

    @functools.cached_property
    def _knows_numbers(self) -> bool:
        """Whether shapes may depend on the values of numbers among the inputs."""
        inputs = self._model.description.inputs
        return self._out is None and not all(one.is_tensor for one in inputs)

    @functools.cached_property
    def _key(self) -> Hashable:
        """What functions have in common whose programs are the same."""
        named = self._model.named_gradient
        return (
            self.__name__,
            self._target,
            key_of(self._for_xla),
            self._vmap_method,
            tuple(self._aliases.items()),
            self._model.has_side_effect,
            self._model.forward is not None,
            named and self._gradient(named)._key,
            self._model.function.schema,
        )

    def _check_kernel(self, out: Any) -> None:
        model, description = self._model, self._model.description
        # A list's gradient has as many outputs as the list has tensors.
        if description is None or (description.is_raw and not description.is_gradient):
            raise ValueError(
                f"{model.name}: expected a kernel of tensors that was exported with "
                "ATEN_BRIDGE_EXPORT, got a C function, or a kernel over a CallFrame, of "
                "MindSpore's interface"
            )
        if out is None and model.needs_shapes:
            raise ValueError(
                f"{model.name}: expected out, or a kernel with a meta function, got neither; give "
                "kernel() out=, a jax.ShapeDtypeStruct or a function that returns one, or export "
                "the kernel with aten_bridge::meta() or aten_bridge::meta(function)"
            )

    def _checked_aliases(self, aliases: Any) -> dict[int, int]:
        if aliases is None:
            return {}
        if not isinstance(aliases, Mapping) or not all(
            isinstance(number, numbers.Integral) and number >= 0
            for pair in aliases.items()
            for number in pair
        ):
            raise TypeError(
                f"{self._model.name}: expected input_output_aliases to be a dict from numbers "
                f"of inputs to numbers of outputs, such as {{0: 0}}, got {format_value(aliases)}"
            )
        if len({*aliases.values()}) < len(aliases):  # XLA would let one replace the other
            raise ValueError(
                f"{self._model.name}: expected input_output_aliases to give each output to one "
                f"input, got {format_value(dict(aliases))}"
            )
        return dict(aliases)

    @property
    def targets(self) -> tuple[str, ...]:
        """The names of what XLA calls, of the kernel and of its gradients.

        `jax.export` wants to be told of each:
        `disabled_checks=[DisabledSafetyCheck.custom_call(name) for name in f.targets]`.
        """
        named = self._model.named_gradient
        return (self._target, *(self._gradient(named).targets if named else ()))

    def __call__(self, /, *args: Any, **named: Any) -> Any:
        """Calls the kernel: inputs by position or name, last ones that are optional left out."""
        function = self._model.function
        args = function.place(args, named)
        inputs = read_call(args, function.list_position(len(args)))
        kernel = self._for_call(inputs)
        arrays, shardings = gather(self.__name__, inputs.arrays)
        outputs = kernel._call(inputs._replace(arrays=arrays))
        if shardings:
            outputs = spread_alike(outputs, shardings)
        return outputs if kernel._model.description.has_several_outputs else outputs[0]

    def _for_call(self, inputs: Inputs) -> Kernel:
        """What computes a call with these inputs."""
        return self

    def _call(self, inputs: Inputs, output_count: int = 0) -> tuple[jax.Array, ...]:
        """`output_count` of the forward function, where this is a gradient without a meta function.

        Inputs are known by their numbers too where shapes may depend on them.
        """
        arrays, varying = make_alike(inputs.arrays)
        texts = inputs.texts if self._knows_numbers else inputs.types
        key = (texts, inputs.shapes, varying, jax.config.jax_enable_x64)
        program = self._programs.get(key)
        if program is None:
            self._model.check_inputs(inputs.texts)
            outputs = [
                struct(*output, varying) for output in self._outputs_of(inputs, output_count)
            ]
            program = self._program(inputs.types, outputs)
            self._programs.add(key, program)
        return self._in_reverse_mode(program, arrays)

    def _in_reverse_mode(
        self, program: Program, arrays: Sequence[jax.Array]
    ) -> tuple[jax.Array, ...]:
        try:
            return program(*arrays)
        except TypeError as error:
            if not is_forward_mode(error):
                raise
            second = "; second derivatives are jax.jacrev(jax.jacrev(f))"
            raise TypeError(forward_mode_text(self.__name__) + second) from error

    # ===--- shapes ---===

    def _outputs_of(self, inputs: Inputs, output_count: int) -> list[Output]:
        """The shape and the dtype of each output."""
        if self._out is not None:
            given = [(one.shape, one.dtype) for one in self._given(inputs)]
            return check_outputs(self.__name__, given, given=True)
        outputs = self._model.infer(inputs.texts, inputs.shapes, output_count)
        return check_outputs(self.__name__, [(shape, DTYPES[dtype]) for dtype, shape in outputs])

    def _given(self, inputs: Inputs) -> list[Any]:
        """What `out` says."""
        out = self._out
        if is_function(out):
            structs = (jax.ShapeDtypeStruct(a.shape, a.dtype) for a in inputs.arrays)
            out = out(*(None if text == "none" else next(structs) for text in inputs.texts))
        outs = list(out) if isinstance(out, tuple | list) and out else [out]
        for one in outs:
            if isinstance(one, type) or not (hasattr(one, "shape") and hasattr(one, "dtype")):
                raise TypeError(
                    f"{self._model.name}: expected out to be a jax.ShapeDtypeStruct, a tuple of "
                    f"these, or a function that returns such, got {format_value(one)}"
                )
        return outs

    # ===--- calls and gradients ---===

    def _program(self, types: tuple[str, ...], outputs: Sequence[jax.ShapeDtypeStruct]) -> Program:
        """The program for inputs of these types, of which numbers are without values."""

        def make() -> Program:
            nones = [i for i, text in enumerate(types) if text == "none"]
            attributes = dict(self._for_xla)
            if nones:
                attributes[NONE] = np.array(nones, np.int64)
            aliases = {
                i - sum(none < i for none in nones): output
                for i, output in self._aliases.items()
                if i not in nones
            }
            if self._model.has_side_effect:
                allow_effects()
            call = jax.ffi.ffi_call(
                self._target,
                outputs,
                has_side_effect=self._model.has_side_effect,
                vmap_method=self._vmap_method,
                input_output_aliases=aliases or None,
            )
            backward = functools.partial(self._backward, types, outputs)
            return make_program(self.__name__, call, attributes, backward)

        return shared((self._key, types, tuple(outputs)), make)

    def _backward(
        self,
        texts: Sequence[str],
        outputs: Sequence[jax.ShapeDtypeStruct],
        arrays: Sequence[jax.Array],
        cotangents: Sequence[Any],
    ) -> tuple[Any, ...]:
        """A cotangent for each array."""
        of_gradient = self._model.gradient(len(texts))
        if of_gradient is None:
            raise ValueError(self._model.missing_gradient())
        mask = self._model.gradient_mask(texts, of_gradient)
        left = map(jnp.asarray, arrays)  # numbers come as numbers
        given = [None if text == "none" else next(left) for text in texts]
        of_outputs = [
            conjugate(cotangent)
            if cotangent.dtype != jax.dtypes.float0
            else jnp.zeros(output.shape, output.dtype)
            for output, cotangent in zip(outputs, cotangents, strict=True)
        ]
        inputs = read_call([*given, *of_outputs])
        results = iter(self._gradient(of_gradient)._call(inputs, len(outputs)))
        of_inputs = [next(results) if has else None for has in mask]
        return tuple(
            _cotangent(array, result)
            for array, result, text in zip(given, of_inputs, texts, strict=True)
            if text != "none"
        )

    def _gradient(self, model: KernelModel) -> Kernel:
        """The function of the kernel that computes gradients of this one."""
        if model not in self._gradients:
            method = self._vmap_method
            if method == "expand_dims":  # a cotangent may be the same for all examples
                method = "broadcast_all"
            self._gradients[model] = self._made(model, vmap_method=method)
        return self._gradients[model]

    @staticmethod
    def _made(model: KernelModel, **more: Any) -> Kernel:
        return Kernel(model, **more)

    # ===--- equal functions, which are one to JAX's caches ---===

    def __eq__(self, other: Any) -> bool:
        if not isinstance(other, Kernel):
            return NotImplemented
        return (self._key, self._out_key) == (other._key, other._out_key)

    @functools.cached_property
    def _out_key(self) -> list[Any]:
        """`out` as it can be compared: arrays, which tell shapes too, cannot."""
        outs = self._out if isinstance(self._out, tuple | list) else (self._out,)
        return [
            (tuple(one.shape), str(one.dtype))
            if hasattr(one, "shape") and not isinstance(one, type)
            else one
            for one in outs
        ]

    def __hash__(self) -> int:
        return hash(self._key)

    def _made_of(self) -> tuple[Any, ...]:
        model = self._model
        made_of = (model.function.full_name, model.attributes, model.grad, model.given_effect)
        return *made_of, self._out, self._vmap_method, self._aliases

    def __copy__(self) -> Kernel:
        return self  # what pickle makes is of the newest build

    def __deepcopy__(self, memo: dict[int, Any]) -> Kernel:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _made_again, self._made_of()

    def __repr__(self) -> str:
        return repr(self._model)


def open_model(
    path_and_name: Any, attributes: Mapping[str, Any], grad: Any, has_side_effect: bool | None
) -> KernelModel:
    """The kernel that `kernel` is asked for."""
    function = HOST.open_function(path_and_name)
    checked = function.check_attributes(attributes, HOST)
    return KernelModel(function, HOST, checked, grad, has_side_effect)


def _made_again(
    full_name: str, attributes: Mapping[str, Any], grad: Any, effect: Any, *rest: Any
) -> Kernel:
    return Kernel(open_model(full_name, attributes, grad, effect), *rest)


def conjugate(array: Any) -> Any:
    """Converts JAX's convention of complex gradients to PyTorch's, and back."""
    return jnp.conj(array) if jnp.issubdtype(array.dtype, jnp.complexfloating) else array


def _cotangent(array: Any, result: Any) -> Any:
    """The cotangent of an input: of ints JAX has float0, of numbers there is none."""
    if not jnp.issubdtype(array.dtype, jnp.inexact):
        return np.zeros(array.shape, jax.dtypes.float0)
    if result is not None:
        return conjugate(result)
    (zeros, _), _ = make_alike((jnp.zeros(array.shape, array.dtype), array))
    return zeros

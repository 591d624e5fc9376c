"""The function of a kernel: a call of XLA's, with its shapes and its gradient."""

from __future__ import annotations

import functools
import numbers
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from aten_bridge._function import Function
from aten_bridge._gradients import (
    attributes_of_gradient,
    check_output_count,
    has_gradient,
    is_names,
    missing_gradient,
    outputs_like_inputs,
)
from aten_bridge._text import as_switch, format_value, or_list
from aten_bridge.jax._attributes import EXACT, NONE, check_attributes, for_xla
from aten_bridge.jax._dtypes import DTYPES
from aten_bridge.jax._inputs import Fault, Inputs, read_call
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
from aten_bridge.jax._targets import open_kernel, target_of
from aten_bridge.jax._varying import make_alike, struct

# Those of jax.ffi.ffi_call that are not deprecated.
_VMAP_METHODS = ("sequential", "sequential_unrolled", "expand_dims", "broadcast_all")

_FORWARD_MODE = "(jvp) to a custom_vjp"  # in what JAX says of it (0.6 and 0.10)


class Kernel:
    """A function of a kernel's. Made by `kernel`."""

    def __init__(
        self,
        function: Function,
        grad: str | tuple[str, ...] | None = None,
        out: Any = None,
        vmap_method: str | None = "sequential",
        input_output_aliases: Mapping[int, int] | None = None,
        attributes: dict[str, Any] | None = None,
        forward: Kernel | None = None,
        has_side_effect: bool | None = None,
    ):
        """Use `kernel`. `forward` is the function whose gradients this one computes."""
        self._function = function
        self.__name__ = self.__qualname__ = name = function.name
        self._check_kernel(out, is_gradient=forward is not None)
        self._target = target_of(function)
        self._attributes = self._check_attributes(attributes or {})
        is_method = isinstance(vmap_method, str) and vmap_method in _VMAP_METHODS
        if vmap_method is not None and not is_method:
            raise ValueError(
                f"{name}: expected vmap_method to be one of {or_list(_VMAP_METHODS)}, or None, got "
                + format_value(vmap_method)
            )
        self._grad, self._out, self._forward = grad, out, forward
        self._vmap_method = vmap_method
        self._given_effect = has_side_effect
        self._has_side_effect = (
            self._tells_effect()
            if has_side_effect is None
            else as_switch(name, "has_side_effect", has_side_effect)
        )
        self._aliases = self._checked_aliases(input_output_aliases)
        self._for_xla, self._marshalled = self._carried()
        self._programs = Programs()
        self._gradient: Kernel | None = None
        if is_names(grad):
            self._gradient = self._make_gradient(grad)
        elif grad is not None:
            raise TypeError(
                f"{name}: expected grad to be the name of a gradient kernel or a tuple of such "
                f"names, got {format_value(grad)}"
            )

    def _tells_effect(self) -> bool:
        """Whether the library says that each call has to be made."""
        description, forward = self._function.description, self._forward
        # A gradient by autograd calls the function once more.
        is_of_one = forward is not None and description.is_gradient and forward._has_side_effect
        return description.has_side_effect or is_of_one

    @functools.cached_property
    def _knows_numbers(self) -> bool:
        """Whether shapes may depend on the values of numbers among the inputs."""
        kinds = self._function.description.inputs
        return self._out is None and any(kind.startswith(("number", "value")) for kind in kinds)

    @functools.cached_property
    def _key(self) -> Hashable:
        """What functions have in common whose programs are the same."""
        return self._make_key()

    def _make_key(self) -> tuple[Hashable, ...]:
        return (
            self.__name__,
            self._target,
            key_of(self._for_xla),
            self._vmap_method,
            tuple(self._aliases.items()),
            self._has_side_effect,
            self._forward is not None,
            self._gradient and self._gradient._key,
        )

    def _check_attributes(self, attributes: dict[str, Any]) -> dict[str, Any]:
        """The attributes as they are kept. Raises TypeError or ValueError for wrong ones."""
        return check_attributes(self._function, attributes)

    def _carried(self) -> tuple[dict[str, Any], Any]:
        """The attributes for XLA, and for the library's inference."""
        types = self._function.description.attribute_types
        exactly = self._function.marshal(self._attributes | {EXACT: True})
        return for_xla(self._attributes, types), exactly

    def _check_kernel(self, out: Any, is_gradient: bool) -> None:
        description = self._function.description
        name = self._function.name
        # Of a list's gradient the number of outputs is that of its tensors.
        if description is None or (description.takes_frame and not description.is_gradient):
            raise ValueError(
                f"{name}: expected a kernel of tensors that was exported with ATEN_BRIDGE_EXPORT, "
                "got a C function, or a kernel over a CallFrame, of MindSpore's interface"
            )
        if out is None and not is_gradient and not description.has_meta:
            raise ValueError(
                f"{name}: expected out, or a kernel with a meta function, got neither; give "
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
                f"{self._function.name}: expected input_output_aliases to be a dict from numbers "
                f"of inputs to numbers of outputs, such as {{0: 0}}, got {format_value(aliases)}"
            )
        return dict(aliases)

    def _make_gradient(self, grad: str | tuple[str, ...]) -> Kernel:
        first, *others = (grad,) if isinstance(grad, str) else grad
        of_gradient = open_kernel(first if ":" in first else f"{self._function.path}:{first}")
        attributes = attributes_of_gradient(self._function, of_gradient, self._attributes)
        return Kernel(
            of_gradient,
            tuple(others) or None,
            vmap_method=self._vmap_method,
            attributes=attributes,
            forward=self,
            has_side_effect=self._given_effect,
        )

    @property
    def targets(self) -> tuple[str, ...]:
        """The names of what XLA calls, of the kernel and of its gradients.

        `jax.export` wants to be told of each:
        `disabled_checks=[DisabledSafetyCheck.custom_call(name) for name in f.targets]`.
        """
        return (self._target, *(self._gradient.targets if self._gradient else ()))

    def __call__(self, /, *args: Any, **named: Any) -> Any:
        """Calls the kernel: inputs by position or name, last ones that are optional left out."""
        args = self._function.place(args, named)
        inputs = read_call(args, self._function.list_position(len(args)))
        kernel = self._for_call(inputs)
        arrays, shardings = gather(self.__name__, inputs.arrays)
        outputs = kernel._call(inputs._replace(arrays=arrays))
        if shardings:
            outputs = spread_alike(outputs, shardings)
        return outputs if kernel._function.description.gives_tuple else outputs[0]

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
            self._check_inputs(inputs)
            outputs = [
                struct(*output, varying) for output in self._outputs_of(inputs, output_count)
            ]
            program = self._program(inputs.types, outputs)
            self._programs.add(key, program)
        try:
            return program(*arrays)
        except TypeError as error:
            if _FORWARD_MODE not in str(error):
                raise
            raise TypeError(
                f"{self.__name__}: expected reverse mode, as of jax.grad, jax.vjp and jax.jacrev, "
                "since gradient kernels go backward, got forward mode, as of jax.jvp, jax.jacfwd "
                "and jax.hessian; second derivatives are jax.jacrev(jax.jacrev(f))"
            ) from error

    def _check_inputs(self, inputs: Inputs) -> None:
        name = self._function.name
        faults = [
            f"{name}: input {i}: {text}"
            for i, text in enumerate(inputs.texts)
            if isinstance(text, Fault)
        ]
        count_fault = self._function.count_fault(len(inputs.texts))
        if faults or count_fault:
            raise TypeError("\n".join(filter(None, [count_fault, *faults])))

    # ===--- shapes ---===

    def _outputs_of(self, inputs: Inputs, output_count: int) -> list[Output]:
        """The shape and the dtype of each output."""
        if self._out is not None:
            return self._checked(
                [(one.shape, one.dtype) for one in self._given(inputs)], given=True
            )
        description = self._function.description
        if description.has_meta:
            outputs = self._function.infer(inputs.texts, inputs.shapes, self._marshalled)
        else:
            forward = self._forward._function
            outputs = outputs_like_inputs(
                forward, output_count, description, inputs.texts, inputs.shapes
            )
        return self._checked([(shape, DTYPES[dtype]) for dtype, shape in outputs])

    def _given(self, inputs: Inputs) -> list[Any]:
        """What `out` says."""
        out = self._out
        if callable(out) and not isinstance(out, type):
            structs = (jax.ShapeDtypeStruct(a.shape, a.dtype) for a in inputs.arrays)
            out = out(*(None if text == "none" else next(structs) for text in inputs.texts))
        outs = list(out) if isinstance(out, tuple | list) and out else [out]
        for one in outs:
            if isinstance(one, type) or not (hasattr(one, "shape") and hasattr(one, "dtype")):
                raise TypeError(
                    f"{self._function.name}: expected out to be a jax.ShapeDtypeStruct, a tuple of "
                    f"these, or a function that returns such, got {format_value(one)}"
                )
        return outs

    def _checked(
        self, outputs: Sequence[tuple[Sequence[int], Any]], given: bool = False
    ) -> list[Output]:
        """The outputs, if JAX can have such; `given` by `out`. Raises TypeError or ValueError."""
        return check_outputs(self._function.name, outputs, given)

    # ===--- calls and gradients ---===

    def _program(self, types: tuple[str, ...], outputs: Sequence[jax.ShapeDtypeStruct]) -> Program:
        """That of inputs of these types, of which numbers are without values."""

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
            if self._has_side_effect:
                allow_effects()
            call = jax.ffi.ffi_call(
                self._target,
                outputs,
                has_side_effect=self._has_side_effect,
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
        gradient = self._find_gradient(len(texts))
        if gradient is None:
            raise ValueError(self._missing_gradient())
        mask = has_gradient(self._function, texts, gradient._function.description)
        check_output_count(self._function, gradient._function, mask)
        left = map(jnp.asarray, arrays)  # numbers come as numbers
        given = [None if text == "none" else next(left) for text in texts]
        of_outputs = [
            _conjugate(cotangent)
            if cotangent.dtype != jax.dtypes.float0
            else jnp.zeros(output.shape, output.dtype)
            for output, cotangent in zip(outputs, cotangents, strict=True)
        ]
        results = iter(gradient._call(read_call([*given, *of_outputs]), len(outputs)))
        of_inputs = [next(results) if has else None for has in mask]
        return tuple(
            _cotangent(array, result)
            for array, result, text in zip(given, of_inputs, texts, strict=True)
            if text != "none"
        )

    def _find_gradient(self, input_count: int) -> Kernel | None:
        """The function that computes the gradient of a call with so many inputs."""
        return self._gradient

    def _missing_gradient(self) -> str:
        return missing_gradient(self._function, is_gradient=self._forward is not None)

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

    def __reduce__(self) -> tuple[Any, ...]:
        arguments = (self._function.full_name, self._grad, self._out, self._vmap_method)
        arguments = (*arguments, self._aliases, self._attributes)
        return _made_again, (*arguments, self._given_effect)

    def __repr__(self) -> str:
        arguments = [repr(self._function.full_name)]
        arguments += [f"{name}={format_value(value)}" for name, value in self._attributes.items()]
        if self._grad is not None:
            arguments.append(f"grad={format_value(self._grad)}")
        return f"{self._function.maker}({', '.join(arguments)})"


def _made_again(full_name: str, *arguments: Any) -> Kernel:
    *arguments, has_side_effect = arguments
    return Kernel(open_kernel(full_name), *arguments, has_side_effect=has_side_effect)


def _conjugate(array: Any) -> Any:
    """From JAX's convention of complex gradients to PyTorch's, and back."""
    return jnp.conj(array) if jnp.issubdtype(array.dtype, jnp.complexfloating) else array


def _cotangent(array: Any, result: Any) -> Any:
    """That of an input: of ints JAX has float0, of numbers there is no gradient."""
    if not jnp.issubdtype(array.dtype, jnp.inexact):
        return np.zeros(array.shape, jax.dtypes.float0)
    if result is not None:
        return _conjugate(result)
    (zeros, _), _ = make_alike((jnp.zeros(array.shape, array.dtype), array))
    return zeros

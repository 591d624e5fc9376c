"""A kernel with its attributes and its gradient: what the objects of all hosts hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aten_bridge._function import PADDED, Function, Host, Task
from aten_bridge._inputs import FaultText, is_tensor
from aten_bridge._introspection import DependsOnValues
from aten_bridge._text import as_switch, format_value, or_list
from aten_bridge.faults import error_of


def is_names(grad: Any) -> bool:
    names = (grad,) if isinstance(grad, str) else grad
    return isinstance(names, tuple) and bool(names) and all(isinstance(n, str) for n in names)


class KernelModel:
    """A kernel as a host is to call it. It does not change."""

    def __init__(
        self,
        function: Function,
        host: Host,
        attributes: Mapping[str, Any],
        grad: Any = None,
        has_side_effect: bool | None = None,
        forward: KernelModel | None = None,
    ):
        """`attributes` are as check_attributes() gives them, the others as the user does.

        `forward` is the kernel whose gradients this one computes.
        """
        self.function, self.host, self.attributes = function, host, dict(attributes)
        self.name = function.name
        self.description = function.description
        self.grad, self.forward = grad, forward
        self.carried = function.carried(self.attributes)
        self.marshalled = function.marshal(self.attributes)
        self.given_effect = has_side_effect
        if has_side_effect is None:
            has_side_effect = self._tells_effect()
        self.has_side_effect = as_switch(self.name, "has_side_effect", has_side_effect)
        self._gradients: dict[int, KernelModel | None] = {}  # by the number of inputs
        self.named_gradient = self._open_gradient(grad) if is_names(grad) else None
        if grad is not None and not is_names(grad) and not host.takes_gradient(grad):
            raise TypeError(
                f"{self.name}: expected grad to be {host.gradients}, got {format_value(grad)}"
            )

    def _tells_effect(self) -> bool:
        """Whether the library says that each call has to be made."""
        if self.description is None:
            return False
        # A gradient by autograd calls the function once more.
        is_of_one = self.description.is_gradient and self.forward is not None
        return self.description.has_side_effect or (is_of_one and self.forward._tells_effect())

    def with_attribute(self, name: str, value: Any) -> KernelModel:
        """The same with another attribute. Raises TypeError as check_attributes() does."""
        attributes = self.function.check_attributes(self.attributes | {name: value}, self.host)
        function = self.function.with_attributes(attributes)
        return KernelModel(
            function, self.host, attributes, self.grad, self.given_effect, self.forward
        )

    def for_task(self, task: Task) -> KernelModel:
        """The same for another task; where its results are differentiated, with the gradient."""
        function = self.function.for_task(task, self.attributes)
        grad = self.grad if task == PADDED and function.has_padded_gradient else None
        return KernelModel(function, self.host, self.attributes, grad, self.given_effect)

    def check_measurable(self) -> None:
        """Raises ValueError unless two calls have results of the same sizes."""
        if self.has_side_effect:  # another draw, say
            is_told = self.is_data_dependent
            raise ValueError(
                f"{self.name}: expected results that are the same when they are computed twice, "
                "once for their sizes, got those of a call with an effect; "
                + (f"give {self.host.largest}" if is_told else "a module takes rng")
            )

    # ===--- inputs and outputs ---===

    @property
    def has_meta(self) -> bool:
        return self.description is not None and self.description.has_meta

    @property
    def is_data_dependent(self) -> bool:
        """Whether the kernel says that the sizes of its results depend on values."""
        return self.description is not None and self.description.is_data_dependent

    @property
    def needs_shapes(self) -> bool:
        """Whether nothing tells the shapes of its results, before a call or after it."""
        is_known = self.has_meta or self.forward is not None
        return not (is_known or (self.is_data_dependent and self.function.task != PADDED))

    def check_inputs(self, texts: Sequence[str]) -> None:
        """Raises TypeError with all that is wrong with the inputs of a call."""
        if self.forward is None and (self.description is None or self.description.is_raw):
            return  # what it takes is its own affair
        faults = [
            one.fault._replace(index=i) for i, one in enumerate(texts) if isinstance(one, FaultText)
        ]
        if count_fault := self.function.count_fault(len(texts)):
            faults.insert(0, count_fault)
        if faults:
            raise error_of(TypeError, self.name, faults)

    def infer(
        self,
        texts: Sequence[str],
        shapes: Sequence[Sequence[int] | None],
        forward_outputs: int = 1,
    ) -> Sequence[tuple[str, Sequence[int]]]:
        """The dtype and shape of each output; raises ValueError with what is wrong.

        `forward_outputs` are those of the kernel whose gradients this one computes: where it does
        not tell, its outputs are like the tensors among that one's inputs.
        """
        if self.has_meta or self.forward is None:
            try:
                return self.function.infer(texts, shapes, self.marshalled, self.host)
            except DependsOnValues as error:
                cure = self.function.instead_of_sizes(self.host)
                raise DependsOnValues(f"{error}{cure}") from None
        mask = self.forward._has_gradient(texts[: len(texts) - forward_outputs], self)
        return [
            ("float32", [0]) if shape is None else (text, shape)
            for text, shape, has in zip(texts, shapes, mask, strict=False)
            if has
        ]

    def depends_on_values(self, texts: Sequence[str], shapes: Sequence[Any]) -> bool | None:
        """Whether the sizes of the results cannot be told from those of these inputs.

        None where the inputs are wrong: PyTorch's kernel says what is.
        """
        self.check_inputs(texts)
        try:
            self.function.infer(texts, shapes, self.marshalled, self.host)
        except DependsOnValues:
            return True
        except ValueError:
            return None
        return False

    # ===--- gradients ---===

    def _open_gradient(self, grad: str | tuple[str, ...]) -> KernelModel:
        first, *others = (grad,) if isinstance(grad, str) else grad
        function = self.host.open_function(self.function.gradient_target(first))
        attributes = function.check_attributes(self._attributes_for(function), self.host)
        return KernelModel(
            function, self.host, attributes, tuple(others) or None, self.given_effect, self
        )

    def _attributes_for(self, gradient: Function) -> dict[str, Any]:
        """Returns the attributes that a gradient kernel knows.

        Raises ValueError if a gradient kernel by autograd does not know all.
        """
        if gradient.description is None:
            return self.attributes
        types = gradient.description.attributes
        missing = [name for name in self.function.known_attributes if name not in types]
        if gradient.description.is_gradient and missing:
            raise ValueError(
                f"{gradient.name}: expected the attributes of {self.name}, got a gradient kernel "
                f"without {or_list(missing)}; give ATEN_BRIDGE_EXPORT_GRAD the attr options of "
                "ATEN_BRIDGE_EXPORT"
            )
        return {name: value for name, value in self.attributes.items() if name in types}

    def gradient(self, input_count: int) -> KernelModel | None:
        """What computes the gradient of a call with so many inputs; None where nothing does."""
        if self.grad is not None:
            return self.named_gradient
        if input_count not in self._gradients:
            function = self.function.gradient(input_count, self.attributes)
            self._gradients[input_count] = function and KernelModel(
                function, self.host, self.attributes, forward=self
            )
        return self._gradients[input_count]

    def missing_gradient(self) -> str:
        """What to say where there is no gradient, and one is asked for."""
        if self.function.task == PADDED:
            return (
                f"{self.name}: expected an operator whose results are as large as their values "
                "say where a network is differentiated, got one that was told the largest; "
                + self.host.padded_gradient
            )
        return self.function.missing_gradient(is_gradient=self.forward is not None)

    def gradient_mask(self, texts: Sequence[str], gradient: KernelModel | None) -> list[bool]:
        """For each input, whether that gradient kernel, or another operator, has an output for it.

        Raises ValueError if a gradient kernel has more or fewer outputs than it has gradients.
        """
        mask = self._has_gradient(texts, gradient)
        description = None if gradient is None else gradient.description
        outputs = 0 if description is None or description.is_gradient else description.outputs
        if outputs not in (0, sum(mask)):  # 0: any number
            raise ValueError(
                f"{gradient.name}: expected as many outputs as {self.name} has tensors among "
                f"its inputs, {sum(mask)}, got {outputs}"
            )
        return mask

    def _has_gradient(self, texts: Sequence[str], gradient: KernelModel | None) -> list[bool]:
        """The same, whatever the number of outputs.

        A kernel of a fixed number of outputs may have one for each tensor that could be given, also
        where None is, as those of ATEN_BRIDGE_EXPORT_GRAD have; one over a CallFrame has none for
        None.
        """
        given = [is_tensor(text) for text in texts]
        parameters = self.function.parameters(len(texts))
        if parameters is None:
            return given
        possible = [one.is_tensor for one in parameters]
        description = None if gradient is None else gradient.description
        if description and (description.is_gradient or sum(possible) == description.outputs):
            return possible
        return [a and b for a, b in zip(given, possible, strict=True)]

    def __repr__(self) -> str:
        arguments = [repr(self.function.full_name)]
        arguments += [f"{name}={format_value(value)}" for name, value in self.attributes.items()]
        if self.grad is not None:
            arguments.append(f"grad={format_value(self.grad)}")
        return f"{self.function.maker}({', '.join(arguments)})"

"""Operators of PyTorch's dispatcher by name, whatever the host: which overload is meant."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from aten_bridge import _introspection
from aten_bridge._codec import (
    AttributeType,
    Marshalled,
    Strings,
    attribute_type,
    operator_text,
    operator_value,
)
from aten_bridge._function import CALL, PADDED, Function, Host, Task
from aten_bridge._introspection import (
    Attribute,
    Description,
    Parameter,
    Question,
    missing_attributes,
    read_attributes,
    text_function,
)
from aten_bridge._kernel import KernelModel
from aten_bridge._library import Library, open_library
from aten_bridge._places import compiled_library
from aten_bridge._text import closest, did_you_mean, format_value, or_list
from aten_bridge.faults import Fault

_ATTRIBUTE = "aten_bridge_operator"  # kOperatorAttribute of plugin/operators/operator_text.h
_NAME = "aten_bridge_operators.so"


class UnknownOperator(AttributeError):
    """There is no such operator, or none that can be called."""


class Overload(NamedTuple):
    """An overload of an operator, from the library."""

    name: str  # such as "aten::max.dim"
    fault: str  # why it cannot be called
    is_writing: bool  # an argument: that is why
    is_factory: bool  # takes no tensor: that is why
    schema: str
    depends_on_values: bool  # the sizes of its results do
    is_random: bool
    inputs: int | None  # tensors that it takes; None: any number
    attributes: dict[str, Attribute]

    def faults(self, given: Mapping[str, Any]) -> tuple[int, int]:
        """How many of these attributes are not its own or are missing, and are of another type."""
        known = [name for name in given if name in self.attributes]
        missing = missing_attributes(self.attributes, given)
        wrong = [name for name in known if not _fits(given[name], self.attributes[name].type)]
        return len(given) - len(known) + len(missing), len(wrong)


def operators_library() -> Library:
    """The library of PyTorch's operators.

    Raises FileNotFoundError, or ImportError where it is another library, with what to do.
    """
    build = "cmake --preset demo && cmake --build build/demo -t aten_bridge_operators"
    path = compiled_library(_NAME, "ATEN_BRIDGE_OPERATORS", "plugin/operators", build)
    library = open_library(str(path))
    if library.function("aten_bridge_operator_names") is None:
        raise ImportError(
            f"{path}: expected the library of PyTorch's operators by name, {_NAME}, got another; "
            "correct the variable ATEN_BRIDGE_OPERATORS"
        )
    _introspection.describe_library(library)  # refuses one of another interface
    return library


def _ask(library: Library, question: str, text: str) -> str:
    """What a function of the library says of a text. Raises ValueError and ImportError."""
    function = text_function(library, f"aten_bridge_operator_{question}")
    return _introspection.ask(function, text.encode())


def overloads(library: Library, name: str) -> list[Overload]:
    """All overloads of a name without one, such as "aten::max"."""
    return [
        Overload(
            *fields,
            None if inputs < 0 else inputs,
            read_attributes(attributes),
        )
        for *fields, inputs, attributes in json.loads(_ask(library, "overloads", name))
    ]


def find_overload(library: Library, name: str, given: Mapping[str, Any], host: Host) -> Overload:
    """The overload that is named, or the first that takes these attributes.

    Raises UnknownOperator if there is none. Where none takes the attributes, the one with the
    fewest faults is returned: of their names first, then of their types.
    """
    if not isinstance(name, str) or "::" not in name or "\0" in name or not name.isascii():
        example = 'such as "aten::topk" or "aten::max.dim"'
        close = ""
        if isinstance(name, str) and "::" not in name:
            bare = re.sub(r"^(torch\.)?(ops\.)?(aten[.:])?", "", name)
            close = _did_you_mean(f"aten::{bare}", names(library))
        raise UnknownOperator(
            f"expected the name of an operator, {example}, got {format_value(name)}{close}"
        )
    base, dot, of_overload = name.partition(".")
    wanted = base if of_overload == "default" else name  # as PyTorch calls the one without a name
    known = overloads(library, base)
    if not known:
        close = _did_you_mean(base, names(library))
        cure = "" if close else "; import the library that registers it"
        raise UnknownOperator(
            f"{name}: expected an operator that is registered with PyTorch, got an unknown "
            f"name{close or cure}"
        )
    if dot:
        known = [o for o in known if o.name == wanted] or _no_overload(name, known)
    callable_ones = [one for one in known if not one.fault]
    if _is_factory(known, callable_ones, given):
        tensors = f", or call {or_list(one.name for one in callable_ones)}" if callable_ones else ""
        like = f"{base}_like"
        if not tensors and any(not one.fault for one in overloads(library, like)):
            tensors = f", or call {like!r}"
        raise UnknownOperator(
            f"{name}: expected an operator from tensors to new tensors, got a factory, which takes "
            f"no tensor; {host.factory}{tensors}"
        )
    if not callable_ones:
        own = [one for one in known if not one.is_writing]
        reasons = dict.fromkeys(one.fault for one in own or known)
        raise UnknownOperator(
            f"{name}: expected an operator from tensors to new tensors, got one that is not: "
            + "; ".join(reasons)
        )
    return min(callable_ones, key=lambda one: one.faults(given))  # the first of several


def _is_factory(
    known: Sequence[Overload], callable_ones: Sequence[Overload], given: Mapping[str, Any]
) -> bool:
    """Whether the attributes are those of an overload that takes no tensor."""
    faults = [one.faults(given) for one in known if one.is_factory]
    return bool(faults) and all(min(faults) < one.faults(given) for one in callable_ones)


def _did_you_mean(name: str, known: Iterable[str]) -> str:
    """Similar names of operators, compared without the namespace, which would make all alike."""
    namespace, _, base = name.partition("::")
    own = {one.partition("::")[2]: one for one in known if one.startswith(f"{namespace}::")}
    close = closest(base, own)
    return f"; did you mean {own[close]!r}?" if close else ""


def _no_overload(name: str, overloads: Sequence[Overload]) -> list[Overload]:
    existing = [one.name for one in overloads]
    raise UnknownOperator(
        f"{name}: expected one of {or_list(existing)}, got an unknown overload"
        + did_you_mean(name, existing)
    )


def names(library: Library) -> list[str]:
    """The names of all operators, without overloads."""
    return json.loads(text_function(library, "aten_bridge_operator_names")() or b"[]")


# The types of values that fit others than their own.
_FITTING = {
    AttributeType.FLOAT: (AttributeType.FLOAT, AttributeType.INT),
    AttributeType.NUMBER: (AttributeType.BOOL, AttributeType.INT, AttributeType.FLOAT),
    AttributeType.DTYPE: (AttributeType.STRING,),
    AttributeType.INTS: (AttributeType.INTS, AttributeType.INT),
    AttributeType.FLOATS: (AttributeType.FLOATS, AttributeType.INTS),
}


def _fits(value: Any, type_: AttributeType) -> bool:
    """Whether a value may be of that type."""
    value = operator_value(value)
    if value == []:  # fits any type
        return True
    return value is not None and attribute_type(value) in _FITTING.get(type_, (type_,))


class TextFunction(Function):
    """A kernel of the library of operators: one text names it, with its attributes."""

    kernels = ("AtenOperator", "AtenOperators")  # the library's: of one result, and of several

    def __init__(self, library: Library, name: str, description: Description):
        symbol = self.kernels[description.has_several_outputs]
        infer = text_function(library, "aten_bridge_operator_infer")
        super().__init__(library, name, name, symbol, description, infer)

    @staticmethod
    def describe(library: Library, marshalled: str) -> Description:
        """What the kernel of a text is. Raises ValueError and ImportError."""
        return Description.read(json.loads(_ask(library, "describe", marshalled)))

    def _question(self, host: Host, marshalled: str) -> Question:
        return super()._question(host, Marshalled({_ATTRIBUTE: marshalled}, {}))

    def carried(self, attributes: dict[str, Any]) -> dict[str, Any]:
        return {_ATTRIBUTE: self.marshal(attributes)}


class OperatorFunction(TextFunction):
    """An operator, or its gradient, as a kernel."""

    maker = "operator"
    has_padded_gradient = True

    def __init__(
        self, library: Library, overload: Overload, host: Host, task: Task, description: Description
    ):
        """Use `open_operator`."""
        super().__init__(library, overload.name, description)
        self.overload, self.host, self.task = overload, host, task
        self.schema = overload.schema

    def with_attributes(self, attributes: Mapping[str, Any]) -> OperatorFunction:
        """The same operator's kernel, whose inputs and results depend on them."""
        return self.for_task(self.task, attributes)

    def for_task(self, task: Task, attributes: Mapping[str, Any]) -> OperatorFunction:
        """The same operator's kernel for another task."""
        return open_operator(self.library, self.overload, self.host, attributes, task)

    @property
    def _instead_of_pytorch(self) -> str:
        return f", or give {self.host.results}"

    # ===--- attributes: one for all, so that floats are exact and no name is taken ---===

    def marshal(self, attributes: Mapping[str, Any]) -> str:
        parts = [self.name, self.task.text()]
        for name, value in attributes.items():
            if value is not None:
                parts += [name, operator_text(value)]
        return str.__str__(Strings(parts))

    def check_attributes(self, given: Mapping[str, Any], host: Host) -> dict[str, Any]:
        attributes = host.plain_values(given)
        self.with_attributes(attributes)  # raises TypeError
        return attributes

    def _type_faults(self, attributes: dict[str, Any], host: Host) -> dict[str, Fault]:
        faults = {}
        for name, value in attributes.items():
            if value is not None and operator_text(value) is None:
                expected = self.known_attributes[name].text
                faults[name] = Fault(expected, format_value(value))
        known = {name: value for name, value in attributes.items() if name not in faults}
        if missing_attributes(self.known_attributes, known):
            return faults
        return super()._type_faults(known, host) | faults

    # ===--- inputs ---===

    def parameters(self, count: int) -> list[Parameter] | None:
        return super().parameters(count)[:count]

    def count_fault(self, count: int) -> Fault | None:
        left = self.description.inputs[count:]
        if left and all(one.is_tensor and one.is_optional for one in left):
            return None  # the last may be left out
        fault = super().count_fault(count)
        if fault and self.task == CALL:
            others = [
                one.name
                for one in overloads(self.library, self.name.partition(".")[0])
                if one.inputs == count and not one.fault
            ]
            verb = "takes" if len(others) == 1 else "take"
            hint = f"{or_list(others)} {verb} {count}" if others else ""
            fault = fault._replace(hint=hint)
        return fault

    # ===--- gradients, by PyTorch's autograd ---===

    def gradient_target(self, name: str) -> str:
        if ":" not in name:
            raise ValueError(
                f"{self.name}: expected grad to name a library and a gradient kernel, as "
                f'in "./a.so:CubeGrad", got {format_value(name)}, and the library of operators '
                "has none; leave grad out for the gradient by PyTorch's autograd"
            )
        return name

    def gradient(self, input_count: int, attributes: Mapping[str, Any]) -> OperatorFunction | None:
        task = self.task.gradient(input_count)
        return None if task is None else self.for_task(task, attributes)


def open_operator(
    library: Library, overload: Overload, host: Host, attributes: Mapping[str, Any], task: Task
) -> OperatorFunction:
    """The kernel of an operator for a task. Raises TypeError if attributes are not its own."""
    known = overload.attributes
    description = Description([], 1, True, False, "cpu", list(known), known)
    function = OperatorFunction(library, overload, host, task, description)
    if faults := function.attribute_faults(dict(attributes), host):
        raise function.attribute_error(TypeError, faults)
    description = function.describe(library, function.marshal(attributes))
    description = description._replace(has_side_effect=overload.is_random, changes_state=False)
    return OperatorFunction(library, overload, host, task, description)


def make_kernel(
    host: Host, name: str, grad: Any, attributes: Mapping[str, Any], is_told: bool
) -> KernelModel:
    """An operator as a kernel; `is_told` whether the caller gave what shapes its results have."""
    library = operators_library()
    attributes = host.plain_values(attributes)
    overload = find_overload(library, name, attributes, host)
    # For others it is known when PyTorch is asked for the shapes of a call.
    task = PADDED if overload.depends_on_values and is_told else CALL
    function = open_operator(library, overload, host, attributes, task)
    return KernelModel(function, host, attributes, grad)

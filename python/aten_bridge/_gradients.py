"""Gradient kernels: for which inputs they have an output, and what that is like."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aten_bridge._function import Description, Function
from aten_bridge._text import or_list


def is_tensor(text: str) -> bool:
    """Whether an input is a tensor, by its text as `kInputsAttribute` has it."""
    return not text.startswith(("none", "#"))


def is_names(grad: Any) -> bool:
    names = (grad,) if isinstance(grad, str) else grad
    return isinstance(names, tuple) and bool(names) and all(isinstance(n, str) for n in names)


def has_gradient(
    function: Function, texts: Sequence[str], gradient: Description | None
) -> list[bool]:
    """For each input of the function, whether such a gradient kernel has an output for it.

    A kernel of a fixed number of outputs may have one for each tensor that could be given, also
    where None is, as those of ATEN_BRIDGE_EXPORT_GRAD have; one over a CallFrame has none for None.
    """
    given = [is_tensor(text) for text in texts]
    kinds = function.parameter_kinds(len(texts))
    if kinds is None:
        return given
    possible = [kind.startswith("tensor") for kind in kinds]
    if gradient is not None and (gradient.is_gradient or sum(possible) == gradient.outputs):
        return possible
    return [a and b for a, b in zip(given, possible, strict=True)]


def outputs_like_inputs(
    forward: Function,
    output_count: int,
    gradient: Description | None,
    texts: Sequence[str],
    shapes: Sequence[Sequence[int] | None],
) -> list[tuple[str, Sequence[int]]]:
    """The outputs of a gradient kernel that does not tell them: those of the forward inputs."""
    count = len(texts) - output_count
    mask = has_gradient(forward, texts[:count], gradient)
    return [
        ("float32", [0]) if shape is None else (text, shape)
        for text, shape, has in zip(texts, shapes, mask, strict=False)
        if has
    ]


def check_output_count(function: Function, gradient: Function | None, mask: list[bool]) -> None:
    """Raises ValueError if a gradient kernel has more or fewer outputs than it has gradients."""
    description = None if gradient is None else gradient.description
    outputs = 0 if description is None or description.is_gradient else description.outputs
    if outputs not in (0, sum(mask)):  # 0: any number
        raise ValueError(
            f"{gradient.name}: expected as many outputs as {function.name} has tensors among "
            f"its inputs, {sum(mask)}, got {outputs}"
        )


def attributes_of_gradient(
    function: Function, gradient: Function, attributes: dict[str, Any]
) -> dict[str, Any]:
    """Those of the function's attributes that its gradient kernel knows.

    Raises ValueError if a gradient kernel by autograd does not know all.
    """
    description = gradient.description
    if description is None:
        return attributes
    types = description.attribute_types
    own = function.description
    missing = [] if own is None else [name for name in own.attribute_types if name not in types]
    if description.is_gradient and missing:
        raise ValueError(
            f"{gradient.name}: expected the attributes of {function.name}, got a gradient kernel "
            f"without {or_list(missing)}; give ATEN_BRIDGE_EXPORT_GRAD the attr options of "
            "ATEN_BRIDGE_EXPORT"
        )
    return {name: value for name, value in attributes.items() if name in types}


def missing_gradient(function: Function, is_gradient: bool) -> str:
    """What to say, and to do, where an operator without a gradient is differentiated."""
    cure = 'name one with grad="...", as in kernel("./a.so:Cube", grad="CubeGrad")'
    if is_gradient:
        cure = 'name one more, as in kernel("./a.so:Cube", grad=("CubeGrad", "CubeGradGrad"))'
    return (
        f"{function.name}: expected an operator with a gradient kernel where a network is "
        f"differentiated, got one without; {cure}"
    )

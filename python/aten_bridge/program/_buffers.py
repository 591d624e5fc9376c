"""What a call of a module assigns to its buffers, which torch.export does not record of parts."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch.fx.experimental.symbolic_shapes import statically_known_true

from aten_bridge.program._private import buffers_of, is_persistent, same_memory, tree_map
from aten_bridge.program._text import dtype_text
from aten_bridge.program._trees import NotExportable


@contextlib.contextmanager
def writing_buffers(module: torch.nn.Module) -> Iterator[None]:
    """Writes what parts assign to their buffers into those that were there, after each call.

    torch.export (2.11) records what the module itself assigns, and forgets what its parts do. In
    the end, and after an error, the module has the buffers, weights and parts that it had.
    """
    known = set(_members_of(module))
    before: dict[tuple[torch.nn.Module, str], torch.Tensor | None] = {}

    def now() -> dict[tuple[torch.nn.Module, str], torch.Tensor | None]:
        parts = module.modules()
        return {(part, name): one for part in parts for name, one in buffers_of(part).items()}

    def keep(*_: Any) -> None:
        before.clear()
        before.update(now())

    def write(_: Any, inputs: Any, results: Any) -> Any:
        assigned: list[tuple[torch.Tensor, torch.Tensor]] = []
        replaced: list[torch.Tensor | None] = []
        for part, name in _members_of(module):
            if (part, name) not in known:
                raise NotExportable(
                    f"expected a module with all of its weights, buffers and parts, got one that "
                    f"registers {name!r} of {type(part).__name__} when it is called; call it once "
                    "in PyTorch first"
                )
        for (part, name), value in now().items():
            buffer = before.get((part, name))
            if value is buffer:
                continue
            replaced.append(buffer)
            if part is not module:
                buffers_of(part)[name] = buffer
            if not _check_assigned(part, name, buffer, value):
                continue
            if sum(same_memory(buffer, one) for one in before.values()) > 1:
                raise NotExportable(
                    "expected a module that assigns to buffers with memory of their own, got "
                    "buffers that share it; write to them in place"
                )
            if part is module:
                setattr(part, name, value)  # it may have been assigned in the dict
            else:
                assigned.append((buffer, value.detach().clone()))
        results = tree_map(
            lambda one: one.clone() if any(same_memory(one, each) for each in replaced) else one,
            results,
        )
        for buffer, value in assigned:
            with torch.no_grad():
                buffer.copy_(value)
        return results

    own = now()
    hooks = [module.register_forward_pre_hook(keep), module.register_forward_hook(write)]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
        for part, name in set(_members_of(module)) - known:
            if hasattr(part, name):  # that of a new part is gone with it
                delattr(part, name)
        for (part, name), buffer in own.items():
            buffers_of(part)[name] = buffer


def _members_of(module: torch.nn.Module) -> Iterator[tuple[torch.nn.Module, str]]:
    """The buffers, weights and parts of each part, by their names in it."""
    for part in module.modules():
        yield from ((part, name) for name in buffers_of(part))
        yield from ((part, name) for name, _ in part.named_parameters(recurse=False))
        yield from ((part, name) for name, _ in part.named_children())


def _check_assigned(
    part: torch.nn.Module, name: str, buffer: torch.Tensor | None, value: torch.Tensor | None
) -> bool:
    """Whether a value takes the place of a buffer; raises NotExportable if it is of another kind.

    Of another shape it is a table, unless the state dict has the buffer.
    """

    def described(tensor: torch.Tensor | None) -> str:
        if tensor is None:
            return "None"
        return f"{dtype_text(tensor.dtype)} {list(tensor.shape)}"

    is_alike = buffer is not None and value is not None and buffer.dtype == value.dtype
    if is_alike and len(buffer.shape) == len(value.shape):
        equal = (one == other for one, other in zip(buffer.shape, value.shape, strict=True))
        if all(map(statically_known_true, equal)):  # a guard would fix a size that may change
            return True
    if buffer is not None and not is_persistent(part, name) and (is_alike or value is None):
        return False
    raise NotExportable(
        "expected a module whose buffers keep their shapes and dtypes, got one that replaces "
        f"{name!r} of {type(part).__name__}, {described(buffer)}, by {described(value)}; pass it "
        "as an input and a result"
    )

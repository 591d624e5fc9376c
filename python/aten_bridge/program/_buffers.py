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

    torch.export (2.11) records what the module itself assigns, and forgets what its parts do.
    """
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
        for (part, name), value in now().items():
            buffer = before.get((part, name))
            if value is buffer:
                continue
            replaced.append(buffer)
            if (part, name) not in before:
                delattr(part, name)
                raise NotExportable(
                    f"expected a module with all of its buffers, got one that registers {name!r} "
                    f"of {type(part).__name__} when it is called; call it once before"
                )
            if part is not module or buffer is None:
                buffers_of(part)[name] = buffer
            if not _check_assigned(part, name, buffer, value):
                continue
            if part is module:
                setattr(part, name, value)  # it may have been assigned in the dict
            else:
                assigned.append((buffer, value.detach().clone()))
        results = tree_map(
            lambda one: one.clone() if any(same_memory(one, each) for each in replaced) else one,
            results,
        )
        for buffer, value in assigned:
            if sum(same_memory(buffer, one) for one in before.values()) > 1:
                raise NotExportable(
                    "expected a module that assigns to buffers with memory of their own, got "
                    "buffers that share it; write to them in place"
                )
            with torch.no_grad():
                buffer.copy_(value)
        return results

    hooks = [module.register_forward_pre_hook(keep), module.register_forward_hook(write)]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


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

"""What programs use of PyTorch that is private, and may be another in a new version.

Each function says in which versions of PyTorch it ran.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import ModuleType
from typing import Any
from unittest import mock

import torch
from torch import fx
from torch.export import ExportedProgram


def trace_joint(function: Callable[..., Any], arguments: Sequence[torch.Tensor]) -> fx.GraphModule:
    """AOTAutograd's graph of a function with its gradient (2.9 to 2.15)."""
    from torch._functorch.aot_autograd import aot_export_joint_simple

    return aot_export_joint_simple(function, tuple(arguments), trace_joint=True)


def guards_of(exported: ExportedProgram) -> list[str]:
    """Conditions on sizes, as Python's expressions; none for one from a file (2.9 to 2.15)."""
    return exported._guards_code


def drop_input(exported: ExportedProgram, node: fx.Node) -> None:
    """Takes an input that nothing reads out of a program (2.9 to 2.15)."""
    exported.graph.erase_node(node)
    signature = exported.graph_signature
    specs = [one for one in signature.input_specs if one.arg.name != node.name]
    exported._graph_signature = dataclasses.replace(signature, input_specs=specs)


def without_guards(exported: ExportedProgram) -> AbstractContextManager[Any]:
    """Keeps a graph that is made of it from checking conditions: 2.9 cannot name those of *args.

    That one has the same conditions all the same, of the same sizes (2.9 to 2.15).
    """
    return mock.patch.object(exported, "_guards_code", [])


def own_expression(number: Any) -> Any:
    """A size before what PyTorch knows to be equal stands for it (2.9 to 2.15)."""
    return number.node._expr


def schema_of(target: Any) -> torch.FunctionSchema | None:
    """The schema of an operator; None for another function (2.9 to 2.15)."""
    return getattr(target, "_schema", None)


def is_composite(target: Any) -> bool:
    """Whether an operator is a function of others, for gradients too (2.9 to 2.15)."""
    key = "CompositeImplicitAutograd"
    return is_operator(target) and torch._C._dispatch_has_kernel_for_dispatch_key(
        target.name(), key
    )


def run_again(target: Any, arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
    """What an operator gives on tensors without data, as when a graph was made (2.9 to 2.15)."""
    mode = torch._guards.detect_fake_mode((arguments, named))
    shapes = mode and mode.shape_env
    with torch.no_grad(), shapes.ignore_fresh_unbacked_symbols() if shapes else nullcontext():
        return target(*arguments, **named)


def same_memory(one: Any, other: Any) -> bool:
    """Whether two tensors, with or without data, are views of one memory (2.9 to 2.15)."""
    if not all(isinstance(each, torch.Tensor) for each in (one, other)):
        return False
    if any(each.layout != torch.strided for each in (one, other)):
        return False
    return one.untyped_storage()._cdata == other.untyped_storage()._cdata


def is_batched(value: Any) -> bool:
    """Whether a value is a tensor of all calls inside a torch.vmap (2.9 to 2.15)."""
    tensor = isinstance(value, torch.Tensor)
    return tensor and torch._C._functorch.is_functorch_wrapped_tensor(value)


def of_one_call(value: Any) -> Any:
    """What one call inside a torch.vmap has for a value of all calls (2.9 to 2.15)."""
    inner = value
    while is_batched(inner):
        inner = torch._C._functorch.get_unwrapped(inner)
    return value if inner is value else inner.new_empty_strided(value.shape, value.stride())


def is_operator(target: Any) -> bool:
    """Whether the dispatcher has it (2.9 to 2.15)."""
    return isinstance(target, torch._ops.OpOverload)


def rename(node: fx.Node, name: str) -> None:
    """Gives a node a name, or one like it where that is taken (2.9 to 2.15)."""
    node._rename(name)


def hooked_gradient_of(module: torch.nn.Module) -> str | None:
    """The name of a part or a weight whose gradient a hook may change; None without any (2.11)."""
    from torch.nn.modules import module as of_all

    for name, part in module.named_modules():
        hooks = (part._backward_hooks, part._backward_pre_hooks)
        if any(hooks) or of_all._global_backward_hooks or of_all._global_backward_pre_hooks:
            return name or type(part).__name__
    for name, weight in module.named_parameters():
        if weight._backward_hooks or weight._post_accumulate_grad_hooks:
            return name
    return None


def buffers_of(part: torch.nn.Module) -> dict[str, torch.Tensor | None]:
    """The buffers of a module itself, which may be replaced there; none of TorchScript (2.11)."""
    return {} if isinstance(part, torch.jit.ScriptModule) else part._buffers


def is_persistent(part: torch.nn.Module, name: str) -> bool:
    """Whether a module's own buffer belongs to its state dict (2.9 to 2.15)."""
    return name not in part._non_persistent_buffers_set


def sets_gradients(node: fx.Node) -> bool:
    """Whether a call of a graph turns gradients off or on (2.9 to 2.15)."""
    return node.target is torch._C._set_grad_enabled


def tree_map(function: Callable[[Any], Any], tree: Any) -> Any:
    """The same tree of what a function makes of its leaves (2.9 to 2.15)."""
    from torch.utils._pytree import tree_map

    return tree_map(function, tree)


def decompositions() -> ModuleType:
    """Operators as others, in functions by their names (2.9 to 2.15)."""
    from torch._decomp import decompositions

    return decompositions


def data_free_implementations() -> dict[Any, Callable[..., Any]]:
    """Operators without data whose sizes depend on values; none in a version without it (2.11)."""
    from torch._subclasses import fake_impls

    return getattr(fake_impls, "op_implementations_dict", {})


@contextmanager
def leaving_modes() -> Iterator[None]:
    """Leaves what turns gradients and autocast off and on in the graphs of torch.export.

    PyTorch makes graphs of what stands between, and forgets the mode of those that have a
    torch.cond (2.9 to 2.15).
    """
    from torch._export.passes import replace_autocast_with_hop_pass, replace_set_grad_with_hop_pass

    def leave(graph_module: fx.GraphModule, signature: Any) -> tuple[fx.GraphModule, Any]:
        return graph_module, signature

    autocast, grad = replace_autocast_with_hop_pass, replace_set_grad_with_hop_pass
    with (
        mock.patch.object(autocast, "replace_autocast_with_hop_pass", leave),
        mock.patch.object(grad, "replace_set_grad_with_hop_pass", leave),
    ):
        yield


@contextmanager
def alike_gradients_of_sides() -> Iterator[None]:
    """Gives gradients of both sides of a torch.cond the same strides (2.9 to 2.15)."""
    from torch._higher_order_ops.cond import CondOp

    cond = sys.modules[CondOp.__module__]
    own = cond.create_bw_fn

    def create(*arguments: Any, **named: Any) -> Callable[..., Any]:
        gradients_of = own(*arguments, **named)

        def run(*inputs: Any) -> Any:
            return tree_map(
                lambda one: one.clone(memory_format=torch.contiguous_format)
                if isinstance(one, torch.Tensor)
                else one,
                gradients_of(*inputs),
            )

        return run

    with mock.patch.object(cond, "create_bw_fn", create):
        yield


@contextmanager
def keeping(operators: Collection[Any]) -> Iterator[None]:
    """Keeps calls of these operators in graphs where nothing reads them.

    PyTorch itself keeps some since 2.13, with inputs and results without values (2.9 to 2.15).
    """
    from torch._library.simple_registry import singleton
    from torch.fx.node import _side_effectful_functions

    entries = [singleton.find(one._name) for one in operators]
    effects = [(one.effect, one.effect._effect) for one in entries if hasattr(one, "effect")]
    added = set(operators) - _side_effectful_functions
    _side_effectful_functions.update(added)
    try:
        for holder, _ in effects:
            holder._effect = None
        yield
    finally:
        for holder, own in effects:
            holder._effect = own
        _side_effectful_functions.difference_update(added)


@contextmanager
def dropping_buffer_hooks() -> Iterator[None]:
    """Drops the hook for buffers that torch.export leaves after an error (2.9 to 2.15)."""
    from torch.nn.modules import module as of_all

    own = dict(of_all._global_buffer_registration_hooks)
    try:
        yield
    finally:
        of_all._global_buffer_registration_hooks.clear()
        of_all._global_buffer_registration_hooks.update(own)


@contextmanager
def without_decomposition(operator: Any) -> Iterator[None]:
    """Keeps PyTorch from recording an operator as others (2.11)."""
    from torch._decomp import decomposition_table

    tables = ((operator.py_kernels, torch._C.DispatchKey.Autograd), (decomposition_table, operator))
    owns = [(table, key, table[key]) for table, key in tables if key in table]
    try:
        for table, key, _ in owns:
            del table[key]
        operator._dispatch_cache.clear()
        yield
    finally:
        for table, key, own in owns:
            table[key] = own
        operator._dispatch_cache.clear()

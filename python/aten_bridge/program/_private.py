"""What programs use of PyTorch that is private, and may be another in a new version.

Each function says in which versions of PyTorch it ran.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any

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


def own_expression(number: Any) -> Any:
    """A size before what PyTorch knows to be equal stands for it (2.9 to 2.15)."""
    return number.node._expr


def schema_of(target: Any) -> torch.FunctionSchema | None:
    """The schema of an operator; None for another function (2.9 to 2.15)."""
    return getattr(target, "_schema", None)


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
def leaving_grad_modes() -> Iterator[None]:
    """Leaves what turns gradients off and on in the graphs of torch.export.

    PyTorch makes graphs of what stands between, and forgets the mode of those that have a
    torch.cond (2.9 to 2.15).
    """
    from torch._export.passes import replace_set_grad_with_hop_pass as one

    own = one.replace_set_grad_with_hop_pass
    one.replace_set_grad_with_hop_pass = lambda graph_module, signature: (graph_module, signature)
    try:
        yield
    finally:
        one.replace_set_grad_with_hop_pass = own


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

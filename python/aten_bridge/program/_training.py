"""Training: the graph of a step as a forward and a backward program.

What is private to PyTorch stands here and in _corrections.py: torch._functorch's
aot_export_joint_simple, which traces a function and its gradient (PyTorch 2.9 to 2.13).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence, Set
from typing import Any

import torch
from torch import fx

from aten_bridge.program._corrections import allow_other_strides
from aten_bridge.program._programs import Training
from aten_bridge.program._text import bare_symbols, is_number, memory_order

Writer = Callable[..., str]  # write_program(), with what is the same for all of a module


def placeholders_of(graph: fx.Graph) -> list[fx.Node]:
    return [node for node in graph.nodes if node.op == "placeholder"]


def results_of(graph: fx.Graph) -> Sequence[Any]:
    (output,) = graph.find_nodes(op="output")
    return output.args[0]


def calls_of(graph: fx.Graph) -> list[fx.Node]:
    return [node for node in graph.nodes if node.op == "call_function"]


def is_view(node: fx.Node) -> bool:
    """Whether an operator gives another view of its first argument's memory."""
    schema = getattr(node.target, "_schema", None)
    if schema is None or not schema.arguments or len(schema.returns) != 1:
        return False
    alias = schema.arguments[0].alias_info
    return alias is not None and not alias.is_write


def trace_training(
    graph_module: fx.GraphModule,
    needs: Sequence[bool],
    changed: Set[str],
    write: Writer,
    saves: bool,
) -> Training | None:
    """The two programs of a step; None where no input has a gradient.

    Where the forward one `saves` nothing, the backward one computes what it needs again. `changed`
    are the names of inputs that are not the same any more when the backward one runs.
    """
    from torch._functorch.aot_autograd import aot_export_joint_simple

    examples = [node.meta["val"] for node in placeholders_of(graph_module.graph)]
    arguments = [
        value.detach().requires_grad_(need) for value, need in zip(examples, needs, strict=True)
    ]
    has_gradient: list[bool] = []

    def run(*inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        results = [one for one in graph_module(*inputs) if isinstance(one, torch.Tensor)]
        has_gradient[:] = [result.requires_grad for result in results]
        return tuple(result.clone() for result in results)  # no views of inputs

    joint = aot_export_joint_simple(run, tuple(arguments), trace_joint=True)
    if not any(has_gradient):
        return None
    joint.graph.eliminate_dead_code()
    allow_other_strides(joint.graph)
    for node, original in zip(
        placeholders_of(joint.graph), placeholders_of(graph_module.graph), strict=False
    ):
        node._rename(original.name)  # by which errors tell inputs
    return _split(joint.graph, has_gradient, len(needs), changed, write, saves)


def _split(
    graph: fx.Graph,
    has_gradient: Sequence[bool],
    input_count: int,
    changed: Set[str],
    write: Writer,
    saves: bool,
) -> Training:
    placeholders = placeholders_of(graph)
    primals, tangents = placeholders[:input_count], placeholders[input_count:]
    results = [_without_clone(result) for result in results_of(graph)[: len(has_gradient)]]
    gradients = results_of(graph)[len(has_gradient) :]  # None for inputs that need none

    forward = _ancestors(results)
    saved: dict[fx.Node, None] = {}  # in order
    backward: set[fx.Node] = set()

    found = [gradient for gradient in gradients if gradient is not None]
    todo = list(found)  # what the backward program needs
    while todo:
        node = todo.pop()
        if node in backward or is_number(node):
            continue
        backward.add(node)
        if node.op == "placeholder":
            is_saved = node.name in changed
        else:
            is_saved = saves and node in forward and not _is_repeated(node)
        if is_saved:
            saved[node] = None
        else:
            todo += node.all_input_nodes

    # A result lies row-major in the host's memory.
    kept = [node for node in saved if node not in results or memory_order(node.meta["val"])]
    outputs = [*(None if node in kept else node for node in results), *kept]
    of_primals = [i for i, node in enumerate(primals) if node in backward - saved.keys()]
    of_outputs = [i for i, node in enumerate(outputs) if node in saved and node not in outputs[:i]]
    given = [primals[i] for i in of_primals] + list(saved) + tangents
    bound = {symbol for node in given for symbol in bare_symbols(node.meta["val"])}
    for i, primal in enumerate(primals):  # sizes that no other value tells
        own = bare_symbols(primal.meta["val"])
        if i not in of_primals and own - bound:
            bound |= own
            of_primals.append(i)
    inputs = [primals[i] for i in of_primals] + [outputs[i] for i in of_outputs] + tangents
    calls = [node for node in calls_of(graph) if node in backward and node not in saved]
    return Training(
        forward=write(
            primals,
            [n for n in calls_of(graph) if n in forward],
            results,
            stored_outputs=kept,
        ),
        backward=write(inputs, calls, found, guards=(), stored_inputs=kept),
        inputs=of_primals,
        outputs=of_outputs,
        tangents=[i for i, has in enumerate(has_gradient) if has],
        gradients=[
            i
            for i, gradient in zip(range(input_count), gradients, strict=True)
            if gradient is not None
        ],
    )


def _without_clone(node: fx.Node) -> fx.Node:
    """The host copies results into its own memory."""
    is_clone = node.target is torch.ops.aten.clone.default and len(node.args) == 1
    return node.args[0] if is_clone and not node.kwargs else node


def _is_repeated(node: fx.Node) -> bool:
    """Whether the backward program computes a value again, and does not get it from the other."""
    if node.target is operator.getitem:
        return _is_repeated(node.args[0]) and is_view(node.args[0])
    return is_view(node)


def _ancestors(nodes: Sequence[fx.Node]) -> set[fx.Node]:
    found: set[fx.Node] = set()
    todo = list(nodes)
    while todo:
        node = todo.pop()
        if node not in found:
            found.add(node)
            todo += node.all_input_nodes
    # What is taken out of several is part of the call.
    taken = [user for node in found for user in node.users if user.target is operator.getitem]
    return found.union(taken)

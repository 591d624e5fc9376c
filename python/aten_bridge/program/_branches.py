"""torch.cond: both of its sides in one graph, of whose calls each knows when it runs."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

import torch
from torch import fx

_COND = torch.ops.higher_order.cond


class Condition(NamedTuple):
    """A condition that has to hold for a call to run."""

    value: fx.Node  # a bool
    holds: bool  # whether the call runs if it is True, or if it is False


def choose(condition: Any, if_true: Any, if_false: Any) -> NoReturn:
    """The target of a node whose value is one of its last two arguments."""
    raise AssertionError("in graphs alone")


def conditions_of(node: fx.Node) -> Sequence[Condition]:
    """The outer ones first."""
    return node.meta.get("conditions", ())


def inputs_of(node: fx.Node) -> list[fx.Node]:
    """What a call reads, and what it depends on."""
    return [*node.all_input_nodes, *(one.value for one in conditions_of(node))]


def is_condition(node: fx.Node) -> bool:
    return node.target is _COND


def graphs_of(graph_module: fx.GraphModule) -> list[fx.Graph]:
    """A module's graph, and those of the sides of its torch.cond."""
    return [one.graph for one in graph_module.modules() if isinstance(one, fx.GraphModule)]


def may_have_gradient(value: torch.Tensor) -> bool:
    """Whether its dtype is one of numbers that have gradients."""
    return value.is_floating_point() or value.is_complex()


def part_results(graph_module: fx.GraphModule) -> None:
    """Makes two of each torch.cond of which some results have gradients, and some cannot.

    PyTorch 2.11 takes one gradient for each result.
    """
    for node in graph_module.graph.find_nodes(op="call_function", target=_COND):
        condition, *sides, operands = node.args
        bodies = [graph_module.get_submodule(side.target) for side in sides]
        for body in bodies:
            part_results(body)
        kinds = list(map(may_have_gradient, node.meta["val"]))
        if all(kinds) or not any(kinds):
            continue
        takers = {user: user.args[1] for user in node.users}
        for kind in (True, False):
            places = [place for place, own in enumerate(kinds) if own == kind]
            with graph_module.graph.inserting_before(node):
                names = []
                for side, body in zip(sides, bodies, strict=True):
                    name = f"{side.target}_{'numbers' if kind else 'others'}"
                    graph_module.add_submodule(name, _with_results(body, places))
                    names.append(graph_module.graph.get_attr(name))
                part = graph_module.graph.call_function(_COND, (condition, *names, operands))
            part.meta.update(node.meta, val=tuple(node.meta["val"][place] for place in places))
            for taker, place in takers.items():
                if place in places:
                    taker.args = (part, places.index(place))
        graph_module.graph.erase_node(node)
    graph_module.recompile()


def _with_results(module: fx.GraphModule, places: Sequence[int]) -> fx.GraphModule:
    graph = fx.Graph()
    results = graph.graph_copy(module.graph, {})
    graph.output(tuple(results[place] for place in places))
    graph.eliminate_dead_code()
    return fx.GraphModule(module, graph)


def inline_branches(graph_module: fx.GraphModule) -> fx.Graph:
    """A copy of a graph with the calls of both sides instead of each torch.cond."""
    graph = fx.Graph()
    graph.output(_copy(graph_module, graph, {}, ()))
    return graph


def _copy(
    graph_module: fx.GraphModule,
    graph: fx.Graph,
    values: dict[fx.Node, Any],
    conditions: Sequence[Condition],
) -> Any:
    """Appends the calls of a graph, and returns its results; `values` are those of its inputs."""

    def mapped(argument: Any) -> Any:
        return fx.map_arg(argument, values.__getitem__)

    chosen: dict[fx.Node, tuple[Any, ...]] = {}
    for node in graph_module.graph.nodes:
        if node in values:
            continue
        if node.op == "output":
            return mapped(node.args[0])
        if is_condition(node):
            value, *sides, operands = node.args
            value = _as_tensor(mapped(value), graph)
            results = []
            for side, holds in zip(sides, (True, False), strict=True):
                body = graph_module.get_submodule(side.target)
                inputs = body.graph.find_nodes(op="placeholder")
                given = dict(zip(inputs, mapped(operands), strict=True))
                results.append(_copy(body, graph, given, (*conditions, Condition(value, holds))))
            chosen[node] = (value, *results)
        elif node.op == "get_attr" and all(map(is_condition, node.users)):
            continue
        elif node.target is operator.getitem and node.args[0] in chosen:
            value, *sides = chosen[node.args[0]]
            copied = graph.call_function(choose, (value, *(side[node.args[1]] for side in sides)))
            copied.meta.update(node.meta, conditions=conditions)
            values[node] = copied
        else:
            values[node] = graph.node_copy(node, values.__getitem__)
            values[node].meta["conditions"] = conditions
    raise AssertionError("a graph without results")


def _as_tensor(value: Any, graph: fx.Graph) -> fx.Node:
    """A condition on sizes as a tensor, as all other conditions are."""
    own = value.meta["val"]
    if isinstance(own, torch.Tensor):
        return value
    made = graph.call_function(
        torch.ops.aten.scalar_tensor.default, (value,), {"dtype": torch.bool}
    )
    made.meta["val"] = torch.empty((), dtype=torch.bool, device="meta")
    return made

"""torch.no_grad() in graphs: what is computed there is detached where gradients are recorded."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, NoReturn

import torch
from torch import fx
from torch.export import ExportedProgram

from aten_bridge.program._branches import is_condition
from aten_bridge.program._private import schema_of, sets_gradients
from aten_bridge.program._text import line_of, tensors_of
from aten_bridge.program._trees import NotExportable

_DETACH = torch.ops.aten.detach.default
_REGION = torch.ops.higher_order.wrap_with_set_grad_enabled


def keep_from_gradients(exported: ExportedProgram) -> None:
    """Detaches what a module computes without gradients, which a decomposition forgets.

    Raises NotExportable where values are written that have a gradient on one side of such a
    boundary alone.
    """
    signature = exported.graph_signature
    others = {*signature.inputs_to_buffers, *signature.inputs_to_lifted_tensor_constants}
    _Walk(set(signature.inputs_to_parameters)).run(exported.graph_module, others)


class _Walk:
    """Through the calls of a graph, and of the graphs that these run."""

    def __init__(self, parameters: set[str]) -> None:
        self._parameters = parameters  # which no module may write to
        self._variables: set[fx.Node] = set()  # values with a gradient
        self._computed: set[fx.Node] = set()  # values without, computed from variables
        self._owners: dict[fx.Node, fx.Node] = {}  # a view's: the value that has the memory
        self._written: dict[fx.Node, fx.Node] = {}  # a variable's: what wrote to it without
        self._detached: dict[fx.Node, fx.Node] = {}
        self._results: dict[fx.Node, list[Sequence[Any]]] = {}  # by the node that runs the graphs

    def run(self, module: fx.GraphModule, constants: set[str]) -> None:
        for node in module.graph.find_nodes(op="placeholder"):
            self._mark(node, node.name not in constants, False)
        self._visit(module, records=True)

    def _visit(self, module: fx.GraphModule, records: bool, ends: bool = True) -> Sequence[Any]:
        """Returns the results; those of a graph that `ends` are used where gradients are."""
        for node in list(module.graph.nodes):
            if node.op == "output":
                if ends:
                    self._detach_inputs(node)
                module.recompile()
                return node.args[0]
            if sets_gradients(node):
                (records,) = node.args
                module.graph.erase_node(node)
            elif node.target is _REGION:
                inside, body, *operands = node.args
                self._results[node] = [self._run(module, body, operands, inside, ends=False)]
            elif is_condition(node):
                _, *sides, operands = node.args
                self._results[node] = [self._run(module, one, operands, records) for one in sides]
            elif node.target is operator.getitem:
                self._take(node, *node.args, records)
            elif node.op == "call_function":
                self._call(node, records)
        raise AssertionError("a graph without results")

    def _run(
        self,
        module: fx.GraphModule,
        name: fx.Node,
        operands: Sequence[Any],
        records: bool,
        ends: bool = True,
    ) -> Sequence[Any]:
        body = module.get_submodule(name.target)
        for node, operand in zip(body.graph.find_nodes(op="placeholder"), operands, strict=True):
            if isinstance(operand, fx.Node):
                self._be(node, operand)
        return self._visit(body, records, ends)

    def _take(self, node: fx.Node, whole: fx.Node, place: int, records: bool) -> None:
        """One of several results."""
        if whole in self._results:
            for results in self._results[whole]:
                self._be(node, results[place])
            if not records:
                self._mark(node, False, self._varies(node))
            return
        if whole in self._owners:
            self._owners[node] = self._owners[whole]
        self._mark(node, self._varies(whole), whole in self._computed)

    def _be(self, node: fx.Node, other: fx.Node) -> None:
        """One value by two names."""
        varies = self._varies(node) or self._varies(other)
        self._owners[node] = self._owner(other)
        self._mark(node, varies, other in self._computed)

    def _owner(self, node: fx.Node) -> fx.Node:
        return self._owners.get(node, node)

    def _varies(self, node: fx.Node) -> bool:
        return self._owner(node) in self._variables

    def _mark(self, node: fx.Node, varies: bool, computed: bool) -> None:
        if any(one.is_floating_point() or one.is_complex() for one in tensors_of(node)):
            if varies:
                self._variables.add(self._owner(node))
            if computed:
                self._computed.add(node)

    def _call(self, node: fx.Node, records: bool) -> None:
        if node.target is _DETACH or not tensors_of(node):
            return
        if records:
            self._detach_inputs(node)
        varies = any(map(self._varies, node.all_input_nodes))
        schema = schema_of(node.target)
        for argument, value in zip(schema.arguments if schema else (), node.args, strict=False):
            if argument.alias_info is None or not isinstance(value, fx.Node):
                continue
            owner = self._owner(value)
            if any(result.alias_info is not None for result in schema.returns):
                self._owners[node] = owner
            if not argument.alias_info.is_write:
                continue
            if not records and owner in self._variables and owner.name not in self._parameters:
                self._written[owner] = node
            elif records and varies and owner in self._detached.values():
                _refuse("without gradients", "with them", node)
        if records:
            self._mark(node, varies, False)
        else:
            computed = any(one in self._computed for one in node.all_input_nodes)
            self._mark(node, False, varies or computed)

    def _detach_inputs(self, node: fx.Node) -> None:
        for value in node.all_input_nodes:
            if by := self._written.get(self._owner(value)):
                _refuse("with gradients", "without them", by)
            if value not in self._computed:
                continue
            if value not in self._detached:
                with node.graph.inserting_before(node):
                    detached = node.graph.call_function(_DETACH, (value,))
                detached.meta.update(value.meta)
                self._detached[value] = detached
            node.replace_input_with(value, self._detached[value])


def _refuse(computed: str, written: str, node: fx.Node) -> NoReturn:
    raise NotExportable(
        f"expected values that are computed {computed} to be written so too, got "
        f"{node.target.name().removesuffix('.default')}{line_of(node)}, which writes to one "
        f"{written}, by torch.no_grad(); write to its clone()"
    )

"""torch.no_grad() in graphs: what is computed there is detached where gradients are recorded."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

import torch
from torch import fx
from torch.export import ExportedProgram

from aten_bridge.program._branches import graphs_of, is_condition, may_have_gradient
from aten_bridge.program._corrections import argument_of
from aten_bridge.program._private import (
    is_batched,
    is_composite,
    is_operator,
    of_one_call,
    run_again,
    same_memory,
    schema_of,
    sets_gradients,
)
from aten_bridge.program._text import line_of, tensors_of, unbacked_symbols
from aten_bridge.program._trees import NotExportable

_DETACH = torch.ops.aten.detach.default
_REGION = torch.ops.higher_order.wrap_with_set_grad_enabled
_AUTOCAST = torch.ops.higher_order.wrap_with_autocast


def keep_from_gradients(exported: ExportedProgram) -> None:
    """Detaches what a module computes without gradients, which a decomposition forgets.

    Raises NotExportable where values are written that have a gradient on one side of such a
    boundary alone.
    """
    graphs = graphs_of(exported.graph_module)
    calls = itertools.chain.from_iterable(graph.nodes for graph in graphs)
    if not any(one.target in (_DETACH, _REGION) or sets_gradients(one) for one in calls):
        return
    signature = exported.graph_signature
    parameters = signature.inputs_to_parameters
    constants = {*signature.inputs_to_buffers, *signature.inputs_to_lifted_tensor_constants}
    for node, name in parameters.items():
        if not exported.state_dict[name].requires_grad:
            constants.add(node)
    _Walk(set(parameters)).run(exported.graph_module, constants)


class _Source(NamedTuple):
    """What a result shares memory with."""

    value: fx.Node
    is_same: bool  # the tensor itself, not a view


class _Walk:
    """Visits the calls of a graph, and of the graphs that these run, in their order."""

    def __init__(self, parameters: set[str]) -> None:
        self._parameters = parameters  # which no module may write to
        self._same: dict[fx.Node, fx.Node] = {}  # other names of a value
        self._owners: dict[fx.Node, fx.Node] = {}  # a view's: the value that has the memory
        self._variables: set[fx.Node] = set()  # owners whose values have a gradient
        self._computed: set[fx.Node] = set()  # without one, from variables: owners and views
        self._loose: set[fx.Node] = set()  # views by detach()
        self._written: dict[fx.Node, fx.Node] = {}  # a variable's: what wrote to it without
        self._detached: dict[fx.Node, fx.Node] = {}
        self._sources: dict[fx.Node, list[_Source | None]] = {}  # a list's: of its elements
        self._results: dict[fx.Node, list[Sequence[Any]]] = {}  # by the node that runs the graphs

    def run(self, module: fx.GraphModule, constants: set[str]) -> None:
        for node in module.graph.find_nodes(op="placeholder"):
            self._mark(node, node.name not in constants, False)
        self._visit(module, records=True)

    def _visit(self, module: fx.GraphModule, records: bool, ends: bool = True) -> Sequence[Any]:
        """Returns the results, which are used with gradients if the graph `ends`."""
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
            elif node.target is _AUTOCAST:
                body, *operands = node.args[4:]
                self._results[node] = [self._run(module, body, operands, records, ends=False)]
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
                self._same[node] = self._value(operand)
        return self._visit(body, records, ends)

    # ===--- values ---===

    def _value(self, node: fx.Node) -> fx.Node:
        return self._same.get(node, node)

    def _owner(self, node: fx.Node) -> fx.Node:
        value = self._value(node)
        return self._owners.get(value, value)

    def _is_computed(self, node: fx.Node) -> bool:
        return self._value(node) in self._computed or self._owner(node) in self._computed

    def _varies(self, node: fx.Node) -> bool:
        is_loose = self._value(node) in self._loose or self._is_computed(node)
        return self._owner(node) in self._variables and not is_loose

    def _mark(self, node: fx.Node, varies: bool, computed: bool) -> None:
        if any(map(may_have_gradient, tensors_of(node))):
            if varies:
                self._variables.add(self._owner(node))
            if computed:
                self._computed.add(self._value(node))

    # ===--- calls ---===

    def _take(self, node: fx.Node, whole: fx.Node, place: int, records: bool) -> None:
        """One of several results."""
        if whole not in self._results:
            sources = self._sources.get(whole)
            computed = self._is_computed(whole)
            self._settle(node, sources and sources[place], self._varies(whole), computed, records)
            return
        first, *others = (results[place] for results in self._results[whole])
        if not isinstance(first, fx.Node):
            return
        self._same[node] = self._value(first)
        for other in others:
            self._mark(node, self._varies(other), self._is_computed(other))
        if not records:
            self._mark(node, False, self._varies(node))

    def _settle(
        self, node: fx.Node, source: _Source | None, varies: bool, computed: bool, records: bool
    ) -> None:
        """What a result is; `varies` and `computed` tell that of the inputs."""
        if source is None:
            self._mark(node, varies and records, (varies or computed) and not records)
        elif source.is_same:
            self._same[node] = self._value(source.value)
        else:
            self._owners[node] = self._owner(source.value)
            if self._is_computed(source.value) or (self._varies(source.value) and not records):
                self._computed.add(node)
            elif self._value(source.value) in self._loose:
                self._loose.add(node)

    def _call(self, node: fx.Node, records: bool) -> None:
        if node.target is _DETACH:
            self._owners[node] = self._owner(node.args[0])
            self._loose.add(node)
            return
        if not _written_by(node) and not tensors_of(node):
            return
        if records:
            self._detach_inputs(node)
        inputs = [] if _is_filled(node) else node.all_input_nodes
        varies = any(map(self._varies, inputs))
        computed = any(map(self._is_computed, inputs))
        written = _written_by(node)
        for value in written:
            self._write(node, value, varies, computed, records)
        if written:
            source = _Source(written[0], is_same=True) if _may_share(node) else None
            self._settle(node, source, varies, computed, records)
            return
        sources = _sources_of(node)
        if isinstance(node.meta["val"], (list, tuple)):
            self._sources[node] = sources
            sources = [None]
        self._settle(node, sources[0], varies, computed, records)

    def _write(
        self, node: fx.Node, value: fx.Node, varies: bool, computed: bool, records: bool
    ) -> None:
        owner = self._owner(value)
        if owner in self._variables:
            if owner.name not in self._parameters and not (records and self._varies(value)):
                self._written[owner] = node
        elif not records:
            self._mark(owner, False, varies or computed)
        elif varies and owner in self._detached.values():
            _refuse("without gradients", "with them", node)
        else:
            self._mark(owner, varies, False)

    def _detach_inputs(self, node: fx.Node) -> None:
        for value in node.all_input_nodes:
            if by := self._written.get(self._owner(value)):
                _refuse("with gradients", "without them", by)
            if not self._is_computed(value):
                continue
            if value not in self._detached:
                with node.graph.inserting_before(node):
                    detached = node.graph.call_function(_DETACH, (value,))
                detached.meta.update(value.meta)
                self._detached[value] = detached
            node.replace_input_with(value, self._detached[value])


def _written_by(node: fx.Node) -> list[fx.Node]:
    """The arguments that an operator writes to."""
    schema, found = schema_of(node.target), []
    for argument in schema.arguments if schema else ():
        if argument.alias_info is not None and argument.alias_info.is_write:
            given = argument_of(node, argument.name)
            found += given if isinstance(given, (list, tuple)) else [given]
    return found


def _may_share(node: fx.Node) -> bool:
    """Whether a schema says that results may have the memory of arguments."""
    schema = schema_of(node.target)
    return schema is not None and any(one.alias_info is not None for one in schema.returns)


def _is_filled(node: fx.Node) -> bool:
    """Whether an operator takes only shapes and dtypes of tensors."""
    name = node.target.__name__.partition(".")[0]
    return name.startswith("new_") or name.endswith("_like")


def _sources_of(node: fx.Node) -> list[_Source | None]:
    """For each result; operators such as aten::to may give their argument itself."""
    results = node.meta["val"]
    count = len(results) if isinstance(results, (list, tuple)) else 1
    given = {one: one.meta.get("val") for one in node.all_input_nodes}
    if not is_operator(node.target) and any(map(is_batched, [results, *given.values()])):
        return [_Source(next(iter(given)), False)] * count  # what torch.vmap begins and ends with
    given = {one: of_one_call(value) for one, value in given.items()}
    if not _may_share(node) and not is_composite(node.target):
        return [None] * count
    if not unbacked_symbols(tensors_of(node)):  # it would find new ones
        arguments, named = fx.map_arg((node.args, node.kwargs), given.__getitem__)
        results = run_again(node.target, arguments, named)
    found: list[_Source | None] = []
    for result in map(of_one_call, results if isinstance(results, (list, tuple)) else [results]):
        same = [one for one, value in given.items() if value is result]
        views = [one for one, value in given.items() if same_memory(value, result)]
        found.append(_Source((same or views)[0], bool(same)) if same or views else None)
    return found


def _refuse(computed: str, written: str, node: fx.Node) -> NoReturn:
    raise NotExportable(
        f"expected values that are computed {computed} to be written so too, got "
        f"{node.target.name().removesuffix('.default')}{line_of(node)}, which writes to one "
        f"{written}, by torch.no_grad(); write to its clone()"
    )

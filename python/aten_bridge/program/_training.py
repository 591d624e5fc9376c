"""Training: the graph of a step as a forward and a backward program."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Iterable, Sequence, Set
from typing import Any, NamedTuple

import torch
from torch import fx

from aten_bridge.program._branches import (
    conditions_of,
    inline_branches,
    inputs_of,
    part_results,
)
from aten_bridge.program._corrections import CHECKS, allow_other_strides, argument_of
from aten_bridge.program._private import rename, schema_of, trace_joint
from aten_bridge.program._programs import Derivative, Training
from aten_bridge.program._text import (
    bare_symbols,
    is_number,
    is_unbacked,
    line_of,
    memory_order,
    tensors_of,
    unbacked_symbols,
)
from aten_bridge.program._trees import NotExportable

Function = Callable[..., Sequence[torch.Tensor]]
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
    schema = schema_of(node.target)
    if schema is None or not schema.arguments or len(schema.returns) != 1:
        return False
    alias = schema.arguments[0].alias_info
    return alias is not None and not alias.is_write


def is_random_node(node: fx.Node) -> bool:
    """Whether an operator draws numbers.

    PyTorch's attention and recurrent layers without dropout, or in evaluation mode, are said to,
    and do not.
    """
    if torch.Tag.nondeterministic_seeded not in getattr(node.target, "tags", ()):
        return False
    if node.target.namespace != "aten":
        return True
    return all(
        argument_of(node, one) not in (0, False) for one in ("dropout_p", "dropout", "train")
    )


def _trace(
    function: Function, arguments: Sequence[torch.Tensor], names: Iterable[str]
) -> tuple[fx.Graph, list[bool]]:
    """A function with its gradient, and which results have one; errors tell inputs by `names`."""
    has_gradient: list[bool] = []

    def run(*inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        results = function(*inputs)
        has_gradient[:] = [result.requires_grad for result in results]
        return tuple(result.clone() for result in results)  # no views of inputs

    graph = inline_branches(trace_joint(run, arguments))
    for node in calls_of(graph):
        if conditions_of(node) and is_random_node(node):
            # The gradient's sides compute their values again, and would draw other numbers.
            raise NotExportable(
                "expected a module that draws no random numbers in a side of torch.cond while it "
                f"is trained, got "
                f"{node.target.name().removesuffix('.default')}{line_of(node)}; draw them before "
                "torch.cond"
            )
    graph.eliminate_dead_code()
    allow_other_strides(graph)
    for node, name in zip(placeholders_of(graph), names, strict=False):
        rename(node, name)
    return graph, has_gradient


def _differentiable(value: torch.Tensor, needs_gradient: bool = True) -> torch.Tensor:
    return value.detach().requires_grad_(needs_gradient)


def trace_training(
    graph_module: fx.GraphModule,
    needs: Sequence[bool],
    changed: Set[str],
    write: Writer,
    saves: bool,
    order: int = 1,
) -> Training | None:
    """The two programs of a step; None where no input has a gradient, or none can be computed.

    Where the forward one `saves` nothing, the backward one computes what it needs again. `changed`
    are the names of inputs that are saved, as they change until the backward one runs. `order` is
    how often a module can be differentiated: once where gradients of gradients read what changes.
    """
    part_results(graph_module)
    inputs = placeholders_of(graph_module.graph)
    symbols = _symbols(inputs)
    arguments = [
        _differentiable(node.meta["val"], need) for node, need in zip(inputs, needs, strict=True)
    ]

    def run(*inputs: torch.Tensor) -> list[torch.Tensor]:
        return [one for one in graph_module(*inputs) if isinstance(one, torch.Tensor)]

    graph, has_gradient = _trace(run, arguments, [node.name for node in inputs])
    if not any(has_gradient) or all(one is None for one in results_of(graph)[len(has_gradient) :]):
        return None
    if order > 1 and any(map(conditions_of, calls_of(graph))):
        raise NotExportable(
            "gradient_order: expected a module without torch.cond, whose gradients PyTorch does "
            "not differentiate, got one with it; leave out gradient_order"
        )
    _check_sizes(symbols, inputs, "gradients", "")
    higher = _trace_derivatives(run, arguments, _Joint.read(graph, has_gradient), order)
    _check_sizes(symbols, inputs, "gradients of gradients", ", or gradient_order")
    needed = set().union(*(one.used_inputs(len(inputs)) for one in higher))
    drawn = sum(map(is_random_node, _ancestors(results_of(graph)[: len(has_gradient)])))
    # Numbers that no result reads are drawn in a derivative alone: its others would be different.
    draws_more = any(one.draws and len(one.draws) != drawn for one in higher)
    if draws_more or any(inputs[i].name in changed for i in needed):
        higher, needed = [], set()
    split = functools.partial(_split, graph, has_gradient, len(needs), changed, write)
    training = None
    if not any(one.draws for one in higher):
        training = split(saves, needed)
    training = training or split(False, needed, draws_again=True)
    if training is None:
        return None
    places = [*training.inputs, *range(len(inputs), len(inputs) + len(training.tangents))]
    derivatives = []
    for one in higher:
        derivatives.append(one.write(places, write))
        places += range(one.operand_count, len(placeholders_of(one.graph)))
    return training._replace(derivatives=tuple(derivatives))


# ===--- gradients of gradients ---===


def _symbols(inputs: Sequence[fx.Node]) -> set[str]:
    """The symbols of the sizes, as long as PyTorch takes none of them for a number."""
    return {
        symbol.name
        for node in inputs
        for size in node.meta["val"].shape
        if not isinstance(size, int)
        for symbol in size.node.expr.free_symbols
    }


def _check_sizes(symbols: set[str], inputs: Sequence[fx.Node], where: str, cure: str) -> None:
    if fixed := symbols - _symbols(inputs):
        raise NotExportable(
            f"expected sizes that may change in {where} too, got some that PyTorch fixes in an "
            f"operator's, which it calls {sorted(fixed)}; leave out dynamic_shapes for these{cure}"
        )


class _Joint(NamedTuple):
    """The graph of a function with its gradient."""

    graph: fx.Graph
    operand_count: int  # how many inputs the function has
    tangents: list[int]  # results that have a gradient
    gradients: list[fx.Node | None]  # for each operand
    calls: list[fx.Node]  # what these need
    draws: list[fx.Node]  # those of the calls that draw random numbers: all of the function's

    @staticmethod
    def read(graph: fx.Graph, has_gradient: Sequence[bool]) -> _Joint:
        tangents = [i for i, has in enumerate(has_gradient) if has]
        gradients = list(results_of(graph)[len(has_gradient) :])
        draws = [node for node in calls_of(graph) if is_random_node(node)]
        needed = _ancestors([*(one for one in gradients if one is not None), *draws])
        calls = [node for node in calls_of(graph) if node in needed]
        count = len(placeholders_of(graph)) - len(tangents)
        return _Joint(graph, count, tangents, gradients, calls, draws)

    def differentiated(self) -> list[int]:
        return [i for i, gradient in enumerate(self.gradients) if gradient is not None]

    def used_inputs(self, count: int) -> set[int]:
        """Which of the first inputs its program reads, or differentiates by."""
        read = {node for call in self.calls for node in inputs_of(call)}
        return {
            i
            for i, node in enumerate(placeholders_of(self.graph)[:count])
            if self.gradients[i] is not None or node in read
        }

    def write(self, places: Sequence[int], write: Writer) -> Derivative:
        """Writes it with the operands at these positions, and the gradients of the results."""
        placeholders = placeholders_of(self.graph)
        inputs = [placeholders[i] for i in places] + placeholders[self.operand_count :]
        found = [i for i, place in enumerate(places) if self.gradients[place] is not None]
        outputs = [self.gradients[places[i]] for i in found]
        operands = [inputs[i] for i in found]
        # The gradient of a gradient has its size, which the program may find out once more.
        alike = list(zip(operands, outputs, strict=True))
        program = write(inputs, self.calls, outputs, guards=(), alike=alike, forms=operands)
        return Derivative(program, self.tangents, found)


def _trace_derivatives(
    function: Function, arguments: Sequence[torch.Tensor], joint: _Joint, order: int
) -> list[_Joint]:
    """The graphs of gradients of gradients, as far as there are any."""
    found = []
    for _ in range(1, order):
        placeholders = placeholders_of(joint.graph)
        tangents = [_differentiable(node.meta["val"]) for node in placeholders[len(arguments) :]]
        function = _gradient_of(function, len(arguments), joint.tangents, joint.differentiated())
        arguments = [*arguments, *tangents]
        graph, has_gradient = _trace(function, arguments, [node.name for node in placeholders])
        if not any(has_gradient):
            break
        joint = _Joint.read(graph, has_gradient)
        found.append(joint)
    return found


def _gradient_of(
    function: Function, count: int, results: Sequence[int], places: Sequence[int]
) -> Function:
    """What computes gradients of a function by the arguments at `places`.

    It takes the arguments, `count`, and gradients of the function's results at `results`.
    """

    def run(*inputs: torch.Tensor) -> Sequence[torch.Tensor]:
        with torch.enable_grad():
            values = function(*inputs[:count])
            operands = [inputs[i] for i in places]
            gradients = torch.autograd.grad(
                [values[i] for i in results], operands, inputs[count:], create_graph=True
            )
        # A size that depends on values has another symbol where it is computed again.
        return [
            gradient.expand_as(operand) if unbacked_symbols([operand]) else gradient
            for gradient, operand in zip(gradients, operands, strict=True)
        ]

    return run


# ===--- forward and backward ---===


def _split(
    graph: fx.Graph,
    has_gradient: Sequence[bool],
    input_count: int,
    changed: Set[str],
    write: Writer,
    saves: bool,
    needed: Set[int],
    draws_again: bool = False,
) -> Training | None:
    """None where the backward program would have to draw random numbers, and not `draws_again`.

    `needed` are the places of inputs that the gradient of the backward program reads.
    """
    placeholders = placeholders_of(graph)
    primals, tangents = placeholders[:input_count], placeholders[input_count:]
    results = [_without_clone(result) for result in results_of(graph)[: len(has_gradient)]]
    gradients = results_of(graph)[len(has_gradient) :]  # None for inputs that need none

    forward = _ancestors(results)
    checks = _checks(graph, forward, tangents)
    forward |= _ancestors(checks)
    saved: dict[fx.Node, None] = {}  # in order
    backward: set[fx.Node] = set()
    seen: set[fx.Node] = set()

    found = [gradient for gradient in gradients if gradient is not None]
    draws = [node for node in calls_of(graph) if node in forward and is_random_node(node)]

    def compute(nodes: Iterable[fx.Node]) -> None:
        """In the backward program."""
        todo = list(nodes)
        while todo:
            node = todo.pop()
            if node in seen:
                continue
            seen.add(node)
            if is_number(node):
                if is_unbacked(node):
                    todo += inputs_of(node)  # those that tell it
                continue
            backward.add(node)
            if node.op == "placeholder":
                is_saved = node.name in changed
            else:
                is_saved = saves and node in forward and node.target not in CHECKS
                is_saved = is_saved and not _is_repeated(node)
                is_saved = is_saved and not conditions_of(node)  # there may be none
            is_saved = is_saved and all(map(_has_memory, tensors_of(node)))
            if is_saved:
                saved[node] = None
            else:
                todo += inputs_of(node)

    compute(found)
    if draws_again:
        compute(draws)  # the generator has the state of the forward program at each
    if not saved:  # a host leaves out a forward program of which it reads nothing
        compute(check for check in checks if not any(map(is_number, inputs_of(check))))

    drawn = {node for node in backward - saved.keys() if is_random_node(node)}
    if drawn and not (draws_again and drawn == set(draws)):
        return None  # it would draw other numbers

    # A result lies row-major in the host's memory.
    kept = [node for node in saved if node not in results or memory_order(node.meta["val"])]
    outputs = [*(None if node in kept else node for node in results), *kept]
    read = backward - saved.keys()
    of_primals = [i for i, node in enumerate(primals) if i in needed or node in read]
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
        backward=write(
            inputs,
            calls,
            found,
            guards=(),
            stored_inputs=kept,
            alike=zip(tangents, itertools.compress(results, has_gradient), strict=True),
        ),
        inputs=of_primals,
        outputs=of_outputs,
        tangents=[i for i, has in enumerate(has_gradient) if has],
        gradients=[
            i
            for i, gradient in zip(range(input_count), gradients, strict=True)
            if gradient is not None
        ],
        draws_again=draws_again,
    )


def _checks(graph: fx.Graph, forward: Set[fx.Node], tangents: Sequence[fx.Node]) -> list[fx.Node]:
    """Checks of values, except those of what the gradient computes.

    It computes the sides of torch.cond again, behind all that results need.
    """
    places = {node: place for place, node in enumerate(graph.nodes)}
    last = max(places[node] for node in forward)
    return [
        check
        for check in calls_of(graph)
        if check.target in CHECKS
        and _ancestors([check]).isdisjoint(tangents)
        and (not conditions_of(check) or places[check] < last)
    ]


def _has_memory(value: torch.Tensor) -> bool:
    """Whether a host can allocate such a value before it is computed."""
    return value.layout == torch.strided and not unbacked_symbols([value])


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
            todo += inputs_of(node)
    # What is taken out of several is part of the call.
    taken = [user for node in found for user in node.users if user.target is operator.getitem]
    return found.union(taken)

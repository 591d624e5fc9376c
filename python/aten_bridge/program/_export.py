"""Graphs of a module: evaluation, and training as forward and backward.

What is private to PyTorch stands here and in _corrections.py: torch._functorch's
aot_export_joint_simple, which traces a function and its gradient (PyTorch 2.9 to 2.13).
"""

from __future__ import annotations

import functools
import itertools
import operator
import warnings
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any

import torch
from torch import fx, nn
from torch.export import ExportedProgram

from aten_bridge.program._corrections import (
    allow_other_strides,
    correcting_shapes,
    differentiate_copies,
    drop_asserted_dtypes,
    keep_from_gradients,
    refuse_hidden_writes,
    refusing_own_gradients,
)
from aten_bridge.program._programs import ModuleInModes, ModulePrograms, Training, Weight
from aten_bridge.program._text import (
    bare_symbols,
    is_number,
    memory_order,
    tensors_of,
    unbacked_symbols,
    write_program,
)
from aten_bridge.program._trees import (
    TENSOR,
    NotExportable,
    children,
    constant,
    tensor_sources,
    tree_of,
)

Writer = Callable[..., str]  # write_program(), with what is the same for all of a module


def _placeholders(graph: fx.Graph) -> list[fx.Node]:
    return [node for node in graph.nodes if node.op == "placeholder"]


def _results(graph: fx.Graph) -> Sequence[Any]:
    (output,) = graph.find_nodes(op="output")
    return output.args[0]


def _calls(graph: fx.Graph) -> list[fx.Node]:
    return [node for node in graph.nodes if node.op == "call_function"]


def is_view(node: fx.Node) -> bool:
    """Whether an operator gives another view of its first argument's memory."""
    schema = getattr(node.target, "_schema", None)
    if schema is None or not schema.arguments or len(schema.returns) != 1:
        return False
    alias = schema.arguments[0].alias_info
    return alias is not None and not alias.is_write


def is_random_node(node: fx.Node) -> bool:
    """Whether an operator draws numbers; attention without dropout is said to, and does not."""
    if torch.Tag.nondeterministic_seeded not in getattr(node.target, "tags", ()):
        return False
    for place, argument in enumerate(node.target._schema.arguments):
        if argument.name == "dropout_p":
            given = node.args[place] if place < len(node.args) else argument.default_value
            return node.kwargs.get(argument.name, given) != 0
    return True


# ===--- training ---===


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

    examples = [node.meta["val"] for node in _placeholders(graph_module.graph)]
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
        _placeholders(joint.graph), _placeholders(graph_module.graph), strict=False
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
    placeholders = _placeholders(graph)
    primals, tangents = placeholders[:input_count], placeholders[input_count:]
    results = [_without_clone(result) for result in _results(graph)[: len(has_gradient)]]
    gradients = _results(graph)[len(has_gradient) :]  # None for inputs that need none

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
    calls = [node for node in _calls(graph) if node in backward and node not in saved]
    return Training(
        forward=write(
            primals,
            [n for n in _calls(graph) if n in forward],
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


# ===--- modules ---===


def _keep_results(signature: Any, graph: fx.Graph) -> None:
    """Leaves the buffers that a call changes, and the module's results, as results of the graph.

    What a module writes to its inputs is its own affair; a parameter is the optimizer's.
    """
    (output,) = graph.find_nodes(op="output")
    kept = []
    for spec, result in zip(signature.output_specs, output.args[0], strict=True):
        if spec.kind.name == "PARAMETER_MUTATION":
            raise NotExportable(
                f"expected a module that changes buffers alone, got one that writes the parameter "
                f"{spec.target!r}; make it a buffer, or change it outside of the module"
            )
        if spec.kind.name != "USER_INPUT_MUTATION":
            kept.append(result)
    output.args = (tuple(kept),)


def _merge_shared(graph: fx.Graph, tensors: Mapping[str, torch.Tensor]) -> None:
    """Gives weights that are one tensor one input; `tensors` are by the names of inputs."""
    first: dict[torch.Tensor, fx.Node] = {}
    for node in _placeholders(graph):
        if node.name in tensors:
            kept = first.setdefault(tensors[node.name], node)
            if kept is not node:
                node.replace_all_uses_with(kept)
                graph.erase_node(node)


def _sort_inputs(graph: fx.Graph, kinds: Mapping[str, str]) -> None:
    """Parameters, buffers, constants, and the module's own inputs.

    torch.export has buffers that are not persistent among the constants.
    """
    order = ["parameter", "buffer", "constant", ""]
    first = next(node for node in graph.nodes if node.op != "placeholder")
    for node in sorted(_placeholders(graph), key=lambda one: order.index(kinds.get(one.name, ""))):
        first.prepend(node)


def _weight(tensor: torch.Tensor, trains: bool = False) -> Weight:
    """On the tensor's own memory where that is contiguous and the CPU's."""
    tensor = tensor.detach().cpu().contiguous()
    dtype = str(tensor.dtype).removeprefix("torch.")
    if tensor.dtype == torch.bfloat16:
        tensor = tensor.view(torch.uint16)
    return Weight(dtype, tensor.numpy(), trains)


@correcting_shapes()
def _programs(exported: ExportedProgram, saves: Sequence[bool]) -> list[ModulePrograms]:
    """The programs of what torch.export made, for each of `saves`: whether those of a step do."""
    keep_from_gradients(exported.graph)
    exported.graph_module.recompile()
    guards = exported._guards_code  # one that was loaded from a file loses them
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r".*isinstance\(treespec, LeafSpec\)")  # PyTorch's own
        exported = exported.run_decompositions({})
    signature, graph = exported.graph_signature, exported.graph
    places = {  # by the name of an input: what it is, and the name of its value
        node: (kind, name)
        for kind, names in (
            ("parameter", signature.inputs_to_parameters),
            ("buffer", signature.inputs_to_buffers),
            ("constant", signature.inputs_to_lifted_tensor_constants),
        )
        for node, name in names.items()
    }
    state = {**exported.constants, **exported.state_dict}
    _merge_shared(graph, {node: state[name] for node, (_, name) in places.items()})
    _sort_inputs(graph, {node: kind for node, (kind, _) in places.items()})
    refuse_hidden_writes(graph)
    drop_asserted_dtypes(graph)
    allow_other_strides(graph)
    differentiate_copies(graph)
    _keep_results(signature, graph)
    exported.graph_module.recompile()
    kept: dict[str, dict[str, Weight]] = {"parameter": {}, "buffer": {}, "constant": {}}
    needs = []
    for node in _placeholders(graph):
        value = node.meta["val"]
        if node.name in places:
            kind, name = places[node.name]
            needs.append(kind == "parameter" and state[name].requires_grad)
            kept[kind][name] = _weight(state[name], needs[-1])
        elif not isinstance(value, torch.Tensor):
            raise NotExportable(
                f"expected tensors as inputs of the module, got {value!r} as {node.name!r}; give "
                "it where the module is made"
            )
        else:
            needs.append(value.is_floating_point() or value.is_complex())
    calls, results = _calls(graph), _results(graph)
    tensors = [result for result in results if isinstance(result, fx.Node)]
    if any(map(is_number, tensors)):
        raise NotExportable("expected results that are tensors, got a size; leave it out")
    in_spec, out_spec = exported.call_spec.in_spec, exported.call_spec.out_spec
    arguments, named = children(in_spec)
    if children(named):
        raise NotExportable("expected inputs by their positions, got some by their names")
    inputs = tree_of(arguments, itertools.repeat(TENSOR))
    names = exported.module_call_graph[0].signature.forward_arg_names or []
    given = [node.meta["val"] for node in _placeholders(graph) if node.name not in places]
    write = functools.partial(
        write_program,
        ranges=exported.range_constraints,
        guards=[*guards, *exported._guards_code],
        sources={source: given[place] for source, place in tensor_sources(inputs, names)},
    )
    evaluation = write(_placeholders(graph), calls, tensors)
    is_random = any(map(is_random_node, calls))
    leaves = [
        TENSOR if isinstance(result, fx.Node) else constant(result)
        for result in results[len(results) - out_spec.num_leaves :]
    ]
    changed_buffers = list(signature.buffers_to_mutate.values())
    changed = {
        name for name, buffer in signature.inputs_to_buffers.items() if buffer in changed_buffers
    }
    programs = ModulePrograms(
        parameters=kept["parameter"],
        buffers=kept["buffer"],
        constants=list(kept["constant"].values()),
        changed_buffers=changed_buffers,
        evaluation=evaluation,
        training=None,
        is_random=is_random,
        inputs=inputs,
        results=tree_of(out_spec, iter(leaves)),
    )
    has_gradient = not any(unbacked_symbols(tensors_of(node)) for node in calls)
    trace = functools.cache(
        lambda one: trace_training(exported.graph_module, needs, changed, write, saves=one)
        if has_gradient
        else None
    )
    always = is_random or bool(changed)
    return [programs._replace(training=trace(one or always)) for one in saves]


@correcting_shapes()
def _export(module: nn.Module, example_inputs: Sequence[Any], shapes: Any) -> ModulePrograms:
    """The programs of a module in the mode in which it is."""
    with refusing_own_gradients():
        exported = torch.export.export(module, tuple(example_inputs), dynamic_shapes=shapes)
    (programs,) = _programs(exported, [module.training])
    return programs


def export_module(
    module: nn.Module, example_inputs: Sequence[Any], dynamic_shapes: Any = None
) -> ModuleInModes:
    """The programs of a module in evaluation and in training mode, in which it stays as it was.

    Raises what torch.export raises, and NotExportable.
    """
    modes = [(one, one.training) for one in module.modules()]
    trains = module.training
    # As it is, with parts that may be in the other mode; then all of it in the other mode.
    own = _export(module, example_inputs, dynamic_shapes)
    try:
        module.train(not trains)
        other = _export(module, example_inputs, dynamic_shapes)
    finally:
        for one, was_training in modes:
            one.training = was_training
    return ModuleInModes(*((other, own) if trains else (own, other)), trains)


def split_exported(exported: ExportedProgram) -> ModuleInModes:
    """The programs of an exported program, which is in one mode: it is the same in both.

    Raises NotExportable.
    """
    evaluation, training = _programs(exported, [False, True])
    is_training = evaluation.is_random or bool(evaluation.changed_buffers)
    return ModuleInModes(evaluation, training, is_training)

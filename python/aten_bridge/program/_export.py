"""Modules as programs: what torch.export records of them, in both modes."""

from __future__ import annotations

import copy
import functools
import itertools
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from typing import Any

import torch
from torch import fx, nn
from torch.export import ExportedProgram
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode
from torch.nn.parameter import is_lazy

from aten_bridge.program._branches import graphs_of, inline_branches, may_have_gradient
from aten_bridge.program._buffers import writing_buffers
from aten_bridge.program._corrections import (
    CHECKS,
    allow_other_strides,
    correcting_shapes,
    differentiate_complex_writes,
    differentiate_copies,
    drop_asserted_dtypes,
    drop_idle_dropouts,
    make_gradients_dense,
    refuse_assigned_data,
    refuse_hidden_writes,
    refusing_own_gradients,
)
from aten_bridge.program._no_grad import keep_from_gradients
from aten_bridge.program._private import (
    drop_input,
    dropping_buffer_hooks,
    guards_of,
    keeping,
    tree_map,
    without_guards,
)
from aten_bridge.program._programs import ModuleInModes, ModulePrograms, Training, Weight
from aten_bridge.program._pytorch_texts import (
    OWN_DEPRECATION,
    argument_without_gradient,
    is_about_constant_of_side,
    is_about_fixed_size,
)
from aten_bridge.program._text import is_number, tensors_of, unbacked_symbols, write_program
from aten_bridge.program._training import (
    calls_of,
    is_random_node,
    placeholders_of,
    results_of,
    trace_training,
)
from aten_bridge.program._trees import (
    TENSOR,
    NotExportable,
    children,
    constant,
    tensor_sources,
    tree_of,
)

_EXPORT_ADVICE = (
    "aten_bridge: expected a module that torch.export records as a whole, got the error above; "
    "change what it names, or make modules of the parts around that and leave it to MindSpore or "
    "JAX"
)
_ARGUMENT_ADVICE = (
    "aten_bridge: expected a module with gradients by all of its inputs that are numbers with "
    "fractions, got the error above; in the module, call what it names with the detach() of its "
    "argument {!r}"
)
_SIZE_ADVICE = (
    "aten_bridge: expected example inputs with sizes of 2 or more where dynamic_shapes lets them "
    "change, got one of 0 or 1, which torch.export takes for a constant; give a larger example"
)
_CONSTANT_ADVICE = (
    "aten_bridge: expected sides of torch.cond that make no tensors of numbers, as torch.tensor(2) "
    "and x[0] = 2 do, got the error above; call torch.full() and fill_(), or make such a tensor a "
    "buffer of the module, or before torch.cond"
)
_GRADIENT_ADVICE = (
    "aten_bridge: expected a module whose gradient PyTorch can record, got the error above; leave "
    "out gradient_order or dynamic_shapes if one was given, or replace the operator that it names"
)

_MODE_ADVICE = (
    "aten_bridge: the error is one of the {} mode, which the module is not in; for the mode that "
    "it is in alone, give torch.export.export(module, example_inputs)"
)


def _recording(tensors: Iterable[torch.Tensor]) -> AbstractContextManager[None]:
    """Records gradients wherever a module is made: under torch.no_grad() too.

    Weights that were made under torch.inference_mode() have none.
    """
    stack = ExitStack()
    if not any(one.is_inference() for one in tensors if not is_lazy(one)):
        stack.enter_context(torch.inference_mode(False))
        stack.enter_context(torch.enable_grad())
    return stack


@contextmanager
def _advising(advice: str) -> Iterator[None]:
    """Puts advice under an error of PyTorch's; Python has notes of errors since 3.11."""
    try:
        yield
    except NotExportable:
        raise
    except Exception as error:
        text = str(error)
        if is_about_fixed_size(text):
            advice = _SIZE_ADVICE
        elif is_about_constant_of_side(text):
            advice = _CONSTANT_ADVICE
        elif argument := argument_without_gradient(text):
            advice = _ARGUMENT_ADVICE.format(argument)
        if hasattr(error, "add_note"):
            error.add_note(advice)
        raise


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


def _places_of(exported: ExportedProgram) -> dict[str, tuple[str, str]]:
    """By the names of inputs that are weights: what each is, and the name of its value."""
    signature = exported.graph_signature
    return {
        node: (kind, name)
        for kind, names in (
            ("parameter", signature.inputs_to_parameters),
            ("buffer", signature.inputs_to_buffers),
            ("constant", signature.inputs_to_lifted_tensor_constants),
        )
        for node, name in names.items()
    }


def _merge_shared(exported: ExportedProgram) -> None:
    """Gives weights that are one tensor one input.

    PyTorch (2.11) records no writes to buffers that it has twice.
    """
    state = {**exported.constants, **exported.state_dict}
    places = _places_of(exported)
    first: dict[Any, fx.Node] = {}
    for node in placeholders_of(exported.graph):
        if node.name in places:
            kept = first.setdefault(_identity(state[places[node.name][1]]), node)
            if kept is not node:
                node.replace_all_uses_with(kept)
                drop_input(exported, node)


def _identity(tensor: torch.Tensor) -> Any:
    """What tensors have in common that are one: those of a file are objects of their own."""
    if tensor.layout != torch.strided or tensor.numel() == 0:
        return id(tensor)
    memory = tensor.untyped_storage().data_ptr(), tensor.storage_offset()
    kind = tensor.dtype, tensor.is_conj(), tensor.is_neg(), tensor.requires_grad
    return *memory, tensor.shape, tensor.stride(), *kind


def _sort_inputs(graph: fx.Graph, kinds: Mapping[str, str]) -> None:
    """Parameters, buffers, constants, and the module's own inputs.

    torch.export has buffers that are not persistent among the constants.
    """
    order = ["parameter", "buffer", "constant", ""]
    first = next(node for node in graph.nodes if node.op != "placeholder")
    for node in sorted(
        placeholders_of(graph), key=lambda one: order.index(kinds.get(one.name, ""))
    ):
        first.prepend(node)


def weight_of(tensor: torch.Tensor, trains: bool = False) -> Weight:
    """The tensor as a weight, which shares its memory if that is contiguous and on the CPU."""
    tensor = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
    dtype = str(tensor.dtype).removeprefix("torch.")
    if tensor.dtype == torch.bfloat16:
        tensor = tensor.view(torch.uint16)
    elif tensor.is_floating_point() and tensor.element_size() == 1:
        raise NotExportable(
            f"expected weights of dtypes that NumPy has, or of bfloat16, got one of {dtype}; give "
            "it as an input, or convert it"
        )
    return Weight(dtype, tensor.numpy(), trains)


@correcting_shapes()
def _programs(exported: ExportedProgram, saves: Sequence[bool], order: int) -> list[ModulePrograms]:
    """The programs of an exported program, once for each of `saves`: whether a step saves."""
    with _recording(exported.state_dict.values()), keeping(CHECKS):
        return _programs_in_mode(exported, saves, order)


def _programs_in_mode(
    exported: ExportedProgram, saves: Sequence[bool], order: int
) -> list[ModulePrograms]:
    _merge_shared(exported)
    keep_from_gradients(exported)
    for each in graphs_of(exported.graph_module):
        refuse_assigned_data(each)
        drop_idle_dropouts(each)
        each.owning_module.recompile()
    guards = guards_of(exported)  # one that was loaded from a file loses them
    with _advising(_EXPORT_ADVICE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", OWN_DEPRECATION)
        with without_guards(exported):
            exported = exported.run_decompositions({})
    signature, graph = exported.graph_signature, exported.graph
    places = _places_of(exported)
    state = {**exported.constants, **exported.state_dict}
    _sort_inputs(graph, {node: kind for node, (kind, _) in places.items()})
    _keep_results(signature, graph)
    for each in graphs_of(exported.graph_module):
        refuse_hidden_writes(each)
        drop_asserted_dtypes(each)
        allow_other_strides(each)
        differentiate_copies(each)
        differentiate_complex_writes(each)
        make_gradients_dense(each)
        each.owning_module.recompile()
    graph = inline_branches(exported.graph_module)
    kept: dict[str, dict[str, Weight]] = {"parameter": {}, "buffer": {}, "constant": {}}
    needs = []
    for node in placeholders_of(graph):
        value = node.meta["val"]
        if node.name in places:
            kind, name = places[node.name]
            if state[name].layout != torch.strided:
                raise NotExportable(
                    f"expected weights and buffers that are dense, got {name!r} with the layout "
                    f"{state[name].layout}; make it dense"
                )
            needs.append(kind == "parameter" and state[name].requires_grad)
            kept[kind][name] = weight_of(state[name], needs[-1])
        elif not isinstance(value, torch.Tensor):
            raise NotExportable(
                f"expected tensors as inputs of the module, got {value!r} as {node.name!r}; wrap "
                "it in a module that passes that value"
            )
        else:
            needs.append(may_have_gradient(value))
    calls, results = calls_of(graph), results_of(graph)
    tensors = [result for result in results if isinstance(result, fx.Node)]
    if not tensors:
        raise NotExportable("expected a module with results that are tensors, got one with none")
    if any(map(is_number, tensors)):
        raise NotExportable("expected results that are tensors, got a size; leave it out")
    in_spec, out_spec = exported.call_spec.in_spec, exported.call_spec.out_spec
    arguments, named = children(in_spec)
    if children(named):
        raise NotExportable("expected inputs by their positions, got some by their names")
    inputs = tree_of(arguments, itertools.repeat(TENSOR))
    names = exported.module_call_graph[0].signature.forward_arg_names or []
    given = [node.meta["val"] for node in placeholders_of(graph) if node.name not in places]
    write = functools.partial(
        write_program,
        ranges=exported.range_constraints,
        guards=[*guards, *guards_of(exported)],
        names={},
        sources={source: given[place] for source, place in tensor_sources(inputs, names)},
    )
    evaluation = write(placeholders_of(graph), calls, tensors)
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
    always = is_random or bool(changed)
    measures = any(unbacked_symbols(tensors_of(node)) for node in calls)
    has_measured_results = bool(unbacked_symbols(node.meta["val"] for node in tensors))
    refused: tuple[type[Exception], ...] = ()
    if order == 1 and has_measured_results:  # without gradients, unless these were asked for
        refused = (RuntimeError, NotExportable)  # such as those of torch.unique, which has none
    elif order == 1 and measures:
        refused = (GuardOnDataDependentSymNode, NotExportable)

    @functools.cache
    def trace(saves: bool) -> Training | None:
        with suppress(*refused), _advising(_GRADIENT_ADVICE), warnings.catch_warnings():
            if measures:  # PyTorch warns of what it raises
                warnings.filterwarnings("ignore", category=UserWarning, module="torch.autograd")
            return trace_training(exported.graph_module, needs, saved, write, saves, order)
        return None

    # A program whose results have to be measured is run for that, and saves nothing.
    saved = set() if has_measured_results else changed

    def in_mode(saves: bool) -> ModulePrograms:
        training = trace((saves or always) and not has_measured_results)
        if training is None or not has_measured_results:
            return programs._replace(training=training)
        if training.draws_again:  # its numbers are those of the same operators
            return programs._replace(evaluation=training.forward, training=training)
        training = training._replace(forward=evaluation)  # whose symbols have other names
        return programs._replace(training=training)

    return [in_mode(one) for one in saves]


def _check_order(order: int, *modes: ModulePrograms) -> None:
    """Raises NotExportable where no mode can be differentiated more than once."""
    if order > 1 and all(
        one.changed_buffers and one.training and not one.training.derivatives for one in modes
    ):
        raise NotExportable(
            "gradient_order: expected a module whose gradients of gradients, in one of its modes "
            "at least, read no buffer that a call changes, got one that does; leave out "
            "gradient_order"
        )


def _apart(example_inputs: Sequence[Any]) -> tuple[Any, ...]:
    """The same with copies of tensors that are there again, or were made in inference mode.

    torch.export has one input for all uses of such a tensor (2.11). Tensors that are not a whole
    memory in order are copied too, as each tensor of a host is.
    """
    seen: set[int] = set()

    def is_whole(value: torch.Tensor) -> bool:
        return value.is_contiguous() and value.storage_offset() == 0

    def apart(value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or value.layout != torch.strided:
            return value
        if id(value) in seen or value.is_inference() or not is_whole(value):
            copied = value.detach().clone(memory_format=torch.contiguous_format)
            return copied.requires_grad_(value.requires_grad)
        seen.add(id(value))
        return value

    return tree_map(apart, tuple(example_inputs))


@correcting_shapes()
def _export(
    module: nn.Module, example_inputs: Sequence[Any], shapes: Any, order: int
) -> ModulePrograms:
    """The programs of a module in the mode in which it is."""
    tensors = itertools.chain(module.parameters(), module.buffers())
    with (
        _recording(tensors),
        _advising(_EXPORT_ADVICE),
        keeping(CHECKS),
        dropping_buffer_hooks(),
        refusing_own_gradients(module),
        writing_buffers(module),
    ):
        exported = torch.export.export(module, _apart(example_inputs), dynamic_shapes=shapes)
    (programs,) = _programs(exported, [module.training], order)
    return programs


def export_module(
    module: nn.Module, example_inputs: Sequence[Any], dynamic_shapes: Any = None, order: int = 1
) -> ModuleInModes:
    """The programs of a module in evaluation and in training mode, in which it stays as it was.

    `order` is how often they can be differentiated.

    Raises what torch.export raises, and NotExportable.
    """
    modes = [(one, one.training) for one in module.modules()]
    trains = module.training
    # As it is, with parts that may be in the other mode; then all of it in the other mode.
    own = _export(module, example_inputs, dynamic_shapes, order)
    try:
        module.train(not trains)
        other = _export(module, example_inputs, dynamic_shapes, order)
    except Exception as error:
        if hasattr(error, "add_note"):
            error.add_note(_MODE_ADVICE.format("evaluation" if trains else "training"))
        raise
    finally:
        for one, was_training in modes:
            one.training = was_training
    _check_order(order, own, other)
    return ModuleInModes(*((other, own) if trains else (own, other)), trains)


def split_exported(exported: ExportedProgram, order: int = 1) -> ModuleInModes:
    """The programs of an exported program, which is in one mode: it is the same in both.

    `order` is how often they can be differentiated.

    Raises NotExportable.
    """
    # With a graph of its own, which is changed; all else is shared, weights above all.
    shared = [one for one in vars(exported).values() if not isinstance(one, fx.GraphModule)]
    exported = copy.deepcopy(exported, {id(one): one for one in shared})
    evaluation, training = _programs(exported, [False, True], order)
    _check_order(order, evaluation)
    is_training = evaluation.is_random or bool(evaluation.changed_buffers)
    return ModuleInModes(evaluation, training, is_training)

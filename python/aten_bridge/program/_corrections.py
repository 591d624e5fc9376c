"""What PyTorch's graphs leave out, or have wrong, such as torch._decomp of an LSTM (2.11)."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn
from unittest import mock

import torch
from torch import fx

from aten_bridge.program._private import (
    alike_gradients_of_sides,
    data_free_implementations,
    decompositions,
    hooked_gradient_of,
    leaving_modes,
    run_again,
    schema_of,
    without_decomposition,
)
from aten_bridge.program._text import line_of
from aten_bridge.program._trees import NotExportable

# These raise an error or do nothing. PyTorch (2.11) drops them: nothing reads a result of theirs.
CHECKS = (
    torch.ops.aten._assert_scalar.default,
    torch.ops.aten._assert_async.default,
    torch.ops.aten._assert_async.msg,
    torch.ops.aten._linalg_check_errors.default,
)


def argument_of(node: fx.Node, name: str) -> Any:
    """What a call of an operator has for an argument, or what it has by default; None for none."""
    for place, argument in enumerate(schema_of(node.target).arguments):
        if argument.name == name:
            given = node.args[place] if place < len(node.args) else argument.default_value
            return node.kwargs.get(name, given)
    return None


# Arguments that kernels read as if they had one layout, without a check (PyTorch 2.11).
_ALIKE = {
    torch.ops.aten.native_group_norm.default: (0,),
    torch.ops.aten.native_group_norm_backward.default: (0, 1),
}


def allow_other_strides(graph: fx.Graph) -> None:
    """Lets strides be other ones than when the module was recorded: views may be copies.

    Those of an operator that is made of others, such as scaled_dot_product_attention, depend on
    which of these run, and that on whether a gradient is taken (PyTorch 2.11). A host's gradients
    of results, and what it keeps for them, are contiguous.
    """
    for target in (torch.ops.aten.view.default, torch.ops.aten._unsafe_view.default):
        for node in graph.find_nodes(op="call_function", target=target):
            node.target = torch.ops.aten.reshape.default
    for target, places in _ALIKE.items():
        for node in graph.find_nodes(op="call_function", target=target):
            for place in places:
                value = node.args[place]
                with graph.inserting_before(node):
                    alike = graph.call_function(torch.ops.aten.contiguous.default, (value,))
                alike.meta.update(value.meta)
                node.update_arg(place, alike)


_DROPOUTS = (
    torch.ops.aten.dropout.default,
    torch.ops.aten.feature_dropout.default,
    torch.ops.aten.alpha_dropout.default,
    torch.ops.aten.feature_alpha_dropout.default,
)


def drop_idle_dropouts(graph: fx.Graph) -> None:
    """Replaces dropouts that drop nothing by their input, which a decomposition would copy (2.11).

    What is written to one of the two later would not reach the other.
    """
    for target in _DROPOUTS:
        for node in graph.find_nodes(op="call_function", target=target):
            if argument_of(node, "p") == 0 or not argument_of(node, "train"):
                node.replace_all_uses_with(argument_of(node, "input"))
                graph.erase_node(node)


def drop_asserted_dtypes(graph: fx.Graph) -> None:
    """Drops checks of dtypes: these follow from the inputs', which are checked."""
    target = torch.ops.aten._assert_tensor_metadata.default
    for node in graph.find_nodes(op="call_function", target=target):
        graph.erase_node(node)


def differentiate_copies(graph: fx.Graph) -> None:
    """Says by other operators what aten::copy does, of which PyTorch 2.11 has no gradient."""
    for node in graph.find_nodes(op="call_function", target=torch.ops.aten.copy.default):
        destination, source = node.args[:2]
        dtype = node.meta["val"].dtype
        with graph.inserting_before(node):
            converted = graph.call_function(
                torch.ops.aten._to_copy.default, (source,), {"dtype": dtype}
            )
            converted.meta["val"] = source.meta["val"].to(dtype)
            expanded = graph.call_function(
                torch.ops.aten.expand_as.default, (converted, destination)
            )
        expanded.meta.update(node.meta)
        node.replace_all_uses_with(expanded)
        graph.erase_node(node)


_PART_WRITES = (torch.ops.aten.slice_scatter.default, torch.ops.aten.select_scatter.default)


def differentiate_complex_writes(graph: fx.Graph) -> None:
    """Writes real and imaginary parts: PyTorch 2.11 has no gradient of a complex write."""

    def call(target: Any, *arguments: Any) -> fx.Node:
        node = graph.call_function(target, arguments)
        values = fx.map_arg(arguments, lambda one: one.meta["val"])
        node.meta["val"] = run_again(target, values, {})
        return node

    def parts(value: fx.Node) -> fx.Node:
        resolved = call(torch.ops.aten.resolve_conj.default, value)
        return call(torch.ops.aten.view_as_real.default, resolved)

    for target in _PART_WRITES:
        for node in graph.find_nodes(op="call_function", target=target):
            whole, written = node.args[:2]
            if not all(one.meta["val"].is_complex() for one in (whole, written)):
                continue
            _, _, dim, *others = (
                argument_of(node, one.name) for one in schema_of(target).arguments
            )
            dim %= whole.meta["val"].dim()  # parts have one dimension more
            with graph.inserting_before(node):
                result = call(target, parts(whole), parts(written), dim, *others)
                result = call(torch.ops.aten.view_as_complex.default, result)
            node.replace_all_uses_with(result)
            graph.erase_node(node)


def _refuse_gradient(
    what: str,
    cure: str = "leave that part out of the module, or make it an operator with a gradient by "
    "torch.library.custom_op",
) -> NoReturn:
    raise NotExportable(
        f"expected a module whose gradient is that of its operators, got one with {what}, which "
        f"torch.export does not record; {cure}"
    )


@contextlib.contextmanager
def refusing_own_gradients(module: torch.nn.Module) -> Iterator[None]:
    """Refuses gradients that are not those of operators, which torch.export does not record."""
    hooked = hooked_gradient_of(module)
    if hooked is not None:
        _refuse_gradient(f"a hook on the gradient of {hooked!r}", "remove it")
    own_apply, own_hook = torch.autograd.Function.__dict__["apply"], torch.Tensor.register_hook
    thread = threading.get_ident()  # others may train meanwhile

    def apply(cls: Any, *args: Any, **keywords: Any) -> Any:
        if threading.get_ident() != thread:
            return own_apply.__get__(None, cls)(*args, **keywords)
        if not cls.__module__.startswith("torch."):
            _refuse_gradient(f"the torch.autograd.Function {cls.__name__}")
        # PyTorch (2.11) records no gradient of what follows one either.
        if (cls.__module__, cls.__name__) == ("torch.utils.checkpoint", "CheckpointFunction"):
            _refuse_gradient(
                "torch.utils.checkpoint that is reentrant", "give it use_reentrant=False"
            )
        return own_apply.__get__(None, cls)(*args, **keywords)

    def register_hook(self: torch.Tensor, hook: Any) -> Any:
        if threading.get_ident() != thread:
            return own_hook(self, hook)
        _refuse_gradient("Tensor.register_hook()")

    own_enter, own_exit = torch.inference_mode.__enter__, torch.inference_mode.__exit__

    def enter(self: Any) -> None:
        """torch.export does not record this mode, but torch.no_grad()."""
        if threading.get_ident() != thread or not self.mode:
            return own_enter(self)
        self.no_grad = torch.no_grad()
        self.no_grad.__enter__()

    def leave(self: Any, *error: Any) -> None:
        if not hasattr(self, "no_grad"):
            return own_exit(self, *error)
        self.no_grad.__exit__(*error)

    with (
        mock.patch.object(torch.autograd.Function, "apply", classmethod(apply)),
        mock.patch.object(torch.Tensor, "register_hook", register_hook),
        mock.patch.multiple(torch.inference_mode, __enter__=enter, __exit__=leave),
    ):
        yield


# Where these have the argument `sparse`.
_EMBEDDINGS = {
    torch.ops.aten.embedding.default: 4,
    torch.ops.aten.embedding_bag.default: 5,
    torch.ops.aten.embedding_bag.padding_idx: 5,
    torch.ops.aten._embedding_bag.default: 5,
}


def make_gradients_dense(graph: fx.Graph) -> None:
    """Gives embeddings gradients with all rows: no host has tensors of some rows alone."""
    for target, place in _EMBEDDINGS.items():
        for node in graph.find_nodes(op="call_function", target=target):
            if place < len(node.args):
                node.update_arg(place, False)


def refuse_assigned_data(graph: fx.Graph) -> None:
    """Refuses `tensor.data = …`, of which a graph has only a question (2.9 to 2.15)."""
    question = torch.ops.aten._has_compatible_shallow_copy_type.default
    for node in graph.find_nodes(op="call_function", target=question):
        raise NotExportable(
            "expected a module that writes to tensors in place, got one that assigns to .data"
            f"{line_of(node)}; call copy_() under torch.no_grad()"
        )


def refuse_hidden_writes(graph: fx.Graph) -> None:
    """Refuses what changes buffers behind its schema's back: no result of the graph has them."""
    for node in graph.find_nodes(op="call_function", target=torch.ops.aten.instance_norm.default):
        _, _, _, running_mean, _, uses_statistics_of_input = node.args[:6]
        if running_mean is not None and uses_statistics_of_input:
            raise NotExportable(
                "expected a module whose graph has the buffers that it changes, got one with "
                "aten::instance_norm in training mode, whose running statistics torch.export does "
                "not record; make the layer with track_running_stats=False"
            )


_LAYERS = "_rnn_helper"  # recurrent ones, one after the other
_LSTM_LAYERS = ("one_layer_lstm", "mkldnn_one_layer_lstm")


# Their results after the first one are places and counts.
_UNIQUE = (
    torch.ops.aten._unique2.default,
    torch.ops.aten.unique_dim.default,
    torch.ops.aten.unique_consecutive.default,
)


# Its decomposition, not its kernel, takes what is behind the labels, such as -1, for the label 0.
_LOSS_OF_LABELS = torch.ops.aten.multilabel_margin_loss_forward.default


def _loss_of_labels(mode: Any, operator: Any, x: Any, target: Any, reduction: int) -> Any:
    """The results as tensors without data: the loss, or one for each row, and a mask of labels."""
    is_each = reduction == 0 and x.dim() > 1
    return x.new_empty(x.shape[:1] if is_each else ()), x.new_empty(target.shape)


def _gradient_of_loss(mode: Any, operator: Any, gradient: Any, x: Any, *others: Any) -> Any:
    return x.new_empty(x.shape)


_WITHOUT_DATA = {
    _LOSS_OF_LABELS: _loss_of_labels,
    torch.ops.aten.multilabel_margin_loss_backward.default: _gradient_of_loss,
}


_lock = threading.RLock()


@contextlib.contextmanager
def correcting_shapes() -> Iterator[None]:
    """Corrects PyTorch's functions without data, for one thread at a time."""
    with _lock, _corrected_shapes():
        yield


@contextlib.contextmanager
def _corrected_shapes() -> Iterator[None]:
    """Gives results of PyTorch's operators without data the shapes and dtypes of those with data.

    The last states of an LSTM have one dimension more there: PyTorch's decompositions squeeze
    another dimension than its kernel does. Places and counts of torch.unique have the dtype of
    the values. Recurrent layers have the dropout between them, which a decomposition forgets. The
    loss of labels whose decomposition is wrong is left as one operator.
    """

    def corrected(own: Callable[..., Any]) -> Callable[..., Any]:
        def run_layer(inp: Any, hidden: Sequence[Any], *args: Any, **keywords: Any) -> Any:
            out, states = own(inp, hidden, *args, **keywords)
            return out, tuple(
                state.reshape(first.shape) for state, first in zip(states, hidden, strict=True)
            )

        return run_layer

    def with_dropout(own: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any) -> Any:
            *others, dropout, train, both_ways, batch_first, layer_fn = args
            directions, calls, dropped = 1 + both_ways, 0, None

            def run_layer(inp: Any, *args: Any, **keywords: Any) -> Any:
                nonlocal calls, dropped
                layer, direction = divmod(calls, directions)
                calls += 1
                if layer and not direction:  # one mask for both directions
                    dropped = torch.dropout(inp, dropout, train=True)
                return layer_fn(dropped if layer else inp, *args, **keywords)

            drops = train and dropout != 0
            run_one = run_layer if drops else layer_fn
            return own(*others, 0.0, train, both_ways, batch_first, run_one)

        return run

    def with_integers(own: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **keywords: Any) -> Any:
            values, *others = own(*args, **keywords)
            return values, *(other.to(torch.int64) for other in others)

        return run

    functions, implementations = decompositions(), data_free_implementations()
    known = dict(implementations)
    owns = {
        name: getattr(functions, name)
        for name in (_LAYERS, *_LSTM_LAYERS)
        if hasattr(functions, name)  # another version may have others, or need none
    }
    uniques = [one for one in _UNIQUE if one in known]
    try:
        for name, own in owns.items():
            setattr(functions, name, with_dropout(own) if name == _LAYERS else corrected(own))
        implementations.update({one: with_integers(known[one]) for one in uniques})
        implementations.update(_WITHOUT_DATA)
        with (
            without_decomposition(_LOSS_OF_LABELS),
            leaving_modes(),
            alike_gradients_of_sides(),
        ):
            yield
    finally:
        implementations.update(known)
        for one in _WITHOUT_DATA.keys() - known.keys():
            implementations.pop(one, None)
        for name, own in owns.items():
            setattr(functions, name, own)

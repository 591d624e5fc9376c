"""A PyTorch module as a cell."""

from __future__ import annotations

import contextlib
import copy
import functools
import importlib
import itertools
import sys
import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import mindspore as ms
from mindspore import nn, ops
from mindspore.common.generator import default_generator

from aten_bridge._text import format_value
from aten_bridge.mindspore._caller import native_caller
from aten_bridge.mindspore._gradient import run_source
from aten_bridge.mindspore._step import make_measured, make_step
from aten_bridge.program._programs import ModuleInModes, ModulePrograms, Weight
from aten_bridge.program._trees import fits_source, flatten_source, input_fault, unflatten_source

if TYPE_CHECKING:
    import torch


def _to_mindspore(weight: Weight) -> ms.Tensor:
    """NumPy has no bfloat16."""
    if weight.dtype == "bfloat16":
        return ms.Tensor(weight.as_float32()).astype(ms.bfloat16)
    return ms.Tensor(weight.array)


def _from_torch(tensor: torch.Tensor) -> ms.Tensor:
    from aten_bridge.program._export import weight_of

    return _to_mindspore(weight_of(tensor))


def _parameters(weights: Mapping[str, Weight]) -> ms.ParameterTuple:
    return ms.ParameterTuple(
        [
            ms.Parameter(_to_mindspore(weight), name=name, requires_grad=weight.trains)
            for name, weight in weights.items()
        ]
    )


_SEED = ("int64", "int64")  # MindSpore's seed and offset
_STEP = ms.Tensor(12, ms.int64)  # what MindSpore's own random functions move the offset by (2.10)


def _make_run(programs: ModulePrograms) -> Callable:
    """What a call does in one of the two modes; its results are in a tuple."""
    is_random = programs.is_random
    if is_random:
        programs = programs.seeded(*_SEED)
    if programs.training is None or programs.has_measured_results:
        kernel = make_measured(programs)
    else:
        kernel = make_step(programs)
    has_several_outputs = kernel._model.description.has_several_outputs
    constants = tuple(map(_to_mindspore, programs.constants))
    names = list(programs.buffers)
    changed = tuple(names.index(name) for name in programs.changed_buffers)
    first, end = len(changed), programs.result_count
    read = _overwritten(programs, changed)

    def run(weights, buffers, inputs):
        seed = default_generator._step(_STEP) if is_random else ()
        given = buffers
        if read:
            given = [one.copy() if i in read else one for i, one in enumerate(buffers)]
        results = kernel(*weights, *given, *constants, *inputs, *seed)
        if not has_several_outputs:
            results = (results,)
        for i, place in enumerate(changed):
            if results[i] is not None:
                ops.assign(buffers[place], results[i])
        return results[first:end]

    return run


def _overwritten(programs: ModulePrograms, changed: Sequence[int]) -> list[int]:
    """The buffers that a call changes and whose old values its gradient reads without a copy."""
    if programs.training is None or not programs.has_measured_results:
        return []
    count = len(programs.parameters)
    return [place for place in changed if count + place in programs.training.inputs]


_STAYS = (
    "Module: expected a module that stays in its process and is copied with copy.deepcopy, got "
    "pickle or copy.copy; save parameters with mindspore.save_checkpoint, and PyTorch's module "
    "with aten_bridge.program.save"
)


_numbers = itertools.count()


class _StaysInItsProcess:
    """Keeps what has it from being pickled, with a reason."""

    def __deepcopy__(self, memo: dict[int, Any]) -> _StaysInItsProcess:
        return self

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(_STAYS)


class _StayFrozen(_StaysInItsProcess, ops.PrimitiveWithInfer):
    """Refuses to train weights that were frozen: the backward program gives them zeros.

    It returns the mode that it is given, so that a graph that calls it has it checked when it is
    compiled.
    """

    def __init__(self, weights: Sequence[ms.Parameter]):
        super().__init__("StayFrozen")
        # MindSpore (2.10) asks equal primitives of one graph only once.
        self.add_prim_attr("number", next(_numbers))
        self.weights = weights

    def __deepcopy__(self, memo: dict[int, Any]) -> _StayFrozen:
        return _StayFrozen(copy.deepcopy(self.weights, memo))

    def __call__(self, training: bool) -> bool:
        for weight in self.weights:
            if weight.requires_grad:
                raise ValueError(
                    f"Module: {weight.name!r}: expected a weight that stays frozen, as it was "
                    "where the module was made, got requires_grad=True; set it in PyTorch, and "
                    "make the module again"
                )
        return training

    def __infer__(self, training: dict[str, Any]) -> dict[str, Any]:
        return {"shape": None, "dtype": None, "value": self(training["value"])}


class _Flat(nn.Cell):
    """A module whose results are in a tuple.

    MindSpore's graphs return no dicts where an operator of ops.Custom is in them (2.10).
    """

    def __init__(self, module: Module):
        super().__init__(auto_prefix=False)
        self.module = module

    def construct(self, *inputs: Any) -> Any:
        return self.module.compute(*inputs)


# By what `to_float` and levels of amp set in a cell. In PyNative mode MindSpore (2.10) casts the
# inputs of its own operators, and the weights of all.
_MIXED = {"FP16": ms.float16, "FP32": ms.float32, "BF16": ms.bfloat16}


def _cast(value: Any, dtype: Any) -> Any:
    """The same with its floating-point tensors cast to a dtype."""
    if isinstance(value, ms.Tensor):
        return value.astype(dtype) if value.is_floating_point() else value
    if isinstance(value, tuple):
        return tuple(_cast(one, dtype) for one in value)
    if isinstance(value, list):
        return [_cast(one, dtype) for one in value]
    if isinstance(value, dict):
        return {name: _cast(one, dtype) for name, one in value.items()}
    return value


class Module(nn.Cell):
    """A PyTorch module. Made by `module`."""

    def __init__(self, evaluation: ModulePrograms, training: ModulePrograms):
        """Use `module`."""
        super().__init__()
        self._place = _StaysInItsProcess()
        self.weights = _parameters(training.parameters)
        self.buffers_of_module = _parameters(training.buffers)
        frozen = [i for i, one in enumerate(training.parameters.values()) if not one.trains]
        self.stay_frozen = _StayFrozen([self.weights[i] for i in frozen]) if frozen else None
        self.tree_of_inputs = training.inputs
        self.flatten = run_source(flatten_source(training.inputs))["flatten"]
        self.fits = run_source(fits_source(training.inputs))["fits"]
        self.evaluate, self.train_once = map(_make_run, (evaluation, training))
        self.unflatten_evaluated, self.unflatten_trained = (
            run_source(unflatten_source(programs.results))["unflatten"]
            for programs in (evaluation, training)
        )
        self.casts_inputs = False
        self._flat = [_Flat(self)]  # in a list it is no part of this one

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        if named:
            raise TypeError(
                f"Module: expected all inputs by their positions, got {', '.join(named)} by name"
            )
        if not self.fits(ms.Tensor, inputs):
            raise TypeError(f"Module: {input_fault(self.tree_of_inputs, inputs, self.is_tensor)}")
        if self.mixed_precision_type is None or ms.get_context("mode") != ms.PYNATIVE_MODE:
            return super().__call__(*inputs)
        before, self.casts_inputs = self.casts_inputs, True
        try:
            return super().__call__(*inputs)
        finally:
            self.casts_inputs = before  # graphs cast them by themselves

    def compile_and_run(self, *inputs: Any, **keywords: Any) -> Any:
        """What a call in graph mode is."""
        if self.stay_frozen is not None:
            self.stay_frozen(self.training)  # what is compiled asks no more
        (flat,) = self._flat
        if flat.training != self.training:
            flat.set_train(self.training)
        unflatten = self.unflatten_trained if self.training else self.unflatten_evaluated
        return unflatten(flat(*inputs, **keywords))

    def __copy__(self) -> Module:
        """Refused: MindSpore (2.10) would give both cells one `__dict__`, and so one mode."""
        raise TypeError(_STAYS)

    def set_inputs(self, *inputs: Any, **keywords: Any) -> None:
        super().set_inputs(*inputs, **keywords)
        self._flat[0].set_inputs(*inputs, **keywords)

    @staticmethod
    def is_tensor(value: Any) -> bool:
        return isinstance(value, ms.Tensor)

    def construct(self, *inputs: Any) -> Any:
        if self.casts_inputs:
            inputs = _cast(inputs, _MIXED[self.mixed_precision_type.name])
        if self.training:
            return self.unflatten_trained(self.compute(*inputs))
        return self.unflatten_evaluated(self.compute(*inputs))

    def compute(self, *inputs: Any) -> Any:
        """The results in a tuple."""
        flat = self.flatten(*inputs)
        training = self.training
        if self.stay_frozen is not None:
            training = self.stay_frozen(training)
        if training:
            return self.train_once(self.weights, self.buffers_of_module, flat)
        return self.evaluate(self.weights, self.buffers_of_module, flat)

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """What `load_state_dict` calls for this cell. PyTorch's tensors are taken too.

        MindSpore expects a cell inside of this one by a name that has a dot (2.7 to 2.10).
        """
        torch = sys.modules.get("torch")
        refused = set()
        for name, parameter in self._params.items() if torch is not None else ():
            key = prefix + name
            value = state_dict.get(key)
            if not isinstance(value, torch.Tensor):
                continue
            try:
                if value.is_complex() and not parameter.is_complex():
                    raise TypeError(f"{parameter.dtype} has no complex numbers")
                state_dict[key] = _from_torch(value)
            except (NotImplementedError, RuntimeError, TypeError) as error:
                del state_dict[key]
                refused.add(key)
                error_msgs.append(
                    f'While copying the parameter named "{key}", expected a tensor with values of '
                    f"the dtype {parameter.dtype}, got one with the error: {error}"
                )
        missing: list[str] = []
        unexpected: list[str] = []
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing, unexpected, error_msgs
        )
        missing_keys += [key for key in missing if key not in refused]
        own = {prefix + name for name in self._params}
        unexpected_keys += [key for key in unexpected if key not in own]


# amp's level "O1" rewrites cells, with casts between their operators (2.10): it leaves these alone.
with contextlib.suppress(ImportError, AttributeError):  # another version may have no such list
    importlib.import_module("mindspore.rewrite.common.namespace")._subtree_black_list.append(Module)


def _warn_of_pynative(modes: ModuleInModes) -> None:
    """MindSpore computes some gradients of gradients wrongly (2.10, see docs/mindspore.md)."""
    trainings = [one.training for one in modes[:2] if one.training is not None]
    if any(one.derivatives for one in trainings) and not native_caller():
        warnings.warn(
            "Module: expected the native caller for gradients of gradients in PyNative mode, got "
            f"none ({native_caller().reason}); without it MindSpore leaves out the part by "
            "weights; make the native caller, or use graphs",
            stacklevel=4,
        )


def make_module(modes: ModuleInModes) -> Module:
    _warn_of_pynative(modes)
    made = Module(modes.evaluation, modes.training)
    made.set_train(modes.is_training)
    return made


def _tensors_of(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    tensors = dict(module.named_parameters(remove_duplicate=False))
    tensors.update(module.named_buffers(remove_duplicate=False))
    return tensors


def check_shareable(source: Any) -> None:
    """Raises TypeError or ValueError for what cannot move into a cell's memory."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(source, torch.nn.Module):
        raise TypeError(
            "copy=False: expected a torch.nn.Module, whose weights can move, got "
            f"{format_value(source)}"
        )
    first: dict[int, tuple[str, torch.Tensor]] = {}
    for name, tensor in _tensors_of(source).items():
        if _is_shared(tensor):
            raise ValueError(
                f"copy=False: expected weights that no other cell shares, got {name!r}, which one "
                "does; make one cell of the module"
            )
        other, known = first.setdefault(tensor.untyped_storage().data_ptr(), (name, tensor))
        if known is not tensor and known.numel() and tensor.numel():
            raise ValueError(
                f"copy=False: expected weights that have memory of their own, got {name!r} in "
                f"that of {other!r}; leave out copy=False"
            )


@functools.cache
def _parameters_of_tensors() -> Any:
    """References to the parameters that have the memory of tensors.

    Not as an attribute of a tensor, which would be saved and copied with it.
    """
    from torch.utils.weak import WeakTensorKeyDictionary

    return WeakTensorKeyDictionary()


def _is_shared(tensor: torch.Tensor) -> bool:
    """Whether it still has the memory of a parameter of MindSpore's."""
    parameter = _parameters_of_tensors().get(tensor, lambda: None)()
    has_memory = parameter is not None and tensor.numel() > 0
    return has_memory and tensor.data_ptr() == parameter.data_ptr()


def share_weights(source: torch.nn.Module, cell: Module) -> None:
    """Moves a module's weights and buffers into the memory of the cell's parameters."""
    import torch

    tensors = _tensors_of(source)
    parameters, views = {}, {}
    for parameter in (*cell.weights, *cell.buffers_of_module):
        name = parameter.name
        parameters[name] = parameter
        if parameter.dtype != ms.bfloat16:  # asnumpy() copies those
            views[name] = torch.from_numpy(parameter.asnumpy())
        is_shared = name in views and (
            parameter.size == 0 or views[name].data_ptr() == parameter.data_ptr()
        )
        if not is_shared:
            raise ValueError(
                f"copy=False: expected weights whose memory NumPy can have, got {name!r} of "
                f"{parameter.dtype}; leave out copy=False"
            )
    for name, view in views.items():
        tensors[name].data = view
        _parameters_of_tensors()[tensors[name]] = weakref.ref(parameters[name])

"""The operator: an `ops.Custom` over a kernel."""

from __future__ import annotations

import copy
import itertools
import json
import math
import threading
from collections.abc import Callable, Sequence
from typing import Any

import mindspore as ms
from mindspore import ops
from mindspore.ops.primitive import jit_context
from mindspore.ops.signature import make_sig

from aten_bridge._function import is_function, unshared
from aten_bridge._inputs import is_tensor
from aten_bridge._kernel import KernelModel
from aten_bridge.mindspore._caller import make_caller, make_gradient
from aten_bridge.mindspore._gradient import Layout, MissingGradient, differentiate, make_bprop
from aten_bridge.mindspore._host import NAMES, TENSOR_TYPES, check_name, execution_mode, is_bprop
from aten_bridge.mindspore._infer import (
    Outcome,
    check_given,
    check_inputs,
    check_out,
    check_static,
    given_outcome,
    make_outcome,
)
from aten_bridge.mindspore._inputs import (
    Inputs,
    flattened,
    infer_arguments,
    read_call,
    read_infer,
    with_plain_numbers,
)

# Written by the module into each operator, for the library and for MindSpore's cache.
_INPUTS = "aten_bridge_inputs"  # kInputsAttribute of hosts/introspection/answers.h
_COUNTED = "aten_bridge_counted"  # kCountedAttribute of the same
_OUTPUTS = "aten_bridge_outputs"
_CALL = "aten_bridge_call"
_SERIAL_NUMBER = "aten_bridge_serial_number"
_MAX_ELEMENTS = 2**48  # no memory holds such a result; ops.Custom says so
_MAX_OUTCOMES = 1024  # for one operator

_serial_numbers = itertools.count()


class Kernel(ops.Custom):
    """An operator over a kernel. Made by `kernel`."""

    # MindSpore compiles a clone wherever the operator stands in a graph (2.10), so that what a
    # compilation leaves in it, such as input_is_dynamic_shape, meets no other.
    __setattr_flag__ = True

    _model: KernelModel | None = None  # while MindSpore's constructor runs

    def __init__(
        self,
        model: KernelModel,
        out_shape: Any = None,
        out_dtype: Any = None,
        forward_outputs: int = 1,
    ):
        """Use `kernel`. `forward_outputs` are those of the operator whose gradients it computes."""
        check_out(model, out_shape, out_dtype)
        out_shape, out_dtype = unshared(out_shape), unshared(out_dtype)
        function, description = model.function, model.description
        # The shape and the dtype are never used: `__infer__` is overridden. With None, MindSpore
        # would ask the library's hooks alone, which do not see None and numbers, and graph mode
        # would make Python numbers of 0-dim results.
        super().__init__(
            f"{function.path}:{function.symbol}",
            out_shape=(1,),
            out_dtype=ms.float32,
            func_type="aot",
            bprop=model.grad if is_bprop(model.grad) else None,
        )
        self._given_out = None if out_shape is None else (out_shape, out_dtype)
        self._forward_outputs = forward_outputs
        self._gradients: dict[tuple[KernelModel, int], Kernel] = {}
        self._bprops: dict[Any, Callable] = {}
        self._gradient_operators: dict[Any, tuple[Kernel, list[bool]]] = {}  # beside `_bprops`
        self._native_gradients: dict[Layout, Any] = {}
        self._outcomes: dict[Any, Outcome] = {}
        self._is_clone = False
        self._is_traced = False  # one node of a graph that ms.jit(capture_mode="trace") records
        self._thread: int | None = None  # the one that calls this operator; others have copies
        self._copies: dict[int, Kernel] = {}  # by thread
        self._lock = threading.Lock()  # guards both
        self._caller: Any = None  # the native caller of this operator; False: it has none
        self._function: Callable | None = None  # its function, once it has been called
        # In PyNative mode MindSpore keeps kernels by function, inputs and attributes: without a
        # number of its own, an operator would share state and outputs with another.
        self._set(_SERIAL_NUMBER, next(_serial_numbers))
        if description is not None and not description.is_raw:
            self._set(_COUNTED, True)  # check_inputs does so
        if description is not None and self._given_out is None:
            if not description.is_data_dependent:  # whose sizes no hook knows
                self._set("reg_op_name", function.symbol)  # without it, MindSpore calls no hook
            self._set("multi_output", description.has_several_outputs)
        if description is not None and description.device == "cpu":
            self._run_on_cpu()
        if model.has_side_effect:
            self._set("side_effect_io", True)  # graphs keep each call, and their order
        self._set_signature(model)
        for name, value in model.carried.items():
            self._set(name, value)
        self._model = model

    def _run_on_cpu(self) -> None:
        """In a program on the GPU: MindSpore then brings the operands to the CPU."""
        if ms.get_context("device_target") != "CPU":
            self._set("primitive_target", "CPU")  # as set_device() does

    def _set_signature(self, model: KernelModel) -> None:
        """Lets graphs name inputs, and leave them out; `check_inputs` knows which are optional."""
        description, function = model.description, model.function
        if description is None or description.is_gradient or description.list_index is not None:
            return  # as many as are given
        if function.first_optional < len(description.inputs):
            self.set_signatures([make_sig(name, default=None) for name in function.input_names])

    # ===--- attributes ---===

    def _set(self, name: str, value: Any) -> None:
        """Sets an attribute of MindSpore's, and no attribute of the Python object."""
        self.add_attr(name, value)  # where MindSpore refuses the value, copies must not have it
        self.attrs[name] = value
        self._caller = self._function = None  # it has the attributes of before

    def _remove(self, name: str) -> None:
        self.attrs.pop(name, None)
        self.del_attr(name)
        self._caller = self._function = None

    def _replace(self, model: KernelModel) -> None:
        """Replaces the kernel by another one of the same function or task."""
        for name, value in model.carried.items():
            self._set(name, value)
        for name in self._model.carried.keys() - model.carried.keys():
            self._remove(name)
        self._set(_SERIAL_NUMBER, next(_serial_numbers))  # floats may differ as little
        self._model = model
        with self._lock:
            for kept in (
                *(self._gradients, self._bprops, self._gradient_operators),
                *(self._native_gradients, self._outcomes, self._copies),
            ):
                kept.clear()

    def add_prim_attr(self, name: str, value: Any) -> Kernel:
        """Sets an attribute, with `kernel`'s checks and errors where it is one of the kernel's.

        A graph that is compiled keeps the old value (MindSpore 2.10). The gradient's operator is
        another one then.
        """
        if self._model is None:
            return super().add_prim_attr(name, value)
        check_name(self._model.function, name)
        description = self._model.description
        if description is None or name not in description.attributes:
            self._set(name, value)
            with self._lock:
                self._copies.clear()
        else:
            self._replace(self._model.with_attribute(name, value))
        return self

    def __setattr__(self, name: str, value: Any) -> None:
        """Refuses attributes of the kernel, which would not reach it."""
        description = None if self._model is None else self._model.description
        known = () if description is None or name[0] == "_" else description.attributes
        if name in known:
            raise AttributeError(
                f"{self._model.name}: attribute {name!r}: expected add_prim_attr({name!r}, "
                "...), got an assignment, of which the kernel learns nothing"
            )
        super().__setattr__(name, value)

    def __getattr__(self, name: str) -> Any:
        """Says what to do to `ms.grad` and others, which take functions and cells alone (2.10)."""
        if name == "__name__" and self._model is not None:
            raise AttributeError(
                f"{self._model.name}: expected a function or a cell, got an operator; write "
                "lambda x: operator(x), with a parameter for each input"
            )
        return super().__getattr__(name)

    # ===--- inference ---===

    def __call__(self, /, *args: Any, **named: Any) -> Any:
        """Calls the kernel in PyNative mode; graph mode compiles the operator instead."""
        if self._function is not None and not named:
            result = self._function(*args)  # where the last call was like this one, this is all
            if result is not NotImplemented:
                return result
        return self._call(self._model.function.place(args, named))

    def _call(self, args: Sequence[Any]) -> Any:
        if threading.get_ident() != self._thread:
            operator = self._of_this_thread()
            if operator is not self:
                return operator(*args)
        args = with_plain_numbers(args)
        # An error in `__infer__` destroys what MindSpore keeps for all operators, the state of
        # other kernels among it (2.10): it is raised here.
        inputs = read_call(args, self._list_position(args))
        outcome = None
        if self._given_out is None:
            outcome = self._infer(inputs)
        else:
            check_inputs(self._model, inputs)
            check_given(self._model.name, *self._given_out)
        if not jit_context() and execution_mode() == ms.PYNATIVE_MODE:
            result = self._call_natively(args, inputs, outcome)
            if result is not NotImplemented:
                return result
        if self._keeps_outcomes() and self.bprop is None:
            # With a tuple first MindSpore (2.10) mixes up the gradients of what follows it.
            args = flattened(args)
        if inputs.floats:  # MindSpore takes those for equal that differ by 1e-18 (2.10)
            self.add_attr("aten_bridge_floats", inputs.floats)
        # The graph that ms.jit(capture_mode="trace") records has the very operator that is called.
        operator = self._traced() if jit_context() else self
        return super(Kernel, operator).__call__(*args)

    def _call_natively(self, args: Sequence[Any], inputs: Inputs, outcome: Outcome | None) -> Any:
        """What the native caller's function returns; NotImplemented if there is no such caller."""
        if not self._has_caller():
            return NotImplemented
        keeps = self._keeps_outcomes()
        if keeps and self._function is not None:
            result = self._function(*args)
            if result is not NotImplemented:
                return result
        if outcome is None:
            arguments = infer_arguments(args)
            outcome = given_outcome(self._model.name, *self._given_out, inputs, arguments)
        shapes = [shape for shape, _ in outcome.outputs]
        dtypes = [NAMES.get(dtype.element_type(), "") for _, dtype in outcome.outputs]
        is_too_large = any(math.prod(shape) > _MAX_ELEMENTS for shape in shapes)
        if not (dtypes and all(dtypes)) or is_too_large:  # MindSpore alone has the dtype
            return NotImplemented
        if not keeps:
            return self._caller.call_once(args, dtypes, shapes, self._native_gradient(args))
        if not self._add_call(args, dtypes, shapes):
            return NotImplemented
        self._function = self._caller.function()
        return self._function(*args)

    def _has_caller(self) -> bool:
        if self._caller is None:
            self._caller = self._make_caller() or False
        return bool(self._caller)

    def _make_caller(self) -> Any:
        return make_caller(self._model, self.attrs)

    def _add_call(self, args: Sequence[Any], dtypes: list[str], shapes: list[list[int]]) -> bool:
        """Tells the native caller of such calls; False if it does not take them."""
        return self._caller.add(args, dtypes, shapes, self._native_gradient(args))

    def _keeps_outcomes(self) -> bool:
        """Whether inputs of the same shapes and dtypes always have the same outcome."""
        return self._given_out is None or not any(map(is_function, self._given_out))

    def _list_position(self, args: Sequence[Any]) -> int | None:
        """Which of the arguments may be an empty list of tensors."""
        return self._model.function.list_position(len(args)) if self.bprop is None else None

    def _read_infer(self, args: Sequence[dict[str, Any]]) -> Inputs:
        """The inputs of `__infer__`. A graph that has a list of tensors can leave nothing out."""
        inputs = read_infer(args, self._list_position(args), self._is_clone)
        self._model.function.check_beside_list([one is not None for one in inputs.layout], False)
        return inputs

    def __infer__(self, *args: dict[str, Any]) -> dict[str, Any]:
        """What MindSpore asks: shapes and dtypes of the outputs, before each call or graph."""
        inputs = self._read_infer(args)
        if self._given_out is None:
            outcome = self._infer(inputs)
        else:
            check_inputs(self._model, inputs)
            outcome = given_outcome(self._model.name, *self._given_out, inputs, args)
            # What a function returns may change, but the inputs are all of the key.
            self._set(_OUTPUTS, outcome.outputs_text)
        if outcome.is_dynamic:
            if not isinstance(outcome.shape, tuple) and self._model.description.has_several_outputs:
                raise ValueError(
                    f"{self._model.name}: expected a tuple of two tensors or more where sizes "
                    "are not known when the graph is compiled, got one tensor; call the operator "
                    "with tensors of known sizes, or add an empty one"
                )
            self._record(_INPUTS, outcome.inputs_text)
            self._record("cpp_infer_shape", True)
        if self._is_clone and self.bprop is None:
            output_count = len(outcome.shape) if isinstance(outcome.shape, tuple) else None
            record = self._set if self._is_traced else self._record
            record(_CALL, json.dumps([inputs, output_count]))
        return {"shape": outcome.shape, "dtype": outcome.dtype, "value": None}

    def _record(self, name: str, value: Any) -> None:
        """Sets an attribute of one node of a graph, as MindSpore notes during `__infer__` (2.10).

        It must not stay: before `__infer__`, MindSpore would ask the library's hook about the next
        node, with the attributes of this one.
        """
        self._set(name, value)
        self._remove(name)

    def _infer(self, inputs: Inputs) -> Outcome:
        key = inputs[:2]
        outcome = self._outcomes.get(key)
        if outcome is None:
            check_inputs(self._model, inputs)
            if self._model.forward is not None and not self._model.has_meta:
                check_static(self._model.name, inputs)
            outputs = self._model.infer(inputs.texts, inputs.shapes, self._forward_outputs)
            outcome = make_outcome(
                inputs,
                [list(shape) for _, shape in outputs],
                [TENSOR_TYPES[dtype] for dtype, _ in outputs],
            )
            if len(self._outcomes) == _MAX_OUTCOMES:
                self._outcomes.clear()
            self._outcomes[key] = outcome
        return outcome

    # ===--- gradients ---===

    def get_bprop(self) -> Callable | None:
        """What MindSpore differentiates the operator with; it asks after `__infer__`."""
        if self.bprop is not None:
            return self.bprop
        if not self._is_clone:
            return self._pynative_bprop
        inputs, output_count = json.loads(self.get_attr_dict()[_CALL])
        return self._bprop(Inputs(*map(tuple, inputs)), output_count)

    def _native_gradient(self, args: Sequence[Any]) -> Any:
        """What the native caller differentiates such a call with."""
        layout = Layout.read(args)
        if layout not in self._native_gradients:
            self._native_gradients[layout] = make_gradient(self, layout, self.bprop is not None)
        return self._native_gradients[layout]

    def differentiate(self, native: Any, layout: Layout, *operands: Sequence[Any]) -> list[Any]:
        """What the native caller asks for gradients, until it has a kernel that computes them."""
        *_, douts = operands
        key = (*layout, None if len(douts) == 1 else len(douts))
        known = self._bprops.get(key) if self.bprop is None else None
        gradients = differentiate(known or self.get_bprop(), layout, *operands)
        if self.bprop is None and key in self._gradient_operators:
            operator, mask = self._gradient_operators[key]
            if operator._caller:
                native.set_kernel(operator._caller, mask)
        return gradients

    def _pynative_bprop(self, *args: Any) -> Any:
        """A `bprop` for any number of inputs, which graph mode cannot compile."""
        *inputs, _, dout = args
        read = read_call(inputs, self._list_position(inputs))
        if self._model.grad is None and self._model.gradient(len(read.texts)) is None:
            raise ValueError(self._model.missing_gradient())
        return self._bprop(read, len(dout) if isinstance(dout, tuple) else None)(*args)

    def _bprop(self, inputs: Inputs, output_count: int | None) -> Callable:
        """A `bprop` for a network with such inputs and a tuple of so many outputs; None: one."""
        key = (inputs.layout, tuple(map(is_tensor, inputs.texts)), output_count)
        if key not in self._bprops:
            model, of_gradient = self._model, self._model.gradient(len(inputs.texts))
            gradient = model.grad if isinstance(model.grad, ops.Primitive) else None
            if isinstance(gradient, Kernel):
                of_gradient = gradient._model
            elif of_gradient is not None:
                gradient = self._gradient(of_gradient, output_count or 1)
            if isinstance(gradient, Kernel):
                mask = model.gradient_mask(inputs.texts, of_gradient)
                self._gradient_operators[key] = gradient, list(map(bool, mask))
            gradient = gradient or MissingGradient(model.missing_gradient())
            self._bprops[key] = make_bprop(model, of_gradient, gradient, inputs, output_count)
        return self._bprops[key]

    def _gradient(self, model: KernelModel, output_count: int) -> Kernel:
        """The operator of the kernel that computes gradients of this one."""
        key = (model, output_count)
        if key not in self._gradients:
            self._gradients[key] = self._made(model, forward_outputs=output_count)
        return self._gradients[key]

    @staticmethod
    def _made(model: KernelModel, **more: Any) -> Kernel:
        return Kernel(model, **more)

    # ===--- copies ---===

    def _of_this_thread(self) -> Kernel:
        """The operator itself for the first thread that calls it, a copy for each other one.

        Where several threads call one ops.Custom in PyNative mode, MindSpore (2.10) now and then
        gives a call the memory of another thread's: also with a C function that has no bridge.
        """
        thread = threading.get_ident()
        with self._lock:
            if self._thread in (None, thread):
                self._thread = thread
                return self
            if thread not in self._copies:
                self._copies[thread] = copy.deepcopy(self)
                self._copies[thread]._thread = thread
            return self._copies[thread]

    def __deepcopy__(self, memo: dict[int, Any]) -> Kernel:
        """An operator of its own, without the state of this one."""
        out_shape, out_dtype = self._given_out or (None, None)
        copied = type(self)(self._model, out_shape, out_dtype, self._forward_outputs)
        for name, value in self.attrs.items():
            if name not in copied.attrs and name not in (_OUTPUTS, _CALL):
                copied.add_prim_attr(name, value)
        return copied

    def __reduce_ex__(self, protocol: Any) -> Any:
        """What `pickle` and `copy.copy` ask, also of a cell with the operator in it."""
        raise TypeError(
            f"{self._model.name}: expected an operator that stays in its process and is copied "
            "with copy.deepcopy, got pickle or copy.copy; save parameters with "
            f"mindspore.save_checkpoint, and make the operator where it is called, as in {self!r}"
        )

    def _clone(self) -> Kernel:
        cloned = copy.deepcopy(self)
        cloned._is_clone = True
        if hasattr(self, "instance_name"):
            cloned.set_prim_instance_name(self.instance_name)
        return cloned

    def _traced(self) -> Kernel:
        """The operator of one node, to which MindSpore's tracing gives no clone (2.10)."""
        traced = self._clone()
        traced._is_traced = True
        return traced

    def __repr__(self) -> str:
        return repr(self._model)

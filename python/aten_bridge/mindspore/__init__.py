"""Kernels exported with ATEN_BRIDGE_EXPORT as operators of MindSpore.

    from aten_bridge.mindspore import kernel

    leaky_relu = kernel("./leaky_relu.so:LeakyRelu", negative_slope=0.2, grad="LeakyReluGrad")
    y = leaky_relu(x)

`kernel` makes an `ops.Custom` that knows what the library says about itself: it checks the library
and the attributes at once, infers shapes and dtypes with the kernel's meta function, and
differentiates with a gradient kernel. Facts about MindSpore in the comments are measured on 2.10.0
(CPU).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mindspore import ops

from aten_bridge._kernel import KernelModel
from aten_bridge.mindspore._aten import Operator, make_operator
from aten_bridge.mindspore._caller import NativeCaller, native_caller
from aten_bridge.mindspore._host import HOST
from aten_bridge.mindspore._operator import Kernel
from aten_bridge.mindspore._unsized import make_kernel

if TYPE_CHECKING:
    import torch

    from aten_bridge.mindspore._module import Module

__all__ = ["Kernel", "NativeCaller", "Operator", "kernel", "module", "native_caller", "operator"]


def kernel(
    path_and_name: str | Path,
    /,
    *,
    grad: str | tuple[str, ...] | ops.Primitive | Callable | None = None,
    out_shape: Any = None,
    out_dtype: Any = None,
    has_side_effect: bool | None = None,
    **attributes: Any,
) -> Kernel:
    """Makes an operator of a kernel.

    Each call makes an operator of its own: kernels with state share none, and neither do a copy
    made by `copy.deepcopy` and its original. Works on MindSpore 2.7 to 2.10. PyTorch is imported
    only if a kernel's operators tell their shapes in its Python part alone, such as those of a
    convolution.

    Args:
        path_and_name: The library and the name of the kernel, as a text or a path:
            "./leaky_relu.so:LeakyRelu". The path is taken from the current folder at once, "~" is
            the home folder.
        grad: What computes the gradient: the name of a gradient kernel, in the same library or
            with a path of its own; a tuple of such names, for the gradient, the gradient of the
            gradient and so on; an operator; or a function as MindSpore's `bprop`, which takes
            the inputs, the output and the output's gradient, and returns a tuple. A gradient
            kernel, or an operator, takes the inputs, then one gradient for each output, and gives
            one gradient for each tensor among the inputs. A gradient kernel gets those of the
            attributes that it knows, and, without a meta function, has outputs like the inputs.
        out_shape: The shape of the output, or a function of the inputs' shapes, as in
            `ops.Custom`; a tuple of shapes for several outputs. For kernels without a meta
            function, together with `out_dtype`. Of a kernel with `data_dependent()`, which
            outside of a graph needs none, the largest: the sizes follow, as for `operator`.
        out_dtype: The dtype of the output, or a function of the inputs' dtypes.
        has_side_effect: Whether a call does more than to compute its results from its inputs: it
            draws random numbers, prints, or counts. Then graphs make each call, also one whose
            results nobody uses, in the order of the program. None: as the kernel's export says,
            with `aten_bridge::side_effect()` or by a state that changes. It holds for gradient
            kernels too.
        **attributes: The kernel's attributes: bool, int, float, str, lists of one of these,
            lists of lists of ints or of floats, dtypes, and NumPy's equivalents. None stands for
            no value, and gives the default. Nothing is converted: write 1.0 where a kernel has a
            float.

    Returns:
        The operator. It takes tensors, None and Python numbers, and tuples of tensors in place of
        several tensors. Several outputs are a tuple; those of rank 0 are tensors too.

    Raises:
        FileNotFoundError: There is no such file.
        OSError: The file is no library for this machine, or cannot be loaded.
        ImportError: The process has another PyTorch than the library was built with, or the
            library is of another interface, which another version of aten_bridge may have made.
        AttributeError: The library has no such kernel.
        TypeError: An attribute is unknown, missing or of another type.
        ValueError: The path or the name of an attribute cannot be used with MindSpore, or shapes
            and dtypes are not given where the kernel has no meta function.

    """
    function = HOST.open_function(path_and_name)
    checked = function.check_attributes(attributes, HOST)
    model = KernelModel(function, HOST, checked, grad, has_side_effect)
    return make_kernel(model, out_shape, out_dtype)


def operator(
    name: str,
    /,
    *,
    grad: str | tuple[str, ...] | ops.Primitive | Callable | None = None,
    out_shape: Any = None,
    out_dtype: Any = None,
    **attributes: Any,
) -> Operator:
    """Makes an operator of one of PyTorch's, by its name; nothing is compiled.

        gelu = operator("aten::gelu", approximate="tanh")
        values, indices = operator("aten::topk", k=3)(x)

    It is called with the tensors of PyTorch's schema in their order, None for those that may be
    left out; all other arguments are attributes, by the names and with the defaults of the schema.
    Its gradients are those of PyTorch's autograd; for integers they are zeros. Works in
    graphs and outside, also where sizes are not known when a graph is compiled.

    Results whose sizes depend on values, as those of "aten::nonzero" do, and as nobody knows of an
    operator of another library that has no meta function, are computed twice outside of a graph:
    the first time for their sizes. For a graph give `out_shape` and `out_dtype`, the
    largest that they can be: the operator then returns such tensors, which begin with the results
    and end with zeros, and after them for each result its sizes, an int64 tensor.

    Args:
        name: "aten::topk" or, with an overload, "aten::max.dim"; without, the first overload that
            takes these attributes. Operators of other libraries, such as "torchvision::nms", can be
            named once the library is imported.
        grad: As for `kernel`, instead of PyTorch's autograd.
        out_shape: As for `kernel`; needed only where PyTorch cannot tell shapes without data.
        out_dtype: The same.
        **attributes: The operator's other arguments: bool, int, float (float64, exactly), str,
            lists of these, dtypes of MindSpore, NumPy and PyTorch, or their names. None gives the
            default. An int is taken for a float, and for a list of one number for each dimension.

    Raises:
        FileNotFoundError: The library of operators is not installed.
        AttributeError: There is no such operator or overload, or it does not take tensors and
            return new ones.
        ImportError: The process has another PyTorch than the library was built with.
        TypeError: An attribute is unknown, missing or of another type.
        ValueError: The operator has no such gradient.

    """
    return make_operator(name, grad, out_shape, out_dtype, attributes)


def module(
    source: torch.nn.Module | torch.export.ExportedProgram | str | Path,
    example_inputs: Sequence[Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    gradient_order: int = 1,
    copy: bool = True,
) -> Module:
    """Makes a cell of a whole PyTorch module, with its weights and gradients.

        encoder = module(torch_encoder, (torch.randn(8, 7, 32),), dynamic_shapes=({0: Dim("n")},))
        loss = ms.value_and_grad(lambda x: encoder(x).sum(), None, encoder.trainable_params())

    torch.export records the module, once in training and once in evaluation mode; `set_train()`
    says which of the two a call runs. A call is one operator of MindSpore's, which runs PyTorch's
    operators without Python; so is its gradient. Works in graphs and outside.

    Args:
        source: The module, whose device is the CPU. Or what `torch.export.export` made of one, or
            the path of a file that `torch.export.save` or `aten_bridge.program.save` wrote: these
            take no other arguments. One that `torch.export` made is in one mode, and does the same
            in both.
        example_inputs: Its arguments: tensors, and tuples, lists and dicts of such. Calls take the
            same with MindSpore's tensors, of the same dtypes and, but for `dynamic_shapes`, shapes.
        dynamic_shapes: Which sizes may change from call to call, as in `torch.export.export`.
        gradient_order: How often the module can be differentiated: 2 for a gradient of a gradient.
            Where gradients read buffers that a call changes, as in batch normalization in
            training mode, it can be only once.
        copy: Whether weights and buffers are copies. Otherwise the module's own move into the
            memory of the cell's parameters: what an optimizer of either changes, both have, until
            one gets other memory, as from `set_data`, its `load_state_dict`,
            `ms.load_param_into_net` and PyTorch's `half`. MindSpore runs operators later than they
            are called: wait for its last result, by `asnumpy()`, before PyTorch reads or writes.

    Returns:
        The cell. Its parameters have PyTorch's names; buffers, such as running means, are
        parameters that do not train, and a call in training mode changes them as in PyTorch.
        Results are as the module's, with tuples for lists and dicts for other classes.

    Raises:
        aten_bridge.program.NotExportable: A program cannot say what the module does.
        TypeError: An argument is missing or of another type.
        ValueError: A file is damaged, or of another version; memory cannot be shared.
        Exception: What torch.export.export raises.

    """
    from aten_bridge.mindspore._module import check_shareable, make_module, share_weights
    from aten_bridge.program._source import open_source

    if not copy:
        check_shareable(source)
    made = make_module(open_source(source, example_inputs, dynamic_shapes, gradient_order))
    if not copy:
        share_weights(source, made)
    return made

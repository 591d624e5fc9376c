"""Kernels exported with ATEN_BRIDGE_EXPORT as functions of JAX.

    from aten_bridge.jax import kernel

    leaky_relu = kernel("./my_ops.so:LeakyRelu", negative_slope=0.2, grad="LeakyReluGrad")
    y = jax.jit(leaky_relu)(x)

The library was built with `HOSTS JAX`. `kernel` makes a function that knows what the library says
about itself: it checks the library and the attributes at once, infers shapes and dtypes with the
kernel's meta function, and differentiates with a gradient kernel. Facts about JAX in the comments
are measured on 0.6.2 and 0.10.2 (CPU).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

try:
    import jax.ffi
except ModuleNotFoundError as error:
    if error.name not in ("jax", "jax.ffi"):
        raise
    raise ModuleNotFoundError(
        "aten_bridge.jax: expected the package jax, 0.6 or newer, got none; install it: "
        "pip install jax",
        name=error.name,
    ) from None
if jax.__version_info__ < (0, 6):
    raise ImportError(
        f"aten_bridge.jax: expected the package jax, 0.6 or newer, got {jax.__version__}; install "
        "another: pip install --upgrade jax"
    )

from aten_bridge.jax._aten import Operator, make_operator
from aten_bridge.jax._operator import Kernel
from aten_bridge.jax._unsized import make_kernel

if TYPE_CHECKING:
    import torch

__all__ = ["Kernel", "Operator", "kernel", "module", "operator"]


def kernel(
    path_and_name: str | Path,
    /,
    *,
    grad: str | tuple[str, ...] | None = None,
    out: Any = None,
    vmap_method: str | None = "sequential",
    input_output_aliases: Mapping[int, int] | None = None,
    has_side_effect: bool | None = None,
    **attributes: Any,
) -> Kernel:
    """Makes a function of a kernel.

    It works under `jax.jit`, `grad`, `vmap`, `lax.scan`, `shard_map` and `jax.export`. PyTorch is
    imported only if a kernel's operators tell their shapes in its Python part alone, such as those
    of a convolution.

    Args:
        path_and_name: The library and the name of the kernel, as a text or a path:
            "./my_ops.so:LeakyRelu". The path is taken from the current folder at once, "~" is the
            home folder. A library that was built again is another one, also in the same process.
        grad: What computes the gradient: the name of a gradient kernel, in the same library or
            with a path of its own, or a tuple of such names, for the gradient, the gradient of
            the gradient and so on. A gradient kernel takes the inputs, then one gradient for each
            output, and gives one gradient for each tensor among the inputs. It gets those of the
            attributes that it knows, and, without a meta function, has outputs like the inputs.
        out: For a kernel without a meta function, what it returns: a `jax.ShapeDtypeStruct`, a
            tuple of these, or a function of the inputs' that returns such. Of a kernel with
            `data_dependent()`, which outside of `jax.jit` needs none, the largest: the sizes
            follow, as for `operator`.
        vmap_method: What `jax.vmap` does, as in `jax.ffi.ffi_call`: "sequential" calls the kernel
            once for each example, which is always right; "expand_dims" and "broadcast_all" call it
            once, with a dimension more in front of the inputs and outputs.
        input_output_aliases: Which output is written to the memory of which input, as in
            `jax.ffi.ffi_call`, for kernels that can do so; inputs count as the kernel has them,
            those of a list one by one.
        has_side_effect: Whether a call does more than to compute its results from its inputs, as in
            `jax.ffi.ffi_call`: it draws random numbers, prints, or counts. Then each call is made,
            also of two that are equal, one in a loop, and one whose results nobody uses. None: as
            the kernel's export says, with `aten_bridge::side_effect()` or by a state that changes.
            It holds for gradient kernels too.
        **attributes: The kernel's attributes: bool, int, float, str, lists of one of these,
            lists of lists of ints or of floats, dtypes, and NumPy's equivalents. None stands for
            no value, and gives the default. Nothing is converted: write 1.0 where a kernel has a
            float.

    Returns:
        The function. It takes arrays of JAX's, None and Python numbers, and tuples of arrays in
        place of several tensors, by position or by the names of the kernel's checks; optional
        ones at the end may be left out. Several outputs are a tuple. Functions of the same kernel,
        attributes and options are equal.

    Raises:
        FileNotFoundError: There is no such file.
        OSError: The file is no library for this machine, or cannot be loaded.
        ImportError: The process has another PyTorch than the library was built with, or the
            library is of another interface, which another version of aten_bridge may have made.
        AttributeError: The library has no such kernel.
        TypeError: An attribute is unknown, missing or of another type.
        ValueError: The library was not built for JAX, the path or the name of an attribute cannot
            be used, or shapes and dtypes are not given where the kernel has no meta function.

    """
    made_of = (path_and_name, attributes, grad, has_side_effect)
    return make_kernel(*made_of, out, vmap_method, input_output_aliases)


def operator(
    name: str,
    /,
    *,
    grad: str | tuple[str, ...] | None = None,
    out: Any = None,
    vmap_method: str | None = "sequential",
    **attributes: Any,
) -> Operator:
    """Makes a function of one of PyTorch's operators, by its name; nothing is compiled.

        gelu = operator("aten::gelu", approximate="tanh")
        values, indices = jax.jit(operator("aten::topk", k=3))(x)

    It is called with the tensors of PyTorch's schema, in their order or by their names; those that
    may be None can be left out at the end. All other arguments are attributes, by the names and
    with the defaults of the schema. Its gradients are those of PyTorch's autograd.
    Results of int64, such as indices, need jax_enable_x64.

    Results whose sizes depend on values, as those of "aten::nonzero" do, and as nobody knows of an
    operator of another library that has no meta function, are computed twice outside of
    `jax.jit`: the first time for their sizes. Inside, give `out`, the largest that they can be:
    the function then returns such arrays, which begin with the results and end with zeros, and
    after them for each result its sizes, an int64 array.

    Args:
        name: "aten::topk" or, with an overload, "aten::max.dim"; without, the first overload that
            takes these attributes. Operators of other libraries, such as "torchvision::nms", can be
            named once the library is imported.
        grad: As for `kernel`, instead of PyTorch's autograd.
        out: As for `kernel`; needed only where PyTorch cannot tell shapes without data.
        vmap_method: As for `kernel`.
        **attributes: The operator's other arguments: bool, int, float, str, lists of these, dtypes
            of JAX, NumPy and PyTorch, or their names. None gives the default. An int is taken for a
            float, and for a list of one number for each dimension.

    Raises:
        FileNotFoundError: The library of operators is not installed.
        AttributeError: There is no such operator or overload, or it does not take tensors and
            return new ones.
        ImportError: The process has another PyTorch than the library was built with.
        TypeError: An attribute is unknown, missing or of another type.
        ValueError: The operator has no such gradient.

    """
    return make_operator(name, grad, out, vmap_method, attributes)


def module(
    source: torch.nn.Module | torch.export.ExportedProgram | str | Path,
    example_inputs: Sequence[Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    gradient_order: int = 1,
) -> tuple[Callable[..., Any], dict[str, dict[str, jax.Array]]]:
    """Makes a function of a whole PyTorch module, and its weights.

        apply, variables = module(torch_encoder, (torch.randn(8, 7, 32),))
        y = jax.jit(apply)(variables, x)

    torch.export records the module, once in training and once in evaluation mode. A call is one
    custom call of XLA's, which runs PyTorch's operators without Python; so is its gradient. It
    works under `jax.jit`, `grad`, `value_and_grad`, `lax.scan`, and `vmap`, which calls it once for
    each example.

    Args:
        source: The module, whose device is the CPU; its weights and buffers are copied. Or what
            `torch.export.export` made of one, or the path of a file that `torch.export.save` or
            `aten_bridge.program.save` wrote: these take no other arguments. One that
            `torch.export` made is in one mode, and does the same in both.
        example_inputs: Its arguments: tensors, and tuples, lists and dicts of such. Calls take the
            same with arrays, of the same dtypes and, but for `dynamic_shapes`, shapes.
        dynamic_shapes: Which sizes may change from call to call, as in `torch.export.export`.
        gradient_order: How often the module can be differentiated: 2 for a gradient of a gradient.
            Where gradients read buffers that a call changes, as in batch normalization in
            training mode, it can be only once.

    Returns:
        `apply(variables, *inputs, train=False, rng=None)`, and `variables`: a dict with "params"
        and "buffers", each a dict of arrays under PyTorch's names. With `train=True` a call
        returns the results and the buffers that are new, such as running means, with the others.
        Random numbers follow from `rng`, a key of `jax.random`, or come from PyTorch's generator.

    Raises:
        aten_bridge.program.NotExportable: A program cannot say what the module does.
        ValueError: A file is damaged, or of another version.
        Exception: What torch.export.export raises.

    """
    from aten_bridge.jax._module import make_module
    from aten_bridge.program._source import open_source

    return make_module(open_source(source, example_inputs, dynamic_shapes, gradient_order))

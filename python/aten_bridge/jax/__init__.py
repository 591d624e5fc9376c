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

from pathlib import Path
from typing import Any

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

from aten_bridge.jax._operator import Kernel

__all__ = ["Kernel", "kernel"]


def kernel(
    path_and_name: str | Path,
    /,
    *,
    grad: str | tuple[str, ...] | None = None,
    out: Any = None,
    vmap_method: str | None = "sequential",
    input_output_aliases: dict[int, int] | None = None,
    **attributes: Any,
) -> Kernel:
    """Makes a function of a kernel.

    It works under `jax.jit`, `grad`, `vmap`, `lax.scan`, `shard_map` and `jax.export`. PyTorch is
    imported only if a kernel's operators tell their shapes in its Python part alone, such as those
    of a convolution.

    Args:
        path_and_name: The library and the name of the kernel, as a text or a path:
            "./my_ops.so:LeakyRelu". The path is taken from the current folder at once, "~" is the
            home folder. A library that was built anew is another one, also in the same process.
        grad: What computes the gradient: the name of a gradient kernel, in the same library or
            with a path of its own, or a tuple of such names, for the gradient, the gradient of
            the gradient and so on. A gradient kernel takes the inputs, then one gradient for each
            output, and gives one gradient for each tensor among the inputs. It gets those of the
            attributes that it knows, and, without a meta function, has outputs like the inputs.
        out: For a kernel without a meta function, what it returns: a `jax.ShapeDtypeStruct`, a
            tuple of these, or a function of the inputs' that returns such.
        vmap_method: What `jax.vmap` does, as in `jax.ffi.ffi_call`: "sequential" calls the kernel
            once for each example, which is always right; "expand_dims" and "broadcast_all" call it
            once, with a dimension more in front of the inputs and outputs.
        input_output_aliases: Which output is written to the memory of which input, as in
            `jax.ffi.ffi_call`, for kernels that can do so; inputs count as the kernel has them,
            those of a list one by one.
        **attributes: The kernel's attributes: bool, int, float, str, lists of one of these,
            lists of lists of ints or of floats, dtypes, and NumPy's equivalents. None stands for
            no value, and gives the default. Nothing is converted: write 1.0 where a kernel has a
            float.

    Returns:
        The function. It takes arrays of JAX's, None and Python numbers, and tuples of arrays in
        the place of several tensors. Several outputs are a tuple.

    Raises:
        FileNotFoundError: There is no such file.
        OSError: The file is no library for this machine, or cannot be loaded.
        ImportError: The process has another PyTorch than the library was built with.
        AttributeError: The library has no such kernel.
        TypeError: An attribute is unknown, missing or of another type.
        ValueError: The library was not built for JAX, the path or the name of an attribute cannot
            be used, or shapes and dtypes are not given where the kernel has no meta function.

    """
    return Kernel(path_and_name, grad, out, vmap_method, input_output_aliases, attributes)

"""The outputs of a call: whether JAX can have such."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from aten_bridge._text import format_value, or_list
from aten_bridge.jax._host import DTYPES, NAMES

Output = tuple[tuple[int, ...], np.dtype]

_MOST_BYTES = 2**63 - 1


def check_outputs(
    name: str, outputs: Sequence[tuple[Sequence[int], Any]], given: bool = False
) -> list[Output]:
    """The outputs of a kernel, `given` by `out` or inferred. Raises TypeError or ValueError."""
    faults = [_fault(shape, dtype) for shape, dtype in outputs]
    if any(faults):
        cure = "correct out" if given else "correct what the sizes come from"
        raise ValueError(
            "\n".join(f"{name}: output {i}: {f}; {cure}" for i, f in enumerate(faults) if f)
        )
    # JAX would have these in fewer bits than the kernel writes.
    wide = [d for _, d in outputs if jax.dtypes.canonicalize_dtype(d) != d]
    if wide:
        raise TypeError(
            f"{name}: expected outputs of dtypes that JAX has, got "
            f"{or_list(dict.fromkeys(NAMES[dtype] for dtype in wide))}; set jax_enable_x64, as in "
            'jax.config.update("jax_enable_x64", True)'
        )
    return [(tuple(map(int, shape)), np.dtype(dtype)) for shape, dtype in outputs]


def _fault(shape: Sequence[Any], dtype: Any) -> str:
    """What is wrong with an output; "" if nothing is."""
    if dtype not in NAMES:
        return f'expected {"|".join(DTYPES)}, got "{dtype}" with shape {format_value(list(shape))}'
    what = f"{NAMES[dtype]} {format_value(list(shape))}"
    if not all(isinstance(size, numbers.Integral) and size >= 0 for size in shape):
        return f"expected sizes of 0 or more, got {what}"
    # Also where there is no element: strides are products of the other sizes.
    if math.prod(max(1, int(size)) for size in shape) * np.dtype(dtype).itemsize > _MOST_BYTES:
        return f"expected less than 2^63 bytes, got {what}"
    return ""

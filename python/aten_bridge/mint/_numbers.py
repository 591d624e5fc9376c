"""Python numbers beside tensors, and kinds of dtypes.

MindSpore makes numbers float32, also beside integers and float64; a tensor keeps them.
"""

from __future__ import annotations

from typing import Any

import mindspore as ms
from mindspore import Tensor

FLOATING = (ms.float16, ms.bfloat16, ms.float32, ms.float64)
INTEGERS = (ms.int8, ms.int16, ms.int32, ms.int64, ms.uint8)
_NOT_FLOAT32 = (ms.float64, *INTEGERS)


def number_like(value: float, like: Tensor) -> Tensor:
    """MindSpore makes a Python number a float32, also beside a float64."""
    return Tensor(value, like.dtype)


def beside(number: Any, tensor: Any) -> Any:
    """MindSpore makes a Python number a float32, also beside a float64."""
    is_lost = isinstance(number, float) and isinstance(tensor, Tensor)
    return number_like(number, tensor) if is_lost and tensor.dtype == ms.float64 else number


def of_dtype(value: Any, dtype: Any) -> Any:
    is_kept = isinstance(value, (Tensor, bool))
    return value if is_kept or dtype not in _NOT_FLOAT32 else Tensor(value, dtype)


def _is_short(number: Any) -> bool:
    """Whether float16 and bfloat16 have the number, as far as a graph can tell."""
    return -8 <= number <= 8 and number * 16 == number * 16 // 1


def is_wide(number: Any, tensor: Any) -> bool:
    """Whether PyTorch's product is of float32 and the number, which MindSpore rounds first."""
    if not isinstance(number, (int, float)) or not isinstance(tensor, Tensor):
        return False
    return tensor.dtype in (ms.float16, ms.bfloat16) and not _is_short(number)

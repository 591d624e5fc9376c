"""The bridge's dtypes and MindSpore's."""

from __future__ import annotations

import mindspore as ms
from mindspore.common.dtype import TensorType

# The bridge's names of dtypes.
DTYPES = {
    "bool": ms.bool_,
    "uint8": ms.uint8,
    "int8": ms.int8,
    "uint16": ms.uint16,
    "int16": ms.int16,
    "uint32": ms.uint32,
    "int32": ms.int32,
    "uint64": ms.uint64,
    "int64": ms.int64,
    "float16": ms.float16,
    "bfloat16": ms.bfloat16,
    "float32": ms.float32,
    "float64": ms.float64,
    "complex64": ms.complex64,
    "complex128": ms.complex128,
    "float8e4m3fn": ms.float8_e4m3fn,
    "float8e5m2": ms.float8_e5m2,
}
OTHERS = (ms.hifloat8, ms.qint4x2)  # MindSpore's, which PyTorch has not
NAMES = {dtype: name for name, dtype in DTYPES.items()}
# With ms.float32 in place of its tensor type, graph mode makes Python numbers of 0-dim results.
TENSOR_TYPES = {name: TensorType(dtype) for name, dtype in DTYPES.items()}

"""Random numbers."""

from __future__ import annotations

import mindspore as ms
from mindspore import mint
from mindspore.mint.nn import functional as F
from mindspore.ops.auto_generate import gen_ops_prim

from aten_bridge.mint._numbers import FLOATING
from aten_bridge.mint._replace import REPLACED, method, replaces


@method
def exponential_(self, lambd=1, *, generator=None):
    if self.dtype not in FLOATING:
        raise TypeError(f"exponential_: expected floating-point numbers, got {self.dtype}")
    if lambd <= 0:
        raise ValueError(f"exponential_: expected lambd above 0, got {lambd}")
    uniform = mint.empty_like(self, dtype=self.dtype if self.dtype == ms.float64 else ms.float32)
    uniform.uniform_(generator=generator)
    return self.copy_(mint.log1p(-uniform) / -lambd)


@replaces("nn.functional.dropout2d")
def dropout2d(input, p=0.5, training=True, inplace=False):
    if not training:
        return input
    shape = (*input.shape[:2], *[1] * (input.ndim - 2))
    kept = F.dropout(mint.ones(shape, dtype=input.dtype), p)
    return input.mul_(kept) if inplace else input * kept


def _dropout2d(input, p, training, inplace, seed, offset):
    """What the layer of mint.nn calls."""
    return dropout2d(input, p, training, inplace)


REPLACED.append((gen_ops_prim.dropout2d_ext_op, _dropout2d))

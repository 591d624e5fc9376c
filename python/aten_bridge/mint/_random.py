"""Random numbers."""

from __future__ import annotations

import functools

import mindspore as ms
from mindspore import mint, ops
from mindspore.common.generator import Generator
from mindspore.mint.nn import functional as F
from mindspore.ops.auto_generate import gen_ops_prim

from aten_bridge.mint._numbers import FLOATING
from aten_bridge.mint._replace import REPLACED, WITHIN, method, replaces


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


def _tell_graphs(name: str) -> None:
    """Lets compiled graphs have the seed too: MindSpore (2.10) keeps it to itself.

    There graphs begin with a seed that is another in each process.
    """
    own = getattr(Generator, name)

    @functools.wraps(own)
    def tell(self, *arguments, **keywords):
        result = own(self, *arguments, **keywords)
        ops.assign(self._seed, ms.Tensor(self.initial_seed(), ms.int64))
        return result

    WITHIN.append((Generator, name, tell))


for _name in ("manual_seed", "seed", "set_state"):
    _tell_graphs(_name)

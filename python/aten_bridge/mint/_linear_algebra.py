"""Products and factors of matrices."""

from __future__ import annotations

import mindspore as ms
from mindspore import Tensor, mint, ops

from aten_bridge.mint._numbers import INTEGERS, number_like
from aten_bridge.mint._replace import METHODS, named_as, replaces

_outer = mint.outer


@replaces("vdot")
def vdot(input, other):
    return mint.dot(ops.conj(input) if input.is_complex() else input, other)


@replaces("outer")  # MindSpore has no gradient for two dtypes
def outer(input, vec2):
    if input.dtype == vec2.dtype:
        return _outer(input, vec2)
    return mint.unsqueeze(input, 1) * vec2


@replaces("addr_")
def addr_(input, vec1, vec2, beta=1, alpha=1):
    product = mint.outer(vec1, vec2)
    product = product if alpha == 1 else product * alpha
    return input.copy_(product if beta == 0 else input * beta + product)


def _of_other_ranks(name: str, ndim: int, base: int | None = None) -> None:
    """Tensors that PyTorch's method does not take go to MindSpore's function, as they did.

    MindSpore has two methods of the name, of which it takes PyTorch's where there is a kernel. A
    base, to which the operator adds, may have fewer dimensions than the result.
    """
    original, function = getattr(Tensor, name), getattr(ops, name)

    def compute(self, *arguments, **keywords):
        is_of_pytorch = self.ndim == ndim if base is None else self.ndim <= base
        for one in (*arguments, *keywords.values()):
            is_of_pytorch = is_of_pytorch and (not isinstance(one, Tensor) or one.ndim == ndim)
        return (original if is_of_pytorch else function)(self, *arguments, **keywords)

    METHODS[name] = named_as(original, compute)


for _name in ("dot", "outer"):
    _of_other_ranks(_name, 1)
_of_other_ranks("addbmm", 3, base=2)
_of_other_ranks("baddbmm", 3, base=3)


def _plus(input, product, beta, alpha):
    product = product if alpha == 1 else product * number_like(alpha, product)
    return product if beta == 0 else product + input * number_like(beta, input)


@replaces("addmm", ms.float64, *INTEGERS)
def addmm(input, mat1, mat2, *, beta=1, alpha=1):
    return _plus(input, mint.mm(mat1, mat2), beta, alpha)


@replaces("addmv", ms.bfloat16)
def addmv(input, mat, vec, *, beta=1, alpha=1):
    return _plus(input, mint.mv(mat, vec), beta, alpha)


@replaces("linalg.inv", ms.float64)
def inv(input):
    return ops.inverse(input)


@replaces("linalg.qr", ms.float64)
def qr(A, mode="reduced"):
    return ops.qr(A, mode)

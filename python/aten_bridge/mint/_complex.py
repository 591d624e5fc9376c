"""Gradients of products and quotients of complex numbers."""

from __future__ import annotations

from typing import Any

import mindspore as ms
from mindspore import Tensor, mint, ops


def is_complex(value: Any) -> bool:
    return isinstance(value, Tensor) and value.dtype in (ms.complex64, ms.complex128)


def _gradient_of(operand: Any, of_broadcast: Tensor) -> Tensor | None:
    """The operand's own, of that of what it is broadcast to."""
    if not isinstance(operand, Tensor):
        return None
    gradient = of_broadcast if is_complex(operand) else ops.real(of_broadcast)
    dims = list(range(gradient.ndim - operand.ndim))
    for i in range(-operand.ndim, 0):
        if operand.shape[i] != gradient.shape[i]:
            dims.append(gradient.ndim + i)
    gradient = mint.sum(gradient, tuple(dims)) if dims else gradient
    return mint.reshape(gradient, operand.shape).astype(operand.dtype)


def _conjugate(value: Any) -> Any:
    return ops.conj(value) if is_complex(value) else value


class _OfComplex(ms.common._Function):
    """MindSpore has no gradient of products and quotients, or one without the conjugates."""

    @staticmethod
    def forward(ctx, compute, *operands):
        ctx.save_for_backward(*[x for x in operands if isinstance(x, Tensor)])
        ctx.numbers = [None if isinstance(x, Tensor) else x for x in operands]
        return compute(*operands)

    @classmethod
    def backward(cls, ctx, gradient):
        tensors = iter(ctx.saved_tensors)
        operands = [next(tensors) if number is None else number for number in ctx.numbers]
        gradients = cls.gradients(gradient, *operands)
        return None, *map(_gradient_of, operands, gradients)


class Product(_OfComplex):
    @staticmethod
    def gradients(gradient, input, other):
        return gradient * _conjugate(other), gradient * _conjugate(input)


class Quotient(_OfComplex):
    @staticmethod
    def gradients(gradient, input, other):
        of_input = gradient / _conjugate(other)
        return of_input, -of_input * _conjugate(input / other)


class ReverseQuotient(_OfComplex):
    @staticmethod
    def gradients(gradient, other, input):
        return Quotient.gradients(gradient, input, other)[::-1]

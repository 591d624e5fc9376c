"""Einstein's sums, as products of batches of matrices."""

from __future__ import annotations

import functools
import itertools
import math
import string

import mindspore as ms
from mindspore import mint
from mindspore.common.api import _pynative_executor
from mindspore.ops.functional import isconstant

from aten_bridge.mint._native import IN_ONE_CALL, by_name, is_native
from aten_bridge.mint._numbers import FLOATING
from aten_bridge.mint._replace import replaces


@replaces("einsum")
def einsum(equation, *operands):
    if not isinstance(equation, str):
        equation, operands = _named((equation, *operands))
    elif len(operands) == 1 and isinstance(operands[0], (tuple, list)):
        operands = operands[0]
    if isconstant(operands):  # False in a graph
        result = IN_ONE_CALL["einsum"](equation, operands)
        if result is not None:
            return result
    terms, output = _labels(equation, [operand.ndim for operand in operands])
    result, labels = _diagonal(operands[0], terms[0])
    for i in range(1, len(terms)):
        operand, its_labels = _diagonal(operands[i], terms[i])
        kept = [*output, *itertools.chain(*terms[i + 1 :])]
        result, labels = _product(result, labels, operand, its_labels, kept)
    result, labels = _summed(result, labels, output)
    return mint.permute(result, tuple(labels.index(label) for label in output))


_DTYPES = (*FLOATING, ms.complex64, ms.complex128)


def _by_name(equation, operands):
    """PyTorch's result; None for operands that it does not take."""
    if not is_native():
        return None
    needs_all = _needs_all(equation, tuple(operand.shape for operand in operands))
    # The caller keeps the operands for a gradient: one that PyTorch does not keep may be written
    # before that is computed.
    if needs_all is None or (_pynative_executor.requires_grad() and not needs_all):
        return None
    dtype = operands[0].dtype
    if dtype not in _DTYPES or any(operand.dtype != dtype for operand in operands):
        return None
    operator = by_name("aten::einsum", equation=equation)
    return None if operator is None else operator(tuple(operands))


IN_ONE_CALL["einsum"] = _by_name


@functools.lru_cache(1024)
def _needs_all(equation, shapes):
    """Whether PyTorch keeps all operands for the gradient; None if sizes do not fit.

    Those are refused where operands are multiplied. PyTorch sums over labels that only one operand
    has before it multiplies, and keeps the sum.
    """
    terms, output = _labels(equation, [len(shape) for shape in shapes])
    sizes = {}
    for labels, shape in zip(terms, shapes, strict=True):
        own = {}
        for label, size in zip(labels, shape, strict=True):
            if own.setdefault(label, size) != size:
                return None
            if size != 1 and sizes.setdefault(label, size) != size:
                return None
    return len(terms) > 1 and not any(
        label not in output and sum(label in other for other in terms) == 1
        for label in itertools.chain(*terms)
    )


def _named(arguments):
    """The equation and the operands, from operands that are each followed by a list of numbers."""

    def name(numbers):
        return "".join("..." if n is Ellipsis else string.ascii_letters[n] for n in numbers)

    pairs = len(arguments) // 2
    equation = ",".join(name(arguments[2 * i + 1]) for i in range(pairs))
    if len(arguments) % 2:
        equation += "->" + name(arguments[-1])
    return equation, arguments[0 : 2 * pairs : 2]


def _labels(equation, ndims):
    """Labels of the operands' dimensions and of the output's; those of "..." count from the end."""
    inputs, arrow, output = equation.replace(" ", "").partition("->")
    terms = inputs.split(",")
    if len(terms) != len(ndims):
        raise ValueError(
            f"einsum: expected as many operands as {equation!r} has, {len(terms)}, got {len(ndims)}"
        )

    def labels(term, ndim):
        before, dots, after = term.partition("...")
        if dots:
            return [*before, *range(ndim - len(before) - len(after), 0, -1), *after]
        return list(term)

    named = [labels(terms[i], ndims[i]) for i in range(len(terms))]
    for i, term in enumerate(named):
        if len(term) != ndims[i]:
            raise ValueError(
                f"einsum: expected {len(term)} dimensions of operand {i} as {equation!r} says, "
                f"got {ndims[i]}"
            )
    every = list(itertools.chain(*named))
    dots = max([0, *(label for label in every if isinstance(label, int))])
    if arrow:
        result = labels(output, len(output.replace("...", "")) + dots)
    else:
        letters = sorted(label for label in every if isinstance(label, str))
        result = [*range(dots, 0, -1), *(label for label in letters if letters.count(label) == 1)]
    for label in result:
        if label not in every or result.count(label) > 1:
            raise ValueError(
                f"einsum: expected each label of the output once, and among the inputs', got "
                f"{equation!r}"
            )
    return named, result


def _diagonal(operand, labels):
    """The diagonal of dimensions with the same label."""
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            i = labels.index(label)
            j = labels.index(label, i + 1)
            size = operand.shape[i]
            if operand.shape[j] != size:
                raise ValueError(
                    f"einsum: expected dimensions of one size for the label {label!r} that an "
                    f"operand has twice, got {size} and {operand.shape[j]}"
                )
            rest = [k for k in range(operand.ndim) if k not in (i, j)]
            operand = mint.permute(operand, (*rest, i, j))
            operand = mint.reshape(operand, (*operand.shape[:-2], size * size))[..., :: size + 1]
            labels = [*(labels[k] for k in rest), label]
    return operand, labels


def _summed(operand, labels, kept):
    dims = tuple(i for i, label in enumerate(labels) if label not in kept)
    operand = mint.sum(operand, dims) if dims else operand
    return operand, [label for label in labels if label in kept]


def _broadcast(operand, labels, other, others):
    """Leaves out the dimensions of size 1 that the other operand has larger."""
    dims = [
        i
        for i, label in enumerate(labels)
        if operand.shape[i] == 1 and label in others and other.shape[others.index(label)] != 1
    ]
    rest = [i for i in range(operand.ndim) if i not in dims]
    shape = tuple(operand.shape[i] for i in rest)
    return mint.reshape(operand, shape) if dims else operand, [labels[i] for i in rest]


def _product(a, of_a, b, of_b, kept):
    """Contracts two operands as batches of matrices; sums over the labels not kept."""
    a, of_a = _broadcast(a, of_a, b, of_b)
    b, of_b = _broadcast(b, of_b, a, of_a)
    a, of_a = _summed(a, of_a, [*kept, *of_b])
    b, of_b = _summed(b, of_b, [*kept, *of_a])
    sizes = {label: a.shape[i] for i, label in enumerate(of_a)}
    sizes.update({label: b.shape[i] for i, label in enumerate(of_b)})
    for i, label in enumerate(of_a):
        if a.shape[i] != sizes[label]:
            raise ValueError(
                f"einsum: expected dimensions of one size for the label {label!r}, got "
                f"{a.shape[i]} and {sizes[label]}"
            )
    batch = [label for label in of_a if label in of_b and label in kept]
    both = [label for label in of_a if label in of_b and label not in kept]
    rows = [label for label in of_a if label not in of_b]
    columns = [label for label in of_b if label not in of_a]

    labels = [*batch, *rows, *columns]
    if not both:  # any two dtypes
        a, b = _along(a, of_a, labels), _along(b, of_b, labels)
        return a * b, labels
    if a.dtype != b.dtype:
        raise TypeError(f"einsum: expected operands of one dtype, got {a.dtype} and {b.dtype}")

    def matrices(operand, labels, *groups):
        order = tuple(labels.index(label) for label in itertools.chain(*groups))
        shape = tuple(math.prod(sizes[label] for label in group) for group in groups)
        return mint.reshape(mint.permute(operand, order), shape)

    result = mint.bmm(matrices(a, of_a, batch, rows, both), matrices(b, of_b, batch, both, columns))
    return mint.reshape(result, tuple(sizes[label] for label in labels)), labels


def _along(operand, of_operand, labels):
    """The operand with a dimension for each label, of size 1 for those that it does not have."""
    order = tuple(of_operand.index(label) for label in labels if label in of_operand)
    shape = tuple(
        operand.shape[of_operand.index(label)] if label in of_operand else 1 for label in labels
    )
    return mint.reshape(mint.permute(operand, order), shape)

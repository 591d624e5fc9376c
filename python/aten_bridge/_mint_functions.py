"""Functions of MindSpore's mint that no kernel can mend on the CPU.

MindSpore 2.10 refuses them in PyNative mode before it asks for a kernel, refuses dtypes that
PyTorch has, or computes their gradient wrongly. The functions here take MindSpore's arguments,
have PyTorch's values, and are made of functions of mint that work, so their gradients follow.
`aten_bridge.mint.install` puts them in the places of MindSpore's.
"""

from __future__ import annotations

import inspect
import itertools
import math
import string
import sys
from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Tensor, mint, ops
from mindspore.common.api import _pynative_executor
from mindspore.graph._parse import standard_method
from mindspore.mint.nn import functional as F
from mindspore.nn.loss.loss import _check_cross_entropy_inputs
from mindspore.ops import tensor_method
from mindspore.ops.auto_generate import (
    IndexFillScalar,
    IndexFillTensor,
    LinalgVectorNorm,
    MaxPoolWithIndices,
    expand_dims_view_op,
    floor_mod_op,
    gen_ops_prim,
    select_ext_view_op,
    slice_ext_view_op,
    transpose_ext_view_op,
)
from mindspore.ops.functional import isconstant
from mindspore.ops.primitive import constexpr

# MindSpore's own, by the function that stands in for it, and the methods of tensors.
_REPLACED: list[tuple[Callable, Callable]] = []
_METHODS: dict[str, Callable] = {}
# Of operators, in PyNative mode, and of layers.
_WITHIN: list[tuple[type, str, Callable]] = []

_FLOATING = (ms.float16, ms.bfloat16, ms.float32, ms.float64)
_INTEGERS = (ms.int8, ms.int16, ms.int32, ms.int64, ms.uint8)


def _original(path: str) -> Any:
    found = mint
    for name in path.split("."):
        found = getattr(found, name)
    return found


def _is_known(*values: Any) -> bool:
    """Whether graph mode knows what they are: it learns that of members of objects when it runs.

    By then both sides of a branch by their dtypes are compiled, and the result may be wrong.
    """
    for value in values:  # noqa: SIM110  graph mode has no all()
        if not isconstant(isinstance(value, Tensor)):
            return False
    return True


def _named_as(original: Callable, function: Callable) -> Callable:
    """Not functools.wraps(): graph mode looks up names in the module that a function says."""
    for name in ("__name__", "__doc__"):
        if hasattr(original, name):
            setattr(function, name, getattr(original, name))
    return function


def _replaces(path: str, *dtypes: Any) -> Callable:
    """The function stands in for the one of mint; with dtypes, for first inputs of these only."""
    original = _original(path)

    def decorate(function: Callable) -> Callable:
        name = next(iter(inspect.signature(function).parameters))

        def choose(*arguments, **keywords):
            first = arguments[0] if arguments else keywords.get(name)
            if _is_known(first) and isinstance(first, Tensor) and first.dtype in dtypes:
                return function(*arguments, **keywords)
            return original(*arguments, **keywords)

        _REPLACED.append((original, _named_as(original, choose if dtypes else function)))
        return function

    return decorate


def _method(function: Callable) -> Callable:
    """The function stands in for the method of tensors of the same name."""
    _METHODS[function.__name__] = function
    return function


def install() -> None:
    """Puts the functions in the places of MindSpore's, wherever its modules refer to them."""
    standing_in = {id(original): function for original, function in _REPLACED}
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "mindspore" and module is not None:
            for attribute, value in list(vars(module).items()):
                if id(value) in standing_in:
                    setattr(module, attribute, standing_in[id(value)])
    for name, function in _METHODS.items():
        setattr(Tensor, name, function)
    for kind, name, function in _WITHIN:
        setattr(kind, name, function)


def _number(value: float, like: Tensor) -> Tensor:
    """MindSpore makes a Python number a float32, also beside a float64."""
    return Tensor(value, like.dtype)


def _reduced(loss: Tensor, reduction: str, batch: int = 1) -> Tensor:
    if reduction == "none":
        return loss
    if reduction == "batchmean":
        return mint.sum(loss) / batch
    if reduction not in ("mean", "sum"):
        raise ValueError(f"expected the reduction 'none', 'mean' or 'sum', got {reduction!r}")
    return mint.mean(loss) if reduction == "mean" else mint.sum(loss)


# ===--- pooling and convolutions ---===


@_replaces("nn.functional.max_pool2d")
def max_pool2d(
    input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False
):
    pool = MaxPoolWithIndices(kernel_size, stride, padding, dilation, ceil_mode)
    output, indices = pool(input)
    return (output, indices) if return_indices else output


def _convolution(original: Callable, ndim: int) -> Callable:
    def convolve(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
        if isinstance(padding, str):
            input, padding = _padded(input, weight, stride, padding, dilation, ndim)
        return original(input, weight, bias, stride, padding, dilation, groups)

    return convolve


def _padded(input, weight, stride, padding, dilation, ndim):
    """The input, and the padding in numbers: as a name it would get a gradient of zeros."""
    if padding not in ("same", "valid"):
        raise ValueError(f"conv{ndim}d: expected the padding 'same' or 'valid', got {padding!r}")
    if padding == "valid":
        return input, (0,) * ndim
    if any(step != 1 for step in _each(stride, ndim)):
        raise ValueError(f"conv{ndim}d: expected a stride of 1 with the padding 'same'")
    steps = _each(dilation, ndim)
    amounts = [steps[i] * (weight.shape[i + 2] - 1) for i in range(ndim)]
    # An odd one has its last element at the end; pad() counts from the last dimension.
    ends = []
    for amount in reversed(amounts):
        ends += [0, amount % 2]
    input = F.pad(input, ends) if sum(ends) else input
    return input, tuple([amount // 2 for amount in amounts])


def _each(value, count: int):
    values = (value,) if isinstance(value, int) else tuple(value)
    return values * count if len(values) == 1 else values


conv1d, conv2d, conv3d = (
    _convolution(_original(f"nn.functional.conv{ndim}d"), ndim) for ndim in (1, 2, 3)
)
for _ndim, _function in enumerate((conv1d, conv2d, conv3d), 1):
    _REPLACED.append((_original(f"nn.functional.conv{_ndim}d"), _function))
    # What the layers of mint.nn call.
    _REPLACED.append((getattr(gen_ops_prim, f"conv{_ndim}d_padding_op"), _function))


@_replaces("conv_tbc")
def conv_tbc(input, weight, bias, pad=0):
    image = mint.permute(input, (1, 2, 0))
    return mint.permute(
        conv1d(image, mint.permute(weight, (2, 1, 0)), bias, padding=pad), (2, 0, 1)
    )


_interpolate = F.interpolate


@_replaces("nn.functional.interpolate")
def interpolate(
    input,
    size=None,
    scale_factor=None,
    mode="nearest",
    align_corners=None,
    recompute_scale_factor=None,
):
    if mode == "area" and size is not None:
        pools = (F.adaptive_avg_pool1d, F.adaptive_avg_pool2d, F.adaptive_avg_pool3d)
        return pools[input.ndim - 3](input, size)
    # A whole number is refused as a scale.
    if isinstance(scale_factor, int):
        scale_factor = float(scale_factor)
    elif scale_factor is not None and not isinstance(scale_factor, float):
        scale_factor = tuple(float(scale) for scale in scale_factor)
    return _interpolate(input, size, scale_factor, mode, align_corners, recompute_scale_factor)


@_replaces("nn.functional.upsample")
def upsample(input, size=None, scale_factor=None, mode="nearest", align_corners=None):
    return interpolate(input, size, scale_factor, mode, align_corners)


# ===--- products ---===


@_replaces("vdot")
def vdot(input, other):
    return mint.dot(ops.conj(input) if input.is_complex() else input, other)


@_replaces("addr_")
def addr_(input, vec1, vec2, beta=1, alpha=1):
    product = mint.outer(vec1, vec2)
    product = product if alpha == 1 else product * alpha
    return input.copy_(product if beta == 0 else input * beta + product)


@_replaces("einsum")
def einsum(equation, *operands):
    if not isinstance(equation, str):
        equation, operands = _named((equation, *operands))
    elif len(operands) == 1 and isinstance(operands[0], (tuple, list)):
        operands = operands[0]
    terms, output = _labels(equation, [operand.ndim for operand in operands])
    result, labels = _diagonal(operands[0], terms[0])
    for i in range(1, len(terms)):
        operand, its_labels = _diagonal(operands[i], terms[i])
        kept = [*output, *itertools.chain(*terms[i + 1 :])]
        result, labels = _product(result, labels, operand, its_labels, kept)
    result, labels = _summed(result, labels, output)
    return mint.permute(result, tuple(labels.index(label) for label in output))


def _named(arguments):
    """The equation and the operands of operands that each have a list of numbers after them."""

    def name(numbers):
        return "".join("..." if n is Ellipsis else string.ascii_letters[n] for n in numbers)

    pairs = len(arguments) // 2
    equation = ",".join(name(arguments[2 * i + 1]) for i in range(pairs))
    if len(arguments) % 2:
        equation += "->" + name(arguments[-1])
    return equation, arguments[0 : 2 * pairs : 2]


def _labels(equation, ndims):
    """Of the operands' dimensions and of the output's; those of "..." count from the end."""
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
    """Of dimensions with the same label, their diagonal."""
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
    """Of two operands, as a product of batches of matrices; sums over the labels not kept."""
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
    if not both:  # of any two dtypes
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
    kept = [label for label in labels if label in of_operand]
    operand = mint.permute(operand, tuple(of_operand.index(label) for label in kept))
    sizes = dict(zip(kept, operand.shape, strict=True))
    return mint.reshape(operand, tuple(sizes.get(label, 1) for label in labels))


# ===--- results whose size depends on values ---===
#
# With kernels, PyNative mode may prepare the next operator before it knows the size. NumPy waits.


def _array(tensor: Tensor) -> np.ndarray:
    return (tensor.astype(ms.float32) if tensor.dtype == ms.bfloat16 else tensor).asnumpy()


_masked_select = mint.masked_select
_nonzero = mint.nonzero
_where = mint.where


@_replaces("unique")
@_method
def unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    values, inverse, counts = np.unique(
        _array(input), return_inverse=True, return_counts=True, axis=dim, equal_nan=False
    )
    inverse = inverse.reshape(input.shape if dim is None else -1)
    results = [
        Tensor(values, dtype=input.dtype),
        *([Tensor(inverse)] if return_inverse else []),
        *([Tensor(counts)] if return_counts else []),
    ]
    return tuple(results) if len(results) > 1 else results[0]


@_replaces("bincount")
@_method
def bincount(input, weights=None, minlength=0):
    counts = np.bincount(_array(input), None if weights is None else _array(weights), minlength)
    single = weights is not None and weights.dtype == ms.float32
    return Tensor(counts.astype(np.float32) if single else counts)


@_replaces("masked_select")
@_method
def masked_select(input, mask):
    if input.dtype == ms.bfloat16:
        return _masked_select(input.astype(ms.float32), mask).astype(ms.bfloat16)
    return _masked_select(input, mask)


def _without_large_masks(index):
    """Of a mask of several dimensions beside other parts MindSpore reads a wrong one."""
    if not isinstance(index, tuple):
        return index
    parts = []
    for part in index:
        if isinstance(part, Tensor) and part.dtype == ms.bool_ and part.ndim > 1:
            parts += nonzero(part, as_tuple=True)
        else:
            parts.append(part)
    return tuple(parts)


def _names_nothing(index):
    parts = index if isinstance(index, tuple) else (index,)
    return any(isinstance(part, Tensor) and part.numel() == 0 for part in parts)


def _is_view(index):
    """Whether what the index names is a view: MindSpore writes that in place."""
    parts = index if isinstance(index, tuple) else (index,)
    kinds = (int, slice, type(None), type(...))
    return all(isinstance(part, kinds) and not isinstance(part, bool) for part in parts)


def _has_no_bfloat16(index):
    """Whether MindSpore writes to such places in other dtypes only."""
    if not isinstance(index, tuple):
        return True
    return any(isinstance(part, slice) and part.step not in (None, 1) for part in index)


_getitem, _setitem = Tensor.__getitem__, Tensor.__setitem__


def _in_steps(self, index):
    """The tensor in the steps of the index, and what is left of that.

    MindSpore's gradient of most steps is refused: "input memory out of bounds".
    """
    parts = list(index) if isinstance(index, tuple) else [index]
    if not any(isinstance(part, slice) and part.step not in (None, 1) for part in parts):
        return self, index
    taken = [_dimensions(part) for part in parts]
    dim = 0
    for i, part in enumerate(parts):
        if isinstance(part, slice) and isinstance(part.step, int) and part.step > 1:
            begin, end, step = part.indices(self.shape[dim])
            self = slice_ext_view_op(self, dim, begin, max(begin, end), step)
            parts[i] = slice(None)
        dim += self.ndim - sum(taken) if part is Ellipsis else taken[i]
    return self, tuple(parts)


def _dimensions(part):
    """How many an index's part is for; those of "..." are what the others leave."""
    if part is None or part is Ellipsis or isinstance(part, bool):
        return 0
    return part.ndim if isinstance(part, Tensor) and part.dtype == ms.bool_ else 1


def _view(self, index):
    """What the index names, if views of MindSpore's can name it; else nothing."""
    if not _is_view(index):
        return None
    parts = index if isinstance(index, tuple) else (index,)
    rest = self.ndim - sum(map(_dimensions, parts))
    if rest < 0 or parts.count(Ellipsis) > 1:
        return None
    dim = 0
    for part in parts:
        if part is None:
            self = expand_dims_view_op(self, dim)
            dim += 1
        elif part is Ellipsis:
            dim += rest
        elif isinstance(part, int):
            if not -self.shape[dim] <= part < self.shape[dim]:
                return None
            self = select_ext_view_op(self, dim, part)
        else:
            begin, end, step = part.indices(self.shape[dim])
            if step < 1:
                return None
            self = slice_ext_view_op(self, dim, begin, max(begin, end), step)
            dim += 1
    return self


@_method
def __getitem__(self, index):
    index = _without_large_masks(index)
    if self.dtype == ms.bfloat16:  # of slices MindSpore has the gradient in other dtypes only
        view = _view(self, index)
        if view is self:  # x[...]
            return self
        if view is not None:
            view.parent_tensor_, view.index_of_parent_ = self, index  # as MindSpore does
            return view
    self, index = _in_steps(self, index)
    return _getitem(self, index)


def _set_bfloat16(self, index, value):
    """What MindSpore does with other dtypes: in place, but for what a gradient is taken of."""
    if isinstance(value, Tensor):
        value = value.astype(ms.float32)
    is_recorded = _pynative_executor.requires_grad()
    view = None if is_recorded else _view(self, index)
    if view is not None:
        wide = view.astype(ms.float32)
        _setitem(wide, ..., value)
        view.copy_(wide)
        return self
    wide = self.astype(ms.float32)
    _setitem(wide, index, value)
    written = wide.astype(ms.bfloat16)
    if not is_recorded:
        return self.copy_(written)
    self.assign_value(written)
    if self.parent_tensor_ is not None and _is_view(self.index_of_parent_):
        self.parent_tensor_[self.index_of_parent_] = self
    return self


@_method
def __setitem__(self, index, value):
    index = _without_large_masks(index)
    if self.numel() == 0 or _names_nothing(index):  # which MindSpore refuses
        return self
    value = _beside(value, self)
    if self.dtype == ms.bfloat16 and (_is_view(index) or _has_no_bfloat16(index)):
        return _set_bfloat16(self, index, value)
    if self.is_contiguous() or _is_view(index):
        return _setitem(self, index, value)
    whole = self.contiguous()  # MindSpore would write to a copy and forget it
    _setitem(whole, index, value)
    self.copy_(whole)
    return self


@_replaces("nonzero")
@_method
def nonzero(input, *, as_tuple=False):
    input = input.astype(ms.float32) if input.dtype == ms.bfloat16 else input
    if as_tuple:
        places = _nonzero(input if input.ndim else mint.reshape(input, (1,)))
        return tuple(places[:, i] for i in range(places.shape[1]))
    return _nonzero(input) if input.ndim else _nonzero(mint.reshape(input, (1,)))[:, :0]


@_replaces("where")
def where(condition, *arguments, **keywords):
    if len(arguments) == 2:
        input, other = arguments
        return _where(condition, _beside(input, other), _beside(other, input))
    if arguments or keywords:
        return _where(condition, *arguments, **keywords)
    return nonzero(condition, as_tuple=True)


_one_hot = F.one_hot


@_replaces("nn.functional.one_hot")
def one_hot(tensor, num_classes=-1):
    return _one_hot(tensor, int(mint.max(tensor)) + 1 if num_classes == -1 else num_classes)


# ===--- arguments that PyTorch takes, too ---===


def _of_0_dim(path: str) -> None:
    """The function along a dimension takes a tensor of none, too."""
    original = _original(path)

    def compute(input, dim):
        if input.ndim:
            return original(input, dim)
        results = original(mint.reshape(input, (1,)), dim)
        if isinstance(results, tuple):
            return tuple([mint.reshape(result, ()) for result in results])
        return mint.reshape(results, ())

    _REPLACED.append((original, _named_as(original, compute)))


for _name in ("cummax", "cummin"):
    _of_0_dim(_name)

_cumprod, _flip, _linspace = mint.cumprod, mint.flip, mint.linspace
_ones, _permute, _zeros = mint.ones, mint.permute, mint.zeros
_repeat_interleave, _searchsorted = mint.repeat_interleave, mint.searchsorted
_sort, _squeeze, _unfold = mint.sort, mint.squeeze, F.unfold


@_replaces("cumprod")
def cumprod(input, dim, dtype=None):
    if input.ndim:
        return _cumprod(input, dim, dtype=dtype)
    return mint.reshape(_cumprod(mint.reshape(input, (1,)), dim, dtype=dtype), ())


@_replaces("flip")
def flip(input, dims):
    dims = (dims,) if isinstance(dims, int) else dims
    return _flip(input, dims) if input.ndim and len(dims) else mint.clone(input)


@_replaces("linspace")
def linspace(start, end, steps, *, dtype=None):
    if steps == 0:
        return _zeros((0,), dtype=dtype or ms.float32)
    return _linspace(start, end, steps, dtype=dtype)


def _size(size):
    """In one tuple, or number by number."""
    return size[0] if len(size) == 1 else size


@_replaces("ones")
def ones(*size, dtype=None, **keywords):
    return _ones(_size(size), dtype=dtype) if size else _ones(dtype=dtype, **keywords)


@_replaces("zeros")
def zeros(*size, dtype=None, **keywords):
    return _zeros(_size(size), dtype=dtype) if size else _zeros(dtype=dtype, **keywords)


@_replaces("permute")
def permute(input, dims):
    return _permute(input, tuple(dims))


@_replaces("repeat_interleave")
def repeat_interleave(input, repeats=None, dim=None, *, output_size=None):
    if repeats is None:  # of each place as often as it says
        input, repeats = mint.arange(input.shape[0]), input
    return _repeat_interleave(input, repeats, dim, output_size=output_size)


@_replaces("searchsorted")
def searchsorted(sorted_sequence, values, *, out_int32=False, right=False, side=None, sorter=None):
    if not isinstance(values, Tensor):
        values = Tensor(values, sorted_sequence.dtype)
    return _searchsorted(
        sorted_sequence, values, out_int32=out_int32, right=right, side=side, sorter=sorter
    )


@_replaces("sort")
def sort(input, dim=-1, descending=False, stable=False):
    return _sort(input, dim=dim, descending=descending, stable=stable)


@_replaces("squeeze")
def squeeze(input, dim=None):
    if dim is None:
        dim = tuple([i for i in range(input.ndim) if input.shape[i] == 1])
    return _squeeze(input, dim)


@_replaces("nn.functional.unfold")
def unfold(input, kernel_size, dilation=1, padding=0, stride=1):
    if input.ndim == 4:
        return _unfold(input, kernel_size, dilation, padding, stride)
    return _unfold(input.unsqueeze(0), kernel_size, dilation, padding, stride)[0]


_cdist, _elu = mint.cdist, F.elu


@_replaces("cdist")
def cdist(x1, x2, p=2.0, compute_mode="use_mm_for_euclid_dist_if_necessary"):
    return _cdist(x1, x2, float(p), compute_mode)


@_replaces("nn.functional.elu")
def elu(input, alpha=1.0, inplace=False):
    return _elu(input, float(alpha), inplace)


# ===--- random numbers, losses ---===


@_method
def exponential_(self, lambd=1, *, generator=None):
    if self.dtype not in _FLOATING:
        raise TypeError(f"exponential_: expected floating-point numbers, got {self.dtype}")
    if lambd <= 0:
        raise ValueError(f"exponential_: expected lambd above 0, got {lambd}")
    uniform = mint.empty_like(self, dtype=self.dtype if self.dtype == ms.float64 else ms.float32)
    uniform.uniform_(generator=generator)
    return self.copy_(mint.log1p(-uniform) / -lambd)


@_replaces("nn.functional.dropout2d")
def dropout2d(input, p=0.5, training=True, inplace=False):
    if not training:
        return input
    shape = (*input.shape[:2], *[1] * (input.ndim - 2))
    kept = F.dropout(mint.ones(shape, dtype=input.dtype), p)
    return input.mul_(kept) if inplace else input * kept


def _dropout2d(input, p, training, inplace, seed, offset):
    """What the layer of mint.nn calls."""
    return dropout2d(input, p, training, inplace)


_REPLACED.append((gen_ops_prim.dropout2d_ext_op, _dropout2d))


@_replaces("nn.functional.cosine_embedding_loss")
def cosine_embedding_loss(input1, input2, target, margin=0.0, reduction="mean"):
    def squares(x):
        return mint.sum(x * x, -1) + 1e-12  # PyTorch's

    cosine = mint.sum(input1 * input2, -1) / mint.sqrt(squares(input1) * squares(input2))
    zeros = mint.zeros_like(cosine)
    loss = mint.where(target == 1, 1 - cosine, zeros)
    above = mint.clamp(cosine - _number(margin, cosine), 0)
    loss = loss + mint.where(target == -1, above, zeros)
    return _reduced(loss, reduction)


@_replaces("nn.functional.kl_div")  # MindSpore has no gradient of the target
def kl_div(input, target, reduction="mean", log_target=False):
    if log_target:
        loss = mint.exp(target) * (target - input)
    else:
        loss = mint.xlogy(target, target) - target * input
    return _reduced(loss, reduction, input.shape[0] if input.ndim else 1)


@_replaces("nn.functional.l1_loss", *_INTEGERS)
def l1_loss(input, target, reduction="mean"):
    return _reduced(mint.abs(input - target), reduction)


_layer_norm = F.layer_norm


@_replaces("nn.functional.layer_norm", ms.float64)  # MindSpore keeps mean and variance in float32
def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5):
    dim = tuple(range(-len(normalized_shape), 0))
    if not dim or tuple(input.shape[dim[0] :]) != tuple(normalized_shape):
        return _layer_norm(input, normalized_shape, weight, bias, eps)  # which says what is wrong
    variance, mean = _moments(input, dim, 0, True)
    output = (input - mean) * mint.rsqrt(variance + _number(eps, input))
    output = output if weight is None else output * weight
    return output if bias is None else output + bias


_layer_norm_of_ops = gen_ops_prim.LayerNorm.__call__


def layer_norm_of_ops(self, input_x, gamma, beta):
    """What mindspore.nn and ops normalise with. A kernel would not know the gradient's epsilon."""
    if input_x.dtype != ms.bfloat16:
        return _layer_norm_of_ops(self, input_x, gamma, beta)
    wide = [x.astype(ms.float32) for x in (input_x, gamma, beta)]
    output, mean, variance = _layer_norm_of_ops(self, *wide)
    return output.astype(ms.bfloat16), mean, variance


_WITHIN.append((gen_ops_prim.LayerNorm, "__call__", layer_norm_of_ops))


_cross_entropy, _check_of_layer = ops.cross_entropy, _check_cross_entropy_inputs


@constexpr
def check_of_layer(logits_shape, labels_shape, logits_ndim, labels_ndim, logits, labels, name=None):
    """What the layer of mindspore.nn refuses, but for bfloat16."""
    dtypes = [ms.float32 if dtype == ms.bfloat16 else dtype for dtype in (logits, labels)]
    return _check_of_layer(logits_shape, labels_shape, logits_ndim, labels_ndim, *dtypes, name)


_REPLACED.append((_check_of_layer, check_of_layer))


def cross_entropy_of_ops(
    input, target, weight=None, ignore_index=-100, reduction="mean", label_smoothing=0.0
):
    rest = weight, ignore_index, reduction, label_smoothing
    target = target.astype(ms.float32) if target.dtype == ms.bfloat16 else target
    if input.dtype != ms.bfloat16:
        return _cross_entropy(input, target, *rest)
    return _cross_entropy(input.astype(ms.float32), target, *rest).astype(ms.bfloat16)


_REPLACED.append((_cross_entropy, _named_as(_cross_entropy, cross_entropy_of_ops)))


_pad = F.pad


@_replaces("nn.functional.pad")  # MindSpore's gradient takes views for whole tensors
def pad_(input, pad, mode="constant", value=None):
    rest = input.ndim - len(pad) // 2
    if mode not in ("circular", "reflect", "replicate") or value or rest not in (1, 2):
        return _pad(input, pad, mode, value)
    for i in range(len(pad) // 2):
        input = _extended(input, input.ndim - 1 - i, pad[2 * i], pad[2 * i + 1], mode)
    return input


def _extended(input, dim, before, after, mode):
    """With so many elements more before the first and behind the last; fewer where negative."""
    input = mint.narrow(
        input, dim, max(-before, 0), input.shape[dim] + min(before, 0) + min(after, 0)
    )
    size = input.shape[dim]
    most = size - 1 if mode == "reflect" else size
    if mode != "replicate" and max(before, after) > most:
        raise ValueError(
            f"pad: expected at most {most} elements for mode {mode!r} in dimension {dim}, "
            f"got {max(before, after)}"
        )
    parts = [input]
    if before > 0:
        parts = [
            _beyond(input, dim, {"circular": size - before, "reflect": 1}, before, mode),
            input,
        ]
    if after > 0:
        begins = {"circular": 0, "reflect": size - 1 - after, "replicate": size - 1}
        parts.append(_beyond(input, dim, begins, after, mode))
    return mint.cat(parts, dim)


def _beyond(input, dim, begins, count, mode):
    begin = begins.get(mode, 0)
    if mode == "replicate":
        return mint.repeat_interleave(mint.narrow(input, dim, begin, 1), count, dim)
    part = mint.narrow(input, dim, begin, count)
    return mint.flip(part, (dim,)) if mode == "reflect" else part


@_replaces("nn.functional.binary_cross_entropy", ms.float64)
def binary_cross_entropy(input, target, weight=None, reduction="mean"):
    # Each logarithm at least -100, and the gradient's divisor at least 1e-12, as in PyTorch.
    of_one = mint.clamp(mint.log(input), -100)
    of_zero = mint.clamp(mint.log1p(-input), -100)
    loss = ops.stop_gradient((target - 1) * of_zero - target * of_one)
    slope = (input - target) / mint.clamp((1 - input) * input, _number(1e-12, input))
    loss = loss + ops.stop_gradient(slope) * (input - ops.stop_gradient(input))
    loss = loss + ops.stop_gradient(of_zero - of_one) * (target - ops.stop_gradient(target))
    return _reduced(loss if weight is None else loss * weight, reduction)


@_replaces("nn.functional.binary_cross_entropy_with_logits", ms.float64)
def binary_cross_entropy_with_logits(input, target, weight=None, reduction="mean", pos_weight=None):
    positive = 1 if pos_weight is None else (pos_weight - 1) * target + 1
    loss = (1 - target) * input - positive * logsigmoid(input)
    return _reduced(loss if weight is None else loss * weight, reduction)


# ===--- activations ---===


@_replaces("npu_gelu")
def npu_gelu(input, approximate="none"):
    return F.gelu(input, approximate=approximate)


@_replaces("nn.functional.hardshrink", ms.float64)
def hardshrink(input, lambd=0.5):
    lambd = _number(lambd, input)
    between = mint.logical_and(input >= -lambd, input <= lambd)
    return mint.where(between, mint.zeros_like(input), input)


@_replaces("nn.functional.softshrink", ms.float64)
def softshrink(input, lambd=0.5):
    lambd = _number(lambd, input)
    # Times 0 between: NaN stays NaN.
    below = mint.where(input < -lambd, input + lambd, input * 0)
    return mint.where(input > lambd, input - lambd, below)


def _log_1_plus_exp(input):
    return F.softplus(input, 1, 40)  # from 40 on the rest is less than float64 shows


@_replaces("nn.functional.logsigmoid", ms.float64)
def logsigmoid(input):
    return -_log_1_plus_exp(-input)


@_replaces("nn.functional.mish", ms.float64, ms.bfloat16)
def mish(input):
    if input.dtype == ms.bfloat16:
        return F.mish(input.astype(ms.float32)).astype(ms.bfloat16)
    return input * mint.tanh(_log_1_plus_exp(input))


@_replaces("nn.functional.selu", ms.float64)
def selu(input):
    below = mint.expm1(mint.clamp(input, max=0)) * _number(1.6732632423543772848, input)
    return mint.where(input > 0, input, below) * _number(1.0507009873554804934, input)


@_replaces("nn.functional.prelu", ms.float64, ms.bfloat16)
def prelu(input, weight):
    if weight.numel() > 1:
        weight = mint.reshape(weight, (-1, *[1] * (input.ndim - 2)))
    return mint.where(input > 0, input, weight * input)


# ===--- element by element ---===


def _beside(number: Any, tensor: Any) -> Any:
    """MindSpore makes a Python number a float32, also beside a float64."""
    is_lost = isinstance(number, float) and isinstance(tensor, Tensor)
    return _number(number, tensor) if is_lost and tensor.dtype == ms.float64 else number


_add, _div, _float_power, _fmod = mint.add, mint.div, mint.float_power, mint.fmod
_mul, _pow, _sub = mint.mul, mint.pow, mint.sub


def _times(other, alpha, input):
    """The second operand and the factor that is left to MindSpore."""
    factor = _beside(alpha, input)
    if not isinstance(factor, Tensor):
        return _beside(other, input), alpha
    return (other.astype(ms.float64) if isinstance(other, Tensor) else other) * factor, 1


def _is_short(number: Any) -> bool:
    """Whether float16 and bfloat16 have the number, as far as a graph can tell."""
    return -8 <= number <= 8 and number * 16 == number * 16 // 1


def _is_wide(number: Any, tensor: Any) -> bool:
    """Whether PyTorch's product is of float32 and the number, which MindSpore rounds first."""
    if not isinstance(number, (int, float)) or not isinstance(tensor, Tensor):
        return False
    return tensor.dtype in (ms.float16, ms.bfloat16) and not _is_short(number)


@_replaces("add")
def add(input, other, *, alpha=1):
    if not _is_known(input, other):  # nor with a keyword
        return _add(input, other) if alpha == 1 else _add(input, other * alpha)
    other, alpha = _times(other, alpha, input)
    return _add(_beside(input, other), other, alpha=alpha)


@_replaces("sub")
def sub(input, other, *, alpha=1):
    if not _is_known(input, other):  # nor with a keyword
        return _sub(input, other) if alpha == 1 else _sub(input, other * alpha)
    other, alpha = _times(other, alpha, input)
    return _sub(_beside(input, other), other, alpha=alpha)


_RANKS = {  # of two the larger counts, of two equal ones the next
    **{ms.bool_: 0, ms.uint8: 1, ms.int8: 1, ms.int16: 2, ms.int32: 3, ms.int64: 4},
    **{ms.float16: 5, ms.bfloat16: 5, ms.float32: 6, ms.float64: 7},
}
_NEXT = {1: ms.int16, 5: ms.float32}


def _kind(dtype):
    return 0 if dtype == ms.bool_ else 1 if dtype in _INTEGERS else 2


@constexpr  # graph mode does not read it
def _common(dtypes, ndims):
    """PyTorch's dtype of several: a tensor of no dimension counts for its kind of number alone."""
    tensors = sorted(zip(dtypes, ndims, strict=True), key=lambda tensor: tensor[1] == 0)
    dtype, most = tensors[0]
    for other, ndim in tensors[1:]:
        if other == dtype or (ndim == 0 < most and _kind(other) <= _kind(dtype)):
            continue
        if _RANKS[dtype] == _RANKS[other]:
            dtype = _NEXT[_RANKS[dtype]]
        elif _RANKS[dtype] < _RANKS[other]:
            dtype = other
    return dtype


def _promotes(path: str) -> Callable:
    """The function takes tensors of several dtypes, as PyTorch's does, in their common one."""
    original = _original(path)

    def decorate(function: Callable) -> Callable:
        def compute(*arguments, **keywords):
            if not _is_known(*arguments):
                return original(*arguments, **keywords)
            tensors = [x for x in arguments if isinstance(x, Tensor)]
            dtypes = [x.dtype for x in tensors]
            if not tensors or not dtypes.count(dtypes[0]) < len(dtypes):
                return function(*arguments, **keywords)
            dtype = _common(tuple(dtypes), tuple([x.ndim for x in tensors]))
            arguments = [
                x.astype(dtype) if isinstance(x, Tensor) and x.dtype != dtype else x
                for x in arguments
            ]
            return function(*arguments, **keywords)

        _REPLACED.append((original, _named_as(original, compute)))
        return function

    return decorate


_addcdiv, _addcmul, _gcd = mint.addcdiv, mint.addcmul, mint.gcd
_logaddexp, _logaddexp2 = mint.logaddexp, mint.logaddexp2
_mse_loss, _outer = F.mse_loss, mint.outer


@_promotes("addcmul")
def addcmul(input, tensor1, tensor2, *, value=1):
    if input.dtype != ms.float64:
        return _addcmul(input, tensor1, tensor2, value=value)
    return input + tensor1 * tensor2 * _number(value, input)


@_promotes("addcdiv")
def addcdiv(input, tensor1, tensor2, *, value=1):
    if input.dtype != ms.float64:
        return _addcdiv(input, tensor1, tensor2, value=value)
    return input + _number(value, input) * (tensor1 / tensor2)


@_promotes("gcd")
def gcd(input, other):
    if input.dtype in (ms.int8, ms.uint8):
        return _gcd(input.astype(ms.int16), other.astype(ms.int16)).astype(input.dtype)
    return _gcd(input, other)


@_promotes("logaddexp2")
def logaddexp2(input, other):
    return _logaddexp2(input, other)


@_promotes("nn.functional.mse_loss")
def mse_loss(input, target, reduction="mean"):
    return _mse_loss(input, target, reduction)


@_replaces("outer")  # of two dtypes MindSpore has no gradient
def outer(input, vec2):
    if input.dtype == vec2.dtype:
        return _outer(input, vec2)
    return mint.unsqueeze(input, 1) * vec2


@_replaces("mul")
def mul(input, other):
    if not _is_known(input, other):
        return _mul(input, other)
    if _is_complex(input) or _is_complex(other):
        return input * other
    if _is_wide(other, input):
        return _mul(input.astype(ms.float32), other).astype(input.dtype)
    if _is_wide(input, other):
        return _mul(input, other.astype(ms.float32)).astype(other.dtype)
    return _mul(_beside(input, other), _beside(other, input))


@_replaces("div")
def div(input, other, *, rounding_mode=None):
    if rounding_mode is None and not _is_known(input, other):
        return _div(input, other)
    if rounding_mode is None and (_is_complex(input) or _is_complex(other)):
        return input / other
    if _is_wide(other, input):
        wide = _div(input.astype(ms.float32), other, rounding_mode=rounding_mode)
        return wide.astype(input.dtype)
    return _div(_beside(input, other), _beside(other, input), rounding_mode=rounding_mode)


@_promotes("fmod")
def fmod(input, other):
    return _fmod(input, _beside(other, input))


_remainder = mint.remainder


@_replaces("remainder")  # MindSpore's is x - y * floor(x / y): NaN where y is infinite
def remainder(input, other):
    if not _is_known(input, other):
        return _remainder(input, other)
    dtypes = [x.dtype for x in (input, other) if isinstance(x, Tensor)]
    if ms.uint16 in dtypes or ms.uint32 in dtypes or ms.uint64 in dtypes:  # FloorMod refuses them
        return _remainder(input, other)
    return floor_mod_op(_beside(input, other), _beside(other, input))


@_replaces("pow")
def pow_(input, exponent):
    if not _is_known(input, exponent):
        return _pow(input, exponent)
    return _pow(_beside(input, exponent), _beside(exponent, input))


@_replaces("float_power")
def float_power(input, exponent):
    def wide(number):  # the result is one, too
        return Tensor(number, ms.float64) if isinstance(number, float) else number

    return _float_power(wide(input), wide(exponent))


def _is_complex(value: Any) -> bool:
    return isinstance(value, Tensor) and value.dtype in (ms.complex64, ms.complex128)


def _gradient_of(operand: Any, of_broadcast: Tensor) -> Tensor | None:
    """The operand's own, of that of what it is broadcast to."""
    if not isinstance(operand, Tensor):
        return None
    gradient = of_broadcast if _is_complex(operand) else ops.real(of_broadcast)
    dims = list(range(gradient.ndim - operand.ndim))
    for i in range(-operand.ndim, 0):
        if operand.shape[i] != gradient.shape[i]:
            dims.append(gradient.ndim + i)
    gradient = mint.sum(gradient, tuple(dims)) if dims else gradient
    return mint.reshape(gradient, operand.shape).astype(operand.dtype)


def _conjugate(value: Any) -> Any:
    return ops.conj(value) if _is_complex(value) else value


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


class _Product(_OfComplex):
    @staticmethod
    def gradients(gradient, input, other):
        return gradient * _conjugate(other), gradient * _conjugate(input)


class _Quotient(_OfComplex):
    @staticmethod
    def gradients(gradient, input, other):
        of_input = gradient / _conjugate(other)
        return of_input, -of_input * _conjugate(input / other)


class _ReverseQuotient(_OfComplex):
    @staticmethod
    def gradients(gradient, other, input):
        return _Quotient.gradients(gradient, input, other)[::-1]


def _exact_method(original: Callable) -> Callable:
    def compute(self, *arguments, **keywords):
        if arguments and (_is_complex(self) or _is_complex(arguments[0])):
            if kind is None or keywords or not _pynative_executor.requires_grad():
                return original(self, *arguments, **keywords)
            return kind.apply(original, self, *arguments)
        if arguments and isinstance(arguments[0], (int, float)):
            number, *rest = arguments
            if is_product and _is_wide(number, self):
                return original(self.astype(ms.float32), *arguments, **keywords).astype(self.dtype)
            arguments = (_beside(number, self), *rest)
        return original(self, *arguments, **keywords)

    name = original.__name__.strip("_")
    kind, is_product = _COMPLEX.get(name), name in _PRODUCTS
    return _named_as(original, compute)


_PRODUCTS = ("div", "mul", "rmul", "truediv")
_COMPLEX = {
    **{"mul": _Product, "rmul": _Product, "div": _Quotient, "truediv": _Quotient},
    "rtruediv": _ReverseQuotient,
}
for _name in (
    *("add", "eq", "ge", "gt", "le", "lt", "mul", "ne", "pow", "radd", "rmul"),
    *("rpow", "rsub", "rtruediv", "sub", "truediv"),
):
    _METHODS[f"__{_name}__"] = _exact_method(getattr(Tensor, f"__{_name}__"))
for _name in ("add", "div", "eq", "ge", "gt", "le", "lt", "mul", "ne", "pow", "sub"):
    _METHODS[_name] = _exact_method(getattr(Tensor, _name))


def _exact_comparison(name: str) -> None:
    original = _original(name)

    def compute(input, other):
        return original(input, _beside(other, input))

    _REPLACED.append((original, _named_as(original, compute)))


for _name in ("eq", "ge", "gt", "le", "lt", "ne"):
    _exact_comparison(_name)


def _exact_in_place(name: str) -> None:
    original, function = getattr(Tensor, name), getattr(mint, name.strip("_"))

    def compute(self, *arguments, **keywords):
        number = arguments[0] if arguments else None
        if name == "mul_" and (_is_complex(self) or _is_complex(number)):
            if _pynative_executor.requires_grad():
                return self.copy_(mint.clone(self) * number)
        elif name == "mul_" and _is_wide(number, self):
            computed = function(self.astype(ms.float32), *arguments, **keywords)
            return self.copy_(computed.astype(self.dtype))
        rest = arguments[1:]
        return original(self, *([_beside(number, self)] if arguments else []), *rest, **keywords)

    _METHODS[name] = _named_as(original, compute)


for _name in ("add_", "floor_divide_", "mul_", "remainder_", "sub_"):
    _exact_in_place(_name)


_div_in_place = Tensor.div_


@_method
def div_(self, other, *, rounding_mode=None):
    if rounding_mode is None and _is_complex(self) and _pynative_executor.requires_grad():
        return self.copy_(mint.clone(self) / other)
    if rounding_mode is None and not _is_wide(other, self):
        return _div_in_place(self, _beside(other, self))
    # With a mode MindSpore's does nothing.
    return self.copy_(mint.div(self, other, rounding_mode=rounding_mode))


def _complex_in_place(name: str, in_place: str) -> None:
    original = getattr(Tensor, name)

    def compute(self, other):
        if _is_complex(self) and _pynative_executor.requires_grad():
            return getattr(self, in_place)(other)
        return original(self, other)

    _METHODS[name] = _named_as(original, compute)


for _name, _in_place in (("__imul__", "mul_"), ("__itruediv__", "div_")):
    _complex_in_place(_name, _in_place)


_rtruediv = _METHODS["__rtruediv__"]


@_method
def __rtruediv__(self, other):
    if not _is_wide(other, self):
        return _rtruediv(self, other)
    return mint.mul(mint.reciprocal(self), other)  # as PyTorch rounds


@_method
def __mod__(self, other):
    return remainder(self, other)


@_method
def __rmod__(self, other):
    return remainder(other, self)


_METHODS["remainder"] = _METHODS["__mod__"]


def _complex_as_before(name: str) -> None:
    """PyTorch's operator has no gradient of complex numbers in MindSpore, whose own has one."""
    function, method = getattr(ops, name), getattr(Tensor, name)

    @_replaces(name, ms.complex64, ms.complex128)
    def compute(input):
        return function(input)

    def compute_method(self):
        return function(self) if _is_known(self) and _is_complex(self) else method(self)

    for path in (name, "arc" + name[1:]):
        _METHODS[path] = _named_as(getattr(Tensor, path), compute_method)


for _name in ("acos", "acosh", "asin", "asinh", "atan"):
    _complex_as_before(_name)


# ===--- numbers that are written ---===
#
# MindSpore makes them float32, also beside integers and float64; a tensor keeps them.


def _of_dtype(value: Any, dtype: Any) -> Any:
    is_kept = isinstance(value, (Tensor, bool))
    return value if is_kept or dtype not in _NOT_FLOAT32 else Tensor(value, dtype)


_NOT_FLOAT32 = (ms.float64, *_INTEGERS)
_fill_in_place, _full, _full_like = Tensor.fill_, mint.full, mint.full_like
_masked_fill, _masked_fill_in_place = Tensor.masked_fill, Tensor.masked_fill_
_clamp, _index_fill_in_place = mint.clamp, Tensor.index_fill_


@_replaces("full")
def full(size, fill_value, *, dtype=None):
    if isinstance(fill_value, Tensor) and fill_value.dtype == ms.bfloat16:
        fill_value = fill_value.astype(ms.float32)  # MindSpore has no number of a bfloat16
    if dtype != ms.float64 or isinstance(fill_value, Tensor):
        return _full(size, fill_value, dtype=dtype)
    return _full(size, 0, dtype=dtype).fill_(fill_value)


@_replaces("full_like")
def full_like(input, fill_value, *, dtype=None):
    if (dtype or input.dtype) != ms.float64 or isinstance(fill_value, Tensor):
        return _full_like(input, fill_value, dtype=dtype)
    return _full_like(input, 0, dtype=dtype).fill_(fill_value)


_full_of_ops = ops.full


def full_of_ops(size, fill_value, *, dtype=None):
    if dtype == ms.bfloat16:  # MindSpore's own kernel has none
        return full(size, fill_value, dtype=dtype)
    return _full_of_ops(size, fill_value, dtype=dtype)


_REPLACED.append((ops.full, _named_as(ops.full, full_of_ops)))


@_method
def fill_(self, value):
    return _fill_in_place(self, _of_dtype(value, self.dtype))


@_method
def masked_fill(self, mask, value):
    return _masked_fill(self, mask, _of_dtype(value, self.dtype))


@_method
def masked_fill_(self, mask, value):
    return _masked_fill_in_place(self, mask, _of_dtype(value, self.dtype))


def _bounds(input, min, max):
    """MindSpore wants both as tensors, or none."""
    for bound in (min, max):
        if input.dtype != ms.float64 or isinstance(bound, Tensor) or bound != bound:
            return min, max
    return tuple([bound if bound is None else Tensor(bound, input.dtype) for bound in (min, max)])


@_replaces("clamp")
@_method
def clamp(input, min=None, max=None):
    if not _is_known(input, min, max):
        return _clamp(input, min, max)
    min, max = _bounds(input, min, max)
    return _clamp(input, min, max)


# MindSpore's gradient of the gradient reads beyond its inputs, which may end the process.
@_replaces("nn.functional.threshold")
def threshold(input, threshold, value, inplace=False):
    value = _of_dtype(value, input.dtype)
    output = mint.where(input <= _beside(threshold, input), value, input).astype(input.dtype)
    return input.copy_(output) if inplace else output


@_replaces("nn.functional.threshold_")
def threshold_(input, threshold, value):
    return input.copy_(F.threshold(input, threshold, value))


@_method
def index_fill_(self, dim, index, value):
    return _index_fill_in_place(self, dim, index, _of_dtype(value, self.dtype))


def _of_integers(original: Callable) -> Callable:
    """Integers and truth values as float32, which PyTorch's results are."""

    def compute(input):
        is_whole = isinstance(input, Tensor) and input.dtype in (*_INTEGERS, ms.bool_)
        return original(input.astype(ms.float32) if is_whole else input)

    return _named_as(original, compute)


for _name in ("erf", "erfc", "exp", "expm1"):
    _REPLACED.append((_original(_name), _of_integers(_original(_name))))


@_replaces("square", ms.bool_)
def square(input):
    return mint.square(input.astype(ms.int64))


@_replaces("item", ms.bfloat16)
def item(input):
    return input.astype(ms.float32).item()


_real = mint.real
_xlogy = mint.xlogy


@_replaces("real")  # MindSpore's gradient of real numbers is complex
def real(input):
    return _real(input) if input.is_complex() else input


@_replaces("ceil", *_INTEGERS)
def ceil(input):
    return mint.clone(input)


@_replaces("xlogy")
def xlogy(input, other):
    def tensor(value, like):
        if isinstance(value, Tensor):
            return value
        return Tensor(value, like.dtype if like.dtype in _FLOATING else ms.float32)

    return _xlogy(tensor(input, other), tensor(other, input))


@_promotes("logaddexp")
def logaddexp(input, other):
    if input.dtype != ms.float64:
        return _logaddexp(input, other)
    larger = mint.maximum(input, other)
    rest = mint.log1p(mint.exp(-mint.abs(input - other)))
    equal = mint.logical_and(mint.isinf(input), input == other)  # whose difference is NaN
    return mint.where(equal, input, larger + rest)


@_replaces("lerp", ms.float16, ms.bfloat16, ms.float64)
def lerp(input, end, weight):
    if input.dtype != ms.float64:  # MindSpore's gradient of these is a float32
        wide = [x.astype(ms.float32) if isinstance(x, Tensor) else x for x in (input, end, weight)]
        return mint.lerp(*wide).astype(input.dtype)
    # From the nearer end, as PyTorch rounds.
    weight = weight if isinstance(weight, Tensor) else _number(weight, input)
    way = end - input
    return mint.where(weight < 0.5, input + weight * way, end - way * (1 - weight))


@_replaces("nan_to_num", ms.float64)
def nan_to_num(input, nan=None, posinf=None, neginf=None):
    largest = float(np.finfo(np.float64).max)
    for places, value in (
        (mint.isnan(input), 0.0 if nan is None else nan),
        (input == math.inf, largest if posinf is None else posinf),
        (input == -math.inf, -largest if neginf is None else neginf),
    ):
        input = mint.where(places, _number(value, input), input)
    return input


# ===--- reductions ---===

_any = mint.any
_cumsum = mint.cumsum


@_replaces("any")
def any_(input, dim=None, keepdim=False):
    if not isinstance(dim, (tuple, list)):
        return _any(input) if dim is None else _any(input, dim, keepdim)
    for i in dim:
        if not -input.ndim <= i < input.ndim:
            raise IndexError(
                f"any: expected dimensions from {-input.ndim} to {input.ndim - 1}, got {i}"
            )
    input = input.astype(ms.bool_)
    for i in range(input.ndim - 1, -1, -1):
        if i in dim or i - input.ndim in dim:
            input = _any(input, i, keepdim)
    return input


@_replaces("cumsum")  # MindSpore's gradient has the dtype of the result
def cumsum(input, dim, dtype=None):
    if dtype is None and input.dtype in (*_INTEGERS, ms.bool_):
        dtype = ms.int64
    return _cumsum(input if dtype is None else input.astype(dtype), dim)


@_replaces("logsumexp", ms.float64)
def logsumexp(input, dim, keepdim=False):
    largest = ops.stop_gradient(mint.amax(input, dim, True))
    largest = mint.where(mint.isinf(largest), mint.zeros_like(largest), largest)
    total = mint.log(mint.sum(mint.exp(input - largest), dim, True)) + largest
    return total if keepdim else mint.sum(total, dim)


def _moments(input, dim, correction, keepdim):
    """The variance and the mean."""
    dim = tuple(range(input.ndim)) if dim is None or dim == () else dim
    mean = mint.mean(input, dim, True)
    rest = input - mean
    count = input.numel() // max(mean.numel(), 1)
    divisor = max(count - correction, 0)
    variance = mint.sum(rest * rest, dim, keepdim) / float(divisor)
    return variance, mean if keepdim else mint.reshape(mean, variance.shape)


def var(input, dim=None, *, correction=1, keepdim=False):
    return _moments(input, dim, correction, keepdim)[0]


def _root(variance):
    """With a gradient of 0 where all values are equal."""
    is_zero = variance == 0
    root = mint.sqrt(mint.where(is_zero, mint.ones_like(variance), variance))
    return mint.where(is_zero, mint.zeros_like(variance), root)


def std(input, dim=None, *, correction=1, keepdim=False):
    return _root(var(input, dim, correction=correction, keepdim=keepdim))


def var_mean(input, dim=None, *, correction=1, keepdim=False):
    return _moments(input, dim, correction, keepdim)


def std_mean(input, dim=None, *, correction=1, keepdim=False):
    variance, mean = _moments(input, dim, correction, keepdim)
    return _root(variance), mean


def _unbiased(of_float64: Callable) -> None:
    """The function takes PyTorch's `unbiased` too, in the second place or the third."""
    original = _original(of_float64.__name__)

    def compute(input, dim=None, unbiased=None, keepdim=False, *, correction=1):
        if isinstance(dim, bool):
            unbiased = dim
            dim = None
        if unbiased is not None:
            correction = 1 if unbiased else 0
        if input.dtype == ms.float64:
            return of_float64(input, dim, correction=correction, keepdim=keepdim)
        return original(input, dim, correction=correction, keepdim=keepdim)

    _REPLACED.append((original, _named_as(original, compute)))


for _function in (std, std_mean, var, var_mean):
    _unbiased(_function)


@_replaces("diff", ms.float64, ms.int16)
def diff(input, n=1, dim=-1, prepend=None, append=None):
    parts = [part for part in (prepend, input, append) if part is not None]
    input = mint.cat(parts, dim) if len(parts) > 1 else input
    for _ in range(min(n, input.shape[dim])):
        length = input.shape[dim] - 1
        input = mint.narrow(input, dim, 1, length) - mint.narrow(input, dim, 0, length)
    return input


def _of_float64(name: str, function: Callable) -> None:
    """The method takes float64 too, as the function does; MindSpore's own keywords are its own."""
    original = getattr(Tensor, name)

    def compute(self, *arguments, **keywords):
        own = {"axis", "ddof", "keepdims"}.intersection(keywords) or len(arguments) > 1
        takes = original if own or self.dtype != ms.float64 else function
        return takes(self, *arguments, **keywords)

    _METHODS[name] = _named_as(original, compute)


for _name, _function in (("logsumexp", logsumexp), ("std", std), ("var", var)):
    _of_float64(_name, _function)


@_replaces("linalg.vector_norm")  # MindSpore asks for an operator of its own unless 0, 1, 2 or 3
def vector_norm(x, ord=2, dim=None, keepdim=False, *, dtype=None):
    dim = (dim,) if isinstance(dim, int) else dim
    return LinalgVectorNorm()(x, float(ord), dim, keepdim, dtype)


def _by_dim(name: str) -> None:
    """The method takes PyTorch's keywords too, as the function does."""
    original, function = getattr(Tensor, name), _original(name)

    def compute(self, *arguments, **keywords):
        takes = function if "dim" in keywords or "keepdim" in keywords else original
        return takes(self, *arguments, **keywords)

    _METHODS[name] = _named_as(original, compute)


for _name in ("amax", "amin"):
    _by_dim(_name)


@_method
def index_fill(self, dim=None, index=None, value=None, *, axis=None):
    dim = axis if dim is None else dim
    value = _of_dtype(value, self.dtype)
    fill = IndexFillTensor() if isinstance(value, Tensor) else IndexFillScalar()
    return fill(self, dim, index, value)


# ===--- matrices ---===


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

    _METHODS[name] = _named_as(original, compute)


for _name in ("dot", "outer"):
    _of_other_ranks(_name, 1)
_of_other_ranks("addbmm", 3, base=2)
_of_other_ranks("baddbmm", 3, base=3)


def _plus(input, product, beta, alpha):
    product = product if alpha == 1 else product * _number(alpha, product)
    return product if beta == 0 else product + input * _number(beta, input)


@_replaces("addmm", ms.float64, *_INTEGERS)
def addmm(input, mat1, mat2, *, beta=1, alpha=1):
    return _plus(input, mint.mm(mat1, mat2), beta, alpha)


@_replaces("addmv", ms.bfloat16)
def addmv(input, mat, vec, *, beta=1, alpha=1):
    return _plus(input, mint.mv(mat, vec), beta, alpha)


@_replaces("linalg.inv", ms.float64)
def inv(input):
    return ops.inverse(input)


@_replaces("linalg.qr", ms.float64)
def qr(A, mode="reduced"):
    return ops.qr(A, mode)


# ===--- parts of tensors ---===


_split = Tensor.split


@_method
def split(self, *arguments, **keywords):
    """Of an empty dimension there is one part, of which PyTorch's operator makes none here."""
    if 0 not in self.shape:
        return _split(self, *arguments, **keywords)
    names = {"split_size": "split_size_or_sections", "dim": "axis"}
    return ops.split(
        self, *arguments, **{names.get(name, name): keywords[name] for name in keywords}
    )


# ===--- methods of tensors in graph mode ---===
#
# What MindSpore's compiler takes for them, where that is not what they do in PyNative mode.

_expand = standard_method.expand
_transpose = tensor_method.deprecated_tensor_transpose


def expand(input, size, *sizes):
    """To numbers, too: MindSpore's takes a tensor of them only."""
    if isinstance(size, Tensor):
        return _expand(input, size)
    if isinstance(size, int):
        return ops.broadcast_to(input, (size, *sizes) if sizes else (size,))
    return ops.broadcast_to(input, tuple(size))


def transpose(input, *axes):
    """Two numbers are the dimensions to swap: MindSpore takes them for the order of all."""
    if axes and len(axes) == 2 and isinstance(axes[0], int) and isinstance(axes[1], int):
        return transpose_ext_view_op(input, axes[0], axes[1])
    return _transpose(input, *axes) if axes else _transpose(input)  # a graph has None for ()


_REPLACED += [(_expand, expand), (_transpose, transpose)]

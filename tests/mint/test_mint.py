"""The API mint with the library against PyTorch: values, gradients, in-place methods."""

import copy
import inspect
import itertools
import os
import re
import subprocess
import sys
from pathlib import Path

import mindspore as ms
import numpy as np
import pytest
import survey
import torch
from cases import EXACT, IN_PLACE, VOLUME, X, Y
from mindspore import mint
from mindspore.ops.auto_generate import gen_ops_prim
from pages import not_printed
from survey import convert, functions

from aten_bridge._introspection import describe_library
from aten_bridge._library import open_library
from aten_bridge.mindspore import module
from aten_bridge.mint import HEADER, InterfaceError, check_interface

LIBRARY = os.environ["MS_OP_PLUGIN_PATH"]
OPERATORS = "plugin/operators/aten_bridge_operators.so"  # in the build folder


def name_of(case):
    function, arguments, keywords = case[-3:]
    shapes = [str(list(a.shape)) if isinstance(a, np.ndarray) else repr(a)[:20] for a in arguments]
    return f"{function}({', '.join([*shapes, *(f'{k}={v}' for k, v in keywords.items())])})"


def assert_equal(result, expected, tolerance=0.0):
    """The same values, shapes and dtypes; several in the same order."""
    if isinstance(expected, torch.Tensor):
        result, expected = result.asnumpy(), expected.detach().numpy()
        assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
        np.testing.assert_allclose(result, expected, rtol=tolerance, atol=tolerance)
        return
    assert len(result) == len(expected)
    for one, expected_one in zip(result, expected, strict=True):
        assert_equal(one, expected_one, tolerance)


class Net(ms.nn.Cell):
    def __init__(self, function, keywords):
        super().__init__()
        self.function = function
        self.keywords = keywords

    def construct(self, *inputs):
        return self.function(*inputs, **self.keywords)


# ===--- values ---===


@pytest.mark.parametrize("case", EXACT, ids=name_of)
def test_values_are_pytorchs_to_the_last_bit(case):
    module, function, arguments, keywords = case
    of_mint, of_torch = functions(f"{module}.{function}".lstrip("."))
    assert_equal(
        of_mint(*convert(arguments, ms.Tensor), **convert(keywords, ms.Tensor)),
        of_torch(*convert(arguments, torch.tensor), **convert(keywords, torch.tensor)),
    )


@pytest.mark.full
def test_the_table_of_the_docs_is_true():
    """Each function, dtype, view, gradient and graph: see survey.py."""
    assert survey.differences(survey.survey(LIBRARY)) == []


PARTS = ("transposed", "rows", "columns", "element")
UNARY = ("acos", "exp2", "sinc", "tanh", "cumsum", "mean", "sort")


@pytest.mark.parametrize(
    ("part", "function"),
    [*itertools.product(PARTS, UNARY), *((part, "mm") for part in PARTS if part != "element")],
)
def test_views_are_read_as_they_lie_in_memory(function, part):
    of_mint, of_torch = functions(function)
    x = np.tanh(np.arange(24).reshape(4, 6) / 7).astype(np.float32)

    def view(tensor):
        if part == "transposed":
            return tensor.permute(1, 0)
        places = {"rows": slice(1, 3), "columns": (slice(None), slice(1, None, 2)), "element": 2}
        return tensor[places[part]]

    a, b = view(ms.Tensor(x)), view(torch.tensor(x))
    if function == "mm":
        assert_equal(of_mint(a, mint.transpose(a, 0, 1)), of_torch(b, b.t()), tolerance=2e-6)
    else:
        more = (0,) if function == "cumsum" else ()
        # PyTorch 2.11's own exp2 of strided values differs by a bit from that of others (AVX2).
        tolerance = 2e-7 if function == "exp2" else 0
        assert_equal(of_mint(a, *more), of_torch(b, *more), tolerance=tolerance)


def added(x, *indices):
    x[indices] += 1
    return x


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64"])
@pytest.mark.parametrize("part", ["whole", "transposed", "rows"])
@pytest.mark.parametrize(
    "function",
    [
        lambda x, t: x[t([1, 0, -1])],
        lambda x, t: x[t([[1, 0], [2, 1]])],
        lambda x, t: x[1:, t([1, 0])],
        lambda x, t: x[..., t([1, 0])],
        lambda x, t: x[t([1, 0]), t([0, 1])],
        lambda x, t: added(x * 1, t([0, 2])),
        lambda x, t: added(x * 1, t([1, 0]), t([0, 1])),
        lambda x, t: (x * 1).index_put_((t([1, 0]),), x[:2]),
        lambda x, t: (x * 1).index_put_((t([1, 1]), t([0, 0])), x[0, :2], accumulate=True),
    ],
)
def test_tensors_as_indices(function, part, dtype):
    array = np.arange(120).reshape(4, 5, 6)
    a = ms.Tensor(array).astype(getattr(ms, dtype))
    b = torch.tensor(array).to(getattr(torch, dtype))
    if part == "transposed":
        a, b = a.permute(2, 0, 1), b.permute(2, 0, 1)
    elif part == "rows":
        a, b = a[1:], b[1:]
    result, expected = function(a, ms.Tensor), function(b, torch.tensor)
    assert str(result.dtype).lower() == str(expected.dtype).removeprefix("torch.")
    assert_equal(result.astype(ms.float32), expected.float())


def test_gather_with_dimensions_that_belong_together():
    x, index = np.arange(120).reshape(3, 8, 5), np.array([[1, 0], [2, 1], [0, 3]])
    of_rows = np.stack([rows[places] for rows, places in zip(x, index, strict=True)])
    of_columns = np.stack([rows[:, places] for rows, places in zip(x, index, strict=True)])
    for dim, expected in ((1, of_rows), (2, of_columns), (-1, of_columns)):
        result = ms.ops.gather(ms.Tensor(x), ms.Tensor(index), dim, 1)
        np.testing.assert_array_equal(result.asnumpy(), expected)


def test_cumulative_sums_without_the_element_and_from_the_end():
    x = ms.Tensor([1.0, 2.0, 3.0])
    for exclusive, reverse, expected in (
        (False, False, [1, 3, 6]),
        (True, False, [0, 1, 3]),
        (False, True, [6, 5, 3]),
        (True, True, [5, 3, 0]),
    ):
        assert ms.ops.CumSum(exclusive, reverse)(x, 0).asnumpy().tolist() == expected


@pytest.mark.parametrize("reduce", ["add", "multiply"])
@pytest.mark.parametrize("source", [2.5, Y])
def test_what_is_scattered_is_added_or_multiplied(reduce, source):
    def scattered(tensor):
        values = source if isinstance(source, float) else tensor(source)
        places = tensor(np.array([[0, 2, 1, 0], [1, 0, 2, 0]]))
        return tensor(X.copy()).scatter_(0, places, values, reduce=reduce)

    assert_equal(scattered(ms.Tensor), scattered(torch.tensor), tolerance=1e-6)


def put(x):
    """Writes where a mask says."""
    x[x > 5] = 0.5
    return x


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (x + x * 2 - 1) // 2 % 3,
        lambda x: -x / 3 + abs(x) ** 2,
        lambda x: (x > 5) & (x != 7) | (x <= 2),
        lambda x: x.sum(1),
        lambda x: x.astype(ms.int32) if isinstance(x, ms.Tensor) else x.int(),
        lambda x: put(x.copy() if isinstance(x, ms.Tensor) else x.clone()),
        lambda x: x[x > 5],
        lambda x: x[[0, 1]],
    ],
    ids=["arithmetic", "more", "compare", "sum", "cast", "masked write", "mask", "list"],
)
@pytest.mark.parametrize("part", ["transposed", "rows"])
def test_no_operator_takes_a_view_for_a_whole_tensor(function, part):
    """As MindSpore's own kernels do once a library is loaded, whichever it is."""
    x = np.arange(24).reshape(4, 6).astype(np.float32)
    a, b = ms.Tensor(x), torch.tensor(x)
    a, b = (a.permute(1, 0), b.permute(1, 0)) if part == "transposed" else (a[2:], b[2:])
    assert_equal(function(a), function(b))


@pytest.mark.parametrize(
    ("function", "dtype"),
    [
        (function, dtype)
        for function in ("acos", "mean", "sort", "maximum", "stack")
        for dtype in ("float16", "bfloat16", "float64", "int32")
        if (function, dtype) != ("mean", "int32")  # which PyTorch refuses
    ],
)
def test_dtypes(function, dtype):
    of_mint, of_torch = functions(function)
    a = ms.Tensor(np.tanh(X)).astype(getattr(ms, dtype))
    b = torch.tensor(np.tanh(X)).to(getattr(torch, dtype))
    more = {"maximum": 2, "stack": 2}.get(function, 1)
    if function == "stack":
        result, expected = of_mint([a, a]), of_torch([b, b])
    else:
        result, expected = of_mint(*[a] * more), of_torch(*[b] * more)
    if not isinstance(expected, torch.Tensor):
        result, expected = result[0], expected[0]
    assert str(result.dtype).lower() == str(expected.dtype).removeprefix("torch.")
    np.testing.assert_array_equal(
        result.astype(ms.float32).asnumpy(), expected.to(torch.float32).numpy()
    )


def test_empty_and_0_dim_tensors():
    for shape in ((0,), (0, 3), ()):
        x = np.zeros(shape, np.float32)
        assert_equal(mint.acos(ms.Tensor(x)), torch.acos(torch.tensor(x)))
        assert_equal(mint.std(ms.Tensor(x)), torch.std(torch.tensor(x)))


# ===--- what mint does not have, and programs call ---===


B, HEADS, ROWS, COLUMNS, SIZE = 2, 4, 6, 8, 16
WHOLE = ms.Tensor(np.triu(np.ones((2048, 2048), bool), 1))  # which some modes want
# How far each key is behind the query.
BEHIND = np.arange(COLUMNS) - np.arange(ROWS)[:, None]


def normal(*shape, seed=3):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def attention(q, k, v, shift=None, hidden=None, kept=None):
    """In the layout BNSD."""
    k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
    scores = (q @ k.mT if shift is None else q @ k.mT + shift) * 0.25
    if hidden is not None:
        scores = scores.masked_fill(torch.tensor(hidden), -torch.inf)
    p = scores.softmax(-1)
    return (p if kept is None else p * torch.tensor(kept) / 0.75) @ v


LAYOUTS = {
    "BNSD": lambda x: x,
    "BSND": lambda x: x.transpose(1, 2),
    "BSH": lambda x: x.transpose(1, 2).flatten(2),
    "SBH": lambda x: x.permute(2, 0, 1, 3).flatten(2),
}
SHIFT = normal(1, HEADS, ROWS, COLUMNS)
HIDDEN = normal(B, 1, ROWS, COLUMNS) > 1
KEPT = normal(B, HEADS, ROWS, COLUMNS) > -0.5
KEPT_BITS = np.packbits(KEPT.ravel(), bitorder="little").reshape(B, HEADS, ROWS, COLUMNS // 8)
ATTENTIONS = {
    "plain": ({}, {}),
    "shift": ({}, {"shift": SHIFT}),
    "mask": ({"attn_mask": ms.Tensor(HIDDEN)}, {"hidden": HIDDEN}),
    "bytes": (
        {"attn_mask": ms.Tensor(HIDDEN[0, 0].astype(np.uint8))},
        {"hidden": HIDDEN[0, 0]},
    ),
    "dropout": ({"drop_mask": ms.Tensor(KEPT_BITS), "keep_prob": 0.75}, {"kept": KEPT}),
    "band": (
        {
            "attn_mask": ms.Tensor(np.zeros((ROWS, COLUMNS), bool)),
            "pre_tokens": 2,
            "next_tokens": 1,
        },
        {"hidden": (BEHIND > 1) | (BEHIND < -2)},
    ),
    "upper left": ({"attn_mask": WHOLE, "sparse_mode": 2}, {"hidden": BEHIND > 0}),
    "lower right": ({"attn_mask": WHOLE, "sparse_mode": 3}, {"hidden": BEHIND > COLUMNS - ROWS}),
}


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", ATTENTIONS)
def test_attention_and_its_gradients(kind, layout, dtype):
    keywords, expectations = ATTENTIONS[kind]
    arrays = [
        normal(B, heads, size, SIZE, seed=heads + size)
        for heads, size in ((HEADS, ROWS), (2, COLUMNS), (2, COLUMNS))
    ]
    tensors = [torch.tensor(a).to(getattr(torch, dtype)).float() for a in arrays]
    arranged = LAYOUTS[layout]
    ours = [ms.Tensor(arranged(x).contiguous().numpy()) for x in tensors]
    if kind == "shift":
        tensors.append(torch.tensor(SHIFT).to(getattr(torch, dtype)).float())
        ours.append(ms.Tensor(SHIFT))
    ours = [x.astype(getattr(ms, dtype)) for x in ours]
    tensors = [x.requires_grad_() for x in tensors]
    expectations = {k: v for k, v in expectations.items() if k != "shift"}
    expected = arranged(attention(*tensors, **expectations))
    (expected**2).sum().backward()

    def forward(query, key, value, shift=None):
        return ms.ops.flash_attention_score(
            *(query, key, value, HEADS, shift),
            scalar_value=0.25,
            input_layout=layout,
            **keywords,
        )

    tolerance = {"float32": 2e-6, "float16": 5e-3, "bfloat16": 4e-2}[dtype]
    result = forward(*ours)
    assert str(result.dtype).lower() == dtype
    assert_equal(result.astype(ms.float32), expected, tolerance)
    gradients = ms.grad(
        lambda *inputs: (forward(*inputs).astype(ms.float32) ** 2).sum(), tuple(range(len(ours)))
    )(*ours)
    for i, gradient in enumerate(gradients):
        other = tensors[i].grad if i == 3 else arranged(tensors[i].grad)
        assert_equal(gradient.astype(ms.float32), other, 10 * tolerance)


def test_attention_of_packed_sequences():
    q, k, v = (normal(size, heads, SIZE) for size, heads in ((10, HEADS), (12, 2), (12, 2)))
    parts = ((slice(0, 4), slice(0, 5)), (slice(4, 10), slice(5, 12)))
    expected = torch.cat(
        [
            attention(
                *(torch.tensor(x[rows]).transpose(0, 1)[None] for x in (q,)),
                *(torch.tensor(x[columns]).transpose(0, 1)[None] for x in (k, v)),
            )[0].transpose(0, 1)
            for rows, columns in parts
        ]
    )
    inputs = [ms.Tensor(x) for x in (q, k, v)]
    of_ten = {"scalar_value": 0.25, "input_layout": "TND"}
    of_ten |= {"actual_seq_qlen": (4, 10), "actual_seq_kvlen": (5, 12)}
    result = ms.ops.flash_attention_score(*inputs, HEADS, **of_ten)
    assert_equal(result, expected, 2e-6)
    # Rows behind the last sequence are zeros.
    of_four = {**of_ten, "actual_seq_qlen": (4,), "actual_seq_kvlen": (5,)}
    result = ms.ops.flash_attention_score(*inputs, HEADS, **of_four)
    assert_equal(result[:4], expected[:4], 2e-6)
    assert not result[4:].asnumpy().any()
    gradients = ms.grad(
        lambda *x: ms.ops.flash_attention_score(*x, HEADS, **of_four)[:4].sum(), (0, 1, 2)
    )(*inputs)
    for gradient, rows in zip(gradients, (4, 5, 5), strict=True):
        assert gradient[:rows].asnumpy().any()
        assert not gradient[rows:].asnumpy().any()


def test_what_mindspore_takes_at_the_edges(mode):
    five, rows = ms.Tensor([1.0, 2, 3, 4, 5]), ms.Tensor([[1.0, 2], [3, 4]])
    assert ms.ops.strided_slice(five, (-10,), (-20,), (-1,)).shape == (0,)
    gathered = ms.ops.gather(rows, ms.Tensor([[1], [0]], ms.int32), 1, -1)
    assert gathered.asnumpy().tolist() == [[2], [3]]
    empty = ms.Tensor(np.zeros((3, 0), np.float32))
    assert ms.ops.CumProd(exclusive=True)(empty, 1).shape == (3, 0)


@pytest.mark.parametrize("scales", [False, True])
def test_the_gradient_of_an_embedding_by_negative_indices(scales):
    weight = ms.Tensor(np.ones((4, 2), np.float32))

    def total(weight, indices):
        embedded = mint.nn.functional.embedding(indices, weight, scale_grad_by_freq=scales)
        return (embedded * ms.Tensor([[1.0], [2], [3]])).sum()

    by_sign = [ms.grad(total)(weight, ms.Tensor(i, ms.int64)) for i in ([-1, 0, -1], [3, 0, 3])]
    assert by_sign[0].asnumpy().tolist() == by_sign[1].asnumpy().tolist()
    assert by_sign[0][3, 0] == (2 if scales else 4)


def test_a_query_that_sees_no_key_gets_zeros():
    x = ms.Tensor(normal(1, 2, 4, 8))
    mask = ms.Tensor(np.ones((4, 4), bool))
    result = ms.ops.flash_attention_score(x, x, x, 2, attn_mask=mask, input_layout="BNSD")
    assert result.asnumpy().tolist() == np.zeros((1, 2, 4, 8)).tolist()


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("ndim", [1, 2])
def test_rms_norm_and_its_gradients(dtype, ndim):
    arrays = normal(3, 4, 6), normal(*(4, 6)[-ndim:])
    ours = [ms.Tensor(a).astype(getattr(ms, dtype)) for a in arrays]
    theirs = [torch.tensor(a).to(getattr(torch, dtype)).float().requires_grad_() for a in arrays]
    expected = torch.nn.functional.rms_norm(theirs[0], theirs[1].shape, theirs[1], 1e-6)
    (expected**2).sum().backward()
    result, scale = ms.ops.rms_norm(*ours)
    assert str(result.dtype).lower() == dtype
    assert scale.shape == (3, *(4, 1)[:1] * (2 - ndim), *(1,) * ndim)
    tolerance = {"float32": 2e-6, "float16": 2e-3, "bfloat16": 2e-2}[dtype]
    assert_equal(result.astype(ms.float32), expected, tolerance)
    gradients = ms.grad(
        lambda x, weight: (ms.ops.rms_norm(x, weight)[0].astype(ms.float32) ** 2).sum(), (0, 1)
    )(*ours)
    for gradient, tensor in zip(gradients, theirs, strict=True):
        assert_equal(gradient.astype(ms.float32), tensor.grad, 10 * tolerance)


@pytest.mark.parametrize("eps", [0.3, None])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_gradient_of_logit(mode, dtype, eps):
    """MindSpore 2.10's own gives zeros or ends the process when it is called again and again."""
    x = np.random.default_rng(0).uniform(0.1, 0.9, (4, 6)).astype(dtype)
    theirs = torch.tensor(x, requires_grad=True)
    torch.logit(theirs, eps).sum().backward()

    def logit(x):
        return ms.ops.logit(x, eps)

    for _ in range(20):
        result = ms.grad(logit)(ms.Tensor(x))
        assert_equal(result, theirs.grad, 1e-2 if dtype == "float16" else 1e-5)


def test_uniform_numbers_lie_between():
    ms.manual_seed(3)
    x = ms.Tensor(np.zeros(10000, np.float32))
    y = x.uniform(2.0, 4.0).asnumpy()
    assert 2 <= y.min() < 2.01 < 3.99 < y.max() < 4
    assert abs(y.mean() - 3) < 0.02
    assert not x.asnumpy().any()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("shape", [(3, 4), (2, 4, 5), (2, 4, 5, 6)])
def test_a_bias_is_of_channels(shape, dtype):
    """As nn.Dense and nn.Conv2d add it."""
    x, bias = normal(*shape), normal(4, seed=5)
    a, b = (ms.Tensor(array).astype(getattr(ms, dtype)) for array in (x, bias))
    t, u = (torch.tensor(array).to(getattr(torch, dtype)) for array in (x, bias))
    expected = t + u.view(-1, *[1] * (len(shape) - 2))
    result = ms.ops.bias_add(a, b)
    assert str(result.dtype).lower() == dtype
    assert_equal(result.astype(ms.float32), expected.float())
    gradient = ms.grad(lambda bias: ms.ops.bias_add(a, bias).sum())(b)
    assert gradient.astype(ms.float32).asnumpy().tolist() == [x.size / 4] * 4


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64"])
def test_a_masked_scatter(dtype):
    x, mask, source = normal(3, 4) * 5, normal(3, 1) > 0, normal(3, 4, seed=4) * 5
    ours = [ms.Tensor(a).astype(getattr(ms, dtype)) for a in (x, source)]
    theirs = [torch.tensor(a).to(getattr(torch, dtype)) for a in (x, source)]
    result = ours[0].masked_scatter(ms.Tensor(mask).expand_as(ours[0]), ours[1])
    expected = theirs[0].masked_scatter(torch.tensor(mask).expand_as(theirs[0]), theirs[1])
    assert_equal(result.astype(ms.float32), expected.float())


# ===--- in graphs ---===


class Several(ms.nn.Cell):
    def construct(self, x, y):
        a = mint.mm(mint.acos(x), mint.transpose(y, 0, 1))
        b = mint.nn.functional.gelu(a, approximate="tanh")
        return mint.stack([b, mint.cumsum(a, 1)], 0), mint.topk(b, 2)[0], mint.std(y)


def test_a_network(mode):
    x, y = np.tanh(X), Y
    t, u = torch.tensor(x), torch.tensor(y)
    a = torch.mm(torch.acos(t), u.t())
    b = torch.nn.functional.gelu(a, approximate="tanh")
    expected = torch.stack([b, torch.cumsum(a, 1)], 0), torch.topk(b, 2)[0], torch.std(u)
    assert_equal(Several()(ms.Tensor(x), ms.Tensor(y)), expected, tolerance=2e-6)


CHUNK, SPLIT = gen_ops_prim.Chunk(), gen_ops_prim.SplitTensor()


class Parts(ms.nn.Cell):
    """MindSpore has these as views in PyNative mode, and no kernels for graphs."""

    def construct(self, x):
        return x.chunk(3, dim=1) + CHUNK(x, 2, -1) + SPLIT(x, 3, -2)


def parts(x):
    return torch.chunk(x, 3, 1) + torch.chunk(x, 2, -1) + torch.split(x, 3, -2)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "complex64", "int64", "bool"])
@pytest.mark.parametrize("is_view", [False, True])
def test_parts(is_view, dtype, mode):
    x = torch.arange(7 * 8 * 5).reshape(7, 8, 5).to(getattr(torch, dtype))
    whole = ms.Tensor(x.float().numpy() if dtype == "bfloat16" else x.numpy())
    whole = whole.astype(getattr(ms, dtype))
    tensor = mint.transpose(mint.transpose(whole, 0, 2).contiguous(), 0, 2) if is_view else whole
    results = [result.astype(ms.complex64) for result in Parts()(tensor)]
    assert_equal(results, [part.to(torch.complex64) for part in parts(x)])


class Weighed(ms.nn.Cell):
    def construct(self, x):
        total = 0.0
        for i, part in enumerate(Parts()(x * x)):
            total = total + (i + 1) * part.sum()
        return total


def test_gradients_of_parts(mode):
    x = torch.tensor(VOLUME[0], requires_grad=True)
    sum((i + 1) * part.sum() for i, part in enumerate(parts(x * x))).backward()
    assert_equal(ms.grad(Weighed())(ms.Tensor(VOLUME[0])), x.grad, 1e-6)


# ===--- in place ---===


@pytest.mark.parametrize("method", IN_PLACE, ids=name_of)
@pytest.mark.parametrize("part", ["whole", "rows", "column"])
def test_methods_write_their_tensor(method, part):
    name, arguments, keywords = method

    def written(tensor):
        x = tensor(np.abs(X) if name == "log_" else X.copy())
        places = {"whole": slice(None), "rows": slice(1, None), "column": (slice(None), 1)}
        target = x if part == "whole" else x[places[part]]
        given = [
            tensor(np.ascontiguousarray(a[places[part]])) if isinstance(a, np.ndarray) else a
            for a in arguments
        ]
        result = getattr(target, name)(*given, **keywords)
        return x, result

    (x, result), (y, expected) = written(ms.Tensor), written(torch.tensor)
    assert_equal(x, y)
    assert_equal(result, expected)


# ===--- optimizers ---===


@pytest.mark.parametrize(
    "optimizer",
    [
        ("SGD", {"momentum": 0.9, "weight_decay": 0.1}),
        ("Adam", {}),
        ("AdamW", {"weight_decay": 0.1}),
        ("AdamW", {"amsgrad": True}),
        ("AdamW", {"maximize": True}),
    ],
    ids=str,
)
def test_optimizers_take_pytorchs_steps(optimizer):
    name, keywords = optimizer
    weight, same = ms.Parameter(ms.Tensor(X), name="w"), torch.nn.Parameter(torch.tensor(X))
    of_mint = getattr(mint.optim, name)([weight], lr=0.05, **keywords)
    of_torch = getattr(torch.optim, name)([same], lr=0.05, **keywords)
    for gradient in (Y, X, Y - X):
        of_mint((ms.Tensor(gradient),))
        same.grad = torch.tensor(gradient)
        of_torch.step()
    # MindSpore's Adam computes its corrections in float32.
    assert_equal(weight, same, tolerance=1e-6 if name == "Adam" else 0)


@pytest.mark.parametrize("name", ["SGD", "AdamW"])
def test_optimizers_train_a_module_of_pytorch(mode, name, monkeypatch):
    operators = Path(os.environ["ATEN_BRIDGE_BUILD_DIR"], OPERATORS)
    monkeypatch.setenv("ATEN_BRIDGE_OPERATORS", str(operators))
    torch.manual_seed(4)
    network, x = torch.nn.Linear(3, 2), torch.tensor(X[:, :3].copy())
    cell = module(copy.deepcopy(network), (x,))
    weights = cell.trainable_params()
    of_mint = getattr(mint.optim, name)(weights, lr=0.05)
    of_torch = getattr(torch.optim, name)(network.parameters(), lr=0.05)

    def loss_of(x):
        return (cell(x) ** 2).mean()

    step = ms.value_and_grad(loss_of, None, weights)
    for _ in range(3):
        loss, gradients = step(ms.Tensor(x.numpy()))
        of_mint(gradients)
        of_torch.zero_grad()
        known = (network(x) ** 2).mean()
        known.backward()
        of_torch.step()
        np.testing.assert_allclose(loss.asnumpy(), known.detach().numpy(), rtol=1e-5)
    for one, other in zip(weights, network.parameters(), strict=True):
        np.testing.assert_allclose(one.asnumpy(), other.detach().numpy(), rtol=1e-4)


@pytest.mark.full
def test_the_example_trains_two_networks_as_pytorch_does():
    """The same page shows where they stop without the library."""
    folder = Path(__file__).parents[2] / "examples"
    done = subprocess.run(
        [sys.executable, folder / "mint_digits" / "mint_digits.py"],
        env={**os.environ, "PYTHONPATH": f"{os.environ['PYTHONPATH']}:{folder}"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    assert done.stdout.startswith(
        "Without the library:\n"
        "  ConvolutionalNetwork: The kernel Conv2DExt unregistered.\n"
        "  TransformerEncoder: The kernel Arange unregistered.\n"
    )
    read = [float(part) for part in re.findall(r"([\d.]+)% of the held-out digits", done.stdout)]
    assert len(read) == 2
    assert min(read) > 80
    differences = re.findall(r"losses in 176 steps: (.+)", done.stdout)
    assert len(differences) == 2
    assert max(float(difference) for difference in differences) < 1e-2
    assert not_printed(folder / "mint_digits", done.stdout) == []


@pytest.mark.full
def test_the_example_moves_a_network():
    folder = Path(__file__).parents[2] / "examples"
    done = subprocess.run(
        [sys.executable, folder / "move_a_network" / "move_a_network.py"],
        env={
            **os.environ,
            "PYTHONPATH": f"{os.environ['PYTHONPATH']}:{folder}",
            "ATEN_BRIDGE_OPERATORS": str(Path(os.environ["ATEN_BRIDGE_BUILD_DIR"], OPERATORS)),
        },
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    read = [float(part) for part in re.findall(r"([\d.]+)%", done.stdout)]
    assert len(read) == 5
    assert min(read) > 90
    losses = re.search(
        r"all in mint: loss ([\d.]+); the module of PyTorch's: ([\d.]+)", done.stdout
    )
    assert abs(float(losses[1]) - float(losses[2])) < 1e-3
    assert not_printed(folder / "move_a_network", done.stdout) == []


# ===--- random numbers ---===


def test_random_numbers_follow_the_seed_and_have_pytorchs_distributions():
    def draw():
        ms.manual_seed(5)
        return [
            mint.randn(10000).asnumpy(),
            mint.rand(10000).asnumpy(),
            mint.bernoulli(ms.Tensor(np.full(10000, 0.3, np.float32))).asnumpy(),
            mint.randperm(1000).asnumpy(),
        ]

    first, second = draw(), draw()
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a, b)
    normal, uniform, bernoulli, permutation = first
    assert abs(normal.mean()) < 0.05
    assert abs(normal.std() - 1) < 0.05
    assert 0 <= uniform.min() < uniform.max() < 1
    assert abs(uniform.mean() - 0.5) < 0.02
    assert abs(bernoulli.mean() - 0.3) < 0.02
    np.testing.assert_array_equal(np.sort(permutation), np.arange(1000))
    assert not np.array_equal(permutation, np.arange(1000))


def test_dropout_and_its_gradient_have_one_mask():
    x = np.ones((50, 41), np.float32)

    def forward(tensor):
        return mint.nn.functional.dropout(tensor, 0.25)

    ms.manual_seed(3)
    y = forward(ms.Tensor(x)).asnumpy()
    assert set(np.unique(y)) == {np.float32(0), np.float32(1 / 0.75)}
    assert abs((y == 0).mean() - 0.25) < 0.03
    ms.manual_seed(3)
    gradient = ms.grad(lambda tensor: forward(tensor).sum())(ms.Tensor(x)).asnumpy()
    np.testing.assert_array_equal(gradient, y)


# ===--- the library ---===


def kernels():
    """The operators of the library, with the inputs that their kernels take."""
    for name, description in describe_library(open_library(str(LIBRARY))).kernels.items():
        assert description.hosts == {"MINDSPORE_PLUGIN"}
        yield name, description.inputs


def test_kernels_take_the_parameters_of_mindspores_operators():
    """By the installed MindSpore's own definitions."""
    from mindspore.ops import operations
    from mindspore.ops.operations import array_ops
    from mindspore.ops.operations.manually_defined import ops_def

    modules = (gen_ops_prim, ops_def, operations, array_ops)
    wrong = []
    for name, inputs in kernels():
        if name == "TensorMove":  # which only graphs have: no class in Python
            continue
        primitive = next((getattr(m, name) for m in modules if hasattr(m, name)), None)
        if primitive is None:
            wrong.append(f"{name}: MindSpore has no such operator")
            continue
        if hasattr(gen_ops_prim, name) or hasattr(ops_def, name):
            count = len(inspect.signature(primitive.__call__).parameters) - 1
            if primitive.__init__ is not None:
                count += len(inspect.signature(primitive.__init__).parameters) - 1
        else:  # MindSpore's older kind
            count = len(primitive().attrs["input_names"])
        if count != len(inputs) and name not in ("Cast", "Chunk", "SplitTensor"):  # see there
            wrong.append(f"{name}: {count} parameters, the kernel takes {inputs}")
    assert wrong == []


def test_no_operator_is_registered_that_only_breaks_a_route():
    names = {name for name, _ in kernels()}
    assert len(names) == len(list(kernels()))
    # any() and pixel_shuffle() work without, and not with: "Not implement exception".
    assert not names & {"Any", "AnyExt", "PixelShuffle"}
    # Gradients of maximum() in graph mode: "Tuple to TupleUnfold pattern should have …".
    assert "FillV2" not in names
    # That of x[::2]: the same text.
    assert "StridedSliceGrad" not in names
    # Its gradient in graph mode is zero: no result is better.
    assert "SliceExt" not in names
    # In PyNative mode the next operator may use a result of these before its size is known.
    assert not names & {"MaskedSelect", "NonZero", "Unique2", "UniqueConsecutive", "UniqueDim"}


class Squeezed(ms.nn.Cell):
    def construct(self, x):
        return ms.ops.squeeze(x), x.cov()


def test_all_dimensions_of_size_1_are_left_out(mode):
    """Which of them is None to the kernel in graph mode."""
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    squeezed, covariance = Squeezed()(ms.Tensor(x.reshape(2, 3)))
    np.testing.assert_array_equal(squeezed.asnumpy(), x)
    np.testing.assert_allclose(covariance.asnumpy(), np.cov(x), rtol=1e-6)


def test_errors_are_sentences():
    with pytest.raises(RuntimeError) as error:
        mint.inverse(ms.Tensor(np.zeros((2, 2), np.float32))).asnumpy()
    assert "MatrixInverseExt: linalg.inv: The diagonal element 1 is zero" in str(error.value)


def test_batch_norm_without_statistics_is_refused():
    with pytest.raises(RuntimeError) as error:
        mint.nn.functional.batch_norm(ms.Tensor(X), None, None).asnumpy()
    text = "batch_norm: expected running_mean and running_var where not training"
    assert text in str(error.value)


def test_the_module_tells_where_the_library_is(monkeypatch, tmp_path):
    monkeypatch.setenv("ATEN_BRIDGE_MINT", LIBRARY)
    done = subprocess.run(
        [sys.executable, "-m", "aten_bridge.mint"], stdout=subprocess.PIPE, text=True, check=True
    )
    assert os.path.samefile(done.stdout.strip(), LIBRARY)

    monkeypatch.setenv("ATEN_BRIDGE_MINT", str(tmp_path / "none.so"))
    done = subprocess.run(
        [sys.executable, "-m", "aten_bridge.mint"], stderr=subprocess.PIPE, text=True
    )
    assert done.returncode == 1
    assert done.stderr == (
        f"aten_bridge: {tmp_path}/none.so: there is no such file; correct the variable"
        " ATEN_BRIDGE_MINT.\n"
    )


def test_another_interface_of_mindspores_plugins_is_refused_with_a_message(tmp_path):
    header = Path(ms.__file__).parent / HEADER
    check_interface(header)
    other = tmp_path / "other.h"
    lines = header.read_text().splitlines()
    places = [i for i, line in enumerate(lines) if "virtual" in line and "Vec" in line]
    lines[places[0]], lines[places[1]] = lines[places[1]], lines[places[0]]
    other.write_text("\n".join(lines))
    with pytest.raises(InterfaceError) as error:
        check_interface(other)
    assert str(error.value) == (
        f"{other}: expected the plugins of MindSpore 2.9 and 2.10, got another interface; use "
        "MindSpore 2.10, or a newer aten_bridge"
    )
    with pytest.raises(InterfaceError, match="there is no such file"):
        check_interface(tmp_path / "none.h")


def test_without_the_library_the_same_call_stops():
    """What it is for."""
    environment = {k: v for k, v in os.environ.items() if k != "MS_OP_PLUGIN_PATH"}
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import mindspore as ms; ms.set_device('CPU');ms.mint.acos(ms.Tensor([0.5])).asnumpy()",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
    )
    assert done.returncode == 1
    assert re.search(r"The kernel AcosExt unregistered", done.stdout)

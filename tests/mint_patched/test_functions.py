"""Functions that stand in for MindSpore's: values, gradients, dtypes, layers, methods, graphs."""

import os
import re
import subprocess
import sys

import mindspore as ms
import numpy as np
import pytest
import torch
from checks import MODES, assert_equal, in_mode, run
from mindspore import mint
from mindspore.mint.nn import functional as F

pytestmark = pytest.mark.full


def real(*shape, seed=5):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


X, Y, Z = real(3, 4), real(3, 4, seed=6), real(4, 5)
BETWEEN = (1 / (1 + np.exp(-X))).astype(np.float32)
TARGET = np.abs(Y)


def check(of_mint, of_torch, *arrays, tolerance=2e-6):
    """Values, and gradients of all inputs, of functions of tensors alone."""
    tensors = [torch.tensor(a, requires_grad=True) for a in arrays]
    expected = of_torch(*tensors)
    results = expected if isinstance(expected, tuple) else (expected,)
    sum((result * result).sum() for result in results).backward()
    assert_equal(of_mint(*map(ms.Tensor, arrays)), expected, tolerance)

    def total(*inputs):
        results = of_mint(*inputs)
        results = results if isinstance(results, tuple) else (results,)
        return sum((result * result).sum() for result in results)

    for i, tensor in enumerate(tensors):
        gradient = ms.grad(total, grad_position=i)(*map(ms.Tensor, arrays))
        assert_equal(gradient, tensor.grad, 10 * tolerance)


# ===--- values and gradients ---===


@pytest.mark.parametrize(
    ("of_mint", "of_torch", "arrays"),
    [
        (mint.vdot, torch.vdot, [X[0], Y[0]]),
        (
            lambda x, w, b: mint.conv_tbc(x, w, b, 1),
            lambda x, w, b: torch.conv_tbc(x, w, b, 1),
            [real(5, 2, 3), real(3, 3, 4), real(4)],
        ),
        (
            lambda x, y: F.kl_div(x, y, log_target=True),
            lambda x, y: torch.nn.functional.kl_div(x, y, log_target=True),
            [X, Y],
        ),
        (mint.real, torch.real, [X]),
        (lambda x: mint.xlogy(2.0, x), lambda x: torch.xlogy(2.0, x), [TARGET]),
        (
            lambda x: F.upsample(x, scale_factor=2),
            lambda x: torch.nn.functional.interpolate(x, scale_factor=2),
            [real(1, 2, 3, 3)],
        ),
    ],
    ids=["vdot", "conv_tbc", "kl_div", "real", "xlogy", "upsample"],
)
def test_values_and_gradients(of_mint, of_torch, arrays):
    check(of_mint, of_torch, *arrays)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none", "batchmean"])
def test_kl_div_has_a_gradient_of_the_target_too(reduction):
    check(
        lambda x, y: F.kl_div(x, y, reduction),
        lambda x, y: torch.nn.functional.kl_div(x, y, reduction=reduction),
        *(X, TARGET),
    )


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_cosine_embedding_loss(reduction):
    signs = np.array([1, -1, 1])
    check(
        lambda x, y: F.cosine_embedding_loss(x, y, ms.Tensor(signs), 0.3, reduction),
        lambda x, y: torch.nn.functional.cosine_embedding_loss(
            x, y, torch.tensor(signs), 0.3, reduction=reduction
        ),
        *(X, Y),
    )


def test_the_gradient_of_cumsum_has_the_dtype_of_the_input():
    def total(x):
        return mint.cumsum(x, 1, dtype=ms.float64).sum()

    gradient = ms.grad(total)(ms.Tensor(X))
    assert_equal(gradient, torch.tensor(np.array([[4, 3, 2, 1]] * 3, np.float32)), 0)


@pytest.mark.parametrize("order", [float("inf"), -float("inf"), 0.5, 3, 4])
def test_norms_of_any_order(order):
    check(lambda x: mint.norm(x, order), lambda x: torch.norm(x, order), X)
    check(
        lambda x: mint.linalg.vector_norm(x, order, dim=1, keepdim=True),
        lambda x: torch.linalg.vector_norm(x, order, dim=1, keepdim=True),
        X.astype(np.float64),
        tolerance=1e-13,
    )


def test_addr_writes_its_tensor():
    ours, theirs = ms.Tensor(real(3, 4)), torch.tensor(real(3, 4))
    returned = mint.addr_(ours, ms.Tensor(X[:, 0].copy()), ms.Tensor(Y[0]), beta=0.5, alpha=2)
    theirs.addr_(torch.tensor(X[:, 0].copy()), torch.tensor(Y[0]), beta=0.5, alpha=2)
    assert_equal(ours, theirs, 1e-6)
    assert_equal(returned, theirs, 1e-6)


def test_group_norm_takes_weights_that_are_views():
    x, weight = real(2, 4, 3, 3), real(8)
    check(
        lambda x, w: F.group_norm(x, 2, w[::2], w[1::2]),
        lambda x, w: torch.nn.functional.group_norm(x, 2, w[::2], w[1::2]),
        *(x, weight),
        tolerance=1e-5,
    )


def test_the_gradient_of_a_convolution_by_some_of_its_inputs():
    x, weight, bias = real(2, 3, 8), real(4, 3, 3), real(4)
    check(
        lambda x, b: F.conv1d(x, ms.Tensor(weight), b),
        lambda x, b: torch.nn.functional.conv1d(x, torch.tensor(weight), b),
        *(x, bias),
        tolerance=1e-5,
    )


def test_gradients_of_no_images_and_of_a_single_number():
    def normalized(x):
        return F.batch_norm(x, ms.Tensor([0.0] * 3), ms.Tensor([1.0] * 3)).sum()

    assert ms.grad(normalized)(ms.Tensor(np.zeros((0, 3, 2, 2), np.float32))).shape == (0, 3, 2, 2)

    def selected(x):
        return mint.masked_select(x, ms.Tensor([True, False, True])).sum()

    assert ms.grad(selected)(ms.Tensor(2.0)).item() == 2


# ===--- float64 ---===


@pytest.mark.parametrize(
    ("function", "arrays"),
    [
        ("logaddexp", [X, Y]),
        ("lerp", [X, Y, BETWEEN]),
        ("logsumexp", [X]),
        ("std", [X]),
        ("var", [X]),
        ("std_mean", [X]),
        ("var_mean", [X]),
        ("diff", [X]),
        ("addmm", [real(3, 5), X, Z]),
        ("inverse", [real(3, 3)]),
        ("nn.functional.hardshrink", [X]),
        ("nn.functional.softshrink", [X]),
        ("nn.functional.logsigmoid", [X]),
        ("nn.functional.mish", [X]),
        ("nn.functional.selu", [X]),
        ("nn.functional.prelu", [X, BETWEEN[:1, 0].copy()]),
        ("nn.functional.binary_cross_entropy", [BETWEEN, BETWEEN[::-1].copy()]),
        ("nn.functional.binary_cross_entropy_with_logits", [X, BETWEEN]),
    ],
)
def test_float64_is_computed_in_float64(function, arrays):
    def find(root):
        for name in function.split("."):
            root = getattr(root, name)
        return (lambda x: root(x, 1)) if function == "logsumexp" else root

    check(find(mint), find(torch), *(a.astype(np.float64) for a in arrays), tolerance=1e-13)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_first_input_by_its_name(dtype):
    x, y = X.astype(dtype), Y.astype(dtype)
    ours, theirs = ms.Tensor(x), torch.tensor(x)
    assert_equal(mint.std(input=ours, dim=1), torch.std(input=theirs, dim=1), 1e-6)
    assert_equal(mint.linalg.qr(A=ours)[1], torch.linalg.qr(A=theirs)[1], 1e-6)
    assert_equal(
        mint.add(input=ours, other=ms.Tensor(y)), torch.add(input=theirs, other=torch.tensor(y)), 0
    )
    with pytest.raises(TypeError):
        mint.std(dim=1)


def test_float64_keeps_numbers_that_are_no_numbers():
    x = np.array([np.nan, np.inf, -np.inf, 0.3, -0.3])
    for name in ("hardshrink", "softshrink", "logsigmoid", "selu"):
        ours, theirs = getattr(F, name), getattr(torch.nn.functional, name)
        assert_equal(ours(ms.Tensor(x)), theirs(torch.tensor(x)), 1e-14)
    assert_equal(mint.nan_to_num(ms.Tensor(x)), torch.nan_to_num(torch.tensor(x)), 0)
    assert_equal(
        mint.logaddexp(ms.Tensor(x), ms.Tensor(x)),
        torch.logaddexp(torch.tensor(x), torch.tensor(x)),
        1e-14,
    )
    assert_equal(mint.logsumexp(ms.Tensor(x[1:]), 0), torch.logsumexp(torch.tensor(x[1:]), 0), 0)


def test_float64_at_the_ends_has_pytorchs_gradients():
    p = np.array([0, 1, 0.25, 1])
    targets = np.array([0, 1, 0.5, 0])
    check(
        lambda p: F.binary_cross_entropy(p, ms.Tensor(targets)),
        lambda p: torch.nn.functional.binary_cross_entropy(p, torch.tensor(targets)),
        p,
        tolerance=1e-8,
    )
    gradient = ms.grad(mint.std)(ms.Tensor([2.0, 2.0], ms.float64))
    assert gradient.asnumpy().tolist() == [0, 0]


# ===--- results whose size depends on values ---===


@pytest.mark.parametrize("dim", [None, 0, 1, -1])
@pytest.mark.parametrize("dtype", ["float32", "int64", "bool"])
def test_unique(dim, dtype):
    x = np.array([[3, 1, 1], [0, 1, 1], [3, 1, 1]]).astype(dtype)
    assert_equal(
        mint.unique(ms.Tensor(x), return_inverse=True, return_counts=True, dim=dim),
        torch.unique(torch.tensor(x), return_inverse=True, return_counts=True, dim=dim),
        0,
    )
    assert_equal(ms.Tensor(x).unique(), torch.tensor(x).unique(), 0)


def test_unique_counts_each_nan():
    x = np.array([1, np.nan, np.nan], np.float32)
    assert_equal(mint.unique(ms.Tensor(x)), torch.unique(torch.tensor(x)), 0)


def test_bincount():
    x, weights = np.array([0, 9, 1, 9]), np.array([0.5, 1, 2, 4], np.float32)
    for more in ({}, {"minlength": 12}):
        assert_equal(
            mint.bincount(ms.Tensor(x), **more), torch.bincount(torch.tensor(x), **more), 0
        )
    assert_equal(
        mint.bincount(ms.Tensor(x), ms.Tensor(weights)),
        torch.bincount(torch.tensor(x), torch.tensor(weights)),
        0,
    )
    assert_equal(ms.Tensor(x).bincount(), torch.tensor(x).bincount(), 0)


def test_one_hot_finds_the_number_of_classes():
    x = np.array([2, 0, 5])
    assert_equal(F.one_hot(ms.Tensor(x)), torch.nn.functional.one_hot(torch.tensor(x)), 0)


def test_nonzero_of_bfloat16():
    x = ms.Tensor([[0.0, 2], [3, 0]], ms.bfloat16)
    assert_equal(mint.nonzero(x), torch.tensor([[0, 1], [1, 0]]), 0)


# ===--- methods, layers ---===


@pytest.mark.parametrize("equation", ["i,j->ij", "ij,ij->ij", "ij,j->ij", "ij,ij,ij->i"])
def test_gradients_of_einsum_in_graphs(equation):
    arrays = [X if len(term) == 2 else X[0] for term in equation.split("->")[0].split(",")]
    if equation == "i,j->ij":
        arrays = [X[0], Y[:, 0]]
    tensors = [torch.tensor(array, requires_grad=True) for array in arrays]
    (torch.einsum(equation, *tensors) ** 2).sum().backward()

    def of_two(x, y):
        return (mint.einsum(equation, x, y) ** 2).sum()

    def of_three(x, y, z):
        return (mint.einsum(equation, x, y, z) ** 2).sum()

    function = of_two if len(arrays) == 2 else of_three
    gradient = ms.grad(function, grad_position=tuple(range(len(arrays))))
    for found in (gradient, ms.jit(gradient)):
        results = found(*map(ms.Tensor, arrays))
        for result, tensor in zip(results, tensors, strict=True):
            assert_equal(result, tensor.grad, 1e-4)


def test_methods_of_float64():
    x = X.astype(np.float64)
    for name, arguments in (("std", ()), ("std", (1,)), ("var", (0,)), ("logsumexp", (1,))):
        ours, theirs = (getattr(make(x), name)(*arguments) for make in (ms.Tensor, torch.tensor))
        assert_equal(ours, theirs, 1e-14)
    assert_equal(ms.Tensor(X).std(axis=0, ddof=1), torch.tensor(X).std(0), 1e-6)


def test_methods_have_pytorchs_keywords_and_mindspores():
    ours, theirs = ms.Tensor(X), torch.tensor(X)
    for name in ("amax", "amin"):
        expected = getattr(theirs, name)(dim=1, keepdim=True)
        assert_equal(getattr(ours, name)(dim=1, keepdim=True), expected, 0)
        assert_equal(getattr(ours, name)(axis=1, keepdims=True), expected, 0)
        assert_equal(getattr(ours, name)(), getattr(theirs, name)(), 0)
    assert_equal(
        ours.index_fill(1, ms.Tensor([0, 2]), 1.5),
        theirs.index_fill(1, torch.tensor([0, 2]), 1.5),
        0,
    )
    assert_equal(mint.any(ours > 1, dim=(0, 1)), torch.any(theirs > 1, dim=(0, 1)), 0)


def test_the_largest_float64_in_graphs():
    """MindSpore's compiler makes infinity of a Python number beyond float32."""
    x = np.array([np.nan, np.inf, -np.inf, 0.1])
    expected = torch.nan_to_num(torch.tensor(x))

    def of_mint(x):
        return mint.nan_to_num(x)

    assert_equal(ms.jit(of_mint)(ms.Tensor(x)), expected, 0)


def test_names_that_only_mindspores_older_methods_have():
    x = ms.Tensor(X)
    assert_equal(x.trace(offset=1), torch.tensor(X).diagonal(1).sum(), 1e-6)
    assert_equal(x.std(axis=1, ddof=0), torch.tensor(X).std(1, correction=0), 1e-6)
    assert_equal(x.count_nonzero(axis=1, keep_dims=True), torch.full((3, 1), 4, dtype=torch.int32))
    assert_equal(x.max(axis=1, return_indices=True), tuple(torch.tensor(X).max(1)))
    assert_equal(x.repeat_interleave(2, axis=0), torch.tensor(X).repeat_interleave(2, 0))
    assert_equal(x.diff(axis=0), torch.tensor(X).diff(dim=0), 1e-6)


def test_layers():
    x = real(2, 3, 6, 6)
    check(mint.nn.MaxPool2d(2), torch.nn.MaxPool2d(2), x)
    check(mint.nn.Upsample(scale_factor=2), torch.nn.Upsample(scale_factor=2), x)
    signs = np.array([1, -1, 1])
    check(
        lambda a, b: mint.nn.CosineEmbeddingLoss(0.1)(a, b, ms.Tensor(signs)),
        lambda a, b: torch.nn.CosineEmbeddingLoss(0.1)(a, b, torch.tensor(signs)),
        *(X, Y),
    )
    check(mint.nn.KLDivLoss("batchmean"), torch.nn.KLDivLoss(reduction="batchmean"), X, TARGET)
    layer = mint.nn.Dropout2d(0.5)
    layer.set_train()
    kept = layer(ms.Tensor(np.ones((20, 30, 2, 2), np.float32))).asnumpy()
    assert set(np.unique(kept)) == {np.float32(0), np.float32(2)}
    assert (kept == kept[:, :, :1, :1]).all()


# ===--- in graphs ---===


class Several(ms.nn.Cell):
    def construct(self, x):
        images = mint.reshape(x, (1, 2, 4, 4))
        return (
            F.max_pool2d(images, 2),
            mint.einsum("bchw->cb", images),
            mint.unique(x > 0),
            mint.any(images > 1, (1, 2)),
            mint.std(x, 1),
            F.dropout2d(images, 0.0),
            F.conv2d(images, images, padding="same"),
        )


@pytest.mark.parametrize("dtype", ["uint16", "uint32", "uint64", "int64"])
def test_remainders_of_whole_numbers(dtype):
    x, y = np.array([7, 8, 200], dtype), np.array([4, 3, 7], dtype)
    np.testing.assert_array_equal(mint.remainder(ms.Tensor(x), ms.Tensor(y)).asnumpy(), x % y)


def mean_square(x, y):
    return F.mse_loss(x, y)


def sum_and_product(x, y):
    return mint.addcmul(x, y, y)


@pytest.mark.parametrize("function", [mean_square, sum_and_product])
@pytest.mark.parametrize("dtypes", [("float32", "float16"), ("float16", "float32")])
def test_functions_of_two_dtypes_in_graphs(function, dtypes):
    x, y = (X.astype(dtype) for dtype in dtypes)
    result = ms.jit(function)(ms.Tensor(x), ms.Tensor(y))
    assert result.dtype == ms.float32
    np.testing.assert_array_equal(result.asnumpy(), function(ms.Tensor(x), ms.Tensor(y)).asnumpy())


def test_graphs(mode):
    x = real(4, 8).astype(np.float64)
    t = torch.tensor(x, requires_grad=True)
    images = t.reshape(1, 2, 4, 4)
    expected = (
        torch.nn.functional.max_pool2d(images, 2),
        torch.einsum("bchw->cb", images),
        torch.unique(t > 0),
        torch.any(torch.any(images > 1, 2), 1),
        torch.std(t, 1),
        images,
        torch.nn.functional.conv2d(images, images, padding="same"),
    )
    net = Several()
    assert_equal(net(ms.Tensor(x)), expected, 1e-12)


# ===--- programs ---===

PROGRAM = """
import sys
import mindspore as ms
from mindspore.mint.nn.functional import max_pool2d
print(sys.argv[1:], max_pool2d(ms.Tensor([[[1.0, 2], [3, 4]]]), 2).asnumpy().item())
"""
LATE = """
import mindspore as ms
ms.Tensor(1.0) + 1
from aten_bridge.mint import install
install()
"""


LEFT = """
import mindspore as ms
print(ms.mint.tanh(ms.Tensor(0.0)).item(), ms.mint.exp(ms.Tensor(0.0)).item())
"""


def test_a_program_runs_with_the_library_and_the_functions(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    done = run("-m", "aten_bridge.mint", str(program), "a", "b")
    assert done.stdout == "['a', 'b'] 4.0\n", done.stderr
    assert run(str(program)).returncode == 1  # what it is for

    for name in ("none.py", "n" * 300):
        done = run("-m", "aten_bridge.mint", f"{tmp_path}/{name}")
        assert done.returncode == 1
        assert done.stderr == f"aten_bridge: {tmp_path}/{name}: there is no such file.\n"


def test_threads_of_a_program_sleep_while_they_wait(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(LEFT)
    arguments = ("-m", "aten_bridge.mint", str(program))

    def spins(**variables):
        """How often a thread looks again before it sleeps, as libgomp says when it is loaded."""
        done = run(*arguments, OMP_DISPLAY_ENV="verbose", **variables)
        return [int(count) for count in re.findall("GOMP_SPINCOUNT = '(.*)'", done.stderr)]

    assert spins() == [0]
    assert spins(GOMP_SPINCOUNT="5") == [5]
    assert spins(OMP_WAIT_POLICY="active")[0] > 0


def test_install_says_that_the_named_library_is_missing(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "aten_bridge.mint", __file__],
        capture_output=True,
        text=True,
        env={**os.environ, "MS_OP_PLUGIN_PATH": "/none.so"},
    )
    assert done.returncode == 1
    assert done.stderr == (
        "aten_bridge: /none.so: there is no such file; correct the variable MS_OP_PLUGIN_PATH.\n"
    )


def test_operators_may_be_left_to_mindspore(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(LEFT)
    arguments = ("-m", "aten_bridge.mint", str(program))
    done = run(*arguments, ATEN_BRIDGE_LEAVE_TO_MINDSPORE="Tanh,MaxDim")
    assert done.stdout == "0.0 1.0\n", done.stderr
    done = run(*arguments, ATEN_BRIDGE_LEAVE_TO_MINDSPORE="AcosExt")
    assert done.stdout == "0.0 1.0\n", done.stderr
    program.write_text(LEFT.replace("tanh", "acos"))  # MindSpore has no kernel for it
    done = run(*arguments, ATEN_BRIDGE_LEAVE_TO_MINDSPORE="AcosExt")
    assert "The builtin kernel is not registered" in done.stderr
    done = run(*arguments, ATEN_BRIDGE_LEAVE_TO_MINDSPORE="Tanh,Acos")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "aten_bridge: ATEN_BRIDGE_LEAVE_TO_MINDSPORE: the library has no operator 'Acos'; expected"
        " names between commas, such as Tanh,MatMulExt."
    )


def test_install_says_when_it_comes_too_late(tmp_path):
    program = tmp_path / "late.py"
    program.write_text(LATE)
    done = run(str(program))
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "RuntimeError: MindSpore runs without the library of kernels; call"
        " aten_bridge.mint.install() before its first operator, or set MS_OP_PLUGIN_PATH to what"
        " `python -m aten_bridge.mint` prints"
    )


# ===--- numbers ---===

LOWEST = float(np.finfo(np.float32).min)


@pytest.mark.parametrize("number", [LOWEST, -LOWEST, float("inf"), -float("inf"), 1e-45])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_numbers_may_be_the_largest_and_the_smallest(number, dtype):
    if dtype == "bfloat16" and abs(number) == -LOWEST:
        number = np.sign(number) * torch.finfo(torch.bfloat16).max
    number = float(number)

    def written(of, tensor, pad, threshold):
        x = tensor(X)
        first = tensor(np.array([0]))
        return (
            of.full((2,), number, dtype=x.dtype),
            of.full_like(x, number),
            of.clamp(x, min=number),
            of.scatter(x, 0, tensor(PLACES), number),
            of.where(tensor(X > 0), x, number),
            pad(x, (1, 2), value=number),
            threshold(x, 0.0, number),
            x.masked_fill(tensor(X > 0), number),
            x.index_fill(0, first, number),
            x.fill_(number),
        )

    def ours(array):
        tensor = ms.Tensor(array)
        return tensor.astype(getattr(ms, dtype)) if array.dtype == np.float32 else tensor

    def theirs(array):
        tensor = torch.tensor(array)
        return tensor.to(getattr(torch, dtype)) if array.dtype == np.float32 else tensor

    of_torch = torch.nn.functional
    results = written(mint, ours, F.pad, F.threshold)
    expected = written(torch, theirs, of_torch.pad, of_torch.threshold)
    for result, other in zip(results, expected, strict=True):
        assert str(result.dtype).lower() == dtype
        assert_equal(result.astype(ms.float32), other.float())


PLACES = np.array([[0, 2, 1, 0], [1, 1, 2, 0]])


@pytest.mark.parametrize(
    ("dtype", "number"),
    [("float64", 1 / 3), ("float64", 1e300), ("int64", 2**53 + 1), ("int32", 2**31 - 1)],
)
def test_written_numbers_keep_all_digits(dtype, number):
    def written(tensor):
        x, mask = tensor((X * 5).astype(dtype)), tensor(X > 0)
        places = tensor(np.array([0, 2]))
        filled = tensor(np.zeros((3, 4), dtype))
        filled[1] = number
        results = [x.masked_fill(mask, number), x.index_fill(0, places, number), filled]
        for name, arguments in (
            ("masked_fill_", (mask, number)),
            ("index_fill_", (1, places, number)),
            ("fill_", (number,)),
        ):
            results.append(getattr(tensor((X * 5).astype(dtype)), name)(*arguments))
        return results

    for result, expected in zip(written(ms.Tensor), written(torch.tensor), strict=True):
        assert_equal(result, expected)


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("scatter_", "0, i, x", [3, 1, 2]),
        ("scatter_add_", "0, i, x", [4, 3, 5]),
        ("index_add_", "0, i, x", [4, 3, 5]),
        ("index_copy_", "0, i, x", [3, 1, 2]),
        ("index_put_", "(i,), x", [3, 1, 2]),
        ("masked_scatter_", "i < 2, x", [1, 2, 2]),
        ("mul_", "x", [1, 4, 9]),
    ],
)
def test_a_source_that_is_the_target_is_read_as_it_was(name, arguments, expected):
    x, i = ms.Tensor([1.0, 2, 3]), ms.Tensor([1, 2, 0])
    eval(f"x.{name}({arguments})", {"x": x, "i": i})
    assert x.asnumpy().tolist() == expected


def test_places_that_are_a_part_of_the_target_are_read_as_they_were():
    x = ms.Tensor([1, 0, 2, 3])
    x.index_put_((x[0:2],), ms.Tensor([2, 3]))
    assert x.asnumpy().tolist() == [3, 2, 2, 3]


@MODES
def test_both_modes_keep_all_digits(mode):
    number = 1 / 3  # a graph computes that itself, in float32

    def written(x, mask, places):
        y = x * 1
        y[0] = number
        return y, x.index_fill(0, places, number), x.clamp(max=number), mint.where(mask, x, number)

    x = X.astype(np.float64)
    results = in_mode(written, mode)(ms.Tensor(x), ms.Tensor(x > 0), ms.Tensor([1, 2]))
    row, third = x.copy(), np.full_like(x, 1 / 3)
    row[0], filled = 1 / 3, np.where([[False], [True], [True]], third, x)
    for result, expected in zip(
        results, (row, filled, np.minimum(x, third), np.where(x > 0, x, third)), strict=True
    ):
        assert_equal(result, torch.tensor(expected))


@pytest.mark.parametrize("name", ["add_", "sub_", "mul_", "div_", "remainder_", "floor_divide_"])
def test_methods_that_write_are_exact_beside_numbers_in_float64(name):
    ours, theirs = (tensor(X.astype(np.float64)) for tensor in (ms.Tensor, torch.tensor))
    getattr(ours, name)(1 / 3)
    getattr(theirs, name)(1 / 3)
    assert_equal(ours, theirs, 1e-15)


def test_functions_are_exact_beside_numbers_in_float64():
    x, t = ms.Tensor(X.astype(np.float64)), torch.tensor(X.astype(np.float64))
    of_torch = torch.nn.functional
    for result, expected in (
        (mint.full((2,), 1 / 3, dtype=ms.float64), torch.full((2,), 1 / 3, dtype=torch.float64)),
        (mint.full_like(x, 1e300), torch.full_like(t, 1e300)),
        (mint.where(x > 0, x, 1 / 3), torch.where(t > 0, t, 1 / 3)),
        (mint.clamp(x, -1 / 3, 1 / 3), torch.clamp(t, -1 / 3, 1 / 3)),
        (x.clamp(min=1 / 3), t.clamp(min=1 / 3)),
        (F.threshold(x, 1 / 3, 2 / 3), of_torch.threshold(t, 1 / 3, 2 / 3)),
        (mint.float_power(mint.abs(x), 1 / 3), torch.float_power(t.abs(), 1 / 3)),
        (mint.eq(x, X[0, 0].item()), torch.eq(t, X[0, 0].item())),
    ):
        assert_equal(result, expected, 1e-15)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * (1 / 3),
        lambda x: 0.3 * x,
        lambda x: x / 0.3,
        lambda x: 0.3 / x,
        lambda x: x * LOWEST,
        lambda x: x + 1 / 3,
        lambda x: 1 / 3 - x,
        lambda x: (x * 1).mul_(0.3),
        lambda x: (x * 1).div_(0.3),
    ],
)
def test_products_with_numbers_round_as_pytorchs(function, dtype):
    array = np.array([0, 0.1, 1, 3, 5, 7, 100], np.float32)
    result = function(ms.Tensor(array).astype(getattr(ms, dtype)))
    expected = function(torch.tensor(array).to(getattr(torch, dtype)))
    assert str(result.dtype).lower() == dtype
    assert_equal(result.astype(ms.float32), expected.float())


@pytest.mark.parametrize("divisor", [float("inf"), -float("inf"), 1e-30, 0.7, X])
def test_remainders_of_any_divisor(divisor):
    for dtype in (np.float32, np.float64):
        x, y = (tensor(Y.astype(dtype)) for tensor in (ms.Tensor, torch.tensor))
        d, e = (
            tensor(divisor.astype(dtype)) if isinstance(divisor, np.ndarray) else divisor
            for tensor in (ms.Tensor, torch.tensor)
        )
        assert_equal(mint.remainder(x, d), torch.remainder(y, e))
        assert_equal(x % d, y % e)


# ===--- two dtypes ---===


def of_dtype(array, dtype):
    array = np.abs(array) + 1 if dtype == "uint8" else array
    whole = np.trunc(array * 3) if "int" in dtype else array
    ours = ms.Tensor(whole).astype(getattr(ms, dtype))
    return ours, torch.tensor(whole).to(getattr(torch, dtype))


BOOL_AND_FLOAT = ("bool", "float32")
REFUSED_BY_PYTORCH = {("sub", BOOL_AND_FLOAT), ("addcdiv", ("float32", "int64"))}
WITHOUT_PYTORCHS_GRADIENT = {
    (name, BOOL_AND_FLOAT) for name in ("atan2", "logaddexp", "logaddexp2")
}


@pytest.mark.parametrize(
    "name",
    [
        *("add", "sub", "mul", "div", "maximum", "minimum", "fmod", "remainder", "pow", "atan2"),
        *("addcmul", "addcdiv", "logaddexp", "logaddexp2", "where", "cat", "stack", "outer"),
        *("nn.functional.mse_loss", "einsum"),
    ],
)
@pytest.mark.parametrize(
    "dtypes",
    [
        *(("float16", "bfloat16"), ("float16", "float32"), ("float64", "bfloat16")),
        *(("float32", "float64"), ("int32", "float16"), ("float32", "int64"), ("bool", "float32")),
    ],
)
def test_two_dtypes_have_pytorchs_result_and_gradients_of_their_own(name, dtypes):
    (a, t), (b, u) = of_dtype(TARGET + 0.5, dtypes[0]), of_dtype(TARGET[::-1] + 1, dtypes[1])
    mask = X > 0

    def call(of, x, y, tensor):
        if name == "nn.functional.mse_loss":
            return of.nn.functional.mse_loss(x, y)
        if name in ("cat", "stack"):
            return getattr(of, name)([x, y])
        if name in ("addcmul", "addcdiv"):
            return getattr(of, name)(x, y, y)
        if name == "where":
            return of.where(tensor(mask), x, y)
        if name == "outer":
            return of.outer(x[0], y[0])
        return of.einsum("ij,ij->ij", x, y) if name == "einsum" else getattr(of, name)(x, y)

    for tensor in (t, u):
        if tensor.is_floating_point():
            tensor.requires_grad_()
    if (name, dtypes) in REFUSED_BY_PYTORCH:
        with pytest.raises(RuntimeError):
            call(torch, t, u, torch.tensor)
        pytest.skip("PyTorch refuses these two")
    expected = call(torch, t, u, torch.tensor)
    result = call(mint, a, b, ms.Tensor)
    assert str(result.dtype).lower() == str(expected.dtype).removeprefix("torch.")
    tolerance = 1e-6 if "16" not in str(expected.dtype) else 1e-2
    assert_equal(result.astype(ms.float64), expected.double(), tolerance)
    if name == "nn.functional.mse_loss" or (name, dtypes) in WITHOUT_PYTORCHS_GRADIENT:
        with pytest.raises(RuntimeError):
            expected.sum().backward()
        return
    expected.sum().backward()
    places = [i for i, tensor in enumerate((t, u)) if tensor.grad is not None]
    gradient = ms.grad(lambda x, y: call(mint, x, y, ms.Tensor).sum(), tuple(places))(a, b)
    gradient = gradient if isinstance(gradient, tuple) else (gradient,)
    for i, one in zip(places, gradient, strict=True):
        assert str(one.dtype).lower() == dtypes[i]
        other = (t, u)[i].grad
        tolerance = 1e-5 if "16" not in "".join(dtypes) else 2e-2
        assert_equal(one.astype(ms.float64), other.double(), tolerance)


def test_einsum_says_that_a_sum_wants_one_dtype():
    with pytest.raises(TypeError) as error:
        mint.einsum("ij,jk->ik", ms.Tensor(X), ms.Tensor(Z.astype(np.float64)))
    text = "einsum: expected operands of one dtype, got Float32 and Float64"
    assert str(error.value) == text


# ===--- arguments as PyTorch takes them ---===


@pytest.mark.parametrize(
    "call",
    [
        lambda of, F, t: of.std(t(X), 1, False),
        lambda of, F, t: of.std(t(X), unbiased=False),
        lambda of, F, t: of.var(t(X), 0, True, True),
        lambda of, F, t: of.var(t(X.astype("d")), False),
        lambda of, F, t: of.var_mean(t(X), 1, unbiased=False)[1],
        lambda of, F, t: of.std_mean(t(X), 1, correction=0)[0],
        lambda of, F, t: of.squeeze(t(X[None, :, None])),
        lambda of, F, t: of.squeeze(t(X)),
        lambda of, F, t: of.sort(t(X), 0, True)[1],
        lambda of, F, t: of.flip(t(np.float32([1, 2])[0:1].reshape(())), ()),
        lambda of, F, t: of.flip(t(X), ()),
        lambda of, F, t: of.permute(t(X), [-1, 0]),
        lambda of, F, t: of.repeat_interleave(t(np.array([2, 0, 1]))),
        lambda of, F, t: of.searchsorted(t(np.sort(X[0])), 0.3).reshape(()),
        lambda of, F, t: of.ones(2, 3),
        lambda of, F, t: of.zeros(2),
        lambda of, F, t: of.linspace(0, 1, 0),
        lambda of, F, t: of.cumprod(t(np.array(2.5)), 0),
        lambda of, F, t: of.cummax(t(np.array(2.5)), 0)[1],
        lambda of, F, t: of.cdist(t(X), t(Y), 1),
        lambda of, F, t: F.elu(t(X), 2),
        lambda of, F, t: F.unfold(t(real(3, 8, 8)), 3),
        lambda of, F, t: F.interpolate(t(real(1, 3, 8, 8)), size=3, mode="area"),
    ],
)
def test_arguments_are_pytorchs(call):
    result = call(mint, F, ms.Tensor)
    expected = call(torch, torch.nn.functional, torch.tensor)
    assert_equal(result, expected, 2e-6)


# ===--- places ---===


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "index",
    [
        np.s_[:, ::2],
        np.s_[:, 1:4:2, 0],
        np.s_[::2, ::3],
        np.s_[-1, ::2],
        np.s_[None, ::2, 1],
        np.s_[..., 1::2],
        np.s_[:, -4:-1:2],
        np.s_[:, 9::2],
    ],
    ids=str,
)
def test_the_gradient_of_steps(index, dtype):
    check(lambda x: x[index], lambda x: x[index], real(4, 6, 5).astype(dtype))


def test_steps_are_views_that_can_be_written():
    ours, theirs = ms.Tensor(real(4, 6)), torch.tensor(real(4, 6))
    ours[:, 1::2].add_(1)
    theirs[:, 1::2].add_(1)
    assert_equal(ours, theirs)


@pytest.mark.parametrize("mask", [real(4, 6) > 0, np.zeros((4, 6), bool)], ids=["some", "none"])
@pytest.mark.parametrize("rest", [np.s_[:], np.s_[1:], np.s_[::2], 0, None, ...], ids=str)
def test_a_mask_of_two_dimensions_beside_other_parts(mask, rest):
    def part(x, tensor):
        return x[tensor(mask), rest]

    expected = part(torch.tensor(real(4, 6, 5)), torch.tensor)
    assert_equal(part(ms.Tensor(real(4, 6, 5)), ms.Tensor), expected)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64", "bool"])
@pytest.mark.parametrize(
    ("shape", "index"),
    [
        *(((3, 0), index) for index in (np.s_[:], np.s_[:, 1:1], np.s_[0, 3:3], np.s_[::2])),
        *(((0, 4), index) for index in (np.s_[1:1, 0], np.s_[None, 1:1], np.s_[-1:0])),
        *(((3, 4), index) for index in (np.s_[:], np.s_[::2], np.s_[0, 1], np.s_[2:2], np.s_[...])),
        ((3, 4), np.array([], int)),
    ],
)
def test_a_number_is_written_to_places_that_may_be_none(shape, index, dtype):
    ours = ms.Tensor(np.ones(shape, np.float32)).astype(getattr(ms, dtype))
    theirs = torch.ones(shape, dtype=getattr(torch, dtype))
    is_array = isinstance(index, np.ndarray)
    ours[ms.Tensor(index) if is_array else index] = 0
    theirs[torch.tensor(index) if is_array else index] = 0
    assert_equal(ours.astype(ms.float32), theirs.float())


# ===--- methods in graph mode ---===


class Shaped(ms.nn.Cell):
    """What graph mode refuses or, of x.transpose(0, 1), takes for something else."""

    def construct(self, x):
        size = x.shape[1]
        expanded = x[:, None].expand(-1, 2, size), x.expand((5, 3, 4)), x.expand([2, -1, -1])
        swapped = x.transpose(0, 1), x.transpose(-1, -2), x[None].transpose(0, 2)
        orders = x.transpose(), x[None].transpose(2, 0, 1), x[None].transpose((1, 2, 0))
        return (*expanded, *swapped, *orders, x[0, :1].expand(3))


class Weighed(ms.nn.Cell):
    def construct(self, x):
        total = 0.0
        for i, result in enumerate(Shaped()(x * x)):
            total = total + (i + 1) * result.sum()
        return total


def test_methods_that_graph_mode_has_otherwise(mode):
    x = torch.tensor(X, requires_grad=True)

    def expected(x):
        expanded = x[:, None].expand(-1, 2, 4), x.expand(5, 3, 4), x.expand(2, -1, -1)
        swapped = x.T, x.T, x[None].transpose(0, 2)
        orders = x.T, x[None].permute(2, 0, 1), x[None].permute(1, 2, 0)
        return (*expanded, *swapped, *orders, x[0, :1].expand(3))

    assert_equal(Shaped()(ms.Tensor(X)), expected(x))
    sum((i + 1) * result.sum() for i, result in enumerate(expected(x * x))).backward()
    assert_equal(ms.grad(Weighed())(ms.Tensor(X)), x.grad, 1e-6)


class Holder:
    def __init__(self, value):
        self.value = value


class Member(ms.nn.Cell):
    """Graph mode does not know the dtype of an object's member."""

    def construct(self, x):
        value = Holder(x * 2).value
        sums = mint.add(value, x), mint.add(value, 1.5), mint.sub(value, x)
        products = mint.mul(value, 2.0), mint.div(value, x), mint.div(value, 2.0)
        rest = mint.remainder(value, x + 3), mint.clamp(value, -0.5, 0.5), F.mse_loss(value, x)
        return (*sums, *products, *rest)


class MemberOfSeveralResults(ms.nn.Cell):
    """One of several results of an operator, beside others of which MindSpore's own is wrong."""

    def construct(self, x, weight):
        return F.layer_norm(Holder(x).value, (4,), weight, weight)


def test_members_of_objects_in_graph_mode(mode):
    x, weight = torch.tensor(X), torch.tensor(Y[0])
    functional = torch.nn.functional
    sums = 3 * x, 2 * x + 1.5, 2 * x - x
    rest = torch.remainder(2 * x, x + 3), (2 * x).clamp(-0.5, 0.5), functional.mse_loss(2 * x, x)
    expected = (*sums, 4 * x, torch.full((3, 4), 2.0), x, *rest)
    assert_equal(Member()(ms.Tensor(X)), expected, 1e-5)
    expected = functional.layer_norm(x, (4,), weight, weight)
    assert_equal(MemberOfSeveralResults()(ms.Tensor(X), ms.Tensor(Y[0])), expected, 1e-5)


# ===--- gradients of gradients ---===


def test_the_second_gradient_of_threshold():
    """MindSpore's reads beyond its inputs, which ended the process."""

    def first(x):
        return ms.grad(lambda x: (F.threshold(x, 0.1, 20.0) ** 3).sum())(x).sum()

    gradient = ms.grad(first)(ms.Tensor(X))
    assert_equal(gradient, torch.tensor(np.where(X > 0.1, 6 * X, 0)), 1e-6)


def test_methods_of_ranks_that_pytorchs_do_not_take():
    generator = np.random.default_rng(3)
    square, x, y = (generator.normal(size=shape) for shape in ((4, 4), (4, 6), (6, 4)))

    def tensor(array):
        return ms.Tensor(array.astype(np.float32))

    for result, expected in (
        (tensor(x).dot(tensor(y)), x @ y),
        (tensor(x[0]).dot(other=tensor(x[1])), x[0] @ x[1]),
        (tensor(square).outer(tensor(x[0])), np.outer(square, x[0])),
        (tensor(x[0]).outer(vec2=tensor(x[1])), np.outer(x[0], x[1])),
        (tensor(square).addbmm(tensor(x), tensor(y)), square + (x @ y).sum(0)),  # as MindSpore's
        (tensor(square).addbmm(tensor(x[None]), tensor(y[None]), alpha=2), square + 2 * x @ y),
        (tensor(square).baddbmm(tensor(x), tensor(y), beta=2), 2 * square + x @ y),
        (tensor(square).baddbmm(tensor(x[None]), tensor(y[None])), (square + x @ y)[None]),
        (tensor(square[None]).addbmm(tensor(x[None]), tensor(y[None])), (square + x @ y)[None]),
        (
            tensor(square[None, None]).baddbmm(tensor(x[None]), tensor(y[None])),
            (square + x @ y)[None, None],
        ),
    ):
        np.testing.assert_allclose(result.asnumpy(), expected, rtol=1e-5, atol=1e-5)


def test_an_empty_dimension_is_one_part():  # in a graph MindSpore refuses it
    x = ms.Tensor(np.zeros((0, 5), np.float32))
    found = (*x.split(2), *x.split(2, 0), *x.split(split_size=3, dim=1))
    assert [part.shape for part in found] == [(0, 5), (0, 5), (0, 3), (0, 2)]


def test_complex_numbers_have_no_rounding_mode():
    x, y = (ms.Tensor(np.array([value], np.complex64)) for value in (7 + 3j, 2 + 0j))
    for mode in ("floor", "trunc"):
        with pytest.raises(RuntimeError):
            mint.div(x, y, rounding_mode=mode).asnumpy()
    with pytest.raises(ValueError, match="bogus"):
        mint.div(x, y, rounding_mode="bogus").asnumpy()

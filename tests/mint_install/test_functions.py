"""Functions that stand in for MindSpore's: values, gradients, dtypes, layers, methods, graphs."""

import os
import re
import subprocess
import sys

import mindspore as ms
import numpy as np
import pytest
import torch
from checks import assert_equal
from mindspore import mint
from mindspore.mint.nn import functional as F


def real(*shape, seed=5):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.fixture(params=["graph", "pynative"])
def mode(request):
    before = ms.get_context("mode")
    ms.set_context(mode=ms.GRAPH_MODE if request.param == "graph" else ms.PYNATIVE_MODE)
    yield request.param
    ms.set_context(mode=before)


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


def run(*arguments, **variables):
    environment = {k: v for k, v in os.environ.items() if k != "MS_OP_PLUGIN_PATH"}
    environment.update(variables)
    environment["ATEN_BRIDGE_MINT"] = os.environ["MS_OP_PLUGIN_PATH"]
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        env=environment,
    )


def test_a_program_runs_with_the_library_and_the_functions(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    done = run("-m", "aten_bridge.mint", str(program), "a", "b")
    assert done.stdout == "['a', 'b'] 4.0\n", done.stderr
    assert run(str(program)).returncode == 1  # what it is for

    done = run("-m", "aten_bridge.mint", str(tmp_path / "none.py"))
    assert done.returncode == 1
    assert done.stderr == f"aten_bridge: {tmp_path}/none.py: there is no such file.\n"


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
    program.write_text(LEFT.replace("tanh", "acos"))  # of which MindSpore has no kernel
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

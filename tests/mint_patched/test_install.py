"""The functions by which `aten_bridge.mint.install` replaces MindSpore's.

The calls of tests/mint/cases.py are made by survey.py, with install() too; here is the rest.
"""

import contextlib

import mindspore as ms
import numpy as np
import pytest
import torch
from checks import assert_equal
from mindspore import mint
from mindspore.mint.nn import functional as F

X = np.arange(24, dtype=np.float32).reshape(4, 6) / 7 - 1
MASK = np.arange(24).reshape(4, 6) % 3 == 0


# ===--- views and masks ---===


def parts(make):
    """A tensor, and views of one."""
    whole = make(X)
    return [whole, whole[1:], whole[:, ::2], whole.T, whole[2]]


@pytest.mark.parametrize(
    "function",
    [
        lambda x, m: m.masked_select(x, x > 0),
        lambda x, m: m.nonzero(x),
        lambda x, m: m.unique_consecutive(x),
        lambda x, m: x[x > 0],
        lambda x, m: m.unique(x),
    ],
    ids=["masked_select", "nonzero", "unique_consecutive", "mask", "unique"],
)
def test_results_whose_size_depends_on_values_take_views(function):
    for ours, theirs in zip(parts(ms.Tensor), parts(torch.tensor), strict=True):
        assert_equal(function(ours, mint), function(theirs, torch))


@pytest.mark.parametrize("places", [slice(1, None), (slice(None), slice(None, None, 2))])
def test_masks_that_are_views(places):
    ours, theirs = ms.Tensor(X)[places], torch.tensor(X)[places]
    mask, same = ms.Tensor(MASK)[places], torch.tensor(MASK)[places]
    assert_equal(ours[mask], theirs[same])
    assert_equal(mint.masked_select(ours, mask), torch.masked_select(theirs, same))
    ours, theirs = ours.copy(), theirs.clone()
    ours[mask] = 0.5
    theirs[same] = 0.5
    assert_equal(ours, theirs)


def test_nonzero_as_places_of_each_dimension():
    ours, theirs = ms.Tensor(MASK), torch.tensor(MASK)
    assert_equal(mint.nonzero(ours, as_tuple=True), torch.nonzero(theirs, as_tuple=True))
    assert_equal(mint.where(ours), torch.where(theirs))
    assert_equal(mint.nonzero(ms.Tensor(2.0)), torch.nonzero(torch.tensor(2.0)))


def test_unique_in_a_loop_has_the_size_of_its_own_values():
    """In PyNative mode a kernel's result may be used with the largest size."""
    for count in (1, 5, 2, 24, 3) * 20:
        x = np.arange(24) % count
        assert mint.unique(ms.Tensor(x)).shape == (count,)
        assert mint.sum(mint.unique(ms.Tensor(x))).item() == count * (count - 1) // 2


def test_single_elements():
    """Views without strides, which have an offset all the same."""
    for make, of in ((ms.Tensor, mint), (torch.tensor, torch)):
        x = make(np.arange(12, dtype=np.float32).reshape(3, 4))
        assert float(of.exp(x[0, 2])) == pytest.approx(np.exp(2))
        assert bool(x[1, 2] > 5)
        assert [int(v * 1) for v in x[1]] == [4, 5, 6, 7]
        assert int(sum(x[2])) == 38
        x[1, 2] += 100
        element = x[2, 3]
        element.add_(1)
        assert [int(x[1, 2]), int(x[2, 3]), int(x[0, 0])] == [106, 12, 0]
    gradient = ms.grad(lambda x: x[1, 2] * x[0, 1] * 3)(ms.Tensor(np.arange(6.0).reshape(2, 3)))
    assert gradient.asnumpy().tolist() == [[0, 15, 0], [0, 0, 3]]


@pytest.mark.parametrize("index", [[0, 2], ([0, 2], [1, 0]), ((0, 2),)])
def test_tensors_tell_where_a_transposed_view_is_written(index):
    def written(tensor, transposed):
        x = tensor(np.arange(12, dtype=np.float32).reshape(3, 4))
        parts = index
        if all(isinstance(part, list) for part in index):
            parts = tuple(map(tensor, index))
        elif isinstance(index, list):
            parts = tensor(index)
        transposed(x)[parts] = 0.5
        return x

    ours = written(ms.Tensor, lambda x: x.permute(1, 0))
    assert_equal(ours, written(torch.tensor, lambda x: x.t()))


def test_methods_that_write_what_they_read():
    def whole():
        return ms.Tensor(np.arange(9, dtype=np.float32).reshape(3, 3))

    before = whole().asnumpy()
    for method, expected in (("copy_", before.T), ("add_", before + before.T)):
        x = whole()
        getattr(x, method)(x.T)
        np.testing.assert_array_equal(x.asnumpy(), expected)
    x = whole()
    x[1:].add_(x[:-1])
    np.testing.assert_array_equal(x.asnumpy()[1:], before[1:] + before[:-1])


def test_exponential_draws_pytorchs_distribution():
    x = ms.Tensor(np.zeros((100, 100), np.float32))
    ms.manual_seed(5)
    assert x.exponential_(2.0) is not None
    drawn = x.asnumpy().ravel()
    assert drawn.min() >= 0
    for share in (0.1, 0.5, 0.9, 0.99):
        assert abs((drawn < -np.log(1 - share) / 2).mean() - share) < 0.02
    ms.manual_seed(5)
    np.testing.assert_array_equal(x.exponential_(2.0).asnumpy().ravel(), drawn)
    assert x.astype(ms.float64).exponential_().dtype == ms.float64
    with pytest.raises(ValueError, match=r"^exponential_: expected lambd above 0, got 0$"):
        x.exponential_(0)
    with pytest.raises(TypeError, match=r"^exponential_: expected floating-point numbers, got Int"):
        x.astype(ms.int64).exponential_()


def test_compiled_functions_have_the_seed():
    """Which MindSpore's own graphs do not have: they draw other numbers in each process."""

    def drop(x):
        return mint.nn.functional.dropout(x, 0.5)

    x, compiled = mint.ones(200), ms.jit(drop)
    known = {}
    for seed in (7, 8, 7):
        ms.manual_seed(seed)
        drawn = [run(x).asnumpy().tolist() for run in (compiled, drop, compiled)]
        ms.manual_seed(seed)
        assert [run(x).asnumpy().tolist() for run in (drop, compiled, drop)] == drawn
        assert known.setdefault(seed, drawn) == drawn
    assert known[7] != known[8]
    state = ms.get_rng_state()
    ms.manual_seed(9)
    drawn = drop(x).asnumpy().tolist()
    ms.set_rng_state(state)
    after = compiled(x).asnumpy().tolist()
    assert after != drawn
    ms.set_rng_state(state)
    assert drop(x).asnumpy().tolist() == after


def test_layer_norm_of_float64_refuses_what_float32_does():
    with pytest.raises(ValueError, match="LayerNorm"):
        mint.nn.functional.layer_norm(ms.Tensor(np.eye(2, 4)), (5,)).asnumpy()
    for _ in range(3):  # MindSpore now and then raises it again, at the next operators
        with contextlib.suppress(ValueError):
            ms.runtime.synchronize()
            (ms.Tensor(X.astype(np.float64)) * 0.7).asnumpy()


# ===--- numbers ---===


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * 0.7 + 0.1,
        lambda x: 0.1 - x / 0.7,
        lambda x: 1 / 3 - x,
        lambda x: 0.7 / (x + 3),
        lambda x: (x + 2) ** 0.3 % 0.7,
        lambda x: x.mul(0.7).add(0.1).sub(0.3).div(0.9),
        lambda x: 0.3 ** (x + 2) + 0.3 % (x + 3),
        lambda x: ((x * 0 + 0.1) == 0.1).sum() + (x * 0 + 0.1 < 0.1).sum(),
    ],
)
def test_python_numbers_beside_float64_are_float64(function):
    x = X.astype(np.float64)
    assert_equal(function(ms.Tensor(x)), function(torch.tensor(x)), tolerance=1e-15)


@pytest.mark.parametrize("mode", ["trunc", "floor"])
def test_div_with_rounding_in_place(mode):
    ours, theirs = ms.Tensor([7.0, -7.0]), torch.tensor([7.0, -7.0])
    assert_equal(ours.div_(2, rounding_mode=mode), theirs.div_(2, rounding_mode=mode))
    assert_equal(ours, theirs)


def test_any_refuses_dimensions_with_a_message():
    x = ms.Tensor(X)
    assert mint.any(x, dim=()).dtype == ms.bool_
    with pytest.raises(IndexError) as error:
        mint.any(x, dim=(5,))
    assert str(error.value) == "any: expected dimensions from -2 to 1, got 5"


def test_arguments_by_name():
    x, y = ms.Tensor(X), torch.tensor(X)
    assert_equal(mint.pow(input=x, exponent=2), torch.pow(input=y, exponent=2), 1e-6)
    assert_equal(mint.exp(input=x), torch.exp(input=y))
    assert_equal(x.sub(other=2.0), y.sub(other=2.0))
    places = ms.Tensor([0], ms.int32)
    assert_equal(
        x.index_fill(axis=1, index=places, value=1.5), y.index_fill(1, torch.tensor([0]), 1.5)
    )


# ===--- einsum ---===


def real(*shape):
    return np.random.default_rng(3).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk", [(2, 3), (3, 4)]),
        ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 2)]),
        ("bhqd,bhkd->bhqk", [(2, 3, 4, 5), (2, 3, 6, 5)]),
        ("...ij,...jk->...ik", [(2, 2, 3), (2, 3, 4)]),
        ("...ij,jk->...ik", [(5, 2, 3), (3, 4)]),
        ("ii->i", [(3, 3)]),
        ("ii", [(3, 3)]),
        ("iij->j", [(3, 3, 2)]),
        ("i,j->ij", [(3,), (4,)]),
        ("ij,ij->", [(2, 3), (2, 3)]),
        ("ij,kj->ik", [(2, 1), (4, 3)]),
        ("ab->ba", [(2, 3)]),
        (" i j , j k -> i k ", [(2, 3), (3, 4)]),
    ],
)
def test_einsum(equation, shapes):
    arrays = [real(*shape) for shape in shapes]
    assert_equal(
        mint.einsum(equation, *map(ms.Tensor, arrays)),
        torch.einsum(equation, *map(torch.tensor, arrays)),
        tolerance=2e-6,
    )


def test_einsum_of_numbered_dimensions():
    a, b = real(2, 3), real(3, 4)
    assert_equal(
        mint.einsum(ms.Tensor(a), [0, 1], ms.Tensor(b), [1, 2], [0, 2]),
        torch.einsum(torch.tensor(a), [0, 1], torch.tensor(b), [1, 2], [0, 2]),
        tolerance=2e-6,
    )


@pytest.mark.parametrize(
    ("equation", "shapes", "text"),
    [
        (
            "ij,jk->ik",
            [(2, 3)],
            "einsum: expected as many operands as 'ij,jk->ik' has, 2, got 1",
        ),
        (
            "ijk->i",
            [(2, 3)],
            "einsum: expected 3 dimensions of operand 0 as 'ijk->i' says, got 2",
        ),
        (
            "ij->ik",
            [(2, 3)],
            "einsum: expected each label of the output once, and among the inputs', got 'ij->ik'",
        ),
        (
            "ij,jk->ik",
            [(2, 3), (4, 2)],
            "einsum: expected dimensions of one size for the label 'j', got 3 and 4",
        ),
        (
            "ii->i",
            [(2, 3)],
            "einsum: expected dimensions of one size for the label 'i' that an operand has twice,"
            " got 2 and 3",
        ),
    ],
)
def test_einsum_refuses_with_a_message(equation, shapes, text):
    with pytest.raises(ValueError, match="einsum") as error:
        mint.einsum(equation, *(ms.Tensor(real(*shape)) for shape in shapes))
    assert str(error.value) == text


# ===--- windows ---===


@pytest.mark.parametrize(
    ("arguments", "keywords"),
    [
        ((2,), {}),
        ((3, 2, 1), {"ceil_mode": True}),
        (((2, 3),), {"stride": (1, 2)}),
        ((2,), {"dilation": 2, "return_indices": True}),
    ],
)
def test_max_pool2d_and_its_gradient(arguments, keywords):
    x = real(2, 3, 8, 8)

    def total(x):
        result = F.max_pool2d(x, *arguments, **keywords)
        return ((result[0] if isinstance(result, tuple) else result) ** 2).sum()

    assert_equal(
        F.max_pool2d(ms.Tensor(x), *arguments, **keywords),
        torch.nn.functional.max_pool2d(torch.tensor(x), *arguments, **keywords),
    )
    same = torch.tensor(x, requires_grad=True)
    result = torch.nn.functional.max_pool2d(same, *arguments, **keywords)
    ((result[0] if isinstance(result, tuple) else result) ** 2).sum().backward()
    assert_equal(ms.grad(total)(ms.Tensor(x)), same.grad, tolerance=1e-6)


@pytest.mark.parametrize("size", [2, 3, 4])
@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_convolutions_of_the_same_size_have_their_gradient(ndim, size):
    x, weight = real(1, 2, *[5] * ndim), real(3, 2, *[size] * ndim)
    of_mint = getattr(F, f"conv{ndim}d")
    of_torch = getattr(torch.nn.functional, f"conv{ndim}d")
    same, same_weight = torch.tensor(x, requires_grad=True), torch.tensor(weight)
    expected = of_torch(same, same_weight, padding="same")
    (expected**2).sum().backward()
    assert_equal(of_mint(ms.Tensor(x), ms.Tensor(weight), padding="same"), expected, 1e-5)

    def total(x):
        return (of_mint(x, ms.Tensor(weight), padding="same") ** 2).sum()

    assert_equal(ms.grad(total)(ms.Tensor(x)), same.grad, tolerance=1e-4)


def test_convolutions_refuse_with_a_message():
    x, weight = ms.Tensor(real(1, 2, 5, 5)), ms.Tensor(real(3, 2, 3, 3))
    with pytest.raises(ValueError, match="conv2d") as error:
        F.conv2d(x, weight, padding="full")
    assert str(error.value) == "conv2d: expected the padding 'same' or 'valid', got 'full'"
    with pytest.raises(ValueError, match="conv2d") as error:
        F.conv2d(x, weight, padding="same", stride=2)
    assert str(error.value) == "conv2d: expected a stride of 1 with the padding 'same'"


# ===--- layers and modules ---===


def test_layers_of_mint_use_them():
    x, weight = real(1, 2, 5, 5), real(3, 2, 3, 3)
    layer = mint.nn.Conv2d(2, 3, 3, padding="same", bias=False)
    layer.weight.set_data(ms.Tensor(weight))

    def total(x):
        return (layer(x) ** 2).sum()

    same = torch.tensor(x, requires_grad=True)
    (torch.nn.functional.conv2d(same, torch.tensor(weight), padding="same") ** 2).sum().backward()
    assert_equal(ms.grad(total)(ms.Tensor(x)), same.grad, tolerance=1e-4)


def test_dropout2d_leaves_out_whole_channels():
    y = F.dropout2d(ms.Tensor(np.ones((20, 30, 2, 2), np.float32)), 0.25).asnumpy()
    assert set(np.unique(y)) == {np.float32(0), np.float32(1 / 0.75)}
    assert (y == y[:, :, :1, :1]).all()
    assert abs((y == 0).mean() - 0.25) < 0.1
    x = ms.Tensor(X)
    assert F.dropout2d(x, 0.25, training=False) is x


def test_install_may_be_called_again():
    from aten_bridge.mint import install

    function = mint.einsum
    install()
    assert mint.einsum is function
    assert_equal(mint.exp(ms.Tensor(X)), torch.exp(torch.tensor(X)))


def test_functions_that_mindspore_2_9_lacks_are_left_out_there(monkeypatch):
    from aten_bridge.mint._replace import REPLACED, replaces

    before = list(REPLACED)
    monkeypatch.delattr(mint, "npu_gelu", raising=False)
    assert replaces("npu_gelu")(len) is len
    assert before == REPLACED
    with pytest.raises(AttributeError, match="no attribute 'no_such_function'"):
        replaces("no_such_function")

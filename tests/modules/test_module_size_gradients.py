"""Gradients of modules whose results have sizes that depend on values."""

import copy
import re

import mindspore as ms
import numpy as np
import pytest
import torch
from mindspore import mint
from module_cases import assert_near
from module_size_cases import (
    COUNTS,
    ROWS,
    Chosen,
    Draws,
    DrawsInside,
    Joined,
    Padded,
    Pairs,
    Positive,
    loss_of,
    rows_above_zero,
    slope_penalty,
)
from torch import nn

from aten_bridge.mindspore import Kernel, module, native_caller
from aten_bridge.mindspore._host import HOST
from aten_bridge.program import NotExportable, save
from aten_bridge.program._export import export_module
from aten_bridge.program._file import write_module
from aten_bridge.program._kernel import program_kernel
from aten_bridge.program._programs import ModuleInModes

FROM_MODULES_AND_FILES = pytest.mark.parametrize(
    "is_file", [False, pytest.param(True, marks=pytest.mark.full)], ids=["module", "file"]
)


def to_mindspore(tensor):
    return ms.Tensor(tensor.detach().numpy().copy())


def made(network, is_file, folder, **more):
    if not is_file:
        return module(network, ROWS, **more)
    save(network, folder / "network", ROWS, **more)
    return module(folder / "network")


@pytest.mark.parametrize("make", [Positive, Chosen, Joined, Pairs])
@pytest.mark.parametrize("trains", [True, False], ids=["training", "evaluation"])
@FROM_MODULES_AND_FILES
def test_gradients_are_pytorchs(pynative, make, trains, is_file, tmp_path):
    network = make().train(trains)
    cell = made(network, is_file, tmp_path)
    factor = ms.Parameter(ms.Tensor(np.float32(1)), name="factor")
    step = ms.grad(lambda x: loss_of(cell(x * factor)), 0, [*cell.trainable_params(), factor])
    for count in COUNTS:
        x = rows_above_zero(count).requires_grad_()
        network.zero_grad()
        loss_of(network(x)).backward()
        of_x, (of_weight, of_factor) = step(to_mindspore(x))
        (parameter,) = network.parameters()
        assert_near(of_x, x.grad, 1e-5)
        assert_near(of_weight, parameter.grad, 1e-5)
        assert_near(of_factor, (x.grad * x).sum(), 1e-4)


@pytest.mark.parametrize("make", [Positive, Chosen, Joined, Pairs])
@FROM_MODULES_AND_FILES
def test_gradients_of_gradients_are_pytorchs(pynative, make, is_file, tmp_path):
    network = make()
    cell = made(network, is_file, tmp_path, gradient_order=2)
    slope = ms.grad(lambda x: loss_of(cell(x)))
    penalty = ms.grad(lambda x: (slope(x) ** 2).sum(), 0, cell.trainable_params())
    for count in COUNTS:
        x = rows_above_zero(count).requires_grad_()
        network.zero_grad()
        slope_penalty(network, x)
        of_x, (of_weight,) = penalty(to_mindspore(x))
        (parameter,) = network.parameters()
        assert_near(of_x, x.grad, 1e-4)
        if native_caller():  # MindSpore leaves out a part without it, of which module() warns
            assert_near(of_weight, parameter.grad, 1e-4)


def test_third_gradients_are_pytorchs(pynative):
    network = Joined()
    cell = module(network, ROWS, gradient_order=3)
    slope = ms.grad(lambda x: loss_of(cell(x)))
    second = ms.grad(lambda x: (slope(x) ** 2).sum())
    x = rows_above_zero(3).requires_grad_()
    (known,) = torch.autograd.grad(loss_of(network(x)), x, create_graph=True)
    (known,) = torch.autograd.grad((known**2).sum(), x, create_graph=True)
    (known,) = torch.autograd.grad((known**2).sum(), x)
    assert_near(ms.grad(lambda x: (second(x) ** 2).sum())(to_mindspore(x)), known, 1e-4)


@pytest.mark.parametrize("trains", [True, False], ids=["training", "evaluation"])
@pytest.mark.parametrize("make", [Draws, DrawsInside])
@FROM_MODULES_AND_FILES
def test_random_numbers_are_drawn_again(pynative, make, trains, is_file, tmp_path):
    network = make().train(trains)
    cell = made(network, is_file, tmp_path).set_train(trains)
    step = ms.value_and_grad(lambda x: loss_of(cell(x)), 0, cell.trainable_params())
    other = copy.deepcopy(cell)
    by_weights = ms.grad(lambda x: loss_of(other(x)), None, other.trainable_params())
    for count in COUNTS:
        x = rows_above_zero(count).requires_grad_()
        network.zero_grad()
        torch.manual_seed(5)
        ms.manual_seed(5)
        known = loss_of(network(x))
        known.backward()
        value, (of_x, of_weights) = step(to_mindspore(x))
        if count:  # MindSpore 2.10's own sum of no elements is what the memory has
            assert_near(value, known, 1e-5)
        assert_near(of_x, x.grad, 1e-4)
        ms.manual_seed(5)
        for found in (of_weights, by_weights(to_mindspore(x))):
            for gradient, parameter in zip(found, network.parameters(), strict=True):
                assert_near(gradient, parameter.grad, 1e-4)
        for buffer, expected in zip(cell.buffers_of_module, network.buffers(), strict=True):
            assert_near(buffer.asnumpy(), expected, 1e-5)


@pytest.mark.parametrize(("make", "version"), [(Positive, "module 1"), (Draws, "module 2")])
def test_readers_of_the_first_version_refuse_what_draws_again(tmp_path, make, version):
    save(make(), tmp_path / "network", ROWS)
    begin = (tmp_path / "network").read_bytes()[:4096].decode("latin-1")
    assert f'"aten_bridge":"{version}"' in begin.replace('": "', '":"')


def test_a_gradient_has_buffers_as_they_were(pynative):
    class Doubles(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("scale", torch.tensor(1.0))

        def forward(self, x):
            kept = x[x > 0] * self.scale
            self.scale.mul_(2)
            return kept

    cell = module(Doubles(), ROWS)
    x = to_mindspore(rows_above_zero(3))
    chosen = (x > 0).asnumpy()
    for scale in (1, 2, 4):
        of_x = ms.grad(lambda x: cell(x).sum())(x)
        assert np.array_equal(of_x.asnumpy(), chosen * np.float32(scale))
        assert cell.buffers_of_module[0].asnumpy() == 2 * scale


@pytest.mark.parametrize("mode", ["graph"], indirect=True)
def test_a_graph_draws_again_too(mode):
    """Its results are the same numbers' as its gradients: each is linear in the mask."""

    class Drops(nn.Module):
        def forward(self, x):
            return nn.functional.dropout(x[x > 0], 0.5, self.training).sum()

    cell = module(Drops().train(), ROWS)
    x = to_mindspore(rows_above_zero(4))
    for _ in range(3):
        value, of_x = ms.value_and_grad(cell)(x)
        assert np.allclose((of_x * x).sum().asnumpy(), value.asnumpy(), 1e-5)
        assert set(of_x.asnumpy().ravel()) <= {0.0, 2.0}
        assert np.all(of_x.asnumpy()[x.asnumpy() <= 0] == 0)


def test_what_is_as_large_as_can_be_has_a_gradient_in_graphs(mode):
    network = Padded(4)
    cell = module(network, ROWS)

    def loss(x):
        rows, _ = cell(x)
        return (rows**2).sum()

    step = ms.value_and_grad(loss, 0, cell.trainable_params())
    for count in (3, 0, 4):
        x = rows_above_zero(count).requires_grad_()
        network.zero_grad()
        known = loss_of(network(x))
        known.backward()
        value, (of_x, (of_weight,)) = step(to_mindspore(x))
        assert_near(value, known, 1e-5)
        assert_near(of_x, x.grad, 1e-5)
        assert_near(of_weight, network.weight.grad, 1e-5)
        assert cell(to_mindspore(x))[1].asnumpy() == count


@pytest.mark.parametrize("trains", [True, False], ids=["training", "evaluation"])
def test_more_than_can_be_is_refused(pynative, trains):
    """torch.nn.functional.pad() by a negative number cuts, without a word."""
    cell = module(Padded(4).train(trains), ROWS).set_train(trains)
    with pytest.raises((ValueError, RuntimeError)) as error:
        cell(to_mindspore(rows_above_zero(5)))[0].asnumpy()
    assert re.search(
        r"AtenProgram: (expected sizes with (u\d) <= 4, for which the module was exported, got "
        r"\2 = 5|u\d: expected a size from 0 to 4, for which the module was exported, got 5)\n",
        f"{error.value}\n",
    )


def assert_refused(backward, given, gradient, expected):
    with pytest.raises((ValueError, RuntimeError)) as error:
        backward(*given, gradient)[0].asnumpy()
    assert re.search(rf"AtenProgram: expected sizes with {expected}", str(error.value))


def test_gradients_of_other_sizes_are_refused(pynative):
    programs, *_ = export_module(Positive().eval(), ROWS)
    backward = Kernel(program_kernel(HOST, programs.training.backward))
    given = (ms.Tensor(np.float32(2)), to_mindspore(torch.arange(24.0).reshape(6, 4)))
    of_scale, _ = backward(*given, mint.ones(23))
    assert of_scale.asnumpy() == sum(range(24))
    expected = r"(u\d) == (u\d), for which the module was exported, got \1 = 1, \2 = 23\b"
    assert_refused(backward, given, mint.ones(1), expected)


def test_gradients_of_other_computed_sizes_are_refused(pynative):
    programs, *_ = export_module(Joined().eval(), ROWS)
    backward = Kernel(program_kernel(HOST, programs.training.backward))
    given = (ms.Tensor(np.ones(4, np.float32)), to_mindspore(torch.ones(6, 4)))
    backward(*given, mint.ones(52))[0].asnumpy()
    expected = r"g0 == \S.*, for which the module was exported, got g0 = 51, "
    assert_refused(backward, given, mint.ones(51), expected)


def test_a_file_that_would_keep_values_of_them_is_refused(tmp_path):
    programs, *_ = export_module(Positive().eval(), ROWS)
    symbol = re.search(r"^symbol .*", programs.evaluation, re.M)[0]
    form = re.search(r"^output \S+ (.*)", programs.evaluation, re.M)[1]
    lines = programs.training.backward.splitlines()
    lines[1:1] = [] if symbol in lines else [symbol]
    tangent = next(i for i, line in enumerate(lines) if line.startswith("input %tangents_1 "))
    lines.insert(tangent, f"input %kept {form}")
    training = programs.training._replace(backward="\n".join(lines) + "\n", outputs=[0])
    path = tmp_path / "positive"
    write_module(ModuleInModes(*[programs._replace(training=training)] * 2, False), path)
    with pytest.raises(ValueError, match="positive: ") as error:
        module(path)
    assert str(error.value) == (
        f"{path}: expected a file that aten_bridge.program.save wrote, got one whose programs have "
        "other inputs and outputs than the module; save the module again"
    )


# ===--- what has no gradient ---===


class Unique(nn.Module):
    def forward(self, x):
        return torch.unique(x)


def test_what_pytorch_does_not_differentiate_has_no_gradient(pynative):
    cell = module(Unique(), ROWS)
    with pytest.raises(ValueError, match="AtenProgram") as error:
        ms.grad(lambda x: cell(x).sum())(to_mindspore(ROWS[0]))
    assert str(error.value) == (
        "AtenProgram: expected a module with gradients, got one that PyTorch does not "
        "differentiate; keep it out of what is differentiated"
    )


def test_gradients_that_are_asked_for_are_refused_where_there_are_none():
    with pytest.raises(NotImplementedError, match="the derivative for '_unique2' is not impl"):
        module(Unique(), ROWS, gradient_order=2)


@pytest.mark.parametrize("is_exported", [False, True], ids=["module", "exported"])
def test_a_second_gradient_that_no_mode_has_is_refused(is_exported):
    class Scales(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("scale", torch.ones(()))

        def forward(self, x):
            results = x**3 * self.scale
            self.scale.mul_(2)
            return results

    source = torch.export.export(Scales(), ROWS) if is_exported else Scales()
    with pytest.raises(NotExportable) as error:
        module(source, *([] if is_exported else [ROWS]), gradient_order=2)
    assert str(error.value) == (
        "gradient_order: expected a module whose gradients of gradients, in one of its modes at "
        "least, read no buffer that a call changes, got one that does; leave out gradient_order"
    )

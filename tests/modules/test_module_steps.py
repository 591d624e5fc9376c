"""A module's training step in PyNative mode, where the native caller calls both of its programs.

The suite runs with it and, with ATEN_BRIDGE_NATIVE_CALLER=0, without: what is here holds for both.
Once more it runs in a process in which MindSpore runs each operator at once.
"""

import copy
import gc
import itertools
import os
import pathlib
import subprocess
import sys

import mindspore as ms
import numpy as np
import pytest
import torch
from mindspore import mint
from module_cases import assert_near
from torch import nn
from torch.export import Dim

from aten_bridge._function import Task
from aten_bridge.mindspore import Kernel, module, native_caller
from aten_bridge.mindspore._host import HOST
from aten_bridge.program._kernel import program_kernel

IS_BLOCKING = os.environ.get("ATEN_BRIDGE_TEST_BLOCKING") == "1"
pytestmark = pytest.mark.usefixtures("pynative")
NO_GRADIENT = (
    "AtenProgram: expected gradients of the order that the module was made with, got one of a "
    "higher order; make it with gradient_order=2, or more; 1 is the highest where gradients read "
    "buffers that a call changes, as in batch normalization in training mode, and where gradients "
    "are constants"
)


@pytest.fixture
def network():
    torch.manual_seed(5)
    return nn.Sequential(
        nn.Conv1d(2, 4, 3, padding=1, bias=False),
        nn.BatchNorm1d(4),
        nn.Tanh(),
        nn.Flatten(),
        nn.Linear(20, 3),
    )


def make(network):
    return module(
        copy.deepcopy(network), (torch.randn(4, 2, 5),), dynamic_shapes=({0: Dim("batch")},)
    )


@pytest.fixture
def cell(network):
    return make(network)


@pytest.fixture
def x():
    torch.manual_seed(6)
    return torch.randn(4, 2, 5)


def to_mindspore(tensor):
    return ms.Tensor(tensor.detach().numpy().copy())


def loss_of(cell):
    return lambda x: (cell(x) ** 2).mean()


def gradients_of(network, x):
    """PyTorch's, of the input and of the weights."""
    network.zero_grad()
    x = x.clone().requires_grad_()
    loss_of(network)(x).backward()
    return x.grad, [parameter.grad for parameter in network.parameters()]


def assert_all_near(actual, expected):
    for one, known in zip(actual, expected, strict=True):
        assert_near(one, known, 1e-4)


@pytest.mark.full
@pytest.mark.skipif(IS_BLOCKING, reason="it is so already")
def test_the_same_where_mindspore_runs_operators_at_once():
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", __file__],
        env={**os.environ, "ATEN_BRIDGE_TEST_BLOCKING": "1"},
        check=True,
    )


# ===--- which gradients ---===


def test_gradients_of_weights_of_inputs_and_of_both(network, cell, x):
    of_x, of_weights = gradients_of(network, x)
    weights, given = cell.trainable_params(), to_mindspore(x)
    loss = loss_of(cell)
    assert_all_near(ms.grad(loss, None, weights)(given), of_weights)
    assert_near(ms.grad(loss)(given), of_x, 1e-4)
    both = ms.grad(loss, 0, weights)(given)
    assert_near(both[0], of_x, 1e-4)
    assert_all_near(both[1], of_weights)
    assert_all_near(ms.grad(loss, None, weights[2:4])(given), of_weights[2:4])
    assert_all_near(ms.grad(loss, None, weights)(given), of_weights)


def test_gradients_reach_what_computes_the_input(network, cell, x):
    of_x, of_weights = gradients_of(network.eval(), x)
    cell.set_train(False)
    factor = ms.Parameter(ms.Tensor(np.float32(1)), name="factor")
    weights = [factor, *cell.trainable_params()]
    gradients = ms.grad(lambda x: loss_of(cell)(x * factor), None, weights)(to_mindspore(x))
    assert_near(gradients[0], (of_x * x).sum(), 1e-4)
    assert_all_near(gradients[1:], of_weights)


def test_a_cell_that_is_called_twice_has_the_sum(network, cell, x):
    network.zero_grad()
    (network(x).sum() + network(2 * x).square().sum()).backward()
    given = to_mindspore(x)

    def twice(x):
        return cell(x).sum() + cell(2 * x).square().sum()

    gradients = ms.grad(twice, None, cell.trainable_params())(given)
    assert_all_near(gradients, [parameter.grad for parameter in network.parameters()])
    for buffer, known in zip(cell.buffers_of_module, network.buffers(), strict=True):
        assert_near(buffer, known, 1e-6)


def test_two_cells_that_share_weights(network, cell, x):
    other = make(network)
    other.weights = cell.weights
    given = to_mindspore(x)
    gradients = ms.grad(lambda x: loss_of(cell)(x) + loss_of(other)(x), None, cell.weights)(given)
    _, known = gradients_of(network, x)
    assert_all_near(gradients, [2 * gradient for gradient in known])


def test_results_without_gradients_and_a_result_that_nobody_reads(x):
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(5, 3)

        def forward(self, x):
            y = self.layer(x)
            return y.argmax(-1), y.tanh(), y.exp()

    torch.manual_seed(7)
    network = Two()
    cell = module(copy.deepcopy(network), (x,))
    network(x)[1].sum().backward()
    gradients = ms.grad(lambda x: cell(x)[1].sum(), None, cell.trainable_params())(to_mindspore(x))
    assert_all_near(gradients, [parameter.grad for parameter in network.parameters()])


def test_the_gradient_of_a_gradient_is_an_error(cell, x):
    weights, given = cell.trainable_params(), to_mindspore(x)
    of_x, of_weights = ms.grad(loss_of(cell)), ms.grad(loss_of(cell), None, weights)
    for run in (
        ms.grad(lambda x: of_x(x).sum()),
        ms.grad(lambda x: of_x(x).sum(), None, weights),
        ms.grad(lambda x: of_weights(x)[0].sum()),
        ms.grad(lambda x: of_weights(x)[0].sum(), None, weights),
    ):
        with pytest.raises(ValueError, match="AtenProgram: ") as error:
            run(given)
        assert str(error.value) == NO_GRADIENT


# ===--- what changes ---===


def test_weights_that_are_replaced(network, cell, x):
    given = to_mindspore(x)
    step = ms.grad(loss_of(cell), None, cell.trainable_params())
    step(given)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.mul_(1.5)
    for mine, parameter in zip(cell.trainable_params(), network.parameters(), strict=True):
        mine.set_data(to_mindspore(parameter))
    assert_all_near(step(given), gradients_of(network, x)[1])
    cell.trainable_params()[0].set_dtype(ms.float16)
    with pytest.raises(ValueError, match="AtenProgram: ") as error:
        step(given)
    assert str(error.value).splitlines()[0] == (
        "AtenProgram: %p_0_weight: expected float32 [4, 2, 3], got float16 [4, 2, 3]; convert it, "
        "or make the module with tensors of that dtype"
    )
    cell.trainable_params()[0].set_dtype(ms.float32)
    cell.trainable_params()[0].set_data(to_mindspore(network[0].weight))
    assert_all_near(step(given), gradients_of(network, x)[1])


def test_batches_of_other_sizes(network, cell):
    step = ms.grad(loss_of(cell), None, cell.trainable_params())
    for size in (4, 2, 7, 4):
        x = torch.randn(size, 2, 5)
        assert_all_near(step(to_mindspore(x)), gradients_of(network, x)[1])


def test_what_is_written_after_the_call_changes_no_gradient(cell, x):
    given = to_mindspore(x)
    weights = cell.trainable_params()
    known = [gradient.asnumpy() for gradient in ms.grad(loss_of(cell), None, weights)(given)]

    def writes(x):
        y = cell(x)
        loss = (y**2).mean()
        for buffer in cell.buffers_of_module[:2]:
            ms.ops.assign(buffer, buffer * 0)
        return loss

    for gradient, one in zip(ms.grad(writes, None, weights)(given), known, strict=True):
        assert np.allclose(gradient.asnumpy(), one, rtol=1e-5, atol=1e-6)


class Swaps(nn.Module):
    """Buffers that take one another's values, of which a gradient reads one as it was."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))
        self.register_buffer("a", torch.tensor([1.0, 2, 3]))
        self.register_buffer("b", torch.tensor([4.0, 5, 6]))

    def forward(self, x):
        a, b = self.a, self.b
        result = x * self.weight * a
        self.a, self.b = b * 1, a * 1
        return result, a.flip(0)


def test_buffers_that_are_exchanged(x):
    network = Swaps().train()
    cell = module(Swaps().train(), (torch.ones(3),))
    for _ in range(3):
        x = torch.randn(3)
        network.zero_grad()
        expected = network(x)
        expected[0].sum().backward()

        def run(x):
            results = cell(x)
            return results[0].sum(), results[1]

        (_, rest), (gradient,) = ms.value_and_grad(
            run, None, cell.trainable_params(), has_aux=True
        )(to_mindspore(x))
        assert_near(rest, expected[1], 1e-6)
        assert_near(gradient, network.weight.grad, 1e-5)
        for buffer, known in zip(cell.buffers_of_module, (network.a, network.b), strict=True):
            assert_near(buffer, known, 1e-6)


# ===--- lives ---===


def test_a_cell_that_is_gone_before_its_gradient_is_asked_for(network, x):
    cells = [make(network)]
    of_x, _ = gradients_of(network, x)

    def loss(x):
        y = cells.pop()(x)
        gc.collect()
        return (y**2).mean()

    assert_near(ms.grad(loss)(to_mindspore(x)), of_x, 1e-4)
    assert not cells


def test_a_gradient_that_is_asked_for_twice(network, cell, x):
    of_x, _ = gradients_of(network, x)
    results, differentiate = ms.vjp(cell, to_mindspore(x))
    tangent = results * (2 / results.size)
    for _ in range(2):
        assert_near(differentiate(tangent)[0], of_x, 1e-4)


def test_an_error_in_the_backward_pass_leaves_the_next_step_alone(network, cell, x):
    def fail(gradient):
        raise RuntimeError("no gradient")

    given, weights = to_mindspore(x), cell.trainable_params()

    def hooked(x):
        y = cell(x)
        y.register_hook(fail)
        return (y**2).mean()

    with pytest.raises(RuntimeError, match="no gradient"):
        ms.grad(hooked, None, weights)(given)
    _, known = gradients_of(network, x)
    assert_all_near(ms.grad(loss_of(cell), None, weights)(given), known)


def test_calls_in_several_threads(network, cell, x, in_threads):
    cell.set_train(False)
    given, found = to_mindspore(x), {}
    known = network.eval()(x)

    def work(i):
        for _ in range(20):
            found[i] = cell(given).asnumpy()

    in_threads(work)
    assert len(found) == 4
    for one in found.values():
        assert_near(one, known, 1e-5)


# ===--- parts of programs ---===

TEXT = (
    "aten_bridge program 1\ninput %x float32 [2]\n%y = aten::exp(%x)\n"
    "%z = aten::neg(%y)\noutput %z float32 [2]\noutput %y float32 [2]\n"
)


PARTS = (
    *("forward", "forward 3", "forward 1 2", "forward 1 x", "forward -1", "sideways 1"),
    *("backward", "backward 1", "backward 1 1", "backward 2 0", "backward 99999999999999999999 1"),
)


@pytest.mark.parametrize("part", PARTS)
def test_a_part_that_the_program_has_not_is_refused(part):
    with pytest.raises(ValueError, match="AtenProgram") as error:
        program_kernel(HOST, TEXT, task=Task(part))
    assert str(error.value) == f"AtenProgram: expected a part of the program, got '{part}'"


def test_a_backward_program_without_its_forward_one_is_an_error():
    kernel = Kernel(program_kernel(HOST, TEXT, task=Task("backward 0 1")))
    with pytest.raises((ValueError, RuntimeError), match="AtenProgram: expected 1 values that"):
        kernel(mint.ones(2))[0].asnumpy()


def test_outputs_that_nobody_wants_are_not_computed():
    kernel = Kernel(program_kernel(HOST, TEXT, task=Task("backward 1 0 1")))
    assert np.allclose(kernel(mint.zeros(2)).asnumpy(), 1)
    with pytest.raises(ValueError, match="AtenProgram") as error:
        program_kernel(HOST, TEXT, task=Task("backward 1 0 2"))
    assert str(error.value) == "AtenProgram: expected one of 2 outputs, got output 2"


def most_bytes(step):
    """The most that PyTorch's allocator has given out at one time of a step."""
    with torch.profiler.profile(profile_memory=True) as profile:
        step()
    events = profile.profiler.kineto_results.events()
    changes = [event for event in events if event.name() == "[memory]"]
    assert changes
    return max(
        itertools.accumulate(
            event.nbytes() for event in sorted(changes, key=lambda event: event.start_ns())
        )
    )


@pytest.mark.skipif(not native_caller(), reason="MindSpore has what a step keeps")
def test_values_are_freed_as_in_pytorch_behind_their_last_use():
    layers = [layer for _ in range(6) for layer in (nn.Linear(64, 64), nn.GELU())]
    network, x = nn.Sequential(*layers), torch.randn(512, 64)
    cell = module(network, (x,))
    step = ms.grad(lambda x: cell(x).sum(), None, cell.trainable_params())
    given = to_mindspore(x)

    def step_of_pytorch():
        network(x).sum().backward()
        network.zero_grad(set_to_none=True)

    def step_of_mindspore():
        return [gradient.asnumpy() for gradient in step(given)]

    for one in (step_of_pytorch, step_of_mindspore):
        one()
    # Some of the last things that PyTorch has, MindSpore has.
    assert most_bytes(step_of_mindspore) <= most_bytes(step_of_pytorch)


@pytest.mark.full
def test_large_steps_keep_no_memory():
    """What is kept for a gradient goes back to the system, and not to a heap that only grows."""
    network = nn.Sequential(nn.Linear(512, 512), nn.GELU(), nn.Linear(512, 512))
    cell = module(network, (torch.ones(4096, 512),))
    step = ms.grad(lambda x: cell(x).sum())
    x = mint.ones((4096, 512))

    def megabytes_after(count):
        for _ in range(count):
            step(x).asnumpy()
        pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6

    first = megabytes_after(40)
    assert megabytes_after(120) - first < 200

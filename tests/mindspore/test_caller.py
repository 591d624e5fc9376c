"""The native caller: kernels in PyNative mode, the same with it and without it.

The whole suite runs with it and, with ATEN_BRIDGE_NATIVE_CALLER=0, without. What is here runs once
more in a process in which MindSpore runs each operator at once (ATEN_BRIDGE_TEST_BLOCKING=1).
"""

import ctypes
import gc
import importlib.util
import os
import resource
import shutil
import subprocess
import sys
import types
import weakref
from pathlib import Path

import mindspore as ms
import numpy as np
import pytest
import torch
from host import GRADIENTS, KERNELS, MINDSPORE, assert_same, bridge_error, error_text
from mindspore import mint, nn, ops
from mindspore.common.api import _pynative_executor

from aten_bridge import _places
from aten_bridge.mindspore import kernel, native_caller, operator
from aten_bridge.mindspore._caller import NAME, _check_interface, prepared_path, takes_calls

IS_ON = os.environ.get("ATEN_BRIDGE_NATIVE_CALLER") != "0"
IS_BLOCKING = os.environ.get("ATEN_BRIDGE_TEST_BLOCKING") == "1"
pytestmark = pytest.mark.usefixtures("pynative")
needs_caller = pytest.mark.skipif(not IS_ON, reason="it is turned off")


def leaky_relu(**options):
    return kernel(f"{GRADIENTS}:LeakyRelu", negative_slope=0.5, **options)


def expected(x):
    return np.where(x > 0, x, x * np.float32(0.5)).astype(x.dtype)


def numbers(*shape, dtype=np.float32):
    return (np.arange(np.prod(shape), dtype=np.float32).reshape(shape) - 7).astype(dtype)


def run_python(script, **variables):
    return subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


# ===--- which one, and why not ---===


@needs_caller
@pytest.mark.parametrize(
    "block", ["ms.runtime.launch_blocking()", "ms.set_context(pynative_synchronize=True)"]
)
def test_mindspore_may_begin_to_block_while_calls_are_queued(block):
    script = f"""
import mindspore as ms, numpy as np
from aten_bridge.mindspore import operator
sort = operator("aten::sort", dim=0)
x = ms.Tensor(np.arange(200000, dtype=np.float32) % 7)
sort(x)[0].asnumpy()
results = [sort(x)[0] for _ in range(40)]
{block}
print(sum(int(one.asnumpy()[-1]) for one in results))
"""
    assert run_python(script) == "240\n"


@needs_caller
def test_it_is_back_after_an_error_in_a_cell_of_another_precision():
    class Cell(nn.Cell):
        def construct(self, x):
            raise RuntimeError("an error of the network's")

    assert native_caller().path is not None
    with pytest.raises(RuntimeError, match="of the network's"):
        Cell().to_float(ms.float16)(ms.Tensor([1.0]))
    assert not takes_calls()
    _pynative_executor.clear_res()  # as ms.jit does after an error
    assert takes_calls()


def test_says_which_one_it_is():
    found = native_caller()
    if IS_ON:
        assert found
        assert (found.path.name, found.reason) == (NAME, "")
    else:
        off = "the variable ATEN_BRIDGE_NATIVE_CALLER turns it off"
        assert (found.path, found.reason) == (None, off)


@needs_caller
def test_two_files_of_it_work_in_one_process(tmp_path):
    assert leaky_relu()(ms.Tensor(numbers(4))) is not None
    path = shutil.copy(native_caller().path, tmp_path / "copied.so")
    spec = importlib.util.spec_from_file_location("aten_bridge_caller", path)
    spec.loader.exec_module(importlib.util.module_from_spec(spec))


@needs_caller
def test_calls_kernels_in_pynative_mode():
    operator = leaky_relu()
    x = ms.Tensor(numbers(4))
    operator(x)
    assert operator._function is not None
    assert_same(operator._function(x), expected(numbers(4)))


SCRIPT = f"""
import mindspore as ms, numpy as np
from aten_bridge.mindspore import kernel, native_caller
print(kernel("{GRADIENTS}:LeakyRelu", negative_slope=0.5)(ms.Tensor(np.float32([-2, 2]))))
print(native_caller().reason)
"""


def test_without_it_kernels_are_called_through_custom(tmp_path):
    missing, broken = tmp_path / "missing.so", tmp_path / "broken.so"
    broken.write_text("no library")
    result, reason = run_python(
        SCRIPT, ATEN_BRIDGE_NATIVE_CALLER="1", ATEN_BRIDGE_CALLER=str(missing)
    ).splitlines()
    assert result == "[-1.  2.]"
    assert reason == f"{missing}: there is no such file; correct the variable ATEN_BRIDGE_CALLER"
    result, reason = run_python(
        SCRIPT, ATEN_BRIDGE_NATIVE_CALLER="1", ATEN_BRIDGE_CALLER=str(broken)
    ).splitlines()
    assert result == "[-1.  2.]"
    assert reason == f"it cannot be used: {broken}: file too short"


def test_each_change_of_its_source_asks_for_another_one(tmp_path, monkeypatch):
    for path in _places.caller_source().parent.glob("*.[ch]*"):
        shutil.copy(path, tmp_path)
    own = prepared_path()
    monkeypatch.setattr(_places, "caller_source", lambda: tmp_path / "module.cpp")
    assert prepared_path() == own
    files = [*tmp_path.iterdir(), tmp_path / "another.h"]
    paths = {own}
    for path in files:
        with path.open("a") as file:
            file.write("\n// changed\n")
        paths.add(prepared_path())
    assert len(paths) == 1 + len(files)


def test_a_module_of_another_version_is_refused():
    with pytest.raises(ImportError) as error:
        _check_interface(types.SimpleNamespace(), Path("old.so"))
    assert str(error.value) == (
        "old.so is of another version of aten_bridge; `aten-bridge prepare-mindspore` makes one"
    )


@needs_caller
@pytest.mark.full
@pytest.mark.skipif(IS_BLOCKING, reason="it is such a process")
def test_the_same_where_mindspore_runs_operators_at_once():
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            str(Path(__file__)),
            "-m",
            "not full",
        ],
        env={**os.environ, "ATEN_BRIDGE_TEST_BLOCKING": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout


# ===--- inputs ---===


def test_inputs_of_any_strides_arrive_row_major():
    operator, x = leaky_relu(), numbers(6, 8)
    y = ms.Tensor(x)
    for _ in range(2):  # the second is like the first
        assert_same(operator(y), expected(x))
        assert_same(operator(y.T), expected(x.T))
        assert_same(operator(mint.transpose(y + 0, 0, 1)), expected(x.T))
        assert_same(operator(y[1:4]), expected(x[1:4]))
        assert_same(operator(y[2:5, 3:7]), expected(x[2:5, 3:7]))
        assert_same(operator(y[3]), expected(x[3]))
        assert_same(operator(y[:, ::2]), expected(x[:, ::2]))
        assert_same(operator(mint.broadcast_to(y[:1], (3, 8))), expected(x[[0, 0, 0]]))


def test_shapes_and_dtypes_that_change():
    operator = leaky_relu()
    for _ in range(2):
        for shape in ((), (0,), (2, 0, 3), (1,), (3,), (2, 3), (1, 2, 3, 4)):
            for dtype in (np.float32, np.float64):
                x = numbers(*shape, dtype=dtype)
                assert_same(operator(ms.Tensor(x)), expected(x))
    x = ms.Tensor(numbers(4), ms.bfloat16)
    assert operator(x).dtype == ms.bfloat16
    assert_same(operator(x).astype(ms.float32), expected(numbers(4)))


def test_inputs_that_mindspore_computes_meanwhile():
    """MindSpore runs them in other threads: a call must not come before them, nor behind."""
    operator, matmul = leaky_relu(), kernel(f"{GRADIENTS}:Matmul")
    x = np.random.default_rng(0).standard_normal((300, 300)).astype(np.float32)
    y = ms.Tensor(x)
    custom = ops.Custom(f"{GRADIENTS}:Matmul", lambda a, b: a, lambda a, b: a, func_type="aot")

    @ms.jit
    def compiled(a, b):
        return mint.matmul(a, b)

    product = expected(x @ x)
    wanted = expected(product @ x)
    for multiply in (matmul, custom, mint.matmul, ops.matmul, compiled):
        for _ in range(3):
            result = operator(multiply(operator(multiply(y, y)), y))
            np.testing.assert_allclose(result.asnumpy(), wanted, rtol=1e-3, atol=1e-2)
    written = ms.Parameter(ms.Tensor(np.zeros_like(x)))
    ops.assign(written, y)
    result = operator(matmul(written, y))
    ops.assign(written, y + 1)
    np.testing.assert_allclose(result.asnumpy(), product, rtol=1e-3, atol=1e-2)


def test_an_input_that_the_kernel_writes():
    operator = kernel(f"{KERNELS}:WriteInput", out_shape=(3,), out_dtype=ms.float32)
    for _ in range(2):
        x = ms.Tensor(np.float32([1, 2, 3]))
        operator(x).asnumpy()
        assert x.asnumpy().tolist() != [1, 2, 3]


def test_none_numbers_and_lists():
    given = kernel(f"{MINDSPORE}:SumOfGiven")
    join = kernel(f"{MINDSPORE}:Join")
    x, y = ms.Tensor(numbers(3)), ms.Tensor(numbers(3) * 2)
    for _ in range(2):
        assert_same(given(x), numbers(3))
        assert_same(given(None, y), numbers(3) * 2)
        assert_same(given(x, None, y), numbers(3) * 3)
        one = ms.Tensor(np.float32([1]))
        assert_same(join(one, (x, y), one), np.float32([*numbers(3), *numbers(3) * 2, 1]))
        assert_same(join(one, [y], one), np.float32([*numbers(3) * 2, 1]))


# ===--- gradients ---===


def test_gradients_of_every_order():
    cube = kernel(f"{GRADIENTS}:Cube", grad=("CubeGrad", "CubeGradGrad", "CubeGradGradGrad"))
    x = np.float32([1, 2, -3])

    def first(a):
        return ms.grad(lambda b: cube(b).sum())(a)

    def second(a):
        return ms.grad(lambda b: first(b).sum())(a)

    for _ in range(2):
        assert_same(first(ms.Tensor(x)), 3 * x**2)
        assert_same(second(ms.Tensor(x)), 6 * x)
        assert_same(ms.grad(lambda b: second(b).sum())(ms.Tensor(x)), np.full(3, 6, np.float32))


def test_gradients_among_mindspores_own():
    operator = leaky_relu(grad="LeakyReluGrad")
    x = np.float32([1, -2, 3, -4])
    slope = np.where(x > 0, 1, 0.5).astype(np.float32)
    w = ms.Parameter(ms.Tensor(x * 2), name="w")
    for _ in range(3):
        y = ms.Tensor(x)
        assert_same(ms.grad(lambda a: operator(a * 2) + 1)(y), 2 * slope)
        assert_same(ms.grad(lambda a: operator(mint.exp(a * 0)) * operator(a))(y), slope)
        assert_same(
            ms.grad(lambda a: operator(a) * ops.stop_gradient(operator(a)))(y), slope * expected(x)
        )
        assert_same(ms.grad(lambda a: operator(ops.stop_gradient(a)) + a)(y), np.ones_like(x))
        value, gradients = ms.value_and_grad(lambda a: operator(a * w).sum(), None, [w])(y)
        assert_same(value, (2 * x * x).sum())
        assert_same(gradients[0], x)
        value, gradient = ms.value_and_grad(lambda a: operator(operator(a)))(y)
        assert_same(value, expected(expected(x)))
        assert_same(gradient, slope * slope)
        results, pull = ms.vjp(lambda a: operator(a), y)
        assert_same(results, expected(x))
        assert_same(pull(ms.Tensor(x))[0], slope * x)


def test_jacobians():
    """MindSpore compiles these, in PyNative mode too."""
    operator = leaky_relu(grad="LeakyReluGrad")

    def call(a):
        return operator(a)

    jacobian = ms.jacrev(call)(ms.Tensor(np.float32([1, -2, 3])))
    assert_same(jacobian, np.diag(np.float32([1, 0.5, 1])))


def test_gradients_in_a_program_that_has_operators_run_at_once_later():
    x, differentiable = numbers(8), leaky_relu(grad="LeakyReluGrad")
    try:
        for i in range(400):
            ms.set_context(pynative_synchronize=i % 2 == 1)
            gradient = ms.grad(lambda a: (differentiable(a) * 2).sum())(ms.Tensor(x))
            np.testing.assert_array_equal(gradient.asnumpy(), np.where(x > 0, 2, 1), str(i))
    finally:
        ms.set_context(pynative_synchronize=False)


def test_gradients_of_long_mixed_networks():
    """MindSpore records its own operators in a thread that a call does not wait for."""
    leaky, matmul = (
        leaky_relu(grad="LeakyReluGrad"),
        kernel(f"{GRADIENTS}:Matmul", grad="MatmulGrad"),
    )
    w, v = (ms.Parameter(ms.Tensor(numbers(4, 4) / k)) for k in (50, 70))

    def loss_of(relu, multiply):
        def loss(x):
            a = relu(multiply(mint.add(x, w), v))
            b = relu(mint.mul(a, w))
            c = mint.tanh(relu(multiply(relu(b + a), x) * 0.1))
            with ms._no_grad():
                d = relu(c)
            return (relu(c + d + ops.stop_gradient(relu(c))) * w).sum()

        return ms.value_and_grad(loss, 0, [w, v])

    steps = (
        loss_of(leaky, matmul),
        loss_of(lambda a: mint.where(a > 0, a, a * 0.5), mint.matmul),
    )
    for i in range(30):
        x = ms.Tensor(numbers(4, 4) * (i - 15) / 100)
        (value, (by_x, by_weights)), (other, (other_by_x, other_by_weights)) = (
            step(x) for step in steps
        )
        pairs = [
            (value, other),
            (by_x, other_by_x),
            *zip(by_weights, other_by_weights, strict=True),
        ]
        for one, another in pairs:
            np.testing.assert_allclose(one.asnumpy(), another.asnumpy(), rtol=1e-4, atol=1e-5)


@needs_caller
def test_gradients_are_computed_without_python():
    """Once Python has called the gradient's kernel, the caller does."""
    op, x = leaky_relu(grad="LeakyReluGrad"), ms.Tensor(numbers(16))
    step = ms.grad(lambda a: op(a))
    step(x)
    asked = []
    object.__setattr__(op, "differentiate", asked.append)
    assert_same(step(x), np.where(numbers(16) > 0, 1, 0.5).astype(np.float32))
    assert not asked


@needs_caller
def test_a_gradients_attribute_that_changes_later():
    cube = kernel(f"{GRADIENTS}:LeakyRelu", negative_slope=0.5, grad="LeakyReluGrad")
    x = ms.Tensor(np.float32([-1, 1]))
    for slope in (0.5, 0.25):
        cube.add_prim_attr("negative_slope", slope)
        for _ in range(2):
            assert_same(ms.grad(lambda a: cube(a))(x), np.float32([slope, 1]))


def test_gradients_of_lists_and_several_results():
    everything = kernel(f"{GRADIENTS}:Cat", grad="CatGrad")
    topk = kernel(f"{GRADIENTS}:Topk", k=1, grad="TopkGrad")
    x, y = ms.Tensor(np.float32([1, 2])), ms.Tensor(np.float32([3, 4, 5]))
    for _ in range(2):
        step = ms.grad(lambda a, b: (everything((a, b)) * everything([a, b])).sum(), (0, 1))
        for gradient, one in zip(step(x, y), (x, y), strict=True):
            assert_same(gradient, 2 * one.asnumpy())
        assert_same(ms.grad(lambda a: topk(a)[0].sum())(y), np.float32([0, 0, 1]))


def test_hooks_and_cells_that_are_computed_again():
    operator, seen = leaky_relu(grad="LeakyReluGrad"), []

    class Net(ms.nn.Cell):
        def construct(self, x):
            return operator(mint.mul(x, x))

    net = Net()
    net.recompute()
    x = np.float32([1, -2])
    assert_same(ms.grad(lambda a: net(a).sum())(ms.Tensor(x)), 2 * x)

    def hooked(a):
        y = operator(a)
        y.register_hook(lambda gradient: seen.append(gradient.asnumpy()))
        return (y * 3).sum()

    assert_same(ms.grad(hooked)(ms.Tensor(x)), np.float32([3, 1.5]))
    assert [one.tolist() for one in seen] == [[3, 3]]


def test_no_gradient_is_an_error_where_it_is_needed():
    operator, x = leaky_relu(), ms.Tensor(numbers(2))
    assert error_text(ValueError, lambda: ms.grad(lambda a: operator(a))(x)) == (
        "LeakyRelu: expected an operator with a gradient kernel where a network is differentiated, "
        'got one without; name one with grad="...", as in kernel("./a.so:Cube", grad="CubeGrad")'
    )
    assert_same(operator(x), expected(numbers(2)))


# ===--- errors, threads, memory ---===


def test_errors_of_a_kernel():
    operator = kernel(f"{KERNELS}:ThrowRuntimeError", out_shape=(2,), out_dtype=ms.float32)
    x = ms.Tensor(numbers(2))
    for _ in range(2):
        run = (lambda: operator(x)) if IS_BLOCKING else (lambda: operator(x).asnumpy())
        assert bridge_error(run) == (
            "ThrowRuntimeError: thrown by the kernel (input 0: float32 [2]; output 0: float32 [2])"
        )
    assert_same(leaky_relu()(x), expected(numbers(2)))


def test_faults_of_inputs_are_told_at_the_line():
    operator, x = leaky_relu(), ms.Tensor(numbers(2))
    operator(x)
    text = "LeakyRelu: expected 1 input, got 2"
    assert error_text(TypeError, lambda: operator(x, x)) == text
    assert error_text(TypeError, lambda: operator(np.zeros(2))) == (
        "LeakyRelu: input 0: expected a tensor, got a NumPy array; give it as "
        "mindspore.Tensor(array)"
    )


def test_several_threads(in_threads):
    operator, faults = leaky_relu(), []

    def work(number):
        x = numbers(number + 1, 5)
        for _ in range(50):
            if not np.array_equal(operator(ms.Tensor(x)).asnumpy(), expected(x)):
                faults.append(number)

    in_threads(work)
    assert not faults


@needs_caller
def test_side_effects_but_not_states_that_calls_change():
    draw, count = operator("aten::rand_like"), kernel(f"{MINDSPORE}:Counter")
    x = ms.Tensor(numbers(8))
    torch.manual_seed(3)
    wanted = [torch.rand(8).numpy() for _ in range(4)]
    torch.manual_seed(3)
    for one in wanted:
        assert_same(draw(x), one)
    assert draw._function is not None
    assert [count(x).asnumpy()[0] for _ in range(3)] == [0, 1, 2]
    assert count._caller is False


class MallocInfo(ctypes.Structure):
    """What mallinfo2() of the C library returns."""

    _fields_ = (("numbers", ctypes.c_size_t * 10),)

    @property
    def in_use(self):
        return self.numbers[4] + self.numbers[7]  # mapped, and of the heaps


@needs_caller
@pytest.mark.full
@pytest.mark.nightly
def test_gradients_keep_no_memory():
    """MindSpore (2.10) keeps memory of each step, with kernels no more than with its own."""
    malloc_info = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if malloc_info is None:
        pytest.skip("this C library has no mallinfo2()")
    malloc_info.restype = MallocInfo
    x, w = ms.Tensor(numbers(64, 64)), ms.Parameter(ms.Tensor(numbers(64, 64)))

    def kept(function, count):
        """Bytes that a step keeps, which calls the function five times."""

        def in_use():
            gc.collect()
            return malloc_info().in_use

        def loss(a):
            for _ in range(5):
                a = function(a)
            return mint.mul(a, w).sum()

        step = ms.value_and_grad(loss, 0, [w])
        before = 0
        for i in range(-300, count):
            value, _ = step(x)
            if i % 100 == 0:
                value.asnumpy()
                before = in_use() if i == 0 else before
        value.asnumpy()
        return (in_use() - before) / count

    own = kept(mint.nn.functional.relu, 1000)
    # A tensor that one step in ten kept would be a hundred bytes, without its elements.
    assert kept(leaky_relu(grad="LeakyReluGrad"), 20_000) < own + 100


@needs_caller
def test_calls_keep_no_memory():
    operator = leaky_relu(grad="LeakyReluGrad")
    x = ms.Tensor(numbers(64, 64))
    step = ms.grad(lambda a: operator(a))

    def calls(forward, backward):
        for i in range(forward):
            y = operator(x)
            if i % 100 == 0:
                y.asnumpy()
        for _ in range(backward):
            step(x).asnumpy()
        gc.collect()
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    before = calls(2000, 50)
    # 16 KiB a result: what one in a hundred kept would be 16 MiB.
    assert calls(100_000, 300) - before < 8 * 1024


def test_an_operator_goes_with_its_last_name():
    operator = leaky_relu(grad="LeakyReluGrad")
    x = ms.Tensor(numbers(2))
    operator(x)
    ms.grad(operator.__call__)(x).asnumpy()
    gone = weakref.ref(operator)
    del operator
    gc.collect()
    assert gone() is None


@needs_caller
def test_shapes_beyond_the_kept_ones_make_others_forgotten():
    op = leaky_relu()
    for count in range(1, 1300):
        x = numbers(count)
        if count % 400 == 1:
            np.testing.assert_array_equal(op(ms.Tensor(x)).asnumpy(), expected(x))
        else:
            op(ms.Tensor(x))
    assert 0 < op._caller.signature_count() <= 1024

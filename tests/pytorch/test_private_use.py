"""A device of somebody else's, PrivateUse1 named "npu" (npu_backend.cpp): in other processes."""

import pytest

NPU = """
import ctypes, types, torch
torch.ops.load_library(library.replace("test_pytorch", "npu_backend"))
ctypes.CDLL(library.replace("test_pytorch", "npu_backend")).register_npu()
module = types.ModuleType("npu")
module._lazy_init = lambda: None
module.is_available = lambda: True
module.device_count = lambda: 1
module.current_device = lambda: 0
module.get_amp_supported_dtype = lambda: [torch.half, torch.bfloat16]
torch._register_device_module("npu", module)
torch.utils.generate_methods_for_privateuse1_backend()
x = torch.linspace(-1, 1, 6).reshape(2, 3)
on_npu = x.to("npu").requires_grad_()
assert on_npu.device == torch.device("npu:0")
"""


def test_a_kernel_registered_for_it(run_python, build):
    """Ascend's sample: forward, backward, Meta and torch.compile."""
    run_python(
        f"""{NPU}
torch.ops.load_library({str(build / "examples/add_custom/add_custom.so")!r})
y = torch.ops.myops.add_custom(on_npu, on_npu)
assert y.device == on_npu.device
y.sum().backward()
assert on_npu.grad.device == on_npu.device
assert torch.equal(y.detach().cpu(), x + x), y.cpu()
assert torch.equal(on_npu.grad.cpu(), torch.full((2, 3), 2.0))
meta = torch.ops.myops.add_custom(x.to("meta"), x.to("meta"))
assert meta.shape == x.shape
call = lambda x: torch.ops.myops.add_custom(x, x)
compiled = torch.compile(call, backend="aot_eager", fullgraph=True)
other = x.to("npu").requires_grad_()
z = compiled(other)
z.sum().backward()
assert z.device == other.device
assert torch.equal(z.detach().cpu(), x + x)
assert torch.equal(other.grad.cpu(), torch.full((2, 3), 2.0))
"""
    )


@pytest.mark.parametrize("name", ["leaky_relu", "swish"])
def test_others_come_by_the_backends_fallback_or_by_pytorchs_operators(run_python, name):
    run_python(
        f"""{NPU}
torch.ops.load_library(library)
operator = torch.ops.bridge_test.{name}
y = operator(on_npu)
y.sum().backward()
leaf = x.clone().requires_grad_()
expected = operator(leaf)
expected.sum().backward()
assert y.device == on_npu.device
torch.testing.assert_close(y.detach().cpu(), expected.detach())
torch.testing.assert_close(on_npu.grad.cpu(), leaf.grad)
"""
    )


def test_autocast(run_python):
    run_python(
        f"""{NPU}
torch.ops.load_library(library)
operators = torch.ops.bridge_test
compiled = torch.compile(lambda x: operators.lowered(x), backend="aot_eager", fullgraph=True)
for lowered in (operators.lowered, compiled):
    for dtype in (torch.half, torch.bfloat16):
        leaf = x.to("npu").requires_grad_()
        with torch.autocast("npu", dtype):
            y = lowered(leaf)
        y.sum().backward()
        assert (y.dtype, y.device) == (dtype, leaf.device)
        assert torch.equal(y.detach().cpu(), x.to(dtype) * 2)
        assert leaf.grad.dtype == torch.float32
        assert torch.equal(leaf.grad.cpu(), torch.full((2, 3), 2.0))
with torch.autocast("npu"):  # without the option it changes nothing, nor tensors elsewhere
    assert operators.raised(on_npu.half()).dtype == torch.float32
    assert operators.leaky_relu(on_npu).dtype == torch.float32
    assert operators.lowered(x).dtype == torch.float32
with torch.autocast("cpu"):
    assert operators.lowered(on_npu).dtype == torch.float32
"""
    )


def test_workspaces_are_memory_of_the_device(run_python):
    run_python(
        f"""{NPU}
torch.ops.load_library(library)
is_last = ctypes.CDLL(library.replace("test_pytorch", "npu_backend")).npu_allocated_last
is_last.argtypes = [ctypes.c_void_p]
assert is_last(torch.ops.bridge_test.scratch(on_npu.detach()).item())
assert not is_last(torch.ops.bridge_test.scratch(x).item())
"""
    )


def test_the_backends_way_is_there_again_when_a_library_is_replaced(run_python, build):
    run_python(
        f"""{NPU}
from aten_bridge.torch import load
of = {str(build / "tests/test_replaced")!r} + "{{}}.so"
load(of.format(1))
second = load(of.format(2), replace=True)
y = second.twice(on_npu.detach())
assert y.device == on_npu.device
assert torch.equal(y.cpu(), x + x + 1)
"""
    )


def test_autocast_is_that_of_the_library_that_replaced_the_other(run_python, build):
    run_python(
        f"""{NPU}
from aten_bridge.torch import load
of = {str(build / "tests/test_replaced")!r} + "{{}}.so"
for version, on_cpu, elsewhere in (
    (1, torch.float32, torch.float32),
    (2, torch.bfloat16, torch.half),
    (1, torch.float32, torch.float32),
    (2, torch.bfloat16, torch.half),
):
    twice = load(of.format(version), replace=True).twice
    with torch.autocast("cpu", torch.bfloat16), torch.autocast("npu", torch.half):
        assert twice(x).dtype == on_cpu
        assert twice(on_npu.detach()).dtype == elsewhere
"""
    )

"""Kernels for CUDA in a MindSpore on the CPU, and kernels for the CPU in one on the GPU."""

import os
import re
import subprocess
import sys
from pathlib import Path

import mindspore as ms
import pytest
from host import BUILD, LEAKY_RELU, Net, bridge_error, call, error_text

from aten_bridge.mindspore import kernel

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(
        os.environ.get("ATEN_BRIDGE_CUDA") != "ON", reason="kernels for CUDA are not built here"
    ),
]

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
LEAKY_RELU_CUDA = BUILD / "examples/leaky_relu/leaky_relu_cuda.so"
X = ms.Tensor([1, 2, 3], ms.float32)


def test_kernel_refuses_a_kernel_for_cuda_on_the_cpu(mode):
    operator = kernel(f"{LEAKY_RELU_CUDA}:LeakyRelu")
    assert error_text(ValueError, lambda: Net(operator)(X)) == (
        "LeakyRelu: expected a program on the GPU, got device_target 'CPU'; the kernel was built"
        " for CUDA: use one that was built for the CPU"
    )


def test_a_kernel_for_cuda_on_the_cpu_says_so(mode):
    error = bridge_error(
        lambda: call("LeakyRelu", X, library=LEAKY_RELU_CUDA).asnumpy(), LEAKY_RELU_CUDA
    )
    memory = (
        ": expected memory of a CUDA device, got memory of the CPU with float32 [3]; this kernel"
        " was built for CUDA: run the operator on the GPU, or build the kernel for the CPU"
    )
    without_gpu = (
        r"LeakyRelu: expected a CUDA device, got (none|cudaError\w+ \([^()]+\)); this kernel was"
        r" built for CUDA: run the program where there is a GPU, or build the kernel for the CPU"
    )
    assert error == f"LeakyRelu: input 0{memory}\nLeakyRelu: output 0{memory}" or re.fullmatch(
        without_gpu, error
    )


def test_kernel_sets_the_device_of_a_kernel_for_the_cpu(monkeypatch):
    assert "primitive_target" not in kernel(f"{LEAKY_RELU}:LeakyRelu").attrs
    monkeypatch.setattr(ms, "get_context", {"device_target": "GPU"}.get)
    assert kernel(f"{LEAKY_RELU}:LeakyRelu").attrs["primitive_target"] == "CPU"
    assert "primitive_target" not in kernel(f"{LEAKY_RELU_CUDA}:LeakyRelu").attrs


@pytest.mark.parametrize(
    "script",
    [
        "leaky_relu/leaky_relu_gpu.py",
        "leaky_relu/leaky_relu_cpu_in_gpu.py",
        "squared_relu/squared_relu.py",
    ],
)
def test_scripts_for_the_gpu_get_as_far_as_mindspore_lets_them(script):
    """MindSpore is one for the CPU here. What stands behind set_device() is not run."""
    done = subprocess.run(
        [sys.executable, EXAMPLES / script],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 1
    assert 'ms.set_device("GPU")' in done.stdout
    assert "Unsupported device target GPU" in done.stdout

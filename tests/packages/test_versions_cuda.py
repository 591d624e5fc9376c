"""Kernels for CUDA for several versions of PyTorch: compiled, linked, and opened without a GPU."""

import os
import re
import shutil
import sys

import pytest
import torch
from conftest import HERE, SOURCE, TORCH, built_for, run, runpaths, without_runpath

from aten_bridge import build

KERNELS = """
#include <ATen/ops/add.h>
#include <aten_bridge.h>
#include <c10/cuda/CUDAStream.h>

__global__ void add_one(float* y) { *y += 1; }

void increment(const at::Tensor& x, at::Tensor& y) {
  at::add_out(y, x, x);
  add_one<<<1, 1, 0, c10::cuda::getCurrentCUDAStream()>>>(y.data_ptr<float>());
}
ATEN_BRIDGE_EXPORT(Increment, increment, aten_bridge::meta());
"""
VERSIONS = [HERE, "99.0"]


@pytest.fixture
def source(tmp_path):
    """Kernels for CUDA, where they can be built."""
    if shutil.which("nvcc") is None or torch.version.cuda is None:
        pytest.skip("needs nvcc, and a PyTorch with CUDA")
    release = re.search(r"release (\d+)", run("nvcc", "--version").stdout)[1]
    if torch.version.cuda.split(".")[0] != release:
        pytest.skip("needs an nvcc of PyTorch's CUDA")
    path = tmp_path / "my_ops.cu"
    path.write_text(KERNELS)
    return path


def check_needed(file):
    """What PyTorch has, and nothing of the toolkit's."""
    text = run("readelf", "--dynamic", "--wide", file).stdout
    names = re.findall(r"\(NEEDED\).*\[(lib(?:c10|torch|cu).*)\]", text)
    cudart = f"libcudart.so.{torch.version.cuda.split('.')[0]}"
    ours = ["libc10.so", "libc10_cuda.so", cudart, "libtorch_cpu.so", "libtorch_cuda.so"]
    assert sorted(names) == sorted(ours)


OPEN = """
import sys
from aten_bridge._library import open_library, parse_target
path = sys.argv[1]
file = parse_target(f"{path}:Increment")[0]
if len(sys.argv) > 2:
    open_library(sys.argv[2])  # the process has PyTorch, and none of its CUDA
library = open_library(file)
print(file, library.function("Increment") is not None, "torch" in sys.modules)
"""


@pytest.mark.full
def test_libraries_for_several_versions(kept, source, tmp_path):
    path = build.load("my_ops", source, hosts="pytorch", pytorch=VERSIONS)
    files = [tmp_path / f"my_ops.torch{version}.so" for version in VERSIONS]
    for file in files:
        shutil.copy(path.replace("my_ops.so", file.name), file)
        check_needed(file)
    assert runpaths(files[0])[0].split(":")[0] == str(TORCH / "lib")
    assert runpaths(files[1]) == []

    # Built elsewhere, it finds PyTorch's libraries, and those of CUDA where PyTorch does.
    without_runpath(files[0])
    environment = {"PYTHONPATH": str(SOURCE / "python")}
    for_cpu = f"{os.environ['ATEN_BRIDGE_BUILD_DIR']}/tests/test_pytorch.so"
    for beside in ([], [for_cpu]):
        done = run(sys.executable, "-c", OPEN, tmp_path / "my_ops", *beside, env=environment)
        assert done.stdout == f"{files[0]} True False\n"
    assert built_for(*files) == VERSIONS
    done = run(sys.executable, "-m", "aten_bridge", "check", tmp_path / "my_ops", env=environment)
    for name in ("libc10_cuda.so", "libtorch_cuda.so"):
        assert f"  needs {name}: {TORCH}/lib/{name}\n" in done.stdout
    (cudart,) = re.findall(r"  needs libcudart\.so\.\d+: (.*)\n", done.stdout)
    assert cudart.startswith(f"{TORCH.parent}/")  # where the system has one, too
    assert "  Increment, on CUDA, in MindSpore, and PyTorch as torch.ops." in done.stdout
    assert "not found" not in done.stdout


@pytest.mark.full
def test_libraries_of_a_wheel_are_built_by_cmake(kept, source, tmp_path):
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\n"
        "project(user LANGUAGES CXX CUDA)\n"
        f"add_subdirectory({SOURCE} aten_bridge)\n"
        "set(CMAKE_INSTALL_PREFIX /packages)\n"
        "set(SKBUILD_PLATLIB_DIR /packages)\n"
        "set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)\n"
        "aten_bridge_add_kernel(my_ops SOURCES my_ops.cu HOSTS PYTORCH INSTALL_DIR my_ops\n"
        f"  PYTORCH_VERSIONS {' '.join(VERSIONS)})\n"
    )
    folder = tmp_path / "build"
    python = f"-DPython3_EXECUTABLE={sys.executable}"
    run(os.environ.get("CMAKE", "cmake"), "-S", tmp_path, "-B", folder, "-G", "Ninja", python)
    run("ninja", "-C", folder, "my_ops")
    major = torch.version.cuda.split(".")[0]
    for version in VERSIONS:
        check_needed(folder / f"my_ops.torch{version}.so")
        assert runpaths(folder / f"my_ops.torch{version}.so") == [
            f"$ORIGIN/../torch/lib:$ORIGIN/../nvidia/cu{major}/lib:"
            "$ORIGIN/../nvidia/cuda_runtime/lib"
        ]


def test_nvcc_is_looked_for_before_anything_is_downloaded(tmp_path, monkeypatch):
    source = tmp_path / "my_ops.cu"
    source.touch()
    for name in ("CUDACXX", "CUDA_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    text = (
        f"{source}: expected nvcc, which compiles CUDA, got none on PATH; install the CUDA "
        "toolkit, and put nvcc on PATH or name it with the variable CUDACXX"
    )
    with pytest.raises(FileNotFoundError, match=f"^{re.escape(text)}$"):
        build.load("my_ops", source, pytorch="98.7")

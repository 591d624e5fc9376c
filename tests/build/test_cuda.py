"""Kernels for CUDA: what the build links, and what it says where it cannot build them."""

import os
import re
import sys
from importlib import metadata

import pytest
from conftest import CMAKE, SOURCE, TORCH, run

VERSION = re.match(r"[\d.]+", metadata.version("torch"))[0]


def cuda_kernels(build):
    return [
        *(build / "tests/cuda").glob("test_cuda*.so"),
        build / "examples/leaky_relu/leaky_relu_cuda.so",
        build / "examples/squared_relu/squared_relu.so",
        build / "examples/lltm/lltm_cuda.so",
    ]


def needed(path):
    text = run("readelf", "--dynamic", "--wide", path).stdout
    return re.findall(r"\(NEEDED\).*\[(.*)\]", text)


@pytest.mark.full
def test_kernels_for_cuda_need_what_pytorch_needs_and_nothing_twice(build):
    if os.environ.get("ATEN_BRIDGE_CUDA") != "ON":
        pytest.skip("kernels for CUDA are not built here")
    for library in cuda_kernels(build):
        names = [
            name
            for name in needed(library)
            if not re.fullmatch(r"lib(c|m|gcc_s|stdc\+\+|gomp|pthread|dl)\.so\.\d+|ld-.*", name)
        ]
        (cudart,) = (name for name in needed(TORCH / "lib/libc10_cuda.so") if "cudart" in name)
        assert sorted(names) == sorted(
            ["libc10.so", "libc10_cuda.so", "libtorch_cpu.so", "libtorch_cuda.so", cudart]
        )
        # Not in it as well, as nvcc would have it.
        symbols = run("nm", "--dynamic", "--defined-only", library).stdout
        assert "cuda" not in symbols.replace(library.name, "")


def test_kernels_for_cuda_are_not_in_the_way_of_the_others(build):
    assert "libcudart" not in " ".join(needed(build / "examples/leaky_relu/leaky_relu.so"))


def libtorch(folder, cuda_major=None):
    """A libtorch like the one in use, but without CUDA, or with another CUDA."""
    (folder / "lib").mkdir(parents=True)
    (folder / "include").symlink_to(TORCH / "include")
    for name in ("libc10.so", "libtorch_cpu.so"):
        (folder / "lib" / name).symlink_to(TORCH / "lib" / name)
    if cuda_major is not None:
        (folder / "lib/libc10_cuda.so").write_text(f"\nlibcudart.so.{cuda_major}\n")
        (folder / "lib/libtorch_cuda.so").write_text("")
    return folder


def configure(tmp_path, kernel, *options, languages="CXX", env=None):
    (tmp_path / "kernel.cpp").write_text("#include <aten_bridge.h>\n")
    (tmp_path / "kernel.cu").write_text("#include <aten_bridge.h>\n")
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\n"
        f"project(user LANGUAGES {languages})\n"
        f"add_subdirectory({SOURCE} aten_bridge)\n{kernel}\n"
    )
    done = run(CMAKE, "-S", tmp_path, "-B", tmp_path / "build", *options, check=False, env=env)
    return done.returncode, " ".join(done.stdout.split())


def refusal(tmp_path, kernel, *options, **settings):
    failed, text = configure(tmp_path, kernel, *options, **settings)
    assert failed
    return text


def test_a_pytorch_without_cuda_is_a_sentence(tmp_path):
    folder = libtorch(tmp_path / "torch")
    text = refusal(
        tmp_path,
        "aten_bridge_add_kernel(k SOURCES kernel.cpp DEVICE CUDA)",
        f"-DCMAKE_PREFIX_PATH={folder}",
    )
    assert (
        "aten_bridge_add_kernel(k): a kernel for CUDA needs a PyTorch with CUDA, and the one in"
        f" {folder}/lib has none. Install another (see pytorch.org), or point CMAKE_PREFIX_PATH at"
        " it." in text
    )


def test_a_downloaded_pytorch_without_cuda_is_a_sentence(tmp_path):
    folder = libtorch(tmp_path / "torch")
    (folder / "build_only").touch()
    text = refusal(
        tmp_path,
        "aten_bridge_add_kernel(k SOURCES kernel.cpp DEVICE CUDA)",
        f"-DCMAKE_PREFIX_PATH={folder}",
    )
    assert (
        f"aten_bridge_add_kernel(k): a kernel for CUDA needs a PyTorch with CUDA, and PyTorch "
        f"{VERSION}, as pip has downloaded it, has none. Remove {folder}, and let pip find a wheel "
        "for CUDA (see pytorch.org)." in text
    )


def test_a_missing_toolkit_is_a_sentence(tmp_path):
    text = refusal(
        tmp_path,
        "aten_bridge_add_kernel(k SOURCES kernel.cpp DEVICE CUDA)",
        f"-DCMAKE_PREFIX_PATH={libtorch(tmp_path / 'torch', 13)}",
        f"-DCUDAToolkit_ROOT={tmp_path}",
        "-DCMAKE_DISABLE_FIND_PACKAGE_CUDAToolkit=ON",
    )
    assert (
        "aten_bridge_add_kernel(k): a kernel for CUDA needs the CUDA toolkit 13, and there is no"
        " nvcc. Install it and put nvcc on PATH, or name its folder with"
        " -DCUDAToolkit_ROOT=<path>." in text
    )


@pytest.mark.full
def test_another_cuda_than_that_of_pytorch_is_a_sentence(tmp_path):
    if os.environ.get("ATEN_BRIDGE_CUDA") != "ON":
        pytest.skip("there is no nvcc")
    folder = libtorch(tmp_path / "torch", 11)
    text = refusal(
        tmp_path,
        "aten_bridge_add_kernel(k SOURCES kernel.cpp DEVICE CUDA)",
        f"-DCMAKE_PREFIX_PATH={folder}",
    )
    assert re.search(
        r"aten_bridge_add_kernel\(k\): the CUDA toolkit is (\S+), and the PyTorch in "
        rf"{re.escape(str(folder))}/lib was built with CUDA 11: a process can have one of the two\."
        r" Name a toolkit 11 with -DCMAKE_CUDA_COMPILER=<its nvcc>, or install a PyTorch for CUDA"
        r" \1\.",
        text,
    )


@pytest.mark.full
def test_another_cuda_than_that_of_a_downloaded_pytorch_is_a_sentence(tmp_path):
    if os.environ.get("ATEN_BRIDGE_CUDA") != "ON":
        pytest.skip("there is no nvcc")
    folder = libtorch(tmp_path / "torch", 11)
    (folder / "build_only").touch()
    text = refusal(
        tmp_path,
        "aten_bridge_add_kernel(k SOURCES kernel.cpp DEVICE CUDA)",
        f"-DCMAKE_PREFIX_PATH={folder}",
    )
    assert re.search(
        rf"aten_bridge_add_kernel\(k\): the CUDA toolkit is \S+, and PyTorch {VERSION}, as pip "
        r"has downloaded it, was built with CUDA 11: a process can have one of the two\. Name a "
        r"toolkit 11 with -DCMAKE_CUDA_COMPILER=<its nvcc> or with the variable CUDACXX, or leave "
        r"this version out\.",
        text,
    )


@pytest.mark.full
def test_a_cu_source_in_a_project_without_the_language_is_a_sentence(tmp_path):
    if os.environ.get("ATEN_BRIDGE_CUDA") != "ON":
        pytest.skip("there is no nvcc")
    for versions in ("", " PYTORCH_VERSIONS 98.7"):  # which is not looked for
        text = refusal(
            tmp_path,
            f"aten_bridge_add_kernel(k SOURCES kernel.cu{versions})",
            f"-DPython3_EXECUTABLE={sys.executable}",
        )
        assert (
            "aten_bridge_add_kernel(k): a .cu source needs the language CUDA; say so in your"
            " project(user LANGUAGES CXX CUDA)." in text
        )


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            "SOURCES kernel.cu DEVICE CPU",
            "a .cu source makes kernels for CUDA, not for DEVICE CPU; leave DEVICE out, or name the"
            " file .cpp.",
        ),
        ("SOURCES kernel.cpp DEVICE GPU", "DEVICE is CPU or CUDA, not GPU."),
    ],
)
def test_devices_that_cannot_be_are_refused_with_a_message(tmp_path, arguments, sentence):
    text = refusal(
        tmp_path,
        f"aten_bridge_add_kernel(k {arguments})",
        f"-DPython3_EXECUTABLE={sys.executable}",
    )
    assert f"aten_bridge_add_kernel(k): {sentence}" in text


def test_the_project_is_configured_without_nvcc_and_with_a_pytorch_for_the_cpu(tmp_path):
    options = ["-DATEN_BRIDGE_BUILD_EXAMPLES=ON", "-DATEN_BRIDGE_BUILD_TESTS=ON"]
    for folder, reason in {
        libtorch(tmp_path / "cpu"): "PyTorch has no CUDA",
        libtorch(tmp_path / "cuda", 13): "there is no nvcc that works with this C++ compiler",
    }.items():
        done = run(
            *[CMAKE, "-S", SOURCE, "-B", tmp_path / reason, *options],
            *[f"-DCMAKE_PREFIX_PATH={folder}", "-DCMAKE_CUDA_COMPILER=NOTFOUND"],
        )
        assert f"-- Kernels for CUDA are left out: {reason}." in done.stdout


@pytest.mark.full
def test_architectures_are_those_that_cmake_is_told(tmp_path):
    if os.environ.get("ATEN_BRIDGE_CUDA") != "ON":
        pytest.skip("there is no nvcc")
    failed, text = configure(
        tmp_path,
        "aten_bridge_add_kernel(k SOURCES kernel.cu)",
        f"-DPython3_EXECUTABLE={sys.executable}",
        "-DCMAKE_CUDA_ARCHITECTURES=80-real;90",
        "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON",
        languages="CXX CUDA",
    )
    assert not failed, text
    commands = (tmp_path / "build/compile_commands.json").read_text()
    assert re.findall(r"arch=compute_\d+,code=(\S+?)[\" ]", commands) == [
        "[sm_80]",
        "[compute_90,sm_90]",
    ]

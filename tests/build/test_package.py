"""A user's project, tests/package: the bridge as an installed package and as a subdirectory."""

import json
import math
import os
import pathlib
import re
import shutil
import sys

import pytest
from conftest import CMAKE, SOURCE, TORCH, run

PROJECT = SOURCE / "tests/package"


def configure_build_and_test(folder, *options):
    run(CMAKE, "-S", PROJECT, "-B", folder, *options)
    run(CMAKE, "--build", folder)
    run("ctest", "--test-dir", folder, "--no-tests=error", "--output-on-failure")


def use_in_mindspore(library, python_path):
    """Runs the project's script: swish with beta = 2 of 0 and 1."""
    environment = dict(os.environ, PYTHONPATH=str(python_path), GLOG_v="3")
    done = run(sys.executable, PROJECT / "swish.py", library, env=environment, cwd=library.parent)
    numbers = [float(number) for number in done.stdout.strip("[]\n").split()]
    assert numbers == pytest.approx([0, 1 / (1 + math.exp(-2))], rel=1e-6)


def test_find_package_from_an_install_tree_and_libtorch_from_the_prefix_path(tmp_path):
    prefix = tmp_path / "prefix"
    run(CMAKE, "-S", SOURCE, "-B", tmp_path / "bridge")
    run(CMAKE, "--install", tmp_path / "bridge", "--prefix", prefix)
    assert (prefix / "include/single/aten_bridge.h").is_file()
    of_caller = prefix / "share/aten_bridge/python/aten_bridge/caller"
    assert {path.name for path in of_caller.iterdir()} == {
        path.name for path in (SOURCE / "plugin/caller").glob("*.[ch]*")
    }
    configure_build_and_test(
        tmp_path / "build",
        "-DCMAKE_BUILD_TYPE=Release",
        f"-DCMAKE_PREFIX_PATH={prefix};{TORCH}/share/cmake",
        "-DPython3_EXECUTABLE=/nonexistent",
    )

    # Installed, the kernel finds libtorch too.
    run(CMAKE, "--install", tmp_path / "build", "--prefix", tmp_path / "installed")
    run(tmp_path / "build/swish_test", tmp_path / "installed/lib/swish.so")

    # The package brings the Python module.
    use_in_mindspore(tmp_path / "installed/lib/swish.so", prefix / "share/aten_bridge/python")


@pytest.mark.full
def test_add_subdirectory_and_libtorch_from_python(tmp_path):
    configure_build_and_test(
        tmp_path / "build",
        f"-DATEN_BRIDGE_SOURCE_DIR={SOURCE}",
        f"-DPython3_EXECUTABLE={sys.executable}",
    )


def optimisations(folder, *options):
    run(CMAKE, "-S", PROJECT, "-B", folder, "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", *options)
    commands = json.loads((folder / "compile_commands.json").read_text())
    (kernel,) = (c["command"] for c in commands if c["file"].endswith("swish.cpp"))
    return re.findall(r" (-O\w+)", kernel)


def test_build_type_and_flags_decide_how_a_kernel_is_optimised(tmp_path):
    options = [f"-DATEN_BRIDGE_SOURCE_DIR={SOURCE}", f"-DPython3_EXECUTABLE={sys.executable}"]
    for option, expected in {
        "-DCMAKE_BUILD_TYPE=": ["-O2"],
        "-DCMAKE_BUILD_TYPE=Debug": [],
        "-DCMAKE_BUILD_TYPE=Release": ["-O3"],
        "-DCMAKE_CXX_FLAGS=-g -O0": ["-O0"],
    }.items():
        assert optimisations(tmp_path / option, *options, option) == expected


@pytest.mark.full
def test_an_environment_inside_the_project_is_found_after_installation_too(tmp_path):
    project = tmp_path / "a project"
    shutil.copytree(PROJECT, project)
    packages = project / ".venv/lib"
    packages.mkdir(parents=True)
    (packages / "torch").symlink_to(TORCH)
    run(
        *[CMAKE, "-S", project, "-B", project / "build", "-DCMAKE_BUILD_TYPE=Debug"],
        *[f"-DATEN_BRIDGE_SOURCE_DIR={SOURCE}", f"-DCMAKE_PREFIX_PATH={packages}"],
    )
    run(CMAKE, "--build", project / "build")
    run(CMAKE, "--install", project / "build", "--prefix", tmp_path / "installed")
    run(project / "build/swish_test", tmp_path / "installed/lib/swish.so")


def test_an_environment_activated_later_is_taken(tmp_path):
    """After a first try without PyTorch: nothing of it is remembered."""
    options = ["-S", PROJECT, "-B", tmp_path / "build", f"-DATEN_BRIDGE_SOURCE_DIR={SOURCE}"]
    without = tmp_path / "python3"
    without.write_text("#!/bin/sh\nexit 1\n")
    without.chmod(0o755)
    environment = dict(os.environ, PATH=f"{tmp_path}:{os.environ['PATH']}", CMAKE_PREFIX_PATH="")
    done = run(CMAKE, *options, env=environment, check=False)
    assert f"and none in {without}: activate an environment" in " ".join(done.stdout.split())
    environment["PATH"] = f"{pathlib.Path(sys.executable).parent}:{environment['PATH']}"
    run(CMAKE, *options, env=environment)


def test_a_target_without_pytorch_is_told_why(tmp_path):
    """CMake's own error names Libtorch::cpu alone."""
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(user LANGUAGES CXX)\n"
        "find_package(aten_bridge REQUIRED)\n"
        "file(WRITE a.cpp)\nadd_library(a a.cpp)\n"
        "target_link_libraries(a PRIVATE aten_bridge::aten_bridge)\n"
    )
    without = tmp_path / "python3"
    without.write_text("#!/bin/sh\nexit 1\n")
    without.chmod(0o755)
    options = [f"-Daten_bridge_DIR={SOURCE}/cmake/package", f"-DPython3_EXECUTABLE={without}"]
    environment = dict(os.environ, CMAKE_PREFIX_PATH="")
    command = [CMAKE, "-S", tmp_path, "-B", tmp_path / "build", *options]
    done = run(*command, env=environment, check=False)
    said = " ".join(done.stdout.split())
    assert done.returncode != 0
    assert (
        "aten_bridge: kernels need PYTORCH_VERSIONS, and other targets cannot link "
        "aten_bridge::aten_bridge, since there is no PyTorch on CMAKE_PREFIX_PATH and none in "
        f"{without}: activate an environment"
    ) in said


def configuration_error(tmp_path, kernel, *options):
    (tmp_path / "kernel.cpp").write_text("#include <aten_bridge.h>\n")
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\n"
        "project(user LANGUAGES CXX)\n"
        f"add_subdirectory({SOURCE} aten_bridge)\n{kernel}\n"
    )
    done = run(CMAKE, "-S", tmp_path, "-B", tmp_path / "build", *options, check=False)
    assert done.returncode != 0
    return " ".join(done.stdout.split())


def test_unknown_arguments_are_refused_with_a_message(tmp_path):
    text = configuration_error(
        tmp_path,
        "aten_bridge_add_kernel(k COLOUR red SOURCES kernel.cpp)",
        f"-DPython3_EXECUTABLE={sys.executable}",
    )
    assert (
        "aten_bridge_add_kernel(k): unknown arguments COLOUR red; expected SOURCES, DEVICE,"
        " HOSTS, NAMESPACE, INSTALL_DIR, HEADER_ONLY, PATCH_MINDSPORE, PYTORCH_VERSIONS." in text
    )


def test_only_a_plugin_patches_mindspore(tmp_path):
    text = configuration_error(
        tmp_path,
        "aten_bridge_add_kernel(k SOURCES kernel.cpp PATCH_MINDSPORE)",
        f"-DPython3_EXECUTABLE={sys.executable}",
    )
    assert (
        "aten_bridge_add_kernel(k): PATCH_MINDSPORE is for a library of MindSpore's own operators; "
        "add HOST MINDSPORE_PLUGIN." in text
    )


def test_missing_pytorch_is_a_sentence(tmp_path):
    text = configuration_error(tmp_path, "", "-DPython3_EXECUTABLE=/nonexistent")
    assert (
        "Reason given by package: no PyTorch on CMAKE_PREFIX_PATH and none in /nonexistent:"
        " activate an environment that has PyTorch (pip install torch), or point"
        " CMAKE_PREFIX_PATH at libtorch's folder" in text
    )


def test_what_several_versions_of_pytorch_cannot_be(tmp_path):
    for arguments, fault in {
        "PYTORCH_VERSIONS 2.11 2.11.0": "expected minor versions of PyTorch in PYTORCH_VERSIONS, "
        "such as 2.9 2.11, got 2.11.0.",
        "PYTORCH_VERSIONS --help": "expected minor versions of PyTorch in PYTORCH_VERSIONS, such "
        "as 2.9 2.11, got --help.",
    }.items():
        text = configuration_error(
            tmp_path,
            f"aten_bridge_add_kernel(k SOURCES k.cpp {arguments})",
            f"-DPython3_EXECUTABLE={sys.executable}",
        )
        assert f"aten_bridge_add_kernel(k): {fault}" in text

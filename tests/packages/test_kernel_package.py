"""Packages of kernels, as a third party has them: built, installed, used in both frameworks."""

import re
import shutil

import pytest
from conftest import SOURCE, run

TEMPLATE = SOURCE / "examples/kernel_package"


def files_of(folder):
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def check_wheel(environment, project, name):
    """Builds the project's wheel, installs it, and runs the template's tests on it."""
    wheels = project.parent / f"wheel_of_{name}"
    environment.pip("wheel", "-w", wheels, project)
    (wheel,) = wheels.iterdir()
    assert re.fullmatch(rf"{name}-0\.1\.0-py3-none-linux_\w+\.whl", wheel.name)
    assert wheel.stat().st_size < 300 * 1024
    environment.pip("install", wheel)
    library = environment.packages / name / f"{name}.so"
    dynamic = run("readelf", "--dynamic", library).stdout
    assert re.findall(r"R(?:UN)?PATH\).*\[(.*)\]", dynamic) == ["$ORIGIN/../torch/lib"]
    return library


def run_tests(environment, file):
    done = environment.python(
        *("-m", "pytest", "-q", "-p", "no:cacheprovider", file), env={"GLOG_v": "3"}
    )
    assert "2 passed" in done.stdout


def test_a_new_project_builds_a_wheel_that_works(environment, tmp_path):
    done = run(environment.bin / "aten-bridge", "new", "made_ops", cwd=tmp_path)
    assert done.stdout == (
        "made_ops: a kernel, swish.cpp, and all that a wheel of it needs. Next:\n"
        "  cd made_ops\n"
        "  pip install scikit-build-core pytest\n"
        "  pip install --no-build-isolation .\n"
        "  pytest\n"
    )
    project = tmp_path / "made_ops"
    assert files_of(project) == {
        path.replace("my_ops", "made_ops"): text.replace("my_ops", "made_ops")
        for path, text in files_of(TEMPLATE).items()
    }
    library = check_wheel(environment, project, "made_ops")
    run_tests(environment, project / "tests/test_made_ops.py")
    # Its own folder is where one works.
    program = "import made_ops; print(made_ops.library)"
    assert environment.python("-c", program, cwd=project).stdout == f"{library}\n"

    # Its test in C++, and the same library by hand.
    build = tmp_path / "build"
    cmake_dir = run(environment.bin / "aten-bridge", "--cmake-dir").stdout.strip()
    python = f"-DPython3_EXECUTABLE={environment.bin / 'python'}"
    run("cmake", "-S", project, "-B", build, f"-Daten_bridge_DIR={cmake_dir}", python)
    run("cmake", "--build", build, "--target", "made_ops_test")
    assert run(build / "made_ops_test", library).stdout == (
        "swish(0) = 0, swish(1) = 0.880797; of ints: Swish: input 0 'x': expected "
        'float16|bfloat16|float32|float64, got "int32" with shape [2]\n'
    )


@pytest.mark.full
def test_the_same_with_setuptools(environment, tmp_path):
    for name in ("kernel_package", "kernel_package_setuptools"):
        shutil.copytree(SOURCE / "examples" / name, tmp_path / name)
    check_wheel(environment, tmp_path / "kernel_package_setuptools", "my_ops")
    run_tests(environment, TEMPLATE / "tests/test_my_ops.py")


def test_new_leaves_what_is_there_alone(environment, tmp_path):
    (tmp_path / "file").touch()
    command = environment.bin / "aten-bridge"
    for arguments, text in {
        ("new", "made_ops", "."): (
            "aten-bridge: .: expected a new or an empty folder, got one with files\n"
        ),
        ("new", "made_ops", "file"): (
            "aten-bridge: file: expected a new or an empty folder, got a file\n"
        ),
        ("new", "Made-Ops"): (
            "aten-bridge: expected a name of two or more small letters, digits and, between them, "
            "underscores, got 'Made-Ops'\n"
        ),
        ("new", "torch"): (
            "aten-bridge: expected a name that Python and the packages around have no use for, got "
            "'torch'; torch_ops is one\n"
        ),
    }.items():
        done = run(command, *arguments, cwd=tmp_path, check=False)
        assert (done.returncode, done.stdout) == (1, text)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]

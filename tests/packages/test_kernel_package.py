"""Packages of kernels, as a third party has them: built, installed, used in both frameworks."""

import re
import shutil
import zipfile

import pytest
from conftest import HERE, SOURCE, built_for, run, runpaths

from aten_bridge.build._metadata import Requirement
from aten_bridge.build._versions import requirement

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
    environment.pip("install", "--force-reinstall", wheel)
    library = environment.packages / name / f"{name}.so"
    assert runpaths(library) == ["$ORIGIN/../torch/lib"]
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


def check_wheel_for_several(environment, project, name):
    """Builds the wheel of a project that is for two versions, installs it, and looks at it."""
    wheels = project.parent / f"wheel_of_{name}"
    environment.pip("wheel", "-w", wheels, project)
    (wheel,) = wheels.iterdir()
    libraries = {f"{name}/{name}.torch{version}.so" for version in (HERE, "99.0")}
    archive = zipfile.ZipFile(wheel)
    assert {one for one in archive.namelist() if one.endswith(".so")} == libraries
    metadata = archive.read(f"{name}-0.1.0.dist-info/METADATA").decode()
    (required,) = re.findall(r"^Requires-Dist: (torch.*)$", metadata, re.M)
    environment.pip("install", "--force-reinstall", wheel)
    for version in (HERE, "99.0"):
        library = environment.packages / name / f"{name}.torch{version}.so"
        assert runpaths(library) == ["$ORIGIN/../torch/lib"]
        assert built_for(library) == [version]
    return set(required.removeprefix("torch").split(","))


REQUIRED = {f">={HERE}", "!=99.0.*", "<99.1"}  # as a project writes it by hand


@pytest.mark.full
def test_a_wheel_for_several_versions_of_pytorch(environment, kept, tmp_path):
    run(environment.bin / "aten-bridge", "new", "several_ops", cwd=tmp_path)
    project = tmp_path / "several_ops"
    pyproject = project / "pyproject.toml"
    text = pyproject.read_text()
    written = f"torch{','.join(REQUIRED)}"
    for old, new in (
        ("PYTORCH_VERSIONS = []", f'PYTORCH_VERSIONS = ["{HERE}", "99.0"]'),
        ('dependencies = ["aten-bridge", "torch==2.11.*"]', f'dependencies = ["{written}"]'),
    ):
        assert old in text
        text = text.replace(old, new)
    pyproject.write_text(text)
    assert check_wheel_for_several(environment, project, "several_ops") == REQUIRED
    run_tests(environment, project / "tests/test_several_ops.py")


@pytest.mark.full
def test_several_versions_with_setuptools(environment, kept, tmp_path):
    for name in ("kernel_package", "kernel_package_setuptools"):
        shutil.copytree(SOURCE / "examples" / name, tmp_path / name)
    project = tmp_path / "kernel_package_setuptools"
    setup = project / "setup.py"
    text = setup.read_text().replace('swish.cpp"]', f'swish.cpp"], pytorch=("{HERE}", "99.0")')
    setup.write_text(text)
    check_wheel_for_several(environment, project, "my_ops")
    run_tests(environment, TEMPLATE / "tests/test_my_ops.py")


def test_scikit_build_core_asks_what_a_package_requires(environment, tmp_path):
    (tmp_path / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "scikit_build_core.build"\n'
        '[project]\nname = "my_ops"\nversion = "0.1.0"\n'
        'dependencies = ["aten-bridge"]\ndynamic = ["dependencies"]\n'
        '[[tool.dynamic-metadata]]\nprovider = "aten_bridge.pytorch"\n'
        '[tool.scikit-build.cmake.define]\nPYTORCH_VERSIONS = ["2.11", "2.13"]\n'
    )
    program = "import scikit_build_core.build as b; b.prepare_metadata_for_build_wheel('.')"
    environment.python("-c", program, cwd=tmp_path)
    metadata = (tmp_path / "my_ops-0.1.0.dist-info/METADATA").read_text()
    assert re.findall(r"^Requires-Dist: (.*)$", metadata, re.M) == [
        "aten-bridge",
        "torch!=2.12.*,<2.14,>=2.11",
    ]


def test_a_requirement_needs_a_list_of_versions(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pyproject = tmp_path / "pyproject.toml"
    define = "[tool.scikit-build.cmake.define]\n"
    pyproject.write_text(define + 'PYTORCH_VERSIONS = ["2.13", "2.11"]\n')
    expected = {"dependencies": ["torch>=2.11,!=2.12.*,<2.14"]}
    assert Requirement().dynamic_metadata({}, {}) == expected
    where = (
        "a list of minor versions of PyTorch, PYTORCH_VERSIONS in [tool.scikit-build.cmake.define]"
    )
    for text, settings, fault in (
        (define, {"versions": []}, "no settings of aten_bridge.pytorch, got ['versions']"),
        (define, {}, f"{where}, got none"),
        (define + "PYTORCH_VERSIONS = []", {}, f"{where}, got none"),
        (define + "PYTORCH_VERSIONS = '2.11'", {}, f"{where}, got '2.11'"),
    ):
        pyproject.write_text(text)
        with pytest.raises(ValueError, match=f"^pyproject.toml: expected {re.escape(fault)}$"):
            Requirement().dynamic_metadata(settings, {})


def test_what_a_package_for_several_versions_requires():
    for versions, text in {
        ("2.11",): "torch>=2.11,<2.12",
        ("2.10", "2.9"): "torch>=2.9,<2.11",
        ("2.13", "2.9", "2.11"): "torch>=2.9,!=2.10.*,!=2.12.*,<2.14",
    }.items():
        assert requirement(versions) == text
    with pytest.raises(ValueError, match=r"^requirement: expected versions with one number before"):
        requirement(("2.11", "3.0"))
    with pytest.raises(
        ValueError, match=r"^requirement: expected minor versions of PyTorch, got n"
    ):
        requirement(())


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
            "aten-bridge: expected a name that is neither a keyword nor a module of Python's, nor "
            "the name of a package that this one uses, got 'torch'; torch_ops is one\n"
        ),
    }.items():
        done = run(command, *arguments, cwd=tmp_path, check=False)
        assert (done.returncode, done.stdout) == (1, text)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]

"""One wheel of examples/kernel_package, built without a PyTorch, beside each of its versions."""

import itertools
import shutil
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
sys.path.append(str(SOURCE / "python"))

from aten_bridge._pytorch import minor_version, series  # noqa: E402

HOSTS = ("pytorch", "mindspore", "jax")
PROVIDER = (
    'dynamic = ["dependencies"]\n[[tool.dynamic-metadata]]\nprovider = "aten_bridge.pytorch" '
)
LIKE_A_USER = {"PYTHONPATH": ""}  # what is installed, not what is in the repository


def write_project(folder, versions):
    """The template, for these minor versions and all hosts, as docs/packages.md has it."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(SOURCE / "examples/kernel_package", folder)
    listed = ", ".join(f'"{version}"' for version in versions)
    for name, old, new in (
        ("CMakeLists.txt", "HOSTS MINDSPORE PYTORCH ", "HOSTS MINDSPORE PYTORCH JAX "),
        (
            "pyproject.toml",
            '>=0.10", "aten-bridge", "torch==2.11.*"',
            '>=1.1", "aten-bridge", "pip"',
        ),
        (
            "pyproject.toml",
            '"aten-bridge", "torch==2.11.*"] # the',
            f'"aten-bridge"]\n{PROVIDER}# the',
        ),
        ("pyproject.toml", "PYTORCH_VERSIONS = []", f"PYTORCH_VERSIONS = [{listed}]"),
    ):
        text = (folder / name).read_text()
        assert text.count(old) == 1, (name, old)
        (folder / name).write_text(text.replace(old, new))


def build(run, project):
    """The bridge's wheel and the project's, built in an environment that has no PyTorch."""
    wheels = run.folder / "wheels"
    shutil.rmtree(wheels, ignore_errors=True)
    python = run.install("scikit-build-core>=1.1")
    pip = [python, "-m", "pip", "wheel", "--disable-pip-version-check", "--no-deps", "-w", wheels]
    run.step("the bridge's wheel", [*pip, SOURCE], **LIKE_A_USER)
    (bridge,) = wheels.glob("aten_bridge-*.whl")
    run.step("pip", [python, "-m", "pip", "install", bridge], **LIKE_A_USER)
    run.step("the wheel", [*pip, "--no-build-isolation", project], **LIKE_A_USER)
    (wheel,) = wheels.glob("my_ops-*.whl")
    return bridge, wheel


def check(run, python, project, torch):
    """The wheel in an environment with that PyTorch: the package's tests, and each order."""
    tests = project / "tests/test_my_ops.py"
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", tests]
    text = run.step(f"the package's tests beside PyTorch {torch}", command, **LIKE_A_USER)
    run.require("2 passed" in text, f"a test of the package is skipped beside PyTorch {torch}")
    for order in itertools.permutations(HOSTS):
        command = [python, SOURCE / "tests/matrix/smoke_wheel.py", *order]
        what = f"{', '.join(order)} in one process beside PyTorch {torch}"
        said = run.step(what, command, **LIKE_A_USER).splitlines()[-1]
        run.require(said == f"my_ops.torch{minor_version(torch)}.so {torch}", f"{what}: got {said}")


def try_wheel(run):
    """Returns what was seen, in a few words."""
    row = run.row
    project = run.folder / "my_ops"
    write_project(project, [minor_version(torch) for torch in row.wheel_for])
    wheels = build(run, project)
    packages = [f"mindspore=={row.mindspore}", f"jax=={row.jax}", "numpy<2", "setuptools<81"]
    for torch in row.wheel_for:
        python = run.make_environment()
        install = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", python]
        run.step("uv", [*install, *wheels, f"torch=={torch}", *packages, "pytest"])
        check(run, python, project, torch)
    size = wheels[1].stat().st_size / 1e6
    return (
        f"one wheel of {size:.1f} MB; beside PyTorch {series(row.wheel_for, 'and')}: the package's "
        "tests, and all three hosts in one process in each order of imports"
    )

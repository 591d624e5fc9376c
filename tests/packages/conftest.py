"""What the tests of packages share: an environment with a wheel of this repository in it."""

import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
import torch

from aten_bridge._introspection import describe_library
from aten_bridge._library import open_library
from aten_bridge.build import cache_dir
from aten_bridge.build._versions import MARK, keep_names

SOURCE = pathlib.Path(__file__).resolve().parents[2]
TORCH = pathlib.Path(torch.__file__).resolve().parent
HERE = ".".join(torch.__version__.split(".")[:2])
OFFLINE = ["--no-index", "--no-deps", "--no-build-isolation", "--disable-pip-version-check"]


def run(*command, check=True, **options):
    """Runs a command without the modules of the tests; fails with everything it printed."""
    ours = ("PYTHONPATH", "PYTEST_PLUGINS")
    environment = {k: v for k, v in os.environ.items() if k not in ours}
    done = subprocess.run(
        [str(word) for word in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**environment, **options.pop("env", {})},
        **options,
    )
    if check:
        assert done.returncode == 0, done.stdout
    return done


def built_for(*libraries):
    """The versions of PyTorch whose headers they were compiled with."""
    return [describe_library(open_library(str(library))).pytorch for library in libraries]


def runpaths(library):
    dynamic = run("readelf", "--dynamic", library).stdout
    return re.findall(r"R(?:UN)?PATH\).*\[(.*)\]", dynamic)


def without_runpath(file):
    """The file knows no folder of PyTorch's, as one that was built elsewhere."""
    (folders,) = (bytes(path, "utf-8") for path in runpaths(file))
    content = file.read_bytes()
    assert content.count(folders) == 1
    file.write_bytes(content.replace(folders, b"/" * len(folders)))
    return file


def version():
    text = (SOURCE / "include/aten_bridge/core/config.h").read_text()
    return ".".join(re.findall(r"#define ATEN_BRIDGE_VERSION_\w+ (\d+)", text))


@pytest.fixture(scope="session")
def wheel(tmp_path_factory):
    """The wheel of the repository."""
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "pip", "wheel", *OFFLINE, "-w", folder, SOURCE)
    (path,) = folder.iterdir()
    return path


class Environment:
    """A Python environment with the packages of this one, linked, and others of its own."""

    def __init__(self, folder):
        run(sys.executable, "-m", "venv", "--without-pip", folder)
        self.bin = folder / "bin"
        (self.packages,) = folder.glob("lib/python3*/site-packages")
        names = ("torch", "mindspore", "numpy", "pip", "pytest", "scikit_build_core", "setuptools")
        for origin in {pathlib.Path(importlib.util.find_spec(n).origin).parents[1] for n in names}:
            for entry in origin.iterdir():
                link = self.packages / entry.name
                if not entry.name.startswith(("aten_bridge", "__pycache__")) and not link.exists():
                    link.symlink_to(entry)

    def python(self, *arguments, **options):
        return run(self.bin / "python", *arguments, **options)

    def pip(self, *arguments):
        return self.python("-m", "pip", arguments[0], *OFFLINE, *arguments[1:])


@pytest.fixture(scope="session")
def environment(tmp_path_factory, wheel):
    made = Environment(tmp_path_factory.mktemp("environment"))
    made.pip("install", wheel)
    return made


@pytest.fixture(scope="session", autouse=True)
def _cache(tmp_path_factory):
    """One cache of built kernels for all tests: they share what is compiled once."""
    os.environ["ATEN_BRIDGE_CACHE_DIR"] = str(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="session")
def kept(_cache):
    """What the cache has of a version 99.0: this PyTorch, with another number in its headers."""
    folder = cache_dir() / f"pytorch/99.0-{os.uname().machine}"
    (folder / "lib").mkdir(parents=True)
    for path in (cache_dir(), folder.parent):
        path.chmod(0o700)
    header = pathlib.Path("include/torch/headeronly/version.h")
    for parent in list(header.parents)[-2::-1]:  # links to all but what is on the way
        (folder / parent).mkdir()
        for entry in (TORCH / parent).iterdir():
            if entry.name not in header.parts:
                (folder / parent / entry.name).symlink_to(entry)
    text = (TORCH / header).read_text()
    for part, number in (("MAJOR", 99), ("MINOR", 0)):
        text = re.sub(rf"(?<=#define TORCH_VERSION_{part} )\d+", str(number), text)
    (folder / header).write_text(text)
    shutil.copy(TORCH / "lib/libc10.so", folder / "lib")
    names = ("libtorch_cpu.so", "libc10_cuda.so", "libtorch_cuda.so")
    for name in [name for name in names if (TORCH / "lib" / name).is_file()]:
        keep_names(TORCH / "lib" / name, folder / "lib" / name)
    text = (TORCH / "version.py").read_text()
    text = re.sub(r"(?<=^__version__ = ').*(?=')", "99.0.0", text, flags=re.M)
    (folder / "version.py").write_text(text)
    (folder / MARK).touch()
    return folder

"""What the tests of the build share: where things are, and how to run a command."""

import importlib.util
import itertools
import os
import pathlib
import subprocess
import sys

import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
TORCH = pathlib.Path(importlib.util.find_spec("torch").submodule_search_locations[0])
CMAKE = os.environ.get("CMAKE", "cmake")
CXX_STANDARD = os.environ.get("CXX_STANDARD", "17")


# Sources that must not compile.
COMPILE_FAIL = sorted((SOURCE / "tests/compile_fail").glob("*.cpp"))


def expected_texts(source):
    """The compile error that a source of COMPILE_FAIL is there for, and what else must be shown.

    It is the source's first comment, behind "expect:" and, or not, "shows:".
    """
    lines = itertools.takewhile(
        lambda line: line.startswith("// "), source.read_text().splitlines()
    )
    marker, _, texts = " ".join(line[3:] for line in lines).partition("expect: ")
    assert marker == ""
    sentence, _, shown = texts.partition(" shows: ")
    return sentence, shown


@pytest.fixture(scope="session")
def build():
    """The build folder of the preset `test`."""
    if "ATEN_BRIDGE_BUILD_DIR" not in os.environ:
        pytest.exit("Set ATEN_BRIDGE_BUILD_DIR to a build folder, such as build/test.", 2)
    return pathlib.Path(os.environ["ATEN_BRIDGE_BUILD_DIR"])


def run(*command, check=True, **options):
    """Runs a command; fails with everything it printed."""
    done = subprocess.run(
        [str(word) for word in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        **options,
    )
    if check:
        assert done.returncode == 0, done.stdout
    return done


def compile_only(compiler, source, *flags, include=SOURCE / "include"):
    """Checks a source that includes aten_bridge.h; makes no object file unless flags say so."""
    return run(
        *[compiler, "-Wall", "-Wextra", "-Werror", f"-I{include}"],
        *["-isystem", TORCH / "include", *flags, source],
        check=False,
    )


def python(*arguments, **options):
    return run(sys.executable, *arguments, **options)

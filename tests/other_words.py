"""A pytest plugin for libraries that were built with -DATEN_BRIDGE_OTHER_WORDS=ON.

Such libraries say everything by other words, so that code that decides by a text goes wrong. The
plugin gives the words back to the tests, and to them alone: in the exceptions and faults that they
look at, and in what processes print. So their assertions about texts hold as well.
"""

import codecs
import contextlib
import os
import pathlib
import re
import subprocess
import sys

import pytest

from aten_bridge import faults

# A text begins and ends with a control character, which repr() writes as four others.
# Text that was cut at a null character has no end.
_PARTS = re.compile(r"(\x02|\\x02)|(\x03|\\x03)|\0|[A-Za-z]+")


def plain(text):
    """The text in the words of other builds. Texts within texts were replaced twice, thus not."""
    depth = 0

    def replace(part):
        nonlocal depth
        depth = 0 if part[0] == "\0" else max(depth + bool(part[1]) - bool(part[2]), 0)
        if part[1] or part[2]:
            return ""
        return codecs.encode(part[0], "rot13") if depth % 2 else part[0]

    return _PARTS.sub(replace, text)


def _plain(value):
    """The same of other values that have texts."""
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, bytes):
        return plain(value.decode("latin-1")).encode("latin-1")
    if isinstance(value, faults.Fault):
        return faults.Fault(*map(_plain, value))
    return tuple(map(_plain, value)) if type(value) is tuple else value


# ===--- exceptions ---===

_raises = pytest.raises
_faults_of = faults.faults_of


@contextlib.contextmanager
def _plain_raises(*expected, match=None, **options):
    with _raises(*expected, **options) as error:
        yield error
    _make_plain(error.value)
    if match is not None:
        error.match(match)


def _make_plain(error):
    """Does so in an exception, and in those that led to it."""
    while error is not None and not hasattr(error, "by_other_words"):
        error.by_other_words = str(error)
        error.args = _plain(error.args)
        if isinstance(error, ImportError):  # which says this, not its arguments
            error.msg = _plain(error.msg)
        if hasattr(error, "faults"):
            error.faults = _plain(error.faults)
        error = error.__cause__ or error.__context__


def _plain_faults_of(error):
    """Libraries know their failures by the text that they gave."""
    known = hasattr(error, "faults") or not hasattr(error, "by_other_words")
    return _plain(_faults_of(error if known else RuntimeError(error.by_other_words)))


# ===--- processes ---===

_FOLDER = str(pathlib.Path(__file__).parent)
_run = subprocess.run
_read = pytest.CaptureFixture.readouterr


def _plain_run(*words, **options):
    done = _run(*words, **options)
    if sys._getframe(1).f_code.co_filename.startswith(_FOLDER):
        done.stdout, done.stderr = _plain(done.stdout), _plain(done.stderr)
    return done


def _plain_read(self):
    printed = _read(self)
    return type(printed)(*map(_plain, printed))


# It is about a page that is made of texts, in their order.
_SORTED = "test_the_table_is_that_of_the_library"


def pytest_configure():
    cache = pathlib.Path(os.environ.get("ATEN_BRIDGE_BUILD_DIR", ""), "CMakeCache.txt")
    if not cache.is_file() or "\nATEN_BRIDGE_OTHER_WORDS:BOOL=ON\n" not in cache.read_text():
        raise pytest.UsageError(
            "Set ATEN_BRIDGE_BUILD_DIR to a build with -DATEN_BRIDGE_OTHER_WORDS=ON."
        )
    from aten_bridge import _introspection  # noqa: F401  # it keeps its faults_of

    pytest.raises = _plain_raises
    pytest.CaptureFixture.readouterr = _plain_read
    faults.faults_of = _plain_faults_of
    subprocess.run = _plain_run
    os.environ["PYTEST_PLUGINS"] = __name__  # for processes that a test starts


def pytest_collection_modifyitems(items):
    items[:] = [item for item in items if item.originalname != _SORTED]

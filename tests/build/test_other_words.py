"""What the plugin of the target other_words gives the tests."""

import codecs
import importlib
import pathlib
import sys

import pytest

pytestmark = pytest.mark.core


@pytest.fixture
def plain(monkeypatch):
    monkeypatch.setattr(sys, "path", [str(pathlib.Path(__file__).parents[1]), *sys.path])
    return importlib.import_module("other_words").plain


def said(text):
    """As for_people() of core/errors.h says it in such a build."""
    return f"\x02{codecs.encode(text, 'rot13')}\x03"


def test_the_words_of_other_builds(plain):
    text = "Add: input 0: expected 'é\\t', got None"
    assert plain(f"host: {said(text)}\n at line 1") == f"host: {text}\n at line 1"
    inner = said(f"inner {said(text)}")
    assert plain(said(f"outer {inner} behind")) == f"outer inner {text} behind"
    assert plain(repr(said("not there"))) == "'not there'"
    assert plain(said("cut off")[:-4]) == "cut "
    assert plain(said("cut off")[:-4] + "\0next") == "cut \0next"
    assert plain(text) == text

"""Guides quote files that the tests build, so that no snippet can rot, and their commands work."""

import re
import shutil
import sys

import pytest
from conftest import COMPILE_FAIL, SOURCE, expected_texts, python, run

GUIDES = [SOURCE / "README.md", *sorted((SOURCE / "docs").glob("*.md"))]
QUOTE = re.compile(r"<!-- quote: ([^\s#]+)(?:#(\S+))? -->\n```\w*\n(.*?)```\n", re.DOTALL)
QUOTES = [(guide, *quote) for guide in GUIDES for quote in QUOTE.findall(guide.read_text())]


def region(path, name):
    """The part of a file between the comments [name] and [/name]; all of it without a name."""
    text = (SOURCE / path).read_text()
    if not name:
        return text
    match = re.search(
        rf"^ *(?://|#) \[{name}\]\n(.*?)\s*^ *(?://|#) \[/{name}\]", text, re.M | re.S
    )
    return match.group(1).rstrip() + "\n"


@pytest.mark.parametrize(
    ("guide", "path", "name", "snippet"), QUOTES, ids=[f"{q[1]}#{q[2]}" for q in QUOTES]
)
def test_snippet_is_what_stands_in_the_file(guide, path, name, snippet):
    assert snippet == region(path, name), f"{guide.name} quotes {path}"


def test_readme_quotes_something():
    assert {quote[0].name for quote in QUOTES} >= {"README.md"}


@pytest.mark.parametrize("guide", GUIDES, ids=lambda guide: guide.name)
def test_links_to_files_and_headings_lead_somewhere(guide):
    text = re.sub(r"```.*?```|``.*?``|`.*?`", "", guide.read_text(), flags=re.DOTALL)
    headings = {
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        for heading in re.findall(r"^#+ (.*)$", text, re.M)
    }
    for target in re.findall(r"\]\(([^)]+)\)", text):
        path, _, heading = target.partition("#")
        assert path == "" or (guide.parent / path).exists(), target
        assert path != "" or heading in headings, target


def test_every_sentence_of_the_compiler_is_explained():
    explained = " ".join((SOURCE / "docs/errors.md").read_text().split())
    for source in COMPILE_FAIL:
        assert expected_texts(source)[0] in explained


def test_the_line_without_cmake_builds_a_library_that_works(build, tmp_path):
    (command,) = re.findall(
        r"<!-- run -->\n```bash\n(.*?)```\n", (SOURCE / "README.md").read_text(), re.DOTALL
    )
    for folder in ("include", "examples"):
        shutil.copytree(SOURCE / folder, tmp_path / folder)
    run("bash", "-ec", f'python3() {{ "{sys.executable}" "$@"; }}\n{command}', cwd=tmp_path)
    shown = run("nm", "--dynamic", "--defined-only", tmp_path / "leaky_relu.so").stdout
    assert {" T LeakyRelu", " W aten_bridge_last_error"} <= {
        line[16:] for line in shown.splitlines()
    }
    assert "11aten_bridge" not in shown, "names of the bridge are visible"
    output = python(SOURCE / "examples/leaky_relu/leaky_relu.py", tmp_path / "leaky_relu.so").stdout
    assert output.count("[[ 0.    -0.001]\n [-0.002  1.   ]]\n") == 2

"""Guides quote files that the tests build, so that no snippet can rot, and their commands work."""

import re

import pytest
from conftest import COMPILE_FAIL, SOURCE, expected_texts

pytestmark = pytest.mark.core

GUIDES = [*sorted(SOURCE.glob("README*.md")), *sorted((SOURCE / "docs").rglob("*.md"))]
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


def name_of(guide):
    return guide.relative_to(SOURCE).as_posix()


def anchors(page):
    """The anchors that GitHub makes of a page's headings: letters of any script stay."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.M)
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        for heading in re.findall(r"^#+ (.*)$", text, re.M)
    }


@pytest.mark.parametrize(
    ("guide", "path", "name", "snippet"),
    QUOTES,
    ids=[f"{name_of(guide)}-{path}#{name}" for guide, path, name, _ in QUOTES],
)
def test_snippet_is_what_stands_in_the_file(guide, path, name, snippet):
    assert snippet == region(path, name), f"{name_of(guide)} quotes {path}"


def test_readmes_quote_something():
    assert {name_of(quote[0]) for quote in QUOTES} >= {"README.md", "README.zh-CN.md"}


def test_readme_is_one_page():
    text = (SOURCE / "README.md").read_text()
    assert len(text.splitlines()) <= 150
    assert len(text.split()) <= 1200


def test_readmes_have_the_number_of_operators_of_the_table():
    number = re.search(r"the (\d+) names", (SOURCE / "docs/operators-table.md").read_text())[1]
    for page in ("README.md", "README.zh-CN.md"):
        assert f"{int(number):,}" in (SOURCE / page).read_text()


def test_examples_are_in_their_list():
    text = (SOURCE / "examples/README.md").read_text()
    listed = re.findall(r"^\| \[(\w+)\]\(\1\) \|", text, re.M)
    assert sorted(listed) == sorted(
        path.parent.name for path in (SOURCE / "examples").glob("*/README.md")
    )


def measured(page, name):
    """What benchmarks/performance.py wrote into a page."""
    (text,) = re.findall(
        rf"<!-- begin: benchmarks/performance\.py#{name} -->\n(.*?)<!-- end -->",
        (SOURCE / page).read_text(),
        re.DOTALL,
    )
    return text


def test_readmes_have_the_figures_of_the_page_on_performance():
    figures = measured("docs/performance.md", "summary")
    assert measured("README.md", "summary") == figures
    number = re.compile(r"\d[\d.,]*\d|\d")
    translated = measured("README.zh-CN.md", "summary_in_chinese")
    assert sorted(number.findall(translated)) == sorted(number.findall(figures))


def test_anchors_are_those_of_github(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "# What `meta()` does\n"
        "## 图模式 / PyNative 模式（动态 shape）\n"
        "## 输出的 shape、dtype：`x_y`\n"
        "```bash\n# no heading\n```\n"
    )
    assert anchors(page) == {
        "what-meta-does",
        "图模式--pynative-模式动态-shape",
        "输出的-shapedtypex_y",
    }


@pytest.mark.parametrize("guide", GUIDES, ids=name_of)
def test_links_to_files_and_headings_lead_somewhere(guide):
    text = re.sub(r"```.*?```|``.*?``|`.*?`", "", guide.read_text(), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)]+)\)", text):
        path, _, heading = target.partition("#")
        page = guide.parent / path if path else guide
        assert page.exists(), target
        assert heading == "" or heading in anchors(page), target


@pytest.mark.parametrize("page", ["docs/errors.md", "docs/zh/errors.md"])
def test_sentences_of_the_compiler_on_the_page_are_those_that_it_prints(page):
    """The page has some of them, where there is more to say; none that no longer exists."""
    printed = {expected_texts(source)[0] for source in COMPILE_FAIL}
    listed = [
        sentence.strip("`")
        for sentence in re.findall(
            r"^\| (`?aten_bridge: .*?\.`?) \| ", (SOURCE / page).read_text(), re.M
        )
    ]
    assert len(listed) > 20
    assert [sentence for sentence in listed if sentence not in printed] == []

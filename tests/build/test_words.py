"""Pages and comments are in plain English: phrases that were edited out do not come back."""

import re
from pathlib import Path

import pytest
from conftest import SOURCE

pytestmark = pytest.mark.core

PAGES = [
    SOURCE / "README.md",
    SOURCE / "CONTRIBUTING.md",
    SOURCE / "SECURITY.md",
    SOURCE / "CHANGELOG.md",
    *sorted((SOURCE / "docs").glob("*.md")),
    *sorted((SOURCE / "examples").rglob("README.md")),
    SOURCE / "plugin/mint/README.md",
]
# Tools write the others.
PAGES = [page for page in PAGES if page.name not in ("operators-table.md", "mint-functions.md")]
# What to write instead is behind each.
PHRASES = {
    r"for who": "for those who, for contributors",
    r"in(to)? (the|their) places? of|in their places": "instead of, at the position of, replaces",
    r"as (it|they) says?": "say it, or leave it out",
    r"(?<!there )(is|are) (?-i:none)(?! of)": "there is no, does not exist",
    r"(has|have) not(?=[.,;:)])": "lacks",
    r"none such": "no such",
    r"nobody else (has|holds)": "uniquely owned",
    r"by turns": "alternately",
    r"in (its |their )?words(?!\))": "with a message",
    r"who(m|se)? ?ever": "anyone, any",
    r"anew": "again",
    r"mend(ed|s)?": "fix, correct",
    r"nobody thought of": "generated",
    r"as it comes": "raw",
    r"the same bits": "bitwise equal",
    r"stand-in": "fake, placeholder",
    r"(front )?doors?|rooms|(the|a|each|one|two|this|first) room|waists?|seams?": "header, layer",
    r"behind (it|them|the (call|build|end|function))": "after",
    r"of any order": "up to an order",
    r"-0 ?%": "0%",
}

FOLDERS = ["benchmarks", "cmake", "examples", "include", "plugin", "python", "tests", "tools"]
CODE = {".h", ".cpp", ".cu", ".py", ".cmake", ".sh", ".toml", "CMakeLists.txt", "requirements.txt"}
SOURCES = [
    path
    for folder in FOLDERS
    for path in sorted((SOURCE / folder).rglob("*"))
    if (path.suffix in CODE or path.name in CODE) and path != Path(__file__)
]
ALONE = (".ci/run", "CMakeLists.txt", "pyproject.toml", "requirements.txt", "ruff.toml")
SOURCES += [SOURCE / name for name in ALONE]
SOURCES += sorted(SOURCE.glob(".github/**/*.yml"))
# A comment beside code is a phrase, not a genitive that continues the declaration.
GENITIVE = r"\S +(?://+<?|#) of .*|(?://+<?|#|\"{3}) ?Of .*"
# Names that were replaced by the field's terms do not come back.
IDENTIFIER = (
    r"\b(?:Held|Kernel(?:Facts|Info|Origin)|KernelOf(?:PyTorch|Jax)|KeptOfJax|DTypeOfXla"
    r"|KeptOperands|KeptByPlace|StandIns|FilledStandIns|OwnValue|ViewedValue|QuickCall|OfText"
    r"|KnownInput|ErrorArguments|Uncarriable|is_settled|bind_anew|give_results|bring_home"
    r"|known_inputs|put_candidates|infer_over_sizes|python_answers|takes_frame|version_of|of_"
    r"|\w*(?:make_views_whole|views_made_whole|whole_views))\b"
)


def prose(text):
    """A page without its code, and without what programs print."""
    text = re.sub(r"^ *```.*?^ *```|<!--.*?-->", "", text, flags=re.M | re.DOTALL)
    text = re.sub(r"(`+).*?\1", "", text, flags=re.DOTALL)
    return " ".join(re.sub(r"\]\([^)]*\)", "]", text).split())


def found(text):
    return [
        f"{text[max(0, match.start() - 30) : match.end() + 30]!r}: write {instead!r}"
        for phrase, instead in PHRASES.items()
        for match in re.finditer(rf"(?<![\w-])(?:{phrase})(?![\w-])", text, re.IGNORECASE)
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(SOURCE).as_posix())
def test_page_has_none_of_the_phrases(page):
    assert found(prose(page.read_text())) == []


def test_phrases_are_found_in_sentences_and_not_in_code():
    assert found(prose("Written For\nwho reads. `for who`\n```\nfor who\n```\n")) == [
        "'Written For who reads.': write 'for those who, for contributors'"
    ]


def comments(text):
    """A source whose comments, and whose strings, are a line each."""
    text = re.sub(r"\n *(?://+<?|#) ", " ", text)
    return " ".join(re.sub(r"\"\s*\n\s*f?\"", "", text).split())


def test_sources_have_none_of_the_phrases():
    faults = []
    for path in SOURCES:
        text = path.read_text()
        genitives = [match[0] for match in re.finditer(GENITIVE, text)]
        if one := found(comments(text)) + genitives:
            faults.append((path.relative_to(SOURCE).as_posix(), one))
    assert faults == []


def test_sources_have_none_of_the_replaced_names():
    faults = {
        path.relative_to(SOURCE).as_posix(): names
        for path in SOURCES
        if (names := re.findall(IDENTIFIER, f"{path.stem}\n{path.read_text()}"))
    }
    assert faults == {}


def test_replaced_names_are_found_whole():
    code = "int takes_frame, views_made_whole, offset_of_, of_; KernelInfo a; KernelInformation b;"
    assert re.findall(IDENTIFIER, code) == ["takes_frame", "views_made_whole", "of_", "KernelInfo"]


def test_phrases_are_found_in_comments():
    assert found(comments("int x = 0;\n  // Written for\n  // who reads.\n")) == [
        "'int x = 0; Written for who reads.': write 'for those who, for contributors'"
    ]
    assert re.search(GENITIVE, "int x = 0;  // of a kernel")
    assert not re.search(GENITIVE, "  // of a kernel")
    assert re.search(GENITIVE, "/// Of a kernel.")

"""Chinese pages follow the English ones, and say so when they fall behind."""

import hashlib
import re
import shutil
import sys

import pytest
from conftest import SOURCE, run

sys.path.insert(0, str(SOURCE / "tools"))
import translations

pytestmark = pytest.mark.core

PAGES = translations.pages()


def code(page):
    """What is typed and printed: the blocks and spans of code of a page."""
    text = page.read_text()
    fence = re.compile(r"^```.*?^```$", re.DOTALL | re.M)
    spans = re.findall(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", fence.sub("", text), re.DOTALL)
    return {*fence.findall(text), *(" ".join(span.split()) for _, span in spans)}


def test_the_pages_of_a_first_kernel_are_there():
    assert {
        "README.zh-CN.md",
        "docs/zh/errors.md",
        "docs/zh/mint-on-cpu.md",
        "docs/zh/writing-a-kernel.md",
    } <= set(PAGES)


@pytest.mark.parametrize("page", PAGES)
def test_page_follows_the_english_page_as_it_is_now(page):
    state = translations.behind(page)
    if state:
        pytest.fail(state, pytrace=False)


@pytest.mark.parametrize("page", PAGES)
def test_page_links_to_the_english_page_at_its_top(page):
    english = SOURCE / translations.marker(page)[1]
    top = "\n".join((SOURCE / page).read_text().splitlines()[:5])
    targets = [(SOURCE / page).parent / path for path in re.findall(r"\]\(([^)]+)\)", top)]
    assert english in [target.resolve() for target in targets]


@pytest.mark.parametrize("page", PAGES)
def test_code_and_error_texts_are_those_of_the_english_page(page):
    english = translations.marker(page)[1]
    missing = code(SOURCE / english) - code(SOURCE / page)
    assert not missing, f"{page} leaves out of {english}: {sorted(missing)}"


@pytest.fixture
def copy(tmp_path):
    """A repository of one English page and its Chinese one; the function runs the tool in it."""
    (tmp_path / "tools").mkdir()
    shutil.copy(SOURCE / "tools/translations.py", tmp_path / "tools")
    (tmp_path / "docs/zh").mkdir(parents=True)
    (tmp_path / "docs/errors.md").write_text("# Errors\n")
    (tmp_path / "docs/zh/errors.md").write_text(
        "<!-- follows: docs/errors.md 000000000000 -->\n# 错误\n"
    )

    def tool(*arguments):
        done = run(sys.executable, tmp_path / "tools/translations.py", *arguments, check=False)
        return done.returncode, done.stdout

    tool.root = tmp_path
    return tool


def test_a_page_that_falls_behind_says_what_to_do(copy):
    now = hashlib.sha256(b"# Errors\n").hexdigest()[:12]
    assert copy() == (
        1,
        f"""\
docs/zh/errors.md falls behind: it follows docs/errors.md 000000000000, which is {now} now. \
See what changed:
    git diff $(git log -1 --format=%h -S000000000000 -- docs/zh/errors.md) -- docs/errors.md
translate that, and write the new id:
    python tools/translations.py --accept docs/zh/errors.md
""",
    )


def test_accept_writes_the_new_id_and_nothing_else(copy):
    now = hashlib.sha256(b"# Errors\n").hexdigest()[:12]
    follows = (0, f"docs/zh/errors.md follows docs/errors.md {now}\n")
    assert copy("--accept", "docs/zh/errors.md") == follows
    assert (copy.root / "docs/zh/errors.md").read_text() == (
        f"<!-- follows: docs/errors.md {now} -->\n# 错误\n"
    )
    assert copy() == follows
    (copy.root / "docs/errors.md").write_text("# Errors, and more\n")
    assert copy()[0] == 1


def test_what_is_no_translation_is_refused(copy):
    status, text = copy("--accept", "docs/errors.md")
    assert status == 2
    assert "error: expected one of docs/zh/errors.md, got docs/errors.md\n" in text
    (copy.root / "docs/errors.md").unlink()
    assert copy() == (
        1,
        "docs/zh/errors.md: expected to follow a page that is there, got docs/errors.md; "
        "name the page's new path, or remove the translation\n",
    )
    (copy.root / "docs/zh/errors.md").write_text("# 错误\n")
    assert copy() == (
        1,
        "docs/zh/errors.md: expected a first line such as "
        "<!-- follows: docs/errors.md 1a2b3c4d5e6f -->, got another one\n",
    )

"""The pages of the target `site`: what is a page, and where links lead. Builds none of them."""

import ast
import importlib.util
import re
import sys

import pytest
from conftest import SOURCE

pytestmark = pytest.mark.core

SITE = SOURCE / "tools/site"
CONFIG = (SITE / "mkdocs.yml").read_text()
# What stands behind a dash, without or with a title.
NAVIGATION = re.findall(
    r"^ +- (?:[^:\n]+: )?(\S+\.md)$", CONFIG.partition("\nnav:\n")[2].partition("\n\n")[0], re.M
)


@pytest.fixture(scope="module")
def module():
    """Loads a module of tools/site, which is not on Python's path."""

    def load(name):
        spec = importlib.util.spec_from_file_location(name, SITE / f"{name}.py")
        loaded = importlib.util.module_from_spec(spec)
        sys.modules[name] = loaded
        spec.loader.exec_module(loaded)
        return loaded

    try:
        yield {name: load(name) for name in ("pages", "check")}.get
    finally:
        for name in ("pages", "check"):
            sys.modules.pop(name, None)


@pytest.fixture(scope="module")
def pages(module):
    return module("pages")


def test_each_page_is_in_the_navigation_once(pages):
    written = [name for name in map(pages.page_of, pages.guides()) if not name.startswith("zh/")]
    assert len(NAVIGATION) == len(set(NAVIGATION))
    assert set(written) <= set(NAVIGATION)


def test_the_navigation_names_no_missing_page(pages):
    written = [pages.page_of(path) for path in pages.guides()]
    # By hooks.py, which cannot be imported where there is no mkdocs.
    made = [f"reference/{name}.md" for name in ("command", "cmake")] + ["license.md"]
    hooks = (SITE / "hooks.py").read_text()
    assert all(name.removeprefix("reference/") in hooks for name in made)
    modules = re.findall(r'^    "(\w+)": \(\s*"aten_bridge', hooks, re.M)
    made += [f"reference/{name}.md" for name in modules]
    made += map(pages.page_of, pages.sources(["examples"]))
    assert set(NAVIGATION) <= {*written, *made}


def value_of(file, name):
    """What a file assigns to a name; the file is not run."""
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            return ast.literal_eval(node.value)
    raise AssertionError(f"{file} assigns nothing to {name}")


def test_the_reference_has_what_the_modules_show():
    for module, names in value_of(SITE / "hooks.py", "_MODULES").values():
        path = SOURCE / "python" / module.replace(".", "/")
        file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        assert sorted(names) == sorted(value_of(file, "__all__")), module


def test_what_is_no_tag_stands_in_code(pages):
    """`<name>` of a placeholder would be taken for a tag."""
    for guide in map(SOURCE.__truediv__, map(str, pages.guides())):
        text = re.sub(r"^ *```.*?^ *```|<!--.*?-->", "", guide.read_text(), flags=re.M | re.S)
        text = re.sub(r"(`+).*?\1", "", text)
        tags = set(re.findall(r"</?([A-Za-z][\w-]*)", text))
        assert tags <= {"a", "br", "sub", "img", "p", "details", "summary"}, guide


def test_a_page_in_chinese_has_the_name_of_one_in_english(pages):
    for path in (SOURCE / "docs/zh").glob("*.md"):
        assert path.name in NAVIGATION


@pytest.mark.parametrize(
    ("path", "page"),
    [
        ("README.md", "index.md"),
        ("README.zh-CN.md", "zh/index.md"),
        ("CONTRIBUTING.md", "contributing.md"),
        ("docs/errors.md", "errors.md"),
        ("docs/zh/errors.md", "zh/errors.md"),
        ("docs/performance/slots.svg", "performance/slots.svg"),
        ("examples/nearest", "source/examples/nearest/index.md"),
        ("examples/nearest/README.md", "source/examples/nearest/index.md"),
        ("examples/nearest/nearest.cpp", "source/examples/nearest/nearest.cpp.md"),
    ],
)
def test_files_and_folders_have_pages(pages, path, page):
    assert pages.page_of(path) == page


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        ("README.md", "[a](docs/errors.md#dtypes)", "[a](errors.md#dtypes)"),
        ("docs/errors.md", "[a](../README.md)", "[a](index.md)"),
        ("docs/errors.md", "[`a`](../examples/nearest)", "[`a`](source/examples/nearest/index.md)"),
        ("docs/zh/errors.md", "[a](../errors.md)", "[a](../errors.md)"),
        ("docs/zh/errors.md", "[a](../../README.md)", "[a](../index.md)"),
        (
            "examples/nearest/README.md",
            "[a](nearest.cpp) and [b](../../docs/errors.md)",
            "[a](nearest.cpp.md) and [b](../../../errors.md)",
        ),
        ("docs/errors.md", "[a](#dtypes), `[](…)`, ", "[a](#dtypes), `[](…)`, "),
        ("docs/errors.md", "```cpp\n[](const T& x)\n```", "```cpp\n[](const T& x)\n```"),
        ("docs/zh/errors.md", "<!-- of a\ncommit -->\n# Errors", "# Errors"),
        ("docs/errors.md", "[a](https://example.org/b)", "[a](https://example.org/b)"),
    ],
)
def test_links_between_files_become_links_between_pages(pages, path, text, expected):
    assert pages.with_links_to_pages(text, path) == expected


def test_a_link_to_no_file_is_an_error(pages, monkeypatch, tmp_path):
    (tmp_path / "a.md").write_text("[a](none.md)")
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    with pytest.raises(FileNotFoundError, match=r"^a\.md: there is no none\.md, which it links$"):
        list(pages.targets("a.md"))


def test_blocks_in_a_list_are_part_of_their_item_for_python_markdown_too(pages):
    text = "- one\n\n  | a |\n  |---|\n  more\n- two\n  lines\n\nthree"
    assert pages.with_links_to_pages(text, "README.md") == (
        "- one\n\n    | a |\n    |---|\n    more\n\n- two\n    lines\n\nthree"
    )


def test_what_pages_link_has_a_page(pages):
    linked = [target for path in pages.guides() for target in pages.targets(path)]
    sources = pages.sources(linked)
    for path in {*linked, *sources}:
        assert (SOURCE / path).exists(), path
        assert pages.is_source(path) == (path.removesuffix("/README.md") in sources)


# What is behind a comment of `///` in these headers is for the authors of kernels.
PUBLIC = ["aten_bridge.h", "ms_ext.h", "aten_bridge/kernel/options.h", "aten_bridge/testing.h"]
PUBLIC += ["aten_bridge/interface/checks.h", "aten_bridge/testing_cuda.h"]
FOR_HOSTS = {"OperandCheck", "CheckRun", "around", "make_run", "place"}  # for checks and devices


def public_names(header):
    """Names of functions, classes and constants with a comment, without those in `detail`.

    And members of classes, in the headers for tests.
    """
    indented = "" if "testing" not in header else " *"
    text = (SOURCE / "include" / header).read_text()
    detail = r"^namespace (\S+::)?detail \{.*?^\}  // namespace \S*detail$"
    text = re.sub(detail, "", text, flags=re.M | re.S)
    text = re.sub(r"^ private:.*?^\}", "", text, flags=re.M | re.S)
    declared = re.findall(rf"^(?:{indented}///.*\n)+((?:(?! *///).*\n){{1,3}})", text, re.M)
    pattern = r"#define (ATEN_BRIDGE_\w+)|(?:class|struct|using) (\w+)|(\w+)\(|(\w+) ="
    for lines in declared:
        code = re.sub(r"^ *template <.*> ?\n|^ *\[\[.*?\]\] |__attribute__\(\(.*?\)\)", "", lines)
        if not code.startswith((" " * 4, "  //")) and (found := re.search(pattern, code)):
            yield next(name for name in found.groups() if name)


def test_the_reference_has_each_public_name():
    page = (SOURCE / "docs/reference.md").read_text()
    shown = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]+)`", page))))
    names = {header: set(public_names(header)) for header in PUBLIC}
    assert {"ATEN_BRIDGE_EXPORT", "ATEN_BRIDGE_EXPORT_GRAD"} <= names["aten_bridge.h"]
    assert {"attr", "state", "autocast", "side_effect"} <= names["aten_bridge/kernel/options.h"]
    assert {"Call", "input_none", "run", "Result"} <= names["aten_bridge/testing.h"]
    missing = {header: sorted(found - shown - FOR_HOSTS) for header, found in names.items()}
    assert {header: names for header, names in missing.items() if names} == {}


def test_broken_links_of_a_site_are_found(module, tmp_path):
    (tmp_path / "a.html").write_text(
        '<a href="b.html">b</a><a href="b.html#here">b</a><a id="x"></a><a href="#x">x</a>'
    )
    (tmp_path / "b.html").write_text('<h1 id="here">b</h1>')
    assert module("check").faults(tmp_path) == []
    (tmp_path / "b.html").write_text(
        '<a href="c.html"></a><a href="a.html#none"></a><a id="y"></a><a id="y"></a>'
        '<script src="https://example.org/x.js"></script><a href="https://example.org"></a>'
        "returns <name>.so"
    )
    assert module("check").faults(tmp_path) == [
        "a.html: there is no anchor b.html#here",
        "b.html: <name> is no tag",
        "b.html: two anchors #y",
        "b.html: loads https://example.org/x.js, which is not of the site",
        "b.html: there is no anchor a.html#none",
        "b.html: there is no c.html",
    ]

"""The pages of the preset `site`: what is a page, and where links lead. Builds none of them."""

import ast
import importlib.util
import re
import sys

import pytest
from conftest import SOURCE

SITE = SOURCE / "tools/site"
CONFIG = (SITE / "mkdocs.yml").read_text()
# What stands behind a dash, without or with a title.
NAVIGATION = re.findall(
    r"^ +- (?:[^:\n]+: )?(\S+\.md)$", CONFIG.partition("\nnav:\n")[2].partition("\n\n")[0], re.M
)


@pytest.fixture(scope="module")
def module():
    """Loads a module of tools/site, which is none of Python's."""

    def load(name):
        spec = importlib.util.spec_from_file_location(name, SITE / f"{name}.py")
        loaded = importlib.util.module_from_spec(spec)
        sys.modules[name] = loaded
        spec.loader.exec_module(loaded)
        return loaded

    try:
        yield {name: load(name) for name in ("pages", "header", "check")}.get
    finally:
        for name in ("pages", "header", "check"):
            sys.modules.pop(name, None)


@pytest.fixture(scope="module")
def pages(module):
    return module("pages")


def test_each_page_is_in_the_navigation_once(pages):
    written = [name for name in map(pages.page_of, pages.guides()) if not name.startswith("zh/")]
    assert len(NAVIGATION) == len(set(NAVIGATION))
    assert set(written) <= set(NAVIGATION)


def test_the_navigation_names_no_missing_page(module, pages):
    written = [pages.page_of(path) for path in pages.guides()]
    # By hooks.py, which cannot be imported where there is no mkdocs.
    made = [f"reference/{name}.md" for name in ("command", "cmake")] + ["license.md"]
    hooks = (SITE / "hooks.py").read_text()
    assert all(name.removeprefix("reference/") in hooks for name in made)
    modules = re.findall(r'^    "(\w+)": \(\s*"aten_bridge', hooks, re.M)
    made += [f"reference/{name}.md" for name in modules]
    made += module("header").PAGES
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


def test_options_macros_and_the_simulated_host_are_in_the_reference(module):
    header = module("header")
    anchors = header.anchors()
    options = (
        "attr autocast autograd composite data_dependent gradient input meta name output "
        "private_use side_effect state workspace"
    )
    for option in options.split():
        assert anchors[f"aten_bridge::{option}"] == f"header.md#{option}"
    assert anchors["ATEN_BRIDGE_EXPORT"] == "header.md#ATEN_BRIDGE_EXPORT"
    assert anchors["aten_bridge::testing::Call"] == "testing.md#Call"
    assert anchors["aten_bridge::testing::Cuda"] == "testing-cuda.md#Cuda"
    assert not [name for name in anchors if "detail" in name]


def test_every_header_with_public_names_is_in_the_reference(module):
    header = module("header")
    listed = {name for _, _, parts in header.PAGES.values() for _, names in parts for name in names}
    for path in sorted((SOURCE / "include").rglob("*.h")):
        name = str(path.relative_to(SOURCE / "include"))
        found = [] if name in listed else [entry.qualified for entry in header.entries(name)]
        # The others are macros and C functions that hosts call.
        assert [entry for entry in found if "::" in entry] == [], name


def test_a_declaration_is_shown_with_its_overloads_and_without_its_body(module):
    header = module("header")
    entries = {entry.name: entry for entry in header.entries("aten_bridge/kernel/options.h")}
    assert [len(declarations) for declarations, _ in entries["attr"].parts] == [1, 3, 1]
    assert entries["autograd"].parts == [
        (
            ["constexpr detail::Autograd autograd()"],
            [
                "Option: operators in the kernel record a graph, so that the kernel can ask "
                "PyTorch's autograd",
                "for gradients. Without it they run below autograd.",
            ],
        )
    ]
    (status, *_) = header.entries("aten_bridge/core/errors.h")
    assert status.parts[0][0][0].startswith("enum class Status : int {\n  kOk = 0,\n")


def test_comments_become_markdown(module):
    text = module("header").markdown(
        [
            "Makes std::vector<T>, or <Name>Init; see docs/errors.md and aten_bridge::attr.",
            "",
            "  int x;",
            "",
            "- one",
            "  more",
        ],
        "reference/header.md",
    )
    assert text == (
        "Makes `std::vector<T>`, or `<Name>Init`; see [`docs/errors.md`](../errors.md) and "
        "[`aten_bridge::attr`](header.md#attr).\n\n```cpp\nint x;\n```\n\n- one\n      more"
    )


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

"""What mkdocs is told beside mkdocs.yml.

The pages that are no file of docs/: README.md and its like, files that pages link, and the
reference of the Python modules, of the command and of CMake. Links are turned from those between
files to those between pages; when all is written, every link and anchor is looked up.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys

import check
import pages
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, InclusionLevel

_ASSETS = ("style.css", "iframe-worker.js")
# Pages of the Python modules, with the names that are said to be public, in the order to read.
_MODULES = {
    "mindspore": (
        "aten_bridge.mindspore",
        ["kernel", "Kernel", "operator", "Operator", "module", "native_caller", "NativeCaller"],
    ),
    "torch": ("aten_bridge.torch", ["load", "Operators", "Operator"]),
    "jax": ("aten_bridge.jax", ["kernel", "Kernel", "operator", "Operator", "module"]),
    "program": ("aten_bridge.program", ["save", "NotExportable"]),
    "build": ("aten_bridge.build", ["load", "load_inline", "cache_dir", "BuildError"]),
    "setuptools": ("aten_bridge.build.setuptools", ["KernelLibrary", "commands", "requirement"]),
    "mint": ("aten_bridge.mint", ["install", "library", "check_interface"]),
}


def on_config(config):
    """Pages in Chinese, where there are some: a tab, in the order of those in English."""
    chinese = [path for path in pages.guides() if pages.page_of(path).startswith("zh/")]
    if chinese:
        written = [pages.page_of(path) for path in chinese]
        ordered = [f"zh/{name}" for name in _names(config.nav) if f"zh/{name}" in written]
        config.nav.append({"中文": ordered + [name for name in written if name not in ordered]})
    return config


def on_files(files, config):
    """Adds the pages that are made."""
    made = {pages.page_of(path): _text(path) for path in pages.guides() if path in pages.PAGES}
    made |= {f"{pages.REFERENCE}/{name}.md": _module(*module) for name, module in _MODULES.items()}
    made[f"{pages.REFERENCE}/command.md"] = _command()
    made[f"{pages.REFERENCE}/cmake.md"] = _cmake()
    made["license.md"] = "# License\n\n```text\n" + _text("LICENSE") + "```\n"
    made |= {name: _text(f"tools/site/{name}") for name in _ASSETS}
    for name, text in made.items():
        files.append(File.generated(config, name, content=text))
    try:
        linked = [target for path in pages.guides() for target in pages.targets(path)]
        sources = pages.sources([*linked, "include", "examples", "cmake/package"])
    except FileNotFoundError as fault:
        raise PluginError(str(fault)) from None
    for path in sources:
        files.append(
            File.generated(
                config,
                pages.page_of(path),
                content=pages.source_page(path, sources),
                inclusion=InclusionLevel.NOT_IN_NAV,
            )
        )
    return files


def on_page_markdown(markdown, page, config, files):
    """Links of files that are written for readers lead to pages."""
    if page.file.src_uri == "index.md":
        page.meta["hide"] = ["navigation"]
    for path in (f"docs/{page.file.src_uri}", *pages.PAGES):
        if pages.page_of(path) == page.file.src_uri and (pages.ROOT / path).exists():
            return pages.with_links_to_pages(markdown, path)
    return markdown


def on_post_page(output, page, config):
    """The language of a page, and anchors of lines where lines have numbers."""
    if page.file.src_uri.startswith("zh/"):
        output = output.replace('<html lang="en"', '<html lang="zh-Hans"', 1)
    if not page.file.src_uri.startswith(pages.SOURCES + "/"):
        output = re.sub(r'<a id="__codelineno[^>]*></a>', "", output)
    return output


def on_post_build(config):
    """Every link leads somewhere."""
    faults = check.faults(config.site_dir)
    if faults:
        more = [f"and {len(faults) - 20} more"] if len(faults) > 20 else []
        raise PluginError("\n".join(faults[:20] + more))


def _names(nav):
    for entry in nav:
        value = next(iter(entry.values())) if isinstance(entry, dict) else entry
        yield from [value] if isinstance(value, str) else _names(value)


def _text(path: str) -> str:
    return (pages.ROOT / path).read_text()


def _module(module: str, members: list[str]) -> str:
    file = pages.ROOT / "python" / module.replace(".", "/")
    text = (file / "__init__.py" if file.is_dir() else file.with_suffix(".py")).read_text()
    public = re.search(r"^__all__ = \[(.*?)\]", text, re.MULTILINE | re.DOTALL)[1]
    if sorted(members) != sorted(re.findall(r"\w+", public)):
        raise PluginError(f"{module}: hooks.py names {members}, __all__ {public}")
    options = "    options:\n      "
    parts = [
        f"# `{module}`\n",
        f"::: {module}\n{options}members: false\n      show_root_toc_entry: false\n",
        *(f"::: {module}.{name}\n{options}show_root_heading: true\n" for name in members),
    ]
    return "\n".join(parts)


def _command() -> str:
    """The command's own help."""
    sys.path.insert(0, str(pages.ROOT / "python"))
    from aten_bridge._command import main

    parts = ["# The command `aten-bridge`\n\nInstalled with the package, by `pip install .`."]
    for words in ([], ["new"], ["check"], ["build"]):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
            main([*words, "--help"])
        title = " ".join(["aten-bridge", *words])
        parts.append(f"## `{title}`\n\n```text\n{printed.getvalue().strip()}\n```")
    return "\n\n".join(parts) + "\n"


def _cmake() -> str:
    """The comment above the function."""
    path = "cmake/package/AtenBridgeAddKernel.cmake"
    comment = re.search(r"\n\n((?:#.*\n)+)function\((\w+)", _text(path))
    text = "\n".join(line[2:] for line in comment[1].splitlines())
    page = f"{pages.REFERENCE}/cmake.md"
    return (
        f"# CMake\n\n## `{comment[2]}`\n\n[{path}]({pages.link(page, path)}){{ .source-line }}\n\n"
        f"```text\n{text}\n```\n"
    )

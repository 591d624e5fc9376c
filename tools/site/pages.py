"""Which page of the site a file of the repository is, and what the links between files become.

Nothing here needs mkdocs: tests/build/test_site.py asks the same questions. A path is that of a
file or folder from the root of the repository, with slashes; a page is named as mkdocs names its
source, such as "reference/cmake.md".
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# Files outside docs/ that are pages as they are.
PAGES = {
    "README.md": "index.md",
    "README.zh-CN.md": "zh/index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
}
SOURCES = "source"  # the folder of the site with files and folders that pages link
REFERENCE = "reference"  # and the one that is made from comments and docstrings

LANGUAGES = {
    **{".cpp": "cpp", ".h": "cpp", ".cu": "cuda", ".py": "python", ".cmake": "cmake"},
    **{".toml": "toml", ".yml": "yaml", ".json": "json", ".sh": "bash", ".md": "markdown"},
}
LARGEST = 200_000  # bytes of a file that is shown

# Code, which has no links, and links, of which the second group is the target.
_CODE_OR_LINK = re.compile(r"```.*?```|``.*?``|`.*?`|(\]\()([^)\s]+)(?=\))", re.DOTALL)


def page_of(path: str) -> str:
    """The page that a file or a folder of the repository is."""
    if path in PAGES:
        return PAGES[path]
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    if (ROOT / path).is_dir():
        return posixpath.normpath(f"{SOURCES}/{path}/index.md")
    folder, name = posixpath.split(path)
    return page_of(folder) if name == "README.md" else f"{SOURCES}/{path}.md"


def is_source(path: str) -> bool:
    """Whether the page of a file or a folder is made of its contents."""
    return page_of(path).startswith(SOURCES + "/")


def guides() -> list[str]:
    """The files that are written for readers."""
    found = [str(path.relative_to(ROOT)) for path in sorted((ROOT / "docs").rglob("*.md"))]
    return [path for path in PAGES if (ROOT / path).exists()] + found


def children(folder: str) -> list[str]:
    """What the page of a folder shows: folders, then files, without what is made or hidden."""
    entries = sorted((ROOT / folder).iterdir(), key=lambda entry: (entry.is_file(), entry.name))
    return [
        posixpath.join(folder, entry.name)
        for entry in entries
        if not entry.name.startswith((".", "__pycache__", "rank_")) and _is_shown(entry)
    ]


def _is_shown(entry: Path) -> bool:
    if entry.is_dir():
        return entry != ROOT / "build"
    return entry.stat().st_size <= LARGEST and b"\0" not in entry.read_bytes()


def targets(path: str) -> Iterator[str]:
    """The files and folders that a guide links. Raises FileNotFoundError where one is missing."""
    for target in _links((ROOT / path).read_text()):
        named = resolve(path, target)
        if named is not None:
            if not (ROOT / named).exists():
                raise FileNotFoundError(f"{path}: there is no {named}, which it links")
            yield named


def sources(wanted: list[str]) -> list[str]:
    """The files and folders that have pages because they are wanted, or stand in such a folder."""
    found: set[str] = set()
    while wanted:
        path = wanted.pop()
        path = posixpath.dirname(path) if path.endswith("/README.md") else path
        if path in found or not is_source(path):
            continue
        found.add(path)
        if (ROOT / path).is_dir():
            wanted += children(path)
            wanted += targets(f"{path}/README.md") if (ROOT / path / "README.md").exists() else []
    return sorted(found)


def resolve(path: str, target: str) -> str | None:
    """The file or folder of the repository that a link in the file `path` names; None for others.

    Those are links within the page, and to other sites.
    """
    name = target.partition("#")[0]
    if not name or re.match(r"[a-z]+:", target):
        return None
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), name))


def with_links_to_pages(text: str, path: str) -> str:
    """The Markdown of the file `path` for the site, without a comment before the heading."""
    text = re.sub(r"\A<!--.*?-->\s*", "", text, flags=re.DOTALL)
    page = page_of(path)

    def replace(match: re.Match[str]) -> str:
        target = match[2]
        named = target and resolve(path, target)
        if not named:
            return match[0]
        return match[1] + link(page, named) + "#" * ("#" in target) + target.partition("#")[2]

    return _with_wide_lists(_CODE_OR_LINK.sub(replace, text))


def _with_wide_lists(text: str) -> str:
    """What continues an item of a list, such as a table, stands four columns in, not two.

    Python-Markdown wants it so, and an empty line behind such an item; other readers of Markdown
    go by where the item's text begins.
    """
    lines: list[str] = []
    is_in_list = is_in_code = has_blocks = False
    for line in text.split("\n"):
        if not is_in_code and line and not line.startswith("  "):
            if line.startswith("- ") and has_blocks and lines[-1]:
                lines.append("")
            is_in_list, has_blocks = line.startswith("- "), False
        elif not line:
            has_blocks = True
        elif is_in_list:
            line = "  " + line
        if line.lstrip().startswith("```"):
            is_in_code = not is_in_code
        lines.append(line)
    return "\n".join(lines)


def link(page: str, path: str) -> str:
    """From a page to the page of a file or a folder."""
    return posixpath.relpath(page_of(path), posixpath.dirname(page) or ".")


def _links(text: str) -> list[str]:
    return [match[2] for match in _CODE_OR_LINK.finditer(text) if match[2]]


def source_page(path: str, others: list[str]) -> str:
    """The Markdown of the page of a file or a folder; `others` have pages too."""
    page = page_of(path)
    front = "---\nsearch:\n  exclude: true\n---\n"
    if (ROOT / path).is_dir():
        return front + _folder_page(path, page, others)
    text = (ROOT / path).read_text()
    name = posixpath.basename(path)
    language = LANGUAGES.get(posixpath.splitext(name)[1], "text")
    language = "cmake" if name == "CMakeLists.txt" else language
    fence = "`" * (1 + max([2, *(len(run) for run in re.findall(r"`{3,}", text))]))
    return (
        f"{front}# {name}\n\n{_way_to(path, page, others)}\n\n"
        f'{fence}{language} linenums="1"\n{text.rstrip()}\n{fence}\n'
    )


def _folder_page(path: str, page: str, others: list[str]) -> str:
    readme = f"{path}/README.md"
    has_readme = (ROOT / readme).exists()
    text = with_links_to_pages((ROOT / readme).read_text(), readme) if has_readme else ""
    heading, _, rest = text.partition("\n")
    entries = [
        f"- [{posixpath.basename(child)}{'/' * (ROOT / child).is_dir()}]({link(page, child)})"
        + _subject(child)
        for child in children(path)
        if child != readme
    ]
    return "\n\n".join(
        [
            heading if has_readme else f"# {posixpath.basename(path)}",
            _way_to(path, page, others),
            rest.strip(),
            *(["## Files"] if has_readme else []),
            "\n".join(entries),
        ]
    )


def _subject(path: str) -> str:
    """What the heading of a folder's README says that its name does not."""
    readme = ROOT / path / "README.md"
    if not readme.exists():
        return ""
    heading = readme.read_text().partition("\n")[0].removeprefix("# ")
    return ": " + heading.partition(": ")[2] if ": " in heading else ""


def _way_to(path: str, page: str, others: list[str]) -> str:
    """The path, with links to its folders; nothing for a folder that stands in none."""
    parts = path.split("/")
    folders = ["/".join(parts[: i + 1]) for i in range(len(parts) - 1)]
    shown = [
        f"[{posixpath.basename(folder)}]({link(page, folder)})"
        if folder in others
        else posixpath.basename(folder)
        for folder in folders
    ]
    return " / ".join([*shown, parts[-1]]) + "\n{ .path }" if shown else ""

"""Looks up every link and anchor of a site: what Markdown's checks do not see stands in HTML.

`python check.py <folder>` does it by itself.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# What else looks like a tag was code in Markdown, without backticks, and shows nothing.
_TAGS = {
    *("a", "article", "b", "body", "br", "button", "code", "dd", "details", "div", "dl", "dt"),
    *("em", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "head", "header", "hr"),
    *("html", "img", "input", "label", "li", "link", "main", "meta", "nav", "ol", "p", "path"),
    *("pre", "script", "small", "span", "strong", "sub", "summary", "sup", "svg", "table"),
    *("tbody", "td", "th", "thead", "title", "tr", "ul"),
}


class _Page(HTMLParser):
    """The anchors of a page, the files that it loads, what it links, and tags that are not HTML."""

    def __init__(self, path: Path):
        super().__init__()
        self.anchors: set[str] = set()
        self.twice: set[str] = set()
        self.links: set[str] = set()
        self.loaded: set[str] = set()
        self.unknown: set[str] = set()
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in _TAGS:
            self.unknown.add(tag)
        values = {name: value for name, value in attrs if value}
        for name in {values.get("id"), values.get("name") if tag == "a" else None} - {None}:
            self.twice |= {name} & self.anchors
            self.anchors.add(name)
        if "href" in values:
            (self.links if tag == "a" else self.loaded).add(values["href"])
        if "src" in values:
            self.loaded.add(values["src"])


def faults(folder: str) -> list[str]:
    """A line for each link that leads nowhere, and for what is loaded from elsewhere."""
    root = Path(folder).resolve()
    pages = {path: _Page(path) for path in sorted(root.rglob("*.html")) if path.name != "404.html"}
    found = []
    for path, page in pages.items():
        name = path.relative_to(root)
        found += [f"{name}: <{tag}> is no tag" for tag in sorted(page.unknown)]
        found += [f"{name}: two anchors #{anchor}" for anchor in sorted(page.twice)]
        for link in sorted(page.loaded):
            if urlsplit(link).scheme or link.startswith("//"):
                found.append(f"{name}: loads {link}, which is not of the site")
        for link in sorted(page.links | page.loaded):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            anchor = unquote(parts.fragment)
            if not target.is_relative_to(root) or not target.is_file():
                found.append(f"{name}: there is no {link}")
            elif anchor and target in pages and anchor not in pages[target].anchors:
                found.append(f"{name}: there is no anchor {link}")
    return found


if __name__ == "__main__":
    lines = faults(sys.argv[1])
    print("\n".join(lines) or "every link leads somewhere")
    sys.exit(bool(lines))

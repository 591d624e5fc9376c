"""Which Chinese pages follow the English pages as they are now.

    python tools/translations.py                     # a line for each page; 1 where one is behind
    python tools/translations.py --accept <page>…    # these have been brought up to date

The first line of a Chinese page, `<!-- follows: docs/errors.md 1a2b3c4d5e6f -->`, names its English
page and the version of it: the first 12 digits of its SHA-256, as `sha256sum` prints them.
"""

import argparse
import hashlib
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MARKER = re.compile(r"<!-- follows: (\S+) ([0-9a-f]{12}) -->\n")


def pages() -> list[str]:
    """The Chinese pages, relative to the repository's root."""
    found = [*ROOT.glob("README.zh-CN.md"), *sorted(ROOT.glob("docs/zh/*.md"))]
    return [page.relative_to(ROOT).as_posix() for page in found]


def marker(page: str) -> re.Match[str]:
    """What the first line of a page says that it follows, and which version of it."""
    match = MARKER.match((ROOT / page).read_text())
    if not match:
        raise SystemExit(
            f"{page}: expected a first line such as "
            "<!-- follows: docs/errors.md 1a2b3c4d5e6f -->, got another one"
        )
    if not (ROOT / match[1]).is_file():
        raise SystemExit(
            f"{page}: expected to follow a page that is there, got {match[1]}; "
            "name the page's new path, or remove the translation"
        )
    return match


def version(english: str) -> str:
    """The id of an English page as it is now."""
    return hashlib.sha256((ROOT / english).read_bytes()).hexdigest()[:12]


def behind(page: str) -> str:
    """What to do for a page that does not follow its English page as that is now; else nothing."""
    english, followed = marker(page).groups()
    now = version(english)
    if now == followed:
        return ""
    return (
        f"{page} falls behind: it follows {english} {followed}, which is {now} now. "
        "See what changed:\n"
        f"    git diff $(git log -1 --format=%h -S{followed} -- {page}) -- {english}\n"
        "translate that, and write the new id:\n"
        f"    python tools/translations.py --accept {page}"
    )


def accept(page: str) -> None:
    """Writes into a page that it follows its English page as that is now."""
    match = marker(page)
    text = (ROOT / page).read_text()
    start, end = match.span(2)
    (ROOT / page).write_text(text[:start] + version(match[1]) + text[end:])


def main() -> int:
    """Prints the state of all pages, after writing the ids that are asked for."""
    parser = argparse.ArgumentParser(description="Which Chinese pages follow the English ones.")
    parser.add_argument(
        "--accept", nargs="+", default=[], metavar="PAGE", help="is up to date: write the new id"
    )
    known = pages()
    for page in parser.parse_args().accept:
        if page not in known:
            parser.error(f"expected one of {', '.join(known)}, got {page}")
        accept(page)
    states = {page: behind(page) for page in known}
    for page, state in states.items():
        print(state or f"{page} follows {' '.join(marker(page).groups())}")
    return any(states.values())


if __name__ == "__main__":
    sys.exit(main())

"""Whether the page of an example shows what the example prints."""

import re

NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]\d+)?%?")


def is_near(shown, printed):
    """Within 3 %; numbers that are rounding only have to be small."""
    shown, printed = (float(text.rstrip("%").replace(",", "")) for text in (shown, printed))
    return abs(shown - printed) <= max(0.03 * abs(shown), 0.01)


def is_like(line, other):
    """Whether the other line begins with these words and such numbers."""
    words = NUMBER.sub("#", line).split()
    return NUMBER.sub("#", other).split()[: len(words)] == words and all(
        map(is_near, NUMBER.findall(line), NUMBER.findall(other))
    )


def not_printed(folder, printed):
    """The lines with numbers of the sample on an example's page that it does not print."""
    sample = re.search(r"```text\n(.*?)```", (folder / "README.md").read_text(), re.DOTALL)[1]
    lines = [line for line in sample.splitlines() if NUMBER.search(line)]
    assert lines
    others = printed.splitlines()
    return [
        line for line in lines if not any(is_like(line.split("…")[0], other) for other in others)
    ]

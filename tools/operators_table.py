"""Writes docs/operators-table.md: which of ATen's operators can be called by name, and why not.

    python tools/operators_table.py <aten_bridge_operators.so> [docs/operators-table.md]

Asks the library, in a process that has no other operators than those of libtorch.
"""

import os
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "python"))

from aten_bridge import _operators

HEAD = """\
# ATen's operators by name

Which of the {names} names of `aten::` in the dispatcher of PyTorch {version}
`aten_bridge.mindspore.operator` can call, {callable} of them with {overloads} overloads, and why
not the others. Written by `python tools/operators_table.py <library> docs/operators-table.md`; how
the operators are called is on [the page about them](operators.md).

"default" is the overload without a name of its own: `operator("aten::gelu")`, or, so that no other
is meant, `operator("aten::gelu.default")`. Overloads that write their arguments (in place, `out=`)
are not listed where the name has one that returns its results.

## Names that can be called

| name | overloads | overloads that cannot |
|---|---|---|
"""

TAIL = """
## Names that cannot

| why | names |
|---|---|
"""


def short(overload):
    """The overload's own name."""
    return overload.name.partition(".")[2] or "default"


def reason(overload):
    """Why an overload cannot be called, without what is its alone."""
    if overload.is_writing:
        return "it writes its argument, in place or as `out=`"
    return re.sub(r"its argument '\w+'", "an argument", overload.fault)


def page(library):
    """The text of the page."""
    names = [name for name in _operators.names(library) if name.startswith("aten::")]
    rows, others, count = [], {}, 0
    for name in names:
        overloads = _operators.overloads(library, name)
        good = [short(one) for one in overloads if not one.fault]
        bad = [one for one in overloads if one.fault and not one.is_writing]
        if good:
            count += len(good)
            left = "; ".join(f"`{short(one)}`: {reason(one)}" for one in bad)
            rows.append(f"| `{name}` | {', '.join(f'`{one}`' for one in good)} | {left} |")
        else:
            why = " or ".join(sorted({reason(one) for one in bad or overloads}))
            others.setdefault(why, []).append(f"`{name.removeprefix('aten::')}`")
    lines = [f"| {why} | {', '.join(operators)} |" for why, operators in sorted(others.items())]
    head = HEAD.format(names=len(names), version="2.11", callable=len(rows), overloads=count)
    return head + "\n".join(rows) + "\n" + TAIL + "\n".join(lines) + "\n"


def main(library, path=None):
    """Writes the page, or prints it."""
    os.environ["ATEN_BRIDGE_OPERATORS"] = library
    text = page(_operators.operators_library())
    Path(path).write_text(text) if path else print(text, end="")


if __name__ == "__main__":
    main(*sys.argv[1:])

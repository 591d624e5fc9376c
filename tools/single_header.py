"""aten_bridge.h with everything in it: one file to copy.

    python tools/single_header.py <include folder> <file to write>

Puts each header of aten_bridge/ where it is included first, without its guard.
"""

import re
import sys
from pathlib import Path

INCLUDE = re.compile(r"#include <(aten_bridge/.*)>")
GUARD = re.compile(r"#(ifndef|define) ATEN_BRIDGE_\w*H_$|#endif  // ATEN_BRIDGE_\w*H_$")
# Conditions that hold for one file with everything in it.
WHOLE = re.compile("ATEN_BRIDGE_(CORE_ONLY|COMPILED)")
LICENSE = "//\n// SPDX-License-Identifier: Apache-2.0\n"


def expanded(name: str, include: Path, done: dict[str, str], condition: str = "") -> list[str]:
    """The lines of a header, and of those that it includes and that are not `done`.

    `condition` is that under which the header stands, and `done` has it for each.
    """
    lines: list[str] = []
    conditions = [condition]
    text = (include / name).read_text()
    for line in (text if name == "aten_bridge.h" else text.replace(LICENSE, "")).splitlines():
        if GUARD.match(line):
            continue
        if not WHOLE.search(line):
            if line.startswith("#if"):
                conditions.append(f"{conditions[-1]} {line}".strip())
            elif line.startswith("#endif"):
                conditions.pop()
        included = INCLUDE.match(line)
        if not included:
            lines.append(line)
            continue
        header = included[1]
        if header not in done:
            done[header] = conditions[-1]
            lines += [f"// ---- {header} ----", ""]
            lines += expanded(header, include, done, conditions[-1])
        elif done[header] not in ("", conditions[-1]):
            raise ValueError(
                f"{name} includes {header}, which stands under a condition only: {done[header]}"
            )
    return lines


def single_header(include: Path) -> str:
    lines = expanded("aten_bridge.h", include, {})
    text = "\n".join(["#ifndef ATEN_BRIDGE_H_", "#define ATEN_BRIDGE_H_", *lines])
    return re.sub(r"\n{3,}", "\n\n", text) + "\n\n#endif  // ATEN_BRIDGE_H_\n"


def main() -> None:
    include, output = (Path(path) for path in sys.argv[1:])
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(single_header(include))


if __name__ == "__main__":
    main()

"""The reference of the header, made of its `///` comments.

It reads what clang-format has left: a comment, then a declaration. A declaration that has no
comment and follows another at once, as an overload does, is shown with it. Shown are names of the
namespaces aten_bridge and aten_bridge::testing, C functions, and macros with a comment; of classes
what is public.
"""

from __future__ import annotations

import functools
import posixpath
import re
import textwrap
from dataclasses import dataclass, field

from pages import REFERENCE, ROOT, link

# Page: its title, what is said first, and sections of headers.
PAGES = {
    f"{REFERENCE}/header.md": (
        "aten_bridge.h",
        "aten_bridge.h",
        [
            ("Exporting a kernel", ["aten_bridge.h"]),
            ("Options", ["aten_bridge/kernel/options.h", "aten_bridge/interface/checks.h"]),
            (
                "Calls and memory",
                [
                    "aten_bridge/interface/operands.h",
                    "aten_bridge/hosts/mindspore/frame.h",
                    "aten_bridge/hosts/mindspore/raw.h",
                    "aten_bridge/core/operand_desc.h",
                ],
            ),
            ("Errors", ["aten_bridge/core/errors.h"]),
            ("Dtypes", ["aten_bridge/core/dtypes.h", "aten_bridge/tensors/views.h"]),
            ("Attributes of a host", ["aten_bridge/core/attributes.h"]),
            (
                "A host of your own",
                [
                    "aten_bridge/call/host.h",
                    "aten_bridge/call/failure.h",
                    "aten_bridge/interface/kernel_base.h",
                ],
            ),
            ("Macros", ["aten_bridge/core/config.h"]),
            ("Source written for MindSpore's tutorial", ["ms_ext.h"]),
        ],
    ),
    f"{REFERENCE}/testing.md": (
        "aten_bridge/testing.h",
        "aten_bridge/testing.h",
        [("Names", ["aten_bridge/testing.h"])],
    ),
    f"{REFERENCE}/testing-cuda.md": (
        "aten_bridge/testing_cuda.h",
        "aten_bridge/testing_cuda.h",
        [("Names", ["aten_bridge/testing_cuda.h"])],
    ),
}

NAMESPACES = ("aten_bridge", "aten_bridge::testing")


@dataclass
class Entry:
    """A name, with each comment on it: a comment may stand above several overloads."""

    name: str
    qualified: str
    line: int
    parts: list[tuple[list[str], list[str]]]  # declarations, lines of the comment
    members: list[Entry] = field(default_factory=list)


def entries(header: str) -> list[Entry]:
    """What a header shows, classes last; `header` is its name behind include/."""
    text = (ROOT / "include" / header).read_text()
    found = _Reader(text).read(0, len(text), "", None)
    return sorted(found, key=lambda entry: bool(entry.members))


def introduction(header: str) -> list[str]:
    """The comment that a header begins with."""
    lines = (ROOT / "include" / header).read_text().splitlines()
    comment = [line[2:].removeprefix(" ") for line in lines[: lines.index("")]]
    return comment[: comment.index("SPDX-License-Identifier: Apache-2.0")]


class _Reader:
    """Declarations of a text, one after the other."""

    def __init__(self, text: str):
        self.text = text
        # The same without comments and strings, in which a brace is none.
        self.code = re.sub(
            r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])'",
            lambda match: re.sub(r"[^\n]", " ", match[0]),
            text,
            flags=re.DOTALL,
        )

    def read(self, start: int, end: int, namespace: str, of_class: str | None) -> list[Entry]:
        """The entries between two places."""
        found: list[Entry] = []
        is_public = True
        is_hidden = of_class is None and namespace not in ("", *NAMESPACES)
        comment: list[str] = []
        follows = False  # nothing stands between this and the last entry
        at = start
        while at < end:
            line_end = self.text.find("\n", at)
            line_end = end if line_end < 0 else min(line_end, end)
            line = self.text[at:line_end].strip()
            if not line:
                at, follows, comment = line_end + 1, False, []
            elif line.startswith("///"):
                comment.append(line[3:].removeprefix(" "))
                at = line_end + 1
            elif line.startswith("//"):
                at = line_end + 1
            elif line.startswith("#"):
                while self.text[line_end - 1] == "\\":
                    line_end = self.text.index("\n", line_end + 1)
                macro = re.match(r"#define (ATEN_BRIDGE_\w+(?:\([^)]*\))?)", line)
                if macro and comment and "_ENTRY_" not in macro[1]:  # a host's
                    name = macro[1].partition("(")[0]
                    found.append(Entry(name, name, self._line(at), [([macro[1]], comment)]))
                at, follows, comment = line_end + 1, False, []
            elif re.fullmatch(r"(public|private|protected):", line):
                is_public = line == "public:"
                at, follows, comment = line_end + 1, False, []
            elif opened := re.match(r"(?:inline )?namespace ([\w:]*) ?\{", line):
                body = self.code.index("{", at) + 1
                at = self._closing(body)
                inner = f"{namespace}::{opened[1]}" if namespace else opened[1]
                found += self.read(body, at - 1, inner, None)
                at, follows, comment = self._line_end(at), False, []
            else:
                declared, body, next_at = self._declaration(at)
                entry = self._entry(at, declared, body, namespace, of_class, comment)
                if entry is not None and is_public and not is_hidden:
                    last = found[-1] if found and not found[-1].members else None
                    if follows and not comment and last is not None:
                        last.parts[-1][0].append(declared)
                    elif last is not None and last.name == entry.name and comment:
                        last.parts += entry.parts
                    elif comment or of_class is not None:
                        found.append(entry)
                    follows = True
                at, comment = self._line_end(next_at), []
        return found

    def _entry(
        self,
        at: int,
        declared: str,
        body: tuple[int, int] | None,
        namespace: str,
        of_class: str | None,
        comment: list[str],
    ) -> Entry | None:
        """The entry of a declaration; None for what no reader asks for."""
        code = " ".join(self.code[at : at + len(declared)].split())
        is_deleted = code.endswith("= delete;") and not code.startswith("template <class T>")
        if is_deleted or re.match(r"friend|static_assert|template <>|(virtual )?~", code):
            return None
        name = _name_of(code)
        if name is None:
            return None
        qualified = "::".join(part for part in (namespace, of_class, name) if part)
        entry = Entry(name, qualified, self._line(at), [([declared], comment)])
        if body is not None and re.match(r"(template <.*> ?)?(class|struct) ", code):
            inner = self.text[body[0] : body[1]]
            public = re.search(r"^ *public:\n", inner, re.MULTILINE)
            start = body[0]
            if re.match(r"(template <.*?> ?)?class ", code):
                start = body[0] + public.start() if public else body[1]
            entry.members = self.read(start, body[1], namespace, name)
        return entry

    def _declaration(self, at: int) -> tuple[str, tuple[int, int] | None, int]:
        """A declaration's text, where its body is, and where the next one may begin."""
        depth = 0
        colon = None  # that of a constructor's initialisers
        place = at
        while True:
            c = self.code[place]
            if c in "([":
                depth += 1
            elif c in ")]":
                depth -= 1
            elif depth == 0 and c == ";":
                text = self.text[at : colon or place + 1]
                rest = self.text[place + 1 : self._line_end(place) - 1].strip()
                return text + f"  {rest}" * rest.startswith("///<"), None, place + 1
            elif c == ":" and not depth and colon is None and self._begins_initialisers(at, place):
                colon = place
            elif depth == 0 and c == "{":
                end = self._closing(place + 1)
                before = self.code[at:place].rstrip()
                if before.endswith("=") or (colon and re.search(r"\w$", before)):
                    place = end  # of a value
                    continue
                if re.match(r"enum\b", self.code[at:]):
                    return self.text[at : end + 1], None, end + 1
                after = end + 1 if self.code[end : end + 1] == ";" else end
                return self.text[at : colon or place].rstrip(), (place + 1, end - 1), after
            place += 1

    def _begins_initialisers(self, at: int, place: int) -> bool:
        is_scope = ":" in (self.code[place - 1], self.code[place + 1])
        return not is_scope and re.search(r"\)( noexcept)?\s*$", self.code[at:place]) is not None

    def _closing(self, place: int) -> int:
        """Behind the brace that closes the one before `place`."""
        depth = 1
        while depth:
            depth += {"{": 1, "}": -1}.get(self.code[place], 0)
            place += 1
        return place

    def _line(self, place: int) -> int:
        return self.text.count("\n", 0, place) + 1

    def _line_end(self, place: int) -> int:
        end = self.text.find("\n", place)
        return len(self.text) if end < 0 else end + 1


def _name_of(code: str) -> str | None:
    """The name that a declaration declares."""
    code = re.sub(r"\[\[.*?\]\]|__attribute__\(\(.*?\)\)\)?|^extern \s+", "", code)
    if code.startswith("template <"):  # its parameters
        depth = 1
        end = code.index("<") + 1
        while depth:
            depth += {"<": 1, ">": -1}.get(code[end], 0)
            end += 1
        return _name_of(code[end:].strip())
    for pattern in (
        r"using (\w+) =",
        r"(?:class|struct|enum(?: class)?) (?:ATEN_BRIDGE_PUBLIC )?(\w+)",
        r"[^=(]*?\b(operator\s*[^\w\s(]+|operator\(\))",
        r"[^=(]*?\(\*(\w+)\)",
        r"[^(=]*?(\w+)\(",
        r"[^=;]*?(\w+)(?: =|;|\{)",
    ):
        match = re.match(pattern, code)
        if match:
            return match[1]
    return None


#
# Markdown
#


def page(name: str) -> str:
    """The Markdown of a page of PAGES."""
    title, header, sections = PAGES[name]
    parts = [f"# `{title}`", markdown(introduction(header), name)]
    for section, headers in sections:
        parts.append(f"## {section}")
        for header in headers:
            parts += [_entry(entry, header, name) for entry in entries(header)]
    return "\n\n".join(parts) + "\n"


@functools.cache
def anchors() -> dict[str, str]:
    """Where a name is explained: "header.md#attr" for "aten_bridge::attr"."""
    found: dict[str, str] = {}
    for name, (_, _, sections) in PAGES.items():
        for header in (header for _, headers in sections for header in headers):
            for entry in entries(header):
                found[entry.qualified] = f"{posixpath.basename(name)}#{entry.name}"
    return found


def _entry(entry: Entry, header: str, name: str) -> str:
    """A heading, where it stands, the declarations with their comments, and the members."""
    source = link(name, f"include/{header}") + f"#__codelineno-0-{entry.line}"
    blocks = [
        f"### `{entry.name}` {{ #{entry.name} }}",
        f"[{header}:{entry.line}]({source}){{ .source-line }}",
        _parts(entry, name),
    ]
    if entry.members:
        members = "\n\n".join(_parts(member, name) for member in entry.members)
        blocks.append(f'<div class="members" markdown>\n\n{members}\n\n</div>')
    return "\n\n".join(blocks)


def _parts(entry: Entry, name: str) -> str:
    blocks = []
    for declarations, comment in entry.parts:
        code = "\n".join(_dedented(declaration) for declaration in declarations)
        blocks.append(f"```cpp\n{code}\n```")
        if comment:
            blocks.append(markdown(comment, name))
    return "\n\n".join(blocks)


def _dedented(text: str) -> str:
    return textwrap.dedent(text).rstrip().replace("///<", "//")


# What is code in a comment, though nobody has put it into backticks: names with :: or (), with
# dots or underscores, macros, files, what stands for a kernel's name, and arguments in CMake.
_ARGUMENTS = r"\((?:[^()]|\([^()]*\))*\)"
_CODE = re.compile(
    r"`[^`]+`|docs/[\w-]+\.md|torch\.ops\.<\w+>\.<[\w ]+>"
    rf"|(?:\b\w+::)+~?\w+(?:<[^<>\s]*(?:<[^<>\s]*>)?[^<>\s]*>)?(?:{_ARGUMENTS})?"
    rf"|\bATEN_BRIDGE_\w+(?:{_ARGUMENTS})?|\b[a-z]\w+(?:[./]\w+)+(?:{_ARGUMENTS})?"
    r"|<\w+>(?:\.?\w+)*|\b\w+\(\)|\b\w+<\w+>|\b\w*[a-z]\w*_\w+\b/?|\$\{\w+\}|\bRTLD_\w+"
    r"|\b(?:DEVICE|HOSTS?|INSTALL_DIR|HEADER_ONLY|MINDSPORE(?:_PLUGIN)?|MS_OP_\w+|NAMESPACE|PYTORCH"
    r"|CMAKE_\w+)\b|\bproject\(.*?\)"
)


def markdown(lines: list[str], name: str) -> str:
    """A comment's text: paragraphs, lists, and what is indented, which is code."""
    blocks: list[list[str]] = []
    kind = ""
    for line in [*lines, ""]:
        previous = kind
        if not line:
            kind = ""
        elif line.startswith("- "):
            kind = "list"
        elif line.startswith("  ") and previous != "list":
            kind = "code"
        elif not line.startswith("  "):
            kind = "text"
        if kind and (kind != previous):
            blocks.append([kind])
        if kind:
            blocks[-1].append(line)
    return "\n\n".join(_block(block[0], block[1:], name) for block in _joined(blocks))


def _joined(blocks: list[list[str]]) -> list[list[str]]:
    """Code on both sides of an empty line is one block."""
    joined: list[list[str]] = []
    for block in blocks:
        if joined and block[0] == joined[-1][0] == "code":
            joined[-1] += ["", *block[1:]]
        else:
            joined.append(block)
    return joined


def _block(kind: str, lines: list[str], name: str) -> str:
    if kind == "code":
        code = textwrap.dedent("\n".join(lines))
        is_program = re.search(r";|^#", code, re.MULTILINE)
        return f"```{'cpp' if is_program else 'text'}\n{code}\n```"
    if kind == "list":
        items = "\n".join(lines)
        return "\n".join(
            "- " + textwrap.indent(_inline(item, name), "    ").strip()
            for item in re.split(r"^- ", items, flags=re.MULTILINE)[1:]
        )
    return _inline("\n".join(lines), name)


def _inline(text: str, name: str) -> str:
    parts = []
    last = 0
    for match in _CODE.finditer(text):
        parts.append(_escaped(text[last : match.start()]))
        last = match.end()
        code = match[0].strip("`").replace("\n", " ")
        target = link(name, code) if code.startswith("docs/") else _target(code)
        parts.append(f"[`{code}`]({target})" if target else f"`{code}`")
    parts.append(_escaped(text[last:]))
    return "".join(parts)


def _target(code: str) -> str | None:
    """Where what is said in a comment is explained, if it is."""
    known = re.match(r"[\w:]+", code)
    if known is None:
        return None
    names = [known[0], known[0].rpartition("::")[0]]
    if known[0][0].isupper():  # a class; a small word may be a parameter's name
        names += [f"{namespace}::{name}" for name in names for namespace in NAMESPACES]
    return next((anchors()[name] for name in names if name in anchors()), None)


def _escaped(text: str) -> str:
    return re.sub(r"([*_\[\]])", r"\\\1", text.replace("&", "&amp;").replace("<", "&lt;"))

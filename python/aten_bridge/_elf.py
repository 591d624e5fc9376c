"""ELF files: what their headers say, looked at before the dynamic linker follows them."""

from __future__ import annotations

import itertools
import mmap
import struct
from typing import NamedTuple

Content = mmap.mmap | bytes

# e_machine in the header of an ELF file.
_MACHINES = {
    3: "x86 (32 bits)",
    21: "PowerPC64",
    40: "ARM (32 bits)",
    62: "x86-64",
    183: "AArch64",
    243: "RISC-V",
    258: "LoongArch",
}


class Contradiction(Exception):
    """Of what an ELF file says about itself."""


def _unpack(layout: str, content: Content, offset: int) -> tuple[int, ...]:
    try:
        return struct.unpack_from(layout, content, offset)
    except (struct.error, OverflowError):  # behind the end, and behind 2^63
        raise Contradiction from None


def machine(header: Content) -> int:
    return _unpack("<H", header, 18)[0]


def machine_name(number: int) -> str:
    return _MACHINES.get(number, f"the machine with ELF number {number}")


# ===--- segments, which the dynamic linker maps ---===

_LOAD, _DYNAMIC, _TLS, _RELRO = 1, 2, 7, 0x6474E552
_EXECUTABLE, _WRITABLE, _READABLE = 1, 2, 4
_OF_THREAD = 0x400  # SHF_TLS, of a section
_LARGEST_PAGE = 2**16  # bytes, on arm64


class _Segment(NamedTuple):
    kind: int
    flags: int
    offset: int
    address: int
    physical: int
    file_size: int
    size: int
    alignment: int

    def has(self, address: int, size: int) -> bool:
        """Whether so many bytes at an address come from this segment's part of the file."""
        begin = address - self.address
        return begin >= 0 and begin + size <= self.file_size

    @property
    def end(self) -> int:
        return self.address + self.size


def _has(segments: list[_Segment], address: int, size: int) -> bool:
    return size == 0 or any(one.has(address, size) for one in segments)


def _table(content: Content, offset_at: int, size_at: int) -> range:
    """Where the entries of a table of an ELF file begin."""
    (offset,) = _unpack("<Q", content, offset_at)
    size, count = _unpack("<HH", content, size_at)
    return range(offset, offset + size * count, max(size, 1))


def _segment_places(content: Content) -> range:
    return _table(content, 32, 54)


def _section_places(content: Content) -> range:
    return _table(content, 40, 58)


def _segments(content: Content) -> list[_Segment]:
    return [_Segment(*_unpack("<IIQQQQQQ", content, place)) for place in _segment_places(content)]


def least_size(content: Content) -> int:
    """How long an ELF file is at least, as its headers say."""
    if len(content) < 64:
        return 64
    end = max(_segment_places(content).stop, _section_places(content).stop)
    if end > len(content):
        return end
    return max([end, *(one.offset + one.file_size for one in _segments(content))])


def check(content: Content) -> None:
    """Raises Contradiction where the dynamic linker would read or write outside of the library.

    glibc's trusts the segments and the dynamic table: it ends the process. What the tables contain
    that these lead to (symbols, relocations, code) is as trusted as the library.
    """
    segments = _segments(content)
    loads = [one for one in segments if one.kind == _LOAD]
    ascend = all(one.end <= other.address for one, other in itertools.pairwise(loads))
    fit = all(one.file_size <= one.size for one in segments if one.kind in (_LOAD, _TLS))
    if not (loads and ascend and fit and loads[-1].end <= 2**63):
        raise Contradiction
    _check_thread_memory(content, [one for one in segments if one.kind == _TLS and one.size])
    for one in segments:
        if one.kind == _TLS and not _has(loads, one.address, one.file_size):
            raise Contradiction
        if one.kind == _RELRO and not any(
            # It may be filled up to a whole page.
            load.address <= one.address and one.end <= load.end + load.alignment
            for load in loads
            if load.flags & _WRITABLE
        ):
            raise Contradiction
    dynamic = [one for one in segments if one.kind == _DYNAMIC]
    if len(dynamic) != 1:
        raise Contradiction
    _check_dynamic(content, dynamic[0], loads)


def _check_thread_memory(content: Content, segments: list[_Segment]) -> None:
    """That each thread gets what it needs, and not so much more that there is no memory for it."""
    size = segments[-1].size if segments else 0  # glibc takes the last
    needed = _thread_memory(content)
    if size < needed or (needed and size > needed + _LARGEST_PAGE):
        raise Contradiction
    if any(one.alignment > _LARGEST_PAGE for one in segments):
        raise Contradiction


def _thread_memory(content: Content) -> int:
    """How many bytes each thread has of its own; 0 where no section says so.

    The code writes there, whatever the segments say.
    """
    sections = (_unpack("<8xQQ8xQ", content, place) for place in _section_places(content))
    places = [(at, at + size) for flags, at, size in sections if flags & _OF_THREAD and size]
    return max(end for _, end in places) - min(at for at, _ in places) if places else 0


# ===--- the dynamic table ---===

_NULL, _PLTGOT, _STRTAB, _SYMTAB, _STRSZ = 0, 3, 5, 6, 10
_INIT, _FINI = 12, 13
# What is at an address: the number with its size in bytes, or how many bytes there are at least.
_SIZED = {
    _STRTAB: _STRSZ,
    7: 8,  # relocations
    17: 18,
    23: 2,
    36: 35,
    25: 27,  # functions that are called when the library is opened, and closed
    26: 28,
}
_AT_LEAST = {
    4: 8,  # the two tables of hashes
    0x6FFFFEF5: 16,
    _SYMTAB: 24,
    _INIT: 1,
    _FINI: 1,
    0x6FFFFFF0: 2,  # versions of symbols
    0x6FFFFFFC: 20,
    0x6FFFFFFE: 16,
}
_NAMES = (1, 14, 15, 29)  # offsets in the table of strings
_CONSTANTS = {9: 24, 11: 24, 20: 7, 37: 8}  # sizes of entries, and the kind of relocations


def _check_dynamic(content: Content, dynamic: _Segment, loads: list[_Segment]) -> None:
    if not any(
        load.has(dynamic.address, dynamic.file_size)
        and load.address - load.offset == dynamic.address - dynamic.offset
        and load.flags & dynamic.flags == dynamic.flags
        for load in loads
    ):
        raise Contradiction
    entries: list[tuple[int, int]] = []
    for place in range(dynamic.offset, dynamic.offset + dynamic.file_size, 16):
        tag, value = _unpack("<QQ", content, place)
        if tag == _NULL:
            break
        entries.append((tag, value))
    else:
        raise Contradiction  # it goes on behind its end
    table = dict(entries)
    if not {_STRTAB, _SYMTAB, _STRSZ} <= table.keys():
        raise Contradiction
    for tag, value in entries:
        if tag in _NAMES and value >= table[_STRSZ]:
            raise Contradiction
        if _CONSTANTS.get(tag, value) != value:
            raise Contradiction
        size = table.get(_SIZED[tag], 2**64) if tag in _SIZED else _AT_LEAST.get(tag)
        flag = _EXECUTABLE if tag in (_INIT, _FINI) else _READABLE
        if size is not None and not _has([one for one in loads if one.flags & flag], value, size):
            raise Contradiction
        # The dynamic linker writes there, and some linkers keep it out of the file.
        if tag == _PLTGOT and not any(load.address <= value < load.end for load in loads):
            raise Contradiction


# ===--- sections, of which names are read ---===

_DYNAMIC_SECTION, _DYNSYM = 6, 11


class _Section(NamedTuple):
    kind: int
    offset: int
    size: int
    link: int


def _section(content: Content, kind: int) -> tuple[_Section, bytes] | None:
    """The first section of a kind, with its strings."""
    sections = [
        _Section(*_unpack("<4xI16xQQI", content, place)) for place in _section_places(content)
    ]
    for one in sections:
        if one.kind == kind:
            if one.link >= len(sections):
                raise Contradiction
            strings = sections[one.link]
            return one, content[strings.offset : strings.offset + strings.size]
    return None


def _string(strings: bytes, begin: int) -> str:
    end = strings.find(b"\0", begin)
    if end < 0:
        raise Contradiction
    return strings[begin:end].decode(errors="backslashreplace")  # names may be any bytes


def exported_functions(content: Content) -> list[str]:
    """Names of the functions in the dynamic symbol table of an ELF file."""
    found = _section(content, _DYNSYM)
    if found is None:
        return []
    symbols, strings = found
    names = []
    for place in range(symbols.offset, symbols.offset + symbols.size, 24):
        name, info, _, section = _unpack("<IBBH", content, place)
        if info & 15 == 2 and section != 0:  # STT_FUNC, defined here
            names.append(_string(strings, name))
    return names


def needed(content: Content) -> list[str]:
    """Names of the libraries that an ELF file needs, in their order."""
    found = _section(content, _DYNAMIC_SECTION)
    if found is None:
        return []
    dynamic, strings = found
    names = []
    for place in range(dynamic.offset, dynamic.offset + dynamic.size, 16):
        tag, value = _unpack("<QQ", content, place)
        if tag == _NULL:
            break
        if tag == 1:  # DT_NEEDED
            names.append(_string(strings, value))
    return names

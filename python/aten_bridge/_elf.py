"""ELF files, which are not opened: whether one is whole and for this machine, and names in it."""

from __future__ import annotations

import contextlib
import os
import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from elftools.elf.elffile import ELFFile

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


def check(path: str) -> None:
    """Raises OSError if the file is not a whole ELF file for this machine."""
    with open(path, "rb") as file, open("/proc/self/exe", "rb") as python:
        header, here = file.read(64), python.read(20)
        if not header:
            raise OSError(f"{path}: expected a kernel library, got an empty file; build it again")
        if header[:4] != b"\x7fELF":
            raise OSError(
                f"{path}: expected a kernel library, got a file that is no ELF library; give the "
                "path of what was built"
            )
        # Class and byte order, then e_machine.
        if len(header) >= 20 and (header[4:6], header[18:20]) != (here[4:6], here[18:20]):
            wanted, got = (_machine(one) for one in (here, header))
            raise OSError(
                f"{path}: expected a kernel library for {wanted}, got one for {got}; build it on "
                "this machine or with a compiler for it"
            )
        # Memory that is mapped beyond the end of the file raises SIGBUS, which ends the process.
        size = os.fstat(file.fileno()).st_size
        if (end := _least_size(file, header, size)) > size:
            raise OSError(
                f"{path}: expected a whole ELF library, got one that is cut off at {size} bytes of "
                f"{end} or more; copy or build it again"
            )


def _machine(header: bytes) -> str:
    number = int.from_bytes(header[18:20], "little")
    return _MACHINES.get(number, f"the machine with ELF number {number}")


def _least_size(file: BinaryIO, header: bytes, size: int) -> int:
    """How long the file is at least, as its header and its table of segments say."""
    if len(header) < 64:
        return 64
    segments, sections = struct.unpack_from("<QQ", header, 32)
    segment_size, segment_count, section_size, section_count = struct.unpack_from("<4H", header, 54)
    end = max(segments + segment_size * segment_count, sections + section_size * section_count)
    if end > size or segment_size != 56:
        return end
    file.seek(segments)
    table = file.read(segment_size * segment_count)
    return max([end, *(sum(ends) for ends in struct.iter_unpack("<8xQ16xQ16x", table))])


@contextlib.contextmanager
def read(path: str) -> Iterator[ELFFile]:
    """What a file says; raises OSError as check() does, or where that leads nowhere."""
    check(path)
    try:
        from elftools.elf.elffile import ELFFile  # takes a tenth of a second
    except ImportError:
        raise ImportError(
            f"{path}: expected the package pyelftools, which reads the names in a library, got "
            "none; pip install pyelftools"
        ) from None
    with open(path, "rb") as file:
        try:
            yield ELFFile(file)
        except Exception:  # each layer of the reader has its own
            raise OSError(
                f"{path}: expected a kernel library, got an ELF file whose headers contradict each "
                "other; copy or build it again"
            ) from None


def exported_functions(file: ELFFile) -> list[str]:
    """Names of the functions in the dynamic symbol table."""
    sections = file.iter_sections("SHT_DYNSYM")
    return [
        symbol.name
        for section in sections
        for symbol in section.iter_symbols()
        if symbol["st_info"]["type"] == "STT_FUNC" and symbol["st_shndx"] != "SHN_UNDEF"
    ]


def needed_libraries(file: ELFFile) -> list[str]:
    """Names of the libraries that the dynamic linker is to find, in their order."""
    sections = file.iter_sections("SHT_DYNAMIC")
    return [tag.needed for section in sections for tag in section.iter_tags("DT_NEEDED")]


def needed_versions(file: ELFFile) -> list[str]:
    """The versions of other libraries of which this one uses anything, such as "GLIBC_2.14"."""
    sections = file.iter_sections("SHT_GNU_verneed")
    return [
        version.name
        for section in sections
        for _, versions in section.iter_versions()
        for version in versions
    ]

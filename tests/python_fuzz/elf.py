"""Kernel libraries with other bytes in their headers, and other files."""

from __future__ import annotations

import contextlib
import itertools
import os
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

Changes = list[tuple[int, bytes]]

# What `Whole.kinds` makes.
KINDS = ["empty.so", "text.so", "cut.so", "folder.so", "pipe.so", "circle.so", "nowhere.so"]
KINDS += ["\udcff.so", "whole.so"]

_serial_numbers = itertools.count()


class Whole:
    """A library as it was built, and where its headers lie."""

    def __init__(self, path: Path):
        self.path = path
        self.content = path.read_bytes()
        segments, sections = (self._unpack("<Q", place) for place in (32, 40))
        segment_count, section_count = (self._unpack("<H", place) for place in (56, 60))
        table = range(segments, segments + 56 * segment_count, 56)
        self.headers = [
            *range(64),
            *range(segments, segments + 56 * segment_count),
            *range(sections, sections + 64 * section_count),
        ]
        dynamic = next(
            struct.unpack_from("<8xQ16xQ", self.content, place)
            for place in table
            if self._unpack("<I", place) == 2
        )
        self.dynamic_table = range(dynamic[0], sum(dynamic))

    def _unpack(self, kind: str, place: int) -> int:
        (number,) = struct.unpack_from(kind, self.content, place)
        return number

    def changes(self, places: Sequence[int]) -> st.SearchStrategy[Changes]:
        """Bytes, or numbers of 2, 4 or 8 bytes, instead of others."""
        extremes = [0, 1, 2**63, 2**64 - 1, 0x1000, len(self.content)]
        numbers = st.one_of(st.integers(0, 2**64 - 1), st.sampled_from(extremes))
        aligned = st.builds(
            lambda place, size, number: (
                place // size * size,
                (number % 2 ** (8 * size)).to_bytes(size, "little"),
            ),
            st.sampled_from(places),
            st.sampled_from([1, 2, 4, 8]),
            numbers,
        )
        return st.lists(aligned, min_size=1, max_size=3)

    def ends(self) -> st.SearchStrategy[Any]:
        """Where it is cut off, or None."""
        sizes = st.sampled_from([0, 1, 3, 4, 19, 20, 63, 64, 65])
        return st.one_of(st.none(), sizes, st.integers(0, len(self.content)))

    def changed(self, changes: Changes, end: int | None = None) -> bytes:
        content = bytearray(self.content)
        for place, replacement in changes:
            content[place : place + len(replacement)] = replacement
        return bytes(content[:end])

    @contextlib.contextmanager
    def in_file(self, folder: Path, changes: Changes, end: int | None = None) -> Iterator[Path]:
        """The changed library, in a file of its own: writing to one that is open ends a process."""
        library = folder / f"changed_{next(_serial_numbers)}.so"
        library.write_bytes(self.changed(changes, end))
        try:
            yield library
        finally:
            library.unlink()

    def kinds(self, folder: Path) -> Path:
        """The folder with something of every kind."""
        (folder / "empty.so").touch()
        (folder / "text.so").write_text("def leaky_relu(x): ...")
        (folder / "cut.so").write_bytes(self.content[:3000])
        (folder / "folder.so").mkdir()
        os.mkfifo(folder / "pipe.so")
        (folder / "circle.so").symlink_to(folder / "circle.so")
        (folder / "nowhere.so").symlink_to(folder / "missing.so")
        (folder / "\udcff.so").write_bytes(self.content)
        (folder / "whole.so").symlink_to(self.path)
        return folder

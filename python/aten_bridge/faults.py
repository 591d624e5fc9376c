"""What is wrong with the operands of a call, and with attributes: as data, for programs.

The text of the error says the same for people.
"""

from __future__ import annotations

import collections
import enum
from collections.abc import Callable, Iterable
from typing import NamedTuple

__all__ = ["Fault", "Status", "faults_of"]


class Status(enum.IntEnum):
    """The classes of failure: `Status` of core/errors.h."""

    OK = 0
    COUNT = 1
    DTYPE = 2
    SHAPE = 3
    DEVICE = 4
    NULL_POINTER = 5
    ATTRIBUTE = 6
    OUTPUT = 7
    ATEN = 8
    CUDA = 9
    EXCEPTION = 10
    UNKNOWN = 11
    PYTORCH = 12
    VALUES = 13
    META_IN_PYTHON = 14


class Fault(NamedTuple):
    """What is wrong with one operand or attribute. As a str it is a line of the error's text."""

    expected: str
    got: str
    hint: str = ""  # what to do, where there is more to say
    status: Status = Status.DTYPE
    subject: str = "input"  # or "output", "slot", "attribute"; "call": the number of inputs
    index: int = -1  # the operand's; -1: of no operand
    name: str = ""  # an attribute's, or the operand's where the text has it
    element: int | None = None  # which one, where the input is a tuple

    @property
    def text(self) -> str:
        """The same without the operand or attribute."""
        where = "" if self.element is None else f"element {self.element} of the tuple: "
        got = f", got {self.got}" if self.got else ""
        return f"{where}expected {self.expected}{got}" + (f"; {self.hint}" if self.hint else "")

    def __str__(self) -> str:
        index = f" {self.index}" if self.index >= 0 else ""
        name = f" {self.name!r}" if self.name else ""
        return ("" if self.subject == "call" else f"{self.subject}{index}{name}: ") + self.text


_Failures = Iterable[tuple[str, tuple[Fault, ...]]]  # texts of errors, and their faults

# A host may raise an error again, as another one with the text in it.
_recent: collections.deque[tuple[str, tuple[Fault, ...]]] = collections.deque(maxlen=16)
_sources: list[Callable[[], _Failures]] = [lambda: list(_recent)]


def add_source(failures: Callable[[], _Failures]) -> None:
    """Adds a library, which tells its last failures."""
    _sources.append(failures)


def error_of(kind: type[Exception], operator: str, faults: Iterable[Fault]) -> Exception:
    """The error that says all that is wrong with a call of an operator, or with its attributes."""
    faults = tuple(faults)
    error = kind("\n".join(f"{operator}: {fault}" for fault in faults))
    error.faults = faults
    _recent.append((str(error), faults))
    return error


def faults_of(error: BaseException) -> tuple[Fault, ...]:
    """What an error of the bridge says of operands and attributes, in the order of its lines.

    An error that a host raised with the bridge's text in it has them until its library has failed
    16 more times. For all other errors the result is empty.

        try:
            operator(x)
        except Exception as error:
            wrong = {fault.index for fault in faults_of(error) if fault.status == Status.DTYPE}
    """
    known = getattr(error, "faults", None)
    if isinstance(known, tuple) and all(isinstance(one, Fault) for one in known):
        return known
    text = str(error)
    found = [one for failures in _sources for one in failures() if one[0] and one[0] in text]
    return max(found, key=lambda one: len(one[0]))[1] if found else ()

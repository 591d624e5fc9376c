"""Texts: values and names in errors, and what can be written in UTF-8."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable
from typing import Any

_LONGEST_SHOWN = 1000  # characters of a value in an error text


def as_switch(beginning: str, what: str, value: Any) -> bool:
    """A bool of Python's or NumPy's, which is not imported for it; TypeError for anything else."""
    kind = type(value)
    is_numpys = kind.__module__ == "numpy" and kind.__name__ in ("bool", "bool_")
    if not (is_numpys or isinstance(value, bool)):
        raise TypeError(
            f"{beginning}: expected {what} to be True or False, got {format_value(value)}"
        )
    return bool(value)


def as_float(number: Any) -> float:
    """A real number; infinite where it is a fraction that no float can hold."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # lone surrogates, which stand for bytes in names of files
        return False
    return True


def as_text(content: bytes) -> str:
    """What a library says; bytes that are not UTF-8 become numbers, as in the bridge."""
    return content.decode(errors="backslashreplace")


def format_value(value: Any) -> str:
    """A value for an error text: its repr(), of which a long one is cut."""
    if isinstance(value, int) and value.bit_length() > 4096:
        return f"an int of {value.bit_length()} bits"  # Python refuses to print long ones
    try:
        text = repr(value)
    except Exception:  # lists nested too deeply, ints in a list, an object's own
        return f"a value of type {type(value).__name__}"
    return cut(text)


def cut(text: str) -> str:
    return text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "…"


def or_list(names: Iterable[str], most: int = 10) -> str:
    """The names as a text, such as "'A', 'B' and 3 more"."""
    names = list(names)
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(repr(name) for name in names[:most]) + more


def closest(name: str, names: Iterable[str]) -> str | None:
    """The most similar name; upper case and underscores make little difference."""
    plain: dict[str, str] = {}
    for one in sorted(names, key=len):  # softmax before _softmax
        plain.setdefault(_plain(one), one)
    close = difflib.get_close_matches(_plain(name), plain, n=1, cutoff=0.5)
    return plain[close[0]] if close else None


def _plain(name: str) -> str:
    return name.casefold().replace("_", "")


def suggestion(name: str, names: Iterable[str]) -> str:
    close = closest(name, names)
    return f"did you mean {close!r}?" if close else ""


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """The same behind a text."""
    hint = suggestion(name, names)
    return f"; {hint}" if hint else ""

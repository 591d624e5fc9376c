"""What an input may come to."""

from collections.abc import Collection

from worker import Outcome

# Those that functions are documented to raise, and subclasses of OSError that say more.
_MISTAKEN = {"builtins.TypeError", "builtins.ValueError"}
_FILES = {f"builtins.{name}" for name in ("FileNotFoundError", "IsADirectoryError", "OSError")}
KERNEL = {*_MISTAKEN, *_FILES, "builtins.ImportError", "builtins.AttributeError"}
LOADING = {*_MISTAKEN, *_FILES, "builtins.RuntimeError"}
BUILDING = {*_MISTAKEN, *_FILES, "builtins.PermissionError"}


def assert_message(
    outcome: Outcome, *beginnings: str, documented: Collection[str] = KERNEL
) -> None:
    """An error of a documented type, whose text begins in one of these ways; or none."""
    if not outcome.error:
        return
    assert outcome.error in documented, outcome
    assert outcome.text.startswith(beginnings), outcome
    # PyTorch's own texts are quoted with what was inferred.
    assert "expected " in outcome.text or "(inferring from " in outcome.text, outcome

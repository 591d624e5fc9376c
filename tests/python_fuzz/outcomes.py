"""What an input may come to."""

from worker import Outcome

# Those that `kernel` is documented to raise, and subclasses of OSError that say more.
_DOCUMENTED = {
    "builtins.FileNotFoundError",
    "builtins.IsADirectoryError",
    "builtins.OSError",
    "builtins.ImportError",
    "builtins.AttributeError",
    "builtins.TypeError",
    "builtins.ValueError",
}


def assert_in_words(outcome: Outcome, *beginnings: str) -> None:
    """An error of a documented type, whose text begins in one of these ways; or none."""
    if not outcome.error:
        return
    assert outcome.error in _DOCUMENTED, outcome
    assert outcome.text.startswith(beginnings), outcome
    # PyTorch's own texts are quoted with what was inferred.
    assert "expected " in outcome.text or "(inferring from " in outcome.text, outcome

"""What PyTorch says in English alone, and programs have to understand: all phrases, in one place.

tests/modules/test_texts_of_pytorch.py, which the matrix runs with each PyTorch that makes programs,
has a test for each, which fails where PyTorch says it otherwise.
"""

from __future__ import annotations

import re

# For warnings.filterwarnings(): a warning about code of PyTorch's own, of torch.export (2.11).
OWN_DEPRECATION = r".*isinstance\(treespec, LeafSpec\)"


def is_about_fixed_size(text: str) -> bool:
    """Whether a size in dynamic_shapes is 0 or 1 in the example, which torch.export keeps."""
    return re.search(r"specialized it to be a constant \([01]\)", text) is not None


def is_about_constant_of_side(text: str) -> bool:
    """Whether a side of torch.cond makes a tensor of numbers."""
    alone, _, behind = text.partition("Attempting to use FunctionalTensor on its own")
    return alone != text and "higher_order.cond" in behind


def argument_without_gradient(text: str) -> str:
    """The argument of an operator that PyTorch does not differentiate by; "" for other errors."""
    named = re.search(r"is not differentiable with respect to argument '(\w+)'", text)
    return named[1] if named else ""

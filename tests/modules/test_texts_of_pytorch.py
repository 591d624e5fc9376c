"""What PyTorch says of modules, and programs have to understand: one test for each phrase.

tests/matrix/smoke_modules.py runs these with each PyTorch, without pytest.
"""

import re
import warnings

import torch
from torch import nn

from aten_bridge.program._pytorch_texts import (
    OWN_DEPRECATION,
    argument_without_gradient,
    is_about_constant_of_side,
    is_about_fixed_size,
)

VERSION = tuple(map(int, torch.__version__.split(".")[:2]))


def error_of(call):
    """The text of what a call raises."""
    try:
        call()
    except Exception as error:
        return str(error)
    return "nothing"


def test_a_size_that_is_fixed_by_the_example():
    def export(module, example, dim):
        shapes = ({dim: torch.export.Dim("n")},)
        return error_of(lambda: torch.export.export(module, (example,), dynamic_shapes=shapes))

    for size in (0, 1):
        text = export(nn.ReLU(), torch.ones(size, 3), 0)
        assert is_about_fixed_size(text), text
        assert not is_about_constant_of_side(text)
    text = export(nn.Linear(3, 3), torch.ones(2, 3), 1)
    assert "Constraints violated" in text, text
    assert not is_about_fixed_size(text), text


class MakesNumbers(nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda x: x * torch.tensor(2.0), lambda x: x * 3, (x,))


def test_a_constant_of_a_side_of_cond():
    exported = torch.export.export(MakesNumbers(), (torch.ones(3),))
    text = error_of(lambda: exported.run_decompositions({}))
    assert is_about_constant_of_side(text), text


def test_an_argument_without_a_gradient():
    weight = torch.rand(4, requires_grad=True)
    labels = torch.tensor([1, 0, 3])
    text = error_of(lambda: nn.functional.cross_entropy(torch.randn(3, 4), labels, weight))
    assert argument_without_gradient(text) == "weight", text
    assert argument_without_gradient("weight") == ""


def test_a_deprecation_that_is_pytorchs_own():
    exported = torch.export.export(nn.ReLU(), (torch.ones(3),))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        exported.run_decompositions({})
    texts = {str(one.message) for one in caught if "treespec" in str(one.message)}
    assert all(re.match(OWN_DEPRECATION, text) for text in texts), texts
    if VERSION == (2, 11):  # 2.9 and 2.15 do not warn
        assert texts

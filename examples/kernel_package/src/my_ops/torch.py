"""The operators in PyTorch, which are torch.ops.my_ops too."""

from aten_bridge.torch import load
from my_ops import library

_operators = load(library)

# x / (1 + exp(-beta * x)), with its gradient.
swish = _operators.swish

"""What torch.export imports at its first use is there before tests/conftest.py freezes it."""

import torch._functorch.aot_autograd  # noqa: F401

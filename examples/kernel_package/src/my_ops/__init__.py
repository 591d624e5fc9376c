"""Operators of our own, for MindSpore (my_ops.mindspore) and PyTorch (my_ops.torch)."""

from importlib.resources import files

library = str(files(__name__) / "my_ops.so")

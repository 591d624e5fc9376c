"""Operators of our own, for MindSpore (my_ops.mindspore) and PyTorch (my_ops.torch)."""

from pathlib import Path

library = str(Path(__file__).with_name("my_ops.so"))

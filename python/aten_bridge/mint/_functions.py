"""Functions of MindSpore's mint that no kernel can correct on the CPU.

MindSpore 2.10 refuses them in PyNative mode before it asks for a kernel, refuses dtypes that
PyTorch has, or computes their gradient wrongly. The functions here take MindSpore's arguments,
have PyTorch's values, and are made of functions of mint that work, so their gradients follow.
Their modules have the names of the files of kernels in plugin/mint.
"""

from __future__ import annotations

from aten_bridge.mint import (
    _activation,
    _binary,
    _convolution,
    _creation,
    _einsum,
    _graph_views,
    _in_place,
    _indexing,
    _interpolation,
    _linear_algebra,
    _loss,
    _methods,
    _random,
    _reduction,
    _shape,
    _unary,
)
from aten_bridge.mint._replace import install

__all__ = ["MODULES", "install"]

# In any order: no two stand in for the same.
MODULES = (
    *(_activation, _binary, _convolution, _creation, _einsum, _graph_views, _in_place, _indexing),
    *(_interpolation, _linear_algebra, _loss, _methods, _random, _reduction, _shape, _unary),
)

"""The kernel in MindSpore: python swish.py build/swish.so."""

import sys

import mindspore as ms

# [use]
from aten_bridge.mindspore import kernel

swish = kernel(f"{sys.argv[1]}:Swish", beta=2.0)
print(swish(ms.Tensor([0.0, 1.0], ms.float32)))
# [/use]

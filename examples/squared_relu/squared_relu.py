"""SquaredRelu, a kernel with its own CUDA function, compared with MindSpore's operators.

Run with the path of the library: python squared_relu.py ./squared_relu.so
Needs a MindSpore for CUDA. Not run yet: there is none for today's CUDA among MindSpore's packages.
"""

import sys

import mindspore as ms
import numpy as np
from mindspore import ops

from aten_bridge.mindspore import kernel

ms.set_device("GPU")
squared_relu = kernel((sys.argv[1] if len(sys.argv) > 1 else "./squared_relu.so") + ":SquaredRelu")
x = ms.Tensor(np.linspace(-2, 2, 9, dtype=np.float32))
print(squared_relu(x))
print(ops.square(ops.relu(x)))

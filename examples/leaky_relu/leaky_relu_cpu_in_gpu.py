"""A kernel for the CPU in a program on the GPU: MindSpore brings the operands to the CPU and back.

Run with the path of the library: python leaky_relu_cpu_in_gpu.py ./leaky_relu.so
Needs a MindSpore for CUDA. Not run yet: there is none for today's CUDA among MindSpore's packages.
"""

import sys

import mindspore as ms
import numpy as np
from mindspore import ops

library = sys.argv[1] if len(sys.argv) > 1 else "./leaky_relu.so"

ms.set_device("GPU")
leaky_relu = ops.Custom(
    library + ":LeakyRelu", out_shape=lambda x: x, out_dtype=lambda x: x, func_type="aot"
)
leaky_relu.set_device("CPU")  # aten_bridge.mindspore.kernel does this by itself
print(leaky_relu(ms.Tensor(np.array([[0.0, -0.1], [-0.2, 1.0]], np.float32))))

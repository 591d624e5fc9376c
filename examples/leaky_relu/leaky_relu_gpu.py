"""LeakyRelu on the GPU: the kernel that was built for CUDA, in a program on the GPU.

Run with the path of the library: python leaky_relu_gpu.py ./leaky_relu_cuda.so
Needs a MindSpore for CUDA. Not run yet: there is none for today's CUDA among MindSpore's packages.
"""

import sys

import mindspore as ms
import numpy as np
from mindspore import ops

library = sys.argv[1] if len(sys.argv) > 1 else "./leaky_relu_cuda.so"

ms.set_device("GPU")
leaky_relu = ops.Custom(
    library + ":LeakyRelu", out_shape=lambda x: x, out_dtype=lambda x: x, func_type="aot"
)
print(leaky_relu(ms.Tensor(np.array([[0.0, -0.1], [-0.2, 1.0]], np.float32))))

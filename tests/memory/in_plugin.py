"""Counts allocations in calls of MindSpore's own operators.

python in_plugin.py <library of kernels, which MS_OP_PLUGIN_PATH names too>
"""

import sys

import counting
import mindspore as ms
import numpy as np
from mindspore import mint

LIBRARY = sys.argv[1]
X = ms.Tensor(np.linspace(0.125, 0.875, 12, dtype=np.float32).reshape(3, 4))
CALLS = {
    "erf": lambda x: mint.erf(x),
    "erf of a view": lambda x: mint.erf(x.T),
    "nan_to_num": lambda x: mint.nan_to_num(x, 1.0),
}


def main():
    counts = {}
    for name, call in CALLS.items():
        for mode, function in (("PyNative", call), ("graph", ms.jit(call))):
            counts[f"{name}, {mode}"] = counting.count(
                LIBRARY, lambda function=function: function(X), settle=ms.runtime.synchronize
            )
    counting.show(counts)


main()

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


def erf(x):
    return mint.erf(x)


def erf_of_a_view(x):
    return mint.erf(x.T)


def nan_to_num(x):
    return mint.nan_to_num(x, 1.0)


def main():
    counts = {}
    for call in (erf, erf_of_a_view, nan_to_num):
        for mode, function in (("PyNative", call), ("graph", ms.jit(call))):
            counts[f"{call.__name__}, {mode}"] = counting.count(
                LIBRARY, lambda function=function: function(X), ms.Tensor.asnumpy
            )
    counting.show(counts)


main()

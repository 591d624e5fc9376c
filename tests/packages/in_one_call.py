"""Kernels of a file and of a text. docs/packages.md shows them; test_load.py runs this."""

import mindspore as ms

# [load]
from aten_bridge.build import load, load_inline
from aten_bridge.mindspore import kernel

leaky_relu = kernel(load("leaky_relu", ["leaky_relu.cpp"]) + ":LeakyRelu", negative_slope=0.2)

twice = kernel(
    load_inline(
        "twice",
        """
        #include <ATen/ops/add.h>
        #include <aten_bridge.h>

        void twice(const at::Tensor& x, at::Tensor& y) { at::add_out(y, x, x); }
        ATEN_BRIDGE_EXPORT(Twice, twice, aten_bridge::meta());
        """,
    )
    + ":Twice"
)
# [/load]

x = ms.Tensor([-5.0, 3.0])
print(leaky_relu(x).asnumpy().tolist(), twice(x).asnumpy().tolist())

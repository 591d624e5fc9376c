"""Ascend's sample operator from one library: eager, autograd, compiled, and in MindSpore."""

import sys

import mindspore as ms
import numpy as np
import torch

from aten_bridge.mindspore import kernel


def main(library):
    torch.manual_seed(0)
    torch.ops.load_library(library)
    schema = str(torch.ops.myops.add_custom.default._schema)
    assert schema == "myops::add_custom(Tensor x, Tensor y) -> Tensor"
    for key in ("CPU", "PrivateUse1", "Autograd", "Meta"):
        assert torch._C._dispatch_has_kernel_for_dispatch_key("myops::add_custom", key)
    print(f"{schema}, registered for the CPU, PrivateUse1, autograd and meta tensors")
    doubles = [torch.rand(3, 4, dtype=torch.double, requires_grad=True) for _ in range(2)]
    assert torch.autograd.gradcheck(torch.ops.myops.add_custom, doubles)
    x, y = (torch.rand(8, 2048, dtype=torch.half, requires_grad=True) for _ in range(2))
    result = torch.ops.myops.add_custom(x, y)
    result.backward(result.detach())
    assert torch.equal(result, x + y)
    for leaf in (x, y):
        assert torch.equal(leaf.grad, result)
    compiled = torch.compile(torch.ops.myops.add_custom, backend="aot_eager", fullgraph=True)
    assert torch.equal(compiled(x, y), result)
    meta = torch.ops.myops.add_custom(x.to("meta"), y.to("meta"))
    assert (meta.shape, meta.device.type) == (x.shape, "meta")
    print("add_custom in PyTorch: gradcheck, eager, backward, compiled, meta tensors")

    operator = kernel(f"{library}:AddCustom", grad="AddCustomGrad")

    def added(x, y):
        return operator(x, y)

    inputs = [ms.Tensor(t.detach().numpy()) for t in (x, y)]
    for name, mode in (("graph", ms.GRAPH_MODE), ("PyNative", ms.PYNATIVE_MODE)):
        ms.set_context(mode=mode)
        np.testing.assert_array_equal(operator(*inputs).asnumpy(), result.detach().numpy())
        for gradient in ms.grad(added, grad_position=(0, 1))(*inputs):
            np.testing.assert_array_equal(gradient.asnumpy(), np.ones(gradient.shape, np.half))
        print(f"add_custom in MindSpore, {name} mode: equal to PyTorch's bit for bit")


if __name__ == "__main__":
    ms.set_device("CPU")
    main(sys.argv[1] if len(sys.argv) > 1 else "./add_custom.so")

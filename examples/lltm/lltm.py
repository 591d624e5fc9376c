"""PyTorch's tutorial cell from one library in MindSpore and in PyTorch, compared bit for bit."""

import sys
import time

import mindspore as ms
import numpy as np
import torch

from aten_bridge.mindspore import kernel
from aten_bridge.torch import load

BATCH, SIZE, STATE = 16, 32, 128


# [cell]
class Lltm(torch.nn.Module):
    def __init__(self, library, size, state):
        super().__init__()
        self.lltm = load(library).lltm
        self.weights = torch.nn.Parameter(torch.empty(3 * state, size + state))
        self.bias = torch.nn.Parameter(torch.empty(3 * state))
        for parameter in self.parameters():
            torch.nn.init.uniform_(parameter, -(state**-0.5), state**-0.5)

    def forward(self, x, h, cell):
        return self.lltm(x, self.weights, self.bias, h, cell)


# [/cell]


def in_python(x, weights, bias, h, cell):
    """The same with PyTorch's own operators."""
    gates = torch.addmm(bias, torch.cat([h, x], 1), weights.t()).chunk(3, 1)
    new = cell + torch.nn.functional.elu(gates[2]) * torch.sigmoid(gates[0])
    return torch.tanh(new) * torch.sigmoid(gates[1]), new


def microseconds(call, *inputs):
    for _ in range(20):
        call(*inputs)
    seconds = []
    for _ in range(50):
        begin = time.perf_counter()
        torch.autograd.backward(call(*inputs), [torch.ones(BATCH, STATE)] * 2)
        seconds.append(time.perf_counter() - begin)
    return np.median(seconds) * 1e6


def main(library):
    torch.manual_seed(0)
    network = Lltm(library, SIZE, STATE)
    x, h, cell = torch.randn(BATCH, SIZE), torch.randn(BATCH, STATE), torch.randn(BATCH, STATE)
    inputs = [t.detach().requires_grad_() for t in (x, network.weights, network.bias, h, cell)]
    results = network(x, h, cell)
    for result, expected in zip(results, in_python(*inputs), strict=True):
        assert torch.equal(result, expected)
    print("lltm in PyTorch: the results of the cell in Python, bit for bit")

    small = [
        torch.randn(sizes, dtype=torch.double, requires_grad=True)
        for sizes in ((3, 2), (6, 4), (6,), (3, 2), (3, 2))
    ]
    assert torch.autograd.gradcheck(network.lltm, small)
    print("its gradients: right by torch.autograd.gradcheck")

    ones = [torch.ones(BATCH, STATE)] * 2
    gradients = torch.autograd.grad(network.lltm(*inputs), inputs, ones)
    expected_gradients = torch.autograd.grad(in_python(*inputs), inputs, ones)
    torch.testing.assert_close(gradients, expected_gradients)
    print("and those of the cell in Python, but for rounding")

    operator = kernel(f"{library}:Lltm", grad="LltmGrad")
    arrays = [ms.Tensor(t.detach().numpy()) for t in inputs]
    for result, expected in zip(operator(*arrays), results, strict=True):
        np.testing.assert_array_equal(result.asnumpy(), expected.detach().numpy())

    def total(*inputs):
        new_h, new_cell = operator(*inputs)
        return new_h.sum() + new_cell.sum()

    for name, mode in (("graph", ms.GRAPH_MODE), ("PyNative", ms.PYNATIVE_MODE)):
        ms.set_context(mode=mode)
        of_mindspore = ms.grad(total, grad_position=(0, 1, 2, 3, 4))(*arrays)
        for gradient, expected in zip(of_mindspore, gradients, strict=True):
            np.testing.assert_array_equal(gradient.asnumpy(), expected.numpy())
        print(
            f"lltm in MindSpore, {name} mode: results and gradients equal to PyTorch's bit for bit"
        )

        slope = 0.2
        of_mindspore = kernel(f"{library}:LeakyRelu", negative_slope=slope)(arrays[0])
        of_pytorch = torch.ops.lltm.leaky_relu(x, negative_slope=slope)
        np.testing.assert_array_equal(of_mindspore.asnumpy(), of_pytorch.numpy())
        print(f"leaky_relu from the same library, {name} mode: bitwise equal in both")

    compiled = torch.compile(network.lltm, backend="aot_eager", fullgraph=True)
    assert torch.equal(compiled(*inputs)[0], results[0])
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    of_kernel = microseconds(network.lltm, *inputs)
    of_python = microseconds(in_python, *inputs)
    torch.set_num_threads(threads)
    print(
        f"forward and backward: {of_kernel:.0f} us, the cell in Python {of_python:.0f} us, "
        f"{of_kernel / of_python:.2f} of it"
    )


if __name__ == "__main__":
    ms.set_device("CPU")
    main(sys.argv[1] if len(sys.argv) > 1 else "./lltm.so")

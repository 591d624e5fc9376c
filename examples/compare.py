"""What the examples share: a network in both of MindSpore's modes, its outputs beside PyTorch's."""

import mindspore as ms
import numpy as np


def compare(title, make_net, inputs, expected):
    """Runs a new network in graph mode and one in PyNative mode, and compares their outputs.

    Args:
        title: What to print in front.
        make_net: Called without arguments, returns the network.
        inputs: NumPy arrays, or None, for the network.
        expected: PyTorch's result, a tensor or a tuple of tensors.

    Raises:
        AssertionError: An output differs from PyTorch's in shape, dtype or any bit.

    """
    expected = expected if isinstance(expected, tuple) else (expected,)
    for name, mode in (("graph", ms.GRAPH_MODE), ("PyNative", ms.PYNATIVE_MODE)):
        ms.set_context(mode=mode)
        net = make_net()
        outputs = net(*(None if x is None else ms.Tensor(x) for x in inputs))
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        for output, reference in zip(outputs, expected, strict=True):
            np.testing.assert_array_equal(output.asnumpy(), reference.numpy(), strict=True)
        shapes = ", ".join(f"{output.dtype} {list(output.shape)}" for output in outputs)
        print(f"{title}, {name} mode: {shapes}, equal to PyTorch's bit for bit")

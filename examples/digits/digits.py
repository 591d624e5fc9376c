"""The LeakyRelu kernel in a small network over real data, compared with PyTorch value by value.

Run with the path of the library: python digits.py ./leaky_relu.so

Scikit-learn's 1,797 handwritten digits (8 by 8 pixels, 0 to 16), centred around zero, go through a
MindSpore network with two dense layers. What LeakyRelu made of its input there is compared with
PyTorch's own leaky_relu of the same input, bit for bit: it is the same library.
"""

import sys
import time

import mindspore as ms
import numpy as np
from mindspore import nn, ops

library = sys.argv[1] if len(sys.argv) > 1 else "./leaky_relu.so"


class Net(nn.Cell):
    """64 pixels, 128 hidden units, 10 classes; also returns what went in and out of LeakyRelu."""

    def __init__(self):
        super().__init__()
        self.hidden = nn.Dense(64, 128)
        self.leaky_relu = ops.Custom(
            library + ":LeakyRelu",
            out_shape=lambda x: x,
            out_dtype=lambda x: x,
            func_type="aot",
        )
        self.classes = nn.Dense(128, 10)

    def construct(self, x):
        before = self.hidden(x)
        after = self.leaky_relu(before)
        return self.classes(after), before, after


def main():
    try:
        from sklearn.datasets import load_digits
    except ModuleNotFoundError:
        sys.exit("Digits: scikit-learn, which has the digits, is missing: pip install scikit-learn")

    ms.set_device("CPU")
    start = time.perf_counter()
    digits = load_digits().data.astype(np.float32)
    images = (digits - digits.mean()) / digits.std()
    print(
        f"Digits: {images.shape[0]:,} images of {images.shape[1]} pixels, centred around zero"
        f" (read in {time.perf_counter() - start:.3f} s)"
    )
    failed = False
    for name, mode in (("graph", ms.GRAPH_MODE), ("PyNative", ms.PYNATIVE_MODE)):
        ms.set_context(mode=mode)
        ms.set_seed(0)
        net = Net()
        batch = ms.Tensor(images)
        start = time.perf_counter()
        logits, before, after = (tensor.asnumpy() for tensor in net(batch))
        first = time.perf_counter()
        for tensor in net(batch):
            tensor.asnumpy()
        second = time.perf_counter()
        equal = same_bits(after, torch_leaky_relu(before))
        compared = time.perf_counter()
        print(
            f"  {name} mode: network {images.shape} -> {logits.shape},"
            f" first run {first - start:.3f} s, second run {second - first:.3f} s\n"
            f"    LeakyRelu against PyTorch {torch_version()}: {int(equal.sum()):,} of"
            f" {equal.size:,} values equal bit for bit, {int((before < 0).sum()):,} of them"
            f" negative before (compared in {compared - second:.3f} s)"
        )
        failed = failed or not equal.all()
    if failed:
        sys.exit("Digits: MindSpore and PyTorch disagree.")


def torch_version():
    import torch

    return torch.__version__


def torch_leaky_relu(x):
    import torch

    return torch.nn.functional.leaky_relu(torch.from_numpy(x.copy())).numpy()


def same_bits(a, b):
    return a.view(np.uint32) == b.view(np.uint32)


if __name__ == "__main__":
    main()

"""A kernel in the PyTorch of this environment: what each version must do.

    python smoke_pytorch.py <test_pytorch.so> [--global]

`--global` shows the library's symbols to all others, as a program that sets RTLD_GLOBAL does.
Prints PyTorch's version; an assertion, or what PyTorch raises, says what is wrong.
"""

import ctypes
import sys
from pathlib import Path

import torch

sys.path.append(str(Path(__file__).resolve().parents[1] / "pytorch"))
import test_pytorch_texts


def main(library, *options):
    if "--global" in options:
        ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)
    torch.ops.load_library(library)
    my = torch.ops.bridge_test
    functional = torch.nn.functional
    x = torch.linspace(-2, 2, 12).reshape(3, 4)
    assert torch.equal(my.leaky_relu(x, negative_slope=0.25), functional.leaky_relu(x, 0.25))
    assert torch.equal(my.top_k(x, 2)[1], x.topk(2)[1])
    assert torch.equal(my.cat([x, x], 1), torch.cat([x, x], 1))
    out = torch.empty(0)
    my.leaky_relu.out(x, out=out)
    assert torch.equal(out, functional.leaky_relu(x))
    small = torch.ones(1, dtype=torch.float64)
    memory = small.data_ptr()
    my.square.out(x.double(), out=small)
    assert small.data_ptr() != memory, "out= was given new sizes, and kept memory that is too small"
    assert torch.equal(small, x.double() ** 2)
    leaf = x.double().requires_grad_()
    assert torch.autograd.gradcheck(my.leaky_relu, leaf)
    assert torch.autograd.gradgradcheck(my.leaky_relu, leaf)
    assert torch.autograd.gradcheck(my.square, leaf)
    assert torch.autograd.gradcheck(my.swish, leaf, check_forward_ad=True)
    assert my.leaky_relu(x.to("meta")).shape == x.shape
    compiled = torch.compile(lambda x: my.leaky_relu(x) * 2, backend="aot_eager", fullgraph=True)
    assert torch.equal(compiled(x), functional.leaky_relu(x) * 2)
    text = ""
    try:
        my.square(x)
    except RuntimeError as error:
        text = str(error)
    assert text.startswith("Square: input 0 'x': expected float64"), text
    for name, test in list(vars(test_pytorch_texts).items()):
        if name.startswith("test_"):
            test()  # the traceback names it
    print(torch.__version__)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""What heaptrack says of a kernel's calls in MindSpore: none allocates memory but the first ones.

    python allocations.py <test_kernels.so>

Runs a program with few calls and one with many, in both modes, and compares how often memory was
allocated below the kernel's C function, by the bridge or by PyTorch. Ends with 1 if the second did
so more often.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

NAME = "Copy"
CALLS = (10, 1010)
PROGRAM = f"""
import sys

import mindspore as ms
from mindspore import nn, ops

library, mode, calls = sys.argv[1:]
ms.set_context(mode=ms.GRAPH_MODE if mode == "graph" else ms.PYNATIVE_MODE)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.kernel = ops.Custom(
            library + ":{NAME}", out_shape=lambda x: x, out_dtype=lambda x: x, func_type="aot"
        )

    def construct(self, x):
        return self.kernel(x)


net = Net()
x = ms.ops.ones((4, 4), ms.float32)
for _ in range(int(calls)):
    y = net(x)
y.asnumpy()
"""


def allocations(folder, library, mode, calls):
    """How often memory was allocated below the kernel's C function."""
    program = folder / "program.py"
    program.write_text(PROGRAM)
    record = folder / f"{mode}_{calls}"
    stacks = folder / "stacks.txt"
    arguments = [program, library, mode, str(calls)]
    subprocess.run(
        ["heaptrack", "-o", record, sys.executable, *arguments],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    file = next(folder.glob(f"{record.name}.*"))
    subprocess.run(
        ["heaptrack_print", "-f", file, "-a", "0", "-p", "0", "-T", "0", "-F", stacks],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    # "outermost;...;innermost number", a line for each place.
    lines = [line for line in stacks.read_text().splitlines() if f";{NAME};" in line]
    return sum(int(re.search(r"\d+$", line).group()) for line in lines)


def main(library):
    if shutil.which("heaptrack") is None:
        print("Allocations are not counted: heaptrack is not installed (apt install heaptrack).")
        return False
    grows = False
    with tempfile.TemporaryDirectory() as folder:
        for mode in ("pynative", "graph"):
            few, many = (allocations(Path(folder), library, mode, calls) for calls in CALLS)
            print(f"{mode}: {few} allocations in {CALLS[0]} calls, {many} in {CALLS[1]}")
            grows = grows or few == 0 or many > few  # none at all: the function was not found
    return grows


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

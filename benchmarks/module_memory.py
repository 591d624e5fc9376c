"""The memory of a training step of a PyTorch module as one operator of MindSpore and JAX.

    PYTHONPATH=python python benchmarks/module_memory.py [--jax PYTHON]

prints in Markdown by how many MB a process grows at most in a step, over what it has before the
first one (the peak of its resident memory, which Linux tells): the median of steps, after those
that fill pools. The module has six layers of 512 with GELU; it takes 4,096 rows and gives a mean of
squares. Each side is a process of its own: PyTorch eager, MindSpore call by call with its queues
and where it runs each operator at once, `ms.jit` of the same, and jitted JAX.
"""

import argparse
import re
import statistics
import subprocess
import sys
from pathlib import Path

SIDES = ("PyTorch", "queues", "blocking", "ms.jit", "JAX")
WARM, STEPS = 5, 20


def megabytes(name):
    text = Path("/proc/self/status").read_text()
    return int(re.search(rf"{name}:\s+(\d+) kB", text)[1]) / 1e3


def make_network():
    import torch

    class Network(torch.nn.Module):
        def __init__(self):
            super().__init__()
            layers = [torch.nn.Linear(512, 512) for _ in range(6)]
            self.layers = torch.nn.ModuleList(layers)

        def forward(self, x):
            for layer in self.layers:
                x = torch.nn.functional.gelu(layer(x))
            return x.square().mean()

    torch.manual_seed(0)
    return Network(), torch.randn(4096, 512)


def step_of(side):
    network, x = make_network()
    if side == "PyTorch":

        def step():
            network.zero_grad(set_to_none=True)
            network(x).backward()

        return step
    if side == "JAX":
        import jax
        import jax.numpy as jnp

        from aten_bridge.jax import module

        apply, variables = module(network, (x,))
        given = jnp.asarray(x.numpy())

        def loss(params):
            return apply({**variables, "params": params}, given, train=True)[0]

        gradients = jax.jit(jax.value_and_grad(loss))
        return lambda: jax.block_until_ready(gradients(variables["params"]))
    import mindspore as ms

    from aten_bridge.mindspore import module

    if side == "blocking":
        ms.runtime.launch_blocking()
    cell = module(network, (x,))
    given = ms.Tensor(x.numpy())

    def loss(x):
        return cell(x)

    of_weights = ms.value_and_grad(loss, None, cell.trainable_params())

    def gradients(x):
        return of_weights(x)

    run = ms.jit(gradients) if side == "ms.jit" else gradients
    return lambda: [gradient.asnumpy() for gradient in run(given)[1]]


def measure(side):
    step = step_of(side)
    before = megabytes("VmRSS")
    peaks = []
    for _ in range(WARM + STEPS):
        Path("/proc/self/clear_refs").write_text("5")  # the peak begins at what is there now
        step()
        peaks.append(megabytes("VmHWM") - before)
    print(statistics.median(peaks[WARM:]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jax", help="the Python of an environment with JAX", default="")
    parser.add_argument("--side", choices=SIDES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        measure(options.side)
        return
    found = {}
    for side in SIDES:
        python = options.jax if side == "JAX" and options.jax else sys.executable
        command = [python, __file__, "--side", side]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
        if done.returncode == 0:
            found[side] = float(done.stdout.split()[-1])
        else:
            print(f"{side} could not be measured.", file=sys.stderr)
    print("| " + " | ".join(f"{side}, MB" for side in found) + " |\n|" + "--:|" * len(found))
    print("| " + " | ".join(f"{most:.0f}" for most in found.values()) + " |")


if __name__ == "__main__":
    main()

"""What a training step of a real program costs in MindSpore, beside PyTorch.

    python tests/third_party_models/step_speed.py [bert gpt2]

prints in Markdown the time of the loss with all gradients and of the whole step with AdamW: call
by call (PyNative, waiting for each operator) and as a graph (`ms.jit`), of models as tiny as
program.py compares them and of ones of a usual shape: 4 layers of 256 numbers, two texts of 128
words. One thread on each side; the sides are measured alternately.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import statistics
import sys
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")

import families
import mindspore as ms
import numpy as np
import torch
from program import Pair

ROUNDS = 15
WARM_UPS = 3
USUAL = {
    families.HIDDEN: 256,
    families.LAYERS: 4,
    families.HEADS: 8,
    2 * families.HIDDEN: 1024,
    families.VOCABULARY: 5000,
}
WORDS = 128


def usual(family: families.Family) -> families.Family:
    """The family in a usual size."""
    for size, value in USUAL.items():
        for name in families.SIZES[size].split():
            families.TINY[name] = value

    def inputs():
        text = {name: families.tokens(2, WORDS) for name in family.inputs()}
        return text | {"attention_mask": np.ones((2, WORDS), np.int64)}

    return dataclasses.replace(family, inputs=inputs)


def steps(pair: Pair) -> dict:
    """Functions that run the loss with its gradients, and the whole step, on each side."""
    pair.forward()  # which chooses the loss
    torch_adam = torch.optim.AdamW(pair.torch_model.parameters(), lr=1e-4)
    gradient = pair.ms_gradient_function()
    weights = tuple(parameter for _, parameter in pair.trainable)
    adam = ms.mint.optim.AdamW(weights, lr=1e-4)
    graph_gradient = pair.ms_gradient_function()  # its own: one that is called is no graph

    def torch_step():
        pair.torch_step()
        torch_adam.step()

    def step():
        _, gradients = gradient()
        adam(gradients)

    @ms.jit
    def gradient_as_graph():
        return graph_gradient()

    @ms.jit
    def step_as_graph():
        value, gradients = graph_gradient()
        adam(gradients)
        return value

    return {
        "loss and gradients": (pair.torch_step, gradient, gradient_as_graph),
        "step": (torch_step, step, step_as_graph),
    }


def measured(functions) -> list[float]:
    """Seconds of a call, medians."""
    spent = [[] for _ in functions]
    for i in range(WARM_UPS + ROUNDS):
        for function, seconds in zip(functions, spent, strict=True):
            begin = time.perf_counter()
            function()
            ms.runtime.synchronize()
            if i >= WARM_UPS:
                seconds.append(time.perf_counter() - begin)
    return [statistics.median(seconds) for seconds in spent]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=["bert", "gpt2"])
    options = parser.parse_args()
    torch.set_num_threads(1)
    from aten_bridge.mint import install

    install()
    ms.runtime.launch_blocking()
    print("| ms | PyTorch | PyNative | graph | PyNative / PyTorch | graph / PyTorch |")
    print("| --- | --: | --: | --: | --: | --: |")
    for size in ("tiny", "usual"):
        for name in options.names:
            family = families.FAMILIES[name]
            pair = Pair(family if size == "tiny" else usual(family), "float32")
            for part, functions in steps(pair).items():
                theirs, *ours = measured(functions)
                cells = [f"{seconds * 1e3:.1f}" for seconds in (theirs, *ours)]
                cells += [f"{seconds / theirs:.2f}" for seconds in ours]
                print(f"| {name}, {size}, {part} | {' | '.join(cells)} |", flush=True)
    sys.stdout.flush()
    os._exit(0)  # MindSpore's threads may fail while they end


if __name__ == "__main__":
    main()

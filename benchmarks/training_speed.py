"""What a training step costs in MindSpore on the CPU, with the library for mint, beside PyTorch.

    MS_OP_PLUGIN_PATH=$(python -m aten_bridge.mint) python benchmarks/training_speed.py

prints in Markdown the time of the networks of examples/mint_digits, a batch of 64 digits: the
loss, the loss and its gradients, Adam's step, and all together, in MindSpore call by call
(PyNative), with its queues or waiting for each operator (`launch_blocking`), and as a graph
(`ms.jit` of the step). Each is a process of its own; they are measured alternately, as
mint_speed.py does, with one thread each unless `--threads` says otherwise.
"""

import functools
import json
import os
import statistics
import sys
from pathlib import Path

import mint_speed
from mint_speed import Process, row

sys.path[:0] = [str(Path(__file__).parents[1] / "examples" / name) for name in ("", "mint_digits")]

NETWORKS = ("ConvolutionalNetwork", "TransformerEncoder")
BATCH = 64
PATIENCE = 2  # times as many rounds, for less disturbed ones
SIDES = ("PyTorch", "PyNative", "blocking", "graph")
PARTS = {"loss": SIDES[:3], "gradients": SIDES[:3], "optimizer": SIDES[:3], "step": SIDES}


def use_caller_beside(library):
    """Lets the native caller be that of the library's build folder, if it has one."""
    from aten_bridge.mindspore._caller import NAME

    caller = library.resolve().parents[1] / "caller" / NAME
    if caller.is_file():
        os.environ.setdefault("ATEN_BRIDGE_CALLER", str(caller))


class Worker(mint_speed.Worker):
    def __init__(self, options):
        super().__init__(options.threads, options.processor_time)
        import mint_digits
        from digits.digits import load

        if os.environ["TRAINING_SIDE"] == "blocking":
            self.ms.runtime.launch_blocking()
        if os.environ["TRAINING_SIDE"] != "PyTorch":
            use_caller_beside(Path(os.environ["MS_OP_PLUGIN_PATH"]))
            mint_digits.install()
        (images, labels), _ = load()
        self.batch_of_digits = images[:BATCH], labels[:BATCH]
        self.networks = mint_digits.networks
        self.parts = functools.cache(self.parts)

    def function(self, side, call, n):
        network, part = call.split(".")
        return self.parts(side, NETWORKS.index(network))[part]

    def parts(self, side, network):
        if side == "torch":
            return self.torch_parts(network)
        return self.mint_parts(network, side == "graph")

    def torch_parts(self, network):
        import torch

        net = self.networks(torch, torch.nn.Module)[network]()
        images, labels = (torch.tensor(x) for x in self.batch_of_digits)
        labels = labels.long()
        adam = torch.optim.Adam(net.parameters(), lr=0.003)

        def loss():
            return torch.nn.functional.cross_entropy(net(images), labels)

        def gradients():
            adam.zero_grad()
            loss().backward()

        def step():
            gradients()
            adam.step()

        gradients()
        return {"loss": loss, "gradients": gradients, "optimizer": adam.step, "step": step}

    def mint_parts(self, network, is_graph):
        ms, mint = self.ms, self.ms.mint
        import mint_digits

        net = self.networks(mint, mint_digits.Cell)[network]()
        net.set_train()
        batch = [ms.Tensor(x) for x in self.batch_of_digits]
        adam = mint.optim.Adam(net.trainable_params(), lr=0.003)

        def loss(images, labels):
            return mint.nn.functional.cross_entropy(net(images), labels)

        loss_and_gradients = ms.value_and_grad(loss, None, adam.parameters)

        def step(images, labels):
            value, gradients = loss_and_gradients(images, labels)
            adam(gradients)
            return value

        if is_graph:
            return {"step": functools.partial(ms.jit(step), *batch)}
        gradients = loss_and_gradients(*batch)[1]
        return {
            "loss": functools.partial(loss, *batch),
            "gradients": functools.partial(loss_and_gradients, *batch),
            "optimizer": functools.partial(adam, gradients),
            "step": functools.partial(step, *batch),
        }


def main():
    options = mint_speed.parse_options(__doc__, rounds=5, threads=1)
    if options.worker:
        Worker(options).serve()
        return
    library = mint_speed.library()
    more = ["--threads", str(options.threads)]
    more += ["--processor-time"] if options.processor_time else []
    processes = {
        side: Process(library, more, TRAINING_SIDE=side, OMP_WAIT_POLICY="passive")
        for side in SIDES
    }
    kinds = dict(zip(SIDES, ("torch", "mint", "mint", "graph"), strict=True))
    record, disturbances = {}, []
    row("ms", *SIDES, *(f"{side} / PyTorch" for side in SIDES[1:]))
    row("---", *["--:"] * (2 * len(SIDES) - 1))
    for network in NETWORKS:
        for part, sides_of_part in PARTS.items():
            call = f"{network}.{part}"
            sides = {side: (processes[side], kinds[side], call) for side in sides_of_part}
            times, shares = mint_speed.measure(sides, BATCH, options, PATIENCE)
            disturbances.extend(shares)
            medians = {side: statistics.median(seconds) for side, seconds in times.items()}
            record[call] = medians
            milliseconds = [f"{medians[s] * 1e3:.2f}" if s in medians else "" for s in SIDES]
            ratios = [mint_speed.cell(mint_speed.ratio(times, s, "PyTorch")) for s in SIDES[1:]]
            row(f"{network}, {part}", *milliseconds, *ratios)
    disturbed = statistics.median(disturbances)
    print(f"\nOther programs had {disturbed:.0%} of the processors.")
    if options.output:
        with open(options.output, "w") as file:
            json.dump({"disturbed": disturbed, "times": record}, file)


if __name__ == "__main__":
    main()

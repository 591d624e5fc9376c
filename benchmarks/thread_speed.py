"""How PyTorch's threads and MindSpore's get on with each other in one process.

    MS_OP_PLUGIN_PATH=$(python -m aten_bridge.mint) python benchmarks/thread_speed.py

prints in Markdown the time of a call in chains of ATen's kernels, of MindSpore's own and of both
alternately, call by call (PyNative) and as graphs, for several settings of threads. Each setting is
a process of its own; they are measured alternately, as mint_speed.py does.
"""

import json
import os
import statistics

import mint_speed
from mint_speed import MODES, Process, row

SIZE = 512
LENGTH = 20  # calls of a chain
PATIENCE = 1.5  # times as many rounds, for less disturbed ones
LEFT = "MatMul,Sigmoid"  # to MindSpore: operators that the library has too

# Environment and options of the processes.
SETTINGS = {
    "nothing set": ({}, []),
    "`OMP_NUM_THREADS=1`": ({"OMP_NUM_THREADS": "1"}, []),
    "`OMP_WAIT_POLICY=passive`": ({"OMP_WAIT_POLICY": "passive"}, []),
    "`threads_num(1)`": ({}, ["--threads", "1"]),
    "`OMP_NUM_THREADS=1`, `threads_num(1)`": ({"OMP_NUM_THREADS": "1"}, ["--threads", "1"]),
}
# What a chain repeats.
CHAINS = {
    "ATen's `atan`": "atan({})",
    "MindSpore's `sigmoid`": "sigmoid({})",
    "`atan` and `sigmoid` alternately": "sigmoid(atan({}))",
    "ATen's `mm`": "mm({}, x)",
    "MindSpore's `MatMul`": "own_matmul({}, x)",
    "`mm` and `MatMul` alternately": "own_matmul(mm({}, x), x)",
}


class Worker(mint_speed.Worker):
    def __init__(self, options):
        super().__init__()
        if options.threads:
            self.ms.device_context.cpu.op_tuning.threads_num(options.threads)
        self.modules["mint"]["own_matmul"] = self.ms.ops.MatMul()


def chain(step):
    call = "x"
    for _ in range(LENGTH // step.count("(")):
        call = step.format(call)
    return call


def main():
    options = mint_speed.parse_options(__doc__, rounds=3, threads=None)
    if options.worker:
        Worker(options).serve()
        return
    os.environ["ATEN_BRIDGE_LEAVE_TO_MINDSPORE"] = LEFT
    library = mint_speed.library()
    processes = {
        name: Process(library, more, **environment)
        for name, (environment, more) in SETTINGS.items()
    }
    record, disturbances = {}, []
    row("µs per call", *SETTINGS)
    row("---", *["--:"] * len(SETTINGS))
    for mode, side in MODES.items():
        for name, step in CHAINS.items():
            sides = {
                setting: (process, side, chain(step)) for setting, process in processes.items()
            }
            times, shares = mint_speed.measure(sides, SIZE, options, PATIENCE)
            disturbances.extend(shares)
            medians = {
                setting: statistics.median(seconds) / LENGTH for setting, seconds in times.items()
            }
            record[f"{name}, {mode}"] = medians
            row(f"{name}, {mode}", *(f"{medians[s] * 1e6:,.0f}" for s in SETTINGS))
    disturbed = statistics.median(disturbances)
    print(f"\nOther programs had {disturbed:.0%} of the processors.")
    if options.output:
        with open(options.output, "w") as file:
            json.dump({"size": SIZE, "disturbed": disturbed, "chains": record}, file)


if __name__ == "__main__":
    main()

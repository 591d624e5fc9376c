"""What the instructions of one call are spent on: LeakyRelu of 4x4 tensors, counted by callgrind.

    python instructions.py <call_benchmark> <result.json>

Unlike times, counts hardly change from run to run. Prints a sentence and writes nothing where
valgrind is not installed or fails.
"""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter

CALLS = 1000  # as many as thousand_calls() in call_benchmark.cpp makes
KERNELS = "benchmark_kernels.so"
ALLOCATIONS = re.compile(r"(malloc|calloc|realloc|posix_memalign|aligned_alloc|memalign)(@@.*)?$")


def profile(benchmark, directory):
    """The text that callgrind writes."""
    output = pathlib.Path(directory) / "callgrind.out"
    subprocess.run(
        [
            *["valgrind", "--quiet", "--tool=callgrind", "--collect-atstart=no"],
            *["--toggle-collect=thousand_calls", f"--callgrind-out-file={output}"],
            *[benchmark, "--benchmark_filter=^counted/leaky_relu"],
        ],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    return output.read_text()


def short(name):
    """A function's name without result, arguments and template arguments."""
    return re.split(r"[<(]", name)[0].split(" ")[-1].replace("aten_bridge::", "") or name


def count(text):
    """Instructions of the library's own functions, of what they call elsewhere, and of allocations.

    In callgrind's format "ob=" and "fn=" name the library and the function of the costs below;
    "cob=" and "cfn=" those of a call, whose cost, with all that it calls, stands below "calls=". A
    name is written out once: "(7) name", then "(7)". Numbers of calls include those not counted.
    """
    names = {}
    own, called, allocations = Counter(), Counter(), 0
    place, callee, is_call = {}, {}, False
    for line in text.splitlines():
        key, _, value = line.partition("=")
        if key in ("ob", "fn", "cob", "cfn"):
            number, _, name = value.partition(" ")
            space = key[-2:], number
            names[space] = name or names[space]
            if key in ("ob", "fn"):
                place[key] = names[space]
            else:
                callee[key] = names[space]
        elif key == "calls":
            is_call = True
        elif re.match(r"[-+*\d]", line):
            cost = int(line.split()[1])
            inside = place["ob"].endswith(KERNELS)
            if not is_call:
                own[place["fn"]] += cost if inside else 0
                continue
            if ALLOCATIONS.match(callee["cfn"]):
                allocations += cost
            if inside and not callee.get("cob", KERNELS).endswith(KERNELS):
                called[callee["cfn"]] += cost
            callee, is_call = {}, False
    return own, called, allocations


def main(benchmark, result):
    pathlib.Path(result).unlink(missing_ok=True)
    if shutil.which("valgrind") is None:
        print("Instructions are not counted: valgrind is not installed (apt install valgrind).")
        return
    with tempfile.TemporaryDirectory() as directory:
        try:
            text = profile(benchmark, directory)
        except subprocess.CalledProcessError as failure:
            print(f"Instructions are not counted: valgrind failed ({failure}).")
            return
    own, called, allocations = count(text)

    def per_call(counter):
        shortened = Counter()
        for name, cost in counter.items():
            shortened[short(name)] += cost
        return {name: cost / CALLS for name, cost in shortened.most_common() if cost >= CALLS}

    record = {"own": per_call(own), "called": per_call(called), "allocations": allocations / CALLS}
    with open(result, "w") as file:
        json.dump(record, file, indent=1)


if __name__ == "__main__":
    main(*sys.argv[1:])

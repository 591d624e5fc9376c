"""Counts the allocations below a kernel library, in a program that runs with the counter.

LD_PRELOAD names it: allocation_counter.so of the build folder.
"""

import ctypes
import json
import os
from pathlib import Path

CALLS = 100

_counter = ctypes.CDLL(os.environ["LD_PRELOAD"])
_counter.allocation_counter_start.restype = ctypes.c_bool


def count(library, call, wait=lambda result: None):
    """How often the library allocated memory in CALLS calls, and how often others that it called.

    The first calls are not counted. `wait` gets the last result, and waits until all have been run.
    """
    for _ in range(3):
        result = call()
    wait(result)
    # Shows the stacks of the library's own where one asks for it.
    shows = "ATEN_BRIDGE_SHOW_ALLOCATIONS" in os.environ
    if not _counter.allocation_counter_start(os.fsencode(Path(library).resolve()), shows):
        raise RuntimeError(f"{library}: expected a library that is loaded")
    for _ in range(CALLS):
        result = call()
    wait(result)
    numbers = (ctypes.c_int64(), ctypes.c_int64())
    _counter.allocation_counter_stop(*map(ctypes.byref, numbers))
    return [number.value for number in numbers]


def show(counts):
    print("counts:", json.dumps(counts))

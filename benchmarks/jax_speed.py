"""What a call costs inside of a program of JAX's: the bridge's kernel beside other ways.

    python jax_speed.py <pytorch_kernels.so> <jax_by_hand.so>

LeakyRelu of float32 in `lax.fori_loop`, so that the times are those of one call and not of JAX's
dispatch: XLA's own operator, which it compiles into the loop; the bridge; a handler of XLA's FFI
that was written by hand and calls the same operator of ATen; and `jax.pure_callback`, which goes
through Python and DLPack to PyTorch. Medians of rounds in turn, in one run: compare within it.
"""

import ctypes
import statistics
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
import torch
from jax import lax

from aten_bridge.jax import kernel

ROUNDS = 15
SECONDS = 0.02  # about what one measurement takes
SLOPE = -0.5  # no value becomes smaller and smaller: a denormal one costs more


def by_hand(path):
    library = ctypes.CDLL(path)
    capsule = jax.ffi.pycapsule(library.LeakyReluByHand)
    jax.ffi.register_ffi_target("LeakyReluByHand", capsule, platform="cpu")

    def call(x):
        like = jax.ShapeDtypeStruct(x.shape, x.dtype)
        return jax.ffi.ffi_call("LeakyReluByHand", like)(x, negative_slope=np.float64(SLOPE))

    return call


def by_callback(x):
    def in_python(x):
        tensor = torch.from_dlpack(x)
        return torch.nn.functional.leaky_relu(tensor, SLOPE).numpy()

    return jax.pure_callback(in_python, jax.ShapeDtypeStruct(x.shape, x.dtype), x)


def program(call):
    """As many calls as its second argument says, each of the last one's result."""
    return jax.jit(lambda x, count: lax.fori_loop(0, count, lambda _, v: call(v), x))


def seconds_of(run, x, count):
    begin = time.perf_counter()
    jax.block_until_ready(run(x, count))
    return time.perf_counter() - begin


def main(library, hand):
    torch.set_num_threads(1)
    ways = {
        "XLA's own": lambda x: jax.nn.leaky_relu(x, SLOPE),
        "by hand": by_hand(hand),
        "bridge": kernel(f"{library}:Output", negative_slope=SLOPE),
        "pure_callback": by_callback,
    }
    print("LeakyRelu of float32 in JAX: ns for a call in lax.fori_loop, one thread of PyTorch")
    print(f"{'elements':>10}" + "".join(f"{way:>16}" for way in ways) + "   bridge / by hand")
    for elements in [1, 16, 10**3, 10**4, 10**5, 10**6, 10**7]:
        x = jnp.linspace(-1, 1, elements, dtype=jnp.float32)
        programs = {way: program(call) for way, call in ways.items()}
        counts = {}
        for way, run in programs.items():
            seconds_of(run, x, 1)  # compiles
            counts[way] = 2
            while seconds_of(run, x, counts[way]) < SECONDS:
                counts[way] *= 2
        times = {way: [] for way in ways}
        for _ in range(ROUNDS):
            for way, run in programs.items():
                times[way].append(seconds_of(run, x, counts[way]) / counts[way])
        medians = {way: statistics.median(all_) * 1e9 for way, all_ in times.items()}
        row = "".join(f"{medians[way]:16,.0f}" for way in ways)
        print(f"{elements:10,}{row}{medians['bridge'] / medians['by hand']:19.2f}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])

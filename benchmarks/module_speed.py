"""What a PyTorch module costs as one operator of MindSpore and JAX, beside PyTorch itself.

    PYTHONPATH=python python benchmarks/module_speed.py [--jax PYTHON] [--rounds N] [--mint]

prints in Markdown the time of a call and of a training step in PyTorch eager, in ms, and ratios to
it: of torch.compile, of MindSpore call by call (PyNative), with its queues and where it runs each
operator at once (`ms.runtime.launch_blocking()`), of `ms.jit` of the same, and of jitted JAX. Each
is a process of its own, which measures PyTorch and the other alternately and takes the least of the
rounds of each; a ratio is to PyTorch's time in the same process. `--jax` names the Python of an
environment with JAX, if this one has none. The library of operators by name and the native caller
have to be built.

a mean of the host's own: the gradients of a mean of 8x32 weights, without a module, which is what
    differentiating costs in the host at least
Linear of the host's own: that of the next row, without a module: MindSpore's nn.Dense, JAX by hand
Linear: torch.nn.Linear(32, 32) on 8 rows
transformer, convolution: the networks of examples/mint_digits on 64 digits, in training mode
bert, gpt2: of transformers, where that is installed: 4 layers of 256, two texts of 128 words
call: the module alone, without gradients; in JAX and PyTorch too
gradients: the loss, a mean of squares that is part of the module, and the gradients of all weights
gradients, loss of the host: the same, with the host's own operators for the loss
step: the gradients and Adam, of PyTorch, of MindSpore (`nn.Adam`; with `--mint` `mint.optim.Adam`
    of the library for mint, which MS_OP_PLUGIN_PATH names), and of JAX by hand
"""

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

# As in the example: operators this small gain nothing from threads, and wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

FLOOR = "a mean of the host's own"
OWN_LINEAR = "Linear of the host's own"
NETWORKS = [FLOOR, OWN_LINEAR, "Linear", "transformer", "convolution"]
if importlib.util.find_spec("transformers"):
    NETWORKS += ["bert", "gpt2"]
PARTS = ("call", "gradients", "gradients, loss of the host", "step")
HOSTS = ("torch.compile", "queues", "blocking", "ms.jit", "JAX")
BATCH_SECONDS = 0.03
RATE = 0.001


def make_network(name):
    """A network of PyTorch's in training mode, and a batch."""
    import torch

    torch.manual_seed(0)
    if name in ("Linear", OWN_LINEAR):
        return torch.nn.Linear(32, 32), torch.randn(8, 32)
    if name in ("bert", "gpt2"):
        return make_text_network(name), torch.randint(1000, (2, 128))
    convolution, transformer = networks()
    return {"transformer": transformer, "convolution": convolution}[name](), torch.rand(64, 1, 8, 8)


def make_text_network(name):
    """One whose result is a tensor; nothing is dropped."""
    import torch
    import transformers

    if name == "bert":
        config = transformers.BertConfig(
            **dict(vocab_size=1000, hidden_size=256, num_hidden_layers=4, num_attention_heads=4),
            **dict(intermediate_size=1024, hidden_dropout_prob=0, attention_probs_dropout_prob=0),
        )
        made = transformers.BertModel(config, add_pooling_layer=False)
    else:
        config = transformers.GPT2Config(
            **dict(vocab_size=1000, n_embd=256, n_layer=4, n_head=4, use_cache=False),
            **dict(resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, bos_token_id=None, eos_token_id=None),
        )
        made = transformers.GPT2LMHeadModel(config)

    class TextNetwork(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.network = made

        def forward(self, x):
            return self.network(x)[0]

    return TextNetwork()


def networks():
    """Those of the example, whose module is one of MindSpore's programs."""
    import torch

    text = (Path(__file__).parents[1] / "examples/mint_digits/mint_digits.py").read_text()
    begin = text.index("def networks(")
    namespace = {}
    exec(text[begin : text.index("\ndef ", begin + 1)], namespace)
    return namespace["networks"](torch, torch.nn.Module)


def with_loss(network):
    """The same with the loss as a part of it."""
    import torch

    class WithLoss(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.network = network

        def forward(self, x):
            return self.network(x).square().mean()

    return WithLoss()


# ===--- the sides: functions that do each part once ---===


def pytorch_parts(name, compiles=False):
    import torch

    if name == FLOOR:
        weights = torch.randn(8, 32, requires_grad=True)

        def gradients_of_mean():
            weights.grad = None
            mean().backward()

        mean = torch.compile(weights.mean) if compiles else weights.mean
        return {"gradients": gradients_of_mean}
    network, x = make_network(name)
    adam = torch.optim.Adam(network.parameters(), lr=RATE)
    loss = with_loss(network)
    if compiles:
        network, loss = torch.compile(network), torch.compile(loss)

    def call():
        with torch.no_grad():
            return network(x)

    if name == OWN_LINEAR:
        return {"call": call}

    def gradients():
        adam.zero_grad()
        loss(x).backward()

    def step():
        gradients()
        adam.step()

    return dict(zip(PARTS, (call, gradients, gradients, step), strict=True))


def mindspore_parts(name, is_graph, has_mint):
    import mindspore as ms
    from mindspore import mint

    from aten_bridge.mindspore import module

    if name == FLOOR:
        mean_weights = ms.Parameter(ms.mint.ones((8, 32)), name="weights")

        def mean():
            return mint.mean(mean_weights)

        of_mean = ms.value_and_grad(mean, None, [mean_weights])

        def gradients_of_mean():
            return of_mean()

        run_mean = ms.jit(gradients_of_mean) if is_graph else gradients_of_mean
        return {"gradients": lambda: run_mean()[1][0]}
    if name == OWN_LINEAR:
        layer, rows = ms.nn.Dense(32, 32), ms.mint.ones((8, 32))

        def call_layer(x):
            return layer(x)

        run_layer = ms.jit(call_layer) if is_graph else call_layer
        return {"call": lambda: run_layer(rows)}
    network, x = make_network(name)
    cell = module(network, (x,))
    whole = module(with_loss(make_network(name)[0]), (x,))
    given = ms.Tensor(x.numpy().copy())
    weights = whole.trainable_params()
    make_adam = mint.optim.Adam if has_mint else ms.nn.Adam
    adam = make_adam(weights, RATE)

    def call(x):
        return cell(x)

    def loss(x):
        return whole(x)

    def loss_of_host(x):
        return mint.mean(mint.square(cell(x)))

    own = ms.value_and_grad(loss, None, weights)
    of_host = ms.value_and_grad(loss_of_host, None, cell.trainable_params())

    def gradients(x):
        return own(x)

    def gradients_of_host(x):
        return of_host(x)

    def step(x):
        value, found = own(x)
        adam(found)
        return value

    functions = [call, gradients, gradients_of_host, step]
    if is_graph:
        functions = list(map(ms.jit, functions))
    call, gradients, gradients_of_host, step = functions

    def step_and_weight():
        step(given)
        return weights[-1]  # which is known once all is

    runs = (
        lambda: call(given),
        lambda: gradients(given)[1][-1],
        lambda: gradients_of_host(given)[1][-1],
        step_and_weight,
    )
    return dict(zip(PARTS, runs, strict=True))


def jax_parts(name):
    import jax
    import jax.numpy as jnp

    from aten_bridge.jax import module

    if name == FLOOR:
        mean = jax.jit(jax.value_and_grad(jnp.mean))
        weights = jnp.ones((8, 32))
        return {"gradients": lambda: jax.block_until_ready(mean(weights))}
    if name == OWN_LINEAR:
        layer = jax.jit(lambda weights, bias, x: x @ weights.T + bias)
        operands = jnp.ones((32, 32)), jnp.ones(32), jnp.ones((8, 32))
        return {"call": lambda: jax.block_until_ready(layer(*operands))}
    network, x = make_network(name)
    apply, variables = module(network, (x,))
    apply_whole, of_whole = module(with_loss(make_network(name)[0]), (x,))
    given = jnp.asarray(x.numpy())

    def loss_of(function, variables):
        def loss(params):
            result, _ = function({**variables, "params": params}, given, train=True)
            return jnp.mean(jnp.square(result))

        return loss

    def gradients(function, variables):
        return jax.jit(jax.value_and_grad(loss_of(function, variables)))

    own, of_host = gradients(apply_whole, of_whole), gradients(apply, variables)
    tree = jax.tree_util.tree_map
    state = {"params": of_whole["params"], "count": jnp.zeros(())}
    state["m"] = state["v"] = tree(jnp.zeros_like, state["params"])

    @jax.jit
    def adam_step(state):
        found = jax.grad(loss_of(apply_whole, of_whole))(state["params"])
        count = state["count"] + 1
        m = tree(lambda m, g: 0.9 * m + 0.1 * g, state["m"], found)
        v = tree(lambda v, g: 0.999 * v + 0.001 * g * g, state["v"], found)
        scale = RATE * jnp.sqrt(1 - 0.999**count) / (1 - 0.9**count)
        params = tree(lambda p, m, v: p - scale * m / (jnp.sqrt(v) + 1e-8), state["params"], m, v)
        return {"params": params, "count": count, "m": m, "v": v}

    def step():
        nonlocal state
        state = adam_step(state)
        return state

    call = jax.jit(lambda variables: apply(variables, given, train=True))
    functions = (
        lambda: call(variables),
        lambda: own(of_whole["params"]),
        lambda: of_host(variables["params"]),
        step,
    )
    return {
        part: lambda run=run: jax.block_until_ready(run())
        for part, run in zip(PARTS, functions, strict=True)
    }


# ===--- a process that measures ---===


def seconds_of(run, count):
    """A call's time, where the last result is waited for."""
    begin = time.perf_counter()
    for _ in range(count):
        result = run()
    if hasattr(result, "asnumpy"):
        result.asnumpy()
    return (time.perf_counter() - begin) / count


def measure(host, rounds, has_mint):
    """Prints the least time of each side, in JSON."""
    if host == "JAX":
        make_parts = jax_parts
    elif host == "torch.compile":

        def make_parts(name):
            return pytorch_parts(name, compiles=True)

    else:
        import mindspore as ms

        if has_mint:
            from aten_bridge.mint import install

            install()
        if host == "blocking":
            ms.runtime.launch_blocking()

        def make_parts(name):
            return mindspore_parts(name, host == "ms.jit", has_mint)

    found = {}
    for name in NETWORKS:
        sides = (pytorch_parts(name), make_parts(name))
        for part in sides[0]:
            runs = [side[part] for side in sides]
            for run in runs:
                seconds_of(run, 4)
            counts = [max(1, int(BATCH_SECONDS / seconds_of(run, 2))) for run in runs]
            times = [
                [seconds_of(run, count) for run, count in zip(runs, counts, strict=True)]
                for _ in range(rounds)
            ]
            found[f"{name}, {part}"] = [min(column) for column in zip(*times, strict=True)]
    print(json.dumps(found))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jax", help="the Python of an environment with JAX", default="")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--mint", action="store_true", help="mint.optim.Adam, not nn.Adam")
    parser.add_argument("--host", choices=HOSTS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.host:
        measure(options.host, options.rounds, options.mint)
        return
    found = {}
    for host in HOSTS:
        python = options.jax if host == "JAX" and options.jax else sys.executable
        command = [python, __file__, "--host", host, "--rounds", str(options.rounds)]
        command += ["--mint"] if options.mint else []
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
        if done.returncode == 0:
            found[host] = json.loads(done.stdout.splitlines()[-1])
        else:
            print(f"{host} could not be measured.", file=sys.stderr)
    print("| | PyTorch, ms | " + " | ".join(found) + " |\n|---|" + "--:|" * (len(found) + 1))
    for what in min(found.values(), key=len):  # a host may have no transformers
        own = statistics.median(times[what][0] for times in found.values())
        ratios = [f"{times[what][1] / times[what][0]:.2f}" for times in found.values()]
        print(f"| {what} | {own * 1e3:.3f} | {' | '.join(ratios)} |")


if __name__ == "__main__":
    main()

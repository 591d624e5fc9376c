"""One program in a process of its own: the same model in MindSpore, by mindone, and in PyTorch.

    python tests/third_party_models/program.py llama [--kind float32]

prints one line of JSON: the largest differences of results and gradients, or what went wrong, and
the times. The weights are PyTorch's, random and the same in each run.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import importlib
import json
import os
import statistics
import sys
import time
import traceback
import unittest.mock

import families
import mindspore as ms
import numpy as np
import torch

# A result as large as this masks something; it has no part in the loss.
LARGE = 1e6
# Times the largest gradient: what is smaller is the sum's rounding, as that of a key's bias.
NEGLIGIBLE = {"float32": 1e-5, "bfloat16": 1e-1, "float16": 1e-2}


def random_weights(model: torch.nn.Module) -> None:
    """Weights with which no layer's part in the result is small, as it is at the beginning."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if not parameter.is_floating_point() or "A_log" in name:
                continue
            noise = torch.randn(parameter.shape, generator=generator)
            if parameter.ndim >= 2:
                inner = parameter[0].numel() if parameter.shape[0] > 1 else parameter.numel()
                parameter.copy_(noise / max(inner, 4) ** 0.5)
            else:
                parameter.add_(0.1 * noise)


def leaves(value, path: tuple = ()) -> dict:
    """The tensors of numbers in what a model returns, by their places in it."""
    if isinstance(value, (torch.Tensor, ms.Tensor)):
        return {path: value} if value.is_floating_point() else {}
    if hasattr(value, "to_tuple"):
        value = value.to_tuple()
    found = {}
    if isinstance(value, (list, tuple)):
        value = dict(enumerate(value))
    if isinstance(value, dict):
        for place, part in value.items():
            found |= leaves(part, (*path, place))
    return found


def of_place(value, path: tuple):
    """What `leaves` found there; a tensor that is all of the result has no place."""
    for place in path:
        value = value[place]
    return value


def to_numpy(tensor) -> np.ndarray:
    if isinstance(tensor, torch.Tensor):
        return tensor.detach().to(torch.float32).numpy()
    return tensor.astype(ms.float32).asnumpy()


def difference(ours: np.ndarray, theirs: np.ndarray) -> float:
    """Against the largest of PyTorch's numbers, or against 1 if all are smaller."""
    if ours.shape != theirs.shape:
        raise ValueError(f"shape {list(ours.shape)}, not {list(theirs.shape)}")
    if not theirs.size:
        return 0.0
    usual = np.abs(theirs) < LARGE
    if not np.all(usual == (np.abs(ours) < LARGE)):
        return float("inf")
    apart = np.abs(ours - theirs)[usual]
    largest = np.abs(theirs)[usual].max(initial=1.0)
    return float(apart.max(initial=0.0) / largest)


class Loss(ms.nn.Cell):
    """The weighted sum of a model's results, in either of MindSpore's modes."""

    def __init__(self, model: ms.nn.Cell, inputs: dict, weights: dict):
        super().__init__()
        self.model, self.inputs = model, inputs
        self.places, self.weights = tuple(weights), [ms.Tensor(one) for one in weights.values()]

    def construct(self):
        results = self.model(**self.inputs)
        total = 0.0
        for i in range(len(self.places)):
            result = results
            for place in self.places[i]:
                result = result[place]
            total = total + (result.float() * self.weights[i]).sum()
        return total


def constant_of(model: torch.nn.Module, name: str) -> torch.Tensor | None:
    """A tensor that is no part of the model's checkpoint."""
    path, _, last = name.rpartition(".")
    with contextlib.suppress(AttributeError):
        value = getattr(model.get_submodule(path), last)
        if isinstance(value, torch.Tensor):
            return value
    return None


class Pair:
    """The model in both frameworks, with the same weights and inputs."""

    def __init__(self, family: families.Family, dtype: str):
        self.family, self.dtype = family, dtype
        torch.manual_seed(0)
        ms.manual_seed(0)
        theirs = getattr(importlib.import_module(family.library), family.model)
        ours = getattr(importlib.import_module(f"mindone.{family.library}"), family.model)
        self.torch_model = self.made(theirs).eval()
        random_weights(self.torch_model)
        self.initial = copy.deepcopy(self.torch_model.state_dict())
        self.utilities = importlib.import_module(
            "mindone.transformers.modeling_utils"
            if family.library == "transformers"
            else "mindone.diffusers.models.modeling_utils"
        )
        # As `from_pretrained` makes it: the initialisation is not written for MindSpore 2.10, whose
        # `Parameter.data` is no parameter.
        with unittest.mock.patch.object(self.utilities, "_init_weights", False, create=True):
            self.ms_model = self.made(ours).set_train(False)
        if hasattr(self.ms_model, "tie_weights"):
            self.ms_model.tie_weights()
        self.copy_weights()
        if dtype != "float32":
            self.torch_model.to(getattr(torch, dtype))
            self.ms_model.to(getattr(ms, dtype))
        arrays = family.inputs()
        self.torch_inputs = families.convert(arrays, self.torch_tensor)
        self.ms_inputs = families.convert(arrays, self.ms_tensor)
        if "labels" in self.ms_inputs:  # MindSpore's losses take no other integers
            self.ms_inputs["labels"] = self.ms_inputs["labels"].astype(ms.int32)

    def made(self, model):
        if self.family.library == "diffusers":
            return model(**self.family.config())
        return model(self.family.config())

    def torch_tensor(self, array):
        tensor = torch.tensor(array)
        return tensor.to(getattr(torch, self.dtype)) if tensor.is_floating_point() else tensor

    def ms_tensor(self, array):
        tensor = ms.Tensor(array)
        return tensor.astype(getattr(ms, self.dtype)) if tensor.is_floating_point() else tensor

    def copy_weights(self):
        """By the names that mindone loads a checkpoint with; what finds no place is a fault."""
        names = self.utilities._get_pt2ms_mappings(self.ms_model)
        mine = dict(self.ms_model.parameters_and_names())
        for name, buffer in self.ms_model.named_buffers():
            mine.setdefault(name, buffer)
        self.pairs = {}  # PyTorch's parameter and ours, by our name
        theirs = dict(self.torch_model.named_parameters(remove_duplicate=False))
        filled = set()
        tensors = self.torch_model.state_dict(keep_vars=True)
        for name in mine:  # mindone has some of PyTorch's constants as parameters
            if (
                name not in tensors
                and (constant := constant_of(self.torch_model, name)) is not None
            ):
                tensors[name] = constant
        for name, tensor in tensors.items():
            known = name.replace(".parametrizations.weight.original0", ".weight_g")
            known = known.replace(".parametrizations.weight.original1", ".weight_v")
            place = names.get(known, (known,))[0]
            if place is None or place not in mine:
                continue
            place_tensor = mine[place]
            values = tensor.detach()
            if values.dtype == torch.bfloat16:
                values = values.float()
            values = values.numpy()
            if values.size != np.prod(place_tensor.shape):
                raise ValueError(f"{name}: {list(place_tensor.shape)}, not {list(values.shape)}")
            value = ms.Tensor(values.reshape(place_tensor.shape)).astype(place_tensor.dtype)
            if isinstance(place_tensor, ms.Parameter):
                place_tensor.set_data(value)
            else:
                place_tensor.assign_value(value)
            filled.add(place)
            if name in theirs:
                self.pairs[place] = (theirs[name], place_tensor)
        placed = {id(parameter) for parameter, _ in self.pairs.values()}
        lost = [name for name, one in theirs.items() if id(one) not in placed]
        if lost:
            raise ValueError(f"mindone's model has no parameters {', '.join(lost[:5])}")
        lacking = [
            name
            for name, parameter in self.ms_model.parameters_and_names()
            if name not in filled and parameter.requires_grad and "weight_norm_cell" not in name
        ]
        if lacking:
            raise ValueError(f"PyTorch's model has no parameters {', '.join(lacking[:5])}")

    def torch_results(self):
        return self.torch_model(**self.torch_inputs, **self.family.options)

    def ms_results(self):
        return self.ms_model(**self.ms_inputs, **self.family.options)

    def forward(self):
        with torch.no_grad():
            theirs = {
                path: to_numpy(result) for path, result in leaves(self.torch_results()).items()
            }
        ours = [to_numpy(result) for result in leaves(self.ms_results()).values()]
        if len(ours) != len(theirs):
            raise ValueError(f"{len(ours)} results, not {len(theirs)}")
        if not all(np.isfinite(result).all() for result in theirs.values()):
            raise ValueError("PyTorch's results are not finite")
        used = {path: r.requires_grad for path, r in leaves(self.torch_results()).items()}
        # Weights of the results in the loss: random, and nothing for what masks.
        generator = np.random.default_rng(2)
        self.weights = {
            path: (generator.normal(size=result.shape) * (np.abs(result) < LARGE)).astype("float32")
            for path, result in theirs.items()
            if used[path]
        }
        return max(difference(*both) for both in zip(ours, theirs.values(), strict=True))

    def torch_loss(self):
        results = self.torch_results()
        return sum(
            (of_place(results, path).float() * torch.tensor(weights)).sum()
            for path, weights in self.weights.items()
        )

    def ms_gradient_function(self):
        """A function of the loss and of the gradients of all parameters."""
        self.trainable = [
            (name, parameter)
            for name, parameter in self.ms_model.parameters_and_names()
            if parameter.requires_grad
        ]
        loss = Loss(self.ms_model, {**self.ms_inputs, **self.family.options}, self.weights)
        return ms.value_and_grad(loss, None, tuple(parameter for _, parameter in self.trainable))

    def torch_step(self):
        self.torch_model.zero_grad()
        loss = self.torch_loss()
        loss.backward()
        return loss

    def gradient(self):
        self.torch_step()
        self.gradient_function = self.ms_gradient_function()
        _, gradients = self.gradient_function()
        theirs = {name: both[0].grad for name, both in self.pairs.items() if both[0].requires_grad}
        names = {name for name, _ in self.trainable}
        lacking = sorted(set(theirs) - names)
        if lacking:
            raise ValueError(f"parameters without a gradient: {', '.join(lacking[:5])}")
        largest = max(float(g.abs().max()) for g in theirs.values() if g is not None and g.numel())
        negligible = NEGLIGIBLE[self.dtype] * largest
        worst = {"gradient": 0.0, "relative": 0.0}
        where = {}
        for (name, _), gradient in zip(self.trainable, gradients, strict=True):
            if name not in theirs:
                continue
            mine = to_numpy(gradient)
            expected = theirs[name]
            expected = np.zeros(mine.shape, np.float32) if expected is None else to_numpy(expected)
            expected = expected.reshape(mine.shape)
            top = float(np.abs(expected).max(initial=0.0))
            apart = {"gradient": difference(mine, expected)}
            if top > negligible:
                apart["relative"] = float(np.abs(mine - expected).max()) / top
            elif not np.abs(mine).max(initial=0.0) <= 100 * negligible:
                apart["relative"] = float("inf")
            for kind, value in apart.items():
                if not value <= worst[kind]:
                    worst[kind] = value
                    where[kind] = name
        return worst, where

    def times(self):
        """Seconds of ours and of PyTorch's, medians of three."""

        def median(call):
            spent = []
            for _ in range(3):
                begin = time.perf_counter()
                call()
                spent.append(time.perf_counter() - begin)
            return statistics.median(spent)

        def of_ms_forward():
            self.ms_results()
            ms.runtime.synchronize()

        def of_torch_forward():
            with torch.no_grad():
                self.torch_results()

        def of_ms_gradient():
            self.gradient_function()
            ms.runtime.synchronize()

        return {
            "forward": [median(of_ms_forward), median(of_torch_forward)],
            "training": [median(of_ms_gradient), median(self.torch_step)],
        }


class MindSporesAdam(torch.optim.Optimizer):
    """What MindSpore's nn.Adam and nn.AdamWeightDecay are documented to do.

    The first adds epsilon to the root before the correction and not after it, as PyTorch does; the
    second has no correction.
    """

    def __init__(self, parameters, lr, eps, weight_decay=0.0, corrects=True):
        super().__init__(parameters, {"lr": lr, "eps": eps, "weight_decay": weight_decay})
        self.corrects = corrects

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                state = self.state[parameter]
                if not state:
                    zero = torch.zeros_like(parameter)
                    state |= {"step": 0, "first": zero, "second": zero}
                state["step"] += 1
                state["first"] = 0.9 * state["first"] + 0.1 * parameter.grad
                state["second"] = 0.999 * state["second"] + 0.001 * parameter.grad**2
                rate = group["lr"]
                if self.corrects:
                    rate *= (1 - 0.999 ** state["step"]) ** 0.5 / (1 - 0.9 ** state["step"])
                update = state["first"] / (state["second"].sqrt() + group["eps"])
                parameter -= rate * update + group["lr"] * group["weight_decay"] * parameter


RATE = 0.01
# Large beside a gradient's rounding, of which the usual 1e-8 makes steps as long as any other.
EPSILON = 1e-4
DECAY = 0.01
OPTIMIZERS = {
    "nn.SGD": (
        lambda parameters: ms.nn.SGD(parameters, RATE, momentum=0.9, nesterov=True),
        lambda parameters: torch.optim.SGD(parameters, RATE, momentum=0.9, nesterov=True),
    ),
    "nn.Momentum": (
        lambda parameters: ms.nn.Momentum(parameters, RATE, 0.9),
        lambda parameters: torch.optim.SGD(parameters, RATE, momentum=0.9),
    ),
    "nn.Adam": (
        lambda parameters: ms.nn.Adam(parameters, RATE / 10, eps=EPSILON),
        lambda parameters: MindSporesAdam(parameters, RATE / 10, EPSILON),
    ),
    "nn.AdamWeightDecay": (
        # In a group, or parameters with certain names do not decay. Without the correction the
        # first steps are three times as long.
        lambda parameters: ms.nn.AdamWeightDecay(
            [{"params": parameters, "weight_decay": DECAY}], RATE / 30, eps=EPSILON
        ),
        lambda parameters: MindSporesAdam(parameters, RATE / 30, EPSILON, DECAY, corrects=False),
    ),
    "mint.optim.SGD": (
        lambda parameters: ms.mint.optim.SGD(parameters, RATE, momentum=0.9, weight_decay=DECAY),
        lambda parameters: torch.optim.SGD(parameters, RATE, momentum=0.9, weight_decay=DECAY),
    ),
    "mint.optim.Adam": (
        lambda parameters: ms.mint.optim.Adam(parameters, RATE / 10, eps=EPSILON),
        lambda parameters: torch.optim.Adam(parameters, RATE / 10, eps=EPSILON),
    ),
    "mint.optim.AdamW": (
        lambda parameters: ms.mint.optim.AdamW(
            parameters, RATE / 10, eps=EPSILON, weight_decay=DECAY
        ),
        lambda parameters: torch.optim.AdamW(
            parameters, RATE / 10, eps=EPSILON, weight_decay=DECAY
        ),
    ),
}
STEPS = 10


def trained(pair: Pair, name: str) -> dict:
    """The largest differences of the losses and of what ten steps changed."""
    pair.torch_model.load_state_dict(pair.initial)
    pair.copy_weights()
    pair.torch_model.train()
    pair.ms_model.set_train(True)
    names = [name for name, parameter in pair.ms_model.parameters_and_names()]
    mine = dict(pair.ms_model.parameters_and_names())
    both = {
        name: pair.pairs[name]
        for name in names
        if mine[name].requires_grad and name in pair.pairs and pair.pairs[name][0].requires_grad
    }
    ours = [one for _, one in both.values()]
    theirs = [one for one, _ in both.values()]
    before = {name: one.detach().clone() for name, (one, _) in both.items()}
    make_ours, make_theirs = OPTIMIZERS[name]
    optimizer, torch_optimizer = make_ours(ours), make_theirs(theirs)
    goals = {path: weights for path, weights in pair.weights.items()}
    ms_goals = {path: ms.Tensor(goal) for path, goal in goals.items()}
    has_loss = "labels" in pair.ms_inputs

    def loss_of(results, goals, tensor):
        if has_loss:
            return results[0]
        total = 0.0
        for path, goal in goals.items():
            total = total + ((of_place(results, path) - tensor(goal)) ** 2).mean()
        return total

    gradient = ms.value_and_grad(
        lambda: loss_of(pair.ms_results(), ms_goals, lambda goal: goal), None, tuple(ours)
    )
    losses = []
    for _ in range(STEPS):
        torch_optimizer.zero_grad()
        loss = loss_of(pair.torch_results(), goals, torch.tensor)
        loss.backward()
        torch_optimizer.step()
        ms_loss, gradients = gradient()
        optimizer(gradients)
        losses.append((float(ms_loss.asnumpy()), loss.item()))
    changes = {}
    for name, (one, other) in both.items():
        start = before[name].numpy()
        changes[name] = (
            other.asnumpy().reshape(start.shape) - start,
            one.detach().numpy() - start,
        )
    longest = max(float(np.abs(change).max(initial=0.0)) for _, change in changes.values())
    if not losses[0][1] != losses[-1][1]:
        raise ValueError("the loss does not change")
    apart = {}
    for name, (change, expected) in changes.items():
        if float(np.abs(expected).max(initial=0.0)) > 1e-2 * longest:
            apart[name] = float(np.linalg.norm(change - expected) / np.linalg.norm(expected))
    worst = max(apart, key=lambda name: np.nan_to_num(apart[name], nan=np.inf))
    return {
        "loss": max(abs(one - other) / max(1.0, abs(other)) for one, other in losses),
        "change": apart[worst],
        "where": worst,
        "losses": [losses[0], losses[-1]],
    }


def answer(name: str, kind: str) -> dict:
    """What the program's run gave: differences and times, or the error and where it came."""
    torch.set_num_threads(1)
    if not os.environ.get("PROGRAMS_WITHOUT"):  # to see what is not the library's doing
        from aten_bridge.mint import install

        install()
        ms.runtime.launch_blocking()  # as `python -m aten_bridge.mint` does
    family = families.FAMILIES[name]
    answer: dict = {"name": name, "kind": kind}
    stage = "model"
    try:
        if kind == "graph":
            ms.set_context(mode=ms.GRAPH_MODE)
        pair = Pair(family, kind if kind in ("bfloat16", "float16") else "float32")
        answer["parameters"] = len(pair.pairs)
        stage = "forward"
        answer["forward"] = pair.forward()
        if kind == "training":
            answer["optimizers"] = {}
            for stage in OPTIMIZERS:
                answer["optimizers"][stage] = trained(pair, stage)
            return answer
        stage = "gradient"
        worst, where = pair.gradient()
        answer |= worst
        answer["where"] = where
        stage = "time"
        answer["seconds"] = pair.times()
    except Exception as error:
        answer["stage"] = stage
        answer["error"] = f"{type(error).__name__}: {error}"
        answer["trace"] = traceback.format_exc()[-6000:]
    return answer


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name")
    parser.add_argument("--kind", default="float32")
    options = parser.parse_args()
    with contextlib.redirect_stdout(sys.stderr):
        answered = answer(options.name, options.kind)
    print(json.dumps(answered), flush=True)
    os._exit(0)  # MindSpore's threads may fail while they end


if __name__ == "__main__":
    main()

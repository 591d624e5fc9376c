"""Other people's PyTorch modules, whole, in MindSpore and JAX: the table in docs/modules.md.

    python tests/third_party_models/module_proof.py [--write] [--only REGEX] [--jax PYTHON]

Each module has random weights and small sizes. One process exports it to a file with
aten_bridge.program.save, and writes down what PyTorch computes: results in evaluation mode,
gradients in both, and losses of twenty steps of SGD and AdamW. One process for each host, which
does not import PyTorch, computes the same from the file. The exit status says whether all are
within the limits.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "docs" / "modules.md", ROOT / "docs" / "zh" / "modules.md"]
BEGIN, END = "<!-- begin: tests/third_party_models/module_proof.py -->\n", "<!-- end -->\n"
STEPS = 20
RATES = {"SGD": 0.001, "AdamW": 0.0001}  # larger ones amplify rounding
LIMITS = {"results": 1e-5, "gradients": 1e-4, "SGD": 1e-4, "AdamW": 1e-4}
LIMIT = 900  # seconds of a process

# ===--- the modules ---===


def takes(module: Any, key: str, *names: str) -> Any:
    """A module of one of the results of another, such as its logits; `names` are its arguments'."""
    import torch

    class Takes(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.module = module

        def forward(self, *inputs: Any) -> Any:
            named = dict(zip(names, inputs, strict=False))
            return getattr(self.module(*inputs[len(named) :], **named), key)

    return Takes()


def ids(*sizes: int) -> Any:
    import torch

    return torch.randint(0, 99, sizes)


def images(*sizes: int) -> Any:
    import torch

    return torch.randn(sizes)


def resnet18() -> tuple[Any, tuple[Any, ...]]:
    import torchvision

    return torchvision.models.resnet18(num_classes=10), (images(4, 3, 64, 64),)


def mobilenet_v3() -> tuple[Any, tuple[Any, ...]]:
    import torchvision

    module = torchvision.models.mobilenet_v3_small(num_classes=10, dropout=0.0)
    return module, (images(4, 3, 64, 64),)


def vision_transformer() -> tuple[Any, tuple[Any, ...]]:
    import torchvision

    module = torchvision.models.VisionTransformer(32, 8, 2, 2, 32, 64, num_classes=10)
    return module, (images(2, 3, 32, 32),)


def bert() -> tuple[Any, tuple[Any, ...]]:
    from transformers import BertConfig, BertModel

    config = BertConfig(
        vocab_size=99, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=37, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    return takes(BertModel(config, add_pooling_layer=False), "last_hidden_state"), (ids(2, 7),)


def gpt2() -> tuple[Any, tuple[Any, ...]]:
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(
        vocab_size=99, n_embd=32, n_layer=2, n_head=4, n_positions=32, resid_pdrop=0.0,
        embd_pdrop=0.0, attn_pdrop=0.0, use_cache=False,
    )  # fmt: skip
    return takes(GPT2LMHeadModel(config), "logits"), (ids(2, 7),)


def llama() -> tuple[Any, tuple[Any, ...]]:
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=99, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, use_cache=False,
    )  # fmt: skip
    return takes(LlamaForCausalLM(config), "logits"), (ids(2, 7),)


def olmoe() -> tuple[Any, tuple[Any, ...]]:
    """A mixture of experts: how many words each one gets depends on values."""
    from transformers import OlmoeConfig, OlmoeForCausalLM

    config = OlmoeConfig(
        vocab_size=99, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, num_experts=4, num_experts_per_tok=2,
        use_cache=False,
    )  # fmt: skip
    return takes(OlmoeForCausalLM(config), "logits"), (ids(2, 7),)


def t5() -> tuple[Any, tuple[Any, ...]]:
    from transformers import T5Config, T5ForConditionalGeneration

    config = T5Config(
        vocab_size=99, d_model=32, d_kv=8, d_ff=37, num_layers=2, num_heads=4, dropout_rate=0.0,
        use_cache=False, decoder_start_token_id=0,
    )  # fmt: skip
    module = takes(T5ForConditionalGeneration(config), "logits", "input_ids", "decoder_input_ids")
    return module, (ids(2, 7), ids(2, 5))


def whisper() -> tuple[Any, tuple[Any, ...]]:
    from transformers import WhisperConfig, WhisperModel

    config = WhisperConfig(
        vocab_size=99, d_model=16, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=32, decoder_ffn_dim=32, num_mel_bins=8,
        max_source_positions=20, max_target_positions=16, dropout=0.0, use_cache=False,
        pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1,
    )  # fmt: skip
    model = WhisperModel(config)
    # In training mode a random number says which layers are left out, which is nothing to export.
    for part in (model.encoder.eval(), model.decoder.eval()):
        part.train = lambda mode=True, part=part: part
    module = takes(model, "last_hidden_state", "input_features", "decoder_input_ids")
    return module, (images(2, 8, 40), ids(2, 5))


def vit() -> tuple[Any, tuple[Any, ...]]:
    from transformers import ViTConfig, ViTForImageClassification

    config = ViTConfig(
        image_size=32, patch_size=8, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=37, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    return takes(ViTForImageClassification(config), "logits"), (images(2, 3, 32, 32),)


def unet() -> tuple[Any, tuple[Any, ...]]:
    import torch
    from diffusers import UNet2DModel

    module = UNet2DModel(
        sample_size=16, in_channels=3, out_channels=3, layers_per_block=1,
        block_out_channels=(16, 32), norm_num_groups=8, attention_head_dim=8,
        down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"),
    )  # fmt: skip
    return takes(module, "sample"), (images(2, 3, 16, 16), torch.tensor([3, 70]))


def lstm() -> tuple[Any, tuple[Any, ...]]:
    import torch

    class Reads(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = torch.nn.LSTM(8, 16, 2, batch_first=True)
            self.head = torch.nn.Linear(16, 3)

        def forward(self, x: Any) -> Any:
            return self.head(self.layers(x)[0])

    return Reads(), (images(3, 7, 8),)


def graph_network() -> tuple[Any, tuple[Any, ...]]:
    import torch
    from torch_scatter import scatter

    class GraphNetwork(torch.nn.Module):
        """Nodes take the means and the sums of what their edges carry."""

        def __init__(self) -> None:
            super().__init__()
            self.messages = torch.nn.ModuleList([torch.nn.Linear(16, 8) for _ in range(3)])
            self.updates = torch.nn.ModuleList([torch.nn.Linear(24, 8) for _ in range(3)])

        def forward(self, nodes: Any, edges: Any) -> Any:
            sources, targets = edges
            count = nodes.shape[0]
            for message, update in zip(self.messages, self.updates, strict=True):
                pairs = torch.cat([nodes[sources], nodes[targets]], 1)
                values = torch.nn.functional.silu(message(pairs))
                means = scatter(values, targets, 0, dim_size=count, reduce="mean")
                sums = scatter(values, targets, 0, dim_size=count, reduce="sum")
                nodes = nodes + torch.nn.functional.silu(update(torch.cat([nodes, means, sums], 1)))
            return nodes

    return GraphNetwork(), (torch.randn(20, 8), torch.randint(0, 20, (2, 60)))


def detection_head() -> tuple[Any, tuple[Any, ...]]:
    import torch
    import torchvision
    from torchvision.models.detection.faster_rcnn import FastRCNNPredictor, TwoMLPHead

    class DetectionHead(torch.nn.Module):
        """The boxes that are left, each with the scores of its classes."""

        def __init__(self) -> None:
            super().__init__()
            self.layers = TwoMLPHead(4 * 3 * 3, 16)
            self.predictor = FastRCNNPredictor(16, 5)

        def forward(self, features: Any, boxes: Any, scores: Any) -> Any:
            kept = boxes[torchvision.ops.nms(boxes, scores, 0.3)]
            rois = torch.cat([torch.zeros_like(kept[:, :1]), kept], 1)
            pooled = torchvision.ops.roi_align(features, rois, 3, sampling_ratio=2)
            logits, _ = self.predictor(self.layers(pooled))
            return torch.cat([kept, logits.softmax(1)], 1)

    corners = torch.rand(40, 2) * 12
    boxes = torch.cat([corners, corners + 1 + torch.rand(40, 2) * 4], 1)
    return DetectionHead(), (torch.randn(1, 4, 16, 16), boxes, torch.rand(40))


MODULES: dict[str, tuple[Callable[[], tuple[Any, tuple[Any, ...]]], str]] = {
    "resnet18": (resnet18, "torchvision"),
    "mobilenet_v3_small": (mobilenet_v3, "torchvision"),
    "VisionTransformer": (vision_transformer, "torchvision"),
    "BertModel": (bert, "transformers"),
    "GPT2LMHeadModel": (gpt2, "transformers"),
    "LlamaForCausalLM": (llama, "transformers"),
    "OlmoeForCausalLM": (olmoe, "transformers"),
    "T5ForConditionalGeneration": (t5, "transformers"),
    "WhisperModel": (whisper, "transformers"),
    "ViTForImageClassification": (vit, "transformers"),
    "UNet2DModel": (unet, "diffusers"),
    "LSTM": (lstm, "torch"),
    "graph network": (graph_network, "torch_scatter"),
    "detection head": (detection_head, "torchvision"),
}
# The sizes of their results depend on values: they are called outside of jax.jit. The operators are
# those of the library, which imports PyTorch.
UNSIZED = ["detection head"]


# ===--- steps, in NumPy, so that their rounding is the same ---===

Step = Callable[[dict[str, np.ndarray]], tuple[float, dict[str, np.ndarray]]]


def losses(step: Step, weights: dict[str, np.ndarray], optimizer: str) -> list[float]:
    """Those of twenty steps of SGD or AdamW, which are the same in PyTorch and in the hosts."""
    rate, decay, eps = RATES[optimizer], 0.01, 1e-8
    weights = {name: weight.copy() for name, weight in weights.items()}
    first = {name: np.zeros_like(weight) for name, weight in weights.items()}
    second = {name: np.zeros_like(weight) for name, weight in weights.items()}
    found = []
    for i in range(1, STEPS + 1):
        loss, gradients = step(weights)
        found.append(float(loss))
        for name, gradient in gradients.items():
            if optimizer == "SGD":
                weights[name] -= np.float32(rate) * gradient
                continue
            m, v = first[name], second[name]
            m += np.float32(0.1) * (gradient - m)
            v += np.float32(0.001) * (gradient * gradient - v)
            scale = (np.sqrt(v) / np.float32(np.sqrt(1 - 0.999**i))) + np.float32(eps)
            weights[name] *= np.float32(1 - rate * decay)
            weights[name] -= np.float32(rate / (1 - 0.9**i)) * m / scale
    return found


def write_reference(name: str, folder: Path) -> None:
    """The file of a module, and what PyTorch computes."""
    import torch

    from aten_bridge.program import save

    torch.manual_seed(0)
    module, inputs = MODULES[name][0]()
    module.train()
    save(module, folder / "module", inputs)
    state = {key: value.clone() for key, value in module.state_dict().items()}
    kept: dict[str, np.ndarray] = {f"input {i}": one.numpy() for i, one in enumerate(inputs)}
    if name in UNSIZED:
        kept["library"] = np.array(MODULES[name][1])
    target = torch.randn_like(module.eval()(*inputs))
    module.load_state_dict(state)
    kept["target"] = target.numpy()
    for trains in (False, True):
        mode = "training" if trains else "evaluation"
        module.load_state_dict(state)
        module.train(trains).zero_grad()
        results = module(*inputs)
        (results - target).square().mean().backward()
        kept[f"{mode} results"] = results.detach().numpy()
        for key, parameter in module.named_parameters():
            if parameter.grad is not None:
                kept[f"{mode} gradient {key}"] = parameter.grad.numpy().copy()
    module.train()

    def step(weights: dict[str, np.ndarray]) -> tuple[float, dict[str, np.ndarray]]:
        module.load_state_dict({k: torch.from_numpy(w) for k, w in weights.items()}, strict=False)
        module.zero_grad()
        loss = (module(*inputs) - target).square().mean()
        loss.backward()
        of_all = module.named_parameters()
        return loss.item(), {k: p.grad.numpy() for k, p in of_all if p.grad is not None}

    first = {name: one.detach().numpy().copy() for name, one in module.named_parameters()}
    for optimizer in RATES:
        module.load_state_dict(state)
        kept[optimizer] = np.array(losses(step, first, optimizer))
    np.savez(folder / "reference.npz", **kept)


# ===--- hosts ---===


def in_mindspore(
    path: Path, inputs: list[np.ndarray], target: np.ndarray, is_unsized: bool
) -> tuple[Any, ...]:
    """Functions of the weights in both modes, and the weights."""
    import mindspore as ms

    from aten_bridge.mindspore import module

    ms.set_device("CPU")
    ms.runtime.launch_blocking()
    cell = module(path)
    known = {parameter.name: parameter for parameter in cell.trainable_params()}
    before = {parameter.name: parameter.asnumpy().copy() for parameter in cell.get_parameters()}
    given = [ms.Tensor(one) for one in inputs]
    wanted = ms.Tensor(target)

    def loss_of(*given: Any) -> Any:
        results = cell(*given)
        return ((results - wanted) ** 2).mean(), results

    differentiate = ms.value_and_grad(loss_of, None, list(known.values()), has_aux=True)

    def step(trains: bool, weights: dict[str, np.ndarray]) -> tuple[Any, ...]:
        for name, weight in weights.items():
            known[name].set_data(ms.Tensor(weight))
        cell.set_train(trains)
        (loss, results), gradients = differentiate(*given)
        named = zip(known, gradients, strict=True)
        return loss.asnumpy(), {n: g.asnumpy() for n, g in named}, results.asnumpy()

    def reset() -> None:
        for parameter in cell.get_parameters():
            parameter.set_data(ms.Tensor(before[parameter.name]))

    return step, {name: before[name] for name in known}, reset


def in_jax(
    path: Path, inputs: list[np.ndarray], target: np.ndarray, is_unsized: bool
) -> tuple[Any, ...]:
    import jax
    import jax.numpy as jnp

    from aten_bridge.jax import module

    apply, variables = module(path)
    buffers = {"now": variables["buffers"]}
    given = [jnp.asarray(one) for one in inputs]

    def loss_of(params: Any, of_buffers: Any, trains: bool) -> Any:
        of_all = {"params": params, "buffers": of_buffers}
        results = apply(of_all, *given, train=trains)
        results, of_buffers = results if trains else (results, of_buffers)
        return ((results - target) ** 2).mean(), (results, of_buffers)

    differentiate = jax.value_and_grad(loss_of, has_aux=True)
    if not is_unsized:
        differentiate = jax.jit(differentiate, static_argnums=2)

    def step(trains: bool, weights: dict[str, np.ndarray]) -> tuple[Any, ...]:
        params = {name: jnp.asarray(weight) for name, weight in weights.items()}
        (loss, (results, buffers["now"])), found = differentiate(params, buffers["now"], trains)
        return loss, {name: np.asarray(g) for name, g in found.items()}, np.asarray(results)

    def reset() -> None:
        buffers["now"] = variables["buffers"]

    return step, {name: np.asarray(one) for name, one in variables["params"].items()}, reset


HOSTS = {"mindspore": in_mindspore, "jax": in_jax}


def difference(actual: np.ndarray, expected: np.ndarray, of: float | None = None) -> float:
    """As a part of the largest number that is expected."""
    of = float(np.abs(expected).max()) if of is None else of
    return float(np.abs(np.asarray(actual, np.float64) - expected).max() / max(of, 1e-30))


def compare(host: str, folder: Path) -> dict[str, Any]:
    """The largest differences of what a host computes from what PyTorch did."""
    known = dict(np.load(folder / "reference.npz"))
    inputs = [known[f"input {i}"] for i in range(sum(k.startswith("input ") for k in known))]
    is_unsized = "library" in known
    if is_unsized:
        importlib.import_module(str(known["library"]))
    path = folder / "module"
    step, weights, reset = HOSTS[host](path, inputs, known["target"], is_unsized)
    answer: dict[str, Any] = {"results": 0.0, "gradients": 0.0}
    for trains in (False, True):
        mode = "training" if trains else "evaluation"
        reset()
        _, gradients, results = step(trains, weights)
        expected = known[f"{mode} results"]
        if not trains:
            answer["is_equal"] = np.array_equal(results, expected)
        answer["results"] = max(answer["results"], difference(results, expected))
        begin = f"{mode} gradient "
        of_all = {k.removeprefix(begin): v for k, v in known.items() if k.startswith(begin)}
        largest = max(float(np.abs(one).max()) for one in of_all.values())
        for name, gradient in gradients.items():
            wanted = of_all.get(name, np.zeros_like(gradient))
            # What is far smaller than the others is the rounding of a sum, as that of a key's bias.
            of = max(float(np.abs(wanted).max()), 1e-4 * largest)
            answer["gradients"] = max(answer["gradients"], difference(gradient, wanted, of))
    for optimizer in RATES:
        reset()
        found = losses(lambda now: step(True, now)[:2], weights, optimizer)
        worst = np.abs(np.array(found) - known[optimizer]) / np.abs(known[optimizer])
        answer[optimizer] = float(worst.max())
    assert is_unsized or "torch" not in sys.modules
    return answer


# ===--- all of them ---===


def process(python: str, *words: str) -> str:
    """What a process of this script prints last. Raises RuntimeError with its error."""
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "GLOG_v": "3",
        "JAX_PLATFORMS": "cpu",
        "HF_HUB_OFFLINE": "1",
        "PYTHONWARNINGS": "ignore",
    }
    done = subprocess.run(
        [python, __file__, *words],
        env=environment, capture_output=True, text=True, check=False, timeout=LIMIT,
    )  # fmt: skip
    if done.returncode:
        # Those who wrap an error say so last.
        errors = re.findall(r"^[\w.]+(?:Error|Exception|Exportable|Node): .*", done.stderr, re.M)
        raise RuntimeError(errors[-1] if errors else f"status {done.returncode}")
    return done.stdout.splitlines()[-1] if done.stdout.strip() else ""


def answers(only: str, pythons: dict[str, str]) -> Iterator[dict[str, Any]]:
    for name in MODULES:
        if not re.search(only, name):
            continue
        if not importlib.util.find_spec(MODULES[name][1]):
            # torch_scatter has no wheel for this PyTorch, and takes long to compile.
            print(f"{name}: left out, as there is no {MODULES[name][1]}; install it for this row")
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                process(sys.executable, "--reference", name, folder)
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                yield {"name": name, "host": "", "fault": str(error)}
                continue
            for host, python in pythons.items():
                try:
                    answer = json.loads(process(python, "--host", host, folder))
                except (RuntimeError, subprocess.TimeoutExpired) as error:
                    answer = {"fault": str(error)}
                yield {"name": name, "host": host, **answer}


def is_right(answer: dict[str, Any]) -> bool:
    return all(answer.get(key, 1.0) <= limit for key, limit in LIMITS.items())


def number(difference: float | None) -> str:
    if difference is None:
        return "fails"
    return f"{difference:.0e}" if difference else "0"


def table(found: list[dict[str, Any]]) -> str:
    from importlib.metadata import version

    head = ["", "in", "results", "gradients", "20 steps of SGD", "of AdamW", "evaluation"]
    rows = [head, ["---"] * len(head)]
    for answer in sorted(found, key=lambda one: list(MODULES).index(one["name"])):
        equal = "bit for bit" if answer.get("is_equal") else ""
        numbers = [number(answer.get(key)) for key in LIMITS]
        host = {"mindspore": "MindSpore", "jax": "JAX"}.get(answer["host"], "")
        rows.append([f"`{answer['name']}` ({MODULES[answer['name']][1]})", host, *numbers, equal])
    libraries = dict.fromkeys(MODULES[answer["name"]][1] for answer in found)
    versions = ", ".join(f"{one} {version(one)}" for one in dict.fromkeys([*libraries, "torch"]))
    lines = "".join("| " + " | ".join(row) + " |\n" for row in rows)
    return f"{lines}\n{date.today()}; {versions}; Python {platform.python_version()}, one thread.\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="a regular expression of names")
    parser.add_argument("--jax", default=sys.executable, help="the Python that has JAX")
    parser.add_argument("--hosts", default=",".join(HOSTS))
    parser.add_argument("--write", action="store_true", help="the table into the pages")
    parser.add_argument("--output", type=Path, help="a file of answers, which is added to")
    parser.add_argument("--reference", nargs=2, metavar=("NAME", "FOLDER"))
    parser.add_argument("--host", nargs=2, metavar=("HOST", "FOLDER"))
    options = parser.parse_args()
    if options.reference:
        write_reference(options.reference[0], Path(options.reference[1]))
        return
    if options.host:
        print(json.dumps(compare(options.host[0], Path(options.host[1]))))
        return
    pythons = {"mindspore": sys.executable, "jax": options.jax}
    pythons = {host: pythons[host] for host in options.hosts.split(",")}
    found = {}
    if options.output and options.output.exists():
        known = json.loads(options.output.read_text())
        found = {(one["name"], one["host"]): one for one in known}
    for answer in answers(options.only, pythons):
        found.pop((answer["name"], ""), None)  # that it could not be exported
        found[answer["name"], answer["host"]] = answer
        print(json.dumps(answer), flush=True)
        if options.output:
            options.output.write_text(json.dumps(list(found.values()), indent=1))
    if options.write:
        for page in PAGES:
            before, rest = page.read_text().split(BEGIN)
            page.write_text(before + BEGIN + table(list(found.values())) + END + rest.split(END)[1])
    if wrong := [f"{one['name']} in {one['host']}" for one in found.values() if not is_right(one)]:
        sys.exit(f"Not within the limits: {', '.join(wrong)}.")


if __name__ == "__main__":
    main()

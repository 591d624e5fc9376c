"""Modules in files: what is written is what is read, and other files are refused."""

import copy
import json
import random
import subprocess
import sys

import mindspore as ms
import numpy as np
import pytest
import torch
from mindspore.common.api import _pynative_executor
from modes import GRAPHS_IN_FULL
from module_cases import assert_near, total
from safetensors.numpy import load_file
from torch import nn
from torch.export import Dim

from aten_bridge.mindspore import module
from aten_bridge.program import NotExportable, save

INPUTS = torch.randn(6, 3, 10), {"bias": torch.randn(4)}
SHAPES = ({0: Dim("batch")}, {"bias": None})


class Network(nn.Module):
    """Statistics, and trees of inputs and results."""

    def __init__(self):
        super().__init__()
        self.convolution = nn.Conv1d(3, 8, 3, bias=False)
        self.norm = nn.BatchNorm1d(8)
        self.head = nn.Linear(8, 4)
        self.register_buffer("scale", torch.tensor(0.5))

    def forward(self, x, others):
        y = self.norm(self.convolution(x)).sigmoid() * self.scale
        return {"logits": self.head(y.mean(2)), "rest": (others["bias"] * x.shape[0], [y.amax(2)])}


@pytest.fixture(scope="module")
def network():
    torch.manual_seed(3)
    return Network()


@pytest.fixture(scope="module")
def file(network, tmp_path_factory):
    path = tmp_path_factory.mktemp("files") / "network.safetensors"
    save(network, path, INPUTS, dynamic_shapes=SHAPES)
    return path


def given(batch):
    bias = np.linspace(-1, 1, 4, dtype=np.float32)
    return np.sin(np.arange(batch * 30, dtype=np.float32)).reshape(batch, 3, 10), bias


def step_of(cell, batch=4):
    def loss_of(x, bias):
        return total(cell(x, {"bias": bias}))

    step = ms.value_and_grad(loss_of, 0, cell.trainable_params())
    loss, (of_x, of_weights) = step(*map(ms.Tensor, given(batch)))
    buffers = [buffer.asnumpy() for buffer in cell.buffers_of_module]
    return [one.asnumpy() for one in (loss, of_x, *of_weights)] + buffers


@GRAPHS_IN_FULL
@pytest.mark.parametrize("trains", [True, False], ids=["training", "evaluation"])
def test_a_module_of_a_file_is_that_of_pytorch(mode, network, file, trains):
    cells = [module(file), module(network, INPUTS, dynamic_shapes=SHAPES)]
    assert cells[0].training
    results = [step_of(cell.set_train(trains)) for cell in cells]
    for one, other in zip(*results, strict=True):
        assert np.array_equal(one, other)
    names = [[parameter.name for parameter in cell.get_parameters()] for cell in cells]
    assert names[0] == names[1]


WITHOUT_PYTORCH = """
import sys
sys.modules["torch"] = None  # makes its import fail
import mindspore as ms
import numpy as np
from aten_bridge.mindspore import module

cell = module(sys.argv[1])
inputs = [ms.Tensor(one) for one in np.load(sys.argv[2]).values()]
def loss_of(x, bias):
    results = cell(x, {"bias": bias})
    loss = (results["logits"] ** 2).sum() + results["rest"][0].sum()
    return loss + (results["rest"][1][0] ** 2).sum()
step = ms.value_and_grad(loss_of, None, cell.trainable_params())
optimizer = ms.nn.SGD(cell.trainable_params(), 0.01)
losses = []
for _ in range(3):
    loss, gradients = step(*inputs)
    optimizer(gradients)
    losses.append(float(loss))
assert sys.modules["torch"] is None
assert not [name for name in sys.modules if name.startswith("torch.")]
print(losses)
"""


def test_a_file_trains_without_importing_pytorch(network, file, tmp_path):
    inputs = given(4)
    np.savez(tmp_path / "inputs.npz", *inputs)
    command = [sys.executable, "-c", WITHOUT_PYTORCH, file, tmp_path / "inputs.npz"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    network = copy.deepcopy(network).train()
    optimizer = torch.optim.SGD(network.parameters(), 0.01)
    x, bias = map(torch.from_numpy, inputs)
    for actual in json.loads(answer.stdout.splitlines()[-1]):
        optimizer.zero_grad()
        loss = total(network(x, {"bias": bias}))
        loss.backward()
        optimizer.step()
        assert_near(actual, loss, 1e-4)


def test_the_tensors_of_a_file_are_pytorchs_weights(network, file):
    tensors = load_file(file)
    state = network.state_dict()
    assert sorted(tensors) == sorted(state)
    for name, tensor in tensors.items():
        assert np.array_equal(tensor, state[name].numpy())


class Mixed(nn.Module):
    """Dtypes with and without a NumPy dtype, no elements, constants, and names that quote."""

    def __init__(self):
        super().__init__()
        self.small = nn.Parameter(torch.randn(4, 4).bfloat16())
        self.register_buffer("mask", torch.tensor([True, False, True, True]))
        self.register_buffer("nothing", torch.zeros(0, 3))
        self.register_buffer("turn", torch.tensor([1j, 1.0]))
        self.register_buffer("count", torch.tensor(3))

    def forward(self, x):
        scale = torch.tensor([1.0, 2.0, 4.0, 8.0]) * (0.5 if self.training else 1)
        y = (x.bfloat16() @ self.small).float() * self.mask * scale + self.count
        inf = float("inf")
        rest = {"it's": "inf \"'\n", 3: [inf, -inf, None, True, 2]}
        return y, rest, self.turn.real.sum() + self.nothing.sum()


@GRAPHS_IN_FULL
def test_all_dtypes_and_names_are_kept(mode, tmp_path):
    network = Mixed().eval()
    save(network, tmp_path / "mixed", (torch.randn(2, 4),))
    for cell in (module(str(tmp_path / "mixed")), module(network, (torch.randn(2, 4),))):
        assert not cell.training
        x = torch.randn(2, 4)
        expected, _, total_of_rest = network(x)
        y, rest, of_rest = cell(ms.Tensor(x.numpy()))
        assert np.array_equal(y.asnumpy(), expected.detach().numpy())
        assert of_rest.asnumpy() == total_of_rest.numpy()
        assert list(rest) == ["it's", 3]
        assert rest["it's"] == "inf \"'\n"
        assert str(rest[3]) == "(inf, -inf, None, True, 2)"


def test_a_weight_with_a_name_of_the_file_is_refused(tmp_path):
    network = nn.Module()
    network.register_parameter("__metadata__", nn.Parameter(torch.ones(2)))
    network.forward = lambda x: x * network.__metadata__
    with pytest.raises(NotExportable) as error:
        save(network, tmp_path / "file", (torch.ones(2),))
    assert str(error.value) == (
        "expected a weight with another name, got '__metadata__', which is ours"
    )


def test_places_where_no_file_can_be_are_refused(tmp_path):
    for path, kind, text in (
        (tmp_path, IsADirectoryError, f"{tmp_path}: expected the name of a file, got a folder"),
        (
            tmp_path / "none/file",
            FileNotFoundError,
            f"{tmp_path / 'none'}: expected a folder, got none; make it first",
        ),
    ):
        with pytest.raises(kind) as error:
            save("no module", path)
        assert str(error.value) == text


def test_a_dtype_that_safetensors_does_not_have_is_refused(tmp_path):
    class Turns(nn.Module):
        def __init__(self):
            super().__init__()
            self.turn = nn.Parameter(torch.ones(2, dtype=torch.complex128))

        def forward(self, x):
            return x * self.turn

    with pytest.raises(NotExportable) as error:
        save(Turns(), tmp_path / "turns", (torch.ones(2),))
    assert str(error.value) == (
        "expected weights of dtypes that safetensors has, got complex128 as 'turn'; use another, "
        "or make the module where it runs"
    )
    assert list(tmp_path.iterdir()) == []


@GRAPHS_IN_FULL
@pytest.mark.parametrize("trains", [True, False], ids=["training", "evaluation"])
@pytest.mark.parametrize("kind", ["program", "pt2", "saved"])
def test_an_exported_program_has_one_mode(mode, network, tmp_path, kind, trains):
    network = copy.deepcopy(network).train(trains)
    exported = torch.export.export(network, INPUTS, dynamic_shapes=SHAPES)
    source = exported
    if kind != "program":
        torch.export.save(exported, tmp_path / "network.pt2")
        source = tmp_path / "network.pt2"
    if kind == "saved":
        save(source, tmp_path / "network")
        source = tmp_path / "network"
    cell = module(source)
    assert cell.training == trains
    x, bias = map(torch.from_numpy, given(4))
    expected = network(x, {"bias": bias})
    total(expected).backward()
    for sets in (trains, not trains):
        cell.set_train(sets)
        loss, _, *others = step_of(cell)
        assert_near(loss, total(expected), 1e-5)
        for gradient, parameter in zip(others, network.parameters(), strict=False):
            assert_near(gradient, parameter.grad, 1e-4)
    assert_near(exported.module()(x, {"bias": bias})["logits"].detach(), expected["logits"], 1e-6)


def test_checkpoints_go_both_ways(mode, network, file, tmp_path):
    other = Network()
    cell = module(file)
    state = {name: ms.Parameter(one.numpy()) for name, one in other.state_dict().items()}
    assert ms.load_param_into_net(cell, state) == ([], [])
    assert_near(step_of(cell.set_train(False))[0], total(other.eval()(*as_pytorch(4))), 1e-5)
    unknown = {"head.weights": state.pop("head.weight"), **state}
    missing, unused = ms.load_param_into_net(cell, unknown)
    assert (missing, unused) == (["head.weight"], ["head.weights"])
    ms.save_checkpoint(cell, str(tmp_path / "cell.ckpt"))
    kept = ms.load_checkpoint(str(tmp_path / "cell.ckpt"))
    third = Network()
    third.load_state_dict({name: torch.tensor(one.asnumpy()) for name, one in kept.items()})
    assert all(map(torch.equal, third.parameters(), other.parameters()))


def as_pytorch(batch):
    x, bias = map(torch.from_numpy, given(batch))
    return x, {"bias": bias}


# ===--- other files ---===


def rewritten(file, change):
    """The bytes of a file whose header is changed."""
    data = file.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    header = change(header) or header
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data[8 + length :]


def in_metadata(name, change):
    def changed(header):
        metadata = header["__metadata__"]
        metadata[name] = change(metadata[name])

    return changed


def in_module(change):
    def changed(text):
        described = json.loads(text)
        change(described)
        return json.dumps(described)

    return in_metadata("module", changed)


HOSTILE_KEY = "x: __import__('os').abort()}\n#\"'"
NOT_SAFETENSORS = "that is not in the format of safetensors, or is cut off"
HEADER = "whose header is damaged"
TREE = "whose metadata is damaged (expected a tree, got another)"
FORMS = "whose programs have other inputs and outputs than the module"
PROGRAM = (
    "with a program that is refused (AtenProgram: expected a program of version 1, which begins "
    "with 'aten_bridge program 1', got another; export the module with this aten_bridge)"
)


def header(change):
    return lambda file: rewritten(file, change)


def bias(**changes):
    return header(lambda tensors: tensors["head.bias"].update(changes))


def training(**changes):
    return header(in_module(lambda module: module["training"].update(changes)))


def places(i, change):
    return header(in_module(lambda module: change(module["training"]["training"][i])))


FAULTS = [
    (NOT_SAFETENSORS, lambda file: b""),
    (NOT_SAFETENSORS, lambda file: b"\x80\x02abc"),
    (NOT_SAFETENSORS, lambda file: file.read_bytes()[:2000]),
    (NOT_SAFETENSORS, lambda file: (2**63).to_bytes(8, "little") + file.read_bytes()[8:]),
    (HEADER, lambda file: file.read_bytes()[:-1]),
    (HEADER, lambda file: (4).to_bytes(8, "little") + b"[1]\n"),
    (HEADER, lambda file: (60000).to_bytes(8, "little") + b"[" * 60000),
    (HEADER, bias(shape=[2**63, 2**63])),
    (HEADER, bias(shape=[-4])),
    (HEADER, bias(shape=[0, 2**70], data_offsets=[0, 0])),
    (HEADER, bias(dtype="F7")),
    (HEADER, bias(data_offsets=[-16, 0])),
    (HEADER, bias(data_offsets=[2**40, 2**40 + 16])),
    ("of another program", header(lambda tensors: tensors.pop("__metadata__") and None)),
    ("of another version, 'module 3'", header(in_metadata("aten_bridge", lambda _: "module 3"))),
    ("without the weight 'head.bias'", header(lambda tensors: tensors.pop("head.bias") and None)),
    (
        "whose metadata is damaged ('training')",
        header(in_module(lambda module: module.pop("training"))),
    ),
    (TREE, training(results=["tensor", 1])),
    (TREE, training(results=["constant", {}])),
    (TREE, training(inputs=HOSTILE_KEY)),
    ("whose places are no ints", places(0, lambda inputs: inputs.append(0.5))),
    (FORMS, places(0, lambda inputs: inputs.append(1))),
    (FORMS, places(3, lambda gradients: gradients.pop())),
    (FORMS, places(3, lambda gradients: gradients.reverse())),
    (FORMS, header(in_module(lambda module: module["training"]["changed_buffers"].reverse()))),
    (FORMS, training(results=["tensor"])),
    (
        FORMS,
        header(in_metadata("training.forward", lambda text: text.replace("[8, 3, 3]", "[8, 3]"))),
    ),
    (FORMS, header(in_metadata("training.forward", lambda text: text + "seed %s int64\n"))),
    (
        "whose metadata is damaged (expected each key once, got ['logits', 'logits'])",
        training(results=["dict", [["logits", ["tensor"]], ["logits", ["tensor"]]]]),
    ),
    (PROGRAM, header(in_metadata("evaluation", lambda text: text.replace(" 1\n", " 2\n", 1)))),
]


@pytest.mark.parametrize(("fault", "change"), FAULTS)
def test_other_files_are_refused(file, tmp_path, fault, change):
    path = tmp_path / "other"
    path.write_bytes(change(file))
    with pytest.raises(ValueError, match="aten_bridge") as error:
        module(path)
    assert str(error.value) == (
        f"{path}: expected a file that aten_bridge.program.save wrote, got one {fault}; save the "
        "module again"
    )


def test_a_deep_tree_is_refused(file, tmp_path):
    tree = ["tensor"]
    for _ in range(200):
        tree = ["sequence", [tree]]
    path = tmp_path / "deep"
    change = in_module(lambda m: m["evaluation"].update(results=tree))
    path.write_bytes(rewritten(file, change))
    with pytest.raises(ValueError, match="expected a tree of at most 32 levels, got more"):
        module(path)


def test_names_in_a_file_are_no_python(file, tmp_path, cpu):
    """Keys of dicts stand in sources that are run."""
    ms.set_context(mode=ms.PYNATIVE_MODE)

    def change(described):
        for one in ("evaluation", "training"):
            described[one]["inputs"][1][1][1][0][0] = HOSTILE_KEY
            described[one]["results"][1][0][0] = HOSTILE_KEY

    path = tmp_path / "hostile"
    path.write_bytes(rewritten(file, in_module(change)))
    x, bias = map(ms.Tensor, given(2))
    assert list(module(path)(x, {HOSTILE_KEY: bias})) == [HOSTILE_KEY, "rest"]


def test_a_pt2_file_that_is_damaged_is_named(tmp_path):
    path = tmp_path / "damaged.pt2"
    path.write_bytes(b"PK\3\4" + b"\0" * 100)
    with pytest.raises(ValueError, match="PyTorch") as error:
        module(path)
    begin = f"{path}: expected a file that torch.export.save wrote, got one that PyTorch "
    assert str(error.value).startswith(begin)
    assert str(error.value).endswith("; export the module again")


@pytest.mark.parametrize("make", [nn.Linear, lambda *sizes: nn.Linear(*sizes).state_dict()])
def test_a_file_of_torch_save_is_named(tmp_path, make):
    path = tmp_path / "network.pt"
    torch.save(make(3, 2), path)
    with pytest.raises(ValueError, match=r"torch\.save") as error:
        module(path)
    assert str(error.value) == (
        f"{path}: expected a file that torch.export.save or aten_bridge.program.save wrote, got "
        "one of torch.save; load it with torch.load, and give the module"
    )


def test_damaged_files_are_refused_or_run(file, tmp_path, cpu):
    """None of them ends the process."""
    ms.set_context(mode=ms.PYNATIVE_MODE)
    draws = random.Random(11)
    data, path = file.read_bytes(), tmp_path / "damaged"
    length = int.from_bytes(data[:8], "little")
    refused = 0
    for _ in range(150):
        damaged = bytearray(data)
        for _ in range(draws.randint(1, 3)):
            at = draws.randrange(8, 8 + length)
            damaged[at : at + draws.choice([0, 1, 1, 4])] = draws.choice(
                [b"", b"0", b"9", b'"', b"[", b"]", b"{", b",", b"\\n", b"-", b"\xff", b"null"]
            )
        header = len(damaged) - len(data) + length
        damaged[:8] = header.to_bytes(8, "little")
        path.write_bytes(damaged)
        try:
            step_of(module(path))
        except (ValueError, TypeError, RuntimeError, KeyError):
            refused += 1
    _pynative_executor.set_grad_flag(False)  # an error leaves MindSpore recording (2.10)
    assert refused > 100


def test_examples_are_given_where_they_are_needed(file):
    with pytest.raises(TypeError) as error:
        module(nn.Linear(2, 2))
    assert str(error.value) == (
        "expected example_inputs, a tuple of the module's arguments, got none; give tensors of the "
        "dtypes and shapes that calls have"
    )
    with pytest.raises(TypeError) as error:
        module(file, INPUTS)
    assert str(error.value) == (
        "expected no example_inputs and no dynamic_shapes with a file, got some; they were given "
        "when it was made"
    )
    with pytest.raises(TypeError) as error:
        module(3)
    assert str(error.value) == (
        "expected a torch.nn.Module, a torch.export.ExportedProgram or the path of a file, got 3"
    )
    with pytest.raises(FileNotFoundError):
        module("no such file")

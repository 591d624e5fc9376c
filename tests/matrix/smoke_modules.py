"""Whole modules in files: those of each version of PyTorch, in MindSpore with each other.

    python smoke_modules.py save <folder>
    ATEN_BRIDGE_OPERATORS=<library> python smoke_modules.py run <folder>

The first writes a module with the PyTorch of this environment, and what PyTorch computes, and makes
the checks of tests/modules/test_texts_of_pytorch.py; where one fails, the traceback names it. The
second runs all that the folder has, in both of MindSpore's modes, with the PyTorch that the library
of operators was built for, and prints from which versions they are. An assertion says what is
wrong.
"""

import sys
from pathlib import Path

import numpy as np


def save(folder):
    import torch
    from torch import nn

    from aten_bridge.program import save as write

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.convolution = nn.Conv1d(3, 8, 3, padding=1)
            self.norm = nn.BatchNorm1d(8)
            self.attention = nn.TransformerEncoderLayer(8, 2, 16, dropout=0, batch_first=True)
            self.lstm = nn.LSTM(8, 5, batch_first=True)
            self.head = nn.Linear(5, 2)

        def forward(self, x):
            y = nn.functional.gelu(self.norm(self.convolution(x))).transpose(1, 2)
            y, _ = self.lstm(self.attention(y))
            return self.head(y.mean(1))

    sys.path.append(str(Path(__file__).resolve().parents[1] / "modules"))
    import test_texts_of_pytorch

    for name, test in list(vars(test_texts_of_pytorch).items()):
        if name.startswith("test_"):
            test()
    torch.manual_seed(0)
    network, x = Network(), torch.randn(6, 3, 10)
    minor = ".".join(torch.__version__.split(".")[:2])
    shapes = ({0: torch.export.Dim("batch")},)
    write(network, folder / f"{minor}.safetensors", (x[:4],), dynamic_shapes=shapes)
    expected = {"x": x.numpy()}
    for mode in (True, False):
        network.zero_grad()
        y = network.train(mode)(x)
        y.square().mean().backward()
        expected[f"{mode} result"] = y.detach().numpy()
        for name, parameter in network.named_parameters():
            expected[f"{mode} {name}"] = parameter.grad.numpy()
    np.savez(folder / f"{minor}.npz", **expected)


def loss_of(cell):
    def loss(x):
        y = cell(x)
        return (y * y).mean(), y

    return loss


def run(folder):
    import mindspore as ms

    from aten_bridge.mindspore import module

    paths = sorted(folder.glob("*.safetensors"))
    assert paths
    for path in paths:
        expected = np.load(path.with_suffix(".npz"))
        x = ms.Tensor(expected["x"])
        for host_mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE):
            ms.set_context(mode=host_mode)
            cell = module(path)
            weights = cell.trainable_params()
            loss = loss_of(cell)
            for mode in (True, False):
                cell.set_train(mode)
                gradients, (y,) = ms.grad(loss, None, weights, has_aux=True)(x)
                found = {f"{mode} result": y}
                found.update(
                    (f"{mode} {weight.name}", gradient)
                    for weight, gradient in zip(weights, gradients, strict=True)
                )
                for name, value in found.items():
                    limit = 1e-5 * np.abs(expected[name]).max() + 1e-7
                    apart = np.abs(value.asnumpy() - expected[name]).max()
                    assert apart <= limit, f"{path.name}, {host_mode}: {name}: {apart}"
    assert "torch" not in sys.modules
    print(*(path.stem for path in paths))


if __name__ == "__main__":
    {"save": save, "run": run}[sys.argv[1]](Path(sys.argv[2]))

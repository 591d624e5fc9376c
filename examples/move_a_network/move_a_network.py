"""Moves a network from PyTorch to MindSpore, whole at first and then one layer after the other.

Run with: python move_a_network.py

PyTorch trains a network on scikit-learn's 1,797 handwritten digits (8 by 8 pixels). `module` takes
it over as it is. Then each layer is written in mint, and compared with the module of PyTorch's: its
results, and its gradients. In the end nothing of PyTorch's is left, and the network goes on
training.
"""

import importlib.util
import os
import sys

# Read when MindSpore and PyTorch are imported: operators this small gain nothing from threads.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import mindspore as ms
import numpy as np
import torch
from digits.digits import load, shuffled
from mindspore import mint

from aten_bridge.mindspore import module
from aten_bridge.mint import install

RATE = 0.003  # the learning rate
LIMIT = 1e-4  # times a layer's largest number


# ===--- in PyTorch ---===


class Attention(torch.nn.Module):
    """The pixels of an 8 by 8 image as 16 tokens, which attend to one another."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)

    def forward(self, x):
        return self.layer(x.flatten(2).transpose(1, 2))


def network():
    torch.manual_seed(0)
    nn = torch.nn
    return nn.ModuleDict(
        {
            "convolution": nn.Sequential(
                nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2)
            ),
            "attention": Attention(),
            "classes": nn.Sequential(nn.Flatten(), nn.Linear(256, 10)),
        }
    )


class InOrder(torch.nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.layers = layers

    def forward(self, x):
        for layer in self.layers.values():
            x = layer(x)
        return x


def train_in_pytorch(net, images, labels, epochs):
    optimizer = torch.optim.Adam(net.parameters(), lr=RATE)
    random = np.random.default_rng(0)
    for _ in range(epochs):
        for x, y in shuffled(images, labels, random):
            loss = torch.nn.functional.cross_entropy(
                net(torch.tensor(x.asnumpy())), torch.tensor(y.asnumpy()).long()
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


# ===--- in mint ---===


class Convolution(mint.nn.Cell):
    def __init__(self):
        super().__init__()
        self.layers = ms.nn.CellList(
            [
                mint.nn.Conv2d(1, 16, 3, padding=1),
                mint.nn.BatchNorm2d(16),
                mint.nn.ReLU(),
                mint.nn.MaxPool2d(2),
            ]
        )

    def construct(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


class MovedAttention(mint.nn.Cell):
    """Its weights come in the order of TransformerEncoderLayer's."""

    def __init__(self, size=16, heads=2):
        super().__init__()
        self.heads = heads
        self.in_proj = mint.nn.Linear(size, 3 * size)
        self.out_proj = mint.nn.Linear(size, size)
        self.linear1, self.linear2 = mint.nn.Linear(size, 32), mint.nn.Linear(32, size)
        self.norm1, self.norm2 = mint.nn.LayerNorm(size), mint.nn.LayerNorm(size)

    def attend(self, x):
        batch, length, size = x.shape
        query, key, value = (
            part.reshape(batch, length, self.heads, -1).transpose(1, 2)
            for part in mint.chunk(self.in_proj(x), 3, -1)
        )
        scores = mint.matmul(query, key.transpose(-1, -2)) / (size // self.heads) ** 0.5
        y = mint.matmul(mint.nn.functional.softmax(scores, dim=-1), value)
        return self.out_proj(y.transpose(1, 2).reshape(batch, length, size))

    def construct(self, x):
        x = mint.flatten(x, 2).transpose(1, 2)
        x = self.norm1(x + self.attend(x))
        return self.norm2(x + self.linear2(mint.nn.functional.relu(self.linear1(x))))


class Classes(mint.nn.Cell):
    def __init__(self):
        super().__init__()
        self.layers = ms.nn.CellList([mint.nn.Flatten(), mint.nn.Linear(256, 10)])

    def construct(self, x):
        return self.layers[1](self.layers[0](x))


class Moved(ms.nn.Cell):
    """The network: some layers are mint's, some PyTorch's."""

    def __init__(self, layers):
        super().__init__()
        self.layers = ms.nn.CellList(layers)

    def construct(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def load_weights(cell, layer):
    """Gives a layer in mint the weights of PyTorch's, which come in the same order."""
    state = [
        value for value in layer.state_dict().values() if value.ndim or value.is_floating_point()
    ]
    own = [p for p in cell.get_parameters() if "num_batches" not in p.name]
    for parameter, value in zip(own, state, strict=True):
        parameter.set_data(ms.Tensor(value.numpy()))


# ===--- one beside the other ---===


def difference(a, b):
    return np.abs(a - b).max() / max(np.abs(b).max(), 1e-6)


def compare(cell, reference, x):
    """The largest differences of results and of gradients of inputs and weights."""
    found = []
    for one in (cell, reference):
        one.set_train()

        def loss_of(x, one=one):
            y = one(x)
            return (y * y).mean(), y

        step = ms.value_and_grad(loss_of, 0, one.trainable_params(), has_aux=True)
        (_, y), (of_x, of_weights) = step(x)
        found.append((y.asnumpy(), [of_x.asnumpy(), *(g.asnumpy() for g in of_weights)]))
    (y, gradients), (known, known_gradients) = found
    return difference(y, known), np.max([*map(difference, gradients, known_gradients)])


def read(net, images, labels):
    """How many digits a network reads."""
    net.set_train(False)
    return np.mean(net(ms.Tensor(images)).asnumpy().argmax(axis=1) == labels)


def train(net, images, labels):
    """An epoch in MindSpore; the losses."""
    net.set_train()
    optimizer = mint.optim.Adam(net.trainable_params(), lr=RATE)

    def loss_of(x, y):
        return mint.nn.functional.cross_entropy(net(x), y)

    step = ms.value_and_grad(loss_of, None, optimizer.parameters)
    losses = []
    for x, y in shuffled(images, labels, np.random.default_rng(1)):
        loss, gradients = step(x, y)
        optimizer(gradients)
        losses.append(loss.item())
    return losses


def main():
    if importlib.util.find_spec("sklearn") is None:
        sys.exit(
            "Digits: expected scikit-learn, for the digits, got none; pip install scikit-learn"
        )
    ms.set_device("CPU")
    ms.runtime.launch_blocking()
    install()
    (images, labels), (held_out, truth) = load()
    layers = network()
    in_pytorch = InOrder(layers)
    train_in_pytorch(in_pytorch, images, labels, epochs=2)

    batch = torch.export.Dim("batch")
    x = torch.tensor(images[:16])
    whole = module(in_pytorch, (x,), dynamic_shapes=({0: batch},))
    in_pytorch.eval()
    with torch.no_grad():
        scores = in_pytorch(torch.tensor(held_out))
    accuracy = np.mean(scores.argmax(1).numpy() == truth)
    print(f"PyTorch reads {accuracy:.2%} of the held-out digits")
    print(f"The whole network as one operator: {read(whole, held_out, truth):.2%}")

    moved, activations = [], x
    references = []
    for layer in layers.values():
        references.append(module(layer, (activations,), dynamic_shapes=({0: batch},)))
        activations = layer(activations).detach()
    given = ms.Tensor(x.numpy())
    for i, (name, make) in enumerate(
        {"convolution": Convolution, "attention": MovedAttention, "classes": Classes}.items()
    ):
        cell = make()
        load_weights(cell, layers[name])
        of_results, of_gradients = compare(cell, references[i], given)
        given = references[i](given)
        if not np.max([of_results, of_gradients]) <= LIMIT:  # also where one is nan
            sys.exit(f"{name}: {of_results:.1e} in results, {of_gradients:.1e} in gradients")
        moved.append(cell)
        net = Moved([*moved, *references[i + 1 :]])
        print(
            f"{name} in mint: differences of {of_results:.0e} in results, {of_gradients:.0e} in "
            f"gradients; the network reads {read(net, held_out, truth):.2%}"
        )
    of_mint, of_module = train(net, images, labels), train(whole, images, labels)
    print(
        f"One more epoch, all in mint: loss {np.mean(of_mint):.4f}; the module of PyTorch's: "
        f"{np.mean(of_module):.4f}"
    )


if __name__ == "__main__":
    main()

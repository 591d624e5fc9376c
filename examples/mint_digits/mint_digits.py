"""A convolutional network and a transformer encoder of nothing but mint, trained on the CPU.

Run with: python mint_digits.py [--epochs 8]

Scikit-learn's 1,797 handwritten digits (8 by 8 pixels). First without the library, where each
network stops at the first kernel that MindSpore does not have; then with it, beside the same
network in PyTorch, from the same weights on the same batches.
"""

import argparse
import importlib.util
import os
import subprocess
import sys
import time

# Read when MindSpore and PyTorch are imported. Operators this small gain nothing from threads, and
# where other programs run the threads wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import mindspore as ms
import numpy as np
import torch
from digits.digits import load, shuffled
from mindspore import mint

from aten_bridge.mint import install

RATE = 0.003  # the learning rate


class Cell(mint.nn.Cell):
    """PyTorch's `forward` is MindSpore's `construct`."""

    def construct(self, x):
        return self.forward(x)


def networks(lib, Module):
    """The two networks, of mint and Cell, or of torch and torch.nn.Module: the text is the same."""
    nn, functional = lib.nn, lib.nn.functional

    class ConvolutionalNetwork(Module):
        """8 by 8 pixels, 4 by 4 after the first pooling, 2 by 2 after the second, 10 scores."""

        def __init__(self):
            super().__init__()
            self.conv1 = nn.Conv2d(1, 16, 3, padding=1, bias=False)
            self.norm1 = nn.BatchNorm2d(16)
            self.conv2 = nn.Conv2d(16, 32, 3, padding=1, bias=False)
            self.norm2 = nn.BatchNorm2d(32)
            self.classes = nn.Linear(32 * 2 * 2, 10)

        def forward(self, images):
            x = functional.max_pool2d(functional.relu(self.norm1(self.conv1(images))), 2)
            x = functional.max_pool2d(functional.relu(self.norm2(self.conv2(x))), 2)
            return self.classes(lib.flatten(x, 1))

    class Block(Module):
        """Attention among all tokens, then two layers for each token."""

        def __init__(self, size, heads):
            super().__init__()
            self.heads = heads
            self.norm1 = nn.LayerNorm(size)
            self.query, self.key, self.value = (nn.Linear(size, size) for _ in range(3))
            self.attended = nn.Linear(size, size)
            self.norm2 = nn.LayerNorm(size)
            self.widen = nn.Linear(size, 2 * size)
            self.narrow = nn.Linear(2 * size, size)

        def attend(self, x):
            batch, length, size = x.shape
            query, key, value = (
                lib.transpose(y.reshape(batch, length, self.heads, size // self.heads), 1, 2)
                for y in (self.query(x), self.key(x), self.value(x))
            )
            scores = lib.matmul(query, lib.transpose(key, -2, -1)) / (size // self.heads) ** 0.5
            y = lib.matmul(functional.softmax(scores, dim=-1), value)
            return self.attended(lib.transpose(y, 1, 2).reshape(batch, length, size))

        def forward(self, x):
            x = x + self.attend(self.norm1(x))
            return x + self.narrow(functional.gelu(self.widen(self.norm2(x))))

    class TransformerEncoder(Module):
        """Each of the 8 rows of an image is a token of 8 pixels."""

        def __init__(self, size=32, heads=4):
            super().__init__()
            self.rows = nn.Linear(8, size)
            self.positions = nn.Embedding(8, size)
            self.block1, self.block2 = Block(size, heads), Block(size, heads)
            self.norm = nn.LayerNorm(size)
            self.classes = nn.Linear(8 * size, 10)

        def forward(self, images):
            x = self.rows(lib.squeeze(images, 1)) + self.positions(lib.arange(8))
            return self.classes(lib.flatten(self.norm(self.block2(self.block1(x))), 1))

    return ConvolutionalNetwork, TransformerEncoder


def training_in_mint(net):
    """A function that trains the network with a batch, and returns the loss."""
    optimizer = mint.optim.Adam(net.trainable_params(), lr=RATE)

    def loss_of(images, labels):
        return mint.nn.functional.cross_entropy(net(images), labels)

    loss_and_gradients = ms.value_and_grad(loss_of, None, optimizer.parameters)

    def step(images, labels):
        loss, gradients = loss_and_gradients(images, labels)
        optimizer(gradients)
        return loss.item()

    return step


def training_in_pytorch(net):
    """The same for a network of PyTorch."""
    optimizer = torch.optim.Adam(net.parameters(), lr=RATE)

    def step(images, labels):
        images, labels = torch.tensor(images.asnumpy()), torch.tensor(labels.asnumpy())
        loss = torch.nn.functional.cross_entropy(net(images), labels.long())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def train(net, twin, epochs):
    """Trains a network and its twin in PyTorch, from the same weights on the same batches."""
    twin.load_state_dict({k: torch.tensor(w.asnumpy()) for k, w in net.parameters_dict().items()})
    (images, labels), (test_images, test_labels) = load()
    random = np.random.default_rng(0)
    steps = training_in_mint(net), training_in_pytorch(twin)
    losses, seconds = ([], []), [0.0, 0.0]
    print(
        f"{type(net).__name__}: {sum(w.size for w in net.trainable_params()):,} weights,"
        f" {len(images):,} digits to train on, {len(test_images)} held out\n"
        "  epoch  loss    in PyTorch  held out"
    )
    for epoch in range(1, epochs + 1):
        net.set_train()  # PyTorch's networks are so from the start
        batches = list(shuffled(images, labels, random))
        for i, step in enumerate(steps):
            start = time.perf_counter()
            losses[i].extend(step(*batch) for batch in batches)
            seconds[i] += time.perf_counter() - start
        net.set_train(False)
        predictions = net(ms.Tensor(test_images)).asnumpy().argmax(axis=1)
        accuracy = np.mean(predictions == test_labels)
        means = (np.mean(values[-len(batches) :]) for values in losses)
        print("  {:5}  {:.4f}  {:.4f}      {:7.2%}".format(epoch, *means, accuracy))
    print(
        f"  {accuracy:.2%} of the held-out digits read, trained in {seconds[0]:.1f} s"
        f" (PyTorch: {seconds[1]:.1f} s)\n"
        f"  Largest difference of the two losses in {len(losses[0])} steps:"
        f" {np.abs(np.subtract(*losses)).max():.1e}"
    )


def run_without_library():
    """Prints the error that stops each network."""
    _, (images, _) = load()
    for network in networks(mint, Cell):
        try:
            network()(ms.Tensor(images)).asnumpy()
        except RuntimeError as error:
            print(f"  {network.__name__}: {str(error).splitlines()[0]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--without-library", action="store_true")
    options = parser.parse_args()
    if importlib.util.find_spec("sklearn") is None:
        sys.exit(
            "Digits: expected scikit-learn, for the digits, got none; pip install scikit-learn"
        )
    ms.set_device("CPU")
    # Without it MindSpore's threads hand each operator on to one another, and wait in busy loops.
    ms.runtime.launch_blocking()
    if options.without_library:
        run_without_library()
        return
    print("Without the library:", flush=True)
    alone = {name: v for name, v in os.environ.items() if name != "MS_OP_PLUGIN_PATH"}
    subprocess.run([sys.executable, __file__, "--without-library"], env=alone, check=True)
    install()
    ms.set_seed(0)
    for network, twin in zip(networks(mint, Cell), networks(torch, torch.nn.Module), strict=True):
        train(network(), twin(), options.epochs)


if __name__ == "__main__":
    main()

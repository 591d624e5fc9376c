"""A network that is trained in JAX through ATen kernels, beside the same network in PyTorch.

Run with the path of the library: python jax_digits.py ./jax_digits.so [--epochs 10]

Scikit-learn's 1,797 handwritten digits (8 by 8 pixels). Both networks start with the same weights
and see the same batches. The kernels are PyTorch's own operators: the losses are bitwise equal.
"""

import argparse
import time

import jax
import jax.numpy as jnp
import numpy as np
import torch

from aten_bridge.jax import kernel

BATCH = 64
RATE = 0.2
SIZES = [(64, 64), (64, 32), (32, 10)]


# [network]
class InJax:
    """Three layers, all of whose operators, and the step of training, are ATen kernels."""

    title = "JAX, ATen kernels"

    def __init__(self, library, weights):
        linear = kernel(f"{library}:Linear", grad="LinearGrad")
        leaky_relu = kernel(f"{library}:LeakyRelu", negative_slope=0.1, grad="LeakyReluGrad")
        cross_entropy = kernel(f"{library}:CrossEntropy", grad="CrossEntropyGrad")
        # The new weight lies where the old one was, since `step` donates it.
        descend = kernel(f"{library}:Descend", rate=RATE, input_output_aliases={0: 0})

        def scores_of(weights, images):
            x = images
            for weight, bias in weights[:-1]:
                x = leaky_relu(linear(x, weight, bias))
            return linear(x, *weights[-1])

        def loss_of(weights, images, labels):
            return cross_entropy(scores_of(weights, images), labels)

        def step(weights, images, labels):
            loss, gradients = jax.value_and_grad(loss_of)(weights, images, labels)
            return loss, jax.tree.map(descend, weights, gradients)

        self._step = jax.jit(step, donate_argnums=0)
        self._scores = jax.jit(scores_of)
        self._weights = jax.tree.map(jnp.array, weights)

    def step(self, images, labels):
        loss, self._weights = self._step(self._weights, jnp.asarray(images), jnp.asarray(labels))
        return float(loss)

    def predict(self, images):
        return np.asarray(self._scores(self._weights, jnp.asarray(images))).argmax(axis=1)


# [/network]


class InPyTorch:
    """The same network."""

    title = "PyTorch"

    def __init__(self, weights):
        self._weights = [
            [torch.tensor(part, requires_grad=True) for part in layer] for layer in weights
        ]

    def _scores(self, images):
        x = torch.from_numpy(images)
        for weight, bias in self._weights[:-1]:
            x = torch.nn.functional.leaky_relu(torch.nn.functional.linear(x, weight, bias), 0.1)
        return torch.nn.functional.linear(x, *self._weights[-1])

    def step(self, images, labels):
        labels = torch.from_numpy(labels).long()
        loss = torch.nn.functional.cross_entropy(self._scores(images), labels)
        parts = [part for layer in self._weights for part in layer]
        gradients = torch.autograd.grad(loss, parts)
        with torch.no_grad():
            for part, gradient in zip(parts, gradients, strict=True):
                part.sub_(gradient, alpha=RATE)
        return float(loss.detach())

    def predict(self, images):
        with torch.no_grad():
            return self._scores(images).numpy().argmax(axis=1)


def load():
    """Images and labels to train on, and those to test with: a fifth."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    images, labels = load_digits(return_X_y=True)
    images = ((images - images.mean()) / images.std()).astype(np.float32)
    train_images, test_images, train_labels, test_labels = train_test_split(
        images, labels.astype(np.int32), test_size=0.2, stratify=labels, random_state=0
    )
    return (train_images, train_labels), (test_images, test_labels)


def main(library, epochs=10):
    """Trains both, and returns their losses."""
    random = np.random.default_rng(0)
    (images, labels), (test_images, test_labels) = load()
    weights = [
        [
            (random.standard_normal((size_out, size_in)) / np.sqrt(size_in)).astype(np.float32),
            np.zeros(size_out, np.float32),
        ]
        for size_in, size_out in SIZES
    ]
    nets = (InJax(library, weights), InPyTorch(weights))
    losses = ([], [])
    seconds = [0.0, 0.0]
    print(f"Digits: {len(images):,} to train on, {len(test_images)} held out")
    for epoch in range(1, epochs + 1):
        order = random.permutation(len(images))
        batches = [order[i : i + BATCH] for i in range(0, len(order) - BATCH + 1, BATCH)]
        for number, net in enumerate(nets):
            begin = time.perf_counter()
            losses[number].extend(net.step(images[batch], labels[batch]) for batch in batches)
            seconds[number] += time.perf_counter() - begin
        columns = [
            f"{net.title}: loss {np.mean(losses[number][-len(batches) :]):.4f}, "
            f"{np.mean(net.predict(test_images) == test_labels):.2%} of those held out read"
            for number, net in enumerate(nets)
        ]
        print(f"  epoch {epoch:2}  {'   '.join(columns)}")
    steps = len(losses[0])
    same = sum(a == b for a, b in zip(*losses, strict=True))
    print(
        f"  The same loss, to the last bit, in {same} of {steps} steps; {seconds[0]:.1f} s in JAX "
        f"with compiling, {seconds[1]:.1f} s in PyTorch"
    )
    return losses


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("library", nargs="?", default="./jax_digits.so")
    parser.add_argument("--epochs", type=int, default=10)
    in_jax, in_pytorch = main(**vars(parser.parse_args()))
    if in_jax != in_pytorch:
        raise SystemExit("jax_digits: expected the losses of PyTorch, got others")

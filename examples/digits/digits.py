"""A convolutional network that is trained through ATen kernels, beside MindSpore's own operators.

Run with the path of the library: python digits.py ./digits.so [--epochs 10]

Scikit-learn's 1,797 handwritten digits (8 by 8 pixels). Both networks start with the same weights
and see the same batches, so that their losses differ by rounding only. Writes a picture of both
beside the library: digits.png.
"""

import argparse
import importlib.util
import sys
import time
from pathlib import Path

import mindspore as ms
import numpy as np
from mindspore import nn, ops

from aten_bridge.mindspore import kernel

BATCH = 64


# [layers]
class Conv2d(nn.Cell):
    """A 3 by 3 convolution that keeps the size of the images."""

    def __init__(self, library, channels_in, channels_out):
        super().__init__()
        self.weight = ms.Parameter(ops.zeros((channels_out, channels_in, 3, 3)))
        self.bias = ms.Parameter(ops.zeros(channels_out))
        self.conv2d = kernel(f"{library}:Conv2d", padding=[1, 1], grad="Conv2dGrad")

    def construct(self, x):
        return self.conv2d(x, self.weight, self.bias)


class Linear(nn.Cell):
    def __init__(self, library, size_in, size_out):
        super().__init__()
        self.weight = ms.Parameter(ops.zeros((size_out, size_in)))
        self.bias = ms.Parameter(ops.zeros(size_out))
        self.linear = kernel(f"{library}:Linear", grad="LinearGrad")

    def construct(self, x):
        return self.linear(x, self.weight, self.bias)


# [/layers]


# [nets]
class Net(nn.Cell):
    """8 by 8 pixels, 4 by 4 after the first pooling, 2 by 2 after the second, 10 scores."""

    def construct(self, images):
        x = self.max_pool(self.leaky_relu(self.conv1(images)))
        x = self.max_pool(self.leaky_relu(self.conv2(x)))
        return self.classes(self.flatten(x))


class NetOfKernels(Net):
    def __init__(self, library):
        super().__init__()
        self.conv1 = Conv2d(library, 1, 16)
        self.conv2 = Conv2d(library, 16, 64)
        self.classes = Linear(library, 64 * 2 * 2, 10)
        self.leaky_relu = kernel(f"{library}:LeakyRelu", negative_slope=0.1, grad="LeakyReluGrad")
        self.max_pool = kernel(f"{library}:MaxPool2d", kernel_size=2, grad="MaxPool2dGrad")
        self.flatten = nn.Flatten()
        self.loss = kernel(f"{library}:CrossEntropy", label_smoothing=0.1, grad="CrossEntropyGrad")


class NetOfMindSpore(Net):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, has_bias=True)
        self.conv2 = nn.Conv2d(16, 64, 3, has_bias=True)
        self.classes = nn.Dense(64 * 2 * 2, 10)
        self.leaky_relu = nn.LeakyReLU(0.1)
        self.max_pool = nn.MaxPool2d(2, stride=2)
        self.flatten = nn.Flatten()
        self.loss = nn.CrossEntropyLoss(label_smoothing=0.1)


# [/nets]


# [training]
class Training:
    """A network in training, and how it went."""

    def __init__(self, title, net, steps):
        self.title = title
        self.net = net
        self.losses = []  # one for each step
        self.accuracies = []  # one for each epoch, on the digits held out
        self.predictions = None  # for the digits held out, after the last epoch
        self.seconds = 0.0  # with compiling, without testing
        rates = nn.cosine_decay_lr(0.0, 0.01, steps, step_per_epoch=1, decay_epoch=steps)
        optimizer = nn.Adam(net.trainable_params(), rates)

        def loss_of(images, labels):
            return net.loss(net(images), labels)

        loss_and_gradients = ms.value_and_grad(loss_of, None, optimizer.parameters)

        @ms.jit
        def step(images, labels):
            loss, gradients = loss_and_gradients(images, labels)
            optimizer(gradients)
            return loss

        self.step = step

    def epoch(self, batches):
        start = time.perf_counter()
        self.losses += [float(self.step(*batch)) for batch in batches]
        self.seconds += time.perf_counter() - start

    def test(self, images, labels):
        self.predictions = self.net(ms.Tensor(images)).asnumpy().argmax(axis=1)
        self.accuracies.append(float(np.mean(self.predictions == labels)))


# [/training]


def load():
    """Images and labels to train on, and those to test with: a fifth."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    images, labels = load_digits(return_X_y=True)
    images = ((images - images.mean()) / images.std()).astype(np.float32).reshape(-1, 1, 8, 8)
    train_images, test_images, train_labels, test_labels = train_test_split(
        images, labels.astype(np.int32), test_size=0.2, stratify=labels, random_state=0
    )
    return (train_images, train_labels), (test_images, test_labels)


def shuffled(images, labels, random):
    """Batches for one epoch, without the digits that are left over."""
    order = random.permutation(len(images))
    for begin in range(0, len(order) - BATCH + 1, BATCH):
        batch = order[begin : begin + BATCH]
        yield ms.Tensor(images[batch]), ms.Tensor(labels[batch])


def draw(path, trainings, images, labels):
    """Writes the picture: losses, accuracies, and 20 digits, those that are misread first."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 7), layout="constrained")
    curves, digits = figure.subfigures(2, 1, height_ratios=(3, 2))
    left, right = curves.subplots(1, 2)
    left.set(title="loss, labels smoothed by 0.1", xlabel="step")
    right.set(title="accuracy on held-out digits", xlabel="epoch", ylabel="%")
    for training, style in zip(trainings, (dict(lw=5, alpha=0.4), dict(lw=1.2)), strict=True):
        left.plot(range(1, len(training.losses) + 1), training.losses, **style)
        percent = np.multiply(training.accuracies, 100)
        right.plot(range(1, len(percent) + 1), percent, label=training.title, **style)
    right.legend(loc="lower right")

    predictions = trainings[0].predictions
    is_wrong = predictions != labels
    digits.suptitle(
        f"read by {trainings[0].title}, {np.sum(is_wrong)} of {len(labels)} held-out digits wrong"
    )
    order = np.argsort(~is_wrong, kind="stable")[:20]
    for i, axes in zip(order, digits.subplots(2, 10).flat, strict=True):
        axes.imshow(images[i, 0], cmap="gray_r")
        axes.set_axis_off()
        text = f"{predictions[i]}, is {labels[i]}" if is_wrong[i] else f"{predictions[i]}"
        axes.set_title(text, color="red" if is_wrong[i] else "black")
    figure.savefig(path, dpi=100)


def main(library, epochs=10, picture=None):
    """Trains both networks, and returns the two trainings."""
    picture = picture or Path(library).with_suffix(".png")
    ms.set_seed(0)
    random = np.random.default_rng(0)
    train, test = load()
    steps = epochs * (len(train[0]) // BATCH)
    net_of_mindspore = NetOfMindSpore()
    net_of_kernels = NetOfKernels(library)
    for name, weight in net_of_mindspore.parameters_dict().items():
        # Without the copy both networks would train the same memory.
        net_of_kernels.parameters_dict()[name].set_data(weight.copy())
    trainings = (
        Training("ATen kernels", net_of_kernels, steps),
        Training("MindSpore's own operators", net_of_mindspore, steps),
    )
    print(
        f"Digits: {len(train[0]):,} to train on, {len(test[0])} held out\n"
        f"         {trainings[0].title:23} {trainings[1].title}\n"
        "  epoch  loss    held out        loss    held out"
    )
    for epoch in range(1, epochs + 1):
        batches = list(shuffled(*train, random))
        columns = []
        for training in trainings:
            training.epoch(batches)
            training.test(*test)
            loss = np.mean(training.losses[-len(batches) :])
            columns.append(f"{loss:.4f}  {training.accuracies[-1]:7.2%}")
        print(f"  {epoch:5}  {columns[0]}         {columns[1]}")
    for training in trainings:
        print(
            f"  {training.title}: {training.accuracies[-1]:.2%} of the held-out digits read,"
            f" trained in {training.seconds:.1f} s"
        )
    difference = np.abs(np.subtract(*(training.losses for training in trainings))).max()
    print(
        f"  Largest difference of the two losses in {steps} steps: {difference:.1e}"
        " (rounding, which training amplifies)"
    )
    draw(picture, trainings, *test)
    print(f"  Picture of both: {picture}")
    return trainings


if __name__ == "__main__":
    for package in ("sklearn", "matplotlib"):
        if importlib.util.find_spec(package) is None:
            sys.exit(
                "Digits: expected scikit-learn, for the digits, and matplotlib, for a picture, "
                f"got no {package}; pip install scikit-learn matplotlib"
            )
    parser = argparse.ArgumentParser()
    parser.add_argument("library", nargs="?", default="./digits.so")
    parser.add_argument("--epochs", type=int, default=10)
    ms.set_device("CPU")
    main(**vars(parser.parse_args()))

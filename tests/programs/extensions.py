"""Kernels of other people's PyTorch extensions, in MindSpore and in PyTorch.

    python tests/programs/extensions.py <folder>

Takes the sources of packages on PyPI as they are, exports what is in them with the files in
tests/programs/extensions, builds that with aten_bridge.build.load, and compares results and
gradients with the same thing in PyTorch's own operators. Exit status 0 if all are right.
"""

import subprocess
import sys
import tarfile
from pathlib import Path

import mindspore as ms
import numpy as np
import torch

from aten_bridge.build import load
from aten_bridge.mindspore import kernel
from aten_bridge.torch import load as operators_of

HERE = Path(__file__).parent / "extensions"
# The package's version, and which of its files are compiled beside ours.
PACKAGES = {
    "torchsort": ("0.1.10", []),
    "torch_scatter": ("2.1.2", ["scatter_cpu"]),
    "torch_spline_conv": ("1.2.2", ["basis_cpu", "weighting_cpu"]),
    "torch_cluster": ("1.6.3", ["knn_cpu", "grid_cpu"]),
}

rng = np.random.default_rng(0)


def fetch(folder, name, version):
    """The package's sources."""
    sources = folder / f"{name}-{version}"
    if not sources.is_dir():
        options = ["--quiet", "--no-deps", "--no-binary", ":all:", "--no-build-isolation"]
        subprocess.run(
            [sys.executable, "-m", "pip", "download", *options, "-d", folder, f"{name}=={version}"],
            check=True,
        )
        with tarfile.open(folder / f"{name}-{version}.tar.gz") as archive:
            archive.extractall(folder, filter="data")
    return sources


def build(folder, name):
    version, files = PACKAGES[name]
    sources = fetch(folder, name, version)
    return load(
        name,
        [HERE / f"{name}.cpp", *(sources / f"csrc/cpu/{file}.cpp" for file in files)],
        hosts=["mindspore", "pytorch"],
        include_dirs=[sources],
    )


def compare(library, name, arrays, expected, differentiated=(), **attributes):
    """One kernel in both frameworks, beside a function of PyTorch's own operators."""
    grad = f"{name}Grad" if differentiated else None
    operator = kernel(f"{library}:{name}", grad=grad, **attributes)
    snake = "".join("_" * c.isupper() + c.lower() for c in name).strip("_")
    of_pytorch = getattr(operators_of(library), snake)

    def given():
        return [
            None if a is None else torch.tensor(a, requires_grad=i in differentiated)
            for i, a in enumerate(arrays)
        ]

    def first(results):
        return results[0] if isinstance(results, tuple) else results

    def check(what, result, wanted):
        np.testing.assert_allclose(result, wanted, rtol=1e-5, atol=1e-6, err_msg=f"{name}: {what}")

    reference, own = given(), given()
    wanted, result = expected(*reference), of_pytorch(*own, **attributes)
    check("PyTorch", first(result).detach(), first(wanted).detach())
    for i in differentiated:
        (want,) = torch.autograd.grad((first(wanted) ** 2).sum(), reference[i], retain_graph=True)
        (have,) = torch.autograd.grad((first(result) ** 2).sum(), own[i], retain_graph=True)
        check("gradient in PyTorch", have, want)

    tensors = [None if a is None else ms.Tensor(a) for a in arrays]

    def loss(*inputs):
        results = operator(*inputs)
        one = results[0] if isinstance(results, tuple) else results
        return (one**2).sum()

    for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE):
        ms.set_context(mode=mode)
        check(
            f"MindSpore, mode {mode}", first(operator(*tensors)).asnumpy(), first(wanted).detach()
        )
        for i in differentiated:
            (want,) = torch.autograd.grad(
                (first(wanted) ** 2).sum(), reference[i], retain_graph=True
            )
            have = ms.grad(loss, grad_position=i)(*tensors)
            check(f"gradient in MindSpore, mode {mode}", have.asnumpy(), want)
    print(f"{name}: right in PyTorch and MindSpore" + ", with its gradient" * bool(differentiated))


def torchsort(library):
    """The pool of a decreasing sequence is itself; of an increasing one, its mean."""

    def mean(values):
        return sum(values) / len(values)

    def isotonic(y):
        rows = []
        for row in y:
            blocks = []
            for value in row:
                block = [value]
                while blocks and mean(blocks[-1]) < mean(block):
                    block = blocks.pop() + block
                blocks.append(block)
            rows.append(torch.stack([mean(block) for block in blocks for _ in block]))
        return torch.stack(rows)

    compare(library, "IsotonicL2", [rng.normal(size=(5, 9)).astype("f4")], isotonic, [0])


def torch_scatter(library):
    def scatter_max(src, index):
        out = torch.zeros(4, src.shape[1])
        return out.scatter_reduce(0, index, src, "amax", include_self=False)

    index = np.repeat(rng.permutation(np.arange(12) % 4)[:, None], 5, axis=1)
    src = rng.normal(size=(12, 5)).astype("f4")
    compare(library, "ScatterMax", [src, index], scatter_max, [0], dim=0, dim_size=4)


def torch_spline_conv(library):
    def basis(pseudo, kernel_size, is_open):
        v = pseudo * (kernel_size - is_open.long())
        v = v - v.floor()
        of_each = torch.stack([1 - v, v])
        return torch.stack([of_each[s % 2, :, 0] * of_each[s // 2, :, 1] for s in range(4)], dim=1)

    compare(
        library,
        "SplineBasis",
        [
            rng.uniform(0.05, 0.95, size=(6, 2)).astype("f4"),
            np.array([5, 5]),
            np.array([1, 1], "u1"),
        ],
        basis,
        [0],
        degree=1,
    )


def torch_cluster(library):
    def knn(x, y, _x, _y):
        near = torch.cdist(y, x).topk(3, largest=False).indices
        return torch.stack([torch.arange(len(y)).repeat_interleave(3), near.flatten()])

    x, y = rng.normal(size=(20, 3)).astype("f4"), rng.normal(size=(6, 3)).astype("f4")
    compare(library, "Knn", [x, y, None, None], knn, k=3)

    def grid(position, size, _start, _end):
        cells = ((position - position.amin(0)) / size).long()
        counts = ((position.amax(0) - position.amin(0)) / size).long() + 1
        return cells[:, 0] + cells[:, 1] * counts[0] + cells[:, 2] * counts[0] * counts[1]

    compare(library, "Grid", [x, np.full(3, 0.5, "f4"), None, None], grid)


def main(folder):
    """All of them; says which are wrong."""
    folder.mkdir(parents=True, exist_ok=True)
    wrong = []
    for name, run in {
        f.__name__: f for f in (torchsort, torch_scatter, torch_spline_conv, torch_cluster)
    }.items():
        try:
            run(build(folder, name))
        except Exception as error:
            wrong.append(name)
            print(f"{name}: {type(error).__name__}: {error}")
    sys.exit(f"wrong: {', '.join(wrong)}" if wrong else 0)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())

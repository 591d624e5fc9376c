"""Kernels of other people's PyTorch extensions, in MindSpore, in PyTorch and in JAX.

    python tests/third_party_models/extensions.py <folder>

Takes the sources of packages on PyPI as they are, exports what is in them with the files in
tests/third_party_models/extensions, builds that with aten_bridge.build.load, and compares results
and gradients with the same thing in PyTorch's own operators. Exit status 0 if all are right.
"""

import functools
import subprocess
import sys
import tarfile
from pathlib import Path

import jax
import mindspore as ms
import numpy as np
import torch
import torch.nn.functional as F

import aten_bridge.jax
from aten_bridge.build import load
from aten_bridge.mindspore import kernel
from aten_bridge.torch import load as operators_of

HERE = Path(__file__).parent / "extensions"
# The package's version, its folders of headers, and which of its files are compiled beside ours.
PACKAGES = {
    "torchsort": ("0.1.10", [""], []),
    "torch_scatter": ("2.1.2", [""], ["csrc/cpu/scatter_cpu.cpp"]),
    "torch_spline_conv": ("1.2.2", [""], ["csrc/cpu/basis_cpu.cpp", "csrc/cpu/weighting_cpu.cpp"]),
    "torch_cluster": ("1.6.3", [""], ["csrc/cpu/knn_cpu.cpp", "csrc/cpu/grid_cpu.cpp"]),
    "torch_points_kernels": (
        "0.7.0",
        ["cpu/include", "cpu/src"],
        [f"cpu/src/{name}.cpp" for name in ("fps", "interpolate", "knn")],
    ),
    "torchlpc": ("0.7.2", [""], []),
    "pytorch_fast_transformers": ("0.4.0", [""], []),
    "natten": (
        "0.17.5",
        ["csrc/include", "csrc/autogen/include"],
        ["csrc/src/pytorch/na2d.cpp", "csrc/src/pytorch/cpu/na2d.cpp"]
        + [f"csrc/autogen/src/cpu/naive/source_{i}.cpp" for i in range(2)],
    ),
    "mmcv": (
        "2.2.0",
        ["mmcv/ops/csrc/common"],
        [
            f"mmcv/ops/csrc/pytorch/{folder}{name}.cpp"
            for folder in ("", "cpu/")
            for name in ("roi_align", "modulated_deform_conv")
        ],
    ),
}

rng = np.random.default_rng(0)
jax.config.update("jax_enable_x64", True)  # PyTorch's indices are int64


def fetch(folder, name, version):
    """The package's sources."""
    requirement = f"{name.replace('_', '-')}=={version}"
    found = list(folder.glob(f"{name.replace('_', '?')}-{version}"))
    if not found:
        options = ["--quiet", "--no-deps", "--no-binary", ":all:", "--no-build-isolation"]
        subprocess.run(
            [sys.executable, "-m", "pip", "download", *options, "-d", folder, requirement],
            check=True,
        )
        (packed,) = folder.glob(f"{name.replace('_', '?')}-{version}.tar.gz")
        with tarfile.open(packed) as archive:
            archive.extractall(folder, filter="data")
        found = [packed.with_name(packed.name.removesuffix(".tar.gz"))]
    return found[0]


def build(folder, name):
    """One library for three frameworks."""
    version, include_dirs, files = PACKAGES[name]
    sources = fetch(folder, name, version)
    return load(
        name,
        [HERE / f"{name}.cpp", *(sources / file for file in files)],
        hosts=["mindspore", "pytorch", "jax"],
        include_dirs=[sources / include_dir for include_dir in include_dirs],
        namespace=f"{name}_kernels",  # torchlpc has one of its own
        # torch_points_kernels lacks an include; without the macro natten is no right C++.
        flags=["-fopenmp", "-include", "memory", "-DAVX_INT"],
    )


def first(results):
    return results[0] if isinstance(results, (tuple, list)) else results


def with_torch(function, arrays, differentiated):
    """The first result, and the gradients of the sum of its squares."""
    inputs = [
        None if a is None else torch.tensor(a, requires_grad=i in differentiated)
        for i, a in enumerate(arrays)
    ]
    result = first(function(*inputs))
    if not differentiated:
        return [result]
    of = [inputs[i] for i in differentiated]
    return [result.detach(), *torch.autograd.grad((result**2).sum(), of)]


def with_mindspore(mode, function, arrays, differentiated):
    ms.set_context(mode=mode)
    inputs = [None if a is None else ms.Tensor(a) for a in arrays]

    def loss(*inputs):
        results = function(*inputs)
        one = results[0] if isinstance(results, tuple) else results
        return (one**2).sum()

    gradients = [ms.grad(loss, grad_position=i)(*inputs) for i in differentiated]
    return [tensor.asnumpy() for tensor in (first(function(*inputs)), *gradients)]


def with_jax(function, arrays, differentiated):
    def loss(*inputs):
        return (first(function(*inputs)) ** 2).sum()

    results = [first(jax.jit(function)(*arrays))]
    if differentiated:
        results += jax.jit(jax.grad(loss, argnums=tuple(differentiated)))(*arrays)
    return [np.asarray(result) for result in results]


def compare(library, name, arrays, expected, differentiated=(), **attributes):
    """One kernel in three frameworks, beside a function of PyTorch's own operators."""
    grad = f"{name}Grad" if differentiated else None
    snake = "".join("_" * c.isupper() + c.lower() for c in name).strip("_")
    of_torch = functools.partial(getattr(operators_of(library), snake), **attributes)
    of_mindspore = kernel(f"{library}:{name}", grad=grad, **attributes)
    of_jax = aten_bridge.jax.kernel(f"{library}:{name}", grad=grad, **attributes)
    wanted = with_torch(expected, arrays, differentiated)
    for framework, results in (
        ("PyTorch", with_torch(of_torch, arrays, differentiated)),
        ("PyNative", with_mindspore(ms.PYNATIVE_MODE, of_mindspore, arrays, differentiated)),
        ("a graph", with_mindspore(ms.GRAPH_MODE, of_mindspore, arrays, differentiated)),
        ("JAX", with_jax(of_jax, arrays, differentiated)),
    ):
        for i, (result, right) in enumerate(zip(results, wanted, strict=True)):
            what = f"{name} in {framework}, " + (f"gradient {i - 1}" if i else "result")
            near = 1e-6 * max(1, float(abs(right).max()))
            np.testing.assert_allclose(result, right, rtol=1e-5, atol=near, err_msg=what)
    print(
        f"{name}: right in MindSpore, PyTorch and JAX"
        + ", with its gradient" * bool(differentiated),
        flush=True,
    )


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


def torch_points_kernels(library):
    def interpolate(features, index, weight):
        return torch.stack(
            [(f[:, i] * w).sum(-1) for f, i, w in zip(features, index, weight, strict=True)]
        )

    features = rng.normal(size=(2, 3, 7)).astype("f4")
    index = rng.integers(7, size=(2, 5, 3))
    weight = rng.uniform(size=(2, 5, 3)).astype("f4")
    compare(library, "KnnInterpolate", [features, index, weight], interpolate, [0])

    points = rng.normal(size=(2, 20, 3)).astype("f4")

    def farthest(points):
        found = torch.zeros(len(points), 4, dtype=torch.int64)
        for i in range(1, 4):
            chosen = torch.stack([p[f] for p, f in zip(points, found[:, :i], strict=True)])
            found[:, i] = torch.cdist(points, chosen).amin(-1).argmax(-1)
        return found

    compare(library, "FarthestPoints", [points], farthest, count=4)

    def nearest(support, query):
        return torch.cdist(query, support).topk(3, largest=False).indices

    query = rng.normal(size=(2, 6, 3)).astype("f4")
    compare(library, "Nearest", [points, query], nearest, count=3)


def torchlpc(library):
    def scan(x, weights, initials):
        rows = [initials]
        for t in range(x.shape[1]):
            rows.append(weights[:, t] * rows[-1] + x[:, t])
        return torch.stack(rows[1:], dim=1)

    x, weights = (rng.normal(size=(3, 8)).astype("f4") for _ in range(2))
    initials = rng.normal(size=3).astype("f4")
    compare(library, "Scan", [x, weights, initials], scan, [0, 1, 2])

    def lpc(x, coefficients, initials):
        rows = list(initials.flip(1).T)
        for t in range(x.shape[1]):
            rows.append(x[:, t] - sum(coefficients[:, t, i] * rows[-1 - i] for i in range(2)))
        return torch.stack(rows[2:], dim=1)

    def complex_of(*sizes):
        return (rng.normal(size=sizes) + 1j * rng.normal(size=sizes)).astype("c8")

    compare(library, "Lpc", [complex_of(2, 5), complex_of(2, 5, 2), complex_of(2, 2)], lpc)


def pytorch_fast_transformers(library):
    def product(queries, keys, values):
        return (queries @ keys.mT).tril() @ values

    queries, keys = (rng.normal(size=(2, 4, 9, 5)).astype("f4") for _ in range(2))
    values = rng.normal(size=(2, 4, 9, 3)).astype("f4")
    compare(library, "CausalProduct", [queries, keys, values], product, [0, 1, 2])


def natten(library):
    size, window = (6, 7), 3

    def places(length):
        """For each place, those of its window, which stays inside."""
        starts = (torch.arange(length) - window // 2).clamp(0, length - window)
        return starts[:, None] + torch.arange(window)

    rows, columns = places(size[0]), places(size[1])

    def windows(x):
        """To [batch, heads, height, width, window * window, dim]."""
        return x[:, :, rows[:, None, :, None], columns[None, :, None, :]].flatten(4, 5)

    def qk(query, key, bias):
        of_rows = rows - torch.arange(size[0])[:, None] + window - 1
        of_columns = columns - torch.arange(size[1])[:, None] + window - 1
        of_each = bias[:, of_rows[:, None, :, None], of_columns[None, :, None, :]].flatten(3)
        return torch.einsum("bhijd,bhijwd->bhijw", query, windows(key)) + of_each

    query, key = (rng.normal(size=(2, 3, *size, 8)).astype("f4") for _ in range(2))
    bias = rng.normal(size=(3, 2 * window - 1, 2 * window - 1)).astype("f4")
    compare(library, "NeighborhoodQk", [query, key, bias], qk, [0, 1, 2], kernel_size=window)

    def qk_alone(query, key, _bias):
        return torch.einsum("bhijd,bhijwd->bhijw", query, windows(key))

    compare(library, "NeighborhoodQk", [query, key, None], qk_alone, [0, 1], kernel_size=window)

    def av(attention, value):
        return torch.einsum("bhijw,bhijwd->bhijd", attention, windows(value))

    attention = rng.normal(size=(2, 3, *size, window**2)).astype("f4")
    compare(library, "NeighborhoodAv", [attention, key], av, [0, 1], kernel_size=window)


def mmcv(library):
    def sample(x, columns, rows):
        """Takes x of [channels, height, width] at places in pixels, with zeros around it."""
        scale = torch.tensor([2 / (x.shape[2] - 1), 2 / (x.shape[1] - 1)])
        grid = torch.stack([columns, rows], dim=-1).float() * scale - 1
        return F.grid_sample(x[None], grid[None], align_corners=True)[0]

    def roi_align(x, rois):
        regions = []
        for number, left, top, right, bottom in rois:
            columns = left + (torch.arange(3) + 0.5) * (right - left) / 3 - 0.5
            rows = top + (torch.arange(2) + 0.5) * (bottom - top) / 2 - 0.5
            regions.append(sample(x[int(number)], *torch.meshgrid(columns, rows, indexing="xy")))
        return torch.stack(regions)

    x = rng.normal(size=(2, 4, 9, 8)).astype("f4")
    rois = np.array([[0, 1, 1, 6.5, 7], [1, 2.5, 0.5, 7, 4], [0, 0.5, 2, 5, 8]], "f4")
    compare(
        library,
        "RoiAlign",
        [x, rois],
        roi_align,
        [0],
        spatial_scale=1.0,
        output_size=[2, 3],
        sampling_ratio=1,
    )

    def deform_conv(x, weight, bias, offset, mask):
        pictures = []
        for picture, moves, factors in zip(x, offset, mask, strict=True):
            rows, columns = torch.meshgrid(
                *(torch.arange(n) for n in moves.shape[1:]), indexing="ij"
            )
            total = bias[:, None, None].expand(-1, *rows.shape)
            for tap in range(9):
                taken = sample(
                    picture,
                    columns + tap % 3 - 1 + moves[2 * tap + 1],
                    rows + tap // 3 - 1 + moves[2 * tap],
                )
                kernel_of_tap = weight[:, :, tap // 3, tap % 3]
                total = total + torch.einsum("oc,cij->oij", kernel_of_tap, taken * factors[tap])
            pictures.append(total)
        return torch.stack(pictures)

    weight, bias = rng.normal(size=(5, 4, 3, 3)).astype("f4"), rng.normal(size=5).astype("f4")
    offset = rng.normal(size=(2, 18, 9, 8)).astype("f4")
    mask = rng.uniform(size=(2, 9, 9, 8)).astype("f4")
    inputs = [x, weight, bias, offset, mask]
    compare(library, "DeformConv", inputs, deform_conv, [0, 1, 2, 3, 4], padding=1)


RUNS = (
    torchsort,
    torch_scatter,
    torch_spline_conv,
    torch_cluster,
    torch_points_kernels,
    torchlpc,
    pytorch_fast_transformers,
    natten,
    mmcv,
)


def main(folder):
    """All of them; says which are wrong."""
    folder.mkdir(parents=True, exist_ok=True)
    wrong = []
    for run in RUNS:
        try:
            run(build(folder, run.__name__))
        except Exception as error:
            wrong.append(run.__name__)
            print(f"{run.__name__}: {type(error).__name__}: {error}")
    sys.exit(f"wrong: {', '.join(wrong)}" if wrong else 0)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())

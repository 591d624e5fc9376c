"""What the library breaks: every public function of MindSpore on views, without and with it.

    MS_OP_PLUGIN_PATH=$(python -m aten_bridge.mint) python tests/mint/survey_views.py [--write]

MindSpore with a library of kernels gives views (transposed, sliced, repeated parts of tensors) to
its own kernels too, so a result that was right without the library can be wrong with it. The names
are those that the modules have, the arguments are guessed (see "guesses" below): a call that
MindSpore takes is a case. Each is made on whole tensors and on views that have the same values:
its results, its gradients with whole and with other incoming gradients, two steps of each
optimizer, in PyNative mode and in graph mode. What is right on a view without the library has to be
right with it. Servers make the calls: processes that have imported MindSpore and fork for them, so
that a call that ends the process, or an error that spoils it, harms no other case.
"""

from __future__ import annotations

import argparse
import ast
import collections
import contextlib
import importlib
import importlib.util
import inspect
import itertools
import json
import os
import pickle
import re
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from survey import PAGE, first_line, leaves, shown

SETTINGS = ("without", "alone", "install")
MODES = ("pynative", "graph")
GROUPS = ("mint", "ops", "nn", "Tensor", "optimizers", "primitives")
# Views: the tensor lies transposed, in a corner, at every second place, or once for all rows.
KINDS = ("transposed", "offset", "stepped", "expanded")
# Relative and absolute, of the largest value. MindSpore's tanh is off by 1e-5; what a kernel reads
# at wrong places is off by much more.
TOLERANCE = {"float16": 1e-2, "bfloat16": 3e-2, "float64": 1e-5, "complex128": 1e-5}
BEGIN, END = "<!-- begin: tests/mint/survey_views.py -->\n", "<!-- end -->\n"
SECONDS = 20  # for one call; twice that for one compilation
POSITIONAL, KEYWORDS, IN_GRAPH = 3, 2, 2  # cases of a function

# What MindSpore makes impossible, by the text of its error.
IMPOSSIBLE = {
    # From libmindspore_cpu.so, before a plugin is asked: of Reshape and ReduceSum in a gradient of
    # ops.tile(x, labels) in a graph. MindSpore's own, to which they could be left, lack bfloat16.
    "doesn't support the dynamic tuple": (
        "a plugin's kernel takes no tuple of a length that is known when a graph runs only"
    ),
}

# Names that no case is made of.
LEFT_OUT = {
    r"(barrier|irecv|isend|recv|send|batch_isend_irecv|.*process_group.*|.*(all_gather|all_reduce"
    r"|reduce_scatter|all_to_all|broadcast_object|gather_object|scatter_object).*)$": (
        "needs other processes"
    ),
    r"(get_rank|get_world_size|get_group_rank|get_global_rank|get_backend|new_group|gather_into_.*"
    r"|scatter_tensor|broadcast|reduce|all_.*_matmul|AlltoAll.*|AllSwap|Neighbor.*|Receive|Send"
    r"|Barrier|AllGather|AllReduce|ReduceScatter|Broadcast|Reduce|CollectiveGather"
    r"|CollectiveScatter|set_comm_ops_inplace|init_process_group)$": "needs other processes",
    r"(print_|tensordump|Print|TensorDump|.*Summary|Custom.*|custom_.*|.*_register|kernel|ms_kernel"
    r"|get_vm_impl_fn|PyFunc|PyExecute.*|CustomOpBuilder)$": "no function of tensors",
    r"(to_dlpack|from_dlpack|data_ptr|from_numpy|storage|untyped_storage|set_device_address"
    r"|offload.*|get_bytes|convert_bytes_to_tensor|flush_from_cache|wait_pipeline|param_info"
    r"|set_param_info|hooks|.*_hook|parent_tensor_|index_of_parent_|pin_memory|move_to|device"
    r"|assign_value.*|symbolic_shape|set_|stride|strides|storage_offset|is_contiguous|const_arg"
    r"|is_shared)$": ("the tensor's memory, not its values"),
    r"(empty|empty_like|new_empty|Empty.*)$": "values that were never set",
    r"(random_categorical)$": "random numbers, which now and then are the same twice",
}


# ===--- guesses ---===


def values() -> dict[str, np.ndarray]:
    """The tensors that calls are made of, by the names they have there."""
    arrays = usual_values()
    return counted_from_end(arrays) if os.environ.get("VIEWS_NEGATIVE") else arrays


def usual_values() -> dict[str, np.ndarray]:
    random = np.random.default_rng(16)

    def real(*shape):
        return random.standard_normal(shape).astype(np.float32)

    def inside(*shape):
        return random.uniform(0.2, 0.8, shape).astype(np.float32)

    def ints(high, *shape, dtype=np.int64):
        return random.integers(0, high, shape).astype(dtype)

    def symmetric():
        a = real(4, 4)
        return a @ a.T + 4 * np.eye(4, dtype=np.float32)

    return {
        **{name: real(4, 6) for name in ("x", "y", "z")},
        **{name: inside(4, 6) for name in ("p", "q")},
        "above": inside(4, 6) + 1,
        "tall": real(6, 4),
        **{name: real(6) for name in ("vector", "vector2")},
        **{name: real(4) for name in ("column", "column2")},
        **{name: inside(3) for name in ("channels", "channels2", "channels3")},
        **{name: symmetric() for name in ("square", "square2")},
        "batch": real(2, 3, 5),
        **{name: real(2, 3, 4) for name in ("batch1", "batch3")},
        "batch2": real(2, 4, 5),
        **{name: real(2, 3, 8, 8) for name in ("image", "image2")},
        "kernel": real(4, 3, 3, 3),
        **{name: real(2, 3, 8) for name in ("signal", "signal2")},
        "kernel1": real(4, 3, 3),
        "volume": real(2, 3, 4, 4, 4),
        "kernel3": real(4, 3, 3, 3, 3),
        "rows3": real(5, 3),
        "steps": real(2, 5, 3),
        **{name: ints(4, 4, 6) for name in ("index", "ints")},
        "shifts": ints(3, 4, 6),
        "ints32": ints(4, 4, 6, dtype=np.int32),
        "rows": np.array([2, 0, 3]),
        "rows32": np.array([2, 0, 3], np.int32),
        "labels": ints(6, 4),
        "labels32": ints(6, 4, dtype=np.int32),
        "ids": ints(7, 2, 5),
        "ids32": ints(7, 2, 5, dtype=np.int32),
        "table": real(7, 3),
        "places": ints(4, 3, 2),
        "places32": ints(4, 3, 2, dtype=np.int32),
        "of_places": real(3),
        "of_rows": real(3, 6),
        "ascending": np.sort(real(6)),
        "ascending_rows": np.sort(real(4, 6)),
        **{name: random.random((4, 6)) > 0.4 for name in ("mask", "mask2")},
        "half": real(4, 6).astype(np.float16),
        "double": real(4, 6).astype(np.float64),
        **{name: real(4, 6) + 1j * real(4, 6) for name in ("complex1", "complex2")},
        "scalar": real(),
        "grid": np.tanh(real(2, 4, 5, 2)),
        "signs": np.sign(real(4, 6)),
        "signs_of_rows": np.sign(real(4)),
        "boxes": np.sort(inside(5, 4), axis=1),
        "parameter": real(4, 6),
        "gradient": real(4, 6),
        "gradient2": real(6),
    }


def counted_from_end(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """With every second index negative, as MindSpore takes it in more places than PyTorch."""
    sizes = {"index": 4, "ints": 4, "rows": 4, "labels": 6, "ids": 7, "places": 4}
    changed = {}
    for name, size in {**sizes, **{f"{name}32": size for name, size in sizes.items()}}.items():
        if name in arrays:
            array = arrays[name].copy()
            array.flat[::2] -= array.dtype.type(size)
            changed[name] = array
    return {**arrays, **changed}


# Arguments, tried in this order; "x" stands for itself in methods: x.max(1).
PATTERNS = """
    x; p; x 1; x y; p q; above; x tall; x 0.5; x (1,0); ints; mask; ints shifts; mask mask2;
    square; square square2; square square2 True; square column; x 2; x (4,6); x (6,4); x mask; x
    index; x labels; p labels; x labels32; x rows; x 1 rows; x 0 rows32; vector; vector vector2;
    vector ascending; ascending x; ascending_rows x; tall vector; x vector; x signs; batch1
    batch2; batch1 batch3; [x,y]; (x,y); [x,y] 1; image; image 2; image (2,2); image kernel; image
    kernel column; image image2; signal; signal 2; signal kernel1; signal kernel1 column; signal
    signal2; volume; volume 2; volume (2,2,2); volume kernel3; rows3; steps; complex1; complex1
    complex2; ids table; ids32 table; table ids; table ids32; table ids32 0; ids 7; ids32 7; ids;
    x 0 1; x 1 0; x 1 2; x 0.2 0.8; x 1 1.5; x y z; p q p; x y 0.5; x mask y; x mask 1.5; x mask
    of_places; mask x y; x 1 index; x 0 index; x index y; x index 1; x signs 0.5; x y signs; x y
    signs_of_rows; vector column tall; square x tall; column x vector; x column vector; vector
    vector2 0.5; batch batch1 batch2; x 1 index y; x 0 index y; x index y 0; x 0 rows of_rows; x 0
    rows32 of_rows; x rows of_rows 0; x rows32 of_rows 0; x 0 rows 1.5; x 0 rows32 1.5; x rows
    of_rows; x rows32 of_rows; x 0 1 2; x 1 0 2; x 1 0 4; x 0.5 1 2.0; x places of_places; x
    places32 of_places; x places; x places32; image grid; image 2 1; x (1,1); x (1,1,2,2); x [0,1]
    [0,1]; image (0,1) (2,3); x vector vector2; x (6,) vector vector2; image channels channels2;
    image channels channels2 channels channels3; image 3 channels channels2; parameter x;
    parameter 0 rows of_rows; parameter rows of_rows; parameter rows32 of_rows; parameter places32
    of_places; x 4 6; x (0,1) 1.5; x (0,0) (2,3); x [0,0] [2,3] [1,2]; x (2,3); x 1 1; boxes
    boxes; signal signal2 signal; batch1 batch3 batch3; x y 1; scalar; scalar 4; 4; (4,6); 0 5;
    0.0 1.0 5; half; double; double double; half half; signal image; x y 1 1.5; x 2.0; x None; x
    (3,1); image (4,4) (2,2); table; x labels32 column
"""

# By a parameter's name.
BY_NAME = {
    **dict.fromkeys(("axis", "dim", "axes", "dims"), ("1", "(0,1)")),
    **dict.fromkeys(("perm", "input_perm", "permutation"), ("(1,0)",)),
    **dict.fromkeys(("dim0", "axis0", "axis1", "dim1", "start_axis", "batch_dims"), ("0",)),
    **dict.fromkeys(("dim2", "axis2", "end_axis", "end_dim"), ("1",)),
    **dict.fromkeys(("mask", "condition", "cond"), ("mask",)),
    **dict.fromkeys(("shape", "size", "output_shape"), ("(4,6)", "(6,4)", "4")),
    **dict.fromkeys(("output_size", "out_size"), ("(4,4)", "4", "(2,2,2)")),
    **dict.fromkeys(("kernel_size", "block_size", "blocksize"), ("3", "2", "(3,3)")),
    **dict.fromkeys(("stride", "strides", "dilation", "group", "groups"), ("1",)),
    **dict.fromkeys(("padding", "paddings", "pads"), ("1", "(1,1)", "((1,1),(1,1))", "(1,1,1,1)")),
    **dict.fromkeys(("k", "n", "num", "chunks", "repeats", "n_fft"), ("2", "4")),
    **dict.fromkeys(("depth", "num_classes", "num_segments", "output_num"), ("6",)),
    **dict.fromkeys(("upscale_factor", "downscale_factor"), ("2",)),
    **dict.fromkeys(("scale_factor",), ("2.0",)),
    **dict.fromkeys(("num_groups",), ("3",)),
    **dict.fromkeys(("min", "clip_value_min", "min_val", "lower"), ("-0.5",)),
    **dict.fromkeys(("max", "clip_value_max", "max_val", "upper"), ("0.5",)),
    **dict.fromkeys(("threshold", "lambd", "alpha", "negative_slope", "margin", "beta"), ("0.5",)),
    **dict.fromkeys(("value", "fill_value", "eps", "epsilon", "delta", "clip_norm"), ("0.3",)),
    **dict.fromkeys(("ord", "p", "q"), ("2", "2.0", "q", "0.5")),
    **dict.fromkeys(("num_features", "in_channels", "in_features", "num_channels"), ("3",)),
    **dict.fromkeys(("input_size",), ("3", "(8,8)")),
    **dict.fromkeys(("out_channels", "out_features", "hidden_size", "embedding_dim"), ("4",)),
    **dict.fromkeys(("embedding_size",), ("4",)),
    **dict.fromkeys(("vocab_size", "num_embeddings"), ("7",)),
    **dict.fromkeys(("normalized_shape",), ("(6,)",)),
    **dict.fromkeys(("dtype",), ("ms.float32",)),
    **dict.fromkeys(("weight",), ("kernel", "kernel1", "kernel3", "tall", "table", "vector")),
    **dict.fromkeys(("bias",), ("column", "vector")),
    **dict.fromkeys(("momentum",), ("0.9",)),
    **dict.fromkeys(("weight_decay",), ("0.01",)),
    **dict.fromkeys(("learning_rate", "lr"), ("0.1",)),
    **dict.fromkeys(("segment_ids",), ("rows32", "index", "labels32")),
    **dict.fromkeys(("d_model", "embed_dim"), ("8",)),
    **dict.fromkeys(("nhead", "num_heads"), ("2",)),
    **dict.fromkeys(("gamma", "running_mean", "mean", "variance", "running_var"), ("channels",)),
    **dict.fromkeys(("equation",), ('"ij,kj->ik"',)),
}

# Calls that the guesses do not reach, as they are written.
ALSO = {
    "Tensor.__getitem__": (
        "x[1]",
        "x[:, 2]",
        "x[1:, ::2]",
        "x[rows]",
        "x[mask]",
        "x[None, ..., 1]",
    ),
    "Tensor.__add__": ("x + y", "x + 1.5", "2 + x"),
    "Tensor.__sub__": ("x - y", "1.5 - x"),
    "Tensor.__mul__": ("x * y", "x * 2"),
    "Tensor.__truediv__": ("x / y", "1 / x"),
    "Tensor.__floordiv__": ("x // p",),
    "Tensor.__mod__": ("x % p",),
    "Tensor.__pow__": ("p ** q", "x ** 2"),
    "Tensor.__matmul__": ("x @ tall",),
    "Tensor.__neg__": ("-x",),
    "Tensor.__invert__": ("~mask",),
    "Tensor.__and__": ("mask & mask2", "ints & shifts"),
    "Tensor.__or__": ("mask | mask2",),
    "Tensor.__xor__": ("mask ^ mask2",),
    "Tensor.__eq__": ("ints == shifts",),
    "Tensor.__lt__": ("x < y", "x < 0.5"),
    "Tensor.masked_scatter": ("x.masked_scatter(mask, y)",),
    "ops.einsum": ('ops.einsum("ij,kj->ik", x, y)',),
    "mint.einsum": ('mint.einsum("ij,kj->ik", x, y)', 'mint.einsum("bd,od->bo", x, y)'),
    "ops.interpolate": (
        'ops.interpolate(image, size=(5, 5), mode="bilinear")',
        'ops.interpolate(image, size=(5, 5), mode="nearest")',
        'ops.interpolate(image, size=(5, 5), mode="bicubic")',
    ),
    "mint.nn.functional.interpolate": (
        'mint.nn.functional.interpolate(image, size=(5, 5), mode="bilinear")',
        'mint.nn.functional.interpolate(image, size=(5, 5), mode="nearest")',
    ),
    "ops.dense": ("ops.dense(x, y)",),
    "mint.nn.functional.linear": ("mint.nn.functional.linear(x, y)",),
}


def modules() -> dict:
    import mindspore as ms
    import mindspore.mint.linalg
    import mindspore.mint.nn.functional
    import mindspore.mint.optim
    import mindspore.mint.special

    mint, ops, nn = ms.mint, ms.ops, ms.nn
    of_name = {"mint": mint, "ops": ops, "nn": nn, "ms": ms, "Tensor": ms.Tensor}
    for name in ("nn", "nn.functional", "special", "linalg", "optim"):
        of_name[f"mint.{name}"] = importlib.import_module(f"mindspore.mint.{name}")
    of_name["ops.operations"] = ops.operations
    of_name["ops.auto_generate"] = importlib.import_module("mindspore.ops.auto_generate")
    return of_name


def names() -> tuple[dict[str, str], dict[str, str]]:
    """Group by name of what cases are made of; reason by name of what is left out."""
    import mindspore as ms

    taken, left, seen = {}, {}, set()
    for prefix, module in modules().items():
        if prefix == "ms":
            continue
        public = getattr(module, "__all__", None) or dir(module)
        for short in sorted(set(public)):
            thing = inspect.getattr_static(module, short, None)
            name = f"{prefix}.{short}"
            is_operator = prefix == "Tensor" and name in ALSO
            if thing is None or inspect.ismodule(thing) or (short[0] == "_" and not is_operator):
                continue
            reason = reason_to_leave(prefix, short, thing)
            if reason:
                left[name] = reason
                continue
            group = prefix.partition(".")[0]
            if inspect.isclass(thing):
                if issubclass(thing, ms.nn.Optimizer) or prefix == "mint.optim":
                    group = "optimizers"
                elif issubclass(thing, ms.ops.Primitive):
                    group = "primitives"
                elif not issubclass(thing, ms.nn.Cell):
                    left[name] = "neither a layer nor an operator"
                    continue
            elif prefix.startswith("ops.") or (prefix != "Tensor" and not callable(thing)):
                continue
            # Many of ops have several names.
            if prefix != "Tensor" and (group, id(thing)) in seen:
                continue
            seen.add((group, id(thing)))
            taken[name] = group
    return taken, left


def reason_to_leave(prefix: str, short: str, thing) -> str | None:
    module = getattr(thing, "__module__", "") or ""
    if re.search(r"communication|distributed|comm_func|parallel|reshard", module):
        return "needs other processes"
    for pattern, reason in LEFT_OUT.items():
        if re.match(pattern, short):
            return reason
    return None


def resolve(name: str):
    prefix, _, short = name.rpartition(".")
    return getattr(modules()[prefix], short)


def parameters(thing, short: str) -> list[list[tuple[str, object]]]:
    """Signatures, each as names and defaults; those of the text where Python knows none."""
    found = []
    text = inspect.getdoc(thing) or ""
    for match in re.finditer(
        rf"^(?:\.\. \w+:: )?(?:Tensor\.)?{short}\((.*?)\)", text, re.MULTILINE
    ):
        with contextlib.suppress(SyntaxError):
            found.append(of_arguments(ast.parse(f"def f({match[1]}): pass").body[0].args))
    function = thing.__init__ if inspect.isclass(thing) else thing
    while True:
        with contextlib.suppress(TypeError, ValueError):
            signature = inspect.signature(function)
            if not any(p.kind == p.VAR_POSITIONAL for p in signature.parameters.values()):
                found.append(
                    [
                        (p.name, p.default if p.default is not p.empty else REQUIRED)
                        for p in signature.parameters.values()
                        if p.name != "self" and p.kind != p.VAR_KEYWORD
                    ]
                )
                break
        # What a decorator has hidden.
        cells = getattr(function, "__closure__", None) or ()
        inner = [c.cell_contents for c in cells if inspect.isfunction(c.cell_contents)]
        if not inner or function in inner:
            break
        function = inner[0]
    if not found:
        # The list of arguments in the text: what it gives no default for is required.
        part = text.partition("Args:\n")[2]
        part = re.split(r"^[A-Z][\w ]+:$", part, maxsplit=1, flags=re.MULTILINE)[0]
        entries = re.findall(r"^    (\w+) \(.*?(?=^    \w+ \(|\Z)", part, re.MULTILINE | re.DOTALL)
        texts = re.split(r"^    \w+ \(", part, flags=re.MULTILINE)[1:]
        found.append(
            [
                (name, None if "efault" in of_name else REQUIRED)
                for name, of_name in zip(entries, texts, strict=False)
            ]
        )
    return [
        [(name, default) for name, default in one if name not in ("self", "name")] for one in found
    ]


REQUIRED = object()


def of_arguments(arguments) -> list[tuple[str, object]]:
    def default(node):
        with contextlib.suppress(ValueError):
            return ast.literal_eval(node)
        return None

    required = len(arguments.args) - len(arguments.defaults)
    return [
        *((a.arg, REQUIRED) for a in arguments.args[:required]),
        *(
            (a.arg, default(d))
            for a, d in zip(arguments.args[required:], arguments.defaults, strict=True)
        ),
        *(
            (a.arg, default(d) if d is not None else REQUIRED)
            for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        ),
    ]


def by_name(signature: list, first: str = "x") -> Iterator[list[str]]:
    """Guesses for what is required."""
    required = [name for name, default in signature if default is REQUIRED]
    others = iter(("y", "z", "p", "q"))
    choices = []
    for place, name in enumerate(required):
        if name in BY_NAME:
            choices.append(BY_NAME[name])
        else:
            choices.append((first if place == 0 else next(others, "x"),))
    return map(list, itertools.islice(itertools.product(*choices), 24))


def keywords(signature: list, text: str, given: int) -> list[str]:
    """Guesses for what has a default: another one."""
    found = []
    for name, default in signature[given:]:
        if default is REQUIRED:
            continue
        if isinstance(default, bool):
            found.append(f"{name}={not default}")
        elif isinstance(default, str):
            words = re.findall(r"``['\"]([\w-]+)['\"]``", text)
            found += [f'{name}="{word}"' for word in dict.fromkeys(words) if word != default]
        elif name in BY_NAME:
            found += [f"{name}={guess}" for guess in BY_NAME[name] if guess != repr(default)][:1]
    return found


def arguments(signatures: list) -> Iterator[list[str]]:
    """Guesses for all that a call has to have."""
    seen = set()
    lengths = set()
    for one in signatures:
        lengths.add((sum(d is REQUIRED for _, d in one), len(one)))
    named = [guess for one in signatures for guess in by_name(one)]
    for guess in [*named, *map(str.split, PATTERNS.split(";"))]:
        fits = not lengths or any(low <= len(guess) <= high for low, high in lengths)
        if fits and tuple(guess) not in seen:
            seen.add(tuple(guess))
            yield guess


# ===--- views ---===


def names_in(text: str) -> list[str]:
    known = values()
    found = (node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name))
    return [name for name in dict.fromkeys(found) if name in known]


def can_be_view(name: str) -> bool:
    return name != "parameter"


def writes(case: dict) -> bool:
    """Whether the call writes its first argument."""
    short = case["name"].rpartition(".")[2]
    return (short.endswith("_") and not short.endswith("__")) or short == "__setitem__"


def kind_for(case: dict, name: str, kind: str) -> str:
    """Nobody can write a tensor whose elements share memory; PyTorch refuses it."""
    if kind == "expanded" and writes(case):
        call = ast.parse(case["call"], mode="eval").body
        of_method = call.func.value if case["name"].startswith("Tensor.") else None
        written = of_method or call.args[0]
        if isinstance(written, ast.Name) and written.id == name:
            return "repeated"
    return kind


def as_kind(array, kind):
    """The values: of "expanded" and its whole counterpart, the first of all rows."""
    if kind in ("expanded", "repeated") and array.ndim > 0:
        return np.ascontiguousarray(np.broadcast_to(array[:1], array.shape))
    return array


def base_and_view(name: str, array, kind: str) -> tuple[np.ndarray, str]:
    """A larger tensor, and what makes of it the view with the array's values."""
    array = as_kind(array, kind)
    if kind in ("whole", "repeated") or not can_be_view(name):
        return array, name
    if array.ndim == 0:
        return np.resize(array + 1, 3).astype(array.dtype) * 0 + array, f"{name}[1]"
    if kind == "expanded":
        return array[:1].copy(), f"mint.broadcast_to({name}, {array.shape})"
    if kind == "transposed" and array.ndim > 1:
        order = tuple(reversed(range(array.ndim)))
        return np.ascontiguousarray(array.T), f"mint.permute({name}, {order})"
    if kind == "transposed":  # one column
        base = np.stack([np.roll(array, 1), array, np.roll(array, 2)], 1)
        return np.ascontiguousarray(base), f"{name}[:, 1]"
    step = 2 if kind == "stepped" else 1
    places = slice(None, None, 2) if kind == "stepped" else slice(1, None)
    shape = [size * 2 if step == 2 else size + 1 for size in array.shape]
    base = np.resize(np.roll(array.ravel(), 1), shape).astype(array.dtype)
    base[(places,) * array.ndim] = array
    text = "::2" if step == 2 else "1:"
    return base, f"{name}[{', '.join([text] * array.ndim)}]"


# ===--- keys: what is asked of a case ---===

# "forward KIND", "passed KIND" (graph mode: the view is made outside), "gradient KIND INCOMING",
# "step KIND". An incoming gradient is whole, transposed, or expanded (of a sum).


def keys_of(group: str, mode: str, kinds) -> list[str]:
    both = ["whole", "repeated", *kinds] if "expanded" in kinds else ["whole", *kinds]
    if group == "optimizers":
        more = ["layer"] if mode == "pynative" else []
        return [f"step {kind}" for kind in [*both, *more]]
    passed = [f"passed {kind}" for kind in kinds]
    if mode == "graph":
        # There, slices are copies (StridedSlice).
        both = [kind for kind in both if kind not in ("offset", "stepped")]
    found = [f"forward {kind}" for kind in both] + (passed if mode == "graph" else [])
    found += [
        f"gradient {kind} {'transposed' if kind == 'transposed' else 'whole'}" for kind in both
    ]
    found += ["gradient whole transposed", "gradient whole constant", "gradient whole expanded"]
    return found


def reference_of(key: str) -> str:
    """The key with the same values on whole tensors."""
    what, kind, *incoming = key.split()
    kind = "repeated" if kind in ("expanded", "repeated") else "whole"
    if what == "passed":
        what = "forward"
    if incoming:
        incoming = ["constant" if incoming[0] in ("expanded", "constant") else "whole"]
    return " ".join([what, kind, *incoming])


# ===--- the process that makes the calls ---===


class Calls:
    """Answers jobs in a process that was forked for them."""

    def __init__(self, setting, send):
        import mindspore as ms

        self.ms, self.send, self.setting = ms, send, setting
        ms.set_device("CPU")
        warnings.simplefilter("ignore")
        if setting == "install":
            from aten_bridge.mint import install

            install()
        self.values = values()
        self.folder = Path(tempfile.mkdtemp(prefix="views"))
        self.modules = 0
        self.had_errors = False

    def answer(self, job) -> None:
        """Sends messages, the last of which is "done", unless an error ends the process."""
        getattr(self, job.pop("what"))(**job)
        self.send(("done",))
        if self.had_errors:
            os._exit(QUIET)  # they may spoil what follows

    # Finding cases.

    def find(self, name, group, at, accepted):
        guesses = list(self.guesses(name, group))
        accepted = list(accepted)
        for place in range(at, len(guesses)):
            make, call, origin = guesses[place]
            if len(accepted) >= POSITIONAL + KEYWORDS:
                break
            if origin == "keyword" or self.is_wanted(make, call, accepted):
                self.send(("at", place))
                if origin == "keyword":
                    make, call = self.with_keyword(make, call, accepted)
                    if call is None:
                        continue
                case = self.attempt(name, group, make, call, accepted)
                if case is not None:
                    accepted.append(case)
                    self.send(("accepted", case))

    def guesses(self, name, group):
        """(constructor, call, origin); a keyword is to be added to an accepted call."""
        prefix, _, short = name.rpartition(".")
        thing = resolve(name)
        text = inspect.getdoc(thing) or ""
        signatures = parameters(thing, short)
        if group == "optimizers":
            made = [f"{name}([parameter_of, parameter_of2])"]
            for one in signatures:
                rest = one[1:]
                required = next(by_name(rest, "0.1"), [])
                made.append(f"{name}({', '.join(['[parameter_of, parameter_of2]', *required])})")
                for more in keywords(rest, text, 0):
                    made.append(f"{name}([parameter_of, parameter_of2], {more})")
            for make in dict.fromkeys(made):
                yield make, "cell((gradient, gradient2))", "make"
            return
        for call in ALSO.get(name, ()):
            yield None, call, "also"
        if prefix == "Tensor":
            if not callable(inspect.getattr_static(self.ms.Tensor, short)):
                for x in ("x", "complex1", "square"):
                    yield None, f"{x}.{short}", "property"
                return
            with_self = [[("x", REQUIRED), *one] for one in signatures]
            for guess in arguments(with_self):
                if guess[0].isidentifier():
                    yield None, f"{guess[0]}.{short}({', '.join(guess[1:])})", "pattern"
        elif inspect.isclass(thing):
            makes = [
                f"{name}({', '.join(guess)})" for one in signatures for guess in by_name(one, "2")
            ]
            makes = list(dict.fromkeys([f"{name}()", *makes]))
            function = thing.construct if hasattr(thing, "construct") else thing.__call__
            of_call = parameters(function, "-")
            for make in makes[:8]:
                for guess in arguments(of_call):
                    yield make, f"cell({', '.join(guess)})", "pattern"
        else:
            for guess in arguments(signatures):
                yield None, f"{name}({', '.join(guess)})", "pattern"
        seen = set()
        for one in signatures:
            for more in keywords(one, text, 0):
                if more not in seen:
                    seen.add(more)
                    yield None, more, "keyword"

    def is_wanted(self, make, call, accepted):
        """One case for each kind of arguments, and of the first constructor that works."""
        if "parameter_of" in (make or ""):
            return len(accepted) < POSITIONAL
        if len(accepted) >= (2 if make else POSITIONAL):
            return False
        if any(case["make"] != make for case in accepted):
            return False
        return all(self.kind_of(call) != self.kind_of(case["call"]) for case in accepted)

    def kind_of(self, call):
        def kind(node):
            if isinstance(node, ast.Name) and node.id in self.values:
                return self.values[node.id].dtype.kind
            if isinstance(node, ast.Constant):
                return type(node.value).__name__
            return type(node).__name__

        tree = ast.parse(call, mode="eval").body
        if not isinstance(tree, ast.Call):
            return call
        # A method's own tensor comes first.
        itself = tree.func.value if isinstance(tree.func, ast.Attribute) else tree.func
        return [kind(itself), *map(kind, tree.args), *(k.arg for k in tree.keywords)]

    def with_keyword(self, make, keyword, accepted):
        if not accepted or accepted[0]["origin"] == "also":
            return None, None
        first = accepted[0]
        where = first["make"] or first["call"]
        if re.search(rf"\b{keyword.partition('=')[0]}=", where):
            return None, None
        changed = where[:-1] + (", " if where[-2] != "(" else "") + keyword + ")"
        return (changed, first["call"]) if first["make"] else (None, changed)

    def attempt(self, name, group, make, call, accepted):
        """The case, if MindSpore takes the call and gives tensors, the same ones each time."""
        case = {"name": name, "group": group, "make": make, "call": call, "origin": "pattern"}
        if name in ALSO and call in ALSO[name]:
            case["origin"] = "also"
        signal.alarm(SECONDS)
        try:
            results = []
            for seed in (1, 2):
                self.ms.set_seed(seed)
                if group == "optimizers":
                    results.append(self.step(case, "whole"))
                    case["results"] = []
                    break
                function = self.function(case)
                given = self.tensors(case, "whole")
                result = function(*given)
                results.append(self.arrays(result))
                case["results"] = places_of(result, self.ms)
        except Exception:
            signal.alarm(SECONDS)
            self.had_errors = True
            if not self.is_healthy():
                os._exit(SPOILT)
            return None
        finally:
            signal.alarm(0)
        if not results[0]:
            return None
        if not same(results[0], results[-1]):
            self.send(("unsteady", call))
            return None
        # A keyword that changes nothing needs no case of its own.
        case["digest"] = zlib.crc32(pickle.dumps([names_in(call), results[0]]))
        if any(case["digest"] == other["digest"] for other in accepted):
            return None
        if all(isinstance(a, str) for a in results[0]):
            return None
        real = [a for a in results[0] if not isinstance(a, str) and a.dtype.kind in "fc"]
        if real and np.mean([np.isfinite(a).mean() for a in real if a.size] or [0]) < 0.5:
            return None
        return case

    def is_healthy(self):
        """Errors of a call may come late, in another one."""
        ms = self.ms
        with contextlib.suppress(Exception):
            ms.runtime.synchronize()
        try:
            return ms.ops.square(ms.Tensor([[1.0, 2.0]])).asnumpy().tolist() == [[1.0, 4.0]]
        except Exception:
            return False

    # Making calls.

    def module(self, text):
        """Graph mode reads functions from files."""
        self.modules += 1
        path = self.folder / f"views_case{self.modules}.py"
        path.write_text(f"import mindspore as ms\nfrom mindspore import mint, nn, ops\n{text}")
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    def cell(self, case):
        """A layer with the same parameters each time."""
        if not case["make"]:
            return None
        made = eval(case["make"], {**modules(), **self.made_of()})
        if isinstance(made, self.ms.nn.Cell):
            made.set_train()
            random = np.random.default_rng(3)
            for parameter in made.get_parameters():
                data = random.uniform(0.1, 0.9, parameter.shape)
                parameter.set_data(self.ms.Tensor(data, parameter.dtype))
        return made

    def made_of(self):
        return {name: self.ms.Tensor(array) for name, array in self.values.items()}

    def function(self, case):
        given = ", ".join(names_in(case["call"]))
        module = self.module(f"cell = None\n\n\ndef call({given}):\n    return {case['call']}\n")
        module.cell = self.cell(case)
        return module.call

    def tensors(self, case, kind):
        """The arguments, as views of larger tensors."""
        return [self.view(name, kind_for(case, name, kind)) for name in names_in(case["call"])]

    def view(self, name, kind):
        ms = self.ms
        base, text = base_and_view(name, self.values[name], kind)
        if name == "parameter":
            return ms.Parameter(ms.Tensor(base.copy()), name="parameter")
        view = eval(text, {"mint": ms.mint, name: ms.Tensor(base.copy())})
        is_part = text != name and view.size > 1
        if is_part and view.ndim > 1 and view.is_contiguous():
            raise AssertionError(f"{text} is no view")
        return view

    def arrays(self, result):
        found = []
        for leaf in leaves(result):
            if isinstance(leaf, self.ms.Tensor):
                if leaf.dtype == self.ms.bfloat16:
                    leaf = leaf.astype(self.ms.float32)
                found.append(np.array(leaf.asnumpy()))
            elif isinstance(leaf, (bool, int, float, complex, np.generic, np.ndarray)):
                found.append(np.array(leaf))
            else:
                found.append(type(leaf).__name__)
        return found

    def run(self, case, mode, keys):
        signal.alarm(SECONDS if mode == "pynative" else 2 * SECONDS)
        self.ms.set_seed(1)
        try:
            if case["group"] == "optimizers":
                results = {key: self.step(case, key.split()[1], mode) for key in keys}
            elif mode == "pynative":
                results = self.run_pynative(case, keys)
            else:
                results = self.run_graph(case, keys)
        except Exception as error:
            self.send(("error", first_line(error) or type(error).__name__))
            if os.environ.get("VIEWS_TRACE"):
                traceback.print_exc()
            os._exit(SPOILT)
        signal.alarm(0)
        self.send(("results", results))

    def run_pynative(self, case, keys):
        results = {}
        for key in keys:
            if key.startswith("forward"):
                given = self.tensors(case, key.split()[1])
                result = self.function(case)(*given)
                # What the call has written, too.
                results[key] = [*self.arrays(result), *self.arrays(given)]
        gradients = [key for key in keys if key.startswith("gradient")]
        if gradients:
            module, made = self.gradient_module(case, gradients)
            given = [view for key in gradients for view in self.tensors(case, key.split()[1])]
            incoming = [self.ms.Tensor(weight) for weight in made.incoming]
            results.update(self.split(module.gradients(*given, *incoming), gradients, made))
        return results

    def gradient_module(self, case, keys):
        """A function for the gradients of all keys at once; of layers, one for each key.

        What comes in is given (GradOperation's sens_param), behind a permutation or a sum where it
        is to arrive as a view: a loss of products takes MindSpore five times as long.
        """
        arguments = names_in(case["call"])
        is_real = [can_be_view(n) and self.values[n].dtype.kind == "f" for n in arguments]
        of_result = [(place, shape) for place, shape, is_float in case["results"] if is_float]
        if not any(is_real) or not of_result:
            raise TypeError("no gradient")
        incoming, bodies = [], []
        for n, key in enumerate(keys):
            mine = ", ".join(f"{name}_{n}" for name in arguments)
            outputs = []
            for place, shape in of_result:
                output, weight = incoming_of(key, f"r{n}{place}", shape)
                outputs.append(output)
                incoming.append(weight)
            bodies.append((f"    r{n} = call({mine})", outputs))
        cell = self.cell(case)
        is_layer = isinstance(cell, self.ms.nn.Cell) and bool(cell.trainable_params())
        given = [f"{name}_{n}" for n in range(len(keys)) for name in arguments]
        per_key = len(of_result)
        functions, calls = [], []
        for first in range(len(keys) if is_layer else 1):
            part = bodies[first : first + 1] if is_layer else bodies
            lines = "\n".join(line for line, _ in part)
            outputs = [output for _, some in part for output in some]
            weights = [f"w{first * per_key + n}" for n in range(len(outputs))]
            its = (
                given[first * len(arguments) : (first + 1) * len(arguments)] if is_layer else given
            )
            functions.append(
                f"def outputs{first}({', '.join(its)}):\n{lines}\n    return {tupled(outputs)}\n"
            )
            parameters_of = ", parameters" if is_layer else ""
            calls.append(
                f"operation(outputs{first}{parameters_of})({', '.join(its)}, {tupled(weights)})"
            )
        weights = [f"w{n}" for n in range(len(incoming))]
        module = self.module(
            "cell = parameters = None\noperation = ops.GradOperation("
            f"get_all=True, get_by_list={is_layer}, sens_param=True)\n"
            f"\n\ndef call({', '.join(arguments)}):\n    return {case['call']}\n\n\n"
            + "\n\n".join(functions)
            + f"\n\ndef gradients({', '.join([*given, *weights])}):\n"
            f"    return ({', '.join(calls)},)\n"
        )
        module.cell = cell
        if is_layer:
            module.parameters = self.ms.ParameterTuple(cell.trainable_params())
        return module, Gradients(given, weights, incoming, is_real, is_layer)

    def split(self, results, keys, made):
        """The gradients of each key: those of floating-point arguments, and of parameters."""
        count = len(made.is_real)
        found = {}
        for n, key in enumerate(keys):
            if made.is_layer:
                of_arguments, of_parameters = results[n]
            else:
                of_arguments, of_parameters = results[0][n * count : (n + 1) * count], ()
            wanted = [g for g, use in zip(of_arguments, made.is_real, strict=True) if use]
            found[key] = self.arrays([*wanted, *of_parameters])
        return found

    def run_graph(self, case, keys):
        """All keys in one compilation, which takes longer than all calls."""
        names_of_call = names_in(case["call"])
        gradients = [key for key in keys if key.startswith("gradient")]
        forwards = [key for key in keys if not key.startswith("gradient")]
        lines, given, parameters_of_graph, outputs = [], [], [], []

        def views(what, n, key):
            for name in names_of_call:
                kind = kind_for(case, name, key.split()[1])
                variable = f"{name}_{n}" if what == "gradient" else f"{name}_f{n}"
                if name == "parameter":
                    raise TypeError("parameters are written")
                if what == "passed":
                    given.append(self.view(name, kind))
                else:
                    base, text = base_and_view(variable, self.values[name], kind)
                    given.append(self.ms.Tensor(base.copy()))
                    if text != variable:
                        lines.append(f"    {variable} = {text}")
                parameters_of_graph.append(variable)
            return f"({', '.join(f'{name}_f{n}' for name in names_of_call)})"

        for n, key in enumerate(forwards):
            text = views(key.split()[0], n, key)
            lines.append(f"    result{n} = call{text}")
            outputs.append(f"result{n}")
        if gradients:
            for n, key in enumerate(gradients):
                views("gradient", n, key)
            module, made = self.gradient_module(case, gradients)
            function, of_gradients = module.call, module.gradients
            lines.append(f"    found = gradients({', '.join([*made.given, *made.weights])})")
            outputs.append("found")
            parameters_of_graph += made.weights
            given += [self.ms.Tensor(weight) for weight in made.incoming]
        else:
            function, of_gradients = self.function(case), None
        body = "\n".join(f"    {line}" for line in lines)
        graph = self.module(
            "def make(call, gradients):\n    @ms.jit\n"
            f"    def graph({', '.join(parameters_of_graph)}):\n{body}\n"
            f"        return ({', '.join(outputs)},)\n\n    return graph\n"
        )
        results = graph.make(function, of_gradients)(*given)
        found = {key: self.arrays(one) for key, one in zip(forwards, results, strict=False)}
        if gradients:
            found.update(self.split(results[-1], gradients, made))
        return found

    def step(self, case, kind, mode="pynative"):
        """The parameters after two steps with gradients that are views."""
        ms = self.ms
        arrays = [self.values["gradient"], self.values["gradient2"]]
        parameters_of = [
            ms.Parameter(
                ms.Tensor(np.cos(np.arange(a.size) + 1).astype(np.float32).reshape(a.shape)),
                name=f"parameter{n}",
            )
            for n, a in enumerate(arrays)
        ]
        made = {"parameter_of": parameters_of[0], "parameter_of2": parameters_of[1]}
        optimizer = eval(case["make"], {**modules(), **made})
        names_of_call = ("gradient", "gradient2")
        if mode == "pynative":
            for _ in range(2):
                if kind == "layer":
                    optimizer((self.gradient_of_layer(), self.view("gradient2", "whole")))
                else:
                    optimizer(tuple(self.view(name, kind) for name in names_of_call))
        else:
            bases = [base_and_view(n, self.values[n], kind) for n in names_of_call]
            texts = ", ".join(text for _, text in bases)
            module = self.module(
                "def make(optimizer):\n    @ms.jit\n    def step(gradient, gradient2):\n"
                f"        return optimizer(({texts}))\n\n    return step\n"
            )
            step = module.make(optimizer)
            for _ in range(2):
                step(*(ms.Tensor(base.copy()) for base, _ in bases))
        return self.arrays(parameters_of)

    def gradient_of_layer(self):
        """The same gradient as MindSpore computes it for x @ w.T: a transposed view."""
        ms = self.ms
        x = ms.Tensor(np.eye(6, dtype=np.float32))
        incoming = ms.Tensor(np.ascontiguousarray(self.values["gradient"].T))
        return ms.grad(lambda w: (ms.ops.matmul(x, w.t()) * incoming).sum())(
            ms.Tensor(np.ones((4, 6), np.float32))
        )


SPOILT, QUIET = 3, 4  # how a process ends
Gradients = collections.namedtuple("Gradients", "given weights incoming is_real is_layer")


def tupled(texts: list[str]) -> str:
    return texts[0] if len(texts) == 1 else f"({', '.join(texts)})"


def incoming_of(key: str, result: str, shape: tuple) -> tuple[str, np.ndarray]:
    """An output, and the gradient that comes to it, so that the result gets the key's one."""
    how = key.split()[2]
    if how == "expanded":
        return f"({result}).sum()", np.array(1.5, np.float32)
    if how == "constant":
        return result, np.full(shape, 1.5, np.float32)
    weight = np.sin(np.arange(np.prod(shape, dtype=int)) + 1.0).reshape(shape).astype(np.float32)
    if how == "transposed" and len(shape) > 1:
        order = tuple(reversed(range(len(shape))))
        return f"mint.permute({result}, {order})", np.ascontiguousarray(weight.T)
    return result, weight


def places_of(result, ms, place="") -> list[tuple[str, tuple, bool]]:
    """For each tensor in a result: how to reach it, its shape, whether it can have a gradient."""
    if isinstance(result, (list, tuple)):
        return [
            found for n, part in enumerate(result) for found in places_of(part, ms, f"{place}[{n}]")
        ]
    if not isinstance(result, ms.Tensor):
        return []
    is_real = result.dtype in (ms.float32, ms.float16, ms.float64, ms.bfloat16)
    return [(place, tuple(result.shape), is_real)]


def serve(setting: str) -> None:
    """Forks a process for jobs, and another one when that has ended."""
    out = os.dup(1)
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    if not os.environ.get("VIEWS_TRACE"):
        os.dup2(null, 2)

    def send(message):
        data = pickle.dumps(message)
        data = struct.pack("<q", len(data)) + data
        while data:
            data = data[os.write(out, data) :]

    everything = names()
    if setting != "without":
        import torch  # noqa: F401  # its libraries are open in all forks
    send(everything)
    while True:
        job = receive(0)
        if job is None:
            return
        child = os.fork()
        if child == 0:
            try:
                calls = Calls(setting, send)
                while job is not None:
                    calls.answer(job)
                    job = receive(0)
            except BaseException:
                traceback.print_exc()
                os._exit(SPOILT + 1)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            number = os.WTERMSIG(status)
            name = signal.Signals(number).name
            send(
                ("ended", "no answer in time" if name == "SIGALRM" else f"{name} ends the process")
            )
        elif os.WEXITSTATUS(status) == 0:
            return
        elif os.WEXITSTATUS(status) != QUIET:
            send(("ended", f"the process ends with {os.WEXITSTATUS(status)}"))


def receive(file: int):
    def read(size):
        data = b""
        while len(data) < size:
            part = os.read(file, size - len(data))
            if not part:
                return None
            data += part
        return data

    head = read(8)
    return None if head is None else pickle.loads(read(struct.unpack("<q", head)[0]))


# ===--- the process that asks ---===


class Server:
    def __init__(self, setting):
        environment = {
            **os.environ,
            "GLOG_v": "4",
            "OMP_NUM_THREADS": "1",
            "OMP_WAIT_POLICY": "passive",
        }
        environment.pop("MS_OP_PLUGIN_PATH", None)
        if setting != "without":
            environment["MS_OP_PLUGIN_PATH"] = os.environ["MS_OP_PLUGIN_PATH"]
        self.folder = tempfile.TemporaryDirectory()  # MindSpore leaves files where it runs
        environment["TMPDIR"] = self.folder.name
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).resolve()), "--serve", setting],
            env=environment,
            cwd=self.folder.name,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        greeting = receive(self.process.stdout.fileno())
        if greeting is None:
            raise RuntimeError(
                f"no server: {' '.join(self.process.args)} with VIEWS_TRACE=1 says why"
            )
        self.names, self.left = greeting

    def ask(self, **job) -> Iterator[tuple]:
        data = pickle.dumps(job)
        os.write(self.process.stdin.fileno(), struct.pack("<q", len(data)) + data)
        while True:
            message = receive(self.process.stdout.fileno())
            if message is None:
                raise RuntimeError("a server has ended")
            yield message
            if message[0] in ("done", "ended"):
                return

    def find(self, name, group) -> tuple[list[dict], list[str]]:
        """Cases, and calls that gave two results of which no view can be said to be wrong."""
        accepted, unsteady, at = [], [], 0
        while True:
            for message in self.ask(what="find", name=name, group=group, at=at, accepted=accepted):
                if message[0] == "at":
                    at = message[1] + 1
                elif message[0] == "accepted":
                    accepted.append(message[1])
                elif message[0] == "unsteady":
                    unsteady.append(message[1])
            if message[0] == "done" or (message[0] == "ended" and at == 0):
                return accepted, unsteady

    def run(self, case, mode, keys, others_need_whole=False) -> dict[str, list | str]:
        """By key, arrays or the text of an error; what fails together is asked alone."""
        found, groups = {}, [list(keys)]
        while groups:
            group = groups.pop(0)
            if others_need_whole:
                for key in list(group):
                    fault = found.get(reference_of(key))
                    if isinstance(fault, str) and key not in found:
                        found[key] = fault
                        group.remove(key)
            if not group:
                continue
            fault = None
            for message in self.ask(what="run", case=case, mode=mode, keys=group):
                if message[0] == "results":
                    found.update(message[1])
                elif message[0] == "error" or (message[0] == "ended" and fault is None):
                    fault = message[1]
            if fault is None:
                continue
            if len(group) == 1:
                found[group[0]] = fault
                continue
            groups = [*parts_of(group), *groups]
        return found

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.folder.cleanup()


def parts_of(keys: list[str]) -> list[list[str]]:
    """To find out which ones fail: by what is asked, then whole tensors each, then halves."""
    by_what = [list(part) for _, part in itertools.groupby(keys, lambda key: key.split()[0])]
    if len(by_what) > 1:
        return by_what
    whole = [key for key in keys if reference_of(key) == key]
    rest = [key for key in keys if key not in whole]
    if whole and rest:
        return [*([key] for key in whole), rest]
    half = len(keys) // 2
    return [keys[:half], keys[half:]]


def same(one, other) -> bool:
    """The same values, shapes and dtypes, but for rounding."""
    if len(one) != len(other):
        return False
    for a, b in zip(one, other, strict=True):
        if isinstance(a, str) or isinstance(b, str):
            if not (isinstance(a, str) and isinstance(b, str) and a == b):
                return False
            continue
        if a.shape != b.shape or a.dtype != b.dtype:
            return False
        if a.dtype.kind in "fc":
            tolerance = TOLERANCE.get(str(a.dtype), 1e-4)
            finite = np.abs(b[np.isfinite(b)])
            largest = max(1.0, float(finite.max())) if finite.size else 1.0
            if not np.allclose(a, b, tolerance, tolerance * largest, equal_nan=True):
                return False
        elif not np.array_equal(a, b):
            return False
    return True


def title(case: dict) -> str:
    return case["call"].replace("cell", case["make"], 1) if case["make"] else case["call"]


def brief(result) -> str:
    if isinstance(result, str):
        return f"error: {result[:120]}"
    return "; ".join(
        a if isinstance(a, str) else f"{a.dtype} {list(a.shape)} {shown(a)}" for a in result[:2]
    )


def of_pytorch(case: dict, key: str) -> list | str | None:
    """What PyTorch's function of the same name gives, as far as there is one; or its refusal."""
    import torch

    if case["make"]:
        return None
    prefix = case["name"].partition(".")[0]
    what, kind, *_ = key.split()
    given = {name: values()[name] for name in names_in(case["call"])}
    refusal = None
    for root in (torch, torch.nn.functional) if prefix == "ops" else (torch,):
        known = {name: torch.tensor(as_kind(a, kind).copy()) for name, a in given.items()}
        scope = {"mint": root, "ops": root, "ms": torch, **known}
        with contextlib.suppress(Exception), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            inputs = [
                x.requires_grad_(what == "gradient")
                for x in known.values()
                if x.is_floating_point()
            ]
            try:
                scope["r"] = eval(case["call"], scope)
            except (IndexError, RuntimeError) as error:  # not of the arguments' names and types
                if prefix != "ops":  # whose functions often do something else
                    refusal = first_line(error)
                continue
            if what == "forward":
                found = [*leaves(scope["r"]), *known.values()]
            else:
                total = 0
                for place, shape, is_float in case["results"]:
                    if is_float:
                        output, weight = incoming_of(key, f"r{place}", shape)
                        total = total + (eval(output, scope) * torch.tensor(weight)).sum()
                found = torch.autograd.grad(total, inputs)
            return [
                x.detach().numpy() if isinstance(x, torch.Tensor) else type(x).__name__
                for x in found
            ]
    return refusal


def judge(case: dict, key: str, before, after) -> str:
    """Who is right, by PyTorch, where results on whole tensors differ."""
    if key.split()[1] != "whole" or isinstance(before, str) or isinstance(after, str):
        return "unknown"
    expected = of_pytorch(case, key)
    if expected is None or isinstance(expected, str):
        return "unknown"
    right = [same(results, expected[: len(results)]) for results in (before, after)]
    return {(True, False): "MindSpore", (False, True): "library"}.get(tuple(right), "unknown")


def is_pytorchs(case: dict, key: str, result: list) -> bool:
    expected = of_pytorch(case, key)
    return isinstance(expected, list) and same(result, expected[: len(result)])


def is_as_pytorch(case: dict, before: dict, results: dict, key: str) -> bool:
    """Whether the library refuses what PyTorch refuses, or gives PyTorch's results.

    MindSpore divides integers by zero, inverts what has no inverse. Of methods it has two kinds, of
    which it takes PyTorch's where there is a kernel; their gradients are for other results.
    """
    fault = results[key]
    if "ends the process" in fault or fault == "no answer in time":
        return False
    if os.environ.get("VIEWS_NEGATIVE") and re.search("out of (range|bounds)", fault):
        return False  # the call was made of it, and MindSpore takes it
    forward = reference_of(f"forward {key.split()[1]}")
    if isinstance(of_pytorch(case, forward), str):
        return True
    if not key.startswith("gradient") or "forward whole" not in results:
        return False
    whole = results["forward whole"], before["forward whole"]
    return not isinstance(whole[0], str) and judge(case, "forward whole", whole[1], whole[0]) == (
        "library"
    )


def verdicts(case: dict, mode: str, of_setting: dict) -> list[dict]:
    """What each key says, but those that are right in all settings."""
    found = []
    before = of_setting["without"]
    for key, result in before.items():
        reference = before.get(reference_of(key))
        row = {
            "case": title(case),
            "name": case["name"],
            "group": case["group"],
            "mode": mode,
            "key": key,
        }
        is_whole = reference_of(key) == key
        was_right = not isinstance(result, str) and not isinstance(reference, str)
        was_right = was_right and (is_whole or same(result, reference))
        row["without"] = "right" if was_right else "wrong"
        if not was_right:
            row["text without"] = brief(result)
        for setting, results in of_setting.items():
            if setting == "without" or key not in results:
                continue
            mine = results[key]
            of_whole = results.get(reference_of(key), "")
            if isinstance(mine, str) and any(text in mine for text in IMPOSSIBLE):
                row[setting] = "impossible"
            elif isinstance(mine, str):
                is_right = was_right and is_as_pytorch(case, before, results, key)
                row[setting] = "as PyTorch" if is_right else "wrong"
            elif was_right and same(mine, reference):
                row[setting] = "right"
            elif is_whole and was_right:
                row[setting] = "differs"
                row["judge"] = judge(case, key, result, mine)
                if row["judge"] == "MindSpore":
                    row[setting] = "wrong"
            elif (
                not isinstance(of_whole, str) and (is_whole or same(mine, of_whole))
            ) or is_pytorchs(case, key, mine):
                row[setting] = "right"
            else:
                row[setting] = "wrong"
            if row[setting] != "right":
                row[f"text {setting}"] = f"{brief(mine)}, not {brief(reference)}"
        found.append(row)
    return found


def ask_all(options) -> dict:
    """The results of all cases, by servers in as many threads as there are jobs."""
    start = time.time()
    answers = known_answers(options)
    lock = threading.Lock()
    first = {setting: Server(setting) for setting in options.settings}
    everything, left = first["without"].names, first["without"].left
    chosen = [
        name
        for name, group in everything.items()
        if group in options.groups
        and re.search(options.only, name)
        and zlib.crc32(f"{options.seed}{name}".encode()) % options.part[1] == options.part[0]
    ]
    # Neighbours take long together; and with another seed, others come before the time is over.
    chosen.sort(key=lambda name: zlib.crc32(f"{options.seed}{name}".encode()))
    queue = collections.deque(name for name in chosen if name not in answers)

    def work(servers):
        while queue and (not options.seconds or time.time() - start < options.seconds):
            with contextlib.suppress(IndexError):
                name = queue.popleft()
                begun = time.time()
                try:
                    answer = one(servers, name, everything[name], options)
                except RuntimeError as error:
                    answer = {"ended": [f"{name}: {error}"]}
                    for setting, server in servers.items():
                        server.close()
                        servers[setting] = Server(setting)
                answer["seconds"] = round(time.time() - begun, 2)
                with lock:
                    answers[name] = answer
                    if options.results:
                        with options.results.open("a") as file:
                            file.write(json.dumps([name, answer]) + "\n")
                    if options.verbose:
                        bad = sum(is_broken(row) for row in answer.get("rows", ()))
                        print(
                            f"{len(answers)}/{len(chosen)} {name}: "
                            f"{len(answer.get('cases', ()))} cases, {bad} broken, "
                            f"{answer['seconds']} s",
                            file=sys.stderr,
                            flush=True,
                        )
        for server in servers.values():
            server.close()

    threads = [threading.Thread(target=work, args=(first,))]
    for _ in range(options.jobs - 1):
        more = {setting: Server(setting) for setting in options.settings}
        threads.append(threading.Thread(target=work, args=(more,)))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {
        "names": {name: everything[name] for name in chosen},
        "left out": left,
        "not asked": list(queue),
        "wall": round(time.time() - start, 1),
        **{
            part: [line for name in chosen for line in answers.get(name, {}).get(part, ())]
            for part in ("rows", "cases", "unfitted", "only with it", "ended", "unsteady")
        },
    }


def known_answers(options) -> dict:
    """By name, the answers that a run before has left in the file of results."""
    if not options.results or not options.results.exists():
        return {}
    return dict(map(json.loads, options.results.read_text().splitlines()))


def one(servers, name, group, options) -> dict:
    cases, unsteady = servers["without"].find(name, group)
    if not cases:
        last = options.settings[-1]
        more = servers[last].find(name, group)[0] if last != "without" else []
        found = "only with it" if more else "unfitted"
        return {"unsteady" if unsteady else found: unsteady or [name]}
    rows = []
    for number, case in enumerate(cases):
        for mode in options.modes:
            if mode == "graph" and number >= (1 if group == "optimizers" else IN_GRAPH):
                continue
            keys = keys_of(group, mode, options.kinds)
            if not has_gradient(case):
                keys = [key for key in keys if not key.startswith("gradient")]
            of_setting = {"without": servers["without"].run(case, mode, keys, True)}
            known = [
                k for k in keys if not isinstance(of_setting["without"].get(reference_of(k)), str)
            ]
            for setting in options.settings:
                if setting != "without":
                    wanted = known if known else keys[:1]
                    of_setting[setting] = servers[setting].run(case, mode, wanted)
            found = verdicts(case, mode, of_setting)
            if any(is_broken(row) for row in found):
                mark_unsteady(found, servers["without"], case, mode, of_setting["without"])
            rows += found
    return {"rows": rows, "cases": [title(case) for case in cases], "unsteady": unsteady}


AGAIN = 8


def mark_unsteady(rows, server, case, mode, before) -> None:
    """Makes wrong without the library what comes out otherwise when it is asked again.

    The gradient of logit() reads memory that MindSpore has given away, in one call of three.
    """
    for _ in range(AGAIN):
        again = server.run(case, mode, list(before), True)
        for row in rows:
            results = again.get(row["key"], ""), before[row["key"]]
            if row["without"] == "right" and (
                isinstance(results[0], str) or not same(results[0], results[1])
            ):
                row["without"] = "wrong"
                row["text without"] = "other values each time"


def has_gradient(case: dict) -> bool:
    """Not of calls that write their arguments."""
    if writes(case):
        return False
    floats = [n for n in names_in(case["call"]) if can_be_view(n) and values()[n].dtype.kind == "f"]
    return bool(floats) and any(is_real for _, _, is_real in case["results"])


# ===--- what it says ---===


def is_broken(row: dict) -> bool:
    return row["without"] == "right" and "wrong" in (row.get("alone"), row.get("install"))


def broken(results: dict) -> list[str]:
    """A line for each case and mode: what was right without the library and is wrong with it."""
    of_case: dict = {}
    for row in results["rows"]:
        for setting in ("alone", "install"):
            if row["without"] == "right" and row.get(setting) == "wrong":
                of_case.setdefault((row["case"], row["mode"]), {}).setdefault(setting, []).append(
                    row
                )
    lines = []
    for (case, mode), settings in sorted(of_case.items()):
        for setting, rows in settings.items():
            keys = ", ".join(row["key"] for row in rows)
            lines.append(f"{case}, {mode}, {setting}: {keys}: {rows[0][f'text {setting}']}")
    return lines


def counts(results: dict) -> list[list]:
    """By group and mode: functions, cases, and calls by what they are."""
    table = []
    for group in GROUPS:
        of_group = [name for name, its in results["names"].items() if its == group]
        if not of_group:
            continue
        for mode in MODES:
            rows = [r for r in results["rows"] if r["group"] == group and r["mode"] == mode]
            if not rows:
                continue
            table.append(
                [
                    group,
                    mode,
                    len({row["name"] for row in rows}),
                    len({row["case"] for row in rows}),
                    sum(row["without"] == "right" for row in rows),
                    *(
                        sum(row["without"] == "right" and row.get(s) == "wrong" for row in rows)
                        for s in ("alone", "install")
                    ),
                    sum(row.get("install") == "as PyTorch" for row in rows),
                    *(
                        sum(row["without"] == "wrong" and row.get("install") == was for row in rows)
                        for was in ("wrong", "right")
                    ),
                ]
            )
    return table


def differing(results: dict) -> list[str]:
    """Where whole tensors give other results with the library, unless PyTorch gives MindSpore's."""
    return [
        f"{row['case']}, {row['mode']}, {setting}: {row['key']}: right is {row['judge']}: "
        f"{row[f'text {setting}']}"
        for row in results["rows"]
        for setting in ("alone", "install")
        if row.get(setting) == "differs"
    ]


HEAD = (
    "group",
    "mode",
    "functions",
    "cases",
    "calls right without the library",
    "broken by it alone",
    "broken by it after install()",
    "refused after install(), as PyTorch does",
    "wrong in both",
    "corrected",
)


def markdown(results: dict) -> str:
    lines = [f"| {' | '.join(HEAD)} |", "|---" * len(HEAD) + "|"]
    lines += [f"| {' | '.join(map(str, row))} |" for row in counts(results)]
    return "\n".join(lines)


def sentence(results: dict) -> str:
    asked = len(results["names"]) - len(results["not asked"])
    return (
        f"{asked} names, {len(results['cases'])} calls that MindSpore takes without the library; "
        f"{len(results['only with it'])} names have calls that it takes with the library only, "
        f"for {len(results['unfitted'])} no valid call was guessed; {len(results['unsteady'])} "
        "calls give other values each time (random numbers, uninitialised memory)."
    )


def part(text: str) -> tuple[int, int]:
    index, count = map(int, text.split("/"))
    return index % count, count


def parse(arguments=None) -> argparse.Namespace:
    def listed(text):
        return tuple(filter(None, text.split(",")))

    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--serve", choices=SETTINGS, help=argparse.SUPPRESS)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="", help="names that match this regular expression")
    parser.add_argument("--part", type=part, default=(0, 1), help="K/N: the K-th of N parts")
    parser.add_argument("--seed", default="", help="of the parts, and of the order")
    parser.add_argument("--seconds", type=float, default=0, help="begin no other name afterwards")
    parser.add_argument("--modes", type=listed, default=MODES)
    parser.add_argument("--kinds", type=listed, default=KINDS)
    parser.add_argument("--settings", type=listed, default=SETTINGS)
    parser.add_argument("--groups", type=listed, default=GROUPS[:-1], help="also: primitives")
    parser.add_argument(
        "--results",
        type=Path,
        help="a file that keeps each name's answer; one that it has is not asked again",
    )
    parser.add_argument(
        "--negative", action="store_true", help="every second index counts from the end"
    )
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--write", action="store_true", help="put the table into the page")
    options = parser.parse_args(arguments)
    options.settings = tuple(dict.fromkeys(("without", *options.settings)))
    return options


def main() -> None:
    options = parse()
    if options.negative:
        os.environ["VIEWS_NEGATIVE"] = "1"  # the servers', too
    if options.serve:
        serve(options.serve)
        return
    results = ask_all(options)
    print(markdown(results))
    print(sentence(results))
    impossible = {
        f"{row['case']}, {row['mode']}: {row['text install']}"
        for row in results["rows"]
        if row.get("install") == "impossible"
    }
    for heading, lines in (
        ("Broken", broken(results)),
        ("Impossible", sorted(impossible)),
        ("Differs", differing(results)),
    ):
        print(f"{heading}: {len(lines)}")
        for line in lines:
            print(f"  {line[:400]}")
    if options.write:
        before, _, rest = PAGE.read_text().partition(BEGIN)
        after = rest.partition(END)[2]
        text = f"{sentence(results)}\n\n{markdown(results)}\n"
        PAGE.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}")


if __name__ == "__main__":
    main()

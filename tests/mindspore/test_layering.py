"""The Python modules are layers: each imports those below it alone, and none is long."""

import ast
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "python"
MOST_LINES = 450

# From below.
LAYERS = [
    "aten_bridge",
    "aten_bridge.faults",
    "aten_bridge._text",
    "aten_bridge._elf",
    "aten_bridge._pytorch",
    "aten_bridge._library",
    "aten_bridge._codec",
    "aten_bridge._introspection",
    "aten_bridge._function",
    "aten_bridge._inputs",
    "aten_bridge._kernel",
    "aten_bridge._places",
    "aten_bridge._operators",
    "aten_bridge.program._trees",
    "aten_bridge.program._programs",
    "aten_bridge.program._private",
    "aten_bridge.program._branches",
    "aten_bridge.program._guards",
    "aten_bridge.program._numbers",
    "aten_bridge.program._text",
    "aten_bridge.program._pytorch_texts",
    "aten_bridge.program._buffers",
    "aten_bridge.program._corrections",
    "aten_bridge.program._no_grad",
    "aten_bridge.program._training",
    "aten_bridge.program._export",
    "aten_bridge.program._kernel",
    "aten_bridge.program._file",
    "aten_bridge.program._source",
    "aten_bridge.program",
    "aten_bridge.build._cache",
    "aten_bridge.build._keys",
    "aten_bridge.build._tools",
    "aten_bridge.build._versions",
    "aten_bridge.build._metadata",
    "aten_bridge.build._build",
    "aten_bridge.build",
    "aten_bridge.build.setuptools",
    "aten_bridge._check",
    "aten_bridge._command",
    "aten_bridge.__main__",
    "aten_bridge.torch",
    "aten_bridge.jax._host",
    "aten_bridge.jax._inputs",
    "aten_bridge.jax._outputs",
    "aten_bridge.jax._programs",
    "aten_bridge.jax._varying",
    "aten_bridge.jax._sharding",
    "aten_bridge.jax._targets",
    "aten_bridge.jax._operator",
    "aten_bridge.jax._unsized",
    "aten_bridge.jax._aten",
    "aten_bridge.jax._module",
    "aten_bridge.jax",
    "aten_bridge.mindspore._host",
    "aten_bridge.mindspore._inputs",
    "aten_bridge.mindspore._caller",
    "aten_bridge.mindspore._prepare",
    "aten_bridge.mindspore._infer",
    "aten_bridge.mindspore._gradient",
    "aten_bridge.mindspore._operator",
    "aten_bridge.mindspore._unsized",
    "aten_bridge.mindspore._aten",
    "aten_bridge.mindspore._step",
    "aten_bridge.mindspore._module",
    "aten_bridge.mindspore",
    "aten_bridge.mint._replace",
    "aten_bridge.mint._numbers",
    "aten_bridge.mint._native",
    "aten_bridge.mint._promotion",
    "aten_bridge.mint._complex",
    "aten_bridge.mint._activation",
    "aten_bridge.mint._binary",
    "aten_bridge.mint._convolution",
    "aten_bridge.mint._creation",
    "aten_bridge.mint._einsum",
    "aten_bridge.mint._graph_views",
    "aten_bridge.mint._graph_indexing",
    "aten_bridge.mint._augmented",
    "aten_bridge.mint._in_place",
    "aten_bridge.mint._indexing",
    "aten_bridge.mint._interpolation",
    "aten_bridge.mint._linear_algebra",
    "aten_bridge.mint._random",
    "aten_bridge.mint._reduction",
    "aten_bridge.mint._shape",
    "aten_bridge.mint._unary",
    "aten_bridge.mint._loss",
    "aten_bridge.mint._methods",
    "aten_bridge.mint._functions",
    "aten_bridge.mint._graph_dump",
    "aten_bridge.mint._graph_statements",
    "aten_bridge.mint._graph_lists",
    "aten_bridge.mint._graph_writes",
    "aten_bridge.mint._errors",
    "aten_bridge.mint._optimizer",
    "aten_bridge.mint",
    "aten_bridge.mint.__main__",
]


def modules():
    """The files by the names of their modules."""
    names = {}
    for file in (FOLDER / "aten_bridge").rglob("*.py"):
        parts = file.relative_to(FOLDER).with_suffix("").parts
        names[".".join(part for part in parts if part != "__init__")] = file
    return names


def imported(file):
    """What a file imports of the package, wherever it says so."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in LAYERS)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: a relative import"
            for alias in node.names:
                full_name = f"{node.module}.{alias.name}"
                if full_name in LAYERS or node.module in LAYERS:
                    yield full_name if full_name in LAYERS else node.module


def test_each_module_imports_those_below_it_alone():
    assert sorted(modules()) == sorted(LAYERS)
    for name, file in modules().items():
        below = LAYERS[: LAYERS.index(name)]
        assert set(imported(file)) <= set(below), name


def test_no_module_is_long():
    lengths = {name: len(file.read_text().splitlines()) for name, file in modules().items()}
    assert [name for name, length in lengths.items() if length > MOST_LINES] == []

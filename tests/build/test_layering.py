"""The header's layers are its folders, and includes go down; one file is made of all of them."""

import re

import pytest
from conftest import SOURCE, compile_only

INCLUDE = SOURCE / "include"
HEADERS = sorted(
    path
    for path in (INCLUDE / "aten_bridge").rglob("*.h")
    if not path.name.startswith("testing")  # the simulated host, which includes none of them
)
MOST_LINES = 450

# The folders, each with those that its headers may include besides their own.
LAYERS = {
    "core": [],
    "tensors": ["core"],
    "interface": ["core", "tensors"],
    "kernel": ["core", "tensors", "interface"],
    "call": ["core", "tensors", "interface"],
    "hosts/introspection": ["core", "tensors", "interface", "call"],
    "hosts/mindspore": ["core", "tensors", "interface", "kernel", "call", "hosts/introspection"],
    "hosts/pytorch": ["core", "tensors", "interface", "call", "hosts/introspection"],
    "hosts/jax": ["core", "tensors", "interface", "call"],
}
# Files for operators by name, from below: each includes those before it.
OPERATORS = [
    *("adam", "operator_text", "operator_schema", "overload", "generator", "operator_shapes"),
    *("operator_kernels", "program_expression", "program_text", "program_line", "program_parser"),
    *("program_operator", "program_sizes", "process_memory"),
    *("program", "program_builder", "program_arguments", "program_kernel", "kernel_cache"),
    "operators",
]
# Files of the native caller, in the same way.
CALLER = [
    *("operands", "signature", "interpreter", "step", "queues", "call", "computed_results"),
    *("gradient", "mode", "caller", "backward", "module"),
]
# Their folders, and the titles above their tables.
PLUGINS = {"operators": ("Operators by name", OPERATORS), "caller": ("The native caller", CALLER)}
# Sources that include headers of the bridge's own, besides <aten_bridge.h>.
SOURCES = [*(SOURCE / "plugin").rglob("*.[ch]*"), *(SOURCE / "cmake").rglob("*.cpp")]


def name_of(header):
    return header.relative_to(INCLUDE / "aten_bridge").with_suffix("").as_posix()


def layer_of(name):
    return name.rpartition("/")[0]


def code_of(path):
    return re.sub(r"//.*", "", path.read_text())


def includes_of(path):
    return re.findall(r"#include <aten_bridge/(.*)\.h>", path.read_text())


def test_every_folder_is_a_layer():
    assert {layer_of(name_of(header)) for header in HEADERS} == set(LAYERS)


def test_every_header_is_in_the_table():
    text = (SOURCE / "docs/inside.md").read_text()
    table = text.partition("## Headers")[2].partition("\n## ")[0]
    lines = re.findall(r"^\| (`.*?`) \|", table, re.M)
    in_table = re.findall(r"`(.*?)\.h`", "\n".join(lines))
    assert sorted(in_table) == sorted(map(name_of, HEADERS))


@pytest.mark.parametrize("folder", PLUGINS)
def test_every_file_of_a_plugin_is_in_the_table(folder):
    title, names = PLUGINS[folder]
    text = (SOURCE / "docs/inside.md").read_text()
    table = text.partition(f"## {title}")[2].partition("\n## ")[0]
    assert set(re.findall(r"^\| `(\w+)\.", table, re.M)) == set(names)


def test_every_module_of_python_is_in_the_table():
    text = (SOURCE / "docs/inside.md").read_text()
    table = text.partition("## The Python package")[2].partition("\n## ")[0]
    rows = " ".join(re.findall(r"^\| (`.*?`) \|", table, re.M))
    package = SOURCE / "python/aten_bridge"
    modules = {path.stem for path in package.glob("*.py") if not path.stem.startswith("__")}
    folders = {f"{path.parent.name}/" for path in package.glob("*/__init__.py")}
    assert set(re.findall(r"`(.*?)`", rows)) == modules | folders


def test_a_host_is_as_short_as_is_said():
    said = "in fewer than a hundred lines"
    for page in (SOURCE / "docs/inside.md", INCLUDE / "aten_bridge/call/host.h"):
        assert said in page.read_text()
    assert len((SOURCE / "tests/kernels/toy_host.h").read_text().splitlines()) < 100


@pytest.mark.parametrize("header", HEADERS, ids=name_of)
def test_includes_only_go_down(header):
    layer = layer_of(name_of(header))
    assert {layer_of(name) for name in includes_of(header)} <= {layer, *LAYERS[layer]}


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_sources_of_the_plugins_include_whole_layers(source):
    """The kernels of a plugin see what a user's see; only operators by name are made below that."""
    layers = {layer_of(name) for name in includes_of(source)}
    below = {"tensors", "interface", "call", "hosts/jax"}
    assert layers <= (below if source.parent.name == "operators" else set())


@pytest.mark.parametrize("folder", PLUGINS)
def test_files_of_a_plugin_include_those_before_them(folder):
    _, names = PLUGINS[folder]
    files = sorted(
        path for path in (SOURCE / "plugin" / folder).glob("*.*") if path.suffix != ".txt"
    )
    assert {path.stem for path in files} == set(names)
    for path in files:
        for name in re.findall(r'#include "(.*)\.h"', path.read_text()):
            assert names.index(name) <= names.index(path.stem), path.name


@pytest.mark.parametrize(
    "source",
    sorted(path for folder in PLUGINS for path in (SOURCE / "plugin" / folder).glob("*.[ch]*")),
    ids=lambda path: f"{path.parent.name}/{path.name}",
)
def test_a_file_of_a_plugin_says_what_it_is_and_is_not_too_large(source):
    text = source.read_text()
    assert re.match(r"// [A-Z].*\.\n", text)
    assert text.count("\n") <= MOST_LINES
    guard = f"ATEN_BRIDGE_{source.parent.name}_{source.stem}_H_".upper()
    assert source.suffix == ".cpp" or f"#ifndef {guard}\n#define {guard}\n" in text


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_source_says_what_it_is(source):
    assert re.match(r"// [A-Z].*[^ ]\n", source.read_text())


def test_no_header_includes_the_umbrella():
    for header in HEADERS:
        assert not re.search(r'#include ("|<aten_bridge\.h>)', header.read_text()), header.name


def test_no_two_headers_include_each_other():
    included = {name_of(header): includes_of(header) for header in HEADERS}
    done = set()

    def visit(name, path):
        assert name not in path, f"{' -> '.join(path)} -> {name}"
        if name not in done:
            for below in included[name]:
                visit(below, [*path, name])
            done.add(name)

    for name in included:
        visit(name, [])


def test_what_is_compiled_once_is_declared_and_defined_in_one_layer():
    layers = {}
    for header in HEADERS:
        for name in re.findall(r"\bATEN_BRIDGE_INLINE\s[^#;{(]*?(\w+)\(", code_of(header)):
            layers.setdefault(name, set()).add(layer_of(name_of(header)))
    assert layers["differentiate"] == {"interface"}
    assert {name for name, found in layers.items() if len(found) > 1} == set()


def test_only_hosts_know_the_name_of_a_framework():
    for header in HEADERS:
        if not name_of(header).startswith("hosts/"):
            assert not re.search("mindspore|jax|xla", code_of(header), re.I), header.name


@pytest.mark.parametrize("header", HEADERS, ids=name_of)
def test_a_header_says_what_it_is_for_and_is_not_too_large(header):
    text = header.read_text()
    assert re.match(r"// [A-Z].*[^ ]\n", text)
    assert f"#ifndef ATEN_BRIDGE_{re.sub('[^a-z_]', '_', name_of(header)).upper()}_H_\n" in text
    assert text.count("\n") <= MOST_LINES


@pytest.mark.full
def test_every_header_compiles_alone(tmp_path):
    """PyTorch's headers are read once, before it: what is missing is one of the bridge's own.

    As sources of aten_bridge_add_kernel have them: elsewhere a source has what is declared inline.
    """
    (tmp_path / "pytorch.h").write_text("#include <ATen/core/Tensor.h>\n")
    flags = ["-std=c++17", "-fPIC", "-DATEN_BRIDGE_COMPILED=0"]
    done = compile_only(
        "g++", tmp_path / "pytorch.h", *flags, "-x", "c++-header", "-o", tmp_path / "pytorch.h.gch"
    )
    assert done.returncode == 0, done.stdout
    for header in HEADERS:
        name = name_of(header)
        if name == "tensors/device_cuda":
            continue
        source = tmp_path / "header.cpp"
        source.write_text(f"#include <aten_bridge/{name}.h>\n")
        ahead = [] if layer_of(name) == "core" else ["-include", tmp_path / "pytorch.h"]
        done = compile_only("g++", source, *flags, *ahead, "-fsyntax-only")
        assert done.returncode == 0, f"{name}: {done.stdout}"

"""The header's rooms: floors whose includes only go down, none too large, one file made of all."""

import re

import pytest
from conftest import SOURCE, compile_only, run

INCLUDE = SOURCE / "include"
ROOMS = sorted(
    path
    for path in (INCLUDE / "aten_bridge").rglob("*.h")
    if not path.name.startswith("testing")  # the simulated host, which includes none of them
)
MOST_LINES = 450

# From the ground up: a room includes rooms of its own floor and of those below. The two floors
# over the waist do not know each other.
CORE = ["config", "errors", "dtypes", "slot", "attributes"]
PYTORCH = [
    "torch",
    "views",
    "exceptions",
    "checks",
    "scope",
    "operands",
    "device_cpu",
    "device_cuda",
    "numbers",
]
WAIST = ["kernel_base", "gradient_base", "host"]
TEMPLATES = ["values", "options", "parameters", "old_optional", "signature", "kernel", "gradient"]
ORDINARY = [
    "attribute_fault",
    "outputs",
    "differentiate",
    "bind",
    "lent_memory",
    "workspaces",
    "failure",
    "run",
    "known_inputs",
    "infer",
]
HOSTS = "hosts/"
GROUND = [*CORE, *PYTORCH, *WAIST]
# The rooms of a floor, and those that they may include.
FLOORS = {
    "core": (CORE, CORE),
    "pytorch": (PYTORCH, [*CORE, *PYTORCH]),
    "waist": (WAIST, GROUND),
    "templates": (TEMPLATES, [*GROUND, *TEMPLATES]),
    "ordinary": (ORDINARY, [*GROUND, *ORDINARY]),
}


def name_of(room):
    return room.relative_to(INCLUDE / "aten_bridge").with_suffix("").as_posix()


def code_of(path):
    return re.sub(r"//.*", "", path.read_text())


def includes_of(path):
    return re.findall(r"#include <aten_bridge/(.*)\.h>", path.read_text())


def test_every_room_is_on_a_floor():
    on_floors = [name for rooms, _ in FLOORS.values() for name in rooms]
    assert sorted(on_floors) == sorted(
        name_of(room) for room in ROOMS if not name_of(room).startswith(HOSTS)
    )


def test_every_room_is_in_the_table():
    text = (SOURCE / "docs/inside.md").read_text()
    lines = re.findall(r"^\| (`.*?`) \|", text.partition("## Rooms")[2].partition("\n## ")[0], re.M)
    in_table = re.findall(r"`(.*?)\.h`", "\n".join(lines))
    assert sorted(in_table) == sorted(map(name_of, ROOMS))


def test_a_host_is_as_short_as_is_said():
    said = "in fewer than a hundred lines"
    for page in (SOURCE / "docs/inside.md", INCLUDE / "aten_bridge/host.h"):
        assert said in page.read_text()
    assert len((SOURCE / "tests/kernels/toy_host.h").read_text().splitlines()) < 100


@pytest.mark.parametrize("floor", FLOORS)
def test_includes_only_go_down(floor):
    rooms, below = FLOORS[floor]
    for name in rooms:
        included = includes_of(INCLUDE / "aten_bridge" / f"{name}.h")
        assert set(included) <= set(below), name


def test_no_room_includes_the_front_door():
    for room in ROOMS:
        assert not re.search(r'#include ("|<aten_bridge\.h>)', room.read_text()), room.name


def test_no_two_rooms_include_each_other():
    included = {name_of(room): includes_of(room) for room in ROOMS}
    done = set()

    def visit(name, path):
        assert name not in path, f"{' -> '.join(path)} -> {name}"
        if name not in done:
            for below in included[name]:
                visit(below, [*path, name])
            done.add(name)

    for name in included:
        visit(name, [])


def test_only_hosts_know_the_name_of_a_framework():
    for room in ROOMS:
        if not name_of(room).startswith(HOSTS):
            assert not re.search("mindspore|jax|xla", code_of(room), re.I), room.name


@pytest.mark.parametrize("room", ROOMS, ids=name_of)
def test_a_room_says_what_it_is_for_and_is_not_too_large(room):
    text = room.read_text()
    assert re.match(r"// [A-Z].*[^ ]\n", text)
    assert f"#ifndef ATEN_BRIDGE_{re.sub('[^a-z_]', '_', name_of(room)).upper()}_H_\n" in text
    assert text.count("\n") <= MOST_LINES


def test_every_room_compiles_alone(tmp_path):
    """PyTorch's headers are read once, before it: what is missing is one of the bridge's own.

    As sources of aten_bridge_add_kernel have them: elsewhere a source has what is declared inline.
    """
    (tmp_path / "pytorch.h").write_text("#include <ATen/core/Tensor.h>\n")
    flags = ["-std=c++17", "-fPIC", "-DATEN_BRIDGE_COMPILED=0"]
    done = compile_only(
        "g++", tmp_path / "pytorch.h", *flags, "-x", "c++-header", "-o", tmp_path / "pytorch.h.gch"
    )
    assert done.returncode == 0, done.stdout
    for room in ROOMS:
        name = name_of(room)
        if name == "device_cuda":
            continue
        source = tmp_path / "room.cpp"
        source.write_text(f"#include <aten_bridge/{name}.h>\n")
        ahead = [] if name in CORE else ["-include", tmp_path / "pytorch.h"]
        done = compile_only("g++", source, *flags, *ahead, "-fsyntax-only")
        assert done.returncode == 0, f"{name}: {done.stdout}"


def test_one_file_has_all_of_it(build, tmp_path):
    """Made by the build; a kernel of it alone shows the same functions."""
    header = build / "single/aten_bridge.h"
    assert not re.search("^#include <aten_bridge", header.read_text(), re.M)
    (tmp_path / "aten_bridge.h").write_text(header.read_text())
    source = SOURCE / "examples/leaky_relu/leaky_relu.cpp"
    shown = []
    for include in (tmp_path, INCLUDE):
        library = tmp_path / f"{len(shown)}.so"
        done = compile_only(
            "g++", source, "-std=c++17", "-O2", "-fPIC", "-shared", "-o", library, include=include
        )
        assert done.returncode == 0, done.stdout
        symbols = run("nm", "--dynamic", "--defined-only", library).stdout.splitlines()
        shown.append(sorted(line.split()[-1] for line in symbols))
    assert shown[0] == shown[1]
    assert "LeakyRelu" in shown[0]

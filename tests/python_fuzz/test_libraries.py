"""Paths, files that are no libraries, and what libraries say of themselves."""

import contextlib
import json
import os
import re

import elf
import inputs
import pytest
from host import KERNELS
from hypothesis import given
from hypothesis import strategies as st
from outcomes import assert_message

from aten_bridge import _elf
from aten_bridge._introspection import InputKind, LibraryDescription

WHOLE = elf.Whole(KERNELS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return WHOLE.kinds(tmp_path_factory.mktemp("kinds"))


# ===--- the path and the name ---===

NAMES = ["Copy", "Add", "FortyTwo", "malloc"]
NOT_KERNELS = ["CopyDescribe", "CopyInfer", "CopyInferShape", "aten_bridge_last_error"]


@inputs.examples(300)
@given(
    path=st.one_of(inputs.texts, st.sampled_from(elf.KINDS)),
    behind=st.one_of(st.just(""), inputs.texts),
    name=st.one_of(inputs.texts, st.sampled_from(NAMES + NOT_KERNELS)),
    in_folder=st.booleans(),
)
def test_path_and_name(worker, folder, path, behind, name, in_folder):
    path = f"{folder}/{path}{behind}" if in_folder else path + behind
    text = f"{path}:{name}"
    outcome = worker.run("make", text, {"out_shape": (2,), "out_dtype": inputs.Dtype("float32")})
    full_path = os.path.abspath(path) if "\0" not in path and not path.startswith("~") else None
    assert_message(outcome, f"{text!r}: ", f"{full_path}: ", "/")
    assert outcome.error or (path.endswith(".so") and name in NAMES)


@inputs.examples(50)
@given(value=inputs.values.filter(lambda value: not isinstance(value, str)))
def test_argument_that_is_no_text(worker, value):
    outcome = worker.run("make", value, {})
    assert_message(outcome, "expected the path of a library and the name of a kernel, ")
    assert outcome.error


def test_a_file_whose_name_is_not_utf8_in_the_memory_of_the_process(linker, folder):
    outcome = linker.run("open_beside", str(KERNELS), str(folder / "\udcff.so"))
    assert not outcome.error, outcome
    assert "Copy" in outcome.value


# ===--- ELF files ---===


@inputs.examples(300)
@given(end=WHOLE.ends())
def test_library_that_is_cut_off(linker, folder, end):
    with WHOLE.in_file(folder, [], end) as library:
        outcome = linker.run("open_library", str(library))
    assert_message(outcome, f"{library}: ")
    assert end in (None, len(WHOLE.content)) or outcome.error


@inputs.examples(300)
@given(changes=WHOLE.changes([*WHOLE.headers, *WHOLE.dynamic_table]), end=WHOLE.ends())
def test_names_in_a_library_with_other_headers(folder, changes, end):
    """It is read, and not opened: the dynamic linker trusts headers."""
    with WHOLE.in_file(folder, changes, end) as library:
        for names in (_elf.exported_functions, _elf.needed_libraries):
            with contextlib.suppress(OSError), _elf.read(str(library)) as file:
                names(file)


# ===--- descriptions ---===

DESCRIPTION = (
    '{"name": "Op", "hosts": ["MINDSPORE"], "entry_points": ["Op"], "device": "cpu", '
    '"inputs": [["x", 0, false], ["", 2, true]], "outputs": 1, "meta": true, '
    '"gradient": false, "side_effect": false, '
    '"attributes": [["negative_slope", 2, "a float, such as 1.0", false]]}'
)
json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)


def mutated(text):
    """The text with other bytes here and there."""
    odd = st.sampled_from([b'"', b"[" * 5000, b"{", b"null", b"1e999"])
    pieces = st.one_of(st.binary(max_size=3), odd)
    changes = st.lists(
        st.tuples(st.integers(0, len(text)), st.integers(0, 20), pieces), min_size=1, max_size=3
    )

    def apply(changes):
        content = text.encode()
        for place, length, piece in changes:
            content = content[:place] + piece + content[place + length :]
        return content

    return changes.map(apply)


def of_library(kernel):
    """What a library of this kernel says."""
    return f'{{"pytorch": "2.11", "cxx11_abi": true, "fault": "", "kernels": [{kernel}]}}'.encode()


def with_other_fields(fields):
    return of_library(json.dumps(json.loads(DESCRIPTION) | fields))


other_fields = st.dictionaries(
    st.sampled_from([*json.loads(DESCRIPTION), "further"]), json_values, min_size=1, max_size=3
).map(with_other_fields)


@inputs.examples(500)
@given(
    text=st.one_of(
        mutated(of_library(DESCRIPTION).decode()),
        other_fields,
        json_values.map(json.dumps).map(str.encode),
        st.none(),
    )
)
def test_description(text):
    try:
        described = LibraryDescription.read(text, "./a.so", None)
    except ImportError as error:
        fault = str(error)
        assert fault.startswith("./a.so: expected a library that describes its kernels, got ")
        return
    for name, description in described.kernels.items():
        assert isinstance(name, str)
        assert all(isinstance(one.kind, InputKind) for one in description.inputs)
        assert all(isinstance(one.name, str) for one in description.inputs)
        assert description.outputs >= 0
        assert set(description.attribute_names) == description.attributes.keys()
        assert isinstance(description.has_several_outputs, bool)


# ===--- the command line of mint ---===


@inputs.examples(60)
@given(
    options=st.lists(st.sampled_from(["--queues", "--blocking", "--help", "-", "--"]), max_size=3),
    program=st.one_of(inputs.texts, st.just(".")),
    arguments=st.lists(inputs.texts, max_size=2),
)
def test_command_line_without_a_program(linker, options, program, arguments):
    outcome = linker.run("command_line", [*options, program, *arguments])
    assert outcome.error == "builtins.SystemExit", outcome
    assert re.fullmatch(r"(?s)aten_bridge: .*: (there is no such file|.*)\.", outcome.text), outcome

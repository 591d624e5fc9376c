"""Lists of dtypes, attribute types and hosts outside the header are those of the header.

The header's own are made of one list each, or have a static_assert: see docs/inside.md.
"""

import re

import pytest
from conftest import SOURCE

from aten_bridge import _codec, _function, _introspection, _operators, build
from aten_bridge.faults import Status

pytestmark = pytest.mark.core

INCLUDE = SOURCE / "include/aten_bridge"


def entries_of(header, macro, columns):
    """The entries of a list of the header, X(...) each, as texts between their commas."""
    text = re.sub(r" *\\\n", "\n", (INCLUDE / header).read_text())
    body = re.search(rf"#define {macro}\(X\)\n(.*?)\n\n", text, re.DOTALL)[1]
    entries = re.findall(r"^  X\((.*?)\)$", body, re.DOTALL | re.MULTILINE)
    return [re.split(r",\s*", entry, maxsplit=columns - 1) for entry in entries]


DTYPES = [
    (name.strip('"'), type_)
    for _, name, _, type_ in entries_of("core/dtypes.h", "ATEN_BRIDGE_DTYPES", 4)
]
TYPES = entries_of("core/attributes.h", "ATEN_BRIDGE_ATTRIBUTE_TYPES", 3)


def test_the_lists_are_read():
    assert DTYPES[0] == ("bool", "bool")
    assert ("bfloat16", "c10::BFloat16") in DTYPES
    assert TYPES[0] == ["kBool", "bool", '"a bool"']
    assert TYPES[-1] == ["kStrings", "std::vector<std::string>", '"a list of strs"']


@pytest.mark.parametrize(
    ("host", "headers"), [("mindspore", ["call.h", "custom.h"]), ("jax", ["call.h"])]
)
def test_a_module_calls_things_as_its_host_does(host, headers):
    module = (SOURCE / f"python/aten_bridge/{host}/_host.py").read_text()
    header = "".join((INCLUDE / "hosts" / host / name).read_text() for name in headers)
    for name in ("results", "operands"):
        text = re.search(rf'^    {name}=(".*"),$', module, re.MULTILINE)[1]
        assert text in header


def test_python_has_each_dtype_in_the_order_of_its_number():
    class Framework:
        bool_, float8_e4m3fn = range(2)

        def __getattr__(self, name):
            return name

    found = _codec.dtypes_of(Framework())
    assert [*found] == [name for name, _ in DTYPES]
    assert (found["bool"], found["float8e4m3fn"], found["int8"]) == (0, 1, "int8")


def test_kinds_of_inputs_have_the_numbers_of_the_header():
    header = (INCLUDE / "hosts/introspection/introspection.h").read_text()
    names = re.search(r"enum class InputKind : std::uint8_t \{ (.*) \};", header)[1].split(", ")
    kinds = list(_introspection.InputKind)
    assert [f"k{kind.name.capitalize()}" for kind in kinds] == names
    assert [*map(int, kinds)] == [*range(len(names))]


def test_statuses_have_the_numbers_of_the_header():
    header = (INCLUDE / "core/errors.h").read_text()
    body = re.search(r"enum class Status : int \{\n(.*?)\n\};", header, re.DOTALL)[1]
    statuses = {name: int(number) for name, number in re.findall(r"k(\w+) = (\d+),", body)}
    names = {name.replace("_", "").lower(): int(one) for name, one in Status.__members__.items()}
    assert names == {name.lower(): number for name, number in statuses.items()}


def test_a_row_of_sizes_has_the_numbers_of_the_header():
    most = re.search(r"kMaxNdim = (\d+);", (INCLUDE / "core/operand_desc.h").read_text())[1]
    assert "kSizesColumns = 2 + kMaxNdim;" in (INCLUDE / "call/computed_results.h").read_text()
    assert 2 + int(most) == _function._SIZES_COLUMNS


def test_the_simulated_host_has_a_name_for_each_type_of_c_plus_plus():
    text = (INCLUDE / "testing.h").read_text()
    names = re.findall(r'dtype_of<[\w:<>]+>\(\) \{ return "(\w+)"; \}', text)
    assert names == [
        name for name, type_ in DTYPES if type_.startswith("c10::complex") or "c10" not in type_
    ]


def test_the_native_caller_has_each_dtype():
    text = (SOURCE / "plugin/caller/operands.h").read_text()
    types = re.findall(r'NamedType\{mindspore::kNumberType(\w+), "(\w+)"\}', text)
    assert types == [(id_, id_.lower()) for id_, _ in types]
    assert sorted(name for _, name in types) == sorted(name for name, _ in DTYPES)


def test_attribute_types_have_the_numbers_of_the_header():
    of_parameters = [["kNumber"], ["kDtype"]]  # behind the list
    names = [
        re.sub("(?<!^)([A-Z])", r"_\1", name[1:]).upper() for name, *_ in TYPES + of_parameters
    ]
    assert [(type_.name, type_.value) for type_ in _codec.AttributeType] == [
        (name, i) for i, name in enumerate(names)
    ]


def test_attributes_of_operators_have_a_letter_for_each_type_but_lists_of_lists():
    of_lists = {_codec.AttributeType.INT_LISTS, _codec.AttributeType.FLOAT_LISTS}
    told = {*_codec._LETTERS, *_operators._FITTING}  # by a value of its own type, or of others
    assert told == {*_codec.AttributeType} - of_lists
    text = (SOURCE / "plugin/operators/operator_text.h").read_text()
    reads = r"bool read\(const std::string& text, (\S+)& to\) \{[^}]*?'(\w)'"
    assert dict(re.findall(reads, text)) == {
        type_: _codec._LETTERS.get(_codec.AttributeType(i))
        for i, (_, type_, _) in enumerate(TYPES)
        if i not in of_lists
    }


def test_schemas_of_operators_have_each_attribute_type_but_lists_of_lists():
    text = (SOURCE / "plugin/operators/operator_schema.cpp").read_text()
    of_parameters = {"at::Scalar", "at::ScalarType"}
    assert {*re.findall(r"set_type<(.*)>\(", text)} == of_parameters | {
        type_ for _, type_, _ in TYPES if "<std::vector" not in type_
    }


def test_python_and_cmake_know_the_same_hosts_and_the_header_their_bits():
    cmake = (SOURCE / "cmake/package/AtenBridgeAddKernel.cmake").read_text()
    hosts = re.search(r"GLOBAL PROPERTY ATEN_BRIDGE_HOSTS (.*)\)", cmake)[1].split()
    assert {*build.HOSTS} == {host.lower() for host in hosts}
    header = (SOURCE / "include/aten_bridge.h").read_text()
    blocks = re.findall(r"define ATEN_BRIDGE_\w+\(X, argument\) X\((\w+), (\d+),", header)
    # The first bit is that of CUDA.
    bits = {host: 1 << i if i > 0 else 0 for i, host in enumerate(hosts)}
    assert {host: int(bit) for host, bit in blocks} == {**bits, "OTHER": 0}
    listed = re.search(r"define ATEN_BRIDGE_HOSTS\(X, argument\)(.*?[^\\])\n", header, re.DOTALL)[1]
    assert re.findall(r"ATEN_BRIDGE_IF_(\w+)", listed) == hosts[2:]

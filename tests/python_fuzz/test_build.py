"""Building from Python: all that comes before the compiler, which refuses everything here."""

import os

import inputs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from outcomes import BUILDING, assert_message

SOURCE = "int a() { return 1; }\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """With sources, and something of every kind."""
    folder = tmp_path_factory.mktemp("kinds") / "so/that/.. stays/in/it"
    folder.mkdir(parents=True)
    for name in ("a.cpp", "b.cc", "c.c", "k.cu", "\udcff.cpp", "a;b.cpp", "a b.cpp", "é.cxx"):
        (folder / name).write_text(SOURCE)
    (folder / "folder.cpp").mkdir()
    os.mkfifo(folder / "pipe.cpp")
    (folder / "circle.cpp").symlink_to(folder / "circle.cpp")
    (folder / "cache").mkdir(mode=0o700)
    (folder / "open").mkdir()
    (folder / "open").chmod(0o777)
    return folder


IN_FOLDER = "the folder/"


def placed(value, folder):
    """With the folder instead of its name."""
    if type(value) is list:
        return [placed(one, folder) for one in value]
    if isinstance(value, str) and value.startswith(IN_FOLDER):
        return f"{folder}/{value.removeprefix(IN_FOLDER)}"
    return value


def built(worker, folder, name, source, function="load", cache=IN_FOLDER + "cache", **options):
    """What is said, or None where the compiler was asked."""
    options = {option: placed(value, folder) for option, value in options.items()}
    arguments = [name, placed(source, folder)]
    variables = {"ATEN_BRIDGE_CACHE_DIR": placed(cache, folder)}
    outcome = worker.run("build", function, arguments, options, variables)
    if outcome.error == "aten_bridge.build._build.BuildError":
        assert outcome.text == f"{name}: expected a project that CMake can configure, got\n"
        return None
    assert outcome.error, outcome
    return outcome


def assert_asked_or_message(outcome, *beginnings):
    if outcome is not None:
        assert_message(outcome, *beginnings, documented=BUILDING)


# ===--- the name ---===

NAMES = ["a", "_", "install", "A" * 200, "A" * 201, "a-b", "a.b", "a/b", "../a", "-a", "a\n", "é"]
names = st.one_of(
    st.sampled_from(NAMES), inputs.texts, inputs.texts.map(inputs.Text), inputs.values
)


@inputs.examples(150)
@given(name=names, function=st.sampled_from(["load", "load_inline"]))
def test_name_of_a_library(linker, folder, name, function):
    source = SOURCE if function == "load_inline" else IN_FOLDER + "a.cpp"
    outcome = built(linker, folder, name, source, function)
    assert_asked_or_message(outcome, "expected a library's name of ")
    is_name = isinstance(name, str) and name.isascii() and name.isidentifier() and len(name) <= 200
    assert (outcome is None) == is_name


# ===--- sources ---===

KINDS = ["a.cpp", "b.cc", "c.c", "k.cu", "\udcff.cpp", "a;b.cpp", "a b.cpp", "é.cxx"]
KINDS += ["folder.cpp", "pipe.cpp", "circle.cpp", "missing.cpp", "a.cpp/", "a.cpp\0", "../a.cpp"]
paths = st.one_of(
    st.sampled_from(KINDS).map(IN_FOLDER.__add__),
    inputs.texts.map(IN_FOLDER.__add__),
    inputs.texts,
    inputs.texts.filter(inputs.is_of_bytes).map(os.fsencode),
)
of_several = st.one_of(
    paths, st.lists(paths, max_size=3), st.lists(st.one_of(paths, inputs.values)), inputs.values
)


@inputs.examples(200)
@given(sources=of_several)
def test_sources(linker, folder, sources):
    outcome = built(linker, folder, "a", sources)
    assert_asked_or_message(outcome, "a: expected sources", "/", "'/")


@inputs.examples(100)
@given(
    source=st.one_of(inputs.texts, inputs.values),
    cuda_source=st.one_of(st.just(""), inputs.texts, inputs.values),
)
def test_sources_as_texts(linker, folder, source, cuda_source):
    outcome = built(linker, folder, "a", source, "load_inline", cuda_source=cuda_source)
    assert_asked_or_message(outcome, "a: expected ", f"{folder}/cache/sources/a-")


# ===--- options ---===

HOSTS = ["mindspore", "pytorch", "jax", "mindspore_plugin", "PyTorch", "torch", ""]
options = {
    "hosts": st.one_of(
        st.sampled_from(HOSTS), st.lists(st.sampled_from(HOSTS)), of_several, inputs.numpy_arrays
    ),
    "namespace": names,
    "flags": of_several,
    "include_dirs": of_several,
    "libraries": st.one_of(of_several, st.just(IN_FOLDER + "pipe.cpp")),
    "debug": inputs.values,
    "verbose": inputs.values,
}


@inputs.examples(350)
@given(
    option=st.sampled_from([*options]).flatmap(lambda name: st.tuples(st.just(name), options[name]))
)
def test_option(linker, folder, option):
    outcome = built(linker, folder, "a", IN_FOLDER + "a.cpp", **dict([option]))
    name, value = option
    beginnings = {
        "hosts": ("expected hosts among ",),
        "namespace": ("a: expected a namespace of ",),
        "flags": ("a: expected flags ", "'", '"'),
        "include_dirs": ("a: expected include_dirs ", "'", '"'),
        "libraries": ("a: expected libraries ", "'", '"'),
        "debug": ("a: expected debug to be ",),
        "verbose": ("a: expected verbose to be ",),
    }
    assert_asked_or_message(outcome, *beginnings[name])
    if name in ("debug", "verbose"):
        assert (outcome is None) == isinstance(value, bool | np.bool_)


# ===--- the cache ---===

CACHES = ["cache", "new", "new/in/new", "a.cpp", "a.cpp/in it", "pipe.cpp", "circle.cpp", "open"]
CACHES += ["\udcff", "\udcff/in it", "a" * 300, "a/" * 3000, "a b", "open/../cache"]


@inputs.examples(100)
@given(
    cache=st.one_of(
        st.sampled_from(CACHES).map(IN_FOLDER.__add__),
        inputs.texts.filter(inputs.is_of_bytes).map(IN_FOLDER.__add__),
        st.sampled_from(["~no such user/cache", "/proc/none", "/dev/null"]),
    ),
    function=st.sampled_from(["load", "load_inline"]),
)
def test_folder_of_the_cache(linker, folder, cache, function):
    source = SOURCE if function == "load_inline" else IN_FOLDER + "a.cpp"
    outcome = built(linker, folder, "a", source, function, cache=cache)
    assert_asked_or_message(outcome, "/", "'/", '"/', "'~")

"""Kernels from C++ to a library in one call, compiled where they have not been before.

    from aten_bridge.build import load, load_inline
    from aten_bridge.mindspore import kernel

    leaky_relu = kernel(load("leaky_relu", ["leaky_relu.cpp"]) + ":LeakyRelu", negative_slope=0.2)

CMake's function aten_bridge_add_kernel does the work, as in a project. What it made is kept in a
folder of the user's (`cache_dir()`), by the content of the sources and of the headers that they
include, the flags, the compiler, PyTorch, and the bridge: the same again takes milliseconds.
Several processes may ask at once: one builds, the others wait.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

from aten_bridge._text import as_switch, did_you_mean, format_value, is_utf8, or_list
from aten_bridge.build._build import Build, BuildError
from aten_bridge.build._cache import cache_dir, private, private_in, write
from aten_bridge.build._keys import hash_of, key_of
from aten_bridge.build._versions import find as find_pytorch
from aten_bridge.build._versions import versions as as_versions

__all__ = ["BuildError", "cache_dir", "load", "load_inline"]

StrPath: TypeAlias = "str | os.PathLike[str]"

ENDINGS = (".cpp", ".cc", ".cxx", ".cu")
_LONGEST_NAME = 200  # files and folders are named so, with more after it; 255 bytes have room

HOSTS = ("mindspore", "pytorch", "jax", "mindspore_plugin")


def load(
    name: str,
    sources: StrPath | Iterable[StrPath],
    *,
    hosts: str | Iterable[str] = ("mindspore",),
    namespace: str | None = None,
    flags: str | Iterable[str] = (),
    include_dirs: StrPath | Iterable[StrPath] = (),
    libraries: StrPath | Iterable[StrPath] = (),
    debug: bool = False,
    pytorch: str | Iterable[str] = (),
    verbose: bool = False,
) -> str:
    """Builds a kernel library, unless it is there already, and returns its path, `<...>/<name>.so`.

    sources: .cpp files, and .cu files where the kernels are for CUDA. hosts: some of "mindspore",
    "pytorch" and "jax", or "mindspore_plugin" alone; namespace: that of the operators in PyTorch,
    by default `name`. flags go to the C++ compiler, after the bridge's own; include_dirs are
    folders of headers, libraries are paths or names of what the kernels link. With debug the
    library has debugging information and no optimisation. pytorch names minor versions, such as
    ("2.9", "2.11"): the path then stands for a file for each, `<...>/<name>.torch2.9.so`, of which
    hosts open the one for the PyTorch in use. What building for a version needs that the
    environment does not have comes from pip, once for all projects. verbose shows all commands and
    what they print; without it a terminal shows how long the build has taken.

    Opens and runs nothing. Raises BuildError, with the compiler's words, where the sources do not
    build; FileNotFoundError for a missing source, header or tool; ValueError and TypeError for
    wrong arguments; PermissionError where others may write to the cache, and OSError where it
    cannot be made.
    """
    verbose = as_switch(_checked(name), "verbose", verbose)
    build = request(
        name,
        sources,
        hosts=hosts,
        namespace=namespace,
        flags=flags,
        include_dirs=include_dirs,
        libraries=libraries,
        debug=debug,
    )
    if not (versions := as_versions(name, pytorch)):
        return str(build.find() or build.make(verbose))
    return str(together(name, made_for(build, versions, verbose)))


def made_for(build: Build, versions: list[str], verbose: bool) -> dict[str, Path]:
    """The library for each version."""
    build.check_compilers()  # before anything is downloaded
    folders = {version: find_pytorch(version) for version in versions}
    builds = {one: replace(build, pytorch=folder) for one, folder in folders.items()}
    return {one: build.find() or build.make(verbose) for one, build in builds.items()}


def together(name: str, files: dict[str, Path]) -> Path:
    """Puts copies into one folder; the path that stands for them."""
    key = key_of([(version, str(file)) for version, file in files.items()])
    folder = private_in(private(cache_dir()), "libraries", f"{name}-{key}")
    for version, file in files.items():
        write(folder / f"{name}.torch{version}.so", file.read_bytes(), mode=0o755)
    return folder / f"{name}.so"


def load_inline(
    name: str,
    source: str,
    *,
    cuda_source: str = "",
    hosts: str | Iterable[str] = ("mindspore",),
    namespace: str | None = None,
    flags: str | Iterable[str] = (),
    include_dirs: StrPath | Iterable[StrPath] = (),
    libraries: StrPath | Iterable[StrPath] = (),
    debug: bool = False,
    pytorch: str | Iterable[str] = (),
    verbose: bool = False,
) -> str:
    """The same for C++ as a text, and CUDA as another; errors name the files that they are put in.

    Raises what load() does, and TypeError and ValueError for what is no text.
    """
    _checked(name)
    sources = [
        _file_of(name, text, suffix)
        for text, suffix in ((source, "cpp"), (cuda_source, "cu"))
        if not isinstance(text, str) or text
    ]
    return load(
        name,
        sources,
        hosts=hosts,
        namespace=namespace,
        flags=flags,
        include_dirs=include_dirs,
        libraries=libraries,
        debug=debug,
        pytorch=pytorch,
        verbose=verbose,
    )


def request(
    name: str,
    sources: StrPath | Iterable[StrPath],
    *,
    hosts: str | Iterable[str],
    namespace: str | None,
    flags: str | Iterable[str],
    include_dirs: StrPath | Iterable[StrPath],
    libraries: StrPath | Iterable[StrPath],
    debug: bool,
    package: str | None = None,
) -> Build:
    """What load() is asked for, checked; `package` is the one of a wheel that it is for."""
    if not (several := _several(_checked(name), "sources", sources)):
        raise ValueError(f"{name}: expected sources, got none")
    if namespace is not None and not is_name(namespace):
        raise ValueError(
            f"{name}: expected a namespace of letters, digits and underscores, got "
            + format_value(namespace)
        )
    debug = as_switch(name, "debug", debug)
    return Build(
        name=name,
        sources=[_source(source) for source in several],
        hosts=_hosts(hosts),
        namespace=namespace,
        flags=_several(name, "flags", flags),
        include_dirs=[
            os.path.abspath(folder) for folder in _several(name, "include_dirs", include_dirs)
        ],
        libraries=[_link_name(library) for library in _several(name, "libraries", libraries)],
        debug=debug,
        package=package,
    )


def _file_of(name: str, text: str, suffix: str) -> Path:
    """A file with the text, always the same one."""
    if not isinstance(text, str):
        raise TypeError(f"{name}: expected a source as a str, got {format_value(text)}")
    if not is_utf8(text):
        raise ValueError(f"{name}: expected a source in UTF-8, got {format_value(text)}")
    content = text.encode()
    one = f"{name}-{hash_of(content)[:16]}"
    folder = private_in(private(cache_dir()), "sources", one)
    write(folder / f"{name}.{suffix}", content)
    return folder / f"{name}.{suffix}"


def is_name(name: object) -> bool:
    """Whether a library can be named so."""
    return isinstance(name, str) and re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) is not None


def _checked(name: str) -> str:
    if not is_name(name):
        raise ValueError(
            "expected a library's name of letters, digits and underscores, got "
            + format_value(name)
        )
    if len(name) > _LONGEST_NAME:
        raise ValueError(
            f"expected a library's name of {_LONGEST_NAME} letters at most, got "
            + format_value(name)
        )
    return name


def _elements(values: Any, fault: str) -> list[Any]:
    """What a generator raises comes out as it is."""
    try:
        elements = iter(values)
    except TypeError:
        raise TypeError(fault + format_value(values)) from None
    return list(elements)


def _several(name: str, what: str, values: StrPath | Iterable[StrPath]) -> list[str]:
    """The values as texts; a single one is allowed too."""
    kinds = (str, bytes, os.PathLike)
    fault = f"{name}: expected {what} to be strs or paths, got "
    several = [values] if isinstance(values, kinds) else _elements(values, fault)
    if not all(isinstance(value, kinds) for value in several):
        raise TypeError(fault + format_value(values))
    texts = [os.fsdecode(value) for value in several]
    for text in texts:
        if not is_utf8(text) or "\0" in text:
            raise ValueError(
                f"{name}: expected {what} in UTF-8 without NUL, got {format_value(text)}"
            )
    return texts


def _source(source: str) -> str:
    path = os.path.abspath(os.path.expanduser(source))
    if not os.path.isfile(path):
        got = "a folder" if os.path.isdir(path) else "no such file"
        raise FileNotFoundError(f"{path}: expected a source, got {got}")
    if not path.endswith(ENDINGS):
        raise ValueError(
            f"{path}: expected C++ or CUDA in a file that ends in {', '.join(ENDINGS[:-1])} or "
            f"{ENDINGS[-1]}, got another one"
        )
    return path


def _hosts(hosts: str | Iterable[str]) -> list[str]:
    expected = f"expected hosts among {or_list(HOSTS)}, got "
    names = [hosts] if isinstance(hosts, str | bytes) else _elements(hosts, expected)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(expected + format_value(name))
        if name not in HOSTS:
            raise ValueError(expected + format_value(name) + did_you_mean(name.lower(), HOSTS))
    if not names:
        raise ValueError(expected + "none")
    return sorted(set(names))


def _link_name(name: str) -> str:
    """A path is made absolute; a name, such as "openblas", stays."""
    return os.path.abspath(name) if os.sep in name or os.path.isfile(name) else name

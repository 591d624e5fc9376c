"""One library that is asked for: found in the cache, or built."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

from aten_bridge import _places
from aten_bridge._text import format_value
from aten_bridge.build._cache import (
    cache_dir,
    locked,
    private,
    private_in,
    time_of_change,
    time_of_now,
    write,
)
from aten_bridge.build._keys import bridge, compiler, hash_of_file, key_of, pytorch
from aten_bridge.build._tools import (
    check_nvcc,
    message_of_cmake,
    message_of_ninja,
    options,
    progress,
    run,
    tool,
    warnings_of_cmake,
)

_TRIES = 3
SYSTEM = ("/usr/include/", "/usr/lib/")  # headers that change with the compiler


# As scikit-build-core says it; what is linked is what will be installed.
_IN_A_WHEEL = (
    "set(SKBUILD_PLATLIB_DIR /packages)",
    "set(CMAKE_INSTALL_PREFIX /packages)",
    "set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)",
)


class BuildError(RuntimeError):
    """The sources could not be built. The text has what the compiler or CMake said."""


@dataclasses.dataclass
class Build:
    """A library that is asked for, and the key of everything that it is made of."""

    name: str
    sources: list[str]  # absolute paths
    hosts: list[str]
    namespace: str | None
    flags: list[str]
    include_dirs: list[str]
    libraries: list[str]  # absolute paths, and names
    debug: bool
    package: str | None = None  # the wheel's, where it will find the PyTorch beside it
    pytorch: str = ""  # the folder of the one to build for; that of the environment unless told

    def __post_init__(self) -> None:
        self._has_cuda = any(source.endswith(".cu") for source in self.sources)
        self._cache = private(cache_dir())
        # Builds of one key share a configured folder, in which the bridge is compiled once.
        self._tree_key = key_of(
            bridge(), pytorch(self.pytorch), compiler(), self.debug, self._has_cuda
        )
        self._key = key_of(
            [self._tree_key, dataclasses.asdict(self)],
            [hash_of_file(path) for path in (*self.sources, *self.libraries)],
        )

    def check_compilers(self) -> None:
        """Raises FileNotFoundError where that of CUDA is needed and missing."""
        if self._has_cuda:
            check_nvcc(next(source for source in self.sources if source.endswith(".cu")))

    def find(self) -> Path | None:
        """The library, if it has been built from what there is now."""
        with contextlib.suppress(FileNotFoundError):
            headers = json.loads(self._headers_file.read_bytes())
            path = self._library([hash_of_file(header) for header in headers])
            if path.is_file():
                private_in(self._cache, "libraries", path.parent.name)
                return path
        return None

    def make(self, verbose: bool) -> Path:
        """Builds it, or waits for another process that does."""
        tree = private_in(self._cache, "trees", self._tree_key)
        with progress(lambda: f"building {self.name}", verbose), locked(tree / "lock") as lock:
            for _ in range(_TRIES):
                now = dataclasses.replace(self)  # others may have been at work, and at the sources
                path = now.find() or now._compile(tree, lock, verbose)
                if path is not None:
                    return path
        raise BuildError(
            f"{self.name}: expected sources and headers that stay as they are while they are "
            f"compiled, got some that changed in each of {_TRIES} tries"
        )

    @property
    def _headers_file(self) -> Path:
        return private_in(self._cache, "headers") / f"{self._key}.json"

    def _library(self, hashes_of_headers: Sequence[str]) -> Path:
        key = key_of(self._key, hashes_of_headers)
        return self._cache / "libraries" / f"{self.name}-{key}" / f"{self.name}.so"

    def _compile(self, tree: Path, lock: int, verbose: bool) -> Path | None:
        """The library; None where what it is made of changed meanwhile."""
        self.check_compilers()
        build = tree / "build"
        if not (build / "build.ninja").is_file():
            shutil.rmtree(build, ignore_errors=True)  # what an interrupted one left
        private(build)
        write(tree / "CMakeLists.txt", self._project().encode())
        ninja = tool("ninja")
        configure = [
            *(tool("cmake"), "-S", tree, "-B", build, "-G", "Ninja"),
            *(f"-DCMAKE_MAKE_PROGRAM={ninja}", f"-Daten_bridge_DIR={_places.cmake_dir()}"),
            f"-DCMAKE_BUILD_TYPE={'Debug' if self.debug else 'Release'}",
            f"-DPython3_EXECUTABLE={sys.executable}",
            *([f"-DTorch_ROOT={self.pytorch}"] if self.pytorch else []),
        ]
        status, output = run(configure, lock, verbose)
        if status != 0:
            raise BuildError(f"{self.name}: {message_of_cmake(output)}")
        records = self._remove_stale(ninja, build)
        begin = time_of_now(tree)
        status, output = run([ninja, "-C", build, *options(verbose)], lock, verbose)
        if status != 0:
            raise BuildError(
                f"{self.name}: expected sources that can be built, "
                f"got{message_of_ninja(status, output)}"
            )
        for warning in warnings_of_cmake(output):
            warnings.warn(warning, stacklevel=4)
        contents = self._contents(ninja, build)
        hashes = {path: one for content in contents.values() for path, one in content.items()}
        # Asked when the contents have been read, so that they are what was compiled.
        if dataclasses.replace(self)._key != self._key or any(
            time_of_change(path) > begin for path in hashes
        ):
            for made in contents:
                (build / made).unlink(missing_ok=True)
            return None
        write(self._records_file(build), json.dumps(records | contents).encode())
        headers = sorted(hashes.keys() - set(self.sources))
        library = self._library([hashes[header] for header in headers])
        private_in(self._cache, "libraries", library.parent.name)
        write(library, (build / f"{self.name}.so").read_bytes(), mode=0o755)
        write(self._headers_file, json.dumps(headers).encode())
        return library

    def _project(self) -> str:
        """The CMakeLists.txt."""
        target = self._target
        sources, include_dirs, libraries = (
            "\n  ".join(_quoted(word) for word in words)
            for words in (self.sources, self.include_dirs, self.libraries)
        )
        options = f"HOSTS {' '.join(self.hosts).upper()}"
        if "pytorch" in self.hosts or self.namespace:
            options += f" NAMESPACE {_quoted(self.namespace or self.name)}"
        if self.package is not None:
            options += f" INSTALL_DIR {_quoted(self.package)}"
        lines = [
            "cmake_minimum_required(VERSION 3.25)",
            f"project({self.name} LANGUAGES CXX{' CUDA' if self._has_cuda else ''})",
            "find_package(aten_bridge CONFIG REQUIRED)",
            *(_IN_A_WHEEL if self.package is not None else []),
            f"aten_bridge_add_kernel({target} SOURCES\n  {sources}\n  {options})",
            f"set_target_properties({target} PROPERTIES OUTPUT_NAME {self.name})",
        ]
        for source in self.sources if self.flags else []:
            # As they stand: options of a target are sorted out where two are the same.
            of_cuda = source.endswith(".cu")
            flags = [("-Xcompiler=" if of_cuda else "") + _sound(flag) for flag in self.flags]
            lines.append(
                f"set_source_files_properties({_quoted(source)} PROPERTIES COMPILE_FLAGS "
                f"{_quoted(shlex.join(flags))})"
            )
        if include_dirs:
            lines.append(f"target_include_directories({target} PRIVATE\n  {include_dirs})")
        if libraries:
            lines.append(f"target_link_libraries({target} PRIVATE\n  {libraries})")
        return "\n".join([*lines, ""])

    @property
    def _target(self) -> str:
        return f"{self.name}_kernels"  # the name alone may be one of CMake's own, such as install

    def _records_file(self, build: Path) -> Path:
        return build / f"{self.name}.json"

    def _remove_stale(self, ninja: str, build: Path) -> dict[str, dict[str, str]]:
        """Removes the objects that are not known to be of what there is now.

        Ninja goes by times, and a file with another content may be older. Returns what each object
        was made of.
        """
        records: dict[str, dict[str, str]] = {}
        with contextlib.suppress(FileNotFoundError):
            records = json.loads(self._records_file(build).read_bytes())
        for made, content in self._contents(ninja, build).items():
            if records.get(made) != content:
                (build / made).unlink(missing_ok=True)
        return records

    def _contents(self, ninja: str, build: Path) -> dict[str, dict[str, str]]:
        """The hashes of each object's sources and headers: not of PyTorch's nor the system's."""
        done = subprocess.run(
            [ninja, "-C", str(build), "-t", "deps"],
            capture_output=True,
            text=True,
            errors="surrogateescape",  # headers may have any names
            check=True,
        )
        folders = filter(None, (pytorch(self.pytorch)[0], str(_places.include_dir())))
        beside = (*SYSTEM, *(f"{folder}/" for folder in folders))
        hash_of = functools.cache(hash_of_file)  # objects share headers
        contents: dict[str, dict[str, str]] = {}
        for block in done.stdout.split("\n\n"):
            made, *paths = block.splitlines() or [""]
            made = made.partition(": #deps")[0]
            if f"/{self._target}.dir/" in made:
                whole = [os.path.normpath(build / path.strip()) for path in paths]
                contents[made] = {p: hash_of(p) for p in whole if not p.startswith(beside)}
        return contents


def _sound(word: str) -> str:
    """The word, if CMake leaves it as it is. Raises ValueError otherwise."""
    if re.search(r"[];\n[]", word):
        raise ValueError(
            f"{format_value(word)}: expected paths and flags without semicolons, brackets and "
            "line breaks"
        )
    return word


def _quoted(word: str) -> str:
    """The word as an argument in CMake's language."""
    return f"[==[{_sound(word)}]==]"

"""One library that is asked for: found in the cache, or built."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from aten_bridge import _places
from aten_bridge._library import shown
from aten_bridge.build._cache import cache_dir, private, write
from aten_bridge.build._keys import bridge, compiler, hash_of_file, key_of, pytorch
from aten_bridge.build._tools import check_nvcc, progress, run, tool, words_of_cmake, words_of_ninja

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
    package: str | None = None  # of a wheel: there it will lie, and find the PyTorch beside it

    def __post_init__(self) -> None:
        self._has_cuda = any(source.endswith(".cu") for source in self.sources)
        self._cache = private(cache_dir())
        # Builds of one key share a configured folder, in which the bridge is compiled once.
        self._tree_key = key_of(bridge(), pytorch(), compiler(), self.debug, self._has_cuda)
        self._key = key_of(
            [self._tree_key, dataclasses.asdict(self)],
            [hash_of_file(path) for path in (*self.sources, *self.libraries)],
        )

    def find(self) -> Path | None:
        """The library, if it has been built from what there is now."""
        with contextlib.suppress(FileNotFoundError):
            headers = json.loads(self._headers_file.read_bytes())
            path = self._library(headers)
            if path.is_file():
                return path
        return None

    def make(self, verbose: bool) -> Path:
        """Builds it, or waits for another process that does."""
        from filelock import FileLock  # here: importing it takes as long as all of find()

        tree = self._cache / "trees" / self._tree_key
        tree.mkdir(parents=True, exist_ok=True)
        with progress(self.name, verbose), FileLock(tree / "lock"):
            return self.find() or self._compile(tree, verbose)

    @property
    def _headers_file(self) -> Path:
        return self._cache / "headers" / f"{self._key}.json"

    def _library(self, headers: Sequence[str]) -> Path:
        key = key_of(self._key, [hash_of_file(header) for header in headers])
        return self._cache / "libraries" / f"{self.name}-{key}" / f"{self.name}.so"

    def _compile(self, tree: Path, verbose: bool) -> Path:
        if self._has_cuda:
            check_nvcc(next(source for source in self.sources if source.endswith(".cu")))
        build = tree / "build"
        project = self._project().encode()
        if not (tree / "CMakeLists.txt").is_file() or not (build / "build.ninja").is_file():
            shutil.rmtree(build, ignore_errors=True)  # what an interrupted one left
        write(tree / "CMakeLists.txt", project)
        ninja = tool("ninja")
        configure = [
            *(tool("cmake"), "-S", tree, "-B", build, "-G", "Ninja"),
            *(f"-DCMAKE_MAKE_PROGRAM={ninja}", f"-Daten_bridge_DIR={_places.cmake_dir()}"),
            f"-DCMAKE_BUILD_TYPE={'Debug' if self.debug else 'Release'}",
            f"-DPython3_EXECUTABLE={sys.executable}",
        ]
        status, output = run(configure, verbose)
        if status != 0:
            raise BuildError(f"{self.name}: {words_of_cmake(output)}")
        self._remove_stale(ninja, build)
        status, output = run([ninja, "-C", build, *(["-v"] if verbose else [])], verbose)
        if status != 0:
            raise BuildError(
                f"{self.name}: expected sources that can be built, got\n{words_of_ninja(output)}"
            )
        used = {path for paths in self._uses(ninja, build).values() for path in paths}
        headers = sorted(used.difference(self.sources))
        hashes = {path: hash_of_file(path) for path in used}
        write(self._hashes_file(build), json.dumps(hashes).encode())
        library = self._library(headers)
        write(library, (build / f"{self.name}.so").read_bytes(), mode=0o755)
        write(self._headers_file, json.dumps(headers).encode())
        return library

    def _project(self) -> str:
        """The CMakeLists.txt."""
        quoted = [
            "\n  ".join(_quoted(word) for word in words)
            for words in (self.sources, self.flags, self.include_dirs, self.libraries)
        ]
        sources, flags, include_dirs, libraries = quoted
        namespace = f" NAMESPACE {_quoted(self.namespace)}" if self.namespace else ""
        install = ""
        if self.package is not None:
            install = f" INSTALL_DIR {_quoted(self.package)}"
        lines = [
            "cmake_minimum_required(VERSION 3.25)",
            f"project({self.name}_kernels LANGUAGES CXX{' CUDA' if self._has_cuda else ''})",
            "find_package(aten_bridge CONFIG REQUIRED)",
            *(_IN_A_WHEEL if self.package is not None else []),
            f"aten_bridge_add_kernel({self.name} SOURCES\n  {sources}\n"
            f"  HOSTS {' '.join(self.hosts).upper()}{namespace}{install})",
        ]
        if flags:
            lines.append(f"target_compile_options({self.name} PRIVATE\n  {flags})")
        if include_dirs:
            lines.append(f"target_include_directories({self.name} PRIVATE\n  {include_dirs})")
        if libraries:
            lines.append(f"target_link_libraries({self.name} PRIVATE\n  {libraries})")
        return "\n".join([*lines, ""])

    def _hashes_file(self, build: Path) -> Path:
        return build / f"{self.name}.json"

    def _remove_stale(self, ninja: str, build: Path) -> None:
        """Removes objects of what has another content: ninja goes by times, which may be older."""
        try:
            hashes = json.loads(self._hashes_file(build).read_bytes())
        except FileNotFoundError:
            return
        changed = {path for path, known in hashes.items() if hash_of_file(path) != known}
        for made, paths in self._uses(ninja, build).items():
            if changed.intersection(paths):
                (build / made).unlink(missing_ok=True)

    def _uses(self, ninja: str, build: Path) -> dict[str, list[str]]:
        """The sources and headers of each object of the library: not PyTorch's nor the system's."""
        done = subprocess.run(
            [ninja, "-C", str(build), "-t", "deps"], capture_output=True, text=True, check=True
        )
        beside = (*SYSTEM, f"{pytorch()[0]}/", f"{_places.include_dir()}/")
        uses: dict[str, list[str]] = {}
        for block in done.stdout.split("\n\n"):
            made, *paths = block.splitlines() or [""]
            made = made.partition(": #deps")[0]
            if f"{self.name}.dir/" in made:
                whole = [os.path.normpath(build / path.strip()) for path in paths]
                uses[made] = [path for path in whole if not path.startswith(beside)]
        return uses


def _quoted(word: str) -> str:
    """As an argument of CMake's."""
    if "]==]" in word or ";" in word or "\n" in word:
        raise ValueError(
            f"{shown(word)}: expected paths and flags without semicolons and line breaks"
        )
    return f"[==[{word}]==]"

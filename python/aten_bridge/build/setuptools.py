"""Kernel libraries in packages that are built with setuptools.

    from aten_bridge.build.setuptools import KernelLibrary, commands
    from setuptools import setup

    setup(ext_modules=[KernelLibrary("my_ops.my_ops", ["swish.cpp"])], cmdclass=commands)

puts my_ops.so into the package my_ops. The library finds the PyTorch that is installed beside it,
and the wheel is for every Python 3. With `pytorch=("2.9", "2.11")` it is a file for each version;
`requirement(("2.9", "2.11"))` is what the package then depends on. Needs setuptools 70.1 or newer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from setuptools import Extension
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext

from aten_bridge._places import put_file
from aten_bridge._pytorch import library_files
from aten_bridge.build import BuildError, StrPath, made_for, request
from aten_bridge.build._versions import requirement
from aten_bridge.build._versions import versions as as_versions

__all__ = ["KernelLibrary", "commands", "requirement"]


class KernelLibrary(Extension):
    """The library `<package>/<name>.so`. The arguments are those of aten_bridge.build.load()."""

    def __init__(
        self,
        name: str,
        sources: Sequence[StrPath],
        *,
        hosts: str | Iterable[str] = ("mindspore", "pytorch"),
        namespace: str | None = None,
        flags: Iterable[str] = (),
        include_dirs: Iterable[StrPath] = (),
        libraries: Iterable[StrPath] = (),
        pytorch: str | Iterable[str] = (),
    ):
        super().__init__(name, [str(source) for source in sources])
        self.options: dict[str, Any] = {
            "hosts": hosts,
            "namespace": namespace,
            "flags": flags,
            "include_dirs": include_dirs,
            "libraries": libraries,
        }
        self.versions = as_versions(name, pytorch)

    def names(self, path: Path) -> list[Path]:
        """The files that the library is, beside that path."""
        return [path.with_name(f"{path.stem}.torch{one}.so") for one in self.versions] or [path]

    def put(self, files: Sequence[Path], path: Path) -> None:
        """Copies its files there, and removes those of an earlier build, which would be opened."""
        names = self.names(path)
        for other in {str(path), *library_files(str(path)).values()} - set(map(str, names)):
            Path(other).unlink(missing_ok=True)
        for file, name in zip(files, names, strict=True):
            put_file(file, name)


class _BuildLibraries(build_ext):
    def get_ext_filename(self, fullname: str) -> str:
        # Asked with and without the package's name, as setuptools likes.
        name = fullname.rpartition(".")[2]
        if any(
            isinstance(ext, KernelLibrary) and ext.name.rpartition(".")[2] == name
            for ext in self.extensions
        ):
            return fullname.replace(".", "/") + ".so"
        return super().get_ext_filename(fullname)

    def build_extension(self, ext: Extension) -> None:
        if not isinstance(ext, KernelLibrary):
            super().build_extension(ext)
            return
        package, _, name = ext.name.rpartition(".")
        build = request(
            name, ext.sources, package=package.replace(".", "/"), debug=False, **ext.options
        )
        path = Path(self.get_ext_fullpath(ext.name))
        path.parent.mkdir(parents=True, exist_ok=True)
        verbose = bool(self.verbose)
        try:
            made = made_for(build, ext.versions, verbose).values() if ext.versions else ()
            files = list(made) or [build.find() or build.make(verbose)]
        except (BuildError, FileNotFoundError) as error:
            raise SystemExit(f"aten_bridge: {error}") from None
        ext.put(files, path)

    def copy_extensions_to_source(self) -> None:
        """Puts built libraries beside the sources, for an editable installation."""
        libraries = [ext for ext in self.extensions if isinstance(ext, KernelLibrary)]
        build_py = self.get_finalized_command("build_py")
        for ext in libraries:
            package, _, name = ext.name.rpartition(".")
            built = ext.names(Path(self.build_lib) / f"{ext.name.replace('.', '/')}.so")
            ext.put(built, Path(build_py.get_package_dir(package)) / f"{name}.so")
        self.extensions = [ext for ext in self.extensions if ext not in libraries]
        super().copy_extensions_to_source()


class _WheelForEveryPython(bdist_wheel):
    """No part of a kernel library is bound to Python."""

    def get_tag(self) -> tuple[str, str, str]:
        python, abi, platform = super().get_tag()
        if all(isinstance(ext, KernelLibrary) for ext in self.distribution.ext_modules):
            return "py3", "none", platform
        return python, abi, platform


commands = {"build_ext": _BuildLibraries, "bdist_wheel": _WheelForEveryPython}

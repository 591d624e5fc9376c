"""Kernel libraries in packages that are built with setuptools.

    from aten_bridge.build.setuptools import KernelLibrary, commands
    from setuptools import setup

    setup(ext_modules=[KernelLibrary("my_ops.my_ops", ["swish.cpp"])], cmdclass=commands)

puts my_ops.so into the package my_ops. The library finds the PyTorch that is installed beside it,
and the wheel is for every Python 3. Needs setuptools 70.1 or newer.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from setuptools import Extension
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext

from aten_bridge.build import BuildError, StrPath, request

__all__ = ["KernelLibrary", "commands"]


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
    ):
        super().__init__(name, [str(source) for source in sources])
        self.options: dict[str, Any] = {
            "hosts": hosts,
            "namespace": namespace,
            "flags": flags,
            "include_dirs": include_dirs,
            "libraries": libraries,
        }


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
        try:
            shutil.copy2(build.find() or build.make(verbose=bool(self.verbose)), path)
        except BuildError as error:
            raise SystemExit(f"aten_bridge: {error}") from None


class _WheelForEveryPython(bdist_wheel):
    """No part of a kernel library is bound to Python."""

    def get_tag(self) -> tuple[str, str, str]:
        python, abi, platform = super().get_tag()
        if all(isinstance(ext, KernelLibrary) for ext in self.distribution.ext_modules):
            return "py3", "none", platform
        return python, abi, platform


commands = {"build_ext": _BuildLibraries, "bdist_wheel": _WheelForEveryPython}

"""The command `aten-bridge`, for authors of kernels."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import keyword
import os
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from aten_bridge import _places
from aten_bridge._check import check
from aten_bridge._pytorch import library_files
from aten_bridge._text import format_value


def main(arguments: Sequence[str] | None = None) -> None:
    """Ends the process: with 0, with 1 after a failure, with 2 if the arguments are wrong."""
    try:
        options = _parser().parse_args(arguments)
        status = options.run(options)
        sys.stdout.flush()
    except KeyboardInterrupt:
        status = 130
    except BrokenPipeError:  # the reader has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 1
    except (OSError, ValueError, RuntimeError) as error:
        print(f"aten-bridge: {error}", file=sys.stderr)
        status = 1
    sys.exit(status)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="aten-bridge",
        description="Kernels written with PyTorch's ATen, for MindSpore, PyTorch and JAX.",
    )
    for option, function, text in (
        ("--version", _places.version, "print the version"),
        ("--include-dir", _places.include_dir, "print the folder of aten_bridge.h"),
        (
            "--cmake-dir",
            _places.cmake_dir,
            "print the folder of the CMake package, for -Daten_bridge_DIR=",
        ),
    ):
        parser.add_argument(option, action=_Print, function=function, help=text)
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    new = commands.add_parser(
        "new",
        help="make a project that builds a wheel with kernels",
        description="Makes a folder with a project: a kernel with its gradient, its Python "
        "package, tests in C++ and in Python, and a file for continuous integration.",
    )
    new.add_argument("name", help="of the Python package, in snake_case, such as my_ops")
    new.add_argument("folder", nargs="?", help="where the project goes; ./NAME unless told")
    new.set_defaults(run=_new)

    look = commands.add_parser(
        "check",
        help="tell what a library's kernels take, which hosts can call them, and what is missing",
        description="Tells what kernels a library has, what they take, which hosts can call them, "
        "which libraries it needs, and what is missing. Runs no kernel. Exit status 1 if a library "
        "cannot be opened.",
    )
    look.add_argument("library", nargs="+", help="such as my_ops.so")
    look.set_defaults(run=_check)

    build = commands.add_parser(
        "build",
        help="build a library from sources",
        description="Builds a kernel library, as aten_bridge.build.load does, and copies it here.",
    )
    build.add_argument("source", nargs="+", help=".cpp, and .cu for CUDA")
    build.add_argument(
        "-o", "--output", help="such as my_ops.so; ./<the first source>.so unless told"
    )
    build.add_argument(
        "--hosts",
        default="mindspore",
        help="of mindspore, pytorch and jax, with commas, or mindspore_plugin (default: mindspore)",
    )
    build.add_argument(
        "--namespace", help="of the operators in PyTorch; the library's name unless told"
    )
    for option, name, text in (
        ("-I", "--include", "a folder of headers"),
        ("-l", "--library", "what the kernels link: a path or a name"),
        ("-f", "--flag", "of the C++ compiler, as in --flag=-march=native"),
    ):
        build.add_argument(option, name, action="append", default=[], help=f"{text}; one or more")
    build.add_argument(
        "--pytorch",
        default="",
        help="versions with commas, such as 2.9,2.11: a file for each, <name>.torch2.9.so; that of "
        "the environment unless told",
    )
    build.add_argument(
        "--debug", action="store_true", help="debugging information, no optimisation"
    )
    build.add_argument("--verbose", action="store_true", help="show commands and all they print")
    build.set_defaults(run=_build)

    fetch = commands.add_parser(
        "fetch-pytorch",
        help="download what building for versions of PyTorch needs",
        description="Prints, for each version, a folder with the headers and libraries that "
        "kernels for it are built with: of this environment's PyTorch, or from the wheel that pip "
        "downloads, of which headers and the names in the libraries are kept.",
    )
    fetch.add_argument("version", nargs="+", help="such as 2.11")
    fetch.set_defaults(run=_fetch_pytorch)

    prepare = commands.add_parser(
        "prepare-mindspore",
        help="compile what calls kernels quickly in MindSpore's PyNative mode",
        description="Compiles the native caller for this environment's MindSpore and Python, once "
        "for each user: kernels are then called in PyNative mode in a tenth of the time. It takes "
        "15 seconds of a processor and 1.1 GiB of memory.",
    )
    prepare.add_argument("--verbose", action="store_true", help="show commands and all they print")
    prepare.set_defaults(run=_prepare_mindspore)
    return parser


class _Print(argparse.Action):
    """Prints what a function returns, and ends the process."""

    def __init__(self, option_strings: Sequence[str], dest: str, function: Any, help: str):
        super().__init__(option_strings, dest, nargs=0, help=help)
        self._function = function

    def __call__(self, parser: argparse.ArgumentParser, *_: Any, **__: Any) -> None:
        try:
            print(self._function(), flush=True)
        except FileNotFoundError as error:
            parser.exit(1, f"aten-bridge: {error}\n")
        parser.exit()


def _new(options: argparse.Namespace) -> int:
    name = options.name
    if not re.fullmatch(r"[a-z][a-z0-9_]*[a-z0-9]", name):
        raise ValueError(
            "expected a name of two or more small letters, digits and, between them, underscores, "
            f"got {format_value(name)}"
        )
    if keyword.iskeyword(name) or name in sys.stdlib_module_names or name in _TAKEN:
        raise ValueError(
            "expected a name that is neither a keyword nor a module of Python's, nor the name of a "
            f"package that this one uses, got {name!r}; {name}_ops is one"
        )
    folder = Path(options.folder or name)
    if folder.exists() and not folder.is_dir():
        raise FileExistsError(f"{folder}: expected a new or an empty folder, got a file")
    if folder.exists() and any(folder.iterdir()):
        raise FileExistsError(f"{folder}: expected a new or an empty folder, got one with files")
    template = _places.template_dir()
    sources = [path for path in sorted(template.rglob("*")) if path.is_file()]
    for source in sources:
        if "__pycache__" not in source.parts:
            target = folder / str(source.relative_to(template)).replace(TEMPLATE, name)
            text = source.read_text(encoding="utf-8").replace(TEMPLATE, name)
            with _writing(folder):
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(text, encoding="utf-8")
    print(
        f"{folder}: a kernel, swish.cpp, and all that a wheel of it needs. Next:\n"
        f"  cd {folder}\n"
        "  pip install scikit-build-core pytest\n"
        "  pip install --no-build-isolation .\n"
        "  pytest"
    )
    return 0


# Packages that a project of kernels works with.
_TAKEN = {"aten_bridge", "jax", "mindspore", "numpy", "pytest", "tests", "torch"}
TEMPLATE = "my_ops"  # the package's name in it


@contextlib.contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Raises an error that names the path if a file in it cannot be written."""
    try:
        yield
    except OSError as error:
        raise OSError(
            f"{path}: expected a place that can be written to, got the error: {error.strerror}; "
            "name another"
        ) from None


def _check(options: argparse.Namespace) -> int:
    status = 0
    for path in options.library:
        try:
            report = check(path)
        except (ImportError, OSError) as error:
            print(f"aten-bridge: {error}", file=sys.stderr)
            status = 1
            continue
        print("\n".join(report.lines), flush=True)
        status = status if report.is_usable else 1
    return status


def _build(options: argparse.Namespace) -> int:
    from aten_bridge.build import is_name, load

    output = Path(options.output or f"{Path(options.source[0]).stem}.so")
    if output.is_dir():
        output /= f"{Path(options.source[0]).stem}.so"
    if output.suffix != ".so":
        raise ValueError(f"{output}: expected a name that ends in .so")
    if not is_name(output.stem):
        raise ValueError(
            f"{output}: expected a library's name of letters, digits and underscores, got "
            f"{format_value(output.stem)}; say -o <name>.so"
        )
    if not output.parent.is_dir():
        raise FileNotFoundError(f"{output.parent}: expected a folder, got none; make it first")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        path = load(
            output.stem,
            options.source,
            hosts=options.hosts.split(","),
            namespace=options.namespace,
            flags=options.flag,
            include_dirs=options.include,
            libraries=options.library,
            debug=options.debug,
            pytorch=options.pytorch.split(",") if options.pytorch else (),
            verbose=options.verbose,
        )
    for warning in caught:
        print(f"aten-bridge: {warning.message}", file=sys.stderr)
    if not options.pytorch:
        _copy(path, output)
        return 0
    for version, file in library_files(path).items():
        _copy(file, output.with_name(f"{output.stem}.torch{version}.so"))
    output.unlink(missing_ok=True)  # an older one, which would be opened
    return 0


def _copy(file: str, output: Path) -> None:
    with _writing(output):
        _places.put_file(file, output)
    print(output)


def _fetch_pytorch(options: argparse.Namespace) -> int:
    from aten_bridge.build._versions import find, versions

    wanted = versions("fetch-pytorch", options.version)
    folders = {version: find(version) for version in wanted}
    for version in options.version:
        print(folders[version])
    return 0


def _prepare_mindspore(options: argparse.Namespace) -> int:
    try:
        # A host's module, which needs an environment of its own.
        prepare = importlib.import_module("aten_bridge.mindspore._prepare").prepare
    except ImportError as error:
        raise RuntimeError(
            f"expected an environment with MindSpore, got the error: {error}; install it there"
        ) from None
    print(prepare(options.verbose)[0])
    return 0

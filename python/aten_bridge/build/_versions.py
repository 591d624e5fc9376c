"""What compiling and linking needs of versions of PyTorch that the environment does not have.

It comes from the wheels of the package index that pip uses, once for all projects: headers, and the
libraries that kernels link. Of the large ones the names are kept, 1 or 2 percent of them, so that
they can be linked and not loaded.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable
from pathlib import Path

from aten_bridge import _elf
from aten_bridge._pytorch import version_beside
from aten_bridge._text import format_value
from aten_bridge.build._cache import cache_dir, locked, private, private_in
from aten_bridge.build._keys import pytorch
from aten_bridge.build._tools import is_watched, progress

# FindLibtorch.cmake knows a folder by it; written last.
MARK = "build_only"
_HEADER = "include/ATen/core/Tensor.h"
_LARGE = ("libtorch_cpu.so", "libtorch_cuda.so")
_KEPT = re.compile(
    r"torch/(include/.*[^/]|version\.py|lib/lib(c10|torch_cpu|c10_cuda|torch_cuda)\.so)"
)


def versions(name: str, wanted: str | Iterable[str]) -> list[str]:
    """Minor versions, the oldest first, each once."""
    expected = f'{name}: expected minor versions of PyTorch, such as "2.11", got '
    if not isinstance(wanted, Iterable):
        raise TypeError(expected + format_value(wanted))
    found = [wanted] if isinstance(wanted, str) else list(wanted)
    for one in found:
        if not isinstance(one, str):
            raise TypeError(expected + format_value(one))
        if not re.fullmatch(r"[1-9]\d{0,2}\.\d{1,3}", one):
            raise ValueError(expected + format_value(one))
    return sorted(set(found), key=lambda one: [int(part) for part in one.split(".")])


def requirement(pytorch: str | Iterable[str]) -> str:
    """What a package of libraries for these versions requires: torch>=2.9,!=2.10.*,<2.12."""
    wanted = versions("requirement", pytorch)
    if not wanted:
        raise ValueError("requirement: expected minor versions of PyTorch, got none")
    first, last = (one.split(".") for one in (wanted[0], wanted[-1]))
    if first[0] != last[0]:  # how many minor versions a major one has, nobody knows
        raise ValueError(
            f"requirement: expected versions with one number before the point, got {wanted[0]} and "
            f"{wanted[-1]}"
        )
    between = (f"{first[0]}.{minor}" for minor in range(int(first[1]), int(last[1])))
    missing = "".join(f"!={one}.*," for one in between if one not in wanted)
    return f"torch>={wanted[0]},{missing}<{last[0]}.{int(last[1]) + 1}"


def find(version: str) -> str:
    """The folder of a PyTorch to build with: this environment's, or what is kept of another one.

    Raises FileNotFoundError, with what to do, where there is no wheel of it.
    """
    here, _ = pytorch()
    if here and version_beside(os.path.join(here, "lib/libtorch_cpu.so")) == version:
        return here
    kept = private_in(private(cache_dir()), "pytorch")
    folder = kept / f"{version}-{os.uname().machine}"  # machines may share the user's home
    try:
        if not _is_whole(folder, version):
            with locked(kept / f"{folder.name}.lock"):
                if not _is_whole(folder, version):
                    _download(version, folder)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise FileNotFoundError(
            f"PyTorch {version}: expected a folder to keep 55 MB in, and room for a wheel while it "
            f"is downloaded, got the error: {error}; ATEN_BRIDGE_CACHE_DIR names another folder"
        ) from error
    return str(folder)


def _is_whole(folder: Path, version: str) -> bool:
    """Whether nothing of it is missing, as cleaners of caches leave folders."""
    libraries = ["libc10.so", "libtorch_cpu.so"]
    if _has_cuda(folder):
        libraries += ["libc10_cuda.so", "libtorch_cuda.so"]
    files = (folder / MARK, folder / _HEADER, *(folder / "lib" / name for name in libraries))
    is_there = all(file.is_file() for file in files)
    return is_there and version_beside(str(folder / "lib/libtorch_cpu.so")) == version


def _has_cuda(folder: Path) -> bool:
    """Whether the Python package of that PyTorch says so."""
    try:
        return re.search(r"^cuda\b[^=]*= '", (folder / "version.py").read_text(), re.M) is not None
    except (OSError, UnicodeDecodeError):
        return False


def _download(version: str, folder: Path) -> None:
    if importlib.util.find_spec("pip") is None:
        raise FileNotFoundError(
            f"PyTorch {version}: expected pip, which downloads it, got none in this environment; "
            "python -m ensurepip"
        )
    for left in folder.parent.glob(f"{folder.name}.*/"):  # a download was ended
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f"{folder.name}.") as name:
        below = Path(name)
        command = [
            *(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"),
            *("--no-deps", "--no-cache-dir", "--only-binary=:all:", "-d", name),
            f"torch=={version}.*",
        ]
        # pip writes what it has so far there, too.
        environment = {**os.environ, "TMPDIR": name}
        if not is_watched():
            what = f"aten_bridge: PyTorch {version}: downloading 0.5 to 0.9 GB"
            print(what, file=sys.stderr, flush=True)
        with progress(lambda: f"downloading PyTorch {version}, {_megabytes(below)} MB"):
            done = subprocess.run(
                command,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
            )
        wheels = list(below.glob("*.whl"))
        if done.returncode != 0 or len(wheels) != 1:
            raise FileNotFoundError(_no_wheel(version, done.stderr))
        size = _megabytes(below)
        made = below / "made"
        _extract(wheels[0], made)
        (made / MARK).write_text("Headers, and names to link. Nothing here can be loaded.\n")
        if not _is_whole(made, version):
            raise FileNotFoundError(
                f"PyTorch {version}: expected {wheels[0].name} to have headers, libc10.so, "
                "libtorch_cpu.so, those of CUDA if it is for CUDA, and its version, got one that "
                "lacks some"
            )
        shutil.rmtree(folder, ignore_errors=True)  # what an interrupted one left
        made.rename(folder)
    print(
        f"aten_bridge: PyTorch {version}: downloaded {size} MB, kept {_megabytes(folder)} MB of "
        f"headers and names in {folder}",
        file=sys.stderr,
    )


def _no_wheel(version: str, output: str) -> str:
    python = f"Python {sys.version_info[0]}.{sys.version_info[1]}"
    available = re.search(r"from versions: (.*)\)", output)
    minors = dict.fromkeys(re.findall(r"\b(\d+\.\d+)\.\d+", available[1] if available else ""))
    if not minors:  # no network, or an index without PyTorch
        lines = output.strip().splitlines() or ["nothing was said"]
        first = next((one for one in lines if one.startswith(("WARNING: ", "ERROR: "))), lines[-1])
        return f"PyTorch {version}: expected a wheel from pip's package index, got none; {first}"
    return (
        f"PyTorch {version}: expected a wheel for {python}, got those of {', '.join(minors)}; "
        "leave it out, or build with another Python"
    )


def _megabytes(folder: Path) -> int:
    sizes = []
    for path in folder.rglob("*"):
        try:
            sizes.append(path.stat().st_size)
        except FileNotFoundError:  # pip moves files meanwhile
            continue
    return round(sum(sizes) / 1e6)


def _extract(wheel: Path, folder: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if ".." not in name.split("/") and _KEPT.fullmatch(name):
                target = folder / name.removeprefix("torch/")
                target.parent.mkdir(parents=True, exist_ok=True)
                with archive.open(name) as source, target.open("wb") as file:
                    shutil.copyfileobj(source, file, 2**20)
    for library in (folder / "lib" / name for name in _LARGE):
        if library.is_file():
            names = folder / "lib/names"
            keep_names(library, names)
            names.rename(library)


# ===--- a library to link ---===

_NOBITS = 8
_NAMES = (
    *(".dynsym", ".dynstr", ".dynamic", ".hash", ".gnu.hash", ".gnu.version", ".gnu.version_d"),
    *(".gnu.version_r", ".shstrtab"),
)


def keep_names(library: Path, copy: Path) -> None:
    """A copy that a linker takes for the library, and the dynamic linker refuses."""
    with _elf.read(str(library)) as file:
        kept = {i for i, one in enumerate(file.iter_sections()) if one.name in _NAMES}
    with library.open("rb") as source, copy.open("wb") as target:
        header = bytearray(source.read(64))
        table_offset = struct.unpack_from("<Q", header, 40)[0]
        entry_size, count = struct.unpack_from("<2H", header, 58)
        source.seek(table_offset)
        table = bytearray(source.read(entry_size * count))
        target.write(header)
        for i in range(count):
            entry = i * entry_size
            offset, size = struct.unpack_from("<2Q", table, entry + 24)
            if i in kept:
                source.seek(offset)
                target.write(bytes(-target.tell() % 16))
                struct.pack_into("<Q", table, entry + 24, target.tell())
                target.write(source.read(size))
            elif struct.unpack_from("<I", table, entry + 4)[0]:
                struct.pack_into("<I", table, entry + 4, _NOBITS)
        target.write(bytes(-target.tell() % 16))
        struct.pack_into("<Q", header, 40, target.tell())
        struct.pack_into("<Q", header, 32, 0)  # no segments
        struct.pack_into("<H", header, 56, 0)
        target.write(table)
        target.seek(0)
        target.write(header)

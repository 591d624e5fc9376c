"""The cache's folder, and files in it that other processes read meanwhile."""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from aten_bridge._text import is_utf8


def cache_dir() -> Path:
    """Where built libraries are kept: $ATEN_BRIDGE_CACHE_DIR, else aten_bridge in the user's cache.

    It may be removed at any time when nobody builds.
    """
    # platformdirs 4.14 would be a dependency for one line of this.
    named, caches = map(os.environ.get, ("ATEN_BRIDGE_CACHE_DIR", "XDG_CACHE_HOME"))
    try:
        if named:
            folder = Path(named).expanduser()
        else:
            folder = (Path(caches) if caches else Path.home() / ".cache") / "aten_bridge"
    except RuntimeError:
        raise FileNotFoundError(
            f"{named!r}: expected a folder for what is built, got the home of a user who has "
            "none; name another with ATEN_BRIDGE_CACHE_DIR"
            if named
            else "expected a home folder for what is built, got none; name a folder with "
            "ATEN_BRIDGE_CACHE_DIR"
        ) from None
    folder = folder.absolute()
    if not is_utf8(str(folder)):
        raise ValueError(
            f"{str(folder)!r}: expected a folder in UTF-8 for what is built; name another with "
            "ATEN_BRIDGE_CACHE_DIR"
        )
    return folder


def private(folder: Path) -> Path:
    """The folder, made where it is not there; raises PermissionError if others may write to it.

    Raises OSError where it cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        status = folder.stat()
    except OSError as error:
        exists = isinstance(error, FileExistsError)  # as something else
        got = "what is no folder" if exists else f"the error: {error.strerror}"
        raise OSError(
            f"{folder}: expected a folder for what is built, got {got}; name another with "
            "ATEN_BRIDGE_CACHE_DIR"
        ) from None
    if status.st_uid != os.getuid() or status.st_mode & 0o022:
        raise PermissionError(
            f"{folder}: expected a folder that nobody else can write to, since the libraries in it "
            "are loaded as code, got one of another user or with write permission for others; "
            f"chmod -R go-w {folder}, or name another with ATEN_BRIDGE_CACHE_DIR"
        )
    return folder


def private_in(folder: Path, *names: str) -> Path:
    """A folder in that one, each on the way as private: with a umask of 002 a group could write."""
    for name in names:
        folder = private(folder / name)
    return folder


def write(path: Path, content: bytes, mode: int = 0o644) -> None:
    """Writes the file at once, for those who read it meanwhile; one of the same content stays."""
    if path.is_file() and path.read_bytes() == content:
        return
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        file.write(content)
        os.fchmod(file.fileno(), mode)
    os.replace(file.name, path)


@contextlib.contextmanager
def locked(path: Path) -> Iterator[int]:
    """Waits until no process or thread has the lock.

    Who has the file's number, as the compilers that are started with it, keeps the lock: one whose
    Python was killed goes on alone. A process that was forked meanwhile does not keep it.
    """
    # filelock 4.3 keeps the number to itself, and compilers could not have it.
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        try:
            yield file.fileno()
        finally:
            fcntl.flock(file, fcntl.LOCK_UN)


def time_of_now(folder: Path) -> int:
    """The file system's time of now, which need not be the system's."""
    (folder / "now").touch()
    return time_of_change(str(folder / "now"))


def time_of_change(path: str) -> int:
    """When the file was last written or replaced, whatever its own date says; 0: it is gone."""
    try:
        return os.stat(path).st_ctime_ns
    except OSError:
        return 0

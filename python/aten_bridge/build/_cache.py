"""The cache's folder, and files in it that other processes read meanwhile."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def cache_dir() -> Path:
    """Where built libraries are kept: $ATEN_BRIDGE_CACHE_DIR, else aten_bridge in the user's cache.

    It may be removed at any time when nobody builds.
    """
    named = os.environ.get("ATEN_BRIDGE_CACHE_DIR")
    if named:
        return Path(named).expanduser().absolute()
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(caches).absolute() / "aten_bridge"


def private(folder: Path) -> Path:
    """The folder, made where it is not there; raises PermissionError if others may write to it."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    status = folder.stat()
    if status.st_uid != os.getuid() or status.st_mode & 0o022:
        raise PermissionError(
            f"{folder}: expected a folder that nobody else can write to, since the libraries in it "
            "are loaded as code, got one of another user or with write permission for others; "
            f"chmod go-w {folder}, or name another with ATEN_BRIDGE_CACHE_DIR"
        )
    return folder


def write(path: Path, content: bytes, mode: int = 0o644) -> None:
    """Writes the file at once, for whoever reads it meanwhile; one of the same content stays."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_file() and path.read_bytes() == content:
        return
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        file.write(content)
        os.fchmod(file.fileno(), mode)
    os.replace(file.name, path)

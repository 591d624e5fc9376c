"""Finds or makes the Python environment that examples and tests run in.

    python python_environment.py <directory> <requirements.txt> <result file> [<package> ...]

Writes the path of the interpreter to use to the result file: the running one if its environment
has what is needed (nothing is downloaded then), else the one of a private virtual environment in
<directory>, which uv fills with what the lock file beside requirements.txt names. Needed are the
PyTorch and MindSpore of requirements.txt, or near ones, and the packages named, in its versions;
where it names no PyTorch, everything in it. Prints a sentence and exits with 1 if it cannot.
"""

import ast
import contextlib
import fcntl
import hashlib
import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

# pip's settings that say where packages are, by uv's names for them.
SETTINGS = {
    "cert": "SSL_CERT_FILE",
    "default-timeout": "UV_HTTP_TIMEOUT",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "index-url": "UV_DEFAULT_INDEX",
    "trusted-host": "UV_INSECURE_HOST",
}


def installed_version(distribution):
    """The version of an installed distribution, as text; None if it is missing."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def pinned_in(requirements):
    """The versions that a file pins, by package."""
    return dict(re.findall(r"^([\w.-]+)==([\w.]+)", requirements.read_text(), re.MULTILINE))


def lacking(pinned, packages):
    """Why the running environment cannot be used; empty if it can."""
    hosts = [name for name in ("torch", "mindspore") if name in pinned]
    if missing := [name for name in hosts if installed_version(name) is None]:
        return "it has no " + " and no ".join(missing)
    if hosts and tuple(map(int, installed_version("torch").split(".")[:2])) < (2, 2):
        return "its PyTorch is older than 2.2"  # the examples do not compile
    if "mindspore" in hosts:
        if not installed_version("mindspore").startswith("2.10."):
            return "its MindSpore is not 2.10"
        if (installed_version("numpy") or "2.").startswith("2."):
            return "MindSpore 2.10 needs numpy 1.x"
    for package in packages if hosts else sorted(pinned):
        if installed_version(package) != pinned[package]:
            return f"it has no {package} {pinned[package]}"
    return ""


@contextlib.contextmanager
def locked(directory):
    """Keeps other processes from making the environment: build folders may share it."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    with open(f"{directory}.lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"Waiting for another process, which makes {directory} ...", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def make(directory, requirements):
    """Makes the private environment, unless it is there and has what the lock file names."""
    lock = requirements.with_suffix(".lock")
    python, stamp = directory / "bin/python", directory / "complete"
    wanted = hashlib.sha256(lock.read_bytes()).hexdigest()
    works = [python, "-c", "import uv"]
    if stamp.is_file() and stamp.read_text() == wanted and run(works, quiet=True):
        return python
    has_hosts = "torch" in pinned_in(requirements)
    if has_hosts and not (3, 11) <= sys.version_info[:2] <= (3, 12):
        sys.exit(
            "aten_bridge: Python 3.11 or 3.12 is needed (the lock file is for these), and "
            f"{sys.executable} is {sys.version_info[0]}.{sys.version_info[1]}; install one of them "
            "and name it with -DPython3_EXECUTABLE=<path>."
        )
    print(
        f"Making a private environment with the packages of {lock} in {directory} ...", flush=True
    )
    if not run([sys.executable, "-m", "venv", "--clear", directory]):
        sys.exit(
            "aten_bridge: no virtual environment could be made; the reason stands above. Debian "
            "and Ubuntu have the module venv in a package of its own: apt install python3-venv."
        )
    pip = [python, "-m", "pip", "--disable-pip-version-check"]
    listed = subprocess.run([*pip, "config", "list"], stdout=subprocess.PIPE, text=True).stdout
    sync = [python, "-m", "uv", "pip", "sync", "--python", python, lock]
    own = {**os.environ, "PIP_USER": "0"}
    has_uv = run([*pip, "install", "--quiet", f"uv=={pinned_in(lock)['uv']}"], env=own)
    is_done = has_uv and run(sync, env={**uv_settings(listed), **own})
    if not (is_done or run([*pip, "install", "-r", lock], env=own)):  # by settings that uv lacks
        sys.exit(
            f"aten_bridge: the packages of {lock} could not be installed in {directory}; the "
            "reason stands above. Connect to the internet, or activate an environment that has "
            f"what {requirements} names."
        )
    stamp.write_text(wanted)
    return python


def run(command, quiet=False, **options):
    """Whether a command succeeds; it prints what it does."""
    if quiet:
        options = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    try:
        return subprocess.run([str(word) for word in command], **options).returncode == 0
    except OSError:
        return False


def uv_settings(listed):
    """The variables that tell uv what `pip config list` has printed.

    What is set for a command stands before what is global, and environment variables before both,
    as in pip, which skips empty ones.
    """
    sections = ("global", "install", ":env:")
    found = re.findall(r"^(global|install|:env:)\.([\w-]+)=(.+)$", listed, re.MULTILINE)
    separators = {"find-links": ","}  # between several
    return {
        SETTINGS[key]: separators.get(key, " ").join(ast.literal_eval(text).split())
        for _, key, text in sorted(found, key=lambda one: sections.index(one[0]))
        if key in SETTINGS and ast.literal_eval(text)
    }


def main(directory, requirements, result_file, *packages):
    reason = lacking(pinned_in(Path(requirements)), packages)
    python = sys.executable
    if reason:
        with locked(Path(directory)):
            python = make(Path(directory), Path(requirements))
    place = f"{directory} ({sys.prefix}: {reason})" if reason else sys.prefix
    print(f"Using the Python environment in {place}.")
    Path(result_file).write_text(str(python))


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Finds or makes the Python environment that examples and tests run in.

    python python_environment.py <directory> <requirements.txt> <result file> [<package> ...]

Writes the path of the interpreter to use to the result file: the running one if its environment
has PyTorch and MindSpore already, and the packages named in the versions of requirements.txt
(nothing is downloaded then), else the one of a private virtual environment in <directory>, which is
made once. Where requirements.txt names no PyTorch, none is asked for, nor is MindSpore: the
running environment is taken if it has everything in the file, in its versions. Prints a sentence
and exits with 1 if it cannot.

Where requirements.txt pins uv, that installs the others, in a fraction of pip's time; pip installs
them where uv fails, or where pip is set to something that uv lacks.

Standard library only, and syntax of Python 3.6, so that an old interpreter can say so.
"""

import ast
import fcntl
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys

# MindSpore 2.10.0 has wheels for Python 3.9 to 3.12, PyTorch 2.11.0 for 3.10 and newer.
OLDEST_PYTHON = (3, 10)
NEWEST_PYTHON = (3, 12)
# Measured: 7.4 GiB installed, which uv's cache on the same disk shares; with pip 3.4 GiB of wheels,
# in its temporary folder and cache, too. Those of the preset `site`: 0.2 and 0.04 GiB.
NEEDED_GIB = 12
NEEDED_GIB_WITHOUT_PYTORCH = 1

# What a failed pip writes to its log, and the sentence for it.
PIP_FAILURES = (
    (
        r"No space left on device",
        "the disk is full; about {needed} GiB are needed in {directory}",
    ),
    (
        r"NewConnectionError|NameResolutionError|ConnectTimeout|ProxyError|Max retries exceeded"
        r"|Network is unreachable|Temporary failure in name resolution",
        "the package index could not be reached; connect to the internet, or activate an"
        " environment that has {packages}",
    ),
    (
        r"No matching distribution found for (?P<package>\S+)",
        "there is no {package} for this Python and this machine{hosts}",
    ),
)


# pip's settings that uv has too, with its names, and those that mean nothing to it.
UV_SETTINGS = {
    "cert": "SSL_CERT_FILE",
    "default-timeout": "UV_HTTP_TIMEOUT",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "index-url": "UV_DEFAULT_INDEX",
    "timeout": "UV_HTTP_TIMEOUT",
}
UV_SEPARATORS = {"extra-index-url": " ", "find-links": ","}  # of several
NOT_FOR_UV = (
    "break-system-packages",
    "config-file",
    "disable-pip-version-check",
    "no-color",
    "no-input",
    "progress-bar",
    "retries",
    "root-user-action",
    "user",
)


class EnvironmentFailure(Exception):
    """A sentence for the user."""


def version_of(package):
    """Version of an installed package of the running interpreter, as a tuple; None if missing.

    Does not import the package: that takes seconds for PyTorch and MindSpore.
    """
    try:
        from importlib import metadata

        version = metadata.version(package)
    except ImportError:  # not installed, or a Python before 3.8, which has no metadata
        return None
    if importlib.util.find_spec(package) is None:
        return None
    return tuple(int(part) for part in re.findall(r"\d+", version.split("+")[0])[:3])


def unsuitable():
    """Why the running interpreter's own environment cannot be used; empty if it can."""
    torch, mindspore, numpy = (version_of(name) for name in ("torch", "mindspore", "numpy"))
    if torch is None or mindspore is None:
        missing = [name for name, v in (("torch", torch), ("mindspore", mindspore)) if v is None]
        return "it has no " + " and no ".join(missing)
    if torch < (2, 2):  # whose optional is not std::optional: the examples do not compile
        return "its PyTorch is older than 2.2"
    if mindspore[:2] != (2, 10):
        return "its MindSpore is not 2.10"
    if numpy is None or numpy >= (2,):
        return "MindSpore 2.10 needs numpy 1.x"
    return ""


def pinned_in(requirements):
    """The versions that requirements.txt pins, by package."""
    with open(requirements) as file:
        return dict(re.findall(r"^([\w-]+)==([\w.]+)", file.read(), re.MULTILINE))


def lacking(requirements, packages):
    """Why it cannot be used by those who need these packages as requirements.txt has them."""
    pinned = pinned_in(requirements)
    if "torch" not in pinned:
        return lacking_distributions(pinned)
    for package in packages:
        wanted = tuple(int(part) for part in re.findall(r"\d+", pinned[package])[:3])
        if version_of(package) != wanted:
            return "it has no {} {}".format(package, pinned[package])
    return ""


def lacking_distributions(pinned):
    """Why it cannot be used by those who need all these distributions, as pip names them."""
    for package in sorted(pinned):
        if installed_version(package) != pinned[package]:
            return "it has no {} {}".format(package, pinned[package])
    return ""


def installed_version(distribution):
    """None if it is missing."""
    try:
        from importlib import metadata

        return metadata.version(distribution)
    except ImportError:  # not installed, or a Python before 3.8, which has no metadata
        return None


def check_python(has_hosts):
    if not has_hosts:
        if sys.version_info[:2] < OLDEST_PYTHON:
            raise EnvironmentFailure(
                "Python 3.10 or newer is needed, and {} is {}.{}; install one and name it with"
                " -DPython3_EXECUTABLE=<path>".format(sys.executable, *sys.version_info[:2])
            )
    elif not OLDEST_PYTHON <= sys.version_info[:2] <= NEWEST_PYTHON:
        raise EnvironmentFailure(
            "Python 3.10, 3.11 or 3.12 is needed (for no other are there wheels of both MindSpore"
            " 2.10.0 and PyTorch 2.11.0), and {} is {}.{}; install one of them and name it with"
            " -DPython3_EXECUTABLE=<path>".format(sys.executable, *sys.version_info[:2])
        )


def explain(log, directory, requirements):
    """The sentence for what pip wrote to its log."""
    try:
        with open(log, errors="replace") as file:
            text = file.read()
    except OSError:
        text = ""
    has_hosts = "torch" in pinned_in(requirements)
    words = {
        "directory": directory,
        "needed": NEEDED_GIB if has_hosts else NEEDED_GIB_WITHOUT_PYTORCH,
        "packages": "PyTorch and MindSpore" if has_hosts else "what {} names".format(requirements),
        "hosts": "; MindSpore 2.10.0 has wheels for Linux on x86-64 and arm64" if has_hosts else "",
    }
    for pattern, sentence in PIP_FAILURES:
        match = re.search(pattern, text)
        if match:
            return sentence.format(**words, **match.groupdict())
    return "pip failed; its log is {}".format(log)


def is_complete(python, stamp, wanted, pinned):
    """Whether a private environment for these requirements is there and works."""
    try:
        with open(stamp) as file:
            if file.read() != wanted:
                return False
        probe = "from importlib.metadata import version as v; [v(p) for p in {}]".format(
            sorted(pinned)
        )
        return (
            subprocess.run([python, "-I", "-c", probe], stderr=subprocess.DEVNULL).returncode == 0
        )
    except OSError:
        return False


def make(directory, requirements):
    """Makes the private environment unless it is there, complete and for these requirements."""
    pinned = pinned_in(requirements)
    check_python("torch" in pinned)
    python = os.path.join(directory, "bin", "python")
    stamp = os.path.join(directory, "complete")
    with open(requirements, "rb") as file:
        wanted = hashlib.sha256(file.read()).hexdigest()
    if is_complete(python, stamp, wanted, pinned):
        return python
    os.makedirs(os.path.dirname(os.path.abspath(directory)), exist_ok=True)
    with open(directory + ".lock", "w") as lock:  # released when the file is closed
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("Another run is making the private environment; waiting for it ...", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        if not is_complete(python, stamp, wanted, pinned):
            install(directory, requirements, python, "torch" in pinned)
            with open(stamp, "w") as file:
                file.write(wanted)
    return python


def install(directory, requirements, python, has_hosts):
    """Makes the private environment anew and installs the packages."""
    if os.path.islink(directory):
        os.unlink(directory)
    elif os.path.exists(directory):
        shutil.rmtree(directory)
    temporary = os.path.join(directory, "tmp")  # so that one disk has to have room
    os.makedirs(temporary)
    free = shutil.disk_usage(directory).free / 2**30
    needed = NEEDED_GIB if has_hosts else NEEDED_GIB_WITHOUT_PYTORCH
    if free < needed:
        raise EnvironmentFailure(
            "the disk is too full for the private environment: {} needs {} GiB and has"
            " {:.1f} GiB".format(directory, needed, free)
        )
    print(
        "Making a private environment with the packages of {} in {}: once, about {} to"
        " download ...".format(
            os.path.basename(requirements), directory, "4 GiB" if has_hosts else "40 MiB"
        ),
        flush=True,
    )
    made = subprocess.run(
        [sys.executable, "-m", "venv", directory], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    if made.returncode != 0:
        output = made.stdout.decode(errors="replace").strip()
        if "ensurepip" in output:
            raise EnvironmentFailure(
                "this Python cannot make virtual environments; install its venv module"
                " (Debian, Ubuntu: apt install python3-venv)"
            )
        raise EnvironmentFailure(
            "no virtual environment could be made: {}".format(output.split("\n")[-1])
        )
    log = os.path.join(directory, "pip.log")
    pip = [python, "-m", "pip", "install", "--disable-pip-version-check", "--log", log]
    settings = dict(os.environ, TMPDIR=temporary, PIP_USER="0")
    uv = pinned_in(requirements).get("uv")
    if uv and subprocess.run([*pip, "--quiet", "uv==" + uv], env=settings).returncode != 0:
        raise EnvironmentFailure(explain(log, directory, requirements))
    is_done = uv and install_by_uv(directory, python, requirements, settings)
    if not is_done and subprocess.run([*pip, "-r", requirements], env=settings).returncode != 0:
        raise EnvironmentFailure(explain(log, directory, requirements))
    shutil.rmtree(temporary, ignore_errors=True)


def install_by_uv(directory, python, requirements, settings):
    """Whether uv has installed the packages, with pip's settings and its own."""
    listed = subprocess.run([python, "-m", "pip", "config", "list"], stdout=subprocess.PIPE)
    translated = uv_settings(listed.stdout.decode(errors="replace"))
    if listed.returncode != 0 or translated is None:
        return False
    if not is_on_disk_of(directory, uv_cache()):  # where it would be copied instead of linked
        build = os.path.dirname(os.path.abspath(directory))
        translated["UV_CACHE_DIR"] = os.path.join(build, "uv_cache")
    # With bytecode, as pip does: where PYTHONDONTWRITEBYTECODE is set, as on build machines, every
    # process would compile what it imports.
    uv = [python, "-m", "uv", "pip", "install", "--compile-bytecode", "--python", python]
    if subprocess.run([*uv, "-r", requirements], env=dict(translated, **settings)).returncode == 0:
        return True
    print("uv has failed; pip tries ...", flush=True)
    return False


def uv_cache():
    """Where uv keeps what it has unpacked, unless it is told."""
    caches = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(caches, "uv")


def is_on_disk_of(path, other):
    """Whether two places are on one disk, or will be."""

    def disk(place):
        while not os.path.exists(place):
            place = os.path.dirname(place)
        return os.stat(place).st_dev

    return disk(path) == disk(other)


def uv_settings(listed):
    """The environment variables that tell uv what `pip config list` has printed.

    None where uv lacks one of the settings. What is set for a command stands before what is global,
    and environment variables before both, as in pip, which skips empty ones.
    """
    sections = ("global", "install", ":env:")
    found = []
    for line in listed.splitlines():
        name, _, value = line.partition("=")
        section, _, key = name.rpartition(".")
        if section not in sections or key in NOT_FOR_UV or value == "''":
            continue
        try:
            text = ast.literal_eval(value)
        except (SyntaxError, ValueError):
            return None
        if key not in UV_SETTINGS:
            return None
        if key in UV_SEPARATORS:
            text = UV_SEPARATORS[key].join(text.split())
        found.append((sections.index(section), UV_SETTINGS[key], text))
    return {variable: text for _, variable, text in sorted(found)}


def main(directory, requirements, result_file, *packages):
    has_hosts = "torch" in pinned_in(requirements)
    reason = (unsuitable() if has_hosts else "") or lacking(requirements, packages)
    if reason:
        python = make(directory, requirements)
        print("Using the private environment in {} ({}: {}).".format(directory, sys.prefix, reason))
    else:
        python = sys.executable
        used = "PyTorch and MindSpore" if has_hosts else "the Python packages"
        print("Using {} of {}.".format(used, sys.prefix))
    with open(result_file, "w") as file:
        file.write(python)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except EnvironmentFailure as failure:
        sys.exit("aten_bridge: {}.".format(failure))
    except OSError as failure:
        sys.exit("aten_bridge: the private environment could not be made: {}.".format(failure))

"""CMake and Ninja: where they are, what they print, and how long they take."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from aten_bridge._text import format_value


def tool(name: str) -> str:
    """The path of cmake or ninja: of its package from PyPI, else on PATH."""
    folder: str | None = None
    if importlib.util.find_spec(name) is not None:
        module = importlib.import_module(name)
        folder = getattr(module, "CMAKE_BIN_DIR", None) or getattr(module, "BIN_DIR", None)
    path = shutil.which(name, path=folder) if folder else None
    path = path or shutil.which(name)
    if path is None:
        raise FileNotFoundError(
            f"{name}: expected the program, which builds kernels, got none on PATH and no package "
            f"in this environment; pip install {name}"
        )
    return path


def check_nvcc(source: str) -> None:
    """Raises FileNotFoundError unless CMake will find the compiler of CUDA."""
    named = os.environ.get("CUDACXX")
    folder = os.environ.get("CUDA_PATH")
    places = (shutil.which(named or "nvcc"), folder and shutil.which(f"{folder}/bin/nvcc"))
    if not any(places):
        raise FileNotFoundError(
            f"{source}: expected nvcc, which compiles CUDA, got {named or 'none on PATH'}; install "
            "the CUDA toolkit, and put nvcc on PATH or name it with the variable CUDACXX"
        )


def options(verbose: bool) -> list[str]:
    """For ninja, which does not read the variable that CMake has for it."""
    jobs = os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL", "")
    if jobs and not (jobs.isascii() and jobs.isdecimal() and int(jobs) > 0):
        raise ValueError(
            f"CMAKE_BUILD_PARALLEL_LEVEL: expected how many compilers may run at a time, got "
            f"{format_value(jobs)}; correct the variable"
        )
    return ["-v"] * verbose + [f"-j{jobs}"] * bool(jobs)


def run(command: Sequence[object], lock: int, verbose: bool) -> tuple[int, str]:
    """The exit status and what was printed, which is shown too if wanted.

    The processes have the lock's file; they end where this one is interrupted.
    """
    lines = []
    with subprocess.Popen(
        [str(word) for word in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env={**os.environ, "LC_ALL": "C", "NINJA_STATUS": "[%f/%t] "},
        pass_fds=[lock],
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                lines.append(line)
                if verbose:
                    print(line, end="", file=sys.stderr, flush=True)
        except BaseException:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait()
            raise
    return process.returncode, "".join(lines)


_MESSAGE = r":\n((?:\n|  [^\n]*\n)+)"  # after "CMake Error at CMakeLists.txt:4 (project)"
_FUNCTION = re.compile(r"aten_bridge_add_kernel\(\w+\): ")


def message_of_cmake(output: str) -> str:
    """What an error of CMake says, in one line where it is the bridge's."""
    message = re.search("^CMake Error[^\n]*" + _MESSAGE, output, re.M)
    if message is None:
        return f"expected a project that CMake can configure, got\n{output.rstrip()}"
    text = " ".join(message[1].split())
    if function := _FUNCTION.match(text):
        return text[function.end() :]
    _, of_package, reason = text.rpartition("Reason given by package: ")
    if of_package:
        return reason
    text = textwrap.dedent(message[1]).strip()
    return f"expected a project that CMake can configure, got\n{text}"


def warnings_of_cmake(output: str) -> list[str]:
    """What its warnings say, a line each."""
    return [
        " ".join(one.split()) for one in re.findall("^CMake Warning[^\n]*" + _MESSAGE, output, re.M)
    ]


class _Failed(NamedTuple):
    """A program that failed."""

    what: str  # such as "compiler of /a.cpp"
    status: int
    output: list[str]

    def fault(self) -> str:
        """What came, where the program itself does not say it."""
        text = "\n".join(self.output)
        signal_number = self.status - 128
        if signal_number == signal.SIGKILL or _KILLED.search(text):
            return (
                f"the {self.what} killed by signal 9, usually because memory ran out; close other "
                "programs, or compile one source at a time: set CMAKE_BUILD_PARALLEL_LEVEL=1"
            )
        if signal_number > 0 and not text.strip().removeprefix("Terminated"):
            return f"the {self.what} killed by signal {signal_number}; build again"
        if not text.strip():
            return (
                f"exit status {self.status} from the {self.what}, which said nothing; see its "
                "command with verbose=True"
            )
        return ""


_FAILED = re.compile(r"FAILED: (?:\[code=(\d+)\] )?(.*)")
_OF_NINJA = re.compile(r"\[\d+/\d+\] |ninja: (?:Entering directory|build stopped)")
_KILLED = re.compile(r"^Killed$|Killed signal|signal 9\b|unable to execute command: Killed", re.M)


def message_of_ninja(status: int, output: str) -> str:
    """What came, behind "got", where sources could not be built.

    What compilers and linkers said, not their commands. One that was killed says nothing of it, or
    not at which source.
    """
    failed = [_Failed("program ninja", 128 - status if status < 0 else status, [])]
    lines = iter(output.splitlines())
    for line in lines:
        if match := _FAILED.match(line):
            source = re.search(r" -c (\S+)", next(lines, ""))
            what = f"compiler of {source[1]}" if source else f"linker of {match[2].strip()}"
            failed.append(_Failed(what, int(match[1] or 1), []))
        elif _OF_NINJA.match(line) is None:
            failed[-1].output.append(line)
    faults = "; ".join(filter(None, (one.fault() for one in failed[1:] or failed)))
    output = "\n".join(line for one in failed for line in one.output).strip()
    return f" {faults}\n{output}".rstrip() if faults else f"\n{output}"


def is_watched() -> bool:
    """Whether `progress` shows anything: on a terminal, and in a notebook."""
    return sys.stderr.isatty() or "ipykernel" in sys.modules


@contextlib.contextmanager
def progress(what: Callable[[], str], verbose: bool = False) -> Iterator[None]:
    """On a terminal, and in a notebook, what goes on and for how long."""
    if verbose or not is_watched():
        yield
        return
    done = threading.Event()
    begin = time.monotonic()

    def show() -> None:
        text = ""
        while not done.wait(0.5):
            seconds = time.monotonic() - begin
            text = f"aten_bridge: {what()}, {seconds:.0f} s".ljust(len(text))
            print(f"\r{text}", end="", file=sys.stderr, flush=True)
        print("\r" + " " * len(text) + "\r", end="", file=sys.stderr, flush=True)

    thread = threading.Thread(target=show, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()

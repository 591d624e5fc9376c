"""What the header adds to a build: examples/leaky_relu beside the same operator call without it.

    python build_cost.py <build folder> <result.json>

Compiles both sources alternately, with the commands of the build, and looks at the two libraries;
the first source once more for all hosts (ATEN_BRIDGE_COMPILED says for which the bridge is
compiled, see aten_bridge.h), and with all of the bridge in it, as without aten_bridge_add_kernel;
and the second with the header included, but not used. Each is also read without making code of it.
Times are of the processor, so that other programs disturb them little.
"""

import json
import os
import pathlib
import shlex
import statistics
import subprocess
import sys

ROUNDS = 3
# The source in compile_commands.json, and options added to its command.
COMPILED = {
    "leaky_relu": ("leaky_relu", ()),
    "leaky_relu_for_all_hosts": (
        "leaky_relu",
        (
            *("-UATEN_BRIDGE_COMPILED", f"-DATEN_BRIDGE_COMPILED={4 + 8}"),  # PyTorch and JAX
            *("-DATEN_BRIDGE_PYTORCH", '-DATEN_BRIDGE_NAMESPACE="leaky_relu"'),
            "-DATEN_BRIDGE_JAX",
        ),
    ),
    "leaky_relu_header_only": ("leaky_relu", ("-UATEN_BRIDGE_COMPILED",)),
    "leaky_relu_alone": ("leaky_relu_alone", ()),
    "header_unused": ("leaky_relu_alone", ("-include", "aten_bridge.h")),
}
LIBRARIES = ("leaky_relu", "leaky_relu_alone")
# Sections of a library by what they are for; the rest names and binds symbols.
SECTIONS = {
    "code": (".text", ".plt"),
    "unwinding": (".eh_frame", ".gcc_except_table"),
    "constants": (".rodata", ".data"),
}


def commands(build):
    """The folder and the compiler's command of each source of the build."""
    with open(build / "compile_commands.json") as file:
        return {
            pathlib.Path(entry["file"]).stem: (
                pathlib.Path(entry["directory"]),
                shlex.split(entry["command"]),
            )
            for entry in json.load(file)
        }


def compile_once(directory, command, *options):
    """Seconds of processor time and KiB at the peak, of the compiler and all that it starts."""
    words = [*command, *options]
    words[words.index("-o") + 1] = os.devnull
    process = subprocess.Popen(words, cwd=directory)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"build_cost: the compiler failed: {shlex.join(words)}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss


def sections(library):
    """Bytes of each kind."""
    listed = subprocess.run(["size", "-A", library], capture_output=True, text=True, check=True)
    lines = (line.split() for line in listed.stdout.splitlines() if line.startswith("."))
    sizes = [(name, int(size)) for name, size, _ in lines]
    return {
        kind: sum(size for name, size in sizes if name.startswith(prefixes))
        for kind, prefixes in SECTIONS.items()
    }


def main(build, result):
    found = commands(pathlib.Path(build))
    taken = {name: [] for name in COMPILED}
    for _ in range(ROUNDS):
        for name, (source, options) in COMPILED.items():
            seconds, kib = compile_once(*found[source], *options)
            read, _ = compile_once(*found[source], *options, "-fsyntax-only")
            taken[name].append((seconds, read, kib))
    record = {
        name: dict(
            zip(
                ("seconds", "read_seconds", "peak_kib"),
                map(statistics.median, zip(*values, strict=True)),
                strict=True,
            )
        )
        for name, values in taken.items()
    }
    for name in LIBRARIES:
        library = found[name][0] / f"{name}.so"
        record[name]["bytes"] = library.stat().st_size
        record[name]["sections"] = sections(library)
    compiler = found["leaky_relu"][1][0]
    version = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True)
    record["compiler"] = version.stdout.splitlines()[0]
    with open(result, "w") as file:
        json.dump(record, file, indent=1)


if __name__ == "__main__":
    main(*sys.argv[1:])

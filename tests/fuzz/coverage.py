"""Which lines of the header the fuzzers reach: their random inputs, and the files that they kept.

    python coverage.py <include> <folder with *.corpus> <fuzzer>...

clang compiles the fuzzers with -fprofile-instr-generate -fcoverage-mapping. Those lines count
that one of them has code for. Prints the lines that were not reached, and the figure over all
fuzzers, with and without the lines that no host can reach.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

# What no host can reach: a file, a regular expression for the first of its lines, one for the last,
# and why.
UNREACHABLE = []


def find_tool(name, version):
    """LLVM's tool of the compiler's version."""
    found = shutil.which(f"{name}-{version}") or shutil.which(name)
    if found is None:
        sys.exit(f"There is no {name}. Install it (Debian, Ubuntu: apt install llvm-{version}).")
    return found


def run_counted(fuzzer, folder, version, stand_in):
    """Runs a fuzzer on its inputs; returns how often each line was run, as lcov has it.

    Those for CUDA need the stand-in for its runtime.
    """
    name = fuzzer.name.removesuffix("_coverage")
    profile = folder / f"{name}.profraw"
    corpus = folder / f"{name}.corpus"
    preload = {"LD_PRELOAD": str(stand_in)} if name.startswith("cuda_") else {}
    output = subprocess.run(
        [fuzzer, "5000", *([corpus] if corpus.is_dir() else [])],
        env={**os.environ, "LLVM_PROFILE_FILE": str(profile), **preload},
        check=True,
        text=True,
        stdout=subprocess.PIPE,
    ).stdout
    print(f"{name}: {output.strip()}")
    merged = profile.with_suffix(".profdata")
    subprocess.run(
        [find_tool("llvm-profdata", version), "merge", "-sparse", profile, "-o", merged], check=True
    )
    cov = [find_tool("llvm-cov", version), "export", "-format=lcov", "-skip-functions"]
    return subprocess.run(
        [*cov, f"-instr-profile={merged}", fuzzer], check=True, text=True, stdout=subprocess.PIPE
    ).stdout


def counts_by_line(reports, include):
    """{file: {line: count}} of what lies in `include`, of all fuzzers."""
    files = {}
    lines = {}
    for record in "".join(reports).splitlines():
        if record.startswith("SF:"):
            path = Path(record[3:])
            lines = files.setdefault(path, {}) if path.is_relative_to(include) else {}
        elif record.startswith("DA:"):
            line, count = (int(number) for number in record[3:].split(",")[:2])
            lines[line] = max(lines.get(line, 0), count)
    return {path.relative_to(include).as_posix(): lines for path, lines in files.items() if lines}


def excluded_lines(files, include):
    """{file: lines} of UNREACHABLE. Each entry must have lines, none of them reached."""
    excluded = {}
    for name, first, last, _ in UNREACHABLE:
        text = (include / name).read_text(encoding="utf-8").splitlines()
        begins = [i for i, line in enumerate(text, 1) if re.search(first, line)]
        if len(begins) != 1:
            sys.exit(f"coverage.py: {len(begins)} lines of {name} match {first!r}, not one")
        end = next(i for i in range(begins[0], len(text) + 1) if re.search(last, text[i - 1]))
        found = {line for line in range(begins[0], end + 1) if line in files.get(name, {})}
        if not found or any(files[name][line] > 0 for line in found):
            sys.exit(f"coverage.py: {name}: {first!r} is reached, or not compiled; take it out")
        excluded.setdefault(name, set()).update(found)
    return excluded


def ranges(lines):
    """[1, 2, 3, 7] is "1-3, 7"."""
    parts = []
    for line in sorted(lines):
        if parts and parts[-1][1] == line - 1:
            parts[-1][1] = line
        else:
            parts.append([line, line])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in parts)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--llvm", default="14", help="major version of the compiler")
    parser.add_argument("--stand-in", type=Path, help="for the CUDA runtime")
    parser.add_argument("include", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("fuzzers", type=Path, nargs="+")
    arguments = parser.parse_args()
    include = arguments.include.resolve()

    files = counts_by_line(
        [
            run_counted(f.resolve(), arguments.folder, arguments.llvm, arguments.stand_in)
            for f in arguments.fuzzers
        ],
        include,
    )
    excluded = excluded_lines(files, include)
    all_lines = sum(len(lines) for lines in files.values())
    reached = sum(count > 0 for lines in files.values() for count in lines.values())
    reachable = all_lines - sum(len(lines) for lines in excluded.values())
    for name, lines in sorted(files.items()):
        missed = {line for line, count in lines.items() if count == 0}
        missed -= excluded.get(name, set())
        if missed:
            print(f"{name}: {len(missed)} of {len(lines)} not reached: {ranges(missed)}")
    print(f"{reached} of {all_lines} lines reached: {100 * reached / all_lines:.1f} %")
    print(
        f"{reached} of {reachable} that a host can reach: {100 * reached / reachable:.1f} % "
        f"({all_lines - reachable} lines excluded, for the reasons in coverage.py)"
    )


if __name__ == "__main__":
    main()

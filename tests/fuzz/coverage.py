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

# What no host can reach: files, a regular expression for the first line of each place, one for its
# last (none: to the end of the function), and why.
UNREACHABLE = [
    ("*", r"^ *((static|explicit|friend|inline) )*constexpr\b[^=]*\(", None, "run by the compiler"),
    ("tensors/torch.h", r"^    raise\(Status::kAten, ", None, "of another PyTorch in the process"),
    ("call/host.h", r"^  bool has\(const char", r"^  }", "of hosts that are not MindSpore"),
    ("call/host.h", r"^  static (std::uint64_t|NoAttributes|detail::Instance)", None, "likewise"),
    ("call/host.h", r"^  static (int |void\* stream|HostMemory)", None, "likewise"),
    (
        "hosts/pytorch/registry.h",
        r"^  \[\[gnu::cold\]\].* (add_refused|is_taken|print_faults|taken_fault|release|"
        r"release_everywhere)\(",
        None,
        "of a second library",
    ),
    ("hosts/pytorch/registry.h", r"^    library_table\(\).release = ", r"^    };", "likewise"),
    (
        "hosts/introspection/answers.h",
        r"^\[\[gnu::cold\]\] inline const char\* (describe_library|list_failures)\(",
        r"^}",
        "of Python's modules",
    ),
    ("hosts/pytorch/registry.h", r"^      } catch \(const Error", r"^    }$", "of no operator"),
    (
        "call/results.h",
        r" void describe_symbols\(",
        None,
        "of symbols, which Python makes",
    ),
    ("hosts/mindspore/abi.h", r"^  OldStringHeader\* header", None, "of the old C++ ABI"),
]


def find_tool(name, version):
    """LLVM's tool of the compiler's version."""
    found = shutil.which(f"{name}-{version}") or shutil.which(name)
    if found is None:
        sys.exit(f"There is no {name}. Install it (Debian, Ubuntu: apt install llvm-{version}).")
    return found


def run_counted(fuzzer, folder, version, fake_cuda, opened_by_jax=()):
    """Runs a fuzzer on its inputs; returns how often each line was run, as lcov has it.

    Those for CUDA need the fake runtime. What that for JAX runs is in libraries that it
    opens, each of which writes a profile of its own (%m).
    """
    name = fuzzer.name.removesuffix("_coverage")
    libraries = opened_by_jax if name == "jax_fuzz" else ()
    for profile in folder.glob(f"{name}-*.profraw"):  # else the run would be added to it
        profile.unlink()
    corpus = folder / f"{name}.corpus"
    is_cuda = name.startswith("cuda_")  # where a call takes the fake runtime's threads
    preload = {"LD_PRELOAD": str(fake_cuda)} if is_cuda else {}
    output = subprocess.run(
        [fuzzer, "500" if is_cuda else "5000", *([corpus] if corpus.is_dir() else [])],
        env={**os.environ, "LLVM_PROFILE_FILE": str(folder / f"{name}-%m.profraw"), **preload},
        check=True,
        text=True,
        stdout=subprocess.PIPE,
    ).stdout
    print(f"{name}: {output.strip()}")
    merged = folder / f"{name}.profdata"
    profiles = list(folder.glob(f"{name}-*.profraw"))
    subprocess.run(
        [find_tool("llvm-profdata", version), "merge", "-sparse", *profiles, "-o", merged],
        check=True,
    )
    cov = [find_tool("llvm-cov", version), "export", "-format=lcov", "-skip-functions"]
    objects = [f"-object={library}" for library in libraries]
    return subprocess.run(
        [*cov, f"-instr-profile={merged}", fuzzer, *objects],
        check=True,
        text=True,
        stdout=subprocess.PIPE,
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


def end_of_function(text, begin):
    """The line at which what begins at a line (both counted from 1) ends, by its indentation."""
    indent = len(text[begin - 1]) - len(text[begin - 1].lstrip())
    if text[begin - 1].rstrip().endswith(("}", ";")):
        return begin
    for i in range(begin + 1, len(text) + 1):
        line = text[i - 1]
        if len(line) - len(line.lstrip()) == indent and line.lstrip().startswith("}"):
            return i
    return begin


def excluded_lines(files, include):
    """{file: lines} of UNREACHABLE: places none of whose lines is reached."""
    excluded = {}
    for pattern, first, last, reason in UNREACHABLE:
        count = 0
        for name, lines in files.items():
            if not Path(name).match(pattern):
                continue
            text = (include / name).read_text(encoding="utf-8").splitlines()
            for begin in (i for i, line in enumerate(text, 1) if re.search(first, line)):
                end = end_of_function(text, begin)
                if last is not None:
                    behind = range(begin + 1, len(text) + 1)
                    end = next(i for i in behind if re.search(last, text[i - 1]))
                found = {line for line in range(begin, end + 1) if line in lines}
                if not any(lines[line] > 0 for line in found):
                    new = found - excluded.setdefault(name, set())
                    excluded[name] |= new
                    count += len(new)
        print(f"excluded: {count} lines of {pattern}, {first!r}: {reason}")
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
    parser.add_argument("--fake-cuda", type=Path, help="the fake CUDA runtime")
    parser.add_argument(
        "--opened-by-jax", type=Path, action="append", default=[], help="a library of kernels"
    )
    parser.add_argument("include", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("fuzzers", type=Path, nargs="+")
    arguments = parser.parse_args()
    include = arguments.include.resolve()

    files = counts_by_line(
        [
            run_counted(
                f.resolve(),
                arguments.folder,
                arguments.llvm,
                arguments.fake_cuda,
                arguments.opened_by_jax,
            )
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

"""Real programs on the library, beside PyTorch: the table in docs/programs.md.

    python tests/third_party_models/run.py [--write] [--only REGEX] [--kinds float32,training]

Each program has a process of its own, which is forked from one that has imported what all of them
need, for half of a program's time would be that. At most two run at a time, with one thread each.
The exit status says whether every program is right that the page says is right.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import platform
import re
import select
import signal
import sys
import time
from collections.abc import Iterator
from datetime import date
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "programs.md"
BEGIN, END = "<!-- begin: tests/third_party_models/run.py -->\n", "<!-- end -->\n"
WORKERS = 2
LIMIT = 300  # seconds of a program
# Set before NumPy, PyTorch and MindSpore read them.
SETTINGS = {
    "OMP_NUM_THREADS": "1",
    "OMP_WAIT_POLICY": "passive",
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_VERBOSITY": "error",
    "GLOG_v": "3",
    "PYTHONWARNINGS": "ignore",
}


# ===--- processes ---===


def preload() -> None:
    """What every program imports. No operator may run here: MindSpore's threads do not fork."""
    with contextlib.redirect_stdout(sys.stderr):
        for name in ("program", "mindone.transformers", "mindone.diffusers"):
            importlib.import_module(name)


def start(job: tuple[str, str], log: Path) -> tuple[int, int]:
    """The process of a program and the end of a pipe that its answer comes from."""
    reading, writing = os.pipe()
    process = os.fork()
    if process:
        os.close(writing)
        return process, reading
    try:
        os.close(reading)
        os.setsid()
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.chdir(log.parent)  # MindSpore writes reports of its errors
        import program

        with open(writing, "w") as answers:
            json.dump(program.answer(*job), answers)
    finally:
        os._exit(0)  # MindSpore's threads may fail while they end


def run(jobs: list[tuple[str, str]], folder: Path) -> Iterator[dict]:
    """The programs' answers as they come."""
    preload()
    folder.mkdir(parents=True, exist_ok=True)
    waiting, running = list(reversed(jobs)), {}
    while waiting or running:
        while waiting and len(running) < WORKERS:
            job = waiting.pop()
            log = folder.resolve() / f"{job[0]}.{job[1]}.log"
            process, pipe = start(job, log)
            running[pipe] = (job, process, time.monotonic(), [])
        ready, _, _ = select.select(list(running), [], [], 1.0)
        for pipe, (job, process, began, text) in list(running.items()):
            if pipe in ready:
                part = os.read(pipe, 1 << 16)
                text.append(part)
                if part:
                    continue
            elif time.monotonic() - began < LIMIT:
                continue
            else:
                os.kill(process, signal.SIGKILL)
            del running[pipe]
            os.close(pipe)
            _, status = os.waitpid(process, 0)
            yield answer_of(job, b"".join(text), status, time.monotonic() - began)


def answer_of(job: tuple[str, str], text: bytes, status: int, seconds: float) -> dict:
    with contextlib.suppress(json.JSONDecodeError):
        return json.loads(text) | {"wall": seconds}
    ended = os.waitstatus_to_exitcode(status)
    if ended == -signal.SIGKILL and seconds >= LIMIT:
        fault = f"not done in {LIMIT} s"
    else:
        fault = f"the process ended with {ended}"
    return {"name": job[0], "kind": job[1], "stage": "process", "error": fault, "wall": seconds}


# ===--- what is run ---===

# Trained ten steps with every optimizer of program.py.
TRAINED = (
    *("llama", "mistral", "bert", "gpt2", "t5", "whisper", "vit", "resnet"),
    *("UNet2DModel", "SD3Transformer2DModel"),
)
HALF = ("llama", "qwen3", "bert", "gpt2", "t5", "vit", "UNet2DModel", "DiTTransformer2DModel")
GRAPH = (
    *("bert", "gpt2", "roberta", "electra", "distilbert", "vit", "resnet", "convnext"),
    *("AutoencoderKL", "UNet2DModel", "UNet2DConditionModel"),
    *("DiTTransformer2DModel", "SD3Transformer2DModel"),
)
KINDS = {"float32": None, "training": TRAINED, "bfloat16": HALF, "float16": HALF, "graph": GRAPH}

# For results, for gradients, and for a gradient against the largest of its own parameter.
TOLERANCE = {
    "float32": (1e-4, 1e-3, 1e-2),
    "graph": (1e-4, 1e-3, 1e-2),
    "bfloat16": (5e-2, 1e-1, 0.3),
    "float16": (1e-2, 2e-2, 0.1),
}
# For a loss, and for what ten steps changed.
TRAINING_TOLERANCE = (1e-4, 1e-2)


def jobs_of(pattern: str, kinds: list[str]) -> list[tuple[str, str]]:
    import families

    return [
        (name, kind)
        for kind in kinds
        for name in KINDS[kind] or families.FAMILIES
        if re.search(pattern, name)
    ]


def fault(answer: dict) -> str:
    """What is not right in an answer, or nothing."""
    if "error" in answer:
        return f"{answer['stage']}: {first_line(answer['error'])}"
    if answer["kind"] == "training":
        loss, change = TRAINING_TOLERANCE
        wrong = [
            f"{name} ({one['loss']:.0e}, {one['change']:.0e} in {one['where']})"
            for name, one in answer["optimizers"].items()
            if not (one["loss"] <= loss and one["change"] <= change)
        ]
        return ", ".join(wrong)
    limits = zip(("forward", "gradient", "relative"), TOLERANCE[answer["kind"]], strict=True)
    wrong = [
        f"{kind} {answer[kind]:.0e} {answer['where'].get(kind, '')}".strip()
        for kind, limit in limits
        if not answer[kind] <= limit
    ]
    return ", ".join(wrong)


def first_line(text: str) -> str:
    """What an error says first; MindSpore's may begin with frames of dashes."""
    lines = [line.strip() for line in text.splitlines()]
    said = [line for line in lines if line.strip("-") and not line.startswith("- ")]
    if len(said) > 1 and said[0].strip().endswith("Error:"):
        said[0] += " " + said[1]
    return said[0].split(" (input 0")[0][:160] if said else ""


# ===--- the page ---===

RIGHT = "right"


def verdict(answer: dict) -> str:
    import families

    wrong = fault(answer)
    if not wrong:
        return RIGHT
    proof = families.proof(answer["name"], answer["kind"])
    if proof and families.is_expected(answer):
        return f"the program {proof}"
    return f"**wrong**: {wrong}".replace("|", "\\|")


def small(value: float | None) -> str:
    return "" if value is None else f"{value:.0e}" if value else "0"


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def speed(answer: dict, kind: str) -> str:
    if "seconds" not in answer:
        return ""
    ours, theirs = answer["seconds"][kind]
    return f"{ours * 1e3:.0f} / {theirs * 1e3:.1f}"


def page(answers: list[dict]) -> str:
    """The tables of docs/programs.md."""
    import families

    of = {(answer["name"], answer["kind"]): answer for answer in answers}
    text = summary(answers)
    for library in ("transformers", "diffusers"):
        rows = [
            [
                f"`{name}`" + f" ({family.model})" * (name != family.model),
                small(answer.get("forward")),
                small(answer.get("gradient")),
                speed(answer, "forward"),
                speed(answer, "training"),
                verdict(answer),
            ]
            for name, family in sorted(families.FAMILIES.items())
            if family.library == library and (answer := of.get((name, "float32")))
        ]
        head = ["float32", "results", "gradients", "forward, ms", "with gradients, ms", ""]
        text += f"\n### {library}\n\n" + table(head, rows)
    rows = []
    for name in TRAINED:
        answer = of.get((name, "training"))
        if answer is None:
            continue
        cells = [
            f"{small(one['loss'])}, {small(one['change'])}"
            for one in answer.get("optimizers", {}).values()
        ]
        cells += [""] * (len(optimizers()) - len(cells))
        rows.append([f"`{name}`", *cells, verdict(answer)])
    names = [f"`{name}`" for name in optimizers()]
    text += "\n### Training\n\n" + table(["loss, change", *names, ""], rows)
    for title, kinds in (("Half precision", ("bfloat16", "float16")), ("Graph mode", ("graph",))):
        rows = [
            [
                f"`{name}`",
                kind,
                small(answer.get("forward")),
                small(answer.get("gradient")),
                speed(answer, "forward"),
                speed(answer, "training"),
                verdict(answer),
            ]
            for kind in kinds
            for name in KINDS[kind] or ()
            if (answer := of.get((name, kind)))
        ]
        head = ["", "", "results", "gradients", "forward, ms", "with gradients, ms", ""]
        text += f"\n### {title}\n\n" + table(head, rows)
    return text


def optimizers() -> list[str]:
    import program

    return list(program.OPTIMIZERS)


def summary(answers: list[dict]) -> str:
    import families

    lines = []
    for kind in KINDS:
        of_kind = [answer for answer in answers if answer["kind"] == kind]
        if not of_kind:
            continue
        verdicts = [verdict(answer) for answer in of_kind]
        right = verdicts.count(RIGHT)
        differ = sum(one.startswith("the program") for one in verdicts)
        parts = [f"{right} of {len(of_kind)} right"]
        if differ:
            parts.append(f"{differ} differ from PyTorch's program themselves")
        if kind == "float32":
            counted = [families.FAMILIES[answer["name"]].library for answer in of_kind]
            parts.append(
                f"{counted.count('transformers')} of transformers,"
                f" {counted.count('diffusers')} of diffusers"
            )
        lines.append(f"- {kind}: {'; '.join(parts)}.\n")
    return "".join(lines) + f"\n{machine()}\n"


def machine() -> str:
    from importlib.metadata import version

    names = ("mindone", "mindspore", "torch", "transformers", "diffusers")
    versions = ", ".join(f"{name} {version(name)}" for name in names)
    python = platform.python_version()
    return f"{date.today()}; {versions}; Python {python}, one thread for each program."


def said_right() -> set[tuple[str, str]]:
    """The programs that the page says are right, with their kinds."""
    if not PAGE.exists():
        return set()
    text = PAGE.read_text()
    if BEGIN not in text:
        return set()
    found = set()
    kind = ""
    for line in text.split(BEGIN)[1].split(END)[0].splitlines():
        if line.startswith("### "):
            title = line.removeprefix("### ")
            kind = {"Training": "training", "Graph mode": "graph"}.get(title, "float32")
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if cells and cells[-1] == RIGHT:
            name = cells[0].split("`")[1]
            found.add((name, cells[1] if cells[1] in KINDS else kind))
    return found


def write(text: str) -> None:
    before, rest = PAGE.read_text().split(BEGIN)
    PAGE.write_text(before + BEGIN + text + END + rest.split(END)[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="a regular expression of names")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--output", type=Path, default=ROOT / "build/full/programs/results.json")
    parser.add_argument("--write", action="store_true", help="the table into the page")
    options = parser.parse_args()
    if any(os.environ.get(name) is None for name in SETTINGS):
        os.environ.update({name: os.environ.get(name, value) for name, value in SETTINGS.items()})
        os.execv(sys.executable, [sys.executable, *sys.argv])
    began = time.monotonic()
    jobs = jobs_of(options.only, options.kinds.split(","))
    expected = said_right()
    answers, broken, right = {}, [], 0
    if options.output.exists():  # what does not run now keeps its last answers
        answers = {
            (one["name"], one["kind"]): one for one in json.loads(options.output.read_text())
        }
    for count, answer in enumerate(run(jobs, options.output.parent / "logs"), 1):
        answers[answer["name"], answer["kind"]] = answer
        result = verdict(answer)
        if result != RIGHT and (answer["name"], answer["kind"]) in expected:
            broken.append(f"{answer['name']} ({answer['kind']})")
        print(f"{count}/{len(jobs)} {answer['kind']} {answer['name']}: {result}", flush=True)
        right += result == RIGHT
        options.output.write_text(json.dumps(list(answers.values()), indent=1))
    minutes = (time.monotonic() - began) / 60
    print(f"{right} of {len(jobs)} right, {minutes:.1f} minutes; {options.output}")
    if options.write:
        known = set(jobs_of("", list(KINDS)))
        write(page([answer for job, answer in answers.items() if job in known]))
    if broken:
        sys.exit(f"docs/programs.md says that these are right: {', '.join(broken)}.")


if __name__ == "__main__":
    main()

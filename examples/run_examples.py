"""Runs the scripts of several examples in one process, since MindSpore takes seconds to start.

    python run_examples.py <folder> <script> <library> [<script> <library> ...]

Each script runs as a program of its own would, in a folder of its own in <folder>.
"""

import os
import runpy
import sys
from pathlib import Path


def main(folder, *words):
    for script, library in zip(words[::2], words[1::2], strict=True):
        own = Path(folder, Path(script).stem)
        own.mkdir(parents=True, exist_ok=True)
        os.chdir(own)
        sys.argv = [script, library]
        runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    main(*sys.argv[1:])

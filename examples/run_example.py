"""Runs the script of an example, and prints what it printed in one piece: others run beside it.

    python run_example.py <script> [<argument> ...]

Ends as the script does.
"""

import subprocess
import sys


def main(*command):
    done = subprocess.run(
        [sys.executable, *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    sys.stdout.buffer.write(done.stdout)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

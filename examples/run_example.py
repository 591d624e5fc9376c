"""Runs the script of an example, and prints what it printed in one piece: others run beside it.

    python run_example.py <script> [<argument> ...]

Ends as the script does; where a signal ended that, says so, and ends with 128 and its number.
"""

import signal
import subprocess
import sys


def main(*command):
    done = subprocess.run(
        [sys.executable, *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    sys.stdout.buffer.write(done.stdout)
    sys.stdout.buffer.flush()
    if done.returncode >= 0:
        return done.returncode
    number = -done.returncode
    print(f"{command[0]}: ended by {signal.Signals(number).name}", file=sys.stderr, flush=True)
    return 128 + number


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

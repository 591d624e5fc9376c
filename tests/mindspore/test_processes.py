"""Processes of their own: with PyTorch's Python package and without it, and forked ones."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from host import BUILD, LEAKY_RELU

SCRIPT = Path(__file__).parents[2] / "examples/leaky_relu/leaky_relu.py"


@pytest.mark.parametrize(
    "imports",
    [
        "sys.modules['torch'] = None",  # makes its import fail
        "import torch, mindspore",
        "import mindspore, torch",
    ],
    ids=["torch never", "torch first", "torch last"],
)
def test_script_ends_well_with_the_right_result(imports):
    code = f"import runpy, sys; {imports}; runpy.run_path({str(SCRIPT)!r}, run_name='__main__')"
    process = subprocess.run(
        [sys.executable, "-c", code, LEAKY_RELU], capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stderr
    assert process.stdout == (
        "LeakyRelu in MindSpore, graph mode:\n"
        "[[ 0.    -0.001]\n"
        " [-0.002  1.   ]]\n"
        "LeakyRelu in MindSpore, PyNative mode:\n"
        "[[ 0.    -0.001]\n"
        " [-0.002  1.   ]]\n"
    )


# Graph mode reads the source of a gradient from a file, one for each number of inputs.
FORKED = """
import os
import sys

import mindspore as ms

from aten_bridge.mindspore import kernel

ms.set_context(mode=ms.GRAPH_MODE)
library = sys.argv[1]
cube = kernel(f"{library}:Cube", grad="CubeGrad")
matmul = kernel(f"{library}:Matmul", grad="MatmulGrad")
x = ms.Tensor([-1, 2], ms.float32)


def of_one(x):
    return cube(x)


def of_two(x):
    return matmul(x, cube(x))


print(ms.grad(of_one)(x), flush=True)  # which the child would print again
child = os.fork()
if child == 0:
    sys.exit(0)
os.waitpid(child, 0)  # MindSpore 2.10 may end it with a signal, after what Python runs at exit
print(ms.grad(of_two)(x))
"""


def test_a_forked_process_leaves_the_gradients_of_its_parent_alone(tmp_path):
    script = tmp_path / "forked.py"
    script.write_text(FORKED)
    process = subprocess.run(
        [sys.executable, script, BUILD / "tests/test_gradients.so"],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    assert process.stdout == "[ 3. 12.]\n[-4. 32.]\n"
    assert list(tmp_path.glob("aten_bridge_*")) == []


def run_script(tmp_path, text, *arguments, prefix=(sys.executable,)):
    """What a program printed; its errors are shown if it does not end with 0."""
    script = tmp_path / "script.py"
    script.write_text(text)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"  # where msrun finds Python
    process = subprocess.run(
        [*prefix, script, *arguments],
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    return process.stdout


OF_A_NUMBER = """
import sys

import mindspore as ms
import numpy as np

from aten_bridge.mindspore import kernel

CUBE = kernel(f"{sys.argv[1]}:Cube", grad="CubeGrad")


def cube_of(number):
    return CUBE(ms.Tensor(np.array([number], np.float32))).asnumpy().tolist()
"""

FORKED_BEFORE_THE_FIRST_CALL = (
    OF_A_NUMBER
    + """
import os

children = []
for i in range(8):
    child = os.fork()
    if child == 0:
        os._exit(0 if cube_of(i) == [i**3] else 1)
    children.append(child)
print([os.waitpid(child, 0)[1] for child in children])
"""
)


def test_eight_processes_that_were_forked_before_the_first_call(tmp_path):
    library = BUILD / "tests/test_gradients.so"
    assert run_script(tmp_path, FORKED_BEFORE_THE_FIRST_CALL, library) == f"{[0] * 8}\n"


SPAWNED = (
    OF_A_NUMBER
    + """
import multiprocessing


def check(number):
    assert cube_of(number) == [number**3]


if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    children = [context.Process(target=check, args=(number,)) for number in range(8)]
    for child in children:
        child.start()
    for child in children:
        child.join()
    print([child.exitcode for child in children])
"""
)


@pytest.mark.full
def test_eight_spawned_processes(tmp_path):
    library = BUILD / "tests/test_gradients.so"
    assert run_script(tmp_path, SPAWNED, library) == f"{[0] * 8}\n"


# One worker may use a processor, in MindSpore 2.10.
LOADED = (
    OF_A_NUMBER
    + """
import os

from mindspore import dataset


class Source:
    def __len__(self):
        return 4

    def __getitem__(self, i):
        return (np.array(cube_of(i)),)


if __name__ == "__main__":
    loader = dataset.GeneratorDataset(
        Source(),
        ["cube"],
        num_parallel_workers=min(2, os.cpu_count()),
        python_multiprocessing=True,
        shuffle=False,
    )
    print([row[0].asnumpy().tolist() for row in loader.create_tuple_iterator(num_epochs=1)])
"""
)


def test_processes_that_load_data(tmp_path):
    library = BUILD / "tests/test_gradients.so"
    assert run_script(tmp_path, LOADED, library) == "[[0.0], [1.0], [8.0], [27.0]]\n"


# In graph mode too, with a sum over the workers after it.
WORKERS = (
    OF_A_NUMBER
    + """
import mindspore.communication as workers
from mindspore import ops

ms.set_device("CPU")
workers.init()
rank = workers.get_rank()
for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE):
    ms.set_context(mode=mode)
    cube = CUBE(ms.Tensor(np.array([rank], np.float32)))
    print(f"cube of {rank}:", cube, "sum:", ops.AllReduce()(cube), flush=True)
"""
)


@pytest.mark.full
def test_four_workers_of_msrun(tmp_path):
    with socket.socket() as any_port:
        any_port.bind(("127.0.0.1", 0))
        port = any_port.getsockname()[1]
    logs = tmp_path / "logs"
    run_script(
        tmp_path,
        WORKERS,
        BUILD / "tests/test_gradients.so",
        prefix=[
            *["msrun", "--worker_num=4", "--local_worker_num=4", "--join=True"],
            *[f"--master_port={port}", f"--log_dir={logs}"],
        ],
    )
    lines = "".join(log.read_text() for log in logs.glob("worker_*.log")).splitlines()
    assert sorted(line for line in lines if line.startswith("cube of")) == [
        f"cube of {rank}: [{rank**3}.] sum: [36.]" for rank in range(4) for _ in range(2)
    ]


# MindSpore 2.10 itself is wrong where several threads call at once, its own operators too.
BY_TURNS = (
    """
import threading
"""
    + OF_A_NUMBER
    + """
ms.set_context(mode=ms.GRAPH_MODE if sys.argv[2] == "graph" else ms.PYNATIVE_MODE)


class Net(ms.nn.Cell):
    def construct(self, x):
        return CUBE(x)


net = Net()
gradient = ms.grad(net)
lock = threading.Lock()
right = []


def call(number):
    x = ms.Tensor(np.full(3, number, np.float32))
    for _ in range(250):
        with lock:
            results = net(x).asnumpy().tolist() + gradient(x).asnumpy().tolist()
        right.append(results == [number**3] * 3 + [3 * number**2] * 3)


threads = [threading.Thread(target=call, args=(number,)) for number in range(1, 5)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(len(right), all(right))
"""
)


@pytest.mark.full
@pytest.mark.parametrize("of_mode", ["graph", "pynative"])
def test_threads_that_call_alternately(of_mode, tmp_path):
    library = BUILD / "tests/test_gradients.so"
    assert run_script(tmp_path, BY_TURNS, library, of_mode) == "1000 True\n"


# MindSpore 2.10 ends the process itself.
HANGING = """
import sys

import mindspore as ms

from aten_bridge.mindspore import kernel

ms.set_context(mode=ms.GRAPH_MODE if sys.argv[2] == "graph" else ms.PYNATIVE_MODE)
hang = kernel(f"{sys.argv[1]}:Hang")


class Net(ms.nn.Cell):
    def construct(self, x):
        return hang(x)


Net()(ms.Tensor([1.0])).asnumpy()
"""


@pytest.mark.parametrize("of_mode", ["graph", "pynative"])
def test_a_program_whose_kernel_does_not_return_is_ended_by_ctrl_c(of_mode, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(HANGING)
    library = BUILD / "tests/test_mindspore.so"
    with subprocess.Popen(
        [sys.executable, script, library, of_mode], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout.readline() == "hanging\n"
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=120) == -signal.SIGTERM
        finally:
            process.kill()

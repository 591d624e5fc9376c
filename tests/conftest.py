"""What tests of several folders ask for. Not all have MindSpore, or PyTorch."""

import gc
import os
import subprocess
import sys
import threading

import pytest


def pytest_collection_finish():
    """Keeps collections of garbage short: MindSpore (2.10) makes one for each graph."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 100)


@pytest.fixture(scope="session")
def cpu():
    import mindspore as ms

    ms.set_device("CPU")


def end_gradients():
    """MindSpore (2.10) goes on recording after an exception in a gradient."""
    from mindspore.common.api import _pynative_executor

    if _pynative_executor.grad_flag():
        _pynative_executor.clear_res()
        _pynative_executor.set_grad_flag(False)


@pytest.fixture(params=[pytest.param("graph", marks=pytest.mark.graph), "pynative"])
def mode(request, cpu):
    """Both."""
    import mindspore as ms

    before = ms.get_context("mode")
    ms.set_context(mode=ms.GRAPH_MODE if request.param == "graph" else ms.PYNATIVE_MODE)
    yield request.param
    end_gradients()
    ms.set_context(mode=before)


@pytest.fixture
def pynative(cpu):
    """Each operator runs at once where a suite asks for it by the variable."""
    import mindspore as ms

    before = ms.get_context("mode")
    ms.set_context(mode=ms.PYNATIVE_MODE)
    if os.environ.get("ATEN_BRIDGE_TEST_BLOCKING") == "1":
        ms.runtime.launch_blocking()
    yield
    end_gradients()
    ms.set_context(mode=before)


@pytest.fixture
def run_python(library):
    """What a program prints that begins with `library`, a path; it has to end with 0."""

    def run(program, **more):
        done = subprocess.run(
            [sys.executable, "-c", f"library = {str(library)!r}\n{program}"],
            env={**os.environ, **more},
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout

    return run


@pytest.fixture
def mine(request):
    """A library of operators in Python, which goes with the test; its file says the name."""
    import torch

    library = torch.library.Library(request.module.NAMESPACE, "DEF")
    yield library
    library._destroy()


@pytest.fixture
def faults():
    """`faults(run)`: what the error that `run` ends with says of operands and attributes."""
    from aten_bridge.faults import faults_of

    def of(run):
        try:
            run()
        except (RuntimeError, TypeError, ValueError) as error:
            return faults_of(error)
        return pytest.fail("expected an error, got none")

    return of


@pytest.fixture
def plain():
    """`plain(text)`: what a library says otherwise than in an exception or in a process.

    The plugin of the target other_words reads it there.
    """
    return sys.modules["other_words"].plain if "other_words" in sys.modules else str


@pytest.fixture
def in_threads():
    """Runs `work(number)` in four threads at once."""

    def run(work):
        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    return run

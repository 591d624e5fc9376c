"""How many examples are tried, and the processes in which they are."""

import sys
from pathlib import Path

import hypothesis
import pytest

sys.path.append(str(Path(__file__).parents[1] / "mindspore"))  # host.py

import worker as processes
from inputs import TIMES

hypothesis.settings.register_profile(
    "aten_bridge",
    derandomize=TIMES == 1,
    database=None,
    deadline=None,
    print_blob=True,
    suppress_health_check=list(hypothesis.HealthCheck),
)
hypothesis.settings.load_profile("aten_bridge")


@pytest.fixture(scope="session", params=["queues", "blocking"])
def worker(request):
    process = processes.Worker(request.param)
    yield process
    process.end()


@pytest.fixture(scope="session")
def linker():
    """A process without MindSpore, in which libraries are opened."""
    process = processes.Worker()
    yield process
    process.end()


@pytest.fixture(scope="session")
def pytorch():
    """A process in which PyTorch is the host."""
    process = processes.Worker()
    yield process
    process.end()

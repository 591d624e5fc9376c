"""Needs a finished build: JAX is the host of its kernel libraries, on two devices of the CPU."""

import os
import sys
from pathlib import Path

import pytest

_DEVICES = "--xla_force_host_platform_device_count=2"
os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {_DEVICES}"
os.environ["JAX_PLATFORMS"] = "cpu"
sys.path.append(str(Path(__file__).parents[1] / "modules"))  # module_cases.py


def pytest_configure():
    library = Path(os.environ.get("ATEN_BRIDGE_JAX_LIBRARY", ""))
    if not library.is_file():
        raise pytest.UsageError(
            "Set ATEN_BRIDGE_JAX_LIBRARY to test_pytorch.so of a build; the target `jax` does so."
        )


@pytest.fixture(scope="session")
def library():
    return Path(os.environ["ATEN_BRIDGE_JAX_LIBRARY"]).resolve()


@pytest.fixture(scope="session")
def my(library):
    """`my("LeakyRelu", negative_slope=0.2)`: a function of a kernel of the library."""
    from aten_bridge.jax import kernel

    return lambda name, **more: kernel(f"{library}:{name}", **more)


@pytest.fixture
def wide():
    """64 bits for a test."""
    import jax

    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", False)

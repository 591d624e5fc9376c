"""What the tests of install() share."""

import os
import subprocess
import sys

import numpy as np


def assert_equal(result, expected, tolerance=0.0):
    """The same values, shapes and dtypes; several in the same order."""
    if isinstance(expected, (tuple, list)):
        assert len(result) == len(expected)
        for one, other in zip(result, expected, strict=True):
            assert_equal(one, other, tolerance)
        return
    result, expected = result.asnumpy(), expected.detach().numpy()
    assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_allclose(result, expected, rtol=tolerance, atol=tolerance)


def run(*arguments, **variables):
    """Python with these arguments, in a process that has the library's path alone."""
    environment = {k: v for k, v in os.environ.items() if k != "MS_OP_PLUGIN_PATH"}
    environment["ATEN_BRIDGE_MINT"] = os.environ["MS_OP_PLUGIN_PATH"]
    environment.update(variables)
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, env=environment
    )

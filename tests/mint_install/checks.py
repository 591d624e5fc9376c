"""What the tests of install() share."""

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

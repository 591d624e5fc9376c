"""Every dtype that MindSpore and PyTorch have, as input and as output."""

import mindspore as ms
import numpy as np
import pytest
import torch
from host import DTYPES, assert_same, bridge_error, call, custom, pair
from mindspore import nn
from modes import GRAPHS_IN_FULL

pytestmark = pytest.mark.usefixtures("mode")


class Copies(nn.Cell):
    """Copies as they are, to complex128, which holds every value, and from there to a dtype."""

    def __init__(self, dtype):
        super().__init__()
        self.same = custom("Copy")
        self.widen = custom("Copy", out_dtype=ms.complex128)
        self.narrow = custom("Copy", out_dtype=dtype)

    def construct(self, x, wide):
        return self.same(x), self.widen(x), self.narrow(wide)


# The values have other bytes, or another meaning, in every other dtype.
@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("bool", [False, True]),
        ("uint8", [1, 200]),
        ("int8", [1, -100]),
        ("uint16", [1, 40000]),
        ("int16", [1, -10000]),
        ("uint32", [1, 3000000000]),
        ("int32", [1, -1000000000]),
        ("uint64", [1, 2**63]),
        ("int64", [1, -(2**62)]),
        ("float16", [1.5, -65504]),
        ("bfloat16", [1.5, -3]),
        ("float32", [1.5, -(2.0**-100)]),
        ("float64", [1.5, -(2.0**-1000)]),
        ("complex64", [1.5, -2j]),
        ("complex128", [1.5, -2j]),
        ("float8_e4m3fn", [1.5, -448]),
        ("float8_e5m2", [1.5, -57344]),
    ],
)
def test_dtype_is_read_and_written(name, values):
    dtype = getattr(ms, name)
    x = ms.Tensor(values, dtype)
    wide = np.array(values, np.complex128)
    same, widened, narrowed = Copies(dtype)(x, ms.Tensor(wide))

    assert_same(widened, wide)
    # As bytes: NumPy has no bfloat16 and no float8.
    expected = torch.tensor(values, dtype=getattr(torch, name)).view(torch.uint8).numpy().tobytes()
    for copied in (same, narrowed):
        assert copied.dtype == dtype
        assert copied.shape == (2,)
        assert copied.get_bytes() == expected


@GRAPHS_IN_FULL
def test_dtypes_that_pytorch_has_not_are_refused():
    x, y = ms.Tensor([1, 2], ms.hifloat8), ms.Tensor([[1, 2]], ms.qint4x2)

    def run():
        call("AddSubtract", x, y, out_shape=pair, out_dtype=pair)[0].asnumpy()

    assert bridge_error(run) == (
        f'AddSubtract: input 0: expected {DTYPES}, got "hifloat8" with shape [2]\n'
        f'AddSubtract: input 1: expected {DTYPES}, got "int4" with shape [1, 2]\n'
        f'AddSubtract: output 0: expected {DTYPES}, got "hifloat8" with shape [2]\n'
        f'AddSubtract: output 1: expected {DTYPES}, got "int4" with shape [1, 2]'
    )

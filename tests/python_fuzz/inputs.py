"""Generated inputs: texts, values of every Python type, tensors."""

from __future__ import annotations

import decimal
import enum
import fractions
import os

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from worker import Array, Cyclic, Dtype, Hashless, Huge, Nested

# 1: the same examples in each run; more: so many times as many, and others in each.
TIMES = int(os.environ.get("ATEN_BRIDGE_PYTHON_FUZZ_TIMES", "1"))


def examples(count: int, **others: int) -> settings:
    return settings(max_examples=count * TIMES, **others)


# ===--- texts ---===


class Text(str):
    """A str of another type."""


class Number(enum.IntEnum):
    ONE = 1


class Real(float):
    """A float of another type."""


_characters = st.characters(exclude_categories=())  # also lone surrogates
_pieces = st.sampled_from([*"\0:/~\n{' é", "..", "~root", "\udcff", ".so", "kernel.cpp", "%s"])
texts = st.one_of(
    st.text(_characters, max_size=8),
    st.lists(_pieces, max_size=5).map("".join),
    st.sampled_from([("a", 300), ("a/", 3000)]).map(lambda long: long[0] * long[1]),
)


def is_of_bytes(text: str) -> bool:
    """Whether the operating system can have such a name: of bytes, and without NUL."""
    try:
        return "\0" not in os.fsdecode(os.fsencode(text))
    except UnicodeEncodeError:  # surrogates that stand for no byte
        return False


# ===--- values ---===

_integers = st.one_of(
    st.integers(-5, 20),
    st.integers(-(2**63) - 1, 2**63),
    st.sampled_from([2**31, 2**64, 10**400, Huge(5000), Huge(5000, -1)]),
)
_floats = st.one_of(st.floats(), st.floats(width=32), st.sampled_from([1e-46, 3.5e38, -0.0]))
_numpy_dtypes = st.one_of(
    arrays.boolean_dtypes(),
    arrays.integer_dtypes(endianness="?"),
    arrays.floating_dtypes(endianness="?"),
    arrays.complex_number_dtypes(),
    arrays.datetime64_dtypes(),
    arrays.timedelta64_dtypes(),
    arrays.unicode_string_dtypes(max_len=3),
    arrays.byte_string_dtypes(max_len=3),
    st.just(np.dtype("g")),
    st.just(np.dtype([("a", "f4"), ("b", "i8")])),
)
shapes = arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3)
numpy_arrays = arrays.arrays(_numpy_dtypes, shapes)

# Those of MindSpore's that NumPy has, and those that it makes of others.
TENSOR_DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
TENSOR_DTYPES += ["float16", "float32", "float64", "complex64", "complex128"]
_MORE_DTYPES = ["bfloat16", "float8_e4m3fn", "float8_e5m2", "hifloat8"]


def tensors_of(dtypes, shapes=shapes):
    return st.sampled_from(dtypes).flatmap(
        lambda dtype: arrays.arrays(np.dtype(dtype), shapes).map(
            lambda values: Array("mindspore", values)
        )
    )


tensors = st.one_of(
    tensors_of(TENSOR_DTYPES),
    st.builds(
        Array,
        st.just("mindspore"),
        arrays.arrays(np.float32, shapes, elements=st.floats(-100, 100, width=32)),
        st.sampled_from(_MORE_DTYPES),
    ),
)
_torch_tensors = st.builds(Array, st.just("torch"), arrays.arrays(np.float32, shapes))

numbers = st.one_of(
    st.booleans(),
    _integers,
    _floats,
    st.sampled_from([np.int8(3), np.uint64(2**64 - 1), np.float16(0.5), np.float64(1e300)]),
    st.sampled_from([np.longdouble(2) ** 2000, np.bool_(True), Number.ONE, Real(0.5)]),
    st.sampled_from([fractions.Fraction(1, 3), fractions.Fraction(10**400)]),
)
_scalars = st.one_of(
    st.none(),
    numbers,
    texts,
    texts.map(Text),
    texts.map(np.str_),
    st.binary(max_size=3),
    st.complex_numbers(),
    _numpy_dtypes,
    numpy_arrays,
    numpy_arrays.filter(lambda array: array.size > 0).map(lambda array: array.flat[0]),
    tensors,
    _torch_tensors,
    st.sampled_from([decimal.Decimal("1.5"), range(3), object(), {1}, {}, ..., NotImplemented]),
    st.sampled_from([object, int, np.float32, np.generic, np.number, np.ndarray]),
    st.just(np.datetime64("NaT")),
    st.sampled_from([np.array([1, "a", None], object), np.array([[1], [2, 3]], object)]),
    st.sampled_from([Dtype("float32"), Dtype("hifloat8"), Dtype("string"), Dtype("list_")]),
    st.sampled_from([Nested(3), Nested(5000), Cyclic(), Hashless()]),
)
values = st.recursive(
    _scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.text(max_size=2), inner, max_size=2),
    ),
    max_leaves=6,
)

# What an operator is called with.
arguments = st.lists(st.one_of(tensors, tensors, numbers, st.none(), values), max_size=4).map(tuple)

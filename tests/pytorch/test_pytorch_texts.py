"""What PyTorch's Python part says, and the bridge has to understand: one test for each phrase.

The phrases stand in tensors/pytorch_texts.h; pytorch_texts_test has those of PyTorch's C++ part.
tests/matrix/smoke_pytorch.py runs these with each PyTorch, without pytest.
"""

import re
from pathlib import Path

import torch

HEADER = Path(__file__).resolve().parents[2] / "include/aten_bridge/tensors/pytorch_texts.h"
VERSION = tuple(map(int, torch.__version__.split(".")[:2]))


KEPT = []  # PyTorch looks for operators that it once had


def phrases_of(function):
    """The phrases by which a function of the header knows an error."""
    (body,) = re.findall(rf"inline bool {function}\(.*?\n}}\n", HEADER.read_text(), re.DOTALL)
    return re.findall(r'"((?:[^"\\]|\\.)*)"', body)


def assert_known(function, phrase, call):
    """PyTorch says the phrase, by which the function knows the error."""
    text = "nothing"
    try:
        call()
    except Exception as error:
        text = str(error)
    assert phrase in text, f"expected {phrase!r}, got {text!r}"
    assert phrase in phrases_of(function), f"{function}() does not know {phrase!r}"


def test_an_operator_whose_sizes_depend_on_values():
    if VERSION >= (2, 5):  # older ones have no such function in Python
        meta = torch.empty(3, device="meta")
        assert_known(
            "is_about_data", "data-independent implementation", lambda: torch.nonzero(meta)
        )


def test_an_operator_of_torch_library_without_a_fake():
    if VERSION >= (2, 4):

        @torch.library.custom_op("bridge_texts::copy", mutates_args=())
        def copy(x: torch.Tensor) -> torch.Tensor:
            return x.clone()

        meta = torch.empty(3, device="meta")
        assert_known("is_about_meta", "no fake impl", lambda: copy(meta))


def test_an_operator_that_has_a_kernel_for_the_cpu_alone():
    library = torch.library.Library("bridge_texts_of_cpu", "DEF")
    KEPT.append(library)
    library.define("copy(Tensor x) -> Tensor")
    library.impl("copy", lambda x: x.clone(), "CPU")
    copy = torch.ops.bridge_texts_of_cpu.copy
    meta = torch.empty(3, device="meta")
    assert_known("is_about_meta", "Meta", lambda: copy(meta))


def test_numbers_of_a_tensor_whose_sizes_are_symbols():
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    fake = FakeTensorMode(shape_env=ShapeEnv()).from_tensor(torch.ones(3, 4))
    assert_known("asks_for_numbers", "symbolic s", lambda: torch.utils.dlpack.to_dlpack(fake))

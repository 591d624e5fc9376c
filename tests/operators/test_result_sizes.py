"""Operators by name whose results are smaller than was told, of PyTorch and of other libraries."""

import mindspore as ms
import numpy as np
import pytest
import torch
from networks import Call

from aten_bridge.mindspore import operator

NAMESPACE = "bridge_sizes"
VALUES = np.array([1.0, -2.0, 3.0, -4.0], np.float32)
KEPT = [1.0, 3.0]


def keep(x):
    return x[x >= 0]


def keep_and_drop(x):
    return x[x >= 0], (x < 0).nonzero()


def no_meta(library):
    library.impl("keep", keep, "CPU")


def made_of_others(library):
    library.impl("keep", keep, "CompositeImplicitAutograd")


def made_up_size(library):
    no_meta(library)

    def fake(x):
        return x.new_empty(torch.library.get_ctx().new_dynamic_size())

    torch.library.register_fake("bridge_sizes::keep", fake, lib=library)


def reads_values(library):
    no_meta(library)
    torch.library.register_fake("bridge_sizes::keep", keep, lib=library)


def tagged(library):
    no_meta(library)


def text(error):
    return str(error.value).splitlines()[0]


@pytest.mark.parametrize("kind", [no_meta, made_of_others, made_up_size, reads_values, tagged])
def test_the_largest_of_an_operator_of_another_library(kind, mine, mode):
    tags = (torch.Tag.dynamic_output_shape,) if kind is tagged else ()
    mine.define("keep(Tensor x) -> Tensor", tags=tags)
    kind(mine)
    larger = operator("bridge_sizes::keep", out_shape=(4,), out_dtype=ms.float32)
    for values in (VALUES, -VALUES, np.zeros(4, np.float32)):
        result, sizes = Call(larger)(ms.Tensor(values))
        expected = values[values >= 0]
        assert sizes.asnumpy().tolist() == [len(expected)]
        assert result.asnumpy().tolist() == [*expected, *[0.0] * (4 - len(expected))]
    # The text that names the cure is that of the same operators.
    if mode == "graph":
        with pytest.raises(ValueError, match="bridge_sizes::keep") as error:
            Call(operator("bridge_sizes::keep"))(ms.Tensor(VALUES))
        assert text(error) == (
            "bridge_sizes::keep: expected an operator whose results have sizes that follow from "
            "those of its inputs, got one whose sizes depend on values; call it outside of a "
            "graph, or give out_shape, the largest shapes of its results, and out_dtype"
        )
    else:
        assert operator("bridge_sizes::keep")(ms.Tensor(VALUES)).asnumpy().tolist() == KEPT


def test_a_custom_operator_without_register_fake(mode):
    @torch.library.custom_op("bridge_sizes_custom::keep", mutates_args=())
    def custom(x: torch.Tensor) -> torch.Tensor:
        return keep(x)

    larger = operator("bridge_sizes_custom::keep", out_shape=(4,), out_dtype=ms.float32)
    result, sizes = Call(larger)(ms.Tensor(VALUES))
    assert (result.asnumpy().tolist(), sizes.asnumpy().tolist()) == ([1, 3, 0, 0], [2])
    if mode == "pynative":
        free = operator("bridge_sizes_custom::keep")
        assert free(ms.Tensor(VALUES)).asnumpy().tolist() == KEPT
    assert custom(torch.from_numpy(VALUES)).tolist() == KEPT


def test_several_results_and_functions_of_the_inputs(mine, mode):
    mine.define("both(Tensor x) -> (Tensor, Tensor)")
    mine.impl("both", keep_and_drop, "CPU")
    larger = operator(
        "bridge_sizes::both",
        out_shape=lambda x: (x, (x[0], 1)),
        out_dtype=lambda x: (x, ms.int64),
    )
    kept, dropped, *sizes = Call(larger)(ms.Tensor(VALUES))
    assert kept.asnumpy().tolist() == [1, 3, 0, 0]
    assert dropped.asnumpy().tolist() == [[1], [3], [0], [0]]
    assert [one.asnumpy().tolist() for one in sizes] == [[2], [2, 1]]


def test_results_that_are_larger_than_was_told(mine, cpu):
    ms.set_context(mode=ms.PYNATIVE_MODE)
    mine.define("keep(Tensor x) -> Tensor")
    no_meta(mine)
    larger = operator("bridge_sizes::keep", out_shape=(1,), out_dtype=ms.float32)
    with pytest.raises(RuntimeError) as error:
        larger(ms.Tensor(VALUES))[0].asnumpy()
    assert (
        "bridge_sizes::keep: output 0: expected float32 [1] or less of it, as out_shape and "
        "out_dtype say, got float32 [2]"
    ) in str(error.value)


def test_sizes_that_are_known_are_those_that_were_told(mine, mode):
    """Its meta function says them: out_shape is that of the one result."""
    mine.define("twice(Tensor x) -> Tensor")
    mine.impl("twice", lambda x: x * 2, "CPU")
    torch.library.register_fake("bridge_sizes::twice", torch.empty_like, lib=mine)
    for name in ("bridge_sizes::twice", "aten::relu"):
        got = Call(operator(name, out_shape=(4,), out_dtype=ms.float32))(ms.Tensor(VALUES))
        assert got.shape == (4,)
    with pytest.raises(RuntimeError) as error:
        Call(operator("aten::relu", out_shape=(5,), out_dtype=ms.float32))(
            ms.Tensor(VALUES)
        ).asnumpy()
    assert (
        "aten::relu: output 0: expected float32 [5] as out_shape and out_dtype or the meta "
        "function say, got float32 [4]"
    ) in str(error.value)


def test_operators_of_pytorch_without_the_tag(mode):
    counts = ms.Tensor(np.array([2, 0, 1]))
    x = ms.Tensor(np.array([5, 6, 7]))
    repeat = operator("aten::repeat_interleave.self_Tensor", out_shape=(9,), out_dtype=ms.int64)
    result, sizes = Call(repeat)(x, counts)
    assert (result.asnumpy()[:3].tolist(), sizes.asnumpy().tolist()) == ([5, 5, 7], [3])
    repeat = operator(
        "aten::repeat_interleave.self_Tensor", output_size=3, out_shape=(3,), out_dtype=ms.int64
    )
    assert Call(repeat)(x, counts).asnumpy().tolist() == [5, 5, 7]
    labels = ms.Tensor(np.array([1, 0]))
    hot = operator("aten::one_hot", out_shape=(2, 5), out_dtype=ms.int64)
    result, sizes = Call(hot)(labels)
    assert result.asnumpy().tolist() == [[0, 1, 0, 0, 0], [1, 0, 0, 0, 0]]
    assert sizes.asnumpy().tolist() == [2, 2]
    found = operator("aten::argwhere", out_shape=(4, 1), out_dtype=ms.int64)
    result, sizes = Call(found)(ms.Tensor(VALUES))
    assert sizes.asnumpy().tolist() == [4, 1]


def test_nms_of_torchvision(mode):
    torchvision = pytest.importorskip("torchvision")
    generator = np.random.default_rng(0)
    boxes = generator.uniform(0, 50, (30, 4)).astype(np.float32)
    boxes[:, 2:] += boxes[:, :2] + 5
    scores = generator.uniform(0, 1, 30).astype(np.float32)
    expected = torchvision.ops.nms(torch.from_numpy(boxes), torch.from_numpy(scores), 0.5).tolist()
    larger = operator("torchvision::nms", iou_threshold=0.5, out_shape=(30,), out_dtype=ms.int64)
    result, sizes = Call(larger)(ms.Tensor(boxes), ms.Tensor(scores))
    assert sizes.asnumpy().tolist() == [len(expected)]
    assert result.asnumpy().tolist() == expected + [0] * (30 - len(expected))

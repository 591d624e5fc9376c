"""Empty lists, which MindSpore hands to a plugin's kernel as None of the shape [0]."""

import mindspore as ms
import numpy as np
import pytest
import torch
from checks import ask, assert_equal, compiled, same, shown
from empty_cases import CASES
from mindspore import mint

pytestmark = pytest.mark.full

ARRAYS = {
    "x": np.random.default_rng(1).standard_normal((2, 3)),
    "v": np.array([1.0, 2.0, 0.0]),
    "o": np.full((1, 1), 3.0),
    "z": np.array(3.0),
    "t": np.random.default_rng(2).standard_normal((1, 1, 2, 2)),
}
ARRAYS = {name: np.asarray(array, np.float32) for name, array in ARRAYS.items()}


def test_an_empty_list_means_what_it_means_in_pytorch(tmp_path_factory):
    functions = compiled(tmp_path_factory, "calls_with_empty_lists", ARRAYS, CASES)
    ours = [ms.Tensor(array) for array in ARRAYS.values()]
    theirs = {name: torch.tensor(array) for name, array in ARRAYS.items()}
    theirs |= {"n": torch, "F": torch.nn.functional}
    faults = []
    for case, function in zip(CASES, functions, strict=True):
        expected = ask(lambda case=case: eval(case, {}, theirs))
        for mode, call in (("pynative", function), ("graph", ms.jit(function))):
            result = ask(lambda call=call: call(*ours))
            if not isinstance(expected, str) and not same(result, expected):
                faults.append((case, mode, shown(result), shown(expected)))
    assert not faults, "\n".join(" | ".join(fault) for fault in faults)


@pytest.mark.parametrize("keepdim", [False, True])
def test_logsumexp_over_no_dimension_is_over_all(keepdim):
    """PyTorch 2.11 refuses it, other versions do not, unless the dimensions are kept."""
    x = ARRAYS["x"]
    expected = torch.tensor(x).logsumexp((0, 1), keepdim)

    def of_mint(x):
        return mint.logsumexp(x, (), keepdim)

    def of_method(x):
        return x.logsumexp((), keepdim)

    for function in (of_mint, of_method):
        assert_equal(function(ms.Tensor(x)), expected, 1e-6)
        assert_equal(ms.jit(function)(ms.Tensor(x)), expected, 1e-6)


def test_the_gradient_of_a_loss_that_is_made_a_scalar():
    def loss(x):
        return (x * x).reshape(())

    gradient = ms.grad(ms.jit(loss))(ms.Tensor(ARRAYS["o"]))
    np.testing.assert_array_equal(gradient.asnumpy(), [[6.0]])


def test_no_repeats_are_refused():
    """MindSpore's own text of such an error ends the process, beside any library of kernels."""
    message = r"repeat_interleave: expected one repeat, or one for each place, got \(\)"
    x = ms.Tensor(ARRAYS["x"])
    for call in (mint.repeat_interleave, ms.Tensor.repeat_interleave):
        with pytest.raises(ValueError, match=f"^{message}$"):
            call(x, ())
        with pytest.raises(ValueError, match=f"^{message}$"):
            call(x, [], 1)

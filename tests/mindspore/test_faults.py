"""What is wrong with operands and attributes, as data, wherever an error comes from."""

import mindspore as ms
import numpy as np
import pytest
from host import KERNELS, MINDSPORE, Net, call
from modes import GRAPHS_IN_FULL

from aten_bridge.faults import Fault, Status, faults_of
from aten_bridge.mindspore import kernel

BOTH = [ms.Tensor([[1, 2]], ms.int32), ms.Tensor([[3]], ms.float32)]
OF_CHECKED = (
    Fault(
        "float16|bfloat16|float32|float64",
        '"int32" with shape [1, 2]',
        status=Status.DTYPE,
        subject="input",
        index=0,
        name="a",
    ),
    Fault("sizes [N]", "int32 [1, 2]", "", Status.SHAPE, "input", 0, "a"),
    Fault("sizes [N]", "float32 [1, 1]", "", Status.SHAPE, "input", 1, "b"),
)
OF_FIRST = (Fault("rank 1", "float32 [2, 2]", "", Status.SHAPE, "input", 0, "first"),)


def test_inputs_that_a_kernel_refuses(mode, faults):
    operator = Net(kernel(f"{MINDSPORE}:Checked"))
    assert faults(lambda: operator(*BOTH)) == OF_CHECKED


@pytest.mark.usefixtures("pynative")
def test_the_error_itself_has_them():
    with pytest.raises(ValueError, match="expected") as error:
        kernel(f"{MINDSPORE}:Checked")(*BOTH)
    assert [fault[3:] for fault in error.value.faults] == [fault[3:] for fault in OF_CHECKED]


@GRAPHS_IN_FULL
@pytest.mark.usefixtures("mode")
def test_a_call_that_no_meta_function_has_seen(faults):
    like = {"out_shape": lambda x: x, "out_dtype": lambda x: x}
    operator = Net(kernel(f"{KERNELS}:CheckedFirst", **like))
    x = ms.ops.ones((2, 2), ms.float32)
    assert faults(lambda: operator(x).asnumpy()) == OF_FIRST
    assert faults(lambda: call("CheckedFirst", x).asnumpy()) == OF_FIRST  # ops.Custom


@pytest.mark.usefixtures("pynative")
def test_inputs_that_python_refuses(faults):
    checked = kernel(f"{MINDSPORE}:Checked")
    x = ms.Tensor([1.0])
    assert faults(lambda: checked(np.ones(1, np.float32), (x, np.ones(1)), x)) == (
        Fault("2 inputs", "3", "", Status.COUNT, "call"),
        Fault("a tensor", "a NumPy array", "give it as mindspore.Tensor(array)", index=0),
        Fault(
            "a tensor", "a NumPy array", "give it as mindspore.Tensor(array)", index=1, element=1
        ),
    )
    assert faults(lambda: checked(x, 2**63)) == (
        Fault("an int from -2^63 to 2^63 - 1", f"{2**63}", index=1),
    )
    assert faults(lambda: checked(x, a=x)) == (
        Fault(
            *("one value", "one by position and one by name", "leave one out"),
            *(Status.COUNT, "input", 0, "a"),
        ),
        Fault("a tensor", "nothing", "give one", Status.COUNT, "input", 1, "b"),
    )


@pytest.mark.usefixtures("pynative")
def test_attributes(faults):
    def of(name, expected, got, hint=""):
        return (Fault(expected, got, hint, Status.ATTRIBUTE, "attribute", -1, name),)

    def topk(**attributes):
        return lambda: kernel(f"{MINDSPORE}:TopK", **attributes)

    assert faults(topk(k=1.5)) == of("k", "an int", "the float 1.5")
    assert faults(topk(k={})) == of(
        "k",
        "a bool, an int, a float, a str, a dtype, or a list of ints or floats or of lists of these",
        "{} of type dict",
    )
    found = faults(topk(k=1, largst=True))
    assert found == of("largst", found[0].expected, "an unknown name", found[0].hint)


def test_other_errors_have_none():
    assert faults_of(ValueError("expected a tensor, got None")) == ()
    assert faults_of(KeyError()) == ()


def test_texts():
    fault = Fault("a tensor", "None", "give one", index=0, name="x", element=2)
    assert fault.text == "element 2 of the tuple: expected a tensor, got None; give one"
    assert str(fault) == f"input 0 'x': {fault.text}"
    assert str(fault._replace(subject="call", index=-1, name="")) == fault.text
    slot = Fault("one of the call's 2 slots", "", "", Status.COUNT, "slot", 2)
    assert str(slot) == "slot 2: expected one of the call's 2 slots"

"""Errors as a Python user sees them: the whole text, and what goes on afterwards."""

import mindspore as ms
import numpy as np
import pytest
from host import KERNELS, KERNELS_RETURN, Net, assert_same, bridge_error, call, custom, host_error
from modes import GRAPHS_IN_FULL

pytestmark = pytest.mark.usefixtures("mode")

X = ms.Tensor([[1, -2], [3, -4]], ms.float32)
OPERANDS = " (input 0: float32 [2, 2]; output 0: float32 [2, 2])"


# ===--- what the kernel throws ---===


THROWN = {
    "ThrowAten": "rank 2 is not seven",
    "ThrowRuntimeError": "thrown by the kernel",
    "ThrowLatin1": r"cannot read m\xfcller.bin, of Müller",
    "ThrowInt": "the kernel threw an object of type int, which is not a std::exception",
}


@GRAPHS_IN_FULL
@pytest.mark.parametrize("name", THROWN)
def test_thrown_object_is_reported_with_the_operands(name):
    error = bridge_error(lambda: call(name, X).asnumpy())
    assert error == f"{name}: {THROWN[name]}{OPERANDS}"


def test_other_networks_keep_working_after_a_thrown_struct():
    older = Net(custom("Negate"))
    expected = np.array([[-1, 2], [-3, 4]], np.float32)
    assert_same(older(X), expected)
    assert bridge_error(lambda: call("ThrowStruct", X).asnumpy()) == (
        "ThrowStruct: the kernel threw an object of type (anonymous namespace)::NotAnException, "
        "which is not a std::exception" + OPERANDS
    )
    assert_same(older(X), expected)
    assert_same(call("Negate", X), expected)


def test_dtype_that_aten_does_not_implement():
    x = ms.Tensor([[1, -2]], ms.int8)
    assert bridge_error(lambda: call("LeakyReluResult", x).asnumpy()) == (
        "LeakyReluResult: \"leaky_relu_cpu\" not implemented for 'Char' "
        "(input 0: int8 [1, 2]; output 0: int8 [1, 2])"
    )


@pytest.mark.parametrize("mode", ["pynative"], indirect=True)
def test_pynative_mode_reports_the_error_when_the_result_is_read():
    result = call("ThrowRuntimeError", X)
    assert bridge_error(result.asnumpy) == "ThrowRuntimeError: thrown by the kernel" + OPERANDS


# ===--- what the bridge finds wrong ---===


@GRAPHS_IN_FULL
@pytest.mark.parametrize(
    ("how", "operand"), [("slice", "input 0"), ("of the list", "input 2"), ("output", "output 0")]
)
def test_what_a_kernel_keeps_of_the_hosts_memory(how, operand):
    keep = custom("Keep")
    keep.add_prim_attr("how", how)
    assert bridge_error(lambda: Net(keep)(X, X, X).asnumpy()) == (
        f"Keep: {operand}: expected no reference to this tensor after the call, because its memory "
        "belongs to the host, got one that the kernel keeps (the tensor or a view of it); keep a "
        "clone() instead"
    )
    forget = custom("Keep")
    forget.add_prim_attr("how", "nothing")
    Net(forget)(X, X, X).asnumpy()


def test_wrong_count():
    assert bridge_error(lambda: call("Copy", X, X).asnumpy()) == (
        "Copy: expected 1 input and 1 output, got 3 slots; compare the arguments of the call, "
        "out_shape and out_dtype with the kernel"
    )


@GRAPHS_IN_FULL
def test_arguments_that_are_no_tensors_are_reported_together():
    shapes, dtypes = ((2,), (2,)), (ms.float32, ms.float32)

    def run():
        call("AddSubtract", "text", None, out_shape=shapes, out_dtype=dtypes)[0].asnumpy()

    assert bridge_error(run) == (
        'AddSubtract: input 0: expected a tensor, got "string", a str\n'
        "AddSubtract: input 1: expected a tensor, got None"
    )


@GRAPHS_IN_FULL
def test_wrong_out_shape():
    assert bridge_error(lambda: call("Resize", X, out_shape=(3,)).asnumpy()) == (
        "Resize: output 0: expected float32 [3] as out_shape and out_dtype or the meta function "
        "say, got float32 [2, 2] because the kernel resized it; let out_shape return the shape of "
        "the result"
    )


@GRAPHS_IN_FULL
def test_output_parameter_assigned():
    assert bridge_error(lambda: call("Assign", X).asnumpy()) == (
        "Assign: output 0: expected the result in the host's memory, got another tensor assigned "
        "to the parameter; write with an _out function or with copy_()"
    )


# ===--- what the host says itself ---===


def test_return_mode_gives_the_host_a_code_and_standard_error_the_text(capfd):
    assert host_error(lambda: call("ThrowAten", X, library=KERNELS_RETURN).asnumpy()) == (
        f"Return value from CPU AOT kernel({KERNELS_RETURN})'s function(ThrowAten) is 8. Any "
        "return value not equal to 0 will be treated as user defined error code and we will "
        "terminate execution. If termination is not your purpose, please set return value to 0."
    )
    printed = capfd.readouterr().err.splitlines()
    assert f"ThrowAten: {THROWN['ThrowAten']}{OPERANDS}" in printed


def test_missing_function():
    assert host_error(lambda: call("NoSuchKernel", X).asnumpy()) == (
        "For 'Custom' on CPU, error occurs when fetching function 'NoSuchKernel'. "
        f"Error info: {KERNELS}: undefined symbol: NoSuchKernel"
    )


def test_missing_library(tmp_path):
    library = tmp_path / "missing.so"
    text = f"For 'Custom' on CPU, couldn't find the AOT binary file: {library}"
    assert host_error(lambda: call("Copy", X, library=library).asnumpy()) == text

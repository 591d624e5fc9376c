"""Libraries: opening them, two of the same operators, several hosts in one process."""

import inspect
import os
import pathlib
import re
import signal
import subprocess
import sys

import numpy as np
import pytest
import torch

from aten_bridge.faults import Fault, Status
from aten_bridge.torch import load

TABLE = pathlib.Path(__file__).parents[1] / "kernels/any_table.h"


def test_help(my, library):
    assert inspect.getdoc(my.leaky_relu) == (
        f"The kernel LeakyRelu of {library}.\n\n"
        "bridge_test::leaky_relu(Tensor x, float negative_slope=0.01) -> Tensor"
    )
    assert str(inspect.signature(my.leaky_relu)) == "(x, negative_slope=0.01, *, out=None)"
    assert str(inspect.signature(my.top_k)) == "(x, k, dim=-1, largest=True)"
    assert str(inspect.signature(my.fill)) == "(input0, *, out)"
    assert repr(my.top_k) == f"<top_k(x, k, dim=-1, largest=True) of {library}>"
    assert "leaky_relu" in dir(my)


def text_of(error, call):
    with pytest.raises(error) as raised:
        call()
    return str(raised.value)


def test_texts(my, library, build, tmp_path):
    text = text_of(AttributeError, lambda: my.leaky_rely)
    assert re.fullmatch(
        rf"{library}: expected one of its operators, 'assigns', .* and \d+ more, got 'leaky_rely'; "
        "did you mean 'leaky_relu'\\?",
        text,
    )
    assert text_of(TypeError, lambda: my.top_k(None, 2, out=())) == (
        "top_k: expected no out, since the kernel returns its result"
    )
    assert text_of(TypeError, lambda: my.fill(None)) == (
        "fill: expected out=, a tensor for the result, since the kernel has no meta function that "
        "tells its size, got None"
    )
    assert text_of(TypeError, lambda: my.leaky_relu(None, out=(1, 2))) == (
        "leaky_relu: expected as many tensors in out as there are results, 1, got 2"
    )
    for out, shown in ((3, "3"), ("y", "'y'"), ({}, "{}")):
        assert text_of(TypeError, lambda out=out: my.leaky_relu(None, out=out)) == (
            f"leaky_relu: expected out to be a tensor, or a tuple of these, got {shown}"
        )
    for other, got in (
        (build / "tests/test_kernels.so", "that was built for other hosts"),
        (os.path.realpath(np.random.mtrand.__file__), "without kernels"),
    ):
        assert text_of(ValueError, lambda path=other: load(path)) == (
            f"{other}: expected a library for PyTorch, got one {got}; build it with "
            "aten_bridge_add_kernel(... HOSTS MINDSPORE PYTORCH)"
        )
    assert text_of(TypeError, lambda: load(library, replace=1)) == (
        f"{library}: expected replace to be True or False, got 1"
    )
    nothing = tmp_path / "nothing.so"
    assert text_of(FileNotFoundError, lambda: load(nothing)) == (
        f"{nothing}: expected a kernel library, got no such file; build it, or correct the path"
    )


def test_a_bool_of_numpys(library):
    assert "leaky_relu" in dir(load(library, replace=np.bool_(False)))


def test_a_library_for_another_pytorch_registers_nothing(run_python, build):
    text = run_python(
        f"""
import torch
from aten_bridge.torch import load
other = {str(build / "tests/test_pytorch_of_another.so")!r}
torch.ops.load_library(other)
for replace in (False, True):
    try:
        load(other, replace=replace)
    except RuntimeError as error:
        print(error)
try:
    torch.ops.bridge_of_another.from_another_source
except AttributeError as error:
    print(error)
names = [
    *torch._C._dispatch_get_all_op_names(),
    *torch._C._dispatch_get_registrations_for_dispatch_key(),
]
print(len(names) > 1000, [name for name in names if name.startswith("bridge_of_another")])
print(load(library).leaky_relu(torch.ones(1)).item())
"""
    )
    fault = (
        "FromAnotherSource: expected PyTorch 1.99.x, with which this library was built, got "
        f"{torch.__version__.partition('+')[0]}, which the process had loaded before; build the "
        "library with the PyTorch that the program imports"
    )
    assert text.splitlines() == [
        *[fault, fault],
        "'_OpNamespace' 'bridge_of_another' object has no attribute 'from_another_source'",
        *["True []", "1.0"],
    ]


def test_a_second_library_with_the_same_operators(run_python, tmp_path):
    text = run_python(
        f"""
import shutil, torch
from aten_bridge.torch import load
x = torch.zeros(1)
first = load(library)
first.count(x)
second = shutil.copy(library, {str(tmp_path / "second.so")!r})
try:
    load(second)
except RuntimeError as error:
    print(error)
print(first.count(x).item())
replaced = load(second, replace=True)
print(first.count(x).item(), replaced.count(x).item())
leaf = torch.ones(1, requires_grad=True)
(first.leaky_relu(leaf) + replaced.leaky_relu(leaf)).backward()
print(leaf.grad.item())
import os
os.remove(second)
shutil.copy(library, second)  # a new build
print(load(second, replace=True).count(x).item())
os.remove(second)
try:
    load(second)
except FileNotFoundError as error:
    print(str(error).removeprefix(second + ": "))
"""
    )
    lines = [line for line in text.splitlines() if re.match("expected|[0-9]", line)]
    assert re.fullmatch(
        "expected operators that no other library has, got bridge_test::leaky_relu, .*, which "
        r"another one registered before and which stay as they are; load\(path, replace=True\) of "
        "aten_bridge.torch takes these, another NAMESPACE keeps both",
        lines[0],
    )
    assert lines[1:] == [
        *["1.0", "0.0 1.0", "2.0", "0.0"],
        "expected a kernel library, got no such file; build it, or correct the path",
    ]


def test_what_only_a_replaced_library_had(run_python, build):
    text = run_python(
        f"""
import re, torch
from aten_bridge.torch import load
x = torch.ones(2)
of = {str(build / "tests/test_replaced")!r} + "{{}}.so"
first = load(of.format(1))
print(first.change(x).tolist(), first.change(x, out=torch.empty(2)).tolist())
print(first.twice(x).tolist())
second = load(of.format(2), replace=True)
print(second.change(x).tolist(), second.twice(x).tolist())
operators = torch.ops.bridge_replaced
for call in (
    lambda: second.change(x, out=torch.empty(2)),
    lambda: operators.change.out(x, out=torch.empty(2)),
    lambda: second.change(x.to("meta")),
    lambda: second.twice(x.to("meta")),
    lambda: load(of.format(3), replace=True),
):
    try:
        call()
    except (TypeError, RuntimeError) as error:
        print(type(error).__name__, re.split("[.] (?:This|You) ", str(error))[0])
print(torch.compile(lambda t: second.twice(t) + 1, backend="eager")(x).tolist())
first = load(of.format(1), replace=True)
print(first.change(x, out=torch.empty(2)).tolist(), first.change(x.to("meta")).shape)
"""
    )
    no_meta = (
        "attempted to run this operator with Meta tensors, but there was no fake impl or Meta "
        "kernel registered"
    )
    assert [line for line in text.splitlines() if not re.search("Warn|warn|^ |^$", line)] == [
        *["[-1.0, -1.0] [-1.0, -1.0]", "[2.0, 2.0]"],
        "[2.0, 2.0] [3.0, 3.0]",
        "TypeError change: expected no out, since the kernel returns its result",
        "NotImplementedError Could not run 'bridge_replaced::change.out' with arguments from the "
        "'CPU' backend",
        f"NotImplementedError bridge_replaced::change: {no_meta}",
        f"NotImplementedError bridge_replaced::twice: {no_meta}",
        "RuntimeError Change: expected the schema of the operator that the process has already, "
        "bridge_replaced::change(Tensor input0) -> Tensor, got bridge_replaced::change(Tensor "
        "input0, float by=1.) -> Tensor; start a new process for it, or build one of the libraries "
        "with another NAMESPACE",
        "[4.0, 4.0]",
        "[-1.0, -1.0] torch.Size([2])",
    ]


def test_a_kernel_one_of_whose_names_is_taken_defines_no_other(run_python, build):
    text = run_python(
        f"""
import torch
from aten_bridge.torch import load
theirs = torch.library.Library("bridge_replaced", "DEF")
theirs.define("change.out(Tensor input0, *, Tensor(out0!) out) -> ()")
theirs.impl("change.out", lambda x, *, out: out.copy_(x), "CPU")
try:
    load({str(build / "tests/test_replaced1.so")!r})
except RuntimeError as error:
    print(str(error).split(", which")[0])
print([n for n in torch._C._dispatch_get_all_op_names() if n.startswith("bridge_replaced::change")])
"""
    )
    assert text.splitlines() == [
        "expected operators that no other library has, got bridge_replaced::change",
        "['bridge_replaced::change.out']",
    ]


def test_names_that_kernels_of_one_library_cannot_have(run_python, build):
    text = run_python(
        f"""
import torch
from aten_bridge.torch import load
for replace in (False, True):
    try:
        load({str(build / "tests/test_replaced4.so")!r}, replace=replace)
    except RuntimeError as error:
        print(error)
print(torch.ops.bridge_replaced.change_sign(torch.ones(1)).item())
"""
    )
    faults = [
        "change_sign: expected a name of its own in PyTorch, got bridge_replaced::change_sign, "
        'which the kernel ChangeSign has too; give one of them aten_bridge::name("...")',
        "Twins: attribute 'by': expected one attribute of this name, got several; rename them in "
        "the kernel's export",
        "Spaced: attribute 'by 1': expected a name that an argument in Python can have, got "
        "another; rename it in the kernel's export",
    ]
    assert text.splitlines() == [*faults, *faults, "-1.0"]


@pytest.mark.full
def test_a_library_for_another_device_replaces_nothing_of_the_first(run_python, build):
    if not (build / "examples/lltm/lltm_cuda.so").is_file():
        pytest.skip("the build has no kernels for CUDA")
    run_python(
        f"""
import torch
from aten_bridge.torch import load
of = {str(build / "examples/lltm/lltm")!r}
lltm = load(of + ".so").lltm
load(of + "_cuda.so", replace=True)
inputs = [torch.randn(s, requires_grad=True) for s in ((3, 2), (6, 4), (6,), (3, 2), (3, 2))]
compiled = torch.compile(lltm, backend="aot_eager", fullgraph=True)
expected = torch.autograd.grad(lltm(*inputs)[0].sum(), inputs)
for gradient, other in zip(torch.autograd.grad(compiled(*inputs)[0].sum(), inputs), expected):
    assert torch.equal(gradient, other)
assert torch._C._dispatch_has_kernel_for_dispatch_key("lltm::lltm", "CUDA")
"""
    )


def test_load_library_says_what_it_leaves_out(run_python, tmp_path):
    text = run_python(
        f"""
import shutil, torch
torch.ops.load_library(library)
torch.ops.load_library(shutil.copy(library, {str(tmp_path / "second.so")!r}))
print(torch.ops.bridge_test.leaky_relu(torch.ones(1)).item())
"""
    )
    value, line = text.splitlines()  # at the end of the process, since nobody asked before
    assert value == "1.0"
    assert line.startswith(
        "aten_bridge: expected operators that no other library has, got bridge_test::leaky_relu, "
    )
    assert "which another one registered before and which stay as they are; " in line


MINDSPORE = """
import mindspore as ms
from aten_bridge.mindspore import kernel
leaky_relu = kernel(library + ":LeakyRelu", negative_slope=0.2)
y = leaky_relu(ms.Tensor([-1.0, 2.0], ms.float32))
assert y.asnumpy().tolist() == [-0.20000000298023224, 2.0], y
"""
PYTORCH = """
import torch
torch.ops.load_library(library)
x = torch.tensor([-1.0, 2.0], requires_grad=True)
y = torch.ops.bridge_test.leaky_relu(x, 0.2)
y.sum().backward()
assert y.tolist() == [-0.20000000298023224, 2.0], y
assert x.grad.tolist() == [0.20000000298023224, 1.0], x.grad
"""


@pytest.mark.parametrize(
    "program",
    [
        MINDSPORE + PYTORCH,
        PYTORCH + MINDSPORE,
        "import torch\n" + MINDSPORE + PYTORCH + MINDSPORE,
        "import mindspore\n" + PYTORCH + MINDSPORE,
    ],
    ids=["mindspore first", "pytorch first", "import torch first", "import mindspore first"],
)
def test_two_hosts_in_one_process(run_python, program):
    run_python(program, GLOG_v="3")


def test_mindspore_alone_imports_no_torch(run_python):
    run_python(MINDSPORE + "import sys\nassert 'torch' not in sys.modules", GLOG_v="3")


# While a kernel runs the interpreter is free; a main thread that waits inside one is not.
HANGING = """
import os, signal, threading
import torch
from aten_bridge.torch import load

my = load(library)
signal.signal(signal.SIGINT, signal.default_int_handler)  # also where it was ignored
thread = threading.Thread(target=my.hang, args=(torch.ones(1),), daemon=True)
try:
    thread.start()
    thread.join()
except KeyboardInterrupt:
    print("interrupted", flush=True)
    os._exit(0)  # the thread is still there
"""


def test_ctrl_c_while_a_kernel_of_another_thread_does_not_return(library):
    with subprocess.Popen(
        [sys.executable, "-c", f"library = {str(library)!r}\n{HANGING}"],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout.readline() == "hanging\n"
            process.send_signal(signal.SIGINT)
            assert process.communicate(timeout=120)[0] == "interrupted\n"
            assert process.returncode == 0
        finally:
            process.kill()


def test_faults_as_data(my, faults):
    x = torch.ones(3, 3, dtype=torch.int32)
    assert faults(lambda: my.checked(x, torch.ones(4))) == (
        Fault(
            "float16|bfloat16|float32|float64",
            '"int32" with shape [3, 3]',
            "",
            *(Status.DTYPE, "input", 0, "x"),
        ),
        Fault(
            "sizes [N] with N = 3 as in input 0 'x'",
            "float32 [4]",
            "",
            *(Status.SHAPE, "input", 1, "y"),
        ),
    )


def test_a_library_of_another_version(tmp_path):
    source = f'#define INTERFACE 2\n#define DESCRIPTION nullptr\n#include "{TABLE}"\n'
    (tmp_path / "older.cpp").write_text(source)
    older = tmp_path / "older.so"
    subprocess.run(["c++", "-shared", "-fPIC", tmp_path / "older.cpp", "-o", older], check=True)
    assert text_of(ImportError, lambda: load(older)) == (
        f"{older}: expected a library of interface 8, got 2 of aten_bridge 0.0.9; build it again "
        "with the aten_bridge.h that this Python module came with, or use the module that came "
        "with the library's"
    )


def test_libraries_that_are_not_for_pytorch(library, tmp_path):
    assert text_of(ValueError, lambda: load(f"{library}:LeakyRelu")) == (
        f"{library}:LeakyRelu: expected the path of a library alone, got one with the name "
        f"'LeakyRelu'; its operators are what load('{library}') returns"
    )
    (tmp_path / "other.c").write_text("int Answer() { return 42; }\n")
    other = tmp_path / "other.so"
    subprocess.run(["cc", "-shared", "-fPIC", tmp_path / "other.c", "-o", other], check=True)
    assert text_of(ValueError, lambda: load(other)) == (
        f"{other}: expected a library for PyTorch, got one without kernels; build it with "
        "aten_bridge_add_kernel(... HOSTS MINDSPORE PYTORCH)"
    )


def test_paths_that_cannot_be_meant():
    for path, shown in (("a\0.so", r"'a\x00.so'"), ("a\udcff.so", r"'a\udcff.so'")):
        expected = f"{shown}: expected a path in UTF-8 without NUL; rename or link the library"
        assert text_of(ValueError, lambda path=path: load(path)) == expected
        assert text_of(ValueError, lambda path=path: load(os.fsencode(path))) == expected
    assert text_of(TypeError, lambda: load(3)) == (
        'expected the path of a library, such as "./leaky_relu.so", got 3'
    )

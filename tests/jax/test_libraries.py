"""Libraries: built again, copied, and called by three frameworks in one process."""

import itertools
import os
import shutil

import pytest

MINDSPORE = os.environ.get("ATEN_BRIDGE_JAX_MINDSPORE") == "1"


def test_a_library_that_was_built_anew_is_another_target(run_python, tmp_path):
    """With other content it is another one; the function of the first stays what it was."""
    text = run_python(
        f"""
import os, shutil
import jax, jax.numpy as jnp
from aten_bridge.jax import kernel
path = {str(tmp_path / "my_ops.so")!r}
shutil.copy(library, path)
first = kernel(path + ":Count", first=10)
x = jnp.zeros(1)
print(first(x), kernel(path + ":Count", first=10)(x))
os.remove(path)
shutil.copy(library, path)
with open(path, "ab") as file:  # a build that differs
    file.write(b"!")
second = kernel(path + ":Count", first=10)
print(second(x), jax.jit(second)(x), first(x))
print(first.targets == second.targets, first.targets[0][:18] == second.targets[0][:18])
os.remove(path)
shutil.copy(library, path)  # the first one again
third = kernel(path + ":Count", first=10)
print(third.targets == first.targets, third(x))
"""
    )
    assert text.splitlines() == ["[10.] [11.]", "[10.] [11.] [12.]", "False True", "True [13.]"]


def test_a_library_for_several_versions_of_pytorch(run_python, tmp_path):
    """The file for the one that the environment has; the other is a copy, which nobody opens."""
    program = f"""
import shutil
import jax.numpy as jnp
from aten_bridge._pytorch import pytorch
from aten_bridge.jax import kernel
folder = {str(tmp_path)!r}
for version in (pytorch().version, "99.0"):
    shutil.copy(library, f"{{folder}}/my_ops.torch{{version}}.so")
print(kernel(folder + "/my_ops.so:LeakyRelu", negative_slope=0.5)(jnp.array([-2.0, 4.0])))
"""
    assert run_python(program) == "[-1.  4.]\n"


def test_a_library_that_was_built_anew_behind_a_link(run_python, tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder")
    text = run_python(
        f"""
import os, shutil
import jax.numpy as jnp
from aten_bridge.jax import kernel
path = {str(tmp_path / "link" / "my_ops.so")!r}
shutil.copy(library, path)
x = jnp.zeros(1)
first = kernel(path + ":Count", first=10)
print(first(x))
os.remove(path)
shutil.copy(library, path)
with open(path, "ab") as file:  # a build that differs
    file.write(b"!")
second = kernel(path + ":Count", first=10)
print(second(x), first(x))  # each library counts by itself
"""
    )
    assert text.splitlines() == ["[10.]", "[10.] [11.]"]


def test_a_function_of_a_library_that_was_built_again_calls_the_old_one(run_python, tmp_path):
    text = run_python(
        f"""
import copy, os, shutil
import jax.numpy as jnp
from aten_bridge.jax import kernel
path = {str(tmp_path / "my_ops.so")!r}
of = os.path.join(os.path.dirname(library), "test_unsized.so")
shutil.copy(of, path)
positives = kernel(path + ":Positives")
os.remove(path)
x = jnp.array([1.0, -2, 3])
print(positives(x))  # the kernel that tells sizes is asked for now
shutil.copy(library, path)
print(positives(x), copy.copy(positives)(x), copy.deepcopy([positives])[0](x))
"""
    )
    assert text.splitlines() == ["[1. 3.]", "[1. 3.] [1. 3.] [1. 3.]"]


def test_a_link_that_leads_to_another_library(run_python, tmp_path):
    text = run_python(
        f"""
import os, shutil
import jax.numpy as jnp
from aten_bridge.jax import kernel
folder = {str(tmp_path)!r}
x = jnp.zeros(1)
for version in ("v1.so", "v2.so"):
    shutil.copy(library, os.path.join(folder, version))
    with open(os.path.join(folder, version), "ab") as file:
        file.write(version.encode())
    link = os.path.join(folder, "current.so")
    if os.path.lexists(link):
        os.remove(link)
    os.symlink(version, link)
    print(kernel(link + ":Count", first=10)(x))  # each library counts by itself
"""
    )
    assert text.splitlines() == ["[10.]", "[10.]"]


def test_two_copies_of_a_library_are_one(run_python, tmp_path):
    copy = shutil.copy(os.environ["ATEN_BRIDGE_JAX_LIBRARY"], tmp_path / "copy.so")
    text = run_python(
        f"""
import jax.numpy as jnp
from aten_bridge.jax import kernel
x = jnp.zeros(1)
print(kernel(library + ":Count")(x), kernel({str(copy)!r} + ":Count")(x))
"""
    )
    assert text == "[0.] [1.]\n"


def test_pytorch_is_not_imported(run_python):
    text = run_python(
        """
import sys
import jax.numpy as jnp
from aten_bridge.jax import kernel
print(kernel(library + ":LeakyRelu")(jnp.ones(1)), "torch" in sys.modules)
"""
    )
    assert text == "[1.] False\n"


def test_pytorch_and_jax_call_one_library(run_python):
    for order in itertools.permutations(("torch", "jax")):
        assert run_python(f"frameworks = {order!r}\n{THREE}") == "same\n"


@pytest.mark.skipif(not MINDSPORE, reason="in the environment that has MindSpore")
@pytest.mark.parametrize(
    "order", itertools.permutations(("mindspore", "torch", "jax")), ids="-".join
)
def test_three_frameworks_call_one_library(run_python, order):
    text = run_python(f"frameworks = {order!r}\n{THREE}", GLOG_v="3")
    assert text.splitlines()[-1] == "same"


THREE = """
import importlib
import numpy as np
for framework in frameworks:
    importlib.import_module(framework)
x = np.linspace(-3, 3, 7, dtype=np.float32)

def in_torch(x):
    import torch
    from aten_bridge.torch import load
    leaf = torch.tensor(x, requires_grad=True)
    y = load(library).leaky_relu(leaf, negative_slope=0.1)
    (y * y).sum().backward()
    return y.detach().numpy(), leaf.grad.numpy()

def in_jax(x):
    import jax
    from aten_bridge.jax import kernel
    f = kernel(library + ":LeakyRelu", negative_slope=0.1, grad="LeakyReluGrad")
    x = jax.numpy.asarray(x)
    return np.asarray(jax.jit(f)(x)), np.asarray(jax.grad(lambda x: (f(x) * f(x)).sum())(x))

def in_mindspore(x):
    import mindspore as ms
    from aten_bridge.mindspore import kernel
    f = kernel(library + ":LeakyRelu", negative_slope=0.1, grad="LeakyReluGrad")
    x = ms.Tensor(x)
    return f(x).asnumpy(), ms.grad(lambda x: (f(x) * f(x)).sum())(x).asnumpy()

calls = {"torch": in_torch, "jax": in_jax, "mindspore": in_mindspore}
results = [calls[framework](x) for framework in (*frameworks, *frameworks[::-1])]
bits = {tuple(part.tobytes() for part in result) for result in results}
print("same" if len(bits) == 1 else results)
"""

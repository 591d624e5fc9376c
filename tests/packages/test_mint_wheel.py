"""The wheel aten-bridge-mint, which the target `wheels` builds: mint, and operators by name."""

import os
import pathlib
import re

import pytest
from conftest import run, version

pytestmark = pytest.mark.skipif(
    "ATEN_BRIDGE_WHEELS" not in os.environ, reason="the target `wheels` builds the wheel"
)

PROGRAM = """
import mindspore as ms
from mindspore import mint

x = ms.Tensor([[1.0, 2.0], [3.0, 4.0]])
print(mint.einsum("ij,jk->ik", x, x).asnumpy().tolist(), mint.acosh(x)[0, 0].item())
"""

BY_NAME = """
import mindspore as ms
from aten_bridge.mindspore import operator

values, indices = operator("aten::topk", k=2)(ms.Tensor([[1.0, 2.0, 3.0]]))
print(values.asnumpy().tolist(), indices.asnumpy().tolist())
"""

CALLER = """
from aten_bridge.mindspore import native_caller

print(native_caller().path or native_caller().reason)
"""


def test_mint_works_without_a_compiler(environment, tmp_path):
    (wheel,) = pathlib.Path(os.environ["ATEN_BRIDGE_WHEELS"]).glob("aten_bridge_mint-*.whl")
    assert re.fullmatch(
        rf"aten_bridge_mint-{version()}-py3-none-manylinux_2_\d+_\w+\.whl", wheel.name
    )
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    # Nothing but the environment's own folder: no compiler, no CMake.
    alone = {"PATH": str(environment.bin), "GLOG_v": "3"}
    done = environment.python("-m", "aten_bridge.mint", program, env=alone, check=False)
    assert done.returncode == 1
    assert "install the wheel aten-bridge-mint (pip install ./plugin/mint" in done.stdout

    environment.pip("install", wheel)
    library = environment.packages / "aten_bridge_mint/aten_bridge_mint.so"
    dynamic = run("readelf", "--dynamic", library).stdout
    assert re.findall(r"R(?:UN)?PATH\).*\[(.*)\]", dynamic) == ["$ORIGIN/../torch/lib"]
    assert environment.python("-m", "aten_bridge.mint", env=alone).stdout == f"{library}\n"
    done = environment.python("-m", "aten_bridge.mint", program, env=alone)
    assert done.stdout.splitlines()[-1] == "[[7.0, 10.0], [15.0, 22.0]] 0.0"

    program.write_text(BY_NAME)
    done = environment.python(program, env=alone)
    assert done.stdout.splitlines()[-1] == "[[3.0, 2.0]] [[2, 1]]"

    program.write_text(CALLER)
    done = environment.python(program, env={**alone, "HOME": str(tmp_path)})
    (caller,) = (environment.packages / "aten_bridge_mint").glob("aten_bridge_caller.mindspore*.so")
    assert done.stdout.splitlines()[-1] == str(caller)

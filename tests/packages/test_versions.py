"""Libraries for several versions of PyTorch: which file is opened, and what is said of none.

Files of other versions are copies here, which nobody opens.
"""

import ctypes
import os
import pathlib
import pickle
import re
import shutil
import sys
import zipfile

import mindspore as ms
import numpy as np
import pytest
import torch
from conftest import HERE, SOURCE, TORCH, built_for, run, runpaths, without_runpath

from aten_bridge import build
from aten_bridge._library import exported_functions, parse_target
from aten_bridge.build._build import Build
from aten_bridge.mindspore import kernel
from aten_bridge.torch import load

BUILT = pathlib.Path(os.environ["ATEN_BRIDGE_BUILD_DIR"]) / "tests/test_pytorch.so"
PYTHONPATH = str(SOURCE / "python")


def copies(folder, *versions):
    folder.mkdir(exist_ok=True)
    for version in versions:
        shutil.copyfile(BUILT, folder / f"my_ops.torch{version}.so")
    return folder / "my_ops.so"


def python(program, *arguments, path=PYTHONPATH):
    return run(sys.executable, "-c", program, *arguments, env={"PYTHONPATH": path}).stdout


def fake_torch(folder, version):
    """A folder for PYTHONPATH in which `import torch` finds a package of that version."""
    (folder / "torch/lib").mkdir(parents=True)
    (folder / "torch/__init__.py").touch()
    (folder / "torch/version.py").write_text(f"__version__ = '{version}'\n")
    return f"{folder}:{PYTHONPATH}"


def test_the_file_for_this_pytorch_is_opened(tmp_path):
    path = copies(tmp_path, "2.1", "2.9", HERE, "99.0")
    expected = f"{tmp_path}/my_ops.torch{HERE}.so"
    for name in (path, tmp_path / "my_ops"):
        assert parse_target(f"{name}:LeakyRelu") == (expected, "LeakyRelu")
        leaky_relu = kernel(f"{name}:LeakyRelu", negative_slope=0.5)
        x = ms.Tensor(np.array([-2.0, 4.0], np.float32))
        assert leaky_relu(x).asnumpy().tolist() == [-1.0, 4.0]
        my_ops = load(name, replace=True)
        assert my_ops.leaky_relu(torch.tensor([-2.0, 4.0]), 0.5).tolist() == [-1.0, 4.0]
    assert repr(my_ops.leaky_relu).endswith(f" of {tmp_path}/my_ops>")
    # Another process may have another PyTorch.
    assert f"torch{HERE}".encode() not in pickle.dumps(my_ops)
    assert f"torch{HERE}".encode() not in pickle.dumps(my_ops.leaky_relu)


def test_a_file_that_is_named_is_opened(tmp_path):
    path = copies(tmp_path, HERE, "99.0")
    other = tmp_path / "my_ops.torch99.0.so"
    assert parse_target(f"{other}:LeakyRelu")[0] == str(other)
    shutil.copyfile(BUILT, path)
    for name in (path, tmp_path / "my_ops"):
        assert parse_target(f"{name}:LeakyRelu")[0] == str(path)
    shutil.copyfile(BUILT, tmp_path / "single.so")
    assert parse_target(f"{tmp_path / 'single'}:LeakyRelu")[0] == str(tmp_path / "single.so")


PROGRAM = """
import ctypes, sys
from aten_bridge._library import open_library, parse_target
path, *libraries = sys.argv[1:]
for library in libraries:
    ctypes.CDLL(library)
file = parse_target(f"{path}:LeakyRelu")[0]
open_library(file).function("LeakyRelu")
print(file, "torch" in sys.modules)
"""
LIBTORCH = [TORCH / "lib" / name for name in ("libc10.so", "libtorch_cpu.so")]


def test_the_file_finds_the_pytorch_of_the_environment(tmp_path):
    path = copies(tmp_path, "2.1", HERE)
    file = without_runpath(tmp_path / f"my_ops.torch{HERE}.so")
    assert python(PROGRAM, path) == f"{file} False\n"
    shown = check(path)
    files = [tmp_path / "my_ops.torch2.1.so", file]
    assert [line for line in shown.splitlines() if "glibc" not in line][:7] == [
        str(path),
        f"  for PyTorch 2.1 and {HERE}",
        str(files[0]),
        "  not opened",
        str(files[1]),
        f"  needs libtorch_cpu.so: {TORCH}/lib/libtorch_cpu.so",
        f"  needs libc10.so: {TORCH}/lib/libc10.so",
    ]
    assert "  LeakyRelu, on the CPU, in MindSpore, and PyTorch as torch.ops." in shown


def check(path):
    return run(
        *(sys.executable, "-m", "aten_bridge", "check", path),
        check=False,
        env={"PYTHONPATH": PYTHONPATH},
    ).stdout


def test_a_link_that_is_named_for_a_version_is_a_file_for_it(tmp_path, monkeypatch):
    from aten_bridge.mint import library

    copies(tmp_path / "store", HERE)
    stored = without_runpath(tmp_path / f"store/my_ops.torch{HERE}.so")
    stored = stored.rename(tmp_path / "store/0123")
    link = tmp_path / f"my_ops.torch{HERE}.so"
    link.symlink_to(stored)
    for path in (link, tmp_path / "my_ops.so"):
        assert f"  needs libc10.so: {TORCH}/lib/libc10.so\n" in check(path)
        assert f"{link}\n" in check(path)
    assert python(PROGRAM, tmp_path / "my_ops") == f"{link} False\n"
    monkeypatch.setenv("ATEN_BRIDGE_MINT", str(tmp_path / "my_ops.so"))
    assert library() == link


def test_a_file_for_another_pytorch_is_told_so(tmp_path):
    copies(tmp_path, "99.0")
    file = without_runpath(tmp_path / "my_ops.torch99.0.so")
    text = (
        f"{file}: expected PyTorch 99.0, for which this file was built, got PyTorch {HERE} in this "
        f"environment; install torch==99.0.*, or open {tmp_path}/my_ops.so, which stands for the "
        "files of all versions"
    )
    program = "import sys\nfrom aten_bridge._library import open_library\n" + (
        "try: open_library(sys.argv[1])\nexcept OSError as error: print(error)\n"
    )
    assert python(program, file) == f"{text}\n"
    assert check(file).splitlines()[2:] == [
        "  needs libtorch_cpu.so, which is not found",
        "  needs libc10.so, which is not found",
        "  cannot be opened: " + text.removeprefix(f"{file}: "),
    ]


def test_libraries_of_the_bridges_own_for_several_versions_are_found_where_they_are_built(
    tmp_path, monkeypatch
):
    from aten_bridge import _places

    monkeypatch.setattr(_places, "_HERE", tmp_path / "python/aten_bridge")
    monkeypatch.delenv("ATEN_BRIDGE_MINT", raising=False)
    (tmp_path / "build/test").mkdir(parents=True)
    (tmp_path / "build/other").mkdir()
    copies(tmp_path / "build/other/mint", "99.0")
    copies(tmp_path / "build/test/mint", HERE, "99.0")
    where = _places.compiled_library("my_ops.so", "ATEN_BRIDGE_MINT", "mint", "make")
    assert where == tmp_path / f"build/test/mint/my_ops.torch{HERE}.so"


def test_what_the_process_has_goes_before_what_would_be_imported(tmp_path):
    path = copies(tmp_path, HERE, "99.0")
    fake = fake_torch(tmp_path / "fake", "99.0.1+cpu")
    here = f"{tmp_path}/my_ops.torch{HERE}.so False\n"
    assert python(PROGRAM, path, *LIBTORCH, path=fake) == here
    program = PROGRAM.replace("open_library(file)", "#")
    assert python(program, path, path=fake) == f"{tmp_path}/my_ops.torch99.0.so False\n"


def test_none_fits(tmp_path):
    path = copies(tmp_path, "2.1", "99.0", "99.10")
    got = "got one for 2.1, 99.0 and 99.10"
    command = f"build it with `aten-bridge build <sources> -o {path} --pytorch"
    with pytest.raises(FileNotFoundError) as raised:
        kernel(f"{path}:LeakyRelu")
    assert str(raised.value) == (
        f"{path}: expected a library for PyTorch {HERE}, which this process has loaded, {got}; "
        f"{command} {HERE}`, or install torch==99.10.*"
    )
    with pytest.raises(FileNotFoundError) as again:
        load(tmp_path / "my_ops")
    assert str(again.value) == str(raised.value)
    fake = fake_torch(tmp_path / "fake", "99.1.0")
    shown = run(
        *(sys.executable, "-m", "aten_bridge", "check", path),
        check=False,
        env={"PYTHONPATH": fake},
    )
    assert shown.returncode == 1
    oldest_system = r"  needs glibc .*, or newer\n"
    assert re.sub(oldest_system, "", shown.stdout) == (
        f"{path}\n"
        "  for PyTorch 2.1, 99.0 and 99.10\n"
        "  cannot be opened here: expected a library for PyTorch 99.1, which this environment "
        f"has, {got}; {command} 99.1`, or install torch==99.10.*\n"
        f"{tmp_path}/my_ops.torch2.1.so\n  not opened\n"
        f"{tmp_path}/my_ops.torch99.0.so\n  not opened\n"
        f"{tmp_path}/my_ops.torch99.10.so\n  not opened\n"
    )
    program = (
        "import importlib.util, sys\n"
        "importlib.util.find_spec = lambda name: None\n"
        "from aten_bridge._pytorch import library_file\n"
        "try: library_file(sys.argv[1])\n"
        "except FileNotFoundError as error: print(error)\n"
    )
    assert python(program, path) == (
        f"{path}: expected PyTorch 2.1, 99.0 or 99.10, for which the library was built, got no "
        "PyTorch in this environment; pip install torch==99.10.*\n"
    )
    # Neither a file nor a file for a version.
    with pytest.raises(FileNotFoundError) as raised:
        load(tmp_path / "other.so")
    assert str(raised.value) == (
        f"{tmp_path}/other.so: expected a kernel library, got no such file; build it, or correct "
        "the path"
    )


def test_the_starter_of_mint_takes_the_file_for_this_pytorch(tmp_path, monkeypatch):
    from aten_bridge.mint import library

    monkeypatch.setenv("ATEN_BRIDGE_MINT", str(copies(tmp_path, HERE, "99.0")))
    assert library() == tmp_path / f"my_ops.torch{HERE}.so"


# ===--- building for several ---===


def wheel_of_torch(folder, version):
    """A wheel that has what building needs, and more; the libraries are a small one."""
    (folder / "a.cpp").write_text('extern "C" int Answer() { return 42; }\n')
    run("c++", "-shared", "-fPIC", folder / "a.cpp", "-o", folder / "a.so")
    with zipfile.ZipFile(folder / f"torch-{version}-py3-none-any.whl", "w") as wheel:
        about = f"torch-{version}.dist-info"
        wheel.writestr(
            f"{about}/METADATA", f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n"
        )
        wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr(f"{about}/RECORD", "")
        wheel.writestr("torch/include/ATen/core/Tensor.h", "// Tensor\n")
        wheel.writestr(
            "torch/version.py", f"__version__ = '{version}'\ncuda: Optional[str] = '13.0'\n"
        )
        for name in ("c10", "torch_cpu", "c10_cuda", "torch_cuda", "torch_cuda_linalg"):
            wheel.write(folder / "a.so", f"torch/lib/lib{name}.so")
        wheel.writestr("torch/large", b"1" * 2_000_000)


def command(*arguments, status=0, **environment):
    done = run(
        *(sys.executable, "-m", "aten_bridge", *arguments),
        check=False,
        env={"PYTHONPATH": PYTHONPATH, **environment},
    )
    assert done.returncode == status, done.stdout
    return done.stdout


def test_what_building_for_a_version_needs_is_downloaded_once(tmp_path):
    """By pip, from a folder."""
    wheel_of_torch(tmp_path, "98.1.0")
    cache = tmp_path / "cache"
    environment = {
        "ATEN_BRIDGE_CACHE_DIR": str(cache),
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(tmp_path),
    }
    folder = cache / f"pytorch/98.1-{os.uname().machine}"
    downloaded = (
        f"aten_bridge: PyTorch 98.1: downloaded 2 MB, kept 0 MB of headers and names in {folder}\n"
    )
    begins = "aten_bridge: PyTorch 98.{}: downloading 0.5 to 0.9 GB\n"
    said = [begins.format(1).strip(), downloaded.strip()]
    assert command("fetch-pytorch", "98.1", HERE, **environment).splitlines() in (
        [*said, str(folder), str(TORCH)],
        [str(folder), str(TORCH), *said],
    )
    assert command("fetch-pytorch", "98.1", **environment) == f"{folder}\n"
    kept = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    libraries = {f"lib/lib{name}.so" for name in ("c10", "torch_cpu", "c10_cuda", "torch_cuda")}
    assert kept == {"include/ATen/core/Tensor.h", "version.py", "build_only", *libraries}
    assert {path.name for path in folder.parent.iterdir()} == {folder.name, f"{folder.name}.lock"}

    # The copy can be linked, not loaded.
    (tmp_path / "b.cpp").write_text(
        'extern "C" int Answer();\nextern "C" int Ask() { return Answer(); }\n'
    )
    flags = ["-shared", "-fPIC", "-Wl,-z,defs", "-Wl,--no-as-needed"]
    for library in (folder / "lib/libtorch_cuda.so", folder / "lib/libtorch_cpu.so"):
        run("c++", *flags, tmp_path / "b.cpp", library, "-o", tmp_path / "b.so")
        with pytest.raises(OSError, match=r"object file has no loadable segments$"):
            ctypes.CDLL(str(library))

    assert command("fetch-pytorch", "98.2", status=1, **environment) == (
        f"{begins.format(2)}aten-bridge: PyTorch 98.2: expected a wheel for Python "
        f"{sys.version_info[0]}.{sys.version_info[1]}, got those of 98.1; leave it out, or build "
        "with another Python\n"
    )
    no_torch = dict(environment, PIP_FIND_LINKS=str(tmp_path / "cache"))
    said = command("fetch-pytorch", "98.2", status=1, **no_torch)
    assert said.startswith(
        f"{begins.format(2)}aten-bridge: PyTorch 98.2: expected a wheel from pip's package index, "
        "got none; "
    )
    assert "torch==98.2.*" in said  # what pip says first

    # What a cleaner of caches has left is no PyTorch any more: it is downloaded again.
    for name in ("include/ATen/core/Tensor.h", "lib/libc10_cuda.so"):
        (folder / name).unlink()
        command("fetch-pytorch", "98.1", **environment)
        assert (folder / name).is_file()
    assert command("fetch-pytorch", "2.11.0", status=1) == (
        'aten-bridge: fetch-pytorch: expected minor versions of PyTorch, such as "2.11", got '
        "'2.11.0'\n"
    )


@pytest.fixture
def source(tmp_path):
    source = tmp_path / "my_ops.cpp"
    source.write_text(
        "#include <ATen/ops/add.h>\n#include <aten_bridge.h>\n"
        "void twice(const at::Tensor& x, at::Tensor& y) { at::add_out(y, x, x); }\n"
        "ATEN_BRIDGE_EXPORT(Twice, twice, aten_bridge::meta());\n"
    )
    return source


@pytest.mark.full
@pytest.mark.filterwarnings("error")
def test_build_for_several_versions(kept, source, monkeypatch):
    path = pathlib.Path(build.load("my_ops", source, hosts="pytorch", pytorch=["99.0", HERE]))
    names = [f"my_ops.torch{HERE}.so", "my_ops.torch99.0.so"]
    assert sorted(one.name for one in path.parent.iterdir()) == names
    assert load(path).twice(torch.ones(2)).tolist() == [2, 2]
    # What can be linked alone is never looked for.
    assert runpaths(path.parent / names[0]) == [str(TORCH / "lib")]
    assert runpaths(path.parent / names[1]) == []
    assert built_for(*(path.parent / name for name in names)) == [HERE, "99.0"]
    # PyTorch knows the kernel by its name, and needs no function of it.
    assert sorted(exported_functions(str(path.parent / names[0]))) == [
        "aten_bridge_last_error",
        "aten_bridge_library",
    ]
    assert kept.is_dir()
    monkeypatch.setattr(Build, "make", lambda *_: pytest.fail("is built again"))
    assert build.load("my_ops", source, hosts="pytorch", pytorch=("99.0", HERE)) == str(path)


@pytest.mark.full
def test_the_command_builds_for_several_versions(source, tmp_path):
    output = tmp_path / "made.so"
    output.write_text("an older one")
    done = run(
        *(sys.executable, "-m", "aten_bridge", "build", source, "-o", output),
        *("--hosts", "pytorch", "--namespace", "my_ops", "--pytorch", f"{HERE},99.0"),
        env={"PYTHONPATH": PYTHONPATH},
    )
    files = [tmp_path / f"made.torch{version}.so" for version in (HERE, "99.0")]
    assert done.stdout == f"{files[0]}\n{files[1]}\n"
    assert {*tmp_path.glob("made*so")} == {*files}


def test_versions_that_cannot_be_meant(tmp_path):
    source = tmp_path / "a.cpp"
    source.touch()
    for error, versions in ((ValueError, ["2.11", "2.11.0"]), (TypeError, [2.11]), (TypeError, 3)):
        with pytest.raises(error) as raised:
            build.load("a", source, pytorch=versions)
        shown = "'2.11.0'" if error is ValueError else str(versions).strip("[]")
        assert str(raised.value) == (
            f'a: expected minor versions of PyTorch, such as "2.11", got {shown}'
        )

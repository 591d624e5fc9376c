"""The wheel: what is in it, that an sdist makes the same, and that it works installed."""

import sys
import tarfile
import zipfile

import pytest
from conftest import OFFLINE, SOURCE, run, version


def files_of(wheel):
    return {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}


def expected_files():
    folders = {
        "python/aten_bridge": "aten_bridge",
        "include": "aten_bridge/include",
        "cmake/package": "aten_bridge/cmake/package",
        "plugin/caller": "aten_bridge/caller",
        "examples/kernel_package": "aten_bridge/examples/kernel_package",
    }
    return {
        f"{target}/{path.relative_to(SOURCE / folder)}"
        for folder, target in folders.items()
        for path in (SOURCE / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_the_wheel_has_modules_headers_and_cmake_and_is_for_every_machine(wheel):
    assert wheel.name == f"aten_bridge-{version()}-py3-none-any.whl"
    assert files_of(wheel) == expected_files()
    metadata = zipfile.ZipFile(wheel).read(f"aten_bridge-{version()}.dist-info/METADATA").decode()
    assert "Provides-Extra: mindspore\n" in metadata
    assert "Provides-Extra: torch\n" in metadata


@pytest.mark.full
def test_the_sdist_is_small_and_makes_the_same_wheel(wheel, tmp_path):
    program = "import sys, scikit_build_core.build as b; print(b.build_sdist(sys.argv[1]))"
    run(sys.executable, "-c", program, tmp_path, cwd=SOURCE)
    (sdist,) = tmp_path.iterdir()
    assert sdist.name == f"aten_bridge-{version()}.tar.gz"
    assert sdist.stat().st_size < 2 * 2**20
    with tarfile.open(sdist) as archive:
        assert not [
            n for n in archive.getnames() if n.startswith(f"aten_bridge-{version()}/build/")
        ]
    run(sys.executable, "-m", "pip", "wheel", *OFFLINE, "-w", tmp_path / "wheel", sdist)
    (again,) = (tmp_path / "wheel").iterdir()
    assert again.name == wheel.name
    assert files_of(again) == files_of(wheel)


def test_the_command_knows_where_things_are(environment):
    installed = environment.packages / "aten_bridge"
    for option, line in {
        "--version": version(),
        "--include-dir": installed / "include",
        "--cmake-dir": installed / "cmake/package",
    }.items():
        assert run(environment.bin / "aten-bridge", option).stdout == f"{line}\n"
    assert (installed / "include/aten_bridge.h").is_file()
    assert (installed / "cmake/package/aten_bridgeConfig.cmake").is_file()

"""The presets with sanitizers: which tests they run."""

import json
import re

from conftest import SOURCE

PRESETS = json.loads((SOURCE / "CMakePresets.json").read_text())


def preset(kind, name):
    (found,) = (one for one in PRESETS[kind] if one["name"] == name)
    return found


def executables_of(pattern):
    """Those of tests/CMakeLists.txt that have a test of such a name."""
    text = (SOURCE / "tests/CMakeLists.txt").read_text()
    sources = dict(re.findall(r"add_executable\((\w+)\s+([^)]*)\)", text))
    return {
        name
        for name, files in sources.items()
        if any(re.search(pattern, (SOURCE / "tests" / file).read_text()) for file in files.split())
    }


def test_tsan_runs_all_unit_tests_with_several_threads():
    names = executables_of(r"\nTEST(_F|_P)?\(\w+, \w*Thread")
    assert names == {"bridge_test", "typed_test"}
    wanted = {*names, "soak"}
    assert set(preset("buildPresets", "tsan")["targets"]) == wanted
    tests = preset("testPresets", "tsan")
    included = tests["filter"]["include"]["name"]
    assert {name for name in (*wanted, "core_test", "build") if re.search(included, name)} == wanted
    assert tests["environment"]["GTEST_FILTER"] == "*Thread*"


def test_asan_runs_all_tests():
    assert "filter" not in preset("testPresets", "asan")
    assert "targets" not in preset("buildPresets", "asan")

"""The presets: which tests those with sanitizers run, and which ones pages and workflows name."""

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


def test_pages_and_workflows_name_presets_that_there_are():
    text = "".join(
        path.read_text()
        for path in (
            *SOURCE.glob("*.md"),
            *SOURCE.glob("docs/**/*.md"),
            *SOURCE.glob("examples/*/README.md"),
            *SOURCE.glob(".github/workflows/*.yml"),
        )
    )
    named = set(re.findall(r"cmake --workflow --preset ([a-z]\w*)", text))
    (nightly,) = re.findall(
        r"preset: \[(.*)\]", (SOURCE / ".github/workflows/nightly.yml").read_text()
    )
    workflows = {one["name"] for one in PRESETS["workflowPresets"]}
    assert named | set(nightly.split(", ")) <= workflows


def test_contributing_tells_what_each_preset_does():
    text = (SOURCE / "CONTRIBUTING.md").read_text()
    described = re.findall(r"^\| `(\w+)` \|", text, re.M)
    assert sorted(described) == sorted(one["name"] for one in PRESETS["workflowPresets"])

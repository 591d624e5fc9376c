"""The presets and the targets of `full`: what they run, and which ones pages and workflows name."""

import json
import re

import pytest
from conftest import SOURCE

pytestmark = pytest.mark.core

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


def test_there_are_six_presets():
    names = ["demo", "test", "full", "asan", "tsan", "fuzz"]
    assert [one["name"] for one in PRESETS["workflowPresets"]] == names
    shown = [one["name"] for one in PRESETS["configurePresets"] if not one.get("hidden")]
    assert shown == names


def test_tsan_runs_all_unit_tests_with_several_threads():
    names = executables_of(r"\nTEST(_F|_P)?\(\w+, \w*Thread")
    assert names == {"bridge_test", "typed_test"}
    assert set(preset("buildPresets", "tsan")["targets"]) == {*names, "soak_test"}
    tests = preset("testPresets", "tsan")
    included = tests["filter"]["include"]["name"]
    wanted = {*names, "soak"}
    assert {name for name in (*wanted, "core_test", "build") if re.search(included, name)} == wanted
    assert tests["environment"]["GTEST_FILTER"] == "*Thread*"


def test_asan_and_full_run_all_tests():
    for name in ("asan", "full"):
        assert "filter" not in preset("testPresets", name)
        assert "targets" not in preset("buildPresets", name)
        assert preset("configurePresets", name)["cacheVariables"]["ATEN_BRIDGE_BUILD_FULL"] == "ON"


def pages():
    return "".join(
        path.read_text()
        for path in (
            *SOURCE.glob("*.md"),
            *SOURCE.glob("docs/**/*.md"),
            *SOURCE.glob("examples/*/README.md"),
            *SOURCE.glob(".github/workflows/*.yml"),
            *SOURCE.glob("python/**/*.py"),
            SOURCE / ".ci/run",
        )
    )


def nightly(what):
    text = (SOURCE / ".github/workflows/nightly.yml").read_text()
    (found,) = re.findall(rf"^ +{what}: \[(.*)\]$", text, re.M)
    return set(found.split(", "))


def described(heading):
    """The first cells of a table of CONTRIBUTING.md."""
    text = (SOURCE / "CONTRIBUTING.md").read_text()
    (table,) = re.findall(rf"^\| {heading} \|.*\n\|---.*\n((?:\|.*\n)+)", text, re.M)
    return re.findall(r"^\| `?(\w+)`? \|", table, re.M)


def test_pages_and_workflows_name_presets_that_there_are():
    text = pages()
    workflows = {one["name"] for one in PRESETS["workflowPresets"]}
    named = set(re.findall(r"cmake --workflow --preset ([a-z]\w*)", text))
    assert named | nightly("preset") <= workflows
    configured = set(re.findall(r"(?:cmake|--build|ctest) --preset ([a-z]\w*)", text))
    assert configured <= workflows
    assert set(re.findall(r"presets? `(\w+)`", text)) <= workflows


def test_pages_and_workflows_name_targets_that_there_are():
    targets = set(described("target"))
    named = set(re.findall(r"--build build/full (?:--target|-t) ([a-z]\w*)", pages()))
    assert named | nightly("target") <= targets


def test_contributing_tells_what_each_preset_and_target_does():
    presets = [one["name"] for one in PRESETS["workflowPresets"]]
    assert described("preset") == presets
    parts = (SOURCE / "cmake/Full.cmake").read_text()
    made = set()
    for name, more in re.findall(r"^aten_bridge_add_part\((\w+)([^)]*)\)", parts, re.M):
        made |= {name, *" ".join(re.findall(r"TARGETS ([\w ]+)", more)).split()}
    folders = ["tests", "tests/soak", *re.findall(r"^add_subdirectory\(([\w/]+)\)", parts, re.M)]
    texts = [(SOURCE / folder / "CMakeLists.txt").read_text() for folder in folders]
    for text in (parts, *texts):
        made |= set(re.findall(r"^add_custom_target\((\w+)(?: COMMAND|\n  COMMAND)", text, re.M))
    assert sorted(described("target")) == sorted(made)


def test_suites_have_tests_of_both_kinds_where_both_are_run():
    """A suite of which no test is selected fails."""
    text = (SOURCE / "tests/CMakeLists.txt").read_text()
    (suites,) = re.findall(
        r"foreach\(suite ([\w ]+)\)\n +aten_bridge_add_pytest\(\$\{suite\}_full", text
    )
    for suite in suites.split():
        files = list((SOURCE / "tests" / suite).glob("test_*.py"))
        assert any("mark.full" in file.read_text() for file in files), suite
        assert not all("pytestmark = pytest.mark.full" in file.read_text() for file in files), suite

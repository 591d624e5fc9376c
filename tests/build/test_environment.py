"""What the presets' set-up says when something is missing, and what it installs."""

import fcntl
import importlib.util
import sys

import pytest
from conftest import CMAKE, SOURCE, run

pytestmark = pytest.mark.core

SCRIPT = SOURCE / "cmake/python_environment.py"
LOCKS = sorted([*SOURCE.glob("*.lock"), *SOURCE.glob("t*/*/*.lock")])


@pytest.fixture
def environment(monkeypatch):
    """A fresh copy of the script's module, whose commands are listed and not run."""
    spec = importlib.util.spec_from_file_location("python_environment", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.commands = []
    module.failing = ""

    def fake_run(command, **options):
        text = " ".join(map(str, command))
        module.commands.append(text)
        return not (module.failing and module.failing in text)

    monkeypatch.setattr(module, "run", fake_run)
    monkeypatch.setattr(module.sys, "version_info", (3, 11, 7))
    monkeypatch.setattr(module.subprocess, "run", lambda *words, **options: Listed)
    return module


class Listed:
    """What `pip config list` gives."""

    stdout = "global.index-url='https://a.example/simple'\n"


@pytest.fixture
def requirements(tmp_path):
    path = tmp_path / "requirements.txt"
    path.write_text("torch==2.11.0\nmindspore==2.10.0  # a comment\njax==0.6.2\n")
    path.with_suffix(".lock").write_text("torch==2.11.0\nuv==1.2.3\n")
    return path


def test_the_environment_in_use_is_taken_as_it_is(tmp_path, requirements):
    result = tmp_path / "python.txt"
    done = run(sys.executable, SCRIPT, tmp_path / "environment", requirements, result)
    assert done.stdout == f"Using the Python environment in {sys.prefix}.\n"
    assert result.read_text() == sys.executable
    assert not (tmp_path / "environment").exists()


@pytest.mark.parametrize(
    ("versions", "reason"),
    [
        ({"torch": None, "mindspore": None}, "it has no torch and no mindspore"),
        ({"mindspore": None}, "it has no mindspore"),
        ({"torch": "2.1.2"}, "its PyTorch is older than 2.2"),
        ({"torch": "2.2.0+cpu"}, ""),
        ({"mindspore": "2.9.0"}, "its MindSpore is not 2.10"),
        ({"numpy": "2.4.0"}, "MindSpore 2.10 needs numpy 1.x"),
        ({"numpy": None}, "MindSpore 2.10 needs numpy 1.x"),
        ({"jax": "0.6.1"}, "it has no jax 0.6.2"),
        ({}, ""),
    ],
)
def test_an_unsuitable_environment_is_named(environment, requirements, versions, reason):
    found = {"torch": "2.11.0", "mindspore": "2.10.0", "numpy": "1.26.4", "jax": "0.6.2"}
    environment.installed_version = {**found, **versions}.get
    assert environment.lacking(environment.pinned_in(requirements), ["jax"]) == reason


def test_without_pytorch_in_the_requirements_all_that_they_name_is_looked_for(environment):
    environment.installed_version = {"mkdocs": "1.6.1", "Markdown": "3.1"}.get
    pinned = {"mkdocs": "1.6.1", "Markdown": "3.2"}
    assert environment.lacking(pinned, []) == "it has no Markdown 3.2"
    assert environment.lacking({"mkdocs": "1.6.1"}, []) == ""


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.relative_to(SOURCE).as_posix())
def test_a_lock_file_has_what_its_requirements_pin(environment, lock):
    def named(path):
        pinned = environment.pinned_in(path)
        return {name.lower().replace("_", "-"): version for name, version in pinned.items()}

    wanted = named(lock.with_suffix(".txt"))
    assert {name: named(lock).get(name) for name in wanted} == wanted
    assert "uv" in wanted


def test_each_environment_has_a_lock_file():
    names = {path.with_suffix(".txt").relative_to(SOURCE).as_posix() for path in LOCKS}
    assert names == {
        *("requirements.txt", "tests/jax/requirements.txt", "tests/jax/requirements_mindspore.txt"),
        *("tests/third_party_models/requirements.txt", "tools/site/requirements.txt"),
    }


def test_the_environment_is_made_once_and_again_when_it_is_stale(
    environment, tmp_path, requirements, capsys
):
    folder = tmp_path / "environment"
    folder.mkdir()
    python, lock = folder / "bin/python", requirements.with_suffix(".lock")
    made = [
        f"{sys.executable} -m venv --clear {folder}",
        f"{python} -m pip --disable-pip-version-check install --quiet uv==1.2.3",
        f"{python} -m uv pip sync --python {python} {lock}",
    ]
    works = f"{python} -c import uv"

    def commands():
        environment.commands.clear()
        assert environment.make(folder, requirements) == python
        return environment.commands

    assert commands() == made
    text = f"Making a private environment with the packages of {lock} in {folder} ...\n"
    assert capsys.readouterr().out == text
    assert commands() == [works]
    lock.write_text("torch==2.12.0\nuv==1.2.3\n")
    assert commands() == made
    environment.failing = "import uv"  # its Python was upgraded or removed
    assert commands() == [works, *made]


@pytest.mark.parametrize(
    ("failing", "sentence"),
    [
        (
            "venv",
            "no virtual environment could be made; the reason stands above. Debian and Ubuntu have "
            "the module venv in a package of its own: apt install python3-venv.",
        ),
        (
            "pip",
            "the packages of {lock} could not be installed in {folder}; the reason stands "
            "above. Connect to the internet, or activate an environment that has what "
            "{requirements} names.",
        ),
    ],
)
def test_a_failure_is_a_sentence(environment, tmp_path, requirements, failing, sentence):
    folder = tmp_path / "environment"
    environment.failing = failing
    with pytest.raises(SystemExit) as stopped:
        environment.make(folder, requirements)
    lock = requirements.with_suffix(".lock")
    words = {"lock": lock, "folder": folder, "requirements": requirements}
    assert str(stopped.value) == "aten_bridge: " + sentence.format(**words)
    assert not (folder / "complete").exists()


def test_one_process_at_a_time_makes_the_environment(
    environment, monkeypatch, tmp_path, requirements
):
    folder, result = tmp_path / "build/environment", tmp_path / "python.txt"

    def is_locked():
        with open(f"{folder}.lock") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False

    monkeypatch.setattr(environment, "lacking", lambda *_: "it has no torch")
    monkeypatch.setattr(environment, "make", lambda *_: f"locked: {is_locked()}")
    environment.main(folder, requirements, result)
    assert result.read_text() == "locked: True"
    assert not is_locked()


@pytest.mark.parametrize("failing", ["uv==1.2.3", "sync"])
def test_pip_installs_where_uv_fails(environment, tmp_path, requirements, failing):
    folder = tmp_path / "environment"
    folder.mkdir()
    environment.failing = failing
    python = environment.make(folder, requirements)
    lock = requirements.with_suffix(".lock")
    pip = f"{python} -m pip --disable-pip-version-check"
    assert environment.commands[-1] == f"{pip} install -r {lock}"


@pytest.mark.parametrize("version", [(3, 10, 4), (3, 13, 0)])
def test_wrong_python_version(environment, monkeypatch, tmp_path, requirements, version):
    monkeypatch.setattr(environment.sys, "version_info", version)
    with pytest.raises(SystemExit) as stopped:
        environment.make(tmp_path / "environment", requirements)
    assert str(stopped.value) == (
        "aten_bridge: Python 3.11 or 3.12 is needed (the lock file is for these), and "
        f"{sys.executable} is 3.{version[1]}; install one of them and name it with "
        "-DPython3_EXECUTABLE=<path>."
    )
    requirements.write_text("mkdocs==1.6.1\n")  # these have no such bound
    (tmp_path / "environment").mkdir()
    environment.make(tmp_path / "environment", requirements)


@pytest.mark.parametrize(
    ("listed", "settings"),
    [
        ("", {}),
        (
            ":env:.index-url='https://a.example'\nglobal.index-url='https://b.example'\n",
            {"UV_DEFAULT_INDEX": "https://a.example"},
        ),
        ("global.index-url=''\n", {}),
        ("global.index-url='https://a.example'\n", {"UV_DEFAULT_INDEX": "https://a.example"}),
        ("global.cert='/a'\n:env:.cert='/b'\n", {"SSL_CERT_FILE": "/b"}),
        (":env:.find-links='/a /b'\n", {"UV_FIND_LINKS": "/a,/b"}),
        ("global.trusted-host='a b'\n", {"UV_INSECURE_HOST": "a b"}),
        (
            "install.extra-index-url='\\nhttps://a\\nhttps://b'\n",
            {"UV_INDEX": "https://a https://b"},
        ),
        ("global.no-input='true'\nfreeze.index-url='https://a'\n", {}),
    ],
)
def test_uv_is_told_where_pip_finds_packages(environment, listed, settings):
    assert environment.uv_settings(listed) == settings


def test_missing_compiler_is_a_sentence():
    done = run(CMAKE, "-P", SOURCE / "cmake/RequireTools.cmake", env={"PATH": ""}, check=False)
    assert done.returncode != 0
    assert (
        "There is no C++ compiler. Install one (Debian, Ubuntu: apt install build-essential;"
        " Fedora: dnf install gcc-c++ make), or name it with the variable CXX."
        in " ".join(done.stdout.split())
    )


def test_missing_make_is_a_sentence():
    done = run(
        *[CMAKE, "-DCMAKE_CXX_COMPILER=c++", "-DCMAKE_GENERATOR=Unix Makefiles"],
        *["-P", SOURCE / "cmake/RequireTools.cmake"],
        env={"PATH": ""},
        check=False,
    )
    assert done.returncode != 0
    assert (
        "There is no make. Install it (Debian, Ubuntu: apt install build-essential), or install"
        " Ninja and set the variable CMAKE_GENERATOR to Ninja." in " ".join(done.stdout.split())
    )

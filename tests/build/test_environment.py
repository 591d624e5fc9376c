"""What the presets' set-up says when something is missing."""

import importlib.util
import subprocess
import sys
import types

import pytest
from conftest import CMAKE, SOURCE, run

SCRIPT = SOURCE / "cmake/python_environment.py"


@pytest.fixture
def environment():
    """A fresh copy of the script's module, for tests that put other functions into it."""
    spec = importlib.util.spec_from_file_location("python_environment", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def replace_run(environment, function):
    """Gives the module another subprocess.run."""
    environment.subprocess = types.SimpleNamespace(**{**vars(subprocess), "run": function})


def failure_of(environment, *arguments):
    with pytest.raises(environment.EnvironmentFailure) as failure:
        environment.make(*[str(argument) for argument in arguments])
    return str(failure.value)


@pytest.fixture
def requirements(tmp_path):
    path = tmp_path / "requirements.txt"
    path.write_text("torch==2.11.0\n")
    return path


@pytest.fixture
def tools(tmp_path):
    """Requirements that do not name PyTorch, as those of the preset `site`."""
    path = tmp_path / "tools.txt"
    path.write_text("mkdocs==1.6.1\nmkdocs-material==9.8.1  # a comment\n")
    return path


def test_the_environment_in_use_is_taken_as_it_is(tmp_path, requirements):
    result = tmp_path / "python.txt"
    done = run(sys.executable, SCRIPT, tmp_path / "environment", requirements, result)
    assert done.stdout == f"Using PyTorch and MindSpore of {sys.prefix}.\n"
    assert result.read_text() == sys.executable
    assert not (tmp_path / "environment").exists()


@pytest.mark.parametrize(
    ("versions", "reason"),
    [
        ({"torch": None, "mindspore": None}, "it has no torch and no mindspore"),
        ({"mindspore": None}, "it has no mindspore"),
        ({"torch": (2, 1, 2)}, "its PyTorch is older than 2.2"),
        ({"torch": (2, 2, 0)}, ""),
        ({"mindspore": (2, 9, 0)}, "its MindSpore is not 2.10"),
        ({"numpy": (2, 4, 0)}, "MindSpore 2.10 needs numpy 1.x"),
        ({}, ""),
    ],
)
def test_an_unsuitable_environment_is_named(environment, versions, reason):
    found = {"torch": (2, 11, 0), "mindspore": (2, 10, 0), "numpy": (1, 26, 4), **versions}
    environment.version_of = found.get
    assert environment.unsuitable() == reason


@pytest.mark.parametrize(
    ("version", "reason"),
    [((0, 5, 0), ""), ((0, 4, 0), "it has no mindone 0.5.0"), (None, "it has no mindone 0.5.0")],
)
def test_packages_that_a_preset_needs_are_looked_for_in_their_versions(
    environment, tmp_path, version, reason
):
    requirements = tmp_path / "requirements.txt"
    requirements.write_text("mindone==0.5.0  # a comment\ntorch==2.11.0\n")
    environment.version_of = {"mindone": version}.get
    assert environment.lacking(requirements, ["mindone"]) == reason


@pytest.mark.parametrize(
    ("versions", "reason"),
    [
        ({"mkdocs": "1.6.1", "mkdocs-material": "9.8.1"}, ""),
        ({"mkdocs": "1.6.1", "mkdocs-material": "9.7.0"}, "it has no mkdocs-material 9.8.1"),
        ({"mkdocs-material": "9.8.1"}, "it has no mkdocs 1.6.1"),
    ],
)
def test_without_pytorch_in_the_requirements_all_that_they_name_is_looked_for(
    environment, tools, versions, reason
):
    environment.installed_version = versions.get
    assert environment.lacking(tools, []) == reason


def test_without_pytorch_in_the_requirements_the_environment_in_use_needs_none(tmp_path):
    requirements = tmp_path / "requirements.txt"
    requirements.write_text(f"pytest=={pytest.__version__}  # a comment\n")
    result = tmp_path / "python.txt"
    done = run(sys.executable, SCRIPT, tmp_path / "environment", requirements, result)
    assert done.stdout == f"Using the Python packages of {sys.prefix}.\n"
    assert result.read_text() == sys.executable


@pytest.mark.parametrize("version", [(3, 10, 0), (3, 14, 0)])
def test_without_pytorch_in_the_requirements_any_newer_python_will_do(
    environment, tmp_path, tools, version
):
    environment.sys = types.SimpleNamespace(version_info=version, executable="python3")
    made = []

    def fake_run(command, **options):
        made.append(command)
        return types.SimpleNamespace(returncode=0)

    replace_run(environment, fake_run)
    folder = tmp_path / "environment"
    assert environment.make(str(folder), str(tools)) == str(folder / "bin/python")
    assert len(made) == 2  # venv and pip


def test_without_pytorch_in_the_requirements_sentences_speak_of_none(environment, tmp_path, tools):
    folder = tmp_path / "environment"
    environment.sys = types.SimpleNamespace(version_info=(3, 9, 2), executable="python3.9")
    assert failure_of(environment, folder, tools) == (
        "Python 3.10 or newer is needed, and python3.9 is 3.9; install one and name it with"
        " -DPython3_EXECUTABLE=<path>"
    )
    environment.sys = sys
    usage = types.SimpleNamespace(free=2**29)
    whole = environment.shutil
    environment.shutil = types.SimpleNamespace(rmtree=whole.rmtree, disk_usage=lambda path: usage)
    assert failure_of(environment, folder, tools) == (
        f"the disk is too full for the private environment: {folder} needs 1 GiB and has 0.5 GiB"
    )
    environment.shutil = whole
    log = tmp_path / "pip.log"
    for text, sentence in (
        (
            "Failed: NewConnectionError",
            "the package index could not be reached; connect to the internet, or activate an"
            f" environment that has what {tools} names",
        ),
        (
            "No matching distribution found for mkdocs==1.6.1",
            "there is no mkdocs==1.6.1 for this Python and this machine",
        ),
    ):
        log.write_text(text)
        assert environment.explain(log, folder, tools) == sentence


def test_wrong_python_version(environment, tmp_path, requirements):
    environment.sys = types.SimpleNamespace(version_info=(3, 13, 0), executable="python3.13")
    assert failure_of(environment, tmp_path / "environment", requirements) == (
        "Python 3.10, 3.11 or 3.12 is needed (for no other are there wheels of both MindSpore"
        " 2.10.0 and PyTorch 2.11.0), and python3.13 is 3.13; install one of them and name it with"
        " -DPython3_EXECUTABLE=<path>"
    )


def test_too_little_space_is_seen_before_anything_is_downloaded(
    environment, tmp_path, requirements
):
    usage = types.SimpleNamespace(free=3 * 2**30)
    environment.shutil = types.SimpleNamespace(
        rmtree=environment.shutil.rmtree, disk_usage=lambda path: usage
    )
    folder = tmp_path / "environment"
    assert failure_of(environment, folder, requirements) == (
        f"the disk is too full for the private environment: {folder} needs 12 GiB and has 3.0 GiB"
    )


@pytest.mark.parametrize(
    ("log", "sentence"),
    [
        (
            "WARNING: Retrying after NewConnectionError('...: Failed to establish a connection')\n"
            "ERROR: No matching distribution found for torch==2.11.0",
            "the package index could not be reached; connect to the internet, or activate an"
            " environment that has PyTorch and MindSpore",
        ),
        (
            "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on"
            " device",
            "the disk is full; about 12 GiB are needed in {folder}",
        ),
        (
            "ERROR: No matching distribution found for mindspore==2.10.0",
            "there is no mindspore==2.10.0 for this Python and this machine; MindSpore 2.10.0 has"
            " wheels for Linux on x86-64 and arm64",
        ),
        ("ERROR: something else", "pip failed; its log is {folder}/pip.log"),
    ],
)
def test_a_failing_pip_is_explained(environment, tmp_path, requirements, log, sentence):
    folder = tmp_path / "environment"

    def fake_run(command, **options):
        if "venv" not in command:
            (folder / "pip.log").write_text(log)
            return types.SimpleNamespace(returncode=1)
        return types.SimpleNamespace(returncode=0)

    replace_run(environment, fake_run)
    assert failure_of(environment, folder, requirements) == sentence.format(folder=folder)


# What pip is set to; uv's own variables stand before it.
OF_PIP = "global.extra-index-url='https://of-pip'\nglobal.find-links='/of-pip'\n"


def run_with_uv(environment, settings, statuses):
    """Has each command of the module end with the status that its first word here has, else 0."""
    made = []

    def fake_run(command, **options):
        words = ["venv", "config", "uv==1.2.3", "uv", "pip"]
        made.append(next(word for word in words if word in command))
        if made[-1] == "uv":
            install = ["-m", "uv", "pip", "install", "--compile-bytecode", "--python", command[0]]
            assert command[1:-2] == install
            assert options["env"]["UV_INDEX"] == "https://of-pip"
            assert options["env"]["UV_FIND_LINKS"] == "/of-uv"
        status = statuses.get(made[-1], 0)
        return types.SimpleNamespace(returncode=status, stdout=settings.encode())

    replace_run(environment, fake_run)
    return made


@pytest.fixture
def uv_requirements(tmp_path):
    path = tmp_path / "requirements.txt"
    path.write_text("torch==2.11.0\nuv==1.2.3  # a comment\n")
    return path


@pytest.mark.parametrize(
    ("settings", "statuses", "commands"),
    [
        (OF_PIP, {}, ["venv", "uv==1.2.3", "config", "uv"]),
        (OF_PIP, {"uv": 2}, ["venv", "uv==1.2.3", "config", "uv", "pip"]),
        (OF_PIP, {"config": 1}, ["venv", "uv==1.2.3", "config", "pip"]),
        ("global.no-index='true'\n", {}, ["venv", "uv==1.2.3", "config", "pip"]),
    ],
)
def test_uv_installs_where_it_is_pinned_and_pip_what_uv_cannot(
    environment, tmp_path, uv_requirements, monkeypatch, settings, statuses, commands
):
    monkeypatch.setenv("UV_FIND_LINKS", "/of-uv")
    made = run_with_uv(environment, settings, statuses)
    environment.make(str(tmp_path / "environment"), str(uv_requirements))
    assert made == commands


@pytest.mark.parametrize("failing", ["uv==1.2.3", "pip"])
def test_where_uv_and_pip_fail_pip_is_explained(
    environment, tmp_path, uv_requirements, monkeypatch, failing
):
    monkeypatch.setenv("UV_FIND_LINKS", "/of-uv")
    made = run_with_uv(environment, OF_PIP, {failing: 1, "uv": 2})
    folder = tmp_path / "environment"
    assert failure_of(environment, folder, uv_requirements) == (
        f"pip failed; its log is {folder}/pip.log"
    )
    assert made[-1] == failing


def test_uv_keeps_its_cache_on_the_disk_of_the_environment(
    environment, tmp_path, uv_requirements, monkeypatch
):
    monkeypatch.delenv("UV_CACHE_DIR", raising=False)
    caches = []

    def fake_run(command, **options):
        if "uv" in command:
            caches.append(options["env"].get("UV_CACHE_DIR"))
        return types.SimpleNamespace(returncode=0, stdout=b"")

    replace_run(environment, fake_run)
    for is_there in (True, False):
        environment.is_on_disk_of = lambda path, other, is_there=is_there: is_there
        environment.make(str(tmp_path / str(is_there) / "environment"), str(uv_requirements))
    assert caches == [None, str(tmp_path / "False/uv_cache")]


def test_disk_of_what_is_not_there_yet(environment, tmp_path, monkeypatch):
    assert environment.is_on_disk_of(str(tmp_path), str(tmp_path / "a/b"))
    assert not environment.is_on_disk_of(str(tmp_path), "/proc/none")
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert environment.uv_cache() == "/caches/uv"


@pytest.mark.parametrize(
    ("listed", "settings"),
    [
        ("", {}),
        (
            "global.index-url='https://a/simple'\n:env:.index-url='https://b/simple'\n"
            "install.index-url='https://c/simple'\nglobal.cert='/a b/c.pem'\n",
            {"UV_DEFAULT_INDEX": "https://b/simple", "SSL_CERT_FILE": "/a b/c.pem"},
        ),
        (
            "global.extra-index-url='\\nhttps://a\\nhttps://b'\n:env:.find-links='/a /b'\n"
            ":env:.default-timeout='180'\n",
            {"UV_INDEX": "https://a https://b", "UV_FIND_LINKS": "/a,/b", "UV_HTTP_TIMEOUT": "180"},
        ),
        ("global.disable-pip-version-check='1'\ndownload.no-index='1'\n", {}),
        (
            "global.index-url='https://a/simple'\n:env:.index-url=''\n:env:.no-index=''\n",
            {"UV_DEFAULT_INDEX": "https://a/simple"},
        ),
        ("global.cert=surprise\n", None),
        ("global.cert='/c.pem'\nglobal.constraint='c.txt'\n", None),
    ],
)
def test_uv_is_told_what_pip_is_set_to(environment, listed, settings):
    assert environment.uv_settings(listed) == settings


@pytest.mark.parametrize(
    ("output", "sentence"),
    [
        (
            b"The virtual environment was not created because ensurepip is not available.",
            "this Python cannot make virtual environments; install its venv module"
            " (Debian, Ubuntu: apt install python3-venv)",
        ),
        (
            b"Traceback\nOSError: File too large\n",
            "no virtual environment could be made: OSError: File too large",
        ),
    ],
)
def test_a_failing_venv_is_explained(environment, tmp_path, requirements, output, sentence):
    replace_run(
        environment,
        lambda command, **options: types.SimpleNamespace(returncode=1, stdout=output),
    )
    assert failure_of(environment, tmp_path / "environment", requirements) == sentence


def test_the_environment_is_made_once_and_again_when_it_is_stale(
    environment, tmp_path, requirements
):
    folder = tmp_path / "environment"
    made = []
    works = True

    def fake_run(command, **options):
        if "-c" in command:  # the probe of an existing environment
            return types.SimpleNamespace(returncode=0 if works else 1)
        made.append(command)
        return types.SimpleNamespace(returncode=0)

    replace_run(environment, fake_run)
    for _ in range(2):
        assert environment.make(str(folder), str(requirements)) == str(folder / "bin/python")
        assert len(made) == 2  # venv and pip
    requirements.write_text("torch==2.12.0\n")
    environment.make(str(folder), str(requirements))
    assert len(made) == 4
    works = False  # its Python was upgraded or removed
    environment.make(str(folder), str(requirements))
    assert len(made) == 6


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

"""What of PyTorch's internals the bridge uses stands in a table of docs/inside.md, with the files.

Such names change from one minor version of PyTorch to the next: who builds with a new one begins
with this table.
"""

import re
from collections import defaultdict

import pytest
from conftest import SOURCE

pytestmark = pytest.mark.core

FOLDERS = ("include", "plugin", "cmake/package")
CLASSES = (
    *("AutogradState", "Dispatcher", "KernelFunction", "OperatorHandle", "OperatorKernel"),
    *("RegistrationHandleRAII", "StorageImpl", "TensorImpl", "VariableVersion"),
)
NAMES = re.compile(
    r"\b(?:(?:c10|at|torch)::(?:impl|detail|native|autocast|jit|autograd)\b(?:::\w+)*"
    rf"|caffe2::\w+|c10::(?:{'|'.join(CLASSES)})\b|unsafeGet(?:Tensor|Storage)Impl"
    r"|TORCH_VERSION_MINOR)"
)


def code_of(path):
    text = re.sub(r"//.*", "", path.read_text())
    return re.sub(r'"(?:\\.|[^"\\\n])*"', '""', text)


def plain(name):
    """Without the members of a class, and one name for what a tensor's pointer leads to."""
    if name.startswith("unsafeGet"):
        return f"c10::{name.removeprefix('unsafeGet')}"
    if name.startswith("at::autocast"):
        return "at::autocast"
    return re.match(r"(?:[a-z]\w*::)*\w+", name)[0]


def used():
    files = defaultdict(set)
    for folder in FOLDERS:
        for path in (SOURCE / folder).rglob("*.*"):
            if path.suffix in (".h", ".cpp", ".cu"):
                for name in NAMES.findall(code_of(path)):
                    files[plain(name)].add(path.relative_to(SOURCE).as_posix())
    return {name: sorted(paths) for name, paths in files.items()}


def in_table():
    page = (SOURCE / "docs/inside.md").read_text()
    section = page.partition("## PyTorch's internals\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`.*?`) \| .* \| (`.*`) \|$", section, re.M)
    files = {}
    for names, paths in rows:
        for name in re.findall(r"`(.*?)`", names):
            assert name not in files, f"{name} stands twice in the table"
            files[name] = re.findall(r"`(.*?)`", paths)
    return files


def test_the_table_has_each_name_and_the_files_that_use_it():
    found = used()
    whole = {
        name: sorted(
            path if path.startswith(FOLDERS) else f"include/aten_bridge/{path}" for path in paths
        )
        for name, paths in in_table().items()
    }
    assert whole == found


def test_a_name_is_found_in_code_alone(tmp_path):
    source = tmp_path / "a.cpp"
    source.write_text(
        'c10::impl::A::b(); // c10::impl::C\nf("at::native::d"); x->unsafeGetTensorImpl();\n'
        "torch::autograd::impl::e(c10::TensorImpl::f); c10::DispatchKey::CPU;\n"
    )
    assert [plain(name) for name in NAMES.findall(code_of(source))] == [
        *("c10::impl::A", "c10::TensorImpl", "torch::autograd::impl::e", "c10::TensorImpl"),
    ]

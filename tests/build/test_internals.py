"""What of PyTorch's internals the bridge uses stands in a table of docs/inside.md, with the files.

Such names change from one minor version of PyTorch to the next: who builds with a new one begins
with this table. What programs use of PyTorch's private names in Python stands in one module.
"""

import ast
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


# ===--- private names in Python ---===

PROGRAM = SOURCE / "python/aten_bridge/program"
OWN = ("self", "cls")
OF_NAMEDTUPLES = ("_asdict", "_fields", "_make", "_replace")


def is_private(name):
    return name.startswith("_") and not name.startswith("__")


def private_names(source):
    """The private names of other objects than `self`, and of PyTorch's modules."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                found = [alias.name for alias in names if alias.name.startswith("torch.")]
            case ast.ImportFrom(module=str(module), names=names) if module.startswith("torch"):
                found = [f"{module}.{alias.name}" for alias in names]
            case ast.Attribute(value=ast.Name(id=name)) if name in OWN:
                found = []
            case ast.Attribute(value=value, attr=attr) if attr not in OF_NAMEDTUPLES:
                is_operator = ast.unparse(value).startswith("torch.ops.")  # whose name it is
                found = [] if is_operator else [attr]
            case ast.Call(
                func=ast.Name(id="getattr" | "hasattr" | "setattr") | ast.Attribute(attr="object"),
                args=[_, ast.Constant(value=str(attr)), *_],
            ):
                found = [attr]
            case _:
                found = []
        yield from (name for name in found if any(map(is_private, name.split("."))))


def test_private_names_of_pytorch_stand_in_one_module():
    found = {path.name: [*private_names(path.read_text())] for path in PROGRAM.glob("*.py")}
    assert {name: names for name, names in found.items() if names and name != "_private.py"} == {}


def test_each_private_name_says_in_which_versions_it_was_seen():
    tree = ast.parse((PROGRAM / "_private.py").read_text())
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    assert functions
    for function in functions:
        assert [*private_names(ast.unparse(function))], function.name
        assert re.search(r"\(2\.\d+( to 2\.\d+)?\)\.$", ast.get_docstring(function)), function.name


def test_a_private_name_is_found_wherever_it_stands():
    source = (
        "import torch._a\nimport _os\nfrom torch.b import _c, d\nfrom torch._e.f import g\n"
        "x._h.i\nself._j\nself._k._l\nx._replace(y)\nx.__class__\ngetattr(x, '_m', 0)\n"
        "torch.ops.aten._n.default\ntorch._ops.o\nfrom aten_bridge._p import _q\n"
        "mock.patch.object(x, '_r', 0)\n"
    )
    assert sorted(private_names(source)) == [
        *("_h", "_l", "_m", "_ops", "_r", "torch._a", "torch._e.f.g", "torch.b._c"),
    ]

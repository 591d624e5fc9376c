"""What is for JAX, where JAX is not: the target `jax` alone installs it."""

import re

from conftest import SOURCE, python, run


def test_without_jax_the_module_says_so(tmp_path):
    program = (
        "import sys\n"
        "sys.modules.pop('jax', None)\n"
        "class Missing:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'jax':\n"
        "            raise ModuleNotFoundError(\"No module named 'jax'\", name='jax')\n"
        "sys.meta_path.insert(0, Missing())\n"
        "try:\n"
        "    import aten_bridge.jax\n"
        "except ModuleNotFoundError as error:\n"
        "    print(error)\n"
    )
    (tmp_path / "program.py").write_text(program)
    done = python(tmp_path / "program.py")
    assert done.stdout == (
        "aten_bridge.jax: expected the package jax, 0.6 or newer, got none; install it: pip "
        "install jax\n"
    )


def test_a_library_for_jax_has_a_handler_for_each_kernel_and_others_have_none(build):
    def handlers(library):
        shown = run("nm", "--dynamic", "--defined-only", library).stdout
        return re.findall(r" T (\w+)Jax$", shown, re.M)

    def kernels(library):
        shown = run("nm", "--dynamic", "--defined-only", library).stdout
        return re.findall(r" T (\w+)InferShape$", shown, re.M)

    library = build / "tests/test_pytorch.so"
    assert sorted(handlers(library)) == sorted(kernels(library)) != []
    assert handlers(build / "tests/test_kernels.so") == []


def test_the_structures_are_compared_with_a_jaxlib():
    """Each member that the bridge declares stands in tests/jax/c_api.cpp."""
    header = (SOURCE / "include/aten_bridge/hosts/jax/abi.h").read_text()
    compared = (SOURCE / "tests/jax/c_api.cpp").read_text()
    for name in re.findall(r"^struct (\w+) \{", header, re.M):
        if name != "XlaDType":
            assert f"SAME_MEMBER({name}, " in compared, name

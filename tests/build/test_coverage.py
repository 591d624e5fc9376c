"""tests/fuzz/coverage.py: what a fuzzer opens counts as what it is made of."""

import re
import shutil
import subprocess

import pytest
from conftest import SOURCE, python, run

HEADER = """
inline int half(int number) {
  if (number % 2 != 0) {
    return -1;
  }
  return number / 2;
}
"""
LIBRARY = '#include <half.h>\nextern "C" int call(int number) { return half(number); }\n'
HOST = """
#include <dlfcn.h>

int main() {
  void* library = dlopen(OPENED, RTLD_NOW);
  return library == nullptr ? 1 : reinterpret_cast<int (*)(int)>(dlsym(library, "call"))(4) - 2;
}
"""


@pytest.fixture
def version():
    """The version of LLVM's tools: the compiler's."""
    if shutil.which("clang++") is None:
        pytest.skip("clang++ is not installed")
    text = run("clang++", "--version").stdout
    found = re.search(r"version (\d+)", text)[1]
    if not any(shutil.which(name) for name in (f"llvm-cov-{found}", "llvm-cov")):
        pytest.skip("llvm-cov is not installed")
    return found


def test_lines_of_opened_libraries_count(tmp_path, version):
    (tmp_path / "include").mkdir()
    (tmp_path / "include/half.h").write_text(HEADER)
    (tmp_path / "library.cpp").write_text(LIBRARY)
    (tmp_path / "host.cpp").write_text(HOST)
    library, host = tmp_path / "library.so", tmp_path / "jax_fuzz_coverage"
    counted = ["-fprofile-instr-generate", "-fcoverage-mapping", f"-I{tmp_path / 'include'}"]
    try:
        subprocess.run(
            ["clang++", *counted, "-xc++", "-", "-o", tmp_path / "a"],
            text=True,
            input="int main() {}",
            check=True,
        )
    except subprocess.CalledProcessError:
        pytest.skip("clang's runtime for profiles is not installed")
    run("clang++", *counted, "-shared", "-fPIC", tmp_path / "library.cpp", "-o", library)
    opened = f'-DOPENED="{library}"'
    run("clang++", *counted, opened, tmp_path / "host.cpp", "-ldl", "-o", host)
    command = [SOURCE / "tests/fuzz/coverage.py", "--llvm", version, f"--opened-by-jax={library}"]
    for _ in range(2):  # the second adds nothing to the first
        text = python(*command, tmp_path / "include", tmp_path, host).stdout
        assert "half.h: 2 of 6 not reached: 4-5" in text
        assert "4 of 6 lines reached: 66.7 %" in text

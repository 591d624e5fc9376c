"""The part of the header that knows the host's classes by their layout alone, under valgrind."""

import shutil

import pytest
from conftest import run


@pytest.mark.full
def test_attributes_of_hosts_of_both_abis_are_read_without_errors_or_leaks(build):
    if shutil.which("valgrind") is None:
        pytest.skip("valgrind is not installed")
    core_test = build / "tests/core_test"
    if b"__asan_init" in core_test.read_bytes():
        pytest.skip("the build has AddressSanitizer, which valgrind cannot run")
    run(
        *["valgrind", "--quiet", "--error-exitcode=1", "--leak-check=full"],
        *["--errors-for-leak-kinds=definite", core_test],
    )

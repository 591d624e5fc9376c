"""A pytest plugin for libraries that were built with -DATEN_BRIDGE_OTHER_WORDS=ON.

Such libraries say everything by other words, so that what decides by a text goes wrong. With the
plugin, texts of errors are equal to all others; what the tests say of anything else has to hold.
"""

import contextlib
import os
import pathlib

import pytest

from aten_bridge import faults


class AnyText(str):
    """The text of an error, which says what anybody expects."""

    __hash__ = str.__hash__

    def __str__(self):
        return self

    def __eq__(self, other):
        return isinstance(other, str)

    def __ne__(self, other):
        return not isinstance(other, str)

    def __contains__(self, part):
        # Which no text may have: tests say so.
        return isinstance(part, str) and (part != "INTERNAL ASSERT" or super().__contains__(part))

    def startswith(self, *_):
        return True

    def endswith(self, *_):
        return True

    def removeprefix(self, _):
        return self

    def partition(self, separator):
        return self, separator, self

    rpartition = partition

    def __getitem__(self, _):
        return self

    def splitlines(self, *_):
        return AnyLines([self])


class AnyLines(list):
    """Its lines."""

    def __eq__(self, other):
        return isinstance(other, list)


# Tests that compare texts which come by another way than an exception.
_ABOUT_TEXTS = {
    "test_a_check_is_no_bound",
    "test_a_gradient_for_no_inputs_is_refused",
    "test_a_shape_that_nobody_tells",
    "test_a_state_that_keeps_its_input_is_refused",
    "test_attributes",
    "test_every_value_in_every_place",
    "test_a_library_for_another_pytorch_registers_nothing",
    "test_a_program_with_an_operator_in_python_ends",
    "test_a_second_library_with_the_same_operators",
    "test_an_error_is_raised_by_its_line_in_a_program_that_the_module_runs",
    "test_an_error_is_raised_later_and_says_how_to_see_its_line",
    "test_another_pytorch_is_not_imported",
    "test_errors_of_the_compiler_are_shown_as_they_are",
    "test_library_of_another_pytorch",
    "test_load_library_says_what_it_leaves_out",
    "test_return_mode_gives_the_host_a_code_and_standard_error_the_text",
    "test_sizes_that_do_not_fit_are_refused",
    "test_sizes_that_pytorch_takes_for_others_are_checked",
    "test_the_table_is_that_of_the_library",
    "test_two_versions_in_one_process",
    "test_what_only_a_replaced_library_had",
}
# Functions of the suites that return the text of an error.
_FUNCTIONS = ("bridge_error", "error_of", "error_text", "host_error", "said", "text_of")


def _any_text(function):
    """The same, which finds the text itself among what MindSpore, or a process, says around it."""

    def run(*arguments, **options):
        pytest.raises = _raises
        try:
            found = function(*arguments, **options)
        finally:
            pytest.raises = _raises_anything_said
        return AnyText(found) if isinstance(found, str) else found

    return run


_raises = pytest.raises


@contextlib.contextmanager
def _raises_anything_said(*expected, match=None, **options):
    with _raises(*expected, **options) as error:
        yield error
    error.value.args = (AnyText(error.value),)


_faults_of = faults.faults_of


def _faults_of_any_text(error):
    return tuple(
        one._replace(
            **{name: AnyText(text) for name, text in zip(one._fields, one[:3], strict=False)}
        )
        for one in _faults_of(error)
    )


def pytest_configure():
    cache = pathlib.Path(os.environ.get("ATEN_BRIDGE_BUILD_DIR", ""), "CMakeCache.txt")
    if not cache.is_file() or "\nATEN_BRIDGE_OTHER_WORDS:BOOL=ON\n" not in cache.read_text():
        raise pytest.UsageError(
            "Set ATEN_BRIDGE_BUILD_DIR to a build with -DATEN_BRIDGE_OTHER_WORDS=ON."
        )
    pytest.raises = _raises_anything_said
    faults.faults_of = _faults_of_any_text
    os.environ["PYTEST_PLUGINS"] = __name__  # for processes that a test starts


def pytest_collection_modifyitems(items):
    items[:] = [item for item in items if item.originalname not in _ABOUT_TEXTS]
    for module in {item.module for item in items}:
        for name in _FUNCTIONS:
            if hasattr(module, name):
                setattr(module, name, _any_text(getattr(module, name)))


def pytest_sessionfinish(session, exitstatus):
    """A suite all of whose tests compare texts has nothing to say here."""
    if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
        session.exitstatus = pytest.ExitCode.OK

import pytest

from needle.errors import InputError, RunError
from needle.train.ending import StoppedEarly, ending_of


def test_a_needle_error_ends_as_failed_with_its_remedy_and_without_traceback() -> None:
    ending = ending_of(RunError("the disk is full", where="runs/a", remedy="free some space"))
    assert ending.outcome == "failed"
    assert ending.reason == "runs/a: the disk is full\n  free some space"
    assert ending.expected
    assert ending.exit_status == 1


def test_bad_input_keeps_its_exit_status() -> None:
    assert ending_of(InputError("no such file")).exit_status == 2


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("RESOURCE_EXHAUSTED: Out of memory allocating 8796093022208 bytes.", "8.0 TiB"),
        ("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 19.09GiB.", "19.1 GiB"),
        (
            "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 1073741824 bytes.\nBufferAssign",
            "1.0 GiB",
        ),
    ],
)
def test_exhausted_memory_says_how_much_was_asked_and_what_to_change(text: str, size: str) -> None:
    ending = ending_of(RuntimeError(text))
    assert f"one piece of {size} was asked for" in ending.reason
    assert "--batch-size" in ending.reason
    assert not ending.expected


def test_host_memory_that_numpy_could_not_get_is_told_the_same_way() -> None:
    ending = ending_of(MemoryError("Unable to allocate 8.00 GiB for an array with shape (2, 3)"))
    assert "one piece of 8.0 GiB" in ending.reason


def test_exhausted_resources_without_a_size_still_say_memory() -> None:
    assert ending_of(RuntimeError("RESOURCE_EXHAUSTED: no more")).reason.startswith("out of memory\n")


def test_a_missing_package_names_the_extra_to_install() -> None:
    ending = ending_of(ModuleNotFoundError("No module named 'jax'", name="jax"))
    assert ending.reason.startswith("jax is not installed")
    assert "needle-tui[train]" in ending.reason
    assert ending.expected


def test_an_unexpected_exception_is_told_by_its_last_line_and_keeps_its_traceback() -> None:
    ending = ending_of(ValueError("shapes differ\nmore"))
    assert (ending.outcome, ending.reason, ending.expected) == ("failed", "ValueError: shapes differ", False)
    assert ending_of(AssertionError()).reason == "AssertionError"


def test_a_stop_before_the_first_step_is_no_failure() -> None:
    ending = ending_of(StoppedEarly("stopped while compiling"))
    assert (ending.outcome, ending.exit_status) == ("stopped", 0)

"""The public names, and what using them loads."""

import subprocess
import sys

import pytest

import needle.runs


def loaded_by(statement: str) -> set[str]:
    code = f"{statement}\nimport sys\nprint(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize("name", needle.runs.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert callable(getattr(needle.runs, name))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError):
        _ = needle.runs.nothing  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "statement",
    [
        "import needle.runs.supervisor",
        "from needle.runs import RunWriter, create_run, find_runs, request_stop, observe_directory, LogTail",
        "import needle; needle.report(step=1, loss=0.5)",
    ],
)
def test_who_does_not_read_metrics_never_loads_numpy(statement: str) -> None:
    assert not loaded_by(statement) & {"numpy", "jax", "flax", "optax", "textual", "asyncio"}

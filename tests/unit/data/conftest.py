"""Files for the tests of the data room."""

from collections.abc import Callable
from pathlib import Path

import pytest

from needle.data.examples import ExampleFile, read_examples


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., Path]:
    """Write bytes or text to a file of this test and give its path."""

    def write(content: bytes | str, name: str = "data.jsonl") -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
        return path

    return write


@pytest.fixture
def read(written: Callable[..., Path]) -> Callable[[bytes | str], ExampleFile]:
    """Read these bytes as a data file."""
    return lambda content: read_examples(written(content))

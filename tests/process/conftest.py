"""Crafted interpreters and modules for children that are started for real."""

from pathlib import Path

import pytest


@pytest.fixture
def interpreter(tmp_path):
    """A shell script that stands for a Python; `$1` is the probe's file, `$2` the platform."""

    def make(body: str) -> Path:
        path = tmp_path / "python"
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)
        return path

    return make


@pytest.fixture
def modules(tmp_path):
    """A directory of crafted Python modules, to be put first on the child's import path."""

    def make(**files: str) -> str:
        for name, text in files.items():
            path = tmp_path / "modules" / f"{name.replace('__slash__', '/')}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return str(tmp_path / "modules")

    return make

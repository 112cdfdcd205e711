#!/usr/bin/env python3
"""Everything from a fresh clone, with nothing but Python 3.11 or newer:

    python3 dev.py cockpit [ARGUMENTS]   make .venv, install, open the cockpit on the embedded sample
    python3 dev.py test [PYTEST ARGUMENTS]   make .venv, install, run lint, types, contracts and tests

Without a terminal `cockpit` runs the same sample training in plain lines.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent
ENVIRONMENT = ROOT / ".venv"
PYTHON = ENVIRONMENT / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
EXTRAS = {"cockpit": "train", "test": "dev"}


def main() -> int:
    if sys.version_info < (3, 11):  # noqa: UP036 - run before anything is installed
        print("needle-tui needs Python 3.11 or newer; this is " + sys.version.split()[0], file=sys.stderr)
        return 2
    if len(sys.argv) < 2 or sys.argv[1] not in EXTRAS:
        print(__doc__, file=sys.stderr)
        return 2
    command, arguments = sys.argv[1], sys.argv[2:]
    install(EXTRAS[command])
    return cockpit(arguments) if command == "cockpit" else test(arguments)


def install(extra: str) -> None:
    """Make the environment and install into it, unless that was done for this very pyproject.toml."""
    wanted = hashlib.sha256((ROOT / "pyproject.toml").read_bytes()).hexdigest()
    stamp = ENVIRONMENT / f"installed-{extra}"
    if PYTHON.exists() and stamp.exists() and stamp.read_text() == wanted:
        return
    if not PYTHON.exists():
        print("making .venv …", file=sys.stderr, flush=True)
        make_environment()
    print(f"installing needle-tui[{extra}] …", file=sys.stderr, flush=True)
    pip = [str(PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    if subprocess.run([*pip, "--editable", f"{ROOT}[{extra}]"]).returncode:
        sys.exit("dev.py: the installation failed; pip's words are above")
    stamp.write_text(wanted)


def make_environment() -> None:
    """Make .venv; where Python came without what that takes, leave nothing half made."""
    try:
        venv.create(ENVIRONMENT, with_pip=True)
    except (subprocess.CalledProcessError, OSError) as error:
        shutil.rmtree(ENVIRONMENT, ignore_errors=True)
        sys.exit(f"dev.py: .venv cannot be made: {error}\n  on Debian and Ubuntu: apt install python3-venv")


def cockpit(arguments: list[str]) -> int:
    """The cockpit; without a terminal, the embedded sample trained in the foreground."""
    if arguments or (sys.stdin.isatty() and sys.stdout.isatty()):
        return subprocess.call([PYTHON, "-m", "needle_tui", *arguments])
    print("no terminal here: training the embedded sample in plain lines", file=sys.stderr, flush=True)
    return subprocess.call([PYTHON, "-m", "needle", "finetune", "--sample"])


def test(arguments: list[str]) -> int:
    """Every check, in the order of how soon it answers; stops at the first that fails."""
    checks = (
        ["-m", "ruff", "check", "."],
        ["-m", "ruff", "format", "--check", "."],
        ["-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"],
        ["-m", "mypy"],
        ["-m", "pytest", "--numprocesses=auto", "--dist=loadfile", *arguments],
    )
    for check in checks:
        print(f"\n== {' '.join(check[1:]) if check[0] == '-m' else 'import contracts'}", flush=True)
        status = subprocess.call([PYTHON, *check], cwd=ROOT)
        if status:
            return status
    return 0


if __name__ == "__main__":
    sys.exit(main())

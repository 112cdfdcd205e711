"""`needle-tui`: parse, then open the cockpit. Help and errors come without loading the interface."""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from needle import __version__
from needle.commands.arguments import Parser
from needle.errors import InputError, NeedleError

COMMANDS = ("watch", "devices")
_EPILOG = """\
Runs live in DIR, else in $NEEDLE_RUNS, else in ./runs. They go on when the cockpit closes.
Without a terminal, use: needle finetune sample
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Open the cockpit. Returns the exit status: 0, or 2 for bad usage."""
    try:
        options = _parser().parse_all(sys.argv[1:] if arguments is None else arguments)
        return _open(options)
    except NeedleError as error:
        print(f"needle-tui: {error}", file=sys.stderr)
        return error.exit_status


def _parser() -> Parser:
    parser = Parser(
        prog="needle-tui",
        description="The cockpit: launch, watch and return to training runs from a terminal.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("command", nargs="?", metavar="watch|devices", help="open this screen first")
    parser.add_argument(
        "run", nargs="?", metavar="RUN", help="for watch: a run's id, its beginning, path, or latest"
    )
    parser.add_argument("--runs", metavar="DIR", help="where runs live")
    parser.add_argument(
        "--read-only", action="store_true", help="watch only: nothing can be started or stopped"
    )
    parser.add_argument(
        "--theme", choices=("dark", "light", "ansi"), help="colours; chosen by the terminal otherwise"
    )
    parser.add_argument("--no-mouse", action="store_true", help="leave the mouse to the terminal")
    parser.add_argument("--version", action="version", version=f"needle-tui {__version__}")
    return parser


def _open(options: argparse.Namespace) -> int:
    command = options.command or ""
    if command and command not in COMMANDS:
        raise InputError(
            f"unknown command {command!r}", remedy="there are: watch RUN, devices; see needle-tui --help"
        )
    if options.run and command != "watch":
        raise InputError(
            f"{command or 'needle-tui'} takes no {options.run!r}", remedy="did you mean: watch RUN?"
        )
    runs = Path(options.runs).expanduser() if options.runs else None
    run = _resolved(options.run or "latest", runs) if command == "watch" else None
    _require_terminal()
    if options.theme:
        os.environ["NEEDLE_THEME"] = options.theme
    # Thousands of objects are made before the first paint and none of them is garbage: collecting is wasted.
    gc.disable()
    from needle_tui.session import open_cockpit

    start = {"watch": "monitor", "devices": "devices"}.get(command, "launch")
    return open_cockpit(runs, start=start, run=run, read_only=options.read_only, mouse=not options.no_mouse)


def _resolved(text: str, runs: Path | None) -> Path:
    from needle.runs.index import resolve_run

    return resolve_run(text, runs)


def _require_terminal() -> None:
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise InputError(
            "needs a terminal, and this is not one",
            remedy="headless: needle finetune sample; from a script: needle runs list --json",
        )


if __name__ == "__main__":
    sys.exit(main())

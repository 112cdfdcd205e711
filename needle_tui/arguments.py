"""The command line of `needle-tui`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from needle import __version__
from needle.commands.arguments import Parser
from needle.errors import InputError
from needle_tui.options import Options

COMMANDS = ("watch", "devices")
_EPILOG = """\
Runs live in DIR, else in $NEEDLE_RUNS, else in ./runs. They go on when the cockpit closes.
Without a terminal, use: needle finetune --sample
"""


def parse(arguments: Sequence[str]) -> Options:
    """What a person asked for. Raises InputError for bad usage, or for a run that is not there."""
    given = _parser().parse_all(arguments)
    command = given.command or ""
    if command and command not in COMMANDS:
        raise InputError(
            f"unknown command {command!r}", remedy="there are: watch RUN, devices; see needle-tui --help"
        )
    if given.run and command != "watch":
        raise InputError(
            f"{command or 'needle-tui'} takes no {given.run!r}", remedy="did you mean: watch RUN?"
        )
    runs = Path(given.runs).expanduser() if given.runs else None
    return Options(
        start={"watch": "monitor", "devices": "devices"}.get(command, "launch"),
        runs=runs,
        run=_resolved(given.run or "latest", runs) if command == "watch" else None,
        read_only=given.read_only,
        mouse=not given.no_mouse,
        theme=given.theme or "",
    )


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


def _resolved(text: str, runs: Path | None) -> Path:
    from needle.runs.index import resolve_run

    return resolve_run(text, runs)

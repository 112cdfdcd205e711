"""`needle-tui`: read the command line, then open the cockpit. Neither help nor an error loads Textual."""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence

from needle.errors import InputError, NeedleError
from needle_tui.options import Options


def main(arguments: Sequence[str] | None = None) -> int:
    """Open the cockpit. Returns the exit status: 0, or 2 for bad usage."""
    try:
        options = _options(sys.argv[1:] if arguments is None else arguments)
        _require_terminal()
    except NeedleError as error:
        print(f"needle-tui: {error}", file=sys.stderr)
        return error.exit_status
    # Thousands of objects are made before the first paint and none of them is garbage: collecting is wasted.
    gc.disable()
    from needle_tui.session import open_cockpit

    return open_cockpit(options)


def _options(arguments: Sequence[str]) -> Options:
    if not arguments:
        return Options()  # the usual case waits for no argument parser
    from needle_tui.arguments import parse

    return parse(arguments)


def _require_terminal() -> None:
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise InputError(
            "needs a terminal, and this is not one",
            remedy="headless: needle finetune --sample; from a script: needle runs list --json",
        )


if __name__ == "__main__":
    sys.exit(main())

"""One session of the cockpit with a real terminal: its environment, its signals, its end."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import MutableMapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from needle_tui.app import NeedleApp

CLOSE_LIMIT_S = 2.0
"""How long a closing session may take once its terminal is gone."""


def open_cockpit(runs_directory: Path, *, start: str, run: Path | None, read_only: bool) -> int:
    """Run the app until it is closed. Returns its exit status."""
    inherited = dict(os.environ)
    prepare_environment(os.environ)
    from needle_tui.app import NeedleApp
    from needle_tui.context import Context

    context = Context(runs_directory, read_only=read_only, environment=inherited)
    app = NeedleApp(context, start=start, run=run)

    async def session() -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGHUP, signal.SIGTERM):
            loop.add_signal_handler(number, _leave, app, number)
        await app.run_async(mouse="NEEDLE_NO_MOUSE" not in os.environ)

    asyncio.run(session())
    return app.return_code or 0


def prepare_environment(environment: MutableMapping[str, str]) -> None:
    """Before Textual is imported: a dropped SSH link would leave the far terminal in Kitty's key mode."""
    if environment.get("SSH_CONNECTION"):
        environment.setdefault("TEXTUAL_DISABLE_KITTY_KEY", "1")


def _leave(app: NeedleApp, number: int) -> None:
    """Close on SIGHUP and SIGTERM, terminal restored where there still is one; a hung close is cut short."""
    status = 128 + number
    watchdog = threading.Timer(CLOSE_LIMIT_S, os._exit, (status,))
    watchdog.daemon = True
    watchdog.start()
    app.exit(return_code=status)

"""One session of the cockpit with a real terminal: its environment, its signals, its end."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import MutableMapping
from typing import TYPE_CHECKING

from needle_tui.options import Options
from needle_tui.terminal import has_256_colours

if TYPE_CHECKING:
    from needle_tui.app import NeedleApp

CLOSE_LIMIT_S = 2.0
"""How long a closing session may take once its terminal is gone."""


def open_cockpit(options: Options) -> int:
    """Run the app until it is closed. Returns its exit status."""
    inherited = dict(os.environ)
    prepare_environment(os.environ)
    from needle_tui.app import NeedleApp
    from needle_tui.context import Context

    context = Context(options.runs, read_only=options.read_only, environment=inherited, theme=options.theme)
    app = NeedleApp(context, start=options.start, run=options.run)
    asyncio.run(_session(app, mouse=options.mouse))
    status = app.return_code or 0
    _end_at_once_if_busy(status)
    return status


def prepare_environment(environment: MutableMapping[str, str]) -> None:
    """Before Textual is imported.

    A dropped SSH link would leave the far terminal in Kitty's key mode. Our colours are those of the
    256-colour cube, and naming one of them takes half the bytes of spelling it out.
    """
    if environment.get("SSH_CONNECTION"):
        environment.setdefault("TEXTUAL_DISABLE_KITTY_KEY", "1")
    if has_256_colours(environment):
        environment.setdefault("TEXTUAL_COLOR_SYSTEM", "256")


async def _session(app: NeedleApp, *, mouse: bool) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGHUP, signal.SIGTERM):
        loop.add_signal_handler(number, _leave, app, number)
    await app.run_async(mouse=mouse)


def _leave(app: NeedleApp, number: int) -> None:
    """Close on SIGHUP and SIGTERM, terminal restored where there still is one; a hung close is cut short."""
    status = 128 + number
    watchdog = threading.Timer(CLOSE_LIMIT_S, os._exit, (status,))
    watchdog.daemon = True
    watchdog.start()
    app.exit(return_code=status)


def _end_at_once_if_busy(status: int) -> None:
    """A thread still looking at files or devices has nothing to save, and native code in it would abort
    the interpreter as it is taken down."""
    others = [thread for thread in threading.enumerate() if thread is not threading.current_thread()]
    if others:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)

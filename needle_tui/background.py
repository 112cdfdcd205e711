"""Work off the event loop, in threads that never keep the program alive.

Textual's thread workers belong to an executor that is waited for at exit: a probe of a broken driver would
hold the closed program for a minute. These threads are daemons, and what they find comes back as a message.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from textual.message import Message
from textual.message_pump import MessagePump


class BackgroundFailed(Message):
    """Work in the background came to an end that nobody foresaw; it bubbles up to the app, which says so."""

    def __init__(self, name: str, error: Exception) -> None:
        super().__init__()
        self.name = name
        self.error = error


def in_background(target: MessagePump, work: Callable[[], Message | None], *, name: str) -> None:
    """Run `work` in a thread and post the message it returns to `target`. `name` says what is done."""

    def run() -> None:
        try:
            message = work()
        except Exception as error:
            message = BackgroundFailed(name, error)
        if message is not None and target.is_attached:
            target.post_message(message)

    threading.Thread(target=run, name=name, daemon=True).start()

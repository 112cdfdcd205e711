"""Stopping a run: the question, then each step of the escalation as it happens."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen

from needle.errors import NeedleError
from needle.runs.control import request_stop
from needle.runs.events import Event
from needle.runs.reader import RunReader
from needle.runs.state import Status
from needle_tui.marks import marks
from needle_tui.phases import look_of, phase_text
from needle_tui.text import indented, inert, wrapped
from needle_tui.theme import style_sheet
from needle_tui.widgets.key_bar import key_items
from needle_tui.widgets.lines import Lines

POLL_S = 0.2
QUESTION = "It finishes the step it is in, saves what it has learnt, and ends as stopped. It can be resumed."


class StopProgress(Lines):
    """The question, and after the answer what has happened so far."""

    def __init__(self) -> None:
        super().__init__()
        self.stages: tuple[Event, ...] = ()
        self.status: Status | None = None
        self.asked = False

    def show(self, stages: tuple[Event, ...], status: Status) -> None:
        """A newer state of affairs."""
        self.stages, self.status = stages, status
        self.update_lines()

    def lines(self, width: int) -> list[Content]:
        """Words, stages, keys."""
        found = [] if self.asked else indented(wrapped(QUESTION, width), 0, "")
        for stage in self.stages:
            found.extend(_stage_lines(stage, width))
        if self.status is not None and (self.asked or self.status.ended):
            found.append(phase_text(look_of(self.status.phase, stalled=self.status.stalled)))
            found.extend(indented(wrapped(inert(self.status.reason), width), 0, "$muted"))
        return [*found, Content(), key_items(self._keys())]

    def _keys(self) -> tuple[tuple[str, str], ...]:
        if self.status is not None and self.status.ended:
            return (("Enter", "Close"),)
        if self.asked:
            return (("s", "Stop at once"), ("Esc", "Close; stopping goes on"))
        return (("y", "Stop and save"), ("n", "Leave it running"))


class StopDialog(ModalScreen[None]):
    """Asks once; `s` again does not wait for the step."""

    CSS_PATH = style_sheet("dialog")
    AUTO_FOCUS = ""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "stop", "Stop and save"),
        Binding("s", "stop_now", "Stop at once"),
        Binding("n,escape,q,enter", "dismiss", "Close"),
    ]

    def __init__(self, directory: Path, name: str) -> None:
        super().__init__()
        self._directory = directory
        self._run_name = name

    def compose(self) -> ComposeResult:
        """One frame."""
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = Content(f"Stop {inert(self._run_name)}?")
            yield StopProgress()

    def on_mount(self) -> None:
        """Follow the run while the dialog is open."""
        self._follow()

    def action_stop(self) -> None:
        """Ask the run to finish its step, save and end."""
        self._ask(now=False)

    def action_stop_now(self) -> None:
        """Do not wait for the step; only once a stop was asked for."""
        if self.query_one(StopProgress).asked:
            self._ask(now=True)

    def _ask(self, *, now: bool) -> None:
        progress = self.query_one(StopProgress)
        if progress.status is not None and progress.status.ended:
            return
        try:
            request_stop(self._directory, now=now)
        except (NeedleError, OSError) as error:
            self.notify(str(error), severity="error", title="Not stopped")
            return
        progress.asked = True
        progress.update_lines()

    @work(group="stop", exit_on_error=False)
    async def _follow(self) -> None:
        reader = await asyncio.to_thread(RunReader, self._directory)
        while True:
            status = await asyncio.to_thread(reader.refreshed_status)
            self.query_one(StopProgress).show(stop_stages(reader.events), status)
            await asyncio.sleep(POLL_S)


def stop_stages(events: list[Event]) -> tuple[Event, ...]:
    """The stop events of the newest attempt."""
    if not events:
        return ()
    attempt = events[-1].get("attempt")
    return tuple(one for one in events if one.get("kind") == "stop" and one.get("attempt") == attempt)


def _stage_lines(stage: Event, width: int) -> list[Content]:
    """What was done, in the supervisor's words; the stage's own name where it said none."""
    words = wrapped(inert(str(stage.get("message") or stage.get("stage") or "asked")), width - 2)
    first = Content.assemble((f"{marks().good} ", "$accent"), words[0])
    return [first, *indented(words[1:], 2, "")]
